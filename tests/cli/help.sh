# The command explains itself.
source "$(dirname "$0")/helpers.bash"

expect 0 --version
says "$out" '^untax [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 --help
for verb in doctor run taxes bench check; do says "$out" "^ +$verb "; done
[ "$(grep -cE '^  untax [a-z]+' "$out")" -ge 3 ] || wrong "fewer than three examples"
for verb in doctor run taxes bench check; do
  expect 0 $verb --help
  says "$out" "untax $verb"
  [ "$(wc -L <"$out")" -le 120 ] || wrong "untax $verb --help is wider than 120 columns"
done
for verb in run taxes bench check; do
  expect 0 $verb --help
  says "$out" "^ +untax $verb [a-z-]+"
done
# Without a verb there is nothing to do, so the help comes as an answer.
expect 2
says "$err" 'Verbs'

expect 0 run all_gather_gemm --repeat 1 --explain -m 8 -n 8 -k 8
says "$out" 'chosen because'
finish
