#!/usr/bin/env python3
"""Compares two files of `untax bench shared` or `untax bench gemm`, of two builds: time of the second over the first.

    bench/compare.py before.json after.json [--recorded]

--recorded takes of the second the times while a trace was recorded, which such files have that were made with --trace.
Several files of a build, made in turn with those of the other, are given separated by commas: each figure is then the
median of its medians. Prints the geometric mean, by operator and pattern, and what is slower by most.
"""
import json
import math
import statistics
import sys

SHOWN = 8


def figures(paths, times="seconds"):
    """Seconds by problem and pattern, from the times with this name."""
    results = {}
    for path in paths.split(","):
        document = json.load(open(path, encoding="utf-8"))
        for problem in document.get("problems") or document["gemms"]:
            shape = " ".join(str(problem[key]) for key in ("operator", "ranks", "m", "n", "k", "dtype", "gather")
                             if key in problem)
            for figure in problem.get("figures", [problem]):
                family = f"{problem.get('operator', 'gemm')}, {figure.get('by', 'gemm')}"
                if times in figure:
                    results.setdefault((family, shape), []).append(figure[times]["median"])
    return {key: statistics.median(all_of) for key, all_of in results.items()}


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    recorded = sys.argv[3:] == ["--recorded"]
    if len(sys.argv) != 3 + recorded:
        sys.exit(__doc__)
    before = figures(sys.argv[1])
    after = figures(sys.argv[2], "traced_seconds" if recorded else "seconds")
    ratios = {key: after[key] / before[key] for key in before if key in after}
    if not ratios:
        sys.exit("the files have no figure in common")
    families = {}
    for (family, _), ratio in ratios.items():
        families.setdefault(family, []).append(ratio)
    for family, some in sorted(families.items()):
        print(f"{family:<48} {len(some):4}  {mean(some):.4f}  most {max(some):.4f}")
    print(f"{'all':<48} {len(ratios):4}  {mean(ratios.values()):.4f}")
    for (family, shape), ratio in sorted(ratios.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"  {ratio:.4f}  {family}, {shape}")
    if len(ratios) < max(len(before), len(after)):
        print(f"{len(before)} figures before, {len(after)} after: only what both have is compared")


if __name__ == "__main__":
    main()
