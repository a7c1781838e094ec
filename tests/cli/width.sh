# Nothing is wider than the terminal.
source "$(dirname "$0")/helpers.bash"

# on_terminal COLUMNS ARGUMENT...: runs the command on a terminal; its output is then in $out.
on_terminal() {
  tests=$((tests + 1))
  timeout $((60 * scale)) python3 - "$untax" "$@" >"$out" 2>"$err" <<'PYTHON'
import fcntl, os, pty, struct, sys, termios

command, columns = sys.argv[1], int(sys.argv[2])
child, terminal = pty.fork()
if child == 0:
    # Here, since what the parent does may come too late.
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1")
    os.execv(command, [command] + sys.argv[3:])
text = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    text += piece
# A line that is drawn anew ends where it begins.
text = text.decode().replace("\r\n", "\n").replace("\r", "\n").replace("\033[K", "")
sys.stdout.write(text)
os.waitpid(child, 0)
PYTHON
  [ -s "$out" ] || wrong "untax ${*:2}: nothing on the terminal"
  local widest
  widest=$(python3 -c 'import sys; print(max(len(l.rstrip("\n")) for l in open(sys.argv[1], encoding="utf-8")))' "$out")
  [ "$widest" -le "$1" ] || wrong "untax ${*:2}: $widest columns on a terminal of $1"
  # A cell that is cut ends with two dots.
  ! grep -qE '[^.]\.\.( |$)' "$out" || wrong "untax ${*:2}: a cell is cut on a terminal of $1"
}

for columns in 80 100; do
  on_terminal $columns doctor
  on_terminal $columns run flash_decode --repeat 1 --keys 8 --verify --explain
  on_terminal $columns run all_gather_gemm -m 8 -n 8 -k 8 --repeat 1 --pattern all --verify --explain
  on_terminal $columns taxes --backend host --operator all_gather_gemm --ranks 2 -m 8 -n 8 -k 8 --repeat 1
  on_terminal $columns taxes --model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json
  on_terminal $columns taxes --model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json --scale 2,8
  on_terminal $columns check gemm_all_scatter --quick --executions 1 --ranks 2
  on_terminal $columns check all_gather_gemm --gpu h200 --ranks 2 -m 32 -n 64 -k 64 --pattern fused_specialized
  on_terminal $columns machine machines/h200-8.json
  on_terminal $columns locality list
  on_terminal $columns locality gemm --device h200 -m 1024 -n 1024 -k 1024
done
# These take seconds, and a table that fits into 80 columns fits into more.
if [ "$scale" -eq 1 ]; then
  on_terminal 80 machine machines/h200-8.json --judge bench/results
  on_terminal 80 locality attention --device mi300x --heads 16 --keys 8192 --search
  on_terminal 80 select evaluate --schema bench/select/V100.json --table bench/select/V100.csv.gz --folds 2 --leaves 4
fi
on_terminal 80 bench operators --repeat 1
for columns in 40 60 80 120; do
  for verb in "" doctor run taxes bench check help version; do
    # shellcheck disable=SC2086 # no word where there is no verb
    on_terminal $columns $verb --help
  done
done
finish
