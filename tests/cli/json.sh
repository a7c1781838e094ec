# --json writes valid JSON with the figures of the table.
source "$(dirname "$0")/helpers.bash"
file=$folder/report.json

# field PATH VALUE: the expression on the document in $file, written in Python, has this value.
field() {
  local found
  found=$(python3 -c "import json, sys; d = json.load(open('$file')); print(($1))" 2>&1)
  [ "$found" = "$2" ] || wrong "$1 is '$found', should be '$2'"
}

for kind in "" --processes; do
  rm -f "$file"
  expect 0 run gemm_reduce_scatter $kind --ranks 3 --pattern all -m 9 -n 10 -k 11 --dtype bf16 --partials bf16 \
    --repeat 2 --verify --json "$file"
  python3 -m json.tool "$file" >/dev/null || wrong "not JSON"
  field "d['format'], d['operator'], d['ranks'], d['m'], d['n'], d['k'], d['dtype'], d['partials'], d['repeats']" \
    "('untax-run', 'gemm_reduce_scatter', 3, 9, 10, 11, 'bf16', 'bf16', 2)"
  field "len(d['patterns']), d['right'], all(p['right'] for p in d['patterns'])" "(6, True, True)"
  field "all(0 < p['seconds']['p10'] <= p['seconds']['median'] <= p['seconds']['p90'] for p in d['patterns'])" "True"
  field "all(0 < p['relative_error'] <= d['tolerance'] for p in d['patterns'])" "True"
  field "'automatic' in [p['chosen'] for p in d['patterns']]" "False"
done

expect 1 run all_gather_gemm -m 8 -n 8 -k 8 --dtype fp16 --repeat 1 --verify --tolerance 0 --json "$file"
field "d['right'], d['tolerance'], d['patterns'][0]['right']" "(False, 0.0, False)"

# On stdout there is nothing but JSON.
expect 0 run all_gather_gemm -m 8 -n 8 -k 8 --repeat 1 --json -
python3 -m json.tool "$out" >/dev/null || wrong "not JSON"

finish
