# untax machine: shows and judges descriptions, refuses what is none in one line; the table of docs/timing.md is what
# it says. UNTAX_WRITE_TIMING=1 fits the calibration anew and writes the table.
write=${UNTAX_WRITE_TIMING:-}
source "$(dirname "$0")/helpers.bash"
machine=machines/h200-8.json
calibration=machines/h200.calibration.json

for file in machines/*.json; do
  grep -q '"format": "untax-machine"' "$file" || continue
  expect 0 machine "$file"
  says "$out" '^processors +[0-9]+'
  # The output says whether figures were measured.
  grep -q '"measured": false' "$file" && says "$out" 'nobody measured this machine'
  expect 0 machine "$file" --json "$folder/again.json"
  expect 0 machine "$folder/again.json"
done

# Descriptions and models that untax came with are known by name, whatever the current folder is.
untax=$(realpath "$untax")
cd "$folder" || exit 1
expect 0 machine h200-8
says "$out" '^processors +[0-9]+'
expect 0 taxes --model llama-3.2-1b --tokens 16 --machine h200-8
cd "$OLDPWD" || exit 1
expect 2 machine h201-8
one_line_of_error
says "$err" 'h201-8 is neither a file nor one of .*h200-8'
grep -q calibration "$err" && wrong "a calibration is offered as a machine"
expect 2 taxes --model llama-9 --tokens 16 --machine h200-8
one_line_of_error
says "$err" 'llama-9 is neither a file nor one of .*llama-3.1-70b'

# The fit sees files of one and two GPUs only.
expect 0 machine $machine --fit bench/results ops/choice/tables --out "$folder/calibration.json"
grep -q 'h200-4' "$folder/calibration.json" && wrong "the fit read a file of 4 GPUs"
if [ -n "$write" ]; then cp "$folder/calibration.json" $calibration; fi
diff -q "$folder/calibration.json" $calibration >"$out" ||
  wrong "$calibration is not what --fit makes: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND"

sed '/^<!-- What follows/q' docs/timing.md >"$folder/timing.md"
for gpu in h200 h100; do
  expect 0 machine machines/$gpu-8.json --judge bench/results --markdown "$folder/table.md" \
    --json "$folder/judgement.json" --out "$folder/summary.json"
  says "$out" '^mean absolute error +[0-9.]+ %'
  says "$folder/judgement.json" '"format": "untax-judgement"'
  {
    echo
    cat "$folder/table.md"
  } >>"$folder/timing.md"
  summary=machines/$gpu.judgement.json
  [ -n "$write" ] && cp "$folder/summary.json" $summary
  diff "$folder/summary.json" $summary >"$out" ||
    wrong "$summary is not what --judge says: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND"
done
[ -n "$write" ] && cp "$folder/timing.md" docs/timing.md
diff "$folder/timing.md" docs/timing.md >"$out" ||
  wrong "docs/timing.md is not what --judge says: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND"

# The picture in docs/design.md is of the page that demo.sh shows first. The picture holds the page's sentence as its description, so that
# an old one is noticed.
expect 0 taxes --model models/llama-3.1-70b.json --tokens 16 --machine $machine --html "$folder/page.html"
sentence=$(sed -n 's|.*<p class="finding">\(.*\)</p>.*|\1|p' "$folder/page.html")
if [ -n "$write" ] && chromium=$(command -v chromium); then
  "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,900 \
    --screenshot="$folder/page.png" "file://$folder/page.html" >"$out" 2>&1 || wrong "Chromium takes no picture"
fi
if ! python3 - "$sentence" docs/page.png "$folder/page.png" <<'PYTHON'; then
import os, struct, sys, zlib
sentence, picture, taken = sys.argv[1:]
described = b"tEXtDescription\0" + sentence.encode("latin-1")
if os.path.exists(taken):
    png = open(taken, "rb").read()
    chunk = struct.pack(">I", len(described) - 4) + described + struct.pack(">I", zlib.crc32(described))
    open(picture, "wb").write(png[:-12] + chunk + png[-12:])
sys.exit(0 if sentence and described in open(picture, "rb").read() else 1)
PYTHON
  wrong "docs/page.png is not of this page: UNTAX_WRITE_TIMING=1 bash tests/cli/machine.sh COMMAND, where Chromium is"
fi

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
# JSON on stdout is all that is there; what cannot be is refused before the work.
for option in --out --json; do
  expect 0 machine $machine --judge bench/results $option -
  python3 -m json.tool "$out" >/dev/null || wrong "machine --judge $option - is no JSON"
done
expect 0 machine $machine --judge bench/results --out - --json "$folder/judged.json"
python3 -m json.tool "$out" >/dev/null || wrong "machine --judge --out - --json FILE: stdout is no JSON"
expect 0 machine --help
tr -s ' \n' ' ' <"$out" >"$folder/help"
says "$folder/help" 'a missed bar does not change the exit status'

echo "{" >"$folder/wrong.json"
expect 2 machine "$folder/wrong.json"
one_line_of_error
says "$err" 'wrong.json:2:1: this is not JSON'
echo '[]' >"$folder/wrong.json"
expect 2 machine "$folder/wrong.json"
says "$err" 'it is not a JSON object'
expect 2 machine /nonexistent.json
one_line_of_error

# As a verb; and a name that a terminal would act on.
expect 0 machine show $machine
says "$out" '^processors +[0-9]+'
expect 2 machine show
one_line_of_error
says "$err" 'give one description: untax machine FILE'
expect 2 machine $machine $machine
one_line_of_error
refused 'contains the control character U.001B' 'm["name"] = "a\x1b[31mb"'
refused 'nested deeper than 100 levels' 'm["name"] = eval("[" * 90 + "]" * 90); m["gpus"] = [[[[[[[[[[[m["name"]]]]]]]]]]]]'
expect 2 machine $machine --judge "$folder/wrong.json"
one_line_of_error
expect 2 machine machines/pcie-4.json --fit bench/results
one_line_of_error
expect 2 machine $machine --fit bench/results --judge bench/results

# Without a file this machine is measured: its cores, where no GPU is seen.
export CUDA_VISIBLE_DEVICES=
expect 0 machine --repeat 2 --out "$folder/own.json"
says "$out" '^block_rate +[0-9.e+]+'
python3 - "$folder/own.json" <<'PYTHON' || wrong "the description of this machine is not what it should be"
import json, sys
m = json.load(open(sys.argv[1]))
value = {key: number["value"] for key, number in m["numbers"].items()}
assert m["kind"] == "cores" and m["gpus"] >= 1 and m["links"] == "host"
assert value["flops"] > 1e8 and value["memory_rate"] > value["link_rate"] / 10 > 1e6
assert 0 < value["launch_graph"] and 0 < value["store"] < 1 and value["processors"] == 1
assert sum(number["from"].startswith("measured here: ") for number in m["numbers"].values()) >= 12
PYTHON
expect 0 machine "$folder/own.json"
expect 2 machine --judge bench/results
expect 2 machine $machine --repeat 3
expect 2 taxes --operator all_gather_gemm -m 64 --ranks 2 --machine "$folder/own.json"
one_line_of_error
says "$err" 'plans of GPUs are predicted; `untax taxes --backend host` measures cores'
unset CUDA_VISIBLE_DEVICES

# untax taxes --machine: the same tables and page, with what they are in front.
model=models/llama-3.1-70b.json
expect 0 taxes --model $model --tokens 16 --machine $machine --json "$folder/taxes.json" --html "$folder/taxes.html"
says "$out" "^Times are predicted for 8 x H200 by untax's timing engine, whose mean error on measurements is"
says "$out" '^average layer'
grep -q 'predicted for 8 x H200 by' "$folder/taxes.html" || wrong "the page does not say that it is predicted"
python3 - "$folder/taxes.json" <<'PYTHON' || wrong "taxes --machine: the report is not what it should be"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["predicted"].startswith("predicted for 8 x H200") and report["tensor_parallel"] == 8
assert [row["name"] for row in report["rows"]] == ["qkv", "attention", "o", "gate_up", "down"]
for row in report["rows"]:
    assert [step["id"] for step in row["steps"]] == ["E0", "E1", "E2", "E3", "E4"]
    for part, value in row["derived"].items():
        if part != "stand_in" and not isinstance(value, str):
            assert value >= -row["derived_uncertainty"].get(part, 0) - 1e-12, (row["name"], part, value)
    assert row["derived"]["bound"] <= row["steps"][-1]["median"] * 1.02
assert not [note for note in report["notes"] if "No measured times stand behind" in note]
PYTHON
# The output says that the machine was not measured.
cp $machine machines/h200.judgement.json "$folder"
python3 - machines/h200.calibration.json "$folder/h200.calibration.json" <<'PYTHON'
import json, sys
known = json.load(open(sys.argv[1]))
known["entries"] = [entry for entry in known["entries"] if not entry[0].startswith("gemm_reduce_scatter")]
json.dump(known, open(sys.argv[2], "w"))
PYTHON
expect 0 taxes --model $model --tokens 16 --machine "$folder/h200-8.json"
says "$out" 'No measured times stand behind .* of gemm_reduce_scatter'
says "$out" 'which was not judged with these numbers'
# A description that was edited does not have the error of the one that was judged, and a copy alone has no calibration.
mkdir "$folder/edited" "$folder/alone"
cp $machine machines/h200.*.json "$folder/edited"
cp $machine "$folder/alone"
expect 0 taxes --model $model --tokens 16 --machine "$folder/edited/h200-8.json"
says "$out" "^Times are predicted for 8 x H200 by untax's timing engine, whose mean error on measurements is"
sed -i 's/"link_rate": {"value": [0-9.]*/"link_rate": {"value": 50000000000/' "$folder/edited/h200-8.json"
expect 0 taxes --model $model --tokens 16 --machine "$folder/edited/h200-8.json" --json "$folder/edited.json"
says "$out" 'which was not judged with these numbers'
grep -q 'mean error' "$out" "$folder/edited.json" && wrong "an edited description has the error of another"
expect 0 taxes --model $model --tokens 16 --machine "$folder/alone/h200-8.json"
says "$out" 'without a calibration, since h200.calibration.json is not'
sed '/"calibration":/d; /"judgement":/d' $machine >"$folder/alone/h200-8.json"
expect 0 taxes --model $model --tokens 16 --machine "$folder/alone/h200-8.json"
says "$out" 'not judged on such a machine;$'
says "$out" '^the description has no calibration'
expect 0 taxes --model $model --layer all-reduce --tokens 64 --machine $machine
says "$out" '^o +80 '
says "$out" '^down +80 '
expect 0 taxes --operator all_gather_gemm -m 512 --machine machines/h100-8.json
says "$out" 'nobody measured this machine'
expect 0 taxes --model $model --tokens 16 --machine machines/gb200-72.json --scale 2,4,8,16,72 --json "$folder/scale.json"
says "$out" '^ +8 +[0-9.]+ +[0-9.]+'
says "$out" '^72 ranks: '
python3 - "$folder/scale.json" <<'PYTHON' || wrong "taxes --scale: the curve is not what it should be"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
assert [p["ranks"] for p in points] == [2, 4, 8, 16, 72]
assert points[0]["E0"] > points[2]["E0"] > points[2]["E4"] >= points[2]["bound"] * 0.98
PYTHON
expect 2 taxes --model $model --machine $machine --tensor-parallel 16
one_line_of_error
says "$err" '8 x H200 has 8 GPUs; 16 ranks need as many'
expect 2 taxes --model $model --machine $machine --backend host
one_line_of_error
expect 0 taxes --model $model --tokens 16 --machine machines/gb200-72.json --ranks 32
says "$out" '^The taxes of .*tensor parallel 32'
expect 2 taxes --model $model --scale 2,4
one_line_of_error
expect 2 taxes --model $model --machine $machine --scale 2,4 --compare "$folder/taxes.json"
one_line_of_error
says "$err" 'compare takes a report of one number of ranks.*leave one of them out'
for wrong_scale in '' '2,' ',2' '1,2' '2,x' '2,,4'; do
  expect 2 taxes --model $model --machine $machine --scale "$wrong_scale"
  one_line_of_error
done
expect 2 taxes --model $model --machine "$folder/wrong.json"
one_line_of_error
finish
