#!/usr/bin/env python3
"""The verbs of untax.triton between GPUs: whether every example of examples/python/triton is right and a wait in vain is told,
the rates of loads from and stores to a peer, and GEMM + all-scatter in Triton beside untax's operator and beside torch.matmul
with NCCL. Two processes, or more, with a GPU each:

    torchrun --nproc-per-node 2 bench/triton_verbs.py --json FILE
    torchrun --nproc-per-node 2 bench/triton_verbs.py --rma FILE     # of `untax bench rma --json FILE`: beside its rates
    TRITON_INTERPRET=1 torchrun --nproc-per-node 2 bench/triton_verbs.py      # tiny, on CPUs

A rate is that of rank 0 and rank 1 alone, in one launch that moves the bytes several times, as `untax bench rma` has it; the
copy is torch's, of the GPU's copy engines. Products are timed in turn, eagerly, of the slowest rank; NCCL's gather leaves the
columns of ranks one behind the other, and "in place" adds the copy that puts them side by side, as the others have them. What
does not fit in --seconds is left out.
"""
import argparse
import functools
import importlib
import json
import sys
from pathlib import Path

from layers.timing import Clock, Timer, agreed, first_fault, without_multicast

without_multicast()

import torch
import torch.distributed as dist
import triton
import triton.language as tl

import untax
import untax.torch
import untax.triton as ut
from layers import record
from untax.tensors import _Bytes

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/python/triton"
sys.path.insert(0, str(EXAMPLES))

MEGA = 1 << 20
# rows, columns of all ranks together, depth: those of `untax bench gemm-all-scatter --suite prefill`
SHAPES = [(8192, n, k) for n, k in ((8192, 28672), (4608, 36864), (4096, 12288), (4096, 14336), (3584, 14336), (8192, 30720))]


@triton.jit(do_not_specialize=["turns"])
def move(to, source, count, span, turns, peer, context, PULLS: tl.constexpr, BLOCK: tl.constexpr):
    """Moves `count` elements, a multiple of BLOCK, `turns` times, each time further in `span` elements."""
    for turn in range(turns):
        begin = tl.cast(turn, tl.int64) * count % span
        for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
            i = begin + first + tl.arange(0, BLOCK)
            if PULLS:
                ut.get(to + i, source + i, peer, context)
            else:
                ut.put(to + i, source + i, peer, context)


def separately(memory, body):
    """The result of `body` in a world of its own, and the error of the first rank that had one; the next world is not
    affected."""
    result = fault = None
    try:
        with untax.World.from_torch(memory=memory) as world:
            world.use_device()
            result = body(world)
    except Exception as error:  # any error is the result
        fault = f"{type(error).__name__}: {error}".split("\n")[0]
    return result, first_fault(fault)


def checked(memory):
    """The result of each example: "right", or its error."""
    results = {}
    for path in sorted(EXAMPLES.glob("*.py")):
        module = importlib.import_module(path.stem)
        if hasattr(module, "main"):
            results[path.stem] = separately(memory, module.main)[1] or "right"
    return results


@triton.jit
def wait_in_vain(counter, context):
    ut.wait(counter, 5, (context.rank + 1) % context.size, context)


def told(memory):
    """Whether the host reports a wait without a signal. Such a wait stops its world, so the world is made for it."""
    world = untax.World.from_torch(memory=memory, wait_limit=1)
    try:
        counter = world.full(1, 2, torch.int64)
        wait_in_vain[(1,)](counter, ut.context(world, "wait in vain"))
        if world.device >= 0:
            torch.cuda.synchronize()
        world.check()
    except (untax.Timeout, untax.Aborted) as error:
        text = str(error).split("\n")[0]
        if "wait in vain wait_until, needs 5, has 2" in text:
            return text
        raise
    finally:
        world.close()
    raise SystemExit("a wait without a signal ended without an error")


