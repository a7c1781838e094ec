# Variables that make no sense are one line, and launchers of others are told what they started.
source "$(dirname "$0")/helpers.bash"
small="run all_gather_gemm -m 8 -n 8 -k 8 --ranks 3"

# refused VARIABLE VALUE: with and without processes, once.
refused() {
  local how
  for how in "" --processes; do
    export "$1=$2"
    expect 2 $small $how
    unset "$1"
    one_line_of_error
    says "$err" "$1 is \"$2\""
  done
}

refused UNTAX_MEMORY tape
refused UNTAX_HEAP_GUARDS 2
refused UNTAX_WAIT_LIMIT_MS soon
refused UNTAX_JOIN_LIMIT_MS soon

# A verb that starts its ranks itself refuses to be started once for each rank; rank 0 prints the reason.
for verb in "taxes --model models/llama-3.2-1b.json" "bench host" "check all_gather"; do
  for rank in 0 1; do
    export OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=test.$$
    expect 2 $verb
    unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMIX_NAMESPACE
    if [ $rank -eq 0 ]; then
      one_line_of_error
      says "$err" 'Open MPI has started it 2 times'
    else
      [ -s "$err" ] && wrong "rank 1 said something"
    fi
  done
done

# The variables that `untax doctor` knows.
export UNTAX_STRICT=1 UNTAX_STRIKT=1
timeout $((300 * scale)) "$untax" doctor >"$out" 2>"$err" </dev/null
unset UNTAX_STRICT UNTAX_STRIKT
says "$out" 'UNTAX_STRIKT is no variable of untax'
grep -q 'UNTAX_STRICT is no variable' "$out" && wrong "doctor does not know UNTAX_STRICT"
finish
