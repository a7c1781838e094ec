# linear is right with every activation, and says what it cannot do.
source "$(dirname "$0")/helpers.bash"

for activation in none silu gelu gelu_tanh swiglu geglu; do
  for type in fp32 fp16 bf16; do
    expect 0 run linear --ranks 2 --backend host --activation $activation --dtype $type --rows 13 -n 280 -k 75 --repeat 1 --verify
    says "$out" ' right$'
  done
done
expect 0 run linear --ranks 1 --activation swiglu --invariant --rows 300 --repeat 1 --verify
says "$out" ' right$'
expect 0 run linear --ranks 2 --processes --rows 0 --repeat 1 --verify
says "$out" ' right$'
expect 2 run linear --activation geglu -n 12
says "$err" 'n is 12; with geglu it has to be a multiple of 8'
expect 2 run linear --activation relu
says "$err" 'none, silu, gelu, gelu_tanh, swiglu or geglu'
expect 2 run linear --backend host --constant-weights
says "$err" 'means nothing to linear on the host'
expect 2 run linear --pattern bulk_synchronous
says "$err" 'has no pattern bulk_synchronous'
finish
