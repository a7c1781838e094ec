#!/usr/bin/env python3
"""Judges the bands of tiles that a search finds for a GEMM against those that are taken, on a GPU.

    python3 bench/gemm/rasters.py build/cuda/untax --problems 40 --seed 1 --out rasters.json

Runs `untax bench gemm --rasters` twice: for times, and below Nsight Compute (ncu), which counts bytes from memory of one
product of each plan, from caches that are empty. Fails if a band that was found is slower by more than 1 %, or reads more.
"""
import argparse
import csv
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile

BYTES = "dram__bytes_read.sum"
SLOWER, MORE = 1.01, 1.01


def bench(before, options, repeat, file):
    command = [*before, options.untax, "bench", "gemm", "--rasters", "--problems", str(options.problems), "--seed",
               str(options.seed), "--least-rows", str(options.least_rows), "--repeat", str(repeat), "--json", str(file)]
    # The status is 1 where a bar of the suite is missed.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return json.loads(file.read_text(encoding="utf-8")), done.stdout


def counted(printed):
    """Bytes of each launch, from what ncu prints with --csv --page raw."""
    lines = printed.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    units, *rows = csv.DictReader(io.StringIO("\n".join(lines[begin:])))
    factor = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}[units[BYTES]]
    return [factor * float(row[BYTES].replace(",", "")) for row in rows]


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
        # Graphs as a whole, which the name leaves out: what is left are the products that are looked at, one of the
        # plan that is taken when a problem begins, and then one of each plan.
        ncu = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--graph-profiling", "graph", "--kernel-name", "gemm_kernel",
               "--metrics", BYTES]
        again, printed = bench(ncu, options, 1, file)
    launches = counted(printed)
    rows, at = [], 0
    for row, same in zip(timed["rows"], again["rows"]):
        plans = row["plans"]
        assert [p["raster_group"] for p in plans] == [p["raster_group"] for p in same["plans"]]
        read = launches[at + 1:at + 1 + len(plans)]
        at += 1 + len(plans)
        if len(plans) == 1:
            continue
        taken, found = plans
        rows.append({**{key: row[key] for key in ("m", "n", "k")}, "taken": taken["raster_group"],
                     "found": found["raster_group"], "time": found["seconds"] / taken["seconds"],
                     "bytes_taken": read[0], "bytes_found": read[1]})
    assert at == len(launches), f"{len(launches)} products were counted, {at} expected"
    for row in sorted(rows, key=lambda r: -r["time"]):
        print(f"{row['m']:6} {row['n']:6} {row['k']:6}  bands of {row['taken']:2}, found {row['found']:2}: "
              f"time {row['time']:.3f}, bytes {row['bytes_found'] / row['bytes_taken']:.3f}")
    mean = math.exp(sum(math.log(r["time"]) for r in rows) / len(rows)) if rows else 1
    less = sum(r["bytes_found"] for r in rows) / sum(r["bytes_taken"] for r in rows) if rows else 1
    slower = [r for r in rows if r["time"] > SLOWER]
    more = [r for r in rows if r["bytes_found"] > MORE * r["bytes_taken"]]
    print(f"{len(rows)} of {len(timed['rows'])} problems have other bands: times {mean:.3f} in the geometric mean, "
          f"{len(slower)} slower by more than 1 %; bytes {less:.3f} in all, {len(more)} read more")
    if options.out:
        kept = {key: timed[key] for key in ("device", "commit", "date") if key in timed}
        kept |= {"seed": options.seed, "problems": len(timed["rows"]), "mean": mean, "bytes": less, "slower": len(slower),
                 "more": len(more), "rows": rows}
        options.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if slower or more else 0)


if __name__ == "__main__":
    main()
