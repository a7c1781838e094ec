#!/usr/bin/env bash
# Installs what is missing, builds the command, with CUDA where nvcc is, and measures the taxes of a real model's layers
# on this machine: on its GPUs where there are two or more, else on its processor.
#
#   --host   compiles nothing for GPUs, which takes most of the time of a build with CUDA
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source cmake/dependencies.sh

model=models/llama-3.2-1b.json
page=build/taxes.html

preset=release
if has_nvcc; then preset=cuda; fi
case ${1:-} in
  "") ;;
  --host) preset=release ;;
  *)
    echo "./demo.sh takes --host or nothing" >&2
    exit 2
    ;;
esac
untax=build/$preset/untax

heading "Packages"
install_packages "${untax_build_packages[@]}"
choose_compiler

if [[ $preset == cuda ]]; then
  heading "Build with CUDA (the first time most of an hour on two cores; ./demo.sh --host leaves GPUs out)"
else
  heading "Build (a few minutes the first time)"
fi
quietly build/$preset/configure.log cmake --preset $preset
with_progress build/$preset/build.log cmake --build --preset $preset --target untax_cli

heading "untax doctor"
$untax doctor

# Four ranks, or two where there are only two or three GPUs for them.
ranks=4
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
if [[ $preset == cuda ]] && ((gpus == 2 || gpus == 3)); then ranks=2; fi
heading "untax taxes --model $model --tensor-parallel $ranks --tokens 64"
$untax taxes --model "$model" --tensor-parallel $ranks --tokens 64 --html "$page" --json build/taxes.json

heading "Done"
echo "The same as a page with the waterfall: $PWD/$page"
