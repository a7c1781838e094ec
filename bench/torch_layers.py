#!/usr/bin/env python3
"""Times the projections and the whole layers of Llama and Qwen models, tensor-parallel, called from PyTorch: torch's matmul
with NCCL, torch's asynchronous tensor parallelism, torch's all-reduces on symmetric memory, and untax as docs/python.md
says to call it, at its defaults. A process for each GPU:

    torchrun --nproc-per-node 2 bench/torch_layers.py --json FILE
    torchrun --nproc-per-node 2 bench/torch_layers.py --draw 40 --seed 1    # token counts drawn at random
    torchrun --nproc-per-node 2 bench/torch_layers.py --device cpu --tokens 4 --shrink 16

Every figure is the median of rounds in which all ways are timed in turn, of the slowest rank, eagerly and in CUDA graphs.
Every result is compared with a reference in fp32 first. NVLink multicast stays off unless NCCL_NVLS_ENABLE and
TORCH_SYMM_MEM_DISABLE_MULTICAST say otherwise; the JSON file records both.
"""
import argparse
import json
import random
import sys
from math import exp, log

from layers.timing import Clock, Timer, agreed, without_multicast

without_multicast()

import torch
import torch.distributed as dist

import untax.torch
from layers import checks, models, projections, record, whole

DECODE, PREFILL = [1, 16, 64, 256], [512, 1024, 2048, 4096, 8192]
NO_RIVALS = ("matmul", "no communication")
BEHIND = whole.BEHIND  # ends the names of ways that have untax's attention
# Limits for bf16 results: sums are rounded once or twice, an element by 2^-9 of up to five times the usual size in its
# row.
LIMITS = {torch.bfloat16: (1e-2, 8e-2), torch.float32: (1e-4, 1e-3)}


def factor(seconds):
    """The best rival's time over the best of untax; None if one of them has no time."""
    ours = [s["median"] for way, s in seconds.items() if way.startswith("untax")]
    others = [s["median"] for way, s in seconds.items() if not way.startswith("untax") and way not in NO_RIVALS]
    return min(others) / min(ours) if ours and others else None


def judged(rows, mode):
    """Lines with the least factors of the project's bars, at 2048 and more tokens of prefill and in decode."""
    def least(text, pairs, bar):
        pairs = [(other / ours, row) for other, ours, row in pairs]
        if not pairs:
            return []
        value, row = min(pairs, key=lambda pair: pair[0])
        return [f"{text}, {mode}: least {value:.3f} ({row['model']}, {row['tokens']} tokens), has to be at least {bar}: "
                + ("met" if value >= bar else "missed")]

    def mean(text, pairs, bar):
        factors = [other / ours for other, ours, _ in pairs]
        if not factors:
            return []
        value = exp(sum(map(log, factors)) / len(factors))
        return [f"{text}, {mode}: {value:.3f} in the geometric mean of {len(factors)}, has to be at least {bar}: "
                + ("met" if value >= bar else "missed")]

    def of(kind, other, ours, fewest=0, behind=False):
        for row in rows:
            seconds = {way: s["median"] for way, s in row[mode]["seconds"].items()}
            others = [t for way, t in seconds.items() if way.startswith(other) and way not in NO_RIVALS
                      and way.endswith(BEHIND) == behind]
            mine = [t for way, t in seconds.items() if way.startswith(ours)]
            if (row["what"], row["name"]) == kind and row["tokens"] >= fewest and others and mine:
                yield min(others), min(mine), row

    return (least("prefill layers of 2048 to 8192 tokens, best other / untax", of(
        ("layer", "prefill"), ("NCCL", "torch"), "untax", 2048), 1.05)
        + least("decode layers, torch's symmetric memory / all_reduce_rms_norm", of(
            ("layer", "decode"), "torch", "untax all_reduce_rms_norm"), 1.03)
        + mean("decode layers, best of torch's own / untax chain", of(
            ("layer", "decode"), ("NCCL", "torch"), "untax chain"), 1.30)
        + mean("decode layers, best with untax's attention / untax chain", of(
            ("layer", "decode"), ("NCCL", "torch"), "untax chain", behind=True), 1.12)
        + least("decode layers, best with untax's attention / untax chain", of(
            ("layer", "decode"), ("NCCL", "torch"), "untax chain", behind=True), 1.05))


