#!/usr/bin/env bash
# Leaves one thing out of the kernels at a time (engines/gpu/channel/mutant.hpp) and wants the tests that are named here
# for it to fail, each of them: with 2 and with 4 ranks that share a GPU, or with one rank where what is left out
# concerns no peer. The kernels are compiled once, with all mutants in them. Takes a GPU and minutes; not a part of
# ./test.sh. With names it takes these mutants only.
#
# Where a fence or a wait for TMA is left out, a GPU may be in time all the same, and no run tells. Then the gate `order`
# has to forbid it, which is asked here, too.
#
#   tests/gpu/mutants.sh [NAME]...
#
# BUILD is the folder to build in. KERNELS is an expression: only kernels whose sources match it can leave something out,
# and only these are compiled again in a folder that has the others. TESTS is an expression, too: only filters of tests
# that match it are run.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${BUILD:-build/mutants}
header=engines/gpu/channel/mutant.hpp
mapfile -t names < <(sed -n '/^enum class mutant {/,/^};/s/^  \([a-z_]*\),.*/\1/p' "$header")
chosen=("$@")
if ((${#chosen[@]} == 0)); then chosen=("${names[@]:1}"); fi

# Short waits: what is never told of ends as an error. Ranks that share a GPU have queues of their own.
export UNTAX_WAIT_LIMIT_MS=2000 CUDA_DEVICE_MAX_CONNECTIONS=32

norm=gpu_all_reduce_norm
step='gpu_decoder.a_kernel_of_all_layers*'
merge=gpu_merge_partial_attention
sums='gpu_operators.gemm_reduce_scatter*:gpu_operators.sums*:gpu_sums*'

# tests_of NAME: filters of tests, a line each; each of them has a test that fails with the mutant. Where a rank adds all
# that its peers send, norm and merge need no reserve for their results to be right, which ops/*/test.cpp prove.
tests_of() {
  case "$1" in
    gather_*) echo 'gpu_operators.all_gather*:gpu_gather_ways*' ;;
    scatter_*) echo 'gpu_operators.gemm_all_scatter*' ;;
    sums_reserve) printf '%s\n' "$sums" "$merge.a_rank_without_heads_does_not_run_ahead" ;;
    sums_retire) printf '%s\n' "$sums" "$merge.is_right_for_random_shapes" "$norm.is_right_for_random_shapes" ;;
    sums_reset) printf '%s\n' "$sums" "$merge.is_right_for_random_shapes" "$norm.is_right_for_random_shapes" "$step" ;;
    sums_acquire | results_proxy) echo "$sums" ;;
    room_hand_over) echo 'gpu_shared_rooms.of_all_gather_gemm*' ;;
    attend_lengths) echo 'gpu_flash_decode*' ;;
    attend_parts | attend_ranks) echo 'gpu_flash_decode.is_right*:gpu_flash_decode.gives_the_same_bits*' ;;
    attend_counters) echo 'gpu_flash_attention.lengths*' ;;
    words_marker) printf '%s\n' "$norm.ends_with_nan_inputs" "$merge.ends_with_nan_inputs" ;;
    results_acquire)
      printf '%s\n' "$norm.is_right_for_random_shapes" 'gpu_operators.gemm_all_scatter_is_right' 'gpu_sums.sent_as_rows*'
      ;;
    stream_k_reset) echo 'gemm.a_run_after_other_values_is_right' ;;
    step_*) echo "$step" ;;
    *)
      echo "no test is named for the mutant $1" >&2
      exit 1
      ;;
  esac
}

# ranks_of NAME: with how many ranks a GPU a mutant is tried.
ranks_of() {
  case "$1" in
    attend_lengths | attend_parts | attend_counters | stream_k_reset | step_*) echo 1 ;;
    *) printf '%s\n' 2 4 ;;
  esac
}

number_of() {
  local i
  for i in "${!names[@]}"; do
    if [[ ${names[i]} == "$1" ]]; then
      echo "$i"
      return
    fi
  done
  echo "there is no mutant $1; there are ${names[*]:1}" >&2
  exit 1
}

cmake --preset cuda -B "$build" -DUNTAX_MUTANTS="${KERNELS:-.}" >/dev/null
cmake --build "$build" --target gpu_test >/dev/null

# passes NAME RANKS FILTER: whether the tests pass; the first that fails is enough, and the time limit is for those that
# hang.
passes() {
  local number log="$build/mutant-$1-ranks-$2.log"
  number=$(number_of "$1")
  UNTAX_MUTANT=$number UNTAX_RANKS_PER_GPU=$2 timeout 600 "$build/tests/gpu_test" --gtest_filter="$3" \
    --gtest_brief=1 --gtest_fail_fast >"$log" 2>&1
}

survivors=0
declare -A right
for name in "${chosen[@]}"; do
  tests=$(tests_of "$name")
  for ranks in $(ranks_of "$name"); do
    while read -r filter; do
      if [[ ! $filter =~ ${TESTS:-.} ]]; then continue; fi
      if [[ -z ${right[$ranks $filter]:-} ]] && ! passes none "$ranks" "$filter"; then
        echo "$filter fails with nothing left out: see $build/mutant-none-ranks-$ranks.log" >&2
        exit 1
      fi
      right[$ranks $filter]=1
      began=$SECONDS
      if passes "$name" "$ranks" "$filter"; then
        if python3 tests/style/order_mutants.py --mutant "$name" >/dev/null; then
          verdict="no run tells, the gate order does"
        else
          verdict=survived
          survivors=$((survivors + 1))
        fi
      else
        verdict=killed
      fi
      echo "$name, $ranks ranks a GPU, $filter: $verdict, $((SECONDS - began)) s"
    done <<<"$tests"
  done
done
echo "${#chosen[@]} mutants, $survivors survivors"
((survivors == 0))
