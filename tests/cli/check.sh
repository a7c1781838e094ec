# `untax check` looks where it says, and says what it found.
source "$(dirname "$0")/helpers.bash"
file=$folder/check.json

expect 0 check gemm_all_scatter --quick --executions 60 --ranks 2 --json "$file"
says "$out" 'gemm_all_scatter fused_specialized .* right$'
says "$out" '^288 schedules proved, [0-9]+ executions explored, ([0-9]+) of \1 mutants killed$'
python3 - "$file" <<'PYTHON' || wrong "the JSON says something else"
import json, sys
found = json.load(open(sys.argv[1]))
protocols = found["protocols"]
assert found["format"] == "untax-check" and found["right"] is True
assert len(protocols) == 6 and all(p["protocol"].startswith("gemm_all_scatter ") for p in protocols)
assert all(p["schedules_proved"] == 48 and p["executions_explored"] >= 60 and not p["failures"] for p in protocols)
assert all(p["mutants"] and all(m["killed"] and m["failure"] for m in p["mutants"]) for p in protocols)
PYTHON

# A mutant that the schedule checker proves correct for this number of ranks does not count as a survivor.
for ranks in 1 2; do
  expect 0 check --quick --ranks "$ranks"
  says "$out" '^[0-9]+ schedules proved, [0-9]+ executions explored, ([0-9]+) of \1 mutants killed, [1-9][0-9]* proved equivalent$'
  says "$out" '^equivalent: .*: (drop|weaken) '
  grep -qE '^survived:|WRONG' "$out" && wrong "a mutant that is proved equivalent counts as a survivor"
done
expect 0 check gemm_reduce_scatter --quick --ranks 3 --json "$file"
grep -q equivalent "$out" && wrong "with 3 ranks every verb is needed"
grep -q '"needed_in": ""' "$file" || wrong "the JSON says nothing of what else needs a verb"
finish
