#!/usr/bin/env bash
# Leaves one thing out of the kernels at a time (engines/gpu/channel/mutant.hpp) and wants the tests of operators to
# fail, with 2 and with 4 ranks that share a GPU, or with one rank where what is left out concerns no peer. The kernels
# are compiled once, with all mutants in them. Takes a GPU and minutes; not a part of ./test.sh. With numbers it takes
# these mutants only.
#
# Where a fence or a wait for TMA is left out, a GPU may be in time all the same, and no run tells. Then the gate `order`
# has to forbid it, which is asked here, too.
#
#   tests/gpu/mutants.sh [NUMBER]...
set -euo pipefail
cd "$(dirname "$0")/../.."

header=engines/gpu/channel/mutant.hpp
mapfile -t names < <(sed -n '/^enum class mutant {/,/^};/s/^  \([a-z_]*\),.*/\1/p' "$header")
numbers=("$@")
if ((${#numbers[@]} == 0)); then mapfile -t numbers < <(seq 1 $((${#names[@]} - 1))); fi

# Short waits: what is never told of ends as an error. Ranks that share a GPU have queues of their own.
export UNTAX_WAIT_LIMIT_MS=2000 CUDA_DEVICE_MAX_CONNECTIONS=32
tests='gpu_operators*:gpu_gather_ways*:gpu_sums*:gpu_all_reduce_norm*:gpu_merge_partial_attention*:gpu_flash_decode*'

cmake --preset cuda -B build/mutants -DCMAKE_CUDA_FLAGS=-DUNTAX_MUTANTS >/dev/null
cmake --build build/mutants --target gpu_test >/dev/null

# passes NUMBER RANKS: whether the tests pass; the first that fails is enough, and the time limit is for those that hang.
passes() {
  UNTAX_MUTANT=$1 UNTAX_RANKS_PER_GPU=$2 timeout 600 build/mutants/tests/gpu_test --gtest_filter="$tests" \
    --gtest_brief=1 --gtest_fail_fast >"build/mutants/mutant-$1-ranks-$2.log" 2>&1
}

# ranks_of NAME: with how many ranks a GPU a mutant is tried.
ranks_of() {
  case "$1" in
    attend_lengths) echo 1 ;;
    *) printf '%s\n' 2 4 ;;
  esac
}

for ranks in 1 2 4; do
  if ! passes 0 "$ranks"; then
    echo "with $ranks ranks a GPU the tests fail with nothing left out: see build/mutants/mutant-0-ranks-$ranks.log" >&2
    exit 1
  fi
done
survivors=0
for number in "${numbers[@]}"; do
  for ranks in $(ranks_of "${names[$number]}"); do
    began=$SECONDS
    if passes "$number" "$ranks"; then
      if python3 tests/style/order_mutants.py --mutant "${names[$number]}" >/dev/null; then
        verdict="no run tells, the gate order does"
      else
        verdict=survived
        survivors=$((survivors + 1))
      fi
    else
      verdict=killed
    fi
    echo "${names[$number]}, $ranks ranks a GPU: $verdict, $((SECONDS - began)) s"
  done
done
echo "${#numbers[@]} mutants, $survivors survivors"
((survivors == 0))
