# What the scripts share. Each is called with the path of the command; UNTAX_TEST_SCALE (1 if it is
# not set) says how much slower than a release build it is, and long scripts then do less.
set -u
untax=$1
scale=${UNTAX_TEST_SCALE:-1}
failures=0
tests=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
err=$folder/err
# The launchers' variables of the surroundings would make ranks of the commands that are tested.
for name in $(compgen -e); do
  case $name in
    UNTAX_TEST_SCALE) ;;
    UNTAX_* | RANK | WORLD_SIZE | LOCAL_* | OMPI_* | MV2_* | PMI_* | PMIX_* | PALS_* | FLUX_* | SLURM_*) unset "$name" ;;
  esac
done

wrong() {
  failures=$((failures + 1))
  echo "WRONG: $*"
  sed 's/^/  stdout: /' "$out" | head -20
  sed 's/^/  stderr: /' "$err" | head -20
}

# expect STATUS ARGUMENT...: runs the command and looks at its exit status.
expect() {
  local wanted=$1
  shift
  tests=$((tests + 1))
  timeout $((300 * scale)) "$untax" "$@" >"$out" 2>"$err" </dev/null
  local status=$?
  [ "$status" -eq "$wanted" ] || wrong "untax $*: exit status $status, should be $wanted"
}

# says FILE PATTERN: the last command wrote a line that matches (an extended regular expression).
says() {
  grep -qE -- "$2" "$1" || wrong "no line matches '$2'"
}

# The last command wrote one line to stderr, and nothing to stdout.
one_line_of_error() {
  [ "$(wc -l <"$err")" -eq 1 ] || wrong "stderr should be one line"
  [ -s "$out" ] && wrong "stdout should be empty"
  says "$err" '^untax: '
}

finish() {
  echo "$tests commands, $failures wrong"
  exit $((failures > 0))
}
