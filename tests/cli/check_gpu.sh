# `untax check --gpu` plans as for GPUs that are not there, and says what it found.
source "$(dirname "$0")/helpers.bash"
file=$folder/check.json

expect 0 check all_gather_gemm -m 300 -n 512 -k 1024 --ranks 3 --gpu h200 --json "$file"
says "$out" '^all_gather_gemm, m 300, n 512, k 1024, 3 ranks, h200 with 132 multiprocessors$'
says "$out" '^ *fused_specialized, gather k, pull .* right$'
says "$out" '^16 plans, [0-9]+ transfers validated, [0-9]+ waits proved$'
python3 - "$file" <<'PYTHON' || wrong "the JSON says something else"
import json, sys
found = json.load(open(sys.argv[1]))
plans = found["plans"]
assert found["format"] == "untax-check-gpu" and found["right"] is True
assert (found["operator"], found["m"], found["n"], found["k"]) == ("all_gather_gemm", 300, 512, 1024)
assert (found["ranks"], found["gpu"], found["multiprocessors"]) == (3, "h200", 132)
assert len(plans) == 16 and len({p["way"] for p in plans}) == 16
assert all(p["planned"] and not p["faults"] and p["plan"] and p["waits"] > 0 and p["lanes"] > 3 for p in plans)
PYTHON

expect 0 check gemm_all_scatter -m 64 -n 2048 -k 512 --ranks 2 --gpu h20 --pattern copy_engine --json -
python3 -m json.tool "$out" >/dev/null || wrong "not JSON"
expect 0 check all_gather_gemm -m 8 -n 64 -k 64 --ranks 1 --gpu h100 --gather k --move push
says "$out" '^6 plans, '

refused() {
  local pattern=$1
  shift
  expect 2 check "$@"
  one_line_of_error
  says "$err" "$pattern"
}
refused 'n is 7; on GPUs it has to be a multiple of 8' all_gather_gemm -m 8 -n 7 -k 64 --ranks 2 --gpu h200
refused 'm is 0; it has to be between 1' all_gather_gemm -m 0 -n 8 -k 64 --ranks 2 --gpu h200
refused 'did you mean h200\?' all_gather_gemm -m 8 -n 8 -k 64 --ranks 2 --gpu h2000
refused 'did you mean copy_engine\?' all_gather_gemm -m 8 -n 8 -k 64 --ranks 2 --gpu h200 --pattern copy_engin
for operator in gemm_reduce_scatter "gemm_all_reduce --pattern fused_sequential"; do
  expect 0 check $operator -m 100 -n 264 -k 200 --ranks 3 --gpu h200
  says "$out" '^ *fused_sequential, fp32 partials .* right$'
  says "$out" '^ *fused_sequential, bf16 partials .* right$'
done
expect 0 check gemm_all_reduce -m 521 -n 264 -k 200 --ranks 3 --gpu h100 --pattern fused_warp_specialized --partials bf16
says "$out" '^ *fused_warp_specialized, bf16 partials .* right$'
says "$out" '^1 plans, '
expect 0 check gemm_reduce_scatter -m 521 -n 264 -k 200 --ranks 3 --gpu h100 --pattern fused_warp_specialized --partials fp32
says "$out" '^ *fused_warp_specialized, fp32 partials .* not planned$'
expect 0 check all_reduce_norm -m 64 -n 8192 -k 8 --ranks 8 --gpu h200
says "$out" '^ *fused_sequential .* right$'
for heads in "" --own-heads; do
  expect 0 check merge_partial_attention -m 5 -n 6 -k 184 --ranks 4 --gpu h200 $heads
  says "$out" '^ *fused_sequential .* right$'
done
refused 'head_dim is 12; on GPUs it has to be a multiple of 8' merge_partial_attention -m 1 -n 1 -k 12 --ranks 2 --gpu h200
refused 'gathers nothing' gemm_all_scatter -m 8 -n 8 -k 64 --ranks 2 --gpu h200 --gather k
refused 'sends no partial results' gemm_all_scatter -m 8 -n 8 -k 64 --ranks 2 --gpu h200 --partials bf16
refused 'none of the chosen patterns can pull' all_gather_gemm -m 8 -n 8 -k 64 --ranks 2 --gpu h200 --pattern copy_engine --move pull
refused 'gpu has no plans of all_gather to check; it has to be all_gather_gemm, ' all_gather -m 8 -n 8 -k 64 --ranks 2 --gpu h200
refused 'gpu has no plans of flash_decode to check' flash_decode -m 8 -n 8 -k 64 --ranks 2 --gpu h200
refused 'the operator "flash_decod" is not known' flash_decod -m 8 -n 8 -k 64 --ranks 2 --gpu h200
refused 'own-heads means nothing to all_gather_gemm' all_gather_gemm -m 8 -n 8 -k 64 --ranks 2 --gpu h200 --own-heads
for option in --quick "--executions 5"; do
  refused "${option% *} means nothing to --gpu" all_gather_gemm -m 8 -n 8 -k 64 --ranks 2 --gpu h200 $option
done
refused 'looks at one operator' -m 8 -n 8 -k 64 --ranks 2 --gpu h200
refused 'one number of ranks' all_gather_gemm -m 8 -n 8 -k 64 --gpu h200
refused '-m' all_gather_gemm --ranks 2 --gpu h200
refused '--gpu' all_gather_gemm -m 8 --ranks 2

# A problem whose check would take minutes is refused before the work.
expect 2 check gemm_reduce_scatter --gpu h200 --ranks 2 -m 100000000 -n 4096 -k 1024
one_line_of_error
says "$err" 'm 100000000, n 4096, k 1024 would take too long'
finish