class Mover:
    """Moves bytes between ranks 0 and 1."""

    def __init__(self, world, most):
        self.world, self.context = world, ut.context(world, "move")
        self.span = most  # elements, of four times the most bytes
        self.source, self.target = (world.empty(self.span, torch.int32) for _ in range(2))
        self.cuda = world.device >= 0
        # The numbers of a rank differ from each other and from those of the other ranks.
        self.source.copy_(torch.arange(self.span, dtype=torch.int32) + world.rank)
        self.ways = ["store", "load"]
        if self.cuda and torch.cuda.device_count() > 1:  # the process sees the peer's GPU, whose memory torch wraps as
                                                         # a tensor
            address = world._core.translate(self.target.data_ptr(), 1 - world.rank)
            for gpu in range(torch.cuda.device_count()):
                tensor = torch.as_tensor(_Bytes(address, 4 * self.span, None), device=f"cuda:{gpu}")
                if tensor.data_ptr() == address:  # not a copy on another GPU
                    self.there = tensor.view(torch.int32)
                    self.ways.append("torch copy")
                    break

    def run(self, way, size, turns):
        count = size // 4
        if way == "torch copy":
            for turn in range(turns):
                begin = turn * count % self.span
                self.there[begin:begin + count].copy_(self.source[begin:begin + count], non_blocking=True)
            return
        block = min(max(triton.next_power_of_2(count // 264), 1024), 8192) if self.cuda else 1024
        programs = min(264, count // block)
        move[(programs,)](self.target, self.source, count, self.span, turns, 1 - self.world.rank, self.context,
                          PULLS=way == "load", BLOCK=block, num_warps=8)

    def seconds(self, way, size, timed):
        turns = min(max(64 * MEGA // size, 1), 64) if self.cuda else 1
        return timed(lambda: self.run(way, size, turns)) / turns

    def check(self, way, size):
        """The number of wrong elements that this rank sees after a transfer by rank 0. Calls `settle` before and after
        it."""
        self.target.fill_(-1)
        self.settle()
        if self.world.rank == 0:
            self.run(way, size, 1)
        self.settle()
        if self.world.rank == (0 if way == "load" else 1):
            other = 1 - self.world.rank
            expected = torch.full_like(self.target, -1)
            expected[:size // 4] = torch.arange(size // 4, dtype=torch.int32, device=self.target.device) + other
            if not torch.equal(self.target, expected):
                return f"rank {self.world.rank}: {way} of {size} bytes: wrong words"
        return None

    def settle(self):
        if self.cuda:
            torch.cuda.synchronize()
        self.world.check()
        self.world.barrier()


def alone(run):
    """Seconds of work on this GPU alone."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return 1e-3 * begin.elapsed_time(end)


def rates(world, repeats, rma):
    cuda = world.device >= 0
    sizes = [MEGA // 16 * 4**i for i in range(6)] if cuda else [MEGA // 16]
    mover = Mover(world, sizes[-1])
    figures = []
    for size in sizes:
        for way in list(mover.ways):
            fault = mover.check(way, size)
            if agreed(fault, mover.target.device):
                continue
            if way != "torch copy":
                raise SystemExit(fault or f"rank {world.rank}: another rank received wrong words")
            mover.ways.remove(way)  # the rival's transfer, which has no rate then
            print(fault or f"{way} is left out: another rank has wrong words", file=sys.stderr)
        if world.rank == 0 and cuda:
            times = {way: [] for way in mover.ways}
            for repeat in range(-1, repeats):
                for way in mover.ways:
                    took = mover.seconds(way, size, alone)
                    if repeat >= 0:
                        times[way].append(took)
            for way, seconds in times.items():
                seconds.sort()
                median = seconds[len(seconds) // 2]
                figure = {"way": way, "bytes": size, "seconds": median, "bytes_per_second": size / median}
                if (way, size) in rma:
                    figure["of_rma"] = size / median / rma[way, size]
                figures.append(figure)
        mover.settle()
    return figures


def known_rates(path):
    """The best rate of `untax bench rma` by way and size."""
    best = {}
    if path:
        for figure in json.loads(Path(path).read_text(encoding="utf-8"))["figures"]:
            way = {"put": "store", "get": "load"}.get(figure["what"])
            if way and figure["table"] == "sizes":
                place = way, figure["bytes"]
                best[place] = max(best.get(place, 0), figure["bytes_per_second"])
    return best


def product(world, shape, timer, rounds):
    """Seconds of each way."""
    from gemm_all_scatter import GemmAllScatter
    from gemm_all_scatter_queue import QueuedGemmAllScatter
    from tiles import expect_close, operands

    m, columns, k = shape
    n = columns // world.size
    a, b = operands(world, m, n, k, seed=m + n + k)
    expected, own = a.float() @ torch.cat(b, 1).float(), b[world.rank]
    stacked = torch.empty((world.size * m, n), dtype=a.dtype, device=a.device)

    def gathered():
        dist.all_gather_into_tensor(stacked, a @ own)
        return stacked

    def whole(stacked):
        return stacked.view(-1, m, n).transpose(0, 1).reshape(m, -1)

    calls = {}
    for kind in (GemmAllScatter, QueuedGemmAllScatter):
        for pattern in kind.patterns:
            calls[f"triton {pattern}"] = functools.partial(kind(world, m, n, k, pattern), a, own)
    calls |= {"untax": lambda: untax.torch.matmul_all_scatter(a, own), "NCCL": gathered, "NCCL in place": lambda: whole(gathered())}
    for way, call in calls.items():
        result = call()
        timer.synchronize()
        world.check()
        expect_close(whole(result) if way == "NCCL" else result, expected, way)
        world.barrier()
    measured = timer.measured({way: (lambda turn, call=call: call()) for way, call in calls.items()}, ["eager"], rounds)
    timer.synchronize()
    world.check()
    world.barrier()
    return {"calls": measured["calls"], "seconds": measured["eager"]["seconds"]}


def products(memory, shapes, clock, timer, rounds):
    rows = []
    for shape in shapes:
        if clock.left() < 0:
            break
        row, fault = separately(memory, lambda world, shape=shape: product(world, shape, timer, rounds))
        rows.append(dict(zip(("m", "n", "k"), shape, strict=True)) | ({"fault": fault} if fault else row))
        if timer.cuda:
            torch.cuda.empty_cache()
    return rows


def text_of(document):
    lines = [document["bounded_wait"]] + [f"{name}: {result}" for name, result in document["examples"].items()]
    for figure in document["rates"] or []:
        beside = f", {figure['of_rma']:.2f} of bench rma" if "of_rma" in figure else ""
        lines.append(f"{figure['way']}, {figure['bytes'] // 1024} KB: {1e-9 * figure['bytes_per_second']:.1f} GB/s{beside}")
    for row in document["products"]:
        fault = f": {row['fault']}" if "fault" in row else ""
        lines.append(f"GEMM + all-scatter, {row['m']} x {row['n']} x {row['k']}, us{fault}")
        lines += [f"  {way:28} {1e6 * s['median']:10.1f}" for way, s in row.get("seconds", {}).items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--rma", help="a file of `untax bench rma --json`, for the ratio of each rate to the best of its methods")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=70, help="after which no further product is begun")
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(dist.get_node_local_rank())
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    else:
        dist.init_process_group("gloo")
    device = f"cuda:{torch.cuda.current_device()}" if cuda else "cpu"
    clock, timer = Clock(options.seconds, device), Timer(device)
    memory = "cuda" if cuda else "host"
    document = {"format": "untax-triton-verbs", **record.place(device), "triton": triton.__version__, "bounded_wait": told(memory),
                "examples": checked(memory)}
    document["rates"], fault = separately(memory, lambda world: rates(world, 2 * options.rounds, known_rates(options.rma)))
    document["products"] = products(memory, SHAPES if cuda else [(64, 128, 64)], clock, timer, options.rounds)
    faults = [fault, *(result for result in document["examples"].values() if result != "right"),
              *(row.get("fault") for row in document["products"])]
    if dist.get_rank() == 0:
        print(text_of(document))
        if options.json:
            Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    untax.torch.close()
    dist.destroy_process_group()
    if any(faults):
        raise SystemExit(f"these checks failed: {'; '.join(text for text in faults if text)}")


if __name__ == "__main__":
    main()
