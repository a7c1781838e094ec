# The completion scripts: candidates of bash, and the same tree in the others.
source "$(dirname "$0")/helpers.bash"
export untax

# completes WANTED WORD...: the candidates for the last word, sorted, in one line, are WANTED.
completes() {
  local wanted=$1
  shift
  tests=$((tests + 1))
  : >"$err"
  timeout $((60 * scale)) bash -c '
    source <("$untax" completion bash)
    COMP_WORDS=(untax "$@")
    COMP_CWORD=$#
    _untax
    printf "%s\n" "${COMPREPLY[@]}" | sort -u | xargs' _ "$@" >"$out" 2>"$err" </dev/null
  [ "$(cat "$out")" = "$wanted" ] || wrong "candidates of untax $*: $(cat "$out"), should be $wanted"
  [ -s "$err" ] && wrong "completion of untax $*: something on stderr"
}

completes "check completion" c
completes "bench" be
completes "gemm gemm-all-reduce gemm-all-scatter gemm-reduce-scatter" bench gem
completes "prefill" bench all-gather-gemm --suite p
completes "bf16 fp32" bench gemm-all-reduce --ranks 2 --partials ""
completes "--every-plan" bench gemm --size 16 --ev
completes "" bench host --siz
completes "all_reduce all_reduce_norm" run all_r
completes "auto cuda host" run all_gather_gemm --backend ""
completes "--pattern" run all_gather_gemm --patt
completes "fp16 fp32" run --ranks 2 all_gather_gemm --dtype f
completes "bash" completion b
completes "doctor" help d
# The value of an option is no subcommand, and where values are no set, the shell offers files.
completes "" bench host --json ""
completes "--repeat" bench host --json gemm --re

for shell in bash zsh fish; do
  expect 0 completion $shell
  says "$out" 'gemm-reduce-scatter'
  says "$out" 'prefill decode'
done
expect 2 completion tcsh
one_line_of_error
says "$err" 'it has to be bash, zsh or fish'
for shell in zsh fish; do
  command -v $shell >/dev/null || continue
  tests=$((tests + 1))
  "$untax" completion $shell >"$folder/script"
  $shell -n "$folder/script" 2>"$err" || wrong "$shell cannot read its script"
done
finish
