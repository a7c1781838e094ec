#!/usr/bin/env python3
"""The planner's costs of GEMMs (cost.cpp in engines/gpu/gemm) are those of the model that is fitted (bench/gemm/model.py).

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
        subprocess.run([sys.argv[1], "--gtest_filter=gemm_costs.equal_those_of_the_python_model", f"--gtest_output=json:{out}"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as text:
            found = json.load(text)["testsuites"][0]["testsuite"][0]["plans"]
    values = [model.parameters(gpu) for gpu in model.GPUS]
    lines = 0
    for line in found.split("\n")[:-1]:
        gpu, *fields, cycles = line.split()
        numbers = [int(f) for f in fields]
        numbers[6], numbers[8] = bool(numbers[6]), bool(numbers[8])
        plan = model.Plan(*numbers)
        expected = model.cycles(plan, values[int(gpu)])
        if abs(float(cycles) / expected - 1) > 1e-9:
            sys.exit(f"{plan}: {cycles} cycles by cost.cpp, {expected} by model.py")
        lines += 1
    if lines < 1000:
        sys.exit(f"only {lines} plans")
    print(f"{lines} plans cost the same")


if __name__ == "__main__":
    main()
