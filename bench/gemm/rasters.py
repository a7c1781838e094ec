#!/usr/bin/env python3
"""Judges the raster bands that a GEMM takes on a GPU against the usual ones, and those of a search against both.

    python3 bench/gemm/rasters.py build/cuda/untax --problems 40 --seed 1 --out rasters.json

Runs `untax bench gemm --rasters` twice: for times, and under Nsight Compute (ncu), which counts the bytes that one
product of each plan reads from memory, with empty caches. Fails if the chosen bands are slower than the usual ones by
more than 1 %, or read more.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import nsight  # in the folder above

BYTES = "dram__bytes_read.sum"
SLOWER, MORE = 1.01, 1.01
USUAL = 8  # tiles in a band


def bench(before, options, repeat, file):
    command = [*before, options.untax, "bench", "gemm", "--rasters", "--problems", str(options.problems), "--seed",
               str(options.seed), "--least-rows", str(options.least_rows), "--repeat", str(repeat), "--json", str(file)]
    # The status is 1 if a bar of the suite is missed.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return json.loads(file.read_text(encoding="utf-8")), done.stdout


def usual(plans):
    return next((p for p in plans if p["raster_group"] == USUAL), plans[0])


def judged(rows, first, other):
    """Ratios of times and bytes of two plans, for the problems at which their bands differ."""
    times, reads = [], []
    for row in rows:
        a, b = first(row["plans"]), other(row["plans"])
        if a["raster_group"] == b["raster_group"]:
            continue
        times.append(a["seconds"] / b["seconds"])
        reads.append((a["bytes"], b["bytes"]))
        print(f"{row['m']:6} {row['n']:6} {row['k']:6}  bands of {b['raster_group']:2}, now {a['raster_group']:2}: "
              f"time {times[-1]:.3f}, bytes {a['bytes'] / b['bytes']:.3f}")
    summary = {"problems": len(times), "slower": sum(t > SLOWER for t in times), "more": sum(a > MORE * b for a, b in reads)}
    if times:
        summary |= {"mean": math.exp(sum(map(math.log, times)) / len(times)), "least": min(times), "most": max(times),
                 "bytes": sum(a for a, _ in reads) / sum(b for _, b in reads), "most_bytes": max(a / b for a, b in reads)}
    print(summary, flush=True)
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("untax")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least-rows", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--out", type=pathlib.Path, help="where the rows go as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bench.json"
        timed, _ = bench([], options, options.repeat, file)
        # Graphs are profiled as a whole, and the filter of names excludes them. The remaining launches are the products
        # to look at: one of the chosen plan when a problem begins, and then one of each plan.
        ncu = [*nsight.OPTIONS, "--graph-profiling", "graph", "--kernel-name", "gemm_kernel", "--metrics", BYTES]
        again, printed = bench(ncu, options, 1, file)
    launches = [launch[BYTES] for launch in nsight.launches(printed, [BYTES])]
    rows, at = [], 0
    for row, same in zip(timed["gemms"], again["gemms"]):
        plans = row["plans"]
        assert [p["raster_group"] for p in plans] == [p["raster_group"] for p in same["plans"]]
        for plan, read in zip(plans, launches[at + 1:at + 1 + len(plans)]):
            plan["bytes"] = read
        at += 1 + len(plans)
        kept = ("raster_group", "seconds", "bytes")
        rows.append({**{key: row[key] for key in ("m", "n", "k")}, "plans": [{key: p[key] for key in kept} for p in plans]})
    assert at == len(launches), f"{len(launches)} products were counted, {at} expected"
    summary = {"taken over usual": judged(rows, lambda plans: plans[0], usual),
               "found over taken": judged(rows, lambda plans: plans[-1] if plans[-1] is not usual(plans) else plans[0],
                                          lambda plans: plans[0])}
    if options.out:
        kept = {key: timed[key] for key in ("gpu", "commit", "date") if key in timed}
        options.out.write_text(json.dumps({**kept, "seed": options.seed, "problems": len(rows), "summary": summary,
                                           "rows": rows}, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if summary["taken over usual"]["slower"] or summary["taken over usual"]["more"] else 0)


if __name__ == "__main__":
    main()
