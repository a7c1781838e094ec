# A problem that does not fit is refused at once, in one line with the need and the available memory: exit status 1.
source "$(dirname "$0")/helpers.bash"

# too_large PATTERN ARGUMENT...
too_large() {
  local pattern=$1
  shift
  expect 1 "$@"
  one_line_of_error
  says "$err" ' needs .* of memory \(.*, and .* is free '
  says "$err" "$pattern"
  grep -q 'UNTAX_HEAP_BYTES' "$err" && wrong "nobody set UNTAX_HEAP_BYTES"
}

huge=2147483647
for operator in all_gather_gemm gemm_all_scatter gemm_reduce_scatter gemm_all_reduce; do
  too_large "^untax: $operator, m 90000" run "$operator" -m 90000 -n 9000000 -k 90000 --repeat 1
  too_large 'smaller sizes' run "$operator" -m $huge -n $huge -k $huge --pattern all --verify --ranks 64
  too_large 'all_gather_gemm|gemm_' taxes --backend host --operator "$operator" -m $huge -n $huge -k $huge
done
too_large 'weights' run all_gather_gemm --processes -m 16 -n $huge -k $huge
too_large 'weights' run flash_decode --batch 4096 --keys $huge
too_large 'weights' run flash_decode --batch $huge --heads $huge --kv-heads $huge --head-dim 4096 --keys $huge --page-size 16
too_large 'weights' run linear --rows 1 -n $huge -k $huge --verify
too_large 'linear' run linear --rows $huge -n $huge -k $huge --activation swiglu
too_large 'activations' run all_reduce -n $huge --ranks 64
too_large 'fewer --keys' taxes --backend host --operator flash_decode -m $huge --heads $huge --kv-heads $huge --keys $huge

cat >"$folder/large.json" <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 65536, "intermediate_size": 262144,
 "num_hidden_layers": 2, "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 100, "torch_dtype": "bfloat16"}
JSON
too_large 'fewer --tokens|more memory' taxes --backend host --model "$folder/large.json" --tensor-parallel 2 --tokens 1048576
too_large 'attention' taxes --backend host --model "$folder/large.json" --tensor-parallel 2 --tokens 256 --keys $huge

# A heap of a size that the user set.
export UNTAX_HEAP_BYTES=64K
expect 1 run all_gather_gemm -m 512 -n 512 -k 512 --repeat 1
one_line_of_error
says "$err" 'of symmetric heap in each rank, and UNTAX_HEAP_BYTES is 64 KiB; leave it unset, or set it to [0-9]+M$'
unset UNTAX_HEAP_BYTES

# The rest of the address space is a limit, too. Sanitizers take all of it.
if [ "$scale" -eq 1 ]; then
  (
    ulimit -v 400000
    "$untax" taxes --backend host --operator all_gather_gemm --ranks 2 -m 4000 -n 4000 -k 4000 >"$out" 2>"$err"
    [ $? -eq 1 ]
  ) || wrong "exit status should be 1"
  tests=$((tests + 1))
  one_line_of_error
  says "$err" 'in the address space that .ulimit -v. leaves'
fi

finish
