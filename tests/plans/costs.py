#!/usr/bin/env python3
"""The planner's costs of GEMMs (cost.cpp in engines/gpu/gemm, plan_trees.cpp in gemm_alone) are those of the model that is fitted (bench/gemm/model.py).

costs.py PLANS_TEST
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench/gemm"))
import model  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "found.json")
        subprocess.run([sys.argv[1], "--gtest_filter=gemm_costs.of_random_problems", f"--gtest_output=json:{out}"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as text:
            found = json.load(text)["testsuites"][0]["testsuite"][0]["plans"]
    values = [model.parameters(gpu) for gpu in model.GPUS]
    nodes = model.trees()
    problems = {}
    for line in found.split("\n")[:-1]:
        gpu, *fields, cycles, corrected = line.split()
        numbers = [int(f) for f in fields]
        numbers[6], numbers[8] = bool(numbers[6]), bool(numbers[8])
        problems.setdefault((int(gpu), *numbers[:3]), []).append((model.Plan(*numbers), float(cycles), float(corrected)))
    moved = 0
    for (gpu, m, *_), plans in problems.items():
        times = [model.cycles(plan, values[gpu]) for plan, _, _ in plans]
        rows = model.features([plan for plan, _, _ in plans], times, model.GPUS[gpu])
        for (plan, cycles, corrected), time, row in zip(plans, times, rows):
            seen = m > model.TREES_FROM and row[0] <= model.TREES_FARTHEST
            moved += seen
            factor = model.correction(nodes, row) if seen else 1
            for got, expected, what in ((cycles, time, "cost.cpp"), (corrected, time * factor, "plan_trees.cpp")):
                if abs(got / expected - 1) > 1e-9:
                    sys.exit(f"{plan}: {got} cycles by {what}, {expected} by model.py")
    lines = sum(map(len, problems.values()))
    if lines < 1000 or moved < 300:
        sys.exit(f"only {lines} plans, {moved} of them corrected by trees")
    print(f"{lines} plans cost the same, {moved} of them as trees correct them")


if __name__ == "__main__":
    main()
