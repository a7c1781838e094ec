# `untax check` looks where it says, and says what it found.
source "$(dirname "$0")/helpers.bash"
file=$folder/check.json

expect 0 check gemm_all_scatter --quick --executions 60 --ranks 2 --json "$file"
says "$out" 'gemm_all_scatter fused_specialized .* right$'
says "$out" '^240 schedules proved, [0-9]+ executions explored, ([0-9]+) of \1 mutants killed$'
python3 - "$file" <<'PYTHON' || wrong "the JSON says something else"
import json, sys
found = json.load(open(sys.argv[1]))
protocols = found["protocols"]
assert found["format"] == "untax-check" and found["right"] is True
assert len(protocols) == 5 and all(p["protocol"].startswith("gemm_all_scatter ") for p in protocols)
assert all(p["schedules_proved"] == 48 and p["executions_explored"] >= 60 and not p["failures"] for p in protocols)
assert all(p["mutants"] and all(m["killed"] and m["failure"] for m in p["mutants"]) for p in protocols)
PYTHON

# One execution with two ranks does not catch every mutant, and the command has to admit it.
expect 1 check gemm_reduce_scatter --quick --executions 1 --ranks 2
says "$out" '^survived: gemm_reduce_scatter '
says "$out" 'WRONG$'
finish
