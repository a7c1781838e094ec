# Where the system refuses threads, what needs none works, and what needs them says so in one line.
source "$(dirname "$0")/helpers.bash"

if [ "$scale" -gt 1 ]; then
  echo "skipped: sanitizers make threads of their own"
  exit 77
fi
# The limit counts the processes of the user `nobody`, and not those of root.
as_nobody=()
if [ "$(id -u)" -eq 0 ]; then
  command -v setpriv >/dev/null || { echo "skipped: setpriv is not here, and root has no limit of threads"; exit 77; }
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  mkdir "$folder/bin"
  cp "$untax" "$folder/bin/untax"
  untax=$folder/bin/untax
  chmod 755 "$folder" "$folder/bin" "$untax"
fi

# limited THREADS STATUS ARGUMENT...: the command may have so many threads, the first one included.
limited() {
  local threads=$1 wanted=$2
  shift 2
  tests=$((tests + 1))
  timeout $((60 * scale)) "${as_nobody[@]}" bash -c 'ulimit -u "$1"; shift; exec "$@"' limited "$threads" \
    "$untax" "$@" >"$out" 2>"$err" </dev/null
  local status=$?
  [ "$status" -eq "$wanted" ] || wrong "untax $* with $threads threads: exit status $status, should be $wanted"
}

limited 1 0 --version
[ -s "$err" ] && wrong "a library complains before main"
limited 1 0 check all_gather --quick --executions 10
limited 1 0 locality gemm --device h200 --search
limited 1 1 doctor
says "$out" 'failure  threads +a world of threads: 2 threads were asked for, and 0 could be started'

# The first thread and those of two ranks are enough for a product.
limited 3 0 run all_gather_gemm --pattern fused_sequential --workers 1 --repeat 1
limited 3 0 run flash_decode --pattern fused_sequential --workers 1 --repeat 1

# With senders beside the workers they are not.
for threads in 1 2 3; do
  for command in "run all_gather_gemm --pattern fused_specialized" "run flash_decode --pattern fused_specialized" "bench host"; do
    read -r -a words <<<"$command"
    limited "$threads" 1 "${words[@]}"
    one_line_of_error
    says "$err" '[0-9]+ threads were asked for, and [0-9]+ could be started'
  done
done
limited 1 1 run all_gather_gemm --processes
one_line_of_error
says "$err" 'cannot make a process: .* Raise the limit of processes'
finish
