#!/usr/bin/env python3
"""Looks for the parameters of the planner's model of a GEMM, and judges them on problems that it has not seen.

  fit.py judge FILE...                 what the plans that the parameters choose cost, beside the best that was timed
  fit.py fit FILE... [--rounds N]      parameters that choose better: found on every other problem and judged on the
                                       rest; then found on all, and written to cost.def
  fit.py pack FILE OUT                 the same in a fifth of the bytes, to keep
  fit.py kernels FILE...               what each kernel is worth that no operator needs: what choosing the best would
                                       cost without it

FILE is what `untax bench gemm --every-plan --json FILE` wrote.
"""

import argparse
import dataclasses
import json
import math
import random
import sys

import model

OPERATORS = ["gather_kernels", "scatter_kernels"]
FIELDS = [f.name for f in dataclasses.fields(model.Plan)]


STAY = 0.001  # the cost of moving parameters; without it the choices for the held-out half were worse
USUAL_RASTER = 8  # tiles: the raster group of plans for which no other group saves reads from memory
UNSURE = 0.02  # plans whose predicted times differ by less than this part count as equal: see loss
PACKED = FIELDS[3:] + ["seconds"]


class Problem:
    def __init__(self, record):
        self.m, self.n, self.k = record["m"], record["n"], record["k"]
        self.library = record["library_seconds"]["median"]
        self.plans = []
        for p in record.get("plans", []):
            p = dict(zip(PACKED, p)) if isinstance(p, list) else p
            shape = {"m": self.m, "n": self.n, "k": self.k}
            self.plans.append((model.Plan(**{f: {**shape, **p}[f] for f in FIELDS}), p["seconds"]))
        self.usual = self.without_rasters()
        self.best = min((seconds for _, seconds in self.usual), default=None)

    def without_rasters(self):
        """The plans that the planner may choose. Of plans that differ only in the raster group, those with the usual
        group remain."""
        usual_plans = {}
        for p, seconds in self.plans:
            usual = dataclasses.replace(p, raster_group=USUAL_RASTER)
            if p.kernel and not p.too_wide and (p == usual or usual not in usual_plans):
                usual_plans[usual] = (p, seconds)
        return list(usual_plans.values())

    def chosen(self, values):
        return min(self.usual, key=lambda p: model.cycles(p[0], values))


def problems_of(file):
    """The problems of files that have plans whose kernels still exist."""
    with open(file, encoding="utf-8") as text:
        problems = [Problem(record) for record in json.load(text)["gemms"]]
    return [p for p in problems if p.usual]


def mean(logs):
    logs = list(logs)
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def loss(problems, values):
    """The regret of choosing by the model, plus a little of the error of its times. A choice that depends on the last
    percent of the model is luck, and a search would fit that luck. So all plans count, each the less the slower it is
    by the model (softmin). Up to 128 rows plans differ less, and problems count half."""
    total = 0.0
    for problem in problems:
        times = [(math.log(model.cycles(p, values) + values["launch"]), seconds) for p, seconds in problem.usual]
        least = min(times)[0]
        chosen = weights = 0.0
        for logarithm, seconds in times:
            weight = math.exp((least - logarithm) / UNSURE)
            regret = math.log(seconds / problem.best)
            # A regret of more than 5 % costs more than proportionally.
            chosen += weight * min(1.0, regret + 3 * max(0.0, regret - 0.05))
            weights += weight
        off = [logarithm - math.log(1.755e9 * s) for logarithm, s in times if s < 1.6 * problem.best]
        problem_loss = chosen / weights + 0.1 * sum(abs(o) for o in off) / len(off)
        total += problem_loss if problem.m > 128 else problem_loss / 2
    return total / len(problems)


def fitted(problems, gpu, rounds, seed):
    start = model.parameters(gpu)

    def cost(values):
        """A few problems do not determine all numbers. A number that changes nothing stays as it is."""
        moved = sum(math.log(values[name] / start[name]) ** 2 for name in values if start[name] and name != "launch")
        return loss(problems, values) + STAY * moved

    values = dict(start)
    best = cost(values)
    rng = random.Random(seed)
    widths = {name: 0.15 for name in values}
    for turn in range(rounds):
        for name in rng.sample(sorted(values), len(values)):
            improved = False
            for factor in (1 + widths[name], 1 / (1 + widths[name])):
                trial = dict(values)
                trial[name] = values[name] * factor if values[name] else rng.choice([5.0, 20.0])
                trial_cost = cost(trial)
                if trial_cost < best - 1e-7:
                    best, values, improved = trial_cost, trial, True
                    break
            widths[name] = min(0.5, widths[name] * (1.3 if improved else 0.7))
        print(f"round {turn + 1}: {best:.5f}", file=sys.stderr)
        if max(widths.values()) < 0.005:
            break
    return values


