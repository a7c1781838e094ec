# Every operator, pattern and gather axis is right, with ranks as threads.
source "$(dirname "$0")/helpers.bash"
worlds="1 2 3 4 5 6 7 8"
shapes="1x1x1 37x53x72 333x257x130"
[ "$scale" -gt 1 ] && worlds="1 3 8"

for operator in "all_gather_gemm --gather rows" "all_gather_gemm --gather k" \
  "all_gather_gemm --gather k --direction pull" gemm_all_scatter gemm_reduce_scatter \
  "gemm_all_reduce --phases 1" "gemm_all_reduce --phases 2"; do
  for world in $worlds; do
    for shape in $shapes; do
      IFS=x read -r m n k <<<"$shape"
      expect 0 run $operator --ranks "$world" --pattern all -m "$m" -n "$n" -k "$k" \
        --repeat 1 --verify --seed "$world"
      [ "$(grep -c ' right$' "$out")" -eq 6 ] || wrong "$operator, $world ranks, $shape: not all right"
    done
  done
done
for type in fp16 bf16; do
  expect 0 run all_gather_gemm --ranks 3 --dtype $type --pattern all -m 37 -n 53 -k 72 --repeat 1 --verify
  expect 0 run gemm_reduce_scatter --ranks 3 --dtype $type --partials $type --pattern all -m 37 -n 53 -k 72 \
    --repeat 1 --verify --launch eager
done
expect 0 run all_gather_gemm --ranks 2 --workers 3 --senders 2 --tile-m 5 --tile-n 7 --panel-k 11 --gather k \
  --pattern all -m 37 -n 53 -k 72 --repeat 2 --verify
for world in $worlds; do
  for shape in 1x1 37x53 130x257; do
    IFS=x read -r m n <<<"$shape"
    for way in "--phases 1" "--phases 2 --output e4m3_per_token" "--dtype bf16 --output e4m3"; do
      expect 0 run all_reduce_norm --ranks "$world" --pattern all --tokens "$m" --hidden "$n" $way --repeat 1 --verify --seed "$world"
      [ "$(grep -c ' right$' "$out")" -eq 4 ] || wrong "all_reduce_norm, $world ranks, $shape, $way: not all right"
    done
  done
done
finish
