#!/usr/bin/env bash
# Installs missing packages, builds the command, with CUDA if there are nvcc and a GPU, and shows the taxes of a large
# model's layers on 8 H200, which this machine need not have: they are predicted. Then it measures the taxes of a smaller
# model on this machine: on its GPUs if there are two or more, else on its processor.
#
#   --cuda   builds with CUDA also without a GPU; kernels take most of an hour on two cores
#   --host   compiles nothing for GPUs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source cmake/dependencies.sh

model=models/llama-3.2-1b.json
page=build/taxes.html
predicted_page=build/taxes-8-h200.html

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
preset=release
if has_nvcc && ((gpus > 0)); then preset=cuda; fi
case ${1:-} in
  "") ;;
  --cuda) preset=cuda ;;
  --host) preset=release ;;
  *)
    echo "./demo.sh takes --cuda, --host or nothing" >&2
    exit 2
    ;;
esac
untax=build/$preset/untax

# The expected duration, before anything else.
cores=$(nproc)
if [[ -x $untax ]]; then
  echo "This takes about two minutes: $untax is there, and only what has changed is built."
elif [[ $preset == cuda ]]; then
  echo "This takes about $((120 / cores)) minutes on $cores cores, nearly all of it for the kernels; ./demo.sh --host takes $((6 / cores + 2))."
else
  echo "This takes about $((6 / cores + 2)) minutes on $cores cores: the build most of it, then one second for a prediction and" \
    "a minute for a measurement."
fi

heading "Packages"
install_packages "${untax_build_packages[@]}"
choose_compiler

if [[ $preset == cuda ]]; then
  heading "Build with CUDA (./demo.sh --host leaves GPUs out)"
elif has_nvcc && ((gpus == 0)); then
  heading "Build (nvcc is here and no GPU is, so without CUDA; --cuda adds it)"
else
  heading "Build"
fi
# A first build compiles the sources of a folder together, which takes less time. The build folder keeps this setting.
configuration=(--preset "$preset" -D UNTAX_UNITY=ON)
if [[ -f build/$preset/CMakeCache.txt ]]; then configuration=(-B "build/$preset"); fi
quietly build/$preset/configure.log cmake "${configuration[@]}"
with_progress build/$preset/build.log cmake --build --preset $preset --target untax_cli

heading "untax doctor"
$untax doctor

predicted="--model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json"
heading "untax taxes $predicted"
# shellcheck disable=SC2086 # several arguments
$untax taxes $predicted --html $predicted_page
echo "As a page with the waterfall: $PWD/$predicted_page"

# Four ranks if there are four GPUs or cores. With more ranks than cores some ranks wait to be scheduled, and that hides
# the measured effects.
places=$cores
if [[ $preset == cuda ]] && ((gpus >= 2)); then places=$gpus; fi
ranks=1
if ((places >= 4)); then ranks=4; elif ((places >= 2)); then ranks=2; fi
heading "untax taxes --model $model --tensor-parallel $ranks --tokens 64"
$untax taxes --model "$model" --tensor-parallel $ranks --tokens 64 --html "$page" --json build/taxes.json

# A whole model: its tokens depend neither on the number of ranks nor, in fp32, on the patterns that compute them.
tiny=build/tiny-llama.json
cat >$tiny <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1408,
 "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 8192,
 "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false,
 "torch_dtype": "float32"}
END
for count in 1 2; do
  generated="--model $tiny --random-weights --prompt 64 --tokens 32 --ranks $count --beside library"
  heading "untax generate $generated"
  # shellcheck disable=SC2086 # several arguments
  $untax generate $generated | tee build/tokens-$count.txt
  if ! grep -q 'untax and of the library are equal' build/tokens-$count.txt; then
    echo "untax and the library generated different tokens" >&2
    exit 1
  fi
done
if [[ $(grep sequence build/tokens-1.txt | tail -1) != "$(grep sequence build/tokens-2.txt | tail -1)" ]]; then
  echo "one rank and two ranks generated different tokens" >&2
  exit 1
fi
echo "One rank and two ranks generate the same tokens, by untax and by the library."

heading "Done"
echo "The same as pages with the waterfall: $PWD/$predicted_page, predicted, and $PWD/$page, measured here"
echo "docs/timing.md says how far off predictions are"
