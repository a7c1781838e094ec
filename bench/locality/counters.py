#!/usr/bin/env python3
"""Compares the simulation of `untax locality` with the counters of a GPU, for kernels, sizes and orders drawn at
random.

    python3 bench/locality/counters.py build/cuda/untax --problems 40 --seed 1 --out counters.json

Runs `untax bench locality` twice: for times, and under Nsight Compute (ncu), which counts reads, reads that missed L2,
and bytes from memory. Prints the largest differences first, and fails if fewer than nine in ten hit rates are within 6
points or if the ranks of times correlate by less than 0.8.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import nsight  # in the folder above

# Sectors that multiprocessors request, and those that missed L2: both in one pass, so of the same run.
READS, MISSES, BYTES = ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                        "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum", "dram__bytes_read.sum")
POINTS, PART, CORRELATION = 6, 0.9, 0.8


def ranks(values):
    """Mean ranks of equal values."""
    order = sorted(range(len(values)), key=values.__getitem__)
    sums = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for at in order[begin:end]:
            sums[at] = (begin + end - 1) / 2
        begin = end
    return sums


def correlation(a, b):
    """The rank correlation (Spearman)."""
    a, b = ranks(a), ranks(b)
    middle = (len(a) - 1) / 2
    product = sum((x - middle) * (y - middle) for x, y in zip(a, b))
    squares = sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b)
    return product / squares ** 0.5 if squares > 0 else 0.0


def bench(before, untax, options, repeat, file):
    command = [*before, untax, "bench", "locality", "--problems", str(options.problems), "--seed", str(options.seed),
               "--repeat", str(repeat), "--json", str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(file.read_text(encoding="utf-8")), done.stdout


def judged(rows, launches):
    """The rows, each with the counts of its last launch."""
    at = 0
    for row in rows:
        at += row["launches"]
        launch = launches[at - 1]
        rate = 1 - launch[MISSES] / launch[READS] if launch[READS] else 0.0
        yield {**row, "read_hit_rate": rate, "memory_bytes": launch[BYTES]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("untax")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, help="where the rows go as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rows.json"
        timed, _ = bench([], options.untax, options, 5, file)
        ncu = [*nsight.OPTIONS, "--clock-control", "none", "--kernel-name", "replay_locality", "--metrics",
               f"{READS},{MISSES},{BYTES}"]
        below, printed = bench(ncu, options.untax, options, 1, file)
    rows = list(judged(below["rows"], nsight.launches(printed, (READS, MISSES, BYTES))))
    for row, timing in zip(rows, timed["rows"]):
        row["seconds"] = timing["seconds"]
        row["points"] = 100 * (row["simulated"]["read_hit_rate"] - row["read_hit_rate"])
    near = sum(abs(row["points"]) <= POINTS for row in rows) / len(rows)
    agreed = correlation([row["seconds"]["median"] for row in rows], [row["simulated"]["seconds"] for row in rows])
    for row in sorted(rows, key=lambda row: -abs(row["points"])):
        print(f"{row['points']:+6.1f} points  {row['kernel']:<20}{row['order']:<40}"
              f"counted {100 * row['read_hit_rate']:5.1f} %  {1e6 * row['seconds']['median']:9.1f} us, "
              f"simulated {1e6 * row['simulated']['seconds']:9.1f}")
    print(f"within {POINTS} points: {100 * near:.0f} % (at least {100 * PART:.0f}); ranks of times correlate by {agreed:.2f} "
          f"(at least {CORRELATION})")
    if options.out:
        about = {key: timed[key] for key in timed if key != "rows"}
        options.out.write_text(json.dumps({**about, "seed": options.seed, "near": near, "correlation": agreed, "rows": rows},
                                          indent=1) + "\n", encoding="utf-8")
    return 0 if near >= PART and agreed >= CORRELATION else 1


if __name__ == "__main__":
    sys.exit(main())