class Bench:
    def __init__(self, chosen):
        self.chosen, self.device = chosen, chosen.device
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        if chosen.device == "cuda":
            torch.cuda.set_device(self.rank)
            self.device = f"cuda:{self.rank}"
        self.dtype = torch.bfloat16 if chosen.device == "cuda" else torch.float32
        self.modes = [mode for mode in chosen.modes if mode == "eager" or chosen.device == "cuda"]
        self.timer, self.clock = Timer(self.device), Clock(60 * chosen.minutes, self.device)
        self.rows, self.left_out, self.plans = [], [], []
        self.buffers, self.place = None, record.place(self.device)

    def tokens(self):
        """Counts of tokens for the projections."""
        if self.chosen.tokens:
            return self.chosen.tokens
        if not self.chosen.draw:
            return DECODE + PREFILL
        drawn = random.Random(self.chosen.seed)
        counts = [round(exp(drawn.uniform(log(16), log(8192)))) for _ in range(self.chosen.draw)]
        return [max(count // self.ranks, 1) * self.ranks for count in counts]

    def require_room(self, model, tokens):
        if self.device != "cpu":
            most = max(tokens) * model.hidden
            self.buffers = projections.Buffers(most, self.dtype, self.device, dist.group.WORLD.group_name)

    def projection(self, model, name, tokens):
        kind, columns, k = projections.problems(model)[name]
        if kind != "reduce" and tokens % self.ranks:
            return
        cell = projections.Projection(kind, tokens, columns, k, self.dtype, self.device, self.buffers)
        expected = cell.reference()

        def check(way, call):
            return checks.require(call(0), expected, *LIMITS[self.dtype]) if way != "matmul" else call(0)

        self.record({"model": model.name, "what": "projection", "name": name, "tokens": tokens, "n": columns, "k": k},
                    cell.ways(), check)

    def layer(self, weights, tokens, keys, small):
        cell = whole.Layer(weights, tokens, keys, self.dtype, self.device, self.buffers, small)
        expected = cell.reference()
        limits = 3 * LIMITS[self.dtype][0], 6 * LIMITS[self.dtype][1]  # four products and attention, one after the
                                                                       # other

        def check(way, call):
            _, total = call(0)
            if way != "no communication":
                whole_result = total.shape[0] == tokens
                return checks.require(total, expected if whole_result else expected.chunk(self.ranks)[self.rank], *limits)

        row = {"model": weights.model.name, "what": "layer", "name": "prefill" if keys is None else "decode",
               "tokens": tokens}
        self.record(row | ({} if keys is None else {"keys": keys}), cell.ways(), check)

    def right(self, row, ways, check):
        """The ways whose results are right at every rank; the row gets the errors of the other ways."""
        kept, row["errors"] = {}, {}
        for way, call in ways.items():
            fault = None
            try:
                row["errors"][way] = check(way, call)
            except Exception as error:  # an error of a way is a result of the benchmark, and the next way is measured
                fault = f"{type(error).__name__}: {error}".split("\n")[0]
                print(f"rank {self.rank}: {row['model']}, {row['name']}, {row['tokens']} tokens, {way}: {error}",
                      file=sys.stderr, flush=True)
            if agreed(fault, self.device):
                kept[way] = call
            else:
                row.setdefault("wrong", {})[way] = fault or "wrong at another rank"
        row["errors"] = {way: error for way, error in row["errors"].items() if isinstance(error, tuple)}
        return kept

    def record(self, row, ways, check):
        row |= self.timer.measured(self.right(row, ways, check), self.modes, self.chosen.rounds)
        for mode in self.modes:
            if (times := factor(row[mode]["seconds"])) is not None:
                row[mode]["factor"] = times
        self.rows.append(row)
        self.write()
        if self.rank == 0:
            text = f"{row['model']}, {row['name']}, {row['tokens']} tokens"
            for mode in self.modes:
                times = ", ".join(f"{way} {1e6 * s['median']:.1f}" for way, s in row[mode]["seconds"].items())
                print(f"{text}, {mode}, us: {times}; factor {row[mode].get('factor', 0):.3f}", flush=True)
                for way, why in row[mode].get("not_run", {}).items():
                    print(f"  {way} is not run: {why}", flush=True)

    def cells(self, model, small):
        """The measurements of a model, in an order whose beginning is a fair sample."""
        counts = self.tokens()
        problems_of_run = [("projection", name, count) for count in counts for name in projections.problems(model)]
        if self.chosen.draw:
            return problems_of_run, lambda cell: self.projection(model, *cell[1:])
        weights = whole.Weights(model, self.dtype, self.device)
        for count in counts:
            decode = count <= 256 if self.chosen.tokens else count in DECODE
            keys = max(self.chosen.keys // self.chosen.shrink, 1) if decode else None
            problems_of_run.append(("layer", count, keys))
        only = self.chosen.only
        problems_of_run = [cell for cell in problems_of_run if only in (None, cell[0])]
        random.Random(5).shuffle(problems_of_run)

        def run(cell):
            if cell[0] == "projection":
                self.projection(model, *cell[1:])
            else:
                self.layer(weights, *cell[1:], small)

        return problems_of_run, run

    def small_operations(self):
        """Norm with residual, the gate, and rotary positions, compiled: all ways gain equally by that."""
        small = whole.add_norm, whole.gated, whole.rotate_and_append
        if self.device == "cpu":
            return small
        torch._dynamo.reset()
        return tuple(torch.compile(operation) for operation in small)

    def run(self):
        names = self.chosen.models
        for place, name in enumerate(names):
            model = models.load(name, self.ranks, self.chosen.shrink)
            torch.manual_seed(1000 * place + self.rank)
            self.require_room(model, self.tokens())
            cells, run = self.cells(model, self.small_operations())
            left = self.clock.left()
            until = left - max(left, 0) / (len(names) - place)  # an equal part of the remaining time for each model
            for turn, cell in enumerate(cells):
                if self.clock.left() < until:
                    self.left_out += [[name, *cell] for cell in cells[turn:]]
                    break
                run(cell)
            self.plans += untax.torch.explain()
            untax.torch.close()  # its plans, which graphs of the model before it held
            self.buffers = None
            if self.device != "cpu":
                torch.cuda.empty_cache()

    def summary(self):
        """The judged figures: the least and the mean factor, by kind and mode."""
        lines = []
        for kind in ("projection", "layer"):
            for mode in self.modes:
                rows = [row for row in self.rows if row["what"] == kind and "factor" in row[mode]]
                if not rows:
                    continue
                least = min(rows, key=lambda row: row[mode]["factor"])
                mean = exp(sum(log(row[mode]["factor"]) for row in rows) / len(rows))
                lines.append(f"{kind}s, {mode}: best other / untax {mean:.3f} in the geometric mean of {len(rows)}, worst "
                             f"factor {least[mode]['factor']:.3f} ({least['model']}, {least['name']}, {least['tokens']} tokens)")
        for mode in self.modes:
            lines += judged(self.rows, mode)
        if self.left_out:
            lines.append(f"{len(self.left_out)} measurements are left out, since {self.chosen.minutes} minutes were over")
        return lines

    def document(self):
        asked = {key: getattr(self.chosen, key) for key in ("draw", "seed", "rounds", "minutes", "shrink")}
        return ({"format": "untax-torch-layers"} | self.place
                | {"dtype": str(self.dtype).removeprefix("torch."), "asked": asked, "unit": "seconds of a call",
                   "limits": dict(zip(("whole", "element"), LIMITS[self.dtype], strict=True)),
                   "rows": self.rows, "left_out": self.left_out, "plans": self.plans})


    def write(self):
        """Writes the whole file after each measurement, so that an interrupted run leaves its measurements."""
        if self.rank == 0 and self.chosen.json:
            with open(self.chosen.json, "w", encoding="utf-8") as out:
                json.dump(self.document(), out, indent=1)
                out.write("\n")


def arguments():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    asked.add_argument("--models", nargs="+", default=["llama-3.1-8b", "qwen3-32b", "llama-3.1-70b"],
                       help="names of files in models/")
    asked.add_argument("--tokens", type=int, nargs="+", help="these counts of tokens alone; up to 256 a layer decodes")
    asked.add_argument("--keys", type=int, default=4096, help="how many keys a token of decode attends to")
    asked.add_argument("--draw", type=int, default=0, metavar="N",
                       help="projections alone, at N counts of tokens drawn from 16 to 8192")
    asked.add_argument("--seed", type=int, default=1, help="of --draw")
    asked.add_argument("--only", choices=("projection", "layer"))
    asked.add_argument("--modes", nargs="+", choices=("eager", "graph"), default=["eager", "graph"])
    asked.add_argument("--rounds", type=int, default=11)
    asked.add_argument("--minutes", type=float, default=5, help="what is not measured by then is left out, and listed")
    asked.add_argument("--shrink", type=int, default=1, help="divides all widths, for a test")
    asked.add_argument("--json", help="write the figures to this file")
    chosen = asked.parse_args()
    if chosen.rounds < 2:
        asked.error(f"--rounds is {chosen.rounds}; it has to be at least 2")
    return chosen


def main():
    chosen = arguments()
    dist.init_process_group("gloo" if chosen.device == "cpu" else "nccl")
    bench = Bench(chosen)
    with torch.inference_mode():
        bench.run()
    bench.write()
    if bench.rank == 0:
        print("\n".join(bench.summary()))
    dist.destroy_process_group()
    wrong = sum(len(row.get("wrong", {})) for row in bench.rows)
    if wrong:
        sys.exit(f"{wrong} results are wrong or missing; the lines above and the JSON file say which")


if __name__ == "__main__":
    main()
