#!/usr/bin/env python3
"""Writes the tables and pictures of docs/locality.md.

    python3 bench/locality/generate.py build/release/untax

Prints the time of each search, and fails if one is over a minute or if GEMM or attention are farther than 8 points from
the upper bound of all orders. The counters come from the files that counters.py left in this folder.
"""
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from counters import POINTS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/locality.md"
KERNELS = ["gemm", "attention", "attention_backward", "layernorm", "softmax", "elementwise", "transpose", "spmv",
           "stencil2d", "fdtd2d", "smith_waterman", "black_scholes"]
DEVICES = ["mi300x", "h200"]
SECONDS, DISTANCE = 60, 0.08
PICTURES = {
    "locality-block-first.svg": ["attention", "--order", "naive block-first", "heads=16", "keys=8192"],
    "locality-head-first.svg": ["attention", "--order", "swizzled head-first", "heads=16", "keys=8192"],
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def searched(untax):
    """The table, and the rows that miss their bar."""
    lines = ["| kernel | device | hits as numbered | best order | hits | no order above | distance | time |",
             "|---|---|---|---|---|---|---|---|"]
    missed = []
    for kernel in KERNELS:
        for device in DEVICES:
            begin = time.monotonic()
            search = json.loads(output(untax, "locality", kernel, "--device", device, "--search", "--json", "-"))
            seconds = time.monotonic() - begin
            numbered = next(result for result in search["best"] if result["order"] == "as numbered")
            best = search["best"][0] if search["is_worth_it"] else numbered
            name = best["order"] if search["is_worth_it"] else "nothing to gain"
            distance = search["distance"]
            print(f"{kernel} on {device}: {seconds:.1f} s, {100 * distance:.1f} points", flush=True)
            lines.append(f"| {kernel} | {device} | {100 * numbered['hit_rate']:.1f} % | {name} | {100 * best['hit_rate']:.1f} % "
                         f"| {100 * search['limit']['hit_rate']:.1f} % | {100 * distance:.1f} "
                         f"| {best['seconds'] / numbered['seconds']:.2f} |")
            if seconds > SECONDS:
                missed.append(f"{kernel} on {device} took {seconds:.0f} s")
            if kernel in KERNELS[:3] and distance > DISTANCE:
                missed.append(f"{kernel} on {device} is {100 * distance:.1f} points off")
    return "\n".join(lines), missed


def counted():
    """The table of counters of a GPU on random problems, by kernel and in total."""
    files = sorted(Path(__file__).parent.glob("*-seed-*.json"))
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    rows = [row for run in runs for row in run["rows"]]
    lines = ["| kernel | problems | hits, counted | within 6 points | off by, median | worst |",
             "|---|---|---|---|---|---|"]
    for kernel in [kernel for kernel in KERNELS if any(row["kernel"] == kernel for row in rows)]:
        mine = [row for row in rows if row["kernel"] == kernel]
        off = [abs(row["points"]) for row in mine]
        rates = [100 * row["read_hit_rate"] for row in mine]
        lines.append(f"| {kernel} | {len(mine)} | {min(rates):.1f} to {max(rates):.1f} % | {sum(o <= POINTS for o in off)} "
                     f"| {statistics.median(off):.1f} | {max(off):.1f} |")
    for run in runs:
        lines.append(f"\nSeed {run['seed']}: {len(run['rows'])} problems, {100 * run['near']:.0f} % of their hit rates within "
                     f"{POINTS} points; ranks of times correlate by {run['correlation']:.2f}. {run['device']}, commit "
                     f"{run['commit']}, {run['date'][:10]}.")
    return "\n".join(lines)


def sides():
    """The table of measured times and energy if data or blocks are placed by halves of L2 on a GPU."""
    run = json.loads(max(Path(__file__).parent.glob("*-sides.json")).read_text(encoding="utf-8"))
    lines = ["| kernel | placement | us | 10 to 90 % | W | mJ a run |", "|---|---|---|---|---|---|"]
    for row in run["rows"]:
        time, watts = row["seconds"], row.get("watts")
        power = f"{watts['median']:.0f} | {1e3 * watts['median'] * time['median']:.1f}" if watts else "- | -"
        lines.append(f"| {row['kernel']} | {row['placement']} | {1e6 * time['median']:.1f} | {1e6 * time['p10']:.1f} to "
                     f"{1e6 * time['p90']:.1f} | {power} |")
    published, other = run["multiprocessors"]
    lines.append(f"\n{published} and {other} multiprocessors a side; an atomic takes {run['near_cycles']:.0f} cycles at home and "
                 f"{run['far_cycles']:.0f} on the other side; of neighbouring chunks of 4 KiB "
                 f"{100 * run['pairs_apart']:.1f} % are on different sides; the device is held to {run['watts_most']:.0f} W. "
                 f"{run['rounds']} rounds. {run['device']}, commit {run['commit']}, {run['date'][:10]}.")
    return "\n".join(lines)


def rasters():
    """The table of measured times and bytes of the GEMM with other raster groups than the usual ones."""
    lines = ["| seed | problems | compared | other groups | time, mean | least | most | slower by 1 % | bytes, all | most | more by 1 % |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    about = ""
    for file in sorted((ROOT / "bench/gemm").glob("*-rasters-*.json")):
        run = json.loads(file.read_text(encoding="utf-8"))
        for name, summary in run["summary"].items():
            if summary["problems"] == 0:
                lines.append(f"| {run['seed']} | {run['problems']} | {name} | 0 | | | | | | | |")
                continue
            lines.append(f"| {run['seed']} | {run['problems']} | {name} | {summary['problems']} | {summary['mean']:.3f} | "
                         f"{summary['least']:.3f} | {summary['most']:.3f} | {summary['slower']} | {summary['bytes']:.3f} | "
                         f"{summary['most_bytes']:.3f} | {summary['more']} |")
        about = f"\n{run['gpu']}, commit {run['commit']}, {run['date'][:10]}."
    return "\n".join([*lines, about])


def replaced(text, name, replacement):
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"{DOCUMENT} has no place for {name}")
    return pattern.sub(lambda match: f"{match.group(1)}{replacement.strip()}\n{match.group(2)}", text)


def main():
    untax = sys.argv[1]
    for name, arguments in PICTURES.items():
        output(untax, "locality", *arguments, "--device", "mi300x", "--svg", str(ROOT / "docs" / name))
    table, missed = searched(untax)
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in {"published": output(untax, "locality", "published"),
                       "sweeps": output(untax, "locality", "sweeps", "--seeds", "3"), "searched": table, "counted": counted(),
                       "sides": sides(), "rasters": rasters()}.items():
        text = replaced(text, name, part)
    DOCUMENT.write_text(text, encoding="utf-8")
    sys.exit("\n".join(missed) or None)


if __name__ == "__main__":
    main()
