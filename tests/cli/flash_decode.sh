# flash_decode is right in every pattern, with ranks as threads and as processes, and says what it cannot do.
source "$(dirname "$0")/helpers.bash"

for world in 1 2 3 5 8; do
  expect 0 run flash_decode --ranks "$world" --pattern all --batch 3 --heads 6 --kv-heads 2 --head-dim 20 \
    --keys 70 --page-size 16 --unequal --repeat 1 --verify --seed "$world"
  [ "$(grep -c ' right$' "$out")" -eq 6 ] || wrong "$world ranks: not all right"
done
for type in fp16 bf16; do
  expect 0 run flash_decode --ranks 3 --backend host --pattern all --dtype $type --partials bf16 --keys 100 --logit-cap 5 \
    --splits 3 --workers 2 --repeat 1 --verify
done
expect 0 run flash_decode --ranks 2 --processes --keys 50 --repeat 1 --verify
says "$out" ' right$'
expect 2 run flash_decode --heads 5 --kv-heads 2
says "$err" 'has to be a multiple'
expect 2 run flash_decode --tile-m 4
says "$err" 'flash_decode takes no --tile-m'
expect 2 run all_gather_gemm --keys 4
says "$err" 'all_gather_gemm takes no --keys'
expect 2 run flash_decode --backend cuda --dtype bf16 --senders 2
says "$err" 'senders means nothing to flash_decode on GPUs'

for world in 1 2 3 8; do
  expect 0 run merge_partial_attention --ranks "$world" --pattern all --tokens 3 --heads 6 --head-dim 20 --repeat 1 --verify \
    --own-heads --seed "$world"
  [ "$(grep -c ' right$' "$out")" -eq 4 ] || wrong "merge_partial_attention, $world ranks: not all right"
done
expect 0 run merge_partial_attention --ranks 2 --processes --dtype bf16 --head-dim 576 --repeat 1 --verify
says "$out" ' right$'
expect 2 run merge_partial_attention --keys 4
says "$err" 'merge_partial_attention takes no --keys'
expect 2 run flash_decode --own-heads
says "$err" 'flash_decode takes no --own-heads'

for options in "" "--bias --norm --norm-offset 1 --interleaved --rotated 10" "--page-size 5 --dtype bf16 --backend host --bias"; do
  # shellcheck disable=SC2086 # several words
  expect 0 run rope_append --ranks 2 --tokens 20 --heads 3 --kv-heads 1 --head-dim 20 --batch 3 --keys 7 --positions 9 --repeat 1 \
    --verify $options
  says "$out" ' right$'
done
expect 2 run rope_append --tokens 30 --batch 2 --keys 14
says "$err" '2 sequences have places for 14 tokens each'
expect 2 run rope_append --page-size 4 --pages 3
says "$err" 'pages is 3'
expect 2 run rope_append --pattern bulk_synchronous
says "$err" 'has no pattern bulk_synchronous'
finish
