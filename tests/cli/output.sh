# The output of the command is complete, or the exit status is 1 and one line says why it was lost.
source "$(dirname "$0")/helpers.bash"

# lost PATTERN: the last command has status 1 and one line on stderr that matches.
lost() {
  [ "$status" -eq 1 ] || wrong "$what: exit status $status, should be 1"
  [ "$(wc -l <"$err")" -eq 1 ] || wrong "$what: stderr should be one line"
  says "$err" "^untax: cannot write $1"
}

# lost_everywhere ARGUMENT...: to a full device and to a closed stdout. A pipe without a reader is no error.
lost_everywhere() {
  : >"$out"
  tests=$((tests + 3))
  what="untax $* >/dev/full"
  timeout $((60 * scale)) "$untax" "$@" >/dev/full 2>"$err" </dev/null
  status=$?
  lost 'to stdout: No space left on device'
  what="untax $* >&-"
  timeout $((60 * scale)) "$untax" "$@" >&- 2>"$err" </dev/null
  status=$?
  lost 'to stdout: Bad file descriptor'
  what="untax $* | true"
  # The reader is gone before the command begins.
  status=$({
    exec 3>&1
    {
      sleep 0.1
      timeout $((60 * scale)) "$untax" "$@" 2>"$err" </dev/null
      echo $? >&3
    } | true
  })
  # A busy machine may miss a bar of the benchmark.
  [ "$status" -eq 0 ] || [ "$1" = bench ] || wrong "$what: exit status $status, should be 0"
  [ -s "$err" ] && wrong "$what: something on stderr"
}

small=(-m 8 -n 8 -k 8 --repeat 1)
lost_everywhere --help
lost_everywhere --version
lost_everywhere help
lost_everywhere help run
lost_everywhere version
lost_everywhere run --help
lost_everywhere doctor
lost_everywhere run all_gather_gemm "${small[@]}"
lost_everywhere run all_gather_gemm "${small[@]}" --json -
lost_everywhere run all_gather_gemm "${small[@]}" --processes
lost_everywhere taxes --backend host --operator all_gather_gemm --ranks 2 "${small[@]}"
lost_everywhere taxes --backend host --operator all_gather_gemm --ranks 2 "${small[@]}" --json -
lost_everywhere check gemm_all_scatter --quick --executions 1 --ranks 2
lost_everywhere check gemm_all_scatter --quick --executions 1 --ranks 2 --json -
lost_everywhere bench host --repeat 1

# first_line ARGUMENT...: `head -1` leaves after a line, which is neither an error nor worth a message.
first_line() {
  local status
  tests=$((tests + 1))
  : >"$out"
  status=$({
    exec 3>&1
    {
      timeout $((60 * scale)) "$untax" "$@" 2>"$err" </dev/null
      echo $? >&3
    } | head -1 >"$out"
  })
  [ "$status" -eq 0 ] || [ "$status" -eq 141 ] || wrong "untax $* | head -1: exit status $status, should be 0 or 141"
  [ -s "$err" ] && wrong "untax $* | head -1: something on stderr"
  [ "$(wc -l <"$out")" -eq 1 ] || wrong "untax $* | head -1: no line"
}

first_line --help
first_line bench --help
first_line bench spmv --help
first_line machine --help
first_line machine machines/h200-8.json
# Tables and documents.
first_line locality attention --device mi300x --heads 16 --keys 8192 --json -
first_line taxes --model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json --html -
first_line bench spmv --stencils --most-elements 1000 --repeat 1 --json -

# Files are output, too.
for verb in "run all_gather_gemm" "taxes --backend host --operator all_gather_gemm --ranks 2"; do
  for option in --json --html; do
    [[ $verb == run* && $option == --html ]] && continue
    # shellcheck disable=SC2086 # words on purpose
    expect 1 $verb "${small[@]}" $option /dev/full
    says "$err" '^untax: cannot write /dev/full: No space left on device'
    [ "$(wc -l <"$err")" -eq 1 ] || wrong "stderr should be one line"
  done
done
expect 1 check gemm_all_scatter --quick --executions 1 --ranks 2 --json /dev/full
says "$err" '^untax: cannot write /dev/full'

# With stdout closed, the file must not get descriptor 1, or the table would land in the file.
tests=$((tests + 1))
timeout $((60 * scale)) "$untax" run all_gather_gemm "${small[@]}" --json "$folder/report.json" >&- 2>"$err" </dev/null
python3 -m json.tool "$folder/report.json" >/dev/null || wrong "a table among JSON"

# No text can be printed, but the exit status still reports the failure.
tests=$((tests + 2))
timeout $((60 * scale)) "$untax" run nonsense >"$out" 2>&- </dev/null
[ $? -eq 2 ] || wrong "stderr closed: should be exit status 2"
timeout $((60 * scale)) "$untax" run nonsense >"$out" 2>/dev/full </dev/null
[ $? -eq 2 ] || wrong "stderr full: should be exit status 2"

# JSON on stdout is all that is there.
: >"$err"
cd "$folder" || exit 1
expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 "${small[@]}" --json - --html page.html
python3 -m json.tool "$out" >/dev/null || wrong "not JSON"
[ -s page.html ] || wrong "no page"
expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 "${small[@]}" --html -
head -c 15 "$out" | grep -qi '<!doctype html>' || wrong "not a page"
expect 0 check gemm_all_scatter --quick --executions 60 --ranks 2 --json -
python3 -m json.tool "$out" >/dev/null || wrong "not JSON"
[ -e - ] && wrong "a file that is called -"
finish