def judge(problems, values, title, verbose=False):
    groups = {"to 16": (0, 16), "to 64": (16, 64), "to 128": (64, 128), "to 256": (128, 256), "to 512": (256, 512),
              "to 1024": (512, 1024), "to 2048": (1024, 2048), "above": (2048, 1 << 30), "above 128": (128, 1 << 30)}
    print(f"{title}: {len(problems)} problems")
    print("  m           number  chosen / best  worst  library / chosen  least  library / best")
    for name, (low, high) in groups.items():
        some = [p for p in problems if low < p.m <= high]
        if not some:
            continue
        chosen = [p.chosen(values)[1] for p in some]
        regret = [c / p.best for c, p in zip(chosen, some)]
        ratio = [p.library / c for c, p in zip(chosen, some)]
        print(f"  {name:<10} {len(some):>7} {mean(map(math.log, regret)):>14.3f} {max(regret):>6.2f}"
              f" {mean(map(math.log, ratio)):>17.3f} {min(ratio):>6.2f}"
              f" {mean(math.log(p.library / p.best) for p in some):>15.3f}")
    if verbose:
        for p in sorted(problems, key=lambda p: p.library / p.chosen(values)[1])[:25]:
            taken, seconds = p.chosen(values)
            best = min(p.usual, key=lambda q: q[1])
            print(f"  {p.m} x {p.n} x {p.k}: library {p.library * 1e6:.1f} us, {taken.kernel} {taken.way} {seconds * 1e6:.1f},"
                  f" best {best[0].kernel} {best[0].way} {best[1] * 1e6:.1f}")


def kernels(problems):
    """Removes kernels, the least useful first."""
    left = {p.kernel for problem in problems for p, _ in problem.usual}
    needed = {name for listed in OPERATORS for name in model.kernels_of(listed).values()}

    def cost(some):
        logs = []
        for problem in problems:
            times = [s for p, s in problem.usual if p.kernel in some]
            logs.append(math.log((min(times) if times else 2 * problem.best) / problem.best))
        return logs

    while left - needed:
        fitted = cost(left)
        trials = []
        for name in left - needed:
            logs = cost(left - {name})
            more = [b - a for a, b in zip(fitted, logs)]
            trials.append((sum(more) / len(more) + 0.02 * max(more), sum(more) / len(more), max(more), name, logs))
        _, average, most, name, logs = min(trials)
        left.remove(name)
        print(f"without {name:<28} {100 * average:6.3f} % in the mean, {100 * most:5.1f} % at most;"
              f" {len(left)} left: {100 * sum(logs) / len(logs):.3f} %")


def pack(file, out):
    with open(file, encoding="utf-8") as text:
        document = json.load(text)
    for gemm in document["gemms"]:
        gemm["plans"] = [[float(f"{p[f]:.4g}") if f == "seconds" else p[f] for f in PACKED] for p in gemm.get("plans", [])]
    document["columns"] = PACKED
    with open(out, "w", encoding="utf-8") as text:
        json.dump(document, text, separators=(",", ":"))
        text.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["judge", "fit", "pack", "kernels"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--gpu", choices=model.GPUS, default="h200", help="whose column of cost.def")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.verb == "pack":
        pack(*args.files)
        return
    problems = [problem for file in args.files for problem in problems_of(file)]
    if args.verb == "kernels":
        kernels(problems)
        return
    if args.verb == "judge":
        judge(problems, model.parameters(args.gpu), "all", verbose=True)
        return
    order = random.Random(args.seed).sample(problems, len(problems))
    seen, unseen = order[::2], order[1::2]
    judge(unseen, model.parameters(args.gpu), "before, not fitted on")
    values = fitted(seen, args.gpu, args.rounds, args.seed)
    judge(seen, values, "fitted on")
    judge(unseen, values, "not fitted on")
    model.write_parameters(fitted(problems, args.gpu, args.rounds, args.seed), args.gpu)
    judge(problems, model.parameters(args.gpu), "written, fitted on all")


if __name__ == "__main__":
    main()
