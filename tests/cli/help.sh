# The command explains itself.
source "$(dirname "$0")/helpers.bash"

expect 0 --version
says "$out" '^untax [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 --help
for verb in doctor run taxes bench check help version; do says "$out" "^ +$verb "; done
[ "$(grep -cE '^  untax [a-z]+' "$out")" -ge 3 ] || wrong "fewer than three examples"
cp "$out" "$folder/help"
expect 0 help
cmp -s "$out" "$folder/help" || wrong "untax help is not what untax --help says"
expect 0 version
says "$out" '^untax [0-9]+\.[0-9]+\.[0-9]+$'
for verb in doctor run taxes bench check; do
  expect 0 $verb --help
  says "$out" "untax $verb"
  [ "$(wc -L <"$out")" -le 100 ] || wrong "untax $verb --help is wider than 100 columns"
  cp "$out" "$folder/help"
  expect 0 help $verb
  cmp -s "$out" "$folder/help" || wrong "untax help $verb is not what untax $verb --help says"
done
for verb in run taxes bench check; do
  expect 0 $verb --help
  says "$out" "^ +untax $verb [a-z-]+"
done
# A suite explains itself alone: it names the suite, has examples that the parser takes, and no option of another suite.
expect 0 bench --help
suites=$(sed -n '/^Suites /,/^$/s/^  \([a-z-]*\) .*/\1/p' "$out")
[ "$(wc -w <<<"$suites")" -ge 16 ] || wrong "fewer suites than there were"
for suite in $suites; do
  expect 0 bench "$suite" --help
  says "$out" "^Usage: untax bench $suite "
  says "$out" "^  --repeat INT"
  says "$out" "^  untax bench $suite"
  [ "$(wc -L <"$out")" -le 100 ] || wrong "untax bench $suite --help is wider than 100 columns"
  [ "$(wc -l <"$out")" -le 50 ] || wrong "untax bench $suite --help is longer than 50 lines"
  cp "$out" "$folder/help"
  grep "^  untax bench" "$folder/help" >"$folder/examples"
  while read -r _ words; do
    # shellcheck disable=SC2086 # words on purpose
    expect 0 $words --help
    cmp -s "$out" "$folder/help" || wrong "the example $words is not of $suite"
  done <"$folder/examples"
done
expect 0 bench host --help
grep -q -- '--size' "$out" && wrong "the suite host takes no --size"
expect 0 bench --size 16 --help gemm
says "$out" '^Usage: untax bench gemm '
expect 2
one_line_of_error
says "$err" 'a verb is missing; it has to be doctor, run, .*--help'

expect 0 run --help
for pattern in automatic bulk_library bulk_synchronous producer_consumer copy_engine fused_sequential \
  fused_specialized fused_warp_specialized all; do
  says "$out" "^  $pattern  +[a-z]"
done

# The verdict of doctor is its last line.
tests=$((tests + 1))
timeout $((60 * scale)) "$untax" doctor >"$out" 2>"$err" </dev/null
tail -n 1 "$out" | grep -qE '^(Everything that untax needs works\.|[0-9]+ of [0-9]+ checks failed\.)$' ||
  wrong "the verdict is not last"

expect 0 run all_gather_gemm --repeat 1 --explain -m 8 -n 8 -k 8 --invariant
says "$out" 'chosen because'
says "$out" 'same bits in every batch'
finish
