#!/usr/bin/env bash
# Installs what is missing, builds the command, with CUDA where nvcc and a GPU are, and measures the taxes of a real
# model's layers on this machine: on its GPUs where there are two or more, else on its processor. Then it predicts
# those of a larger model on 8 H200, which need not be here.
#
#   --cuda   builds with CUDA also where no GPU is seen; kernels take most of an hour on two cores
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

heading "Packages"
install_packages "${untax_build_packages[@]}"
choose_compiler

if [[ $preset == cuda ]]; then
  heading "Build with CUDA (the first time most of an hour on two cores; ./demo.sh --host leaves GPUs out)"
elif has_nvcc && ((gpus == 0)); then
  heading "Build (a few minutes the first time; nvcc is here and no GPU is, so without CUDA; --cuda adds it)"
else
  heading "Build (a few minutes the first time)"
fi
quietly build/$preset/configure.log cmake --preset $preset
with_progress build/$preset/build.log cmake --build --preset $preset --target untax_cli

heading "untax doctor"
$untax doctor

# Four ranks, or two where there are only two or three GPUs for them.
ranks=4
if [[ $preset == cuda ]] && ((gpus == 2 || gpus == 3)); then ranks=2; fi
heading "untax taxes --model $model --tensor-parallel $ranks --tokens 64"
$untax taxes --model "$model" --tensor-parallel $ranks --tokens 64 --html "$page" --json build/taxes.json

predicted="--model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json"
heading "untax taxes $predicted"
# shellcheck disable=SC2086 # several arguments
$untax taxes $predicted --html $predicted_page

heading "Done"
echo "The same as pages with the waterfall: $PWD/$page, measured here, and $PWD/$predicted_page, predicted"
echo "docs/timing.md says how far off predictions are"
