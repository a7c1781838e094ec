# Every operator and pattern is right, with ranks as processes.
source "$(dirname "$0")/helpers.bash"
worlds="1 2 3 8"
shapes="1x1x1 37x53x72 333x257x130"
[ "$scale" -gt 1 ] && worlds="2 5" shapes="1x1x1 37x53x72"

for operator in "all_gather_gemm --gather rows" "all_gather_gemm --gather k --direction pull" \
  gemm_all_scatter gemm_reduce_scatter "gemm_all_reduce --phases 1" "gemm_all_reduce --phases 2"; do
  for world in $worlds; do
    for shape in $shapes; do
      IFS=x read -r m n k <<<"$shape"
      expect 0 run $operator --processes --ranks "$world" --pattern all -m "$m" -n "$n" -k "$k" \
        --repeat 1 --verify --seed "$world"
      says "$out" "; ($world ranks as processes|1 rank); one run"
      [ "$(grep -c ' right$' "$out")" -eq 6 ] || wrong "$operator, $world ranks, $shape: not all right"
      [ -s "$err" ] && wrong "something on stderr"
    done
  done
done
for world in $worlds; do
  expect 0 run all_reduce_norm --processes --ranks "$world" --pattern all --tokens 37 --hidden 53 --phases 2 --repeat 1 --verify
  [ "$(grep -c ' right$' "$out")" -eq 4 ] || wrong "all_reduce_norm, $world ranks: not all right"
done
finish
