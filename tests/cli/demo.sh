# Parts of demo.sh: the progress of a build shows without a terminal, and nvcc is found where the build finds it.
source "$(dirname "$0")/helpers.bash"
scripts=$(cd "$(dirname "$0")/../../cmake" && pwd)
cd "$folder" || exit 1

# in_shell COMMAND: runs it with what the scripts share.
in_shell() {
  tests=$((tests + 1))
  UNTAX_PROGRESS_SECONDS=1 timeout $((60 * scale)) bash -c "set -euo pipefail; source '$scripts/dependencies.sh'; $1" \
    >"$out" 2>"$err" </dev/null
  status=$?
}

cat >build.sh <<'SCRIPT'
for i in 1 2 3; do
  echo "[$i/3] Building a.cpp.o"
  sleep 2
done
exit "$1"
SCRIPT
in_shell 'with_progress logs/build.log bash build.sh 0; echo after'
[ "$status" -eq 0 ] || wrong "a build that is well: exit status $status"
says "$out" '^  \[00:0[0-9]\] step [123] of 3$'
says "$out" '^after$'
grep -q Building "$out" && wrong "the log is shown"
says logs/build.log '^\[3/3\] Building'

in_shell 'with_progress logs/build.log bash build.sh 4; echo after'
[ "$status" -eq 1 ] || wrong "a build that fails: exit status $status"
says "$out" '^\[3/3\] Building'
says "$out" '^failed: bash build.sh 4$'
grep -q after "$out" && wrong "the script goes on"

mkdir -p cuda/bin
printf '#!/bin/sh\n' >cuda/bin/nvcc
chmod +x cuda/bin/nvcc
in_shell "CUDA_HOME='$folder/cuda'; has_nvcc"
[ "$status" -eq 0 ] || wrong "nvcc in CUDA_HOME is not found"
in_shell "PATH='$folder/none' CUDA_HOME='$folder/none'; has_nvcc"
[ "$status" -eq 1 ] || wrong "nvcc is found where none is"

# A command without CUDA says that it could be compiled with it.
tests=$((tests + 1))
PATH=$PWD/cuda/bin:$PATH timeout $((60 * scale)) "$untax" doctor >"$out" 2>"$err" </dev/null
if grep -q 'built without CUDA' "$out"; then
  tr -s ' \n' ' ' <"$out" | grep -q "built without CUDA, and nvcc is here ($PWD/cuda/bin/nvcc)" || wrong "no word of nvcc"
fi
finish
