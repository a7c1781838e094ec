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
refused 'the operator is missing' run
refused 'did you mean fused_specialized\?' run all_gather_gemm --pattern fused_specialised
refused 'bulk_synchronous.* or all' run all_gather_gemm --pattern x
refused 'did you mean --pattern\?' run all_gather_gemm --patern all
refused '"0" is not allowed.*between 1 and' run all_gather_gemm -m 0
refused '"-3" is not allowed' run all_gather_gemm -k -3
refused '"many" is not allowed' run all_gather_gemm --ranks many
refused '"65" is not allowed.*between 1 and 64' run all_gather_gemm --ranks 65
refused '"1.5" is not allowed' run all_gather_gemm --repeat 1.5
refused '"99999999999999999999" is not allowed' run all_gather_gemm -n 99999999999999999999
refused 'constant-weights means nothing to all_gather_gemm' run all_gather_gemm --constant-weights
refused 'all_reduce takes no --constant-weights' run all_reduce --constant-weights
refused 'bf16' run all_gather_gemm --dtype bfloat16
refused 'is a pattern of GPUs' run all_gather_gemm --backend host --pattern copy_engine
refused 'auto, host or cuda' run all_gather_gemm --backend gpu
refused 'launch means nothing to all_reduce on GPUs' run all_reduce --backend cuda --launch eager
refused 'means nothing' run all_gather_gemm --backend cuda --dtype bf16 --launch eager
refused 'prefill or decode' bench all-gather-gemm --suite training
refused 'give -m, -n and -k' bench gemm-all-scatter -m 64 -n 64
refused '.*--problems draws heads, batch and keys' bench flash-decode --problems 3 --heads 70b
refused 'did you mean copy_engine\?' bench gemm-all-scatter --patterns copy_engines
refused 'rows or k' run all_gather_gemm --gather m
refused 'gemm_all_scatter takes no --gather' run gemm_all_scatter --gather rows
refused 'gemm_reduce_scatter takes no --direction' run gemm_reduce_scatter --direction pull
refused 'all_gather_gemm takes no --partials' run all_gather_gemm --partials fp32
refused 'of the same type' run gemm_reduce_scatter --dtype fp32 --partials bf16
refused 'did you mean host\?' bench hosts
refused 'SUITE' bench
refused 'between 1 and 3' check --ranks 4
refused 'did you mean gemm_all_scatter\?' check gemm_all_scater

# Options without effect.
refused 'panel-k means nothing to all_gather_gemm, which gathers rows' run all_gather_gemm --panel-k 8
refused 'tolerance means nothing without --verify' run all_gather_gemm --tolerance 1e-3
refused 'band excludes --mixed-bands' bench spmv --twins x.csv --mixed-bands --band 3

# Words that mean nothing, and words that an option must not swallow.
refused 'a verb is missing' --
refused 'the verb "" is not known' ""
refused 'doctor takes no extra' doctor extra
refused 'doctor takes no check' doctor check
refused 'run all_gather_gemm takes no extra' run all_gather_gemm extra
refused 'run all_gather_gemm takes no ""' run all_gather_gemm ""
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
refused 'size means nothing to the suite host; it is for' bench --size=4 host
refused 'gather; it is for all_gather_gemm ' run all_reduce --gather k
refused 'did you mean --repeat\?' bench host --repeet 1
refused 'the suite rma measures transfers between two GPUs or more' bench rma --ranks 1
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
    refused "$option: \"$value\" is not allowed; it has to be a finite number" run flash_decode $option "$value"
  done
done
refused '"0" is not allowed; it has to be a whole number between 1 and 10000' taxes --operator all_gather_gemm --repeat 0
refused '"99" is not allowed' taxes --operator all_gather_gemm --workers 99

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
refused 'json and --html are both .*/a; give one of them another path' \
  taxes --operator all_gather_gemm --json "$folder/a" --html "$folder/./a"
refused 'html and --plot are both .*/a.svg; give' taxes --operator all_gather_gemm --html "$folder/a.svg" --plot "$folder/a.svg"

# Descriptions, measurements and reports that cannot be read, and options that mean nothing together.
h200=machines/h200-8.json
refused 'json and --markdown are both -; stdout takes one' machine $h200 --judge bench/results --json - --markdown -
refused 'out and --json are both .*/a; give' machine $h200 --judge bench/results --out "$folder/a" --json "$folder/a"
refused 'out means nothing with FILE alone; leave it out' machine $h200 --out "$folder/a"
refused '/none: cannot be opened .No such file or directory.; give files that' machine $h200 --judge "$folder/none"
refused '/none: cannot be opened .No such file or directory.; give files that' machine $h200 --fit "$folder/none"
refused 'a folder, not a regular file; give a description of a machine' machine "$folder"
refused 'a folder, not a regular file; give a file that untax taxes --json wrote' taxes --operator all_gather_gemm --compare "$folder"
refused 'compare: the path is empty' taxes --operator all_gather_gemm --compare ""
refused 'machine: the path is empty' taxes --operator all_gather_gemm --machine ""
refused '"17" is not allowed; .*between 1 and 16, or up to 4096 with --machine' taxes --operator all_gather_gemm --ranks 17
refused 'scale is ""; it has to be' taxes --operator all_gather_gemm --machine $h200 --scale ""
refused 'tensor-parallel .* means nothing with --scale' taxes --operator all_gather_gemm --machine $h200 --scale 2 --ranks 2
says "$err" 'leave one of them out'
echo '{"format": "untax-taxes", "format_version": 1}' >"$folder/report.json"
refused 'compare: .*key .machine. not found' taxes --operator all_gather_gemm --machine $h200 --compare "$folder/report.json"
grep -q 'json.exception' "$err" && wrong "an exception of the JSON library is shown"
refused 'compare: .*this is not JSON; .untax taxes --json. writes such files' taxes --operator all_gather_gemm --compare "$0"
expect 1 taxes --backend host --operator all_gather_gemm -n 128 -k 128 -m 2000000000
says "$err" 'a smaller -m fits$'

# Near names: other case first, and no far ones for short names.
refused 'did you mean bf16\?' taxes --operator all_gather_gemm --dtype BF16
refused 'rows or k$' taxes --operator all_gather_gemm --gather cols
refused 'did you mean host\?' taxes --operator all_gather_gemm --backend HOST

# Two outputs, or an output and an input, that are one file.
cd "$folder" || exit 1
refused 'json and --trace are both x; give one of them another path' run all_gather_gemm --trace x --json x
refused 'json and --schema are both \./x' bench spmv --stencils --json ./x --schema "$folder/x"
refused 'json and --schema are both -; stdout takes one' bench spmv --stencils --json - --schema -
refused 'json and --trace are both x' bench host --json x --trace x
refused 'json and --matrix are both x' run spmv --matrix x --json x
[ -e x ] && wrong "a file was written"
cd "$OLDPWD" || exit 1

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
