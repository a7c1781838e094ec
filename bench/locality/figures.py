#!/usr/bin/env python3
"""Writes the figures of docs/locality.md: what the search finds for each kernel, and published figures.

    python3 bench/locality/figures.py build/release/untax

Says how long each search took, and fails if one is over a minute or if GEMM or attention are farther than 8 points
from what no order can exceed. It takes some minutes and no GPU.
"""
import json
import pathlib
import subprocess
import sys
import time

KERNELS = ["gemm", "attention", "attention_backward", "layernorm", "softmax", "elementwise", "transpose", "spmv", "stencil2d",
           "fdtd2d", "smith_waterman", "black_scholes"]
DEVICES = ["mi300x", "h200"]
SECONDS, DISTANCE = 60, 0.08
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "locality.md"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def searched(untax):
    """The table, and what misses its bar."""
    lines = ["| kernel | device | hits as numbered | best order | hits | no order above | distance | time |",
             "|---|---|---|---|---|---|---|---|"]
    missed = []
    for kernel in KERNELS:
        for device in DEVICES:
            begin = time.monotonic()
            found = json.loads(output(untax, "locality", kernel, "--device", device, "--search", "--json", "-"))
            seconds = time.monotonic() - begin
            numbered = next(one for one in found["best"] if one["order"] == "as numbered")
            best = found["best"][0] if found["is_worth_it"] else numbered
            name = best["order"] if found["is_worth_it"] else "nothing to gain"
            distance = found["distance"]
            print(f"{kernel} on {device}: {seconds:.1f} s, {100 * distance:.1f} points", flush=True)
            lines.append(f"| {kernel} | {device} | {100 * numbered['hit_rate']:.1f} % | {name} | {100 * best['hit_rate']:.1f} % "
                         f"| {100 * found['limit']['hit_rate']:.1f} % | {100 * distance:.1f} "
                         f"| {best['seconds'] / numbered['seconds']:.2f} |")
            if seconds > SECONDS:
                missed.append(f"{kernel} on {device} took {seconds:.0f} s")
            if kernel in KERNELS[:3] and distance > DISTANCE:
                missed.append(f"{kernel} on {device} is {100 * distance:.1f} points off")
    return "\n".join(lines) + "\n", missed


def replaced(text, name, part):
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    before, rest = text.split(begin)
    return before + begin + part + end + rest.split(end)[1]


def main():
    untax = sys.argv[1]
    table, missed = searched(untax)
    text = replaced(PAGE.read_text(encoding="utf-8"), "searched", table)
    PAGE.write_text(replaced(text, "published", output(untax, "locality", "published")), encoding="utf-8")
    sys.exit("\n".join(missed) or None)


if __name__ == "__main__":
    main()
