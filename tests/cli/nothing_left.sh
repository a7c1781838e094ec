# However a run ends, it prints the reason, and no process, directory or shared memory stays behind.
source "$(dirname "$0")/helpers.bash"
long="run all_gather_gemm --processes --ranks 3 -m 64 -n 64 -k 64 --repeat 1000000 --wait-limit 100000"

# Starts a long run in the background, waits until its ranks are there, and leaves their ids in `ranks`.
start() {
  tests=$((tests + 1))
  timeout $((200 * scale)) "$untax" $long >"$out" 2>"$err" </dev/null &
  guard=$!
  launcher=""
  ranks=""
  for _ in $(seq $((600 * scale))); do
    [ -n "$launcher" ] || launcher=$(pgrep -P $guard)
    [ -n "$launcher" ] && ranks=$(pgrep -P "$launcher" | tr '\n' ' ')
    # The ranks have met when rank 0 has removed the directory to meet in.
    if [ "$(wc -w <<<"$ranks")" -eq 3 ] && met; then return; fi
    sleep 0.1
  done
  wrong "the ranks did not come"
}

# A process that was killed counts as gone, even if its exit status was not collected yet.
alive() {
  local state
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)
  [ -n "$state" ] && [ "$state" != Z ]
}

# nothing_left TENTHS: looks that long for ranks that go on, and for the place where they met.
nothing_left() {
  local rank
  for rank in $ranks; do
    for _ in $(seq "$1"); do
      alive "$rank" || break
      sleep 0.1
    done
    alive "$rank" && wrong "process $rank is left"
  done
  compgen -G "/tmp/untax-launch-$launcher-*" >/dev/null && wrong "the meeting place is left"
}

# All ranks have mapped the shared segment.
met() {
  local rank
  for rank in $ranks; do
    grep -q memfd "/proc/$rank/maps" 2>/dev/null || return 1
  done
}

# ended STATUS SECONDS: the run ends in time, with that status, and nothing is left.
ended() {
  local begin=$SECONDS
  wait $guard
  local status=$?
  [ "$status" -eq "$1" ] || wrong "exit status $status, should be $1"
  [ $((SECONDS - begin)) -le $(($2 * scale)) ] || wrong "it took $((SECONDS - begin)) s to end"
  nothing_left 100
}

for victim in 0 1 2; do
  start
  kill -KILL "$(cut -d ' ' -f $((victim + 1)) <<<"$ranks")"
  ended 1 20
  says "$err" 'was ended by signal 9'
  says "$err" 'is gone .*without signalling'
done

start
kill -INT "$launcher"
ended 130 20

start
kill -TERM "$launcher"
ended 143 20

# The launcher has no chance to say goodbye; its ranks go with it.
start
kill -KILL "$launcher"
wait $guard 2>/dev/null
nothing_left $((300 * scale))
finish
