# Every collective is right, in every pattern, with ranks as threads and as processes; what it does not
# have is refused.
source "$(dirname "$0")/helpers.bash"
worlds="1 2 3 4 5 6 7 8"
[ "$scale" -gt 1 ] && worlds="1 3 8"

for collective in all_gather reduce_scatter all_reduce "all_reduce --reduction max" "all_reduce --phases 1" \
  "all_reduce --phases 2" all_to_all "all_to_all --unequal" broadcast "broadcast --phases 2"; do
  for world in $worlds; do
    for count in 1 37 10007; do
      expect 0 run $collective --ranks "$world" --pattern all -n "$count" --repeat 1 --verify --seed "$world"
      [ "$(grep -c ' right$' "$out")" -eq 4 ] || wrong "$collective, $world ranks, $count: not all right"
    done
  done
  expect 0 run $collective --ranks 3 --processes --dtype bf16 --pattern all -n 1001 --repeat 1 --verify \
    --workers 2 --chunk-bytes 64 --depth 3
  [ "$(grep -c ' right$' "$out")" -eq 4 ] || wrong "$collective, 3 processes: not all right"
  for kind in "--ranks 4" "--ranks 3 --processes --workers 2"; do
    expect 0 run $collective --direct $kind -n 10007 --repeat 2 --verify
    says "$out" ' right$'
  done
done
expect 0 run broadcast --root 2 --ranks 3 -n 100 --dtype fp16 --verify --repeat 1 --launch eager --explain
says "$out" 'broadcast: fused_sequential, stores, 1 phase '

expect 0 check all_to_all --quick --executions 50 --ranks 2
says "$out" 'all_to_all fused_specialized, unequal parts .* right$'
says "$out" 'all_to_all fused_sequential, direct, keepers .* right$'
says "$out" '^288 schedules proved, [0-9]+ executions explored, ([0-9]+) of \1 mutants killed$'

refused() {
  local pattern=$1
  shift
  expect 2 "$@"
  one_line_of_error
  says "$err" "$pattern"
}

refused 'run all_gather takes no --reduction' run all_gather --reduction max
refused 'takes no --root' run all_reduce --root 0
refused 'takes no --phases' run all_to_all --phases 1
refused 'takes no --unequal' run broadcast --unequal
refused 'takes no -m' run all_reduce -m 4
refused 'goes directly as fused_sequential only' run all_gather --direct --pattern bulk_synchronous
refused 'takes no --direction' run all_reduce --direction pull
refused 'sum, max or min' run all_reduce --reduction mean
refused 'has no pattern producer_consumer' run all_gather --pattern producer_consumer
refused 'root is 2; it has to be between 0 and 1' run broadcast --root 2
refused 'did you mean all_reduce' run allreduce
refused 'takes no --depth' run all_gather_gemm --depth 2
finish
