# Files of --trace and UNTAX_TRACE: events that a strict reader accepts, of all ranks, with arrows between them.
source "$(dirname "$0")/helpers.bash"
file=$folder/trace.json

cat >"$folder/read.py" <<'PYTHON'
"""Reads a trace strictly: read.py FILE RANKS. Arrows have two ends, slices of a thread nest, ranks are all there."""
import json
import sys
from collections import defaultdict

path, ranks = sys.argv[1], int(sys.argv[2])
trace = json.load(open(path))
assert trace["otherData"]["format"] == "untax-trace" and trace["otherData"]["lost"] == 0
threads, arrows, names = defaultdict(list), defaultdict(dict), {}
for event in trace["traceEvents"]:
    track = (event["pid"], event["tid"])
    if event["ph"] == "M":
        assert event["name"] in ("process_name", "thread_name")
        names[event["name"], track if event["name"] == "thread_name" else track[0]] = event["args"]["name"]
    elif event["ph"] == "X":
        assert event["dur"] >= 0 and event["cat"] in ("run", "stage", "kernel", "action", "wait", "signal")
        threads[track].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
    else:
        assert event["ph"] in ("s", "f") and event["ph"] not in arrows[event["id"]]
        arrows[event["id"]][event["ph"]] = event
for track, slices in threads.items():
    assert ("thread_name", track) in names and ("process_name", track[0]) in names
    ends = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1], (track, begin, end)
        ends.append(end)
assert len({pid for pid, _ in threads}) == ranks, names
assert arrows and all(set(ends) == {"s", "f"} for ends in arrows.values())
assert all(ends["s"]["ts"] <= ends["f"]["ts"] for ends in arrows.values())
if ranks > 1:
    assert any(ends["s"]["pid"] != ends["f"]["pid"] for ends in arrows.values())
try:
    import shutil
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    shell = shutil.which("trace_processor_shell")
    assert shell, "trace_processor_shell is not on the PATH"
except (ImportError, AssertionError) as why:
    print(f"skipped: not opened by trace_processor ({why})")
else:
    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shell)) as processor:
        slices = next(iter(processor.query("select count(*) as n from slice"))).n
        assert slices == sum(map(len, threads.values())), slices
        assert next(iter(processor.query("select count(*) as n from flow"))).n == len(arrows)
PYTHON
read_trace() { python3 "$folder/read.py" "$file" "$1" || wrong "the trace is not what it should be"; }
small="-m 12 -n 16 -k 20 --repeat 3"

for kind in "" --processes; do
  rm -f "$file"
  expect 0 run all_gather_gemm $kind --ranks 3 --pattern fused_specialized $small --trace "$file"
  read_trace 3
  says "$out" "^Trace: $file \([0-9]+ events of 3 ranks; all fitted\)"
  says "$out" '^fused_specialized +critical path '
  says "$out" '^fused_specialized: most of the critical path is '
done

# A second trace replaces the first.
expect 0 run all_reduce --ranks 2 -n 100 --repeat 2 --trace "$file"
read_trace 2

# Of any program, by the environment; the file is there when the process has ended.
rm -f "$file"
UNTAX_TRACE=$file expect 0 run gemm_reduce_scatter --ranks 2 $small
read_trace 2
UNTAX_TRACE=/nowhere/trace.json expect 2 run gemm_reduce_scatter --ranks 2 $small
says "$err" 'UNTAX_TRACE is "/nowhere/trace.json": .* cannot be written'

# A refused run leaves the file of a trace alone, and a trace that cannot be written is an error.
kept=$(cksum <"$file")
expect 2 run broadcast --ranks 2 -n 100 --root 5 --trace "$file"
UNTAX_TRACE=$file expect 2 run broadcast --ranks 2 -n 100 --root 5
[ "$(cksum <"$file")" = "$kept" ] || wrong "a refused command has replaced a trace"
for kind in "" --processes; do
  expect 1 run gemm_reduce_scatter $kind --ranks 2 $small --trace /dev/full
  says "$err" '^untax: the trace /dev/full cannot be written .*; the file is not complete'
  UNTAX_TRACE=/dev/full expect 1 run gemm_reduce_scatter $kind --ranks 2 $small
  says "$err" '^untax: the trace /dev/full cannot be written'
done

# Beside the ablation.
expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 $small --trace "$file" --json "$folder/taxes.json" \
  --html "$folder/taxes.html"
says "$out" '^By the trace'
says "$out" '^(Ablation and trace agree in sign for [0-9]+ of|No tax of an operation is larger)'
grep -q 'By the trace' "$folder/taxes.html" || wrong "no trace in the page"
python3 - "$folder/taxes.json" <<'PYTHON' || wrong "parts of the trace"
import json, sys
report = json.load(open(sys.argv[1]))
(row,) = report["rows"]
assert [step["id"] for step in row["trace"]] == ["E0", "E1", "E2", "E3", "E4"]
for step in row["trace"]:
    time = sum(step["path"].values())
    assert time > 0 and len(step["ranks"]) == 2
    assert all(abs(sum(rank.values()) - time) <= 0.01 * time for rank in step["ranks"])
for tax in report["traced_taxes"]:
    told = abs(tax["by_ablation"]) > tax["uncertainty"]
    assert tax["same_sign"] is ((tax["by_ablation"] > 0) == (tax["by_trace"] > 0) if told else None), tax
    assert tax["same_sign"] is not False or tax["operation"] in tax["difference"], tax
PYTHON
# Without --trace, too: of runs of its own.
for kind in "all_gather_gemm $small" "flash_decode -m 2 --heads 4 --kv-heads 2 --head-dim 16 --keys 31"; do
  expect 0 taxes --backend host --operator $kind --ranks 2 --json "$folder/taxes.json"
  says "$out" '^By the trace'
  python3 -c 'import json, sys
(row,) = json.load(open(sys.argv[1]))["rows"]
assert [step["id"] for step in row["trace"]] == ["E0", "E1", "E2", "E3", "E4"]' "$folder/taxes.json" || wrong "no account of $kind"
done

expect 2 run all_reduce --ranks 2 -n 100 --trace /nowhere/trace.json
expect 2 run all_reduce --ranks 2 -n 100 --trace -
says "$err" 'a trace goes to a file'
expect 2 bench rma --trace "$file"
says "$err" '^untax: --trace means nothing to the suite rma'
for suite in gemm shared; do
  expect 2 bench $suite --trace "$file"
  says "$err" 'kernels of this build record nothing'
done
expect 2 taxes --operator all_gather_gemm --machine "$(dirname "$0")/../../machines/h200-8.json" --trace "$file"
says "$err" '^untax: --trace means nothing with --machine'
finish
