#!/usr/bin/env bash
# Compiles the kernels with one thing left out at a time (engines/sm90/transfer/mutant.hpp) and wants the tests of
# operators to fail, with 2 and with 4 ranks that share a GPU. Takes a GPU, and an hour for all of them; not a part of
# ./test.sh. With numbers it takes these only.
#
#   tests/gpu/mutants.sh [NUMBER]...
set -euo pipefail
cd "$(dirname "$0")/../.."

header=engines/sm90/transfer/mutant.hpp
mapfile -t names < <(sed -n '/^enum class mutant {/,/^};/s/^  \([a-z_]*\),.*/\1/p' "$header")
numbers=("$@")
if ((${#numbers[@]} == 0)); then mapfile -t numbers < <(seq 1 $((${#names[@]} - 1))); fi

# Short waits: what is never told of ends as an error. Ranks that share a GPU have queues of their own.
export UNTAX_WAIT_LIMIT_MS=3000 CUDA_DEVICE_MAX_CONNECTIONS=32
tests='gpu_operators*:gpu_gather_ways*'

build() {
  cmake --preset cuda -B "build/mutant-$1" -DCMAKE_CUDA_FLAGS="-DUNTAX_MUTANT=$1" >/dev/null
  cmake --build "build/mutant-$1" --target gpu_test >/dev/null
}
# Whether the tests pass; the time limit is for those that hang for other reasons.
passes() {
  UNTAX_RANKS_PER_GPU=$2 timeout 1200 "build/mutant-$1/tests/gpu_test" --gtest_filter="$tests" \
    --gtest_brief=1 >"build/mutant-$1/ranks-$2.log" 2>&1
}

build 0
for ranks in 2 4; do
  if ! passes 0 "$ranks"; then
    echo "with $ranks ranks a GPU the tests fail with nothing left out: see build/mutant-0/ranks-$ranks.log" >&2
    exit 1
  fi
done
survivors=0
for number in "${numbers[@]}"; do
  build "$number"
  for ranks in 2 4; do
    if passes "$number" "$ranks"; then
      echo "${names[$number]}, $ranks ranks a GPU: survived"
      survivors=$((survivors + 1))
    else
      echo "${names[$number]}, $ranks ranks a GPU: killed"
    fi
  done
done
echo "${#numbers[@]} mutants, $survivors survivors"
((survivors == 0))
