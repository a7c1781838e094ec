# Bad input: one line that says what is wrong and what would be right, exit status 2. Failure: 1.
source "$(dirname "$0")/helpers.bash"

# refused PATTERN ARGUMENT...: the line on stderr has to match.
refused() {
  local pattern=$1
  shift
  expect 2 "$@"
  one_line_of_error
  says "$err" "$pattern"
}

refused 'did you mean check\?' chek
refused 'did you mean run\?' rum all_gather_gemm
refused 'bench|check|doctor|run|taxes' something
refused 'did you mean all_gather_gemm\?' run all_gather_gem
refused 'gemm_reduce_scatter' run matmul
refused 'OPERATOR' run
refused 'did you mean fused_specialized\?' run all_gather_gemm --pattern fused_specialised
refused 'bulk_synchronous.* or all' run all_gather_gemm --pattern x
refused 'did you mean --pattern\?' run all_gather_gemm --patern all
refused '"0" cannot be.*between 1 and' run all_gather_gemm -m 0
refused '"-3" cannot be' run all_gather_gemm -k -3
refused '"many" cannot be' run all_gather_gemm --ranks many
refused '"65" cannot be.*between 1 and 64' run all_gather_gemm --ranks 65
refused '"1.5" cannot be' run all_gather_gemm --repeat 1.5
refused '"99999999999999999999" cannot be' run all_gather_gemm -n 99999999999999999999
refused 'constant-weights means nothing to all_gather_gemm' run all_gather_gemm --constant-weights
refused 'constant-weights means nothing to all_reduce' run all_reduce --constant-weights
refused 'bf16' run all_gather_gemm --dtype bfloat16
refused 'is a pattern of GPUs' run all_gather_gemm --backend host --pattern copy_engine
refused 'auto, host or cuda' run all_gather_gemm --backend gpu
refused 'means nothing to all_reduce, which is launched on GPUs' run all_reduce --backend cuda --launch eager
refused 'means nothing' run all_gather_gemm --backend cuda --dtype bf16 --launch eager
refused 'prefill or decode' bench all-gather-gemm --suite training
refused 'takes -m, -n and -k' bench gemm-all-scatter -m 64 -n 64
refused '.*--problems draws heads, batch and keys' bench flash-decode --problems 3 --heads 70b
refused 'did you mean copy_engine\?' bench gemm-all-scatter --patterns copy_engines
refused 'rows or k' run all_gather_gemm --gather m
refused 'gathers nothing' run gemm_all_scatter --gather rows
refused 'can only push' run gemm_reduce_scatter --direction pull
refused 'no partial results' run all_gather_gemm --partials fp32
refused 'of the same type' run gemm_reduce_scatter --dtype fp32 --partials bf16
refused 'did you mean host\?' bench hosts
refused 'SUITE' bench
refused 'between 1 and 3' check --ranks 4
refused 'did you mean gemm_all_scatter\?' check gemm_all_scater

# Words that mean nothing, and words that an option must not swallow.
refused 'a verb is missing' --
refused 'the verb "" is not known' ""
refused 'doctor takes no extra' doctor extra
refused 'doctor takes no check' doctor check
refused 'run takes no extra' run all_gather_gemm extra
refused 'run takes no ""' run all_gather_gemm ""
refused 'version takes no extra' version extra
refused 'help takes no extra' help run extra
refused 'did you mean run\?' help rum
refused 'the operator "" is not known' check ""
refused 'the operator "all_gathe" is not known' check --ranks 1 all_gathe
refused 'did you mean host\?' bench --ranks 2 hosts
refused 'did you mean gemm\?' bench --size 64 gem
refused 'did you mean collectives\?' bench --collective all_reduce colectives
refused 'did you mean all-gather-gemm\?' bench --patterns copy_engine -m 64 all-gather-gem
refused 'did you mean flash-decode\?' bench --heads 8b --batch 1 --keys 64 flash-decod
refused 'means nothing to the suite host; it is for collectives, gemm or shared' bench host --size 4
refused 'means nothing to the suite operators' bench operators --sweep
refused 'means nothing to the suite gemm' bench gemm --ranks 2
refused 'means nothing to the suite shared' bench shared --invariant
refused 'did you mean gemm_all_reduce\?' bench shared --operator gemm_all_reduc
refused 'every-plan excludes --invariant' bench gemm --invariant --every-plan
refused 'means nothing to the suite host' bench host --operator all_gather_gemm
refused 'the operator "a b" is not known' run $'a\nb'
refused 'the operator "a\?b" is not known' run $'a\033b'

# Numbers that are none.
for option in --tolerance --logit-cap --scale; do
  for value in -1 nan -nan inf -inf 1e999 1e39 0x1p3 1,5 ""; do
    refused "$option: \"$value\" cannot be; it has to be a finite number" run flash_decode $option "$value"
  done
done
refused '"0" cannot be; it has to be a whole number between 1 and 10000' taxes --operator all_gather_gemm --repeat 0
refused '"99" cannot be' taxes --operator all_gather_gemm --workers 99

# Files that cannot be, found before the work begins.
for verb in "run all_gather_gemm" "check gemm_all_scatter" "bench host" "taxes --operator all_gather_gemm"; do
  for option in --json --html; do
    [[ $verb != taxes* && $option == --html ]] && continue
    # shellcheck disable=SC2086 # words on purpose
    refused "$option: the path is empty" $verb $option ""
    # shellcheck disable=SC2086
    refused "$option: .* there is no folder" $verb $option "$folder/none/file"
    [ -e "$folder/none" ] && wrong "a folder was made"
    # shellcheck disable=SC2086
    refused "$option: .* is a folder" $verb $option "$folder"
  done
done
refused 'stdout takes one' taxes --operator all_gather_gemm --json - --html -

export UNTAX_WAIT_LIMIT_MS=soon
refused 'UNTAX_WAIT_LIMIT_MS' run all_gather_gemm -m 8 -n 8 -k 8
unset UNTAX_WAIT_LIMIT_MS

# A tolerance that nothing can keep: the result counts as wrong.
expect 1 run all_gather_gemm -m 64 -n 64 -k 64 --dtype bf16 --repeat 1 --verify --tolerance 0
says "$out" 'WRONG'
expect 1 run all_gather_gemm --processes -m 64 -n 64 -k 64 --dtype bf16 --repeat 1 --verify --tolerance 0
says "$out" 'WRONG'

# A heap that cannot hold it.
export UNTAX_HEAP_BYTES=64K
expect 1 run all_gather_gemm -m 512 -n 512 -k 512 --repeat 1
says "$err" '^untax: .*UNTAX_HEAP_BYTES'
unset UNTAX_HEAP_BYTES
finish
