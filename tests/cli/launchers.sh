# Started by a launcher, the command joins the launcher's world.
source "$(dirname "$0")/helpers.bash"

# together NAME VARIABLE=VALUE...: two ranks; in the values %r stands for the rank.
together() {
  local name=$1
  shift
  tests=$((tests + 1))
  local rank started=() ended=()
  for rank in 0 1; do
    env "${@//%r/$rank}" timeout $((60 * scale)) "$untax" run gemm_all_scatter -m 9 -n 10 -k 11 --repeat 1 --verify \
      >"$folder/out$rank" 2>"$folder/err$rank" </dev/null &
    started+=($!)
  done
  # By number: `wait -n` may miss the end of a process that was over before it was asked for.
  for rank in 0 1; do
    wait "${started[rank]}"
    ended+=($?)
  done
  cat "$folder"/err? >"$err"
  cp "$folder/out0" "$out"
  for rank in 0 1; do
    [ "${ended[rank]}" -eq 0 ] || wrong "$name: rank $rank: exit status ${ended[rank]}, should be 0"
  done
  says "$out" '2 ranks as processes'
  says "$out" ' right$'
  [ -s "$folder/out1" ] && wrong "$name: rank 1 printed something"
  [ -s "$err" ] && wrong "$name: something on stderr"
}

together torchrun RANK=%r WORLD_SIZE=2 LOCAL_RANK=%r LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$$
together "Open MPI" OMPI_COMM_WORLD_RANK=%r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=test.$$
together Slurm SLURM_PROCID=%r SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 SLURM_JOB_ID=$$ SLURM_STEP_ID=0

together MVAPICH MV2_COMM_WORLD_RANK=%r MV2_COMM_WORLD_SIZE=2
together Flux FLUX_TASK_RANK=%r FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=1 FLUX_JOB_ID=f$$

# A rank without the number of ranks is not rank 0 of 1.
for name in PALS_RANKID PMIX_RANK FLUX_TASK_RANK MV2_COMM_WORLD_RANK; do
  export "$name=1"
  expect 2 run all_gather_gemm -m 8 -n 8 -k 8
  unset "$name"
  one_line_of_error
  says "$err" "$name=1, and no variable with the number of ranks"
done

# A world of another size, and a launch inside a launch, are mistakes.
export RANK=0 WORLD_SIZE=2 MASTER_PORT=$$
expect 2 run all_gather_gemm --ranks 3
one_line_of_error
says "$err" 'torchrun started 2'
expect 2 run all_gather_gemm --processes
one_line_of_error
says "$err" 'leave --processes out'
finish
