# untax machine: shows and judges descriptions, refuses what is none in one line; the table of docs/timing.md is what
# it says. UNTAX_WRITE_TIMING=1 fits the calibration anew and writes the table.
write=${UNTAX_WRITE_TIMING:-}
source "$(dirname "$0")/helpers.bash"
machine=machines/h200-8.json
calibration=machines/h200.calibration.json

for file in machines/*.json; do
  [ "$file" = $calibration ] && continue
  expect 0 machine "$file"
  says "$out" '^processors +[0-9]+'
  # Who reads figures has to know whether anybody has measured them.
  grep -q '"measured": false' "$file" && says "$out" 'nobody measured this machine'
  expect 0 machine "$file" --json "$folder/again.json"
  expect 0 machine "$folder/again.json"
done

# The fit sees files of one and two GPUs only.
expect 0 machine $machine --fit bench/results ops/choice/tables --out "$folder/calibration.json"
grep -q 'h200-4' "$folder/calibration.json" && wrong "the fit read a file of 4 GPUs"
if [ -n "$write" ]; then cp "$folder/calibration.json" $calibration; fi
diff -q "$folder/calibration.json" $calibration >"$out" ||
  wrong "$calibration is not what --fit makes: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND"

expect 0 machine $machine --judge bench/results --markdown "$folder/table.md" --json "$folder/judgement.json"
says "$out" '^mean absolute error +[0-9.]+ %'
says "$folder/judgement.json" '"format": "untax-judgement"'
sed '/^<!-- What follows/q' docs/timing.md >"$folder/timing.md"
{
  echo
  cat "$folder/table.md"
} >>"$folder/timing.md"
if [ -n "$write" ]; then cp "$folder/timing.md" docs/timing.md; fi
diff "$folder/timing.md" docs/timing.md >"$out" ||
  wrong "docs/timing.md is not what --judge says: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND"

# refused PATTERN PROGRAM: a description that the Python statements damage is refused in a line that matches.
refused() {
  python3 - "$machine" "$folder/wrong.json" "$2" <<'PYTHON'
import json, sys
m = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(m, open(sys.argv[2], "w"))
PYTHON
  expect 2 machine "$folder/wrong.json"
  one_line_of_error
  says "$err" "$1"
}
refused '"gpus" is missing' 'del m["gpus"]'
refused '"gpus" is 0; it has to be a whole number from 1' 'm["gpus"] = 0'
refused '"gpus" is 9 and "gpus_of_host" 8' 'm["gpus"] = 9'
refused '"links" is "wires"; it has to be one of nvswitch, ring' 'm["links"] = "wires"'
refused 'number "speed" is not known' 'm["numbers"]["speed"] = {"value": 1, "from": "x"}'
refused 'number "store" is missing: until a peer sees a store, in s' 'del m["numbers"]["store"]'
refused 'number "store" is -1 s; it has to be from 0 to 1' 'm["numbers"]["store"]["value"] = -1'
refused '"from" of number "store" is ""; it has to say where' 'm["numbers"]["store"]["from"] = ""'
refused '2 hosts need network cards' 'm["gpus"] = 16'
refused '"host_rate" is 0; it has to be above 0' 'm["links"] = "pairs"'
refused 'its format is "x" 1' 'm["format"] = "x"'
echo "{" >"$folder/wrong.json"
expect 2 machine "$folder/wrong.json"
one_line_of_error
says "$err" 'it is no JSON object'
expect 2 machine /nonexistent.json
one_line_of_error
expect 2 machine $machine --judge "$folder/wrong.json"
one_line_of_error
expect 2 machine machines/pcie-4.json --fit bench/results
one_line_of_error
expect 2 machine $machine --fit bench/results --judge bench/results
finish
