"""GEMM + all-scatter in four patterns: every rank multiplies its columns of c = a @ b, and all ranks get all of c.

    torchrun --nproc-per-node 2 examples/python/triton/gemm_all_scatter.py     # with TRITON_INTERPRET=1 on CPUs
"""

import torch
import triton
import triton.language as tl
from tiles import SIZES, close_run, expect_close, open_run, operands, part, place, product, settle

import untax
import untax.triton as ut


@triton.jit(do_not_specialize=["run"])
def multiply(a, b, c, done, m, n, k, run, context, FLAGS: tl.constexpr,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A program computes a tile of this rank's columns in its own c."""
    tile = tl.program_id(0)
    row, column = place(tile, m, n, BLOCK_M, BLOCK_N)
    total = product(a, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    at, inside = part(row, column, m, n, n * context.size, n * context.rank, BLOCK_M, BLOCK_N)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=inside)
    if FLAGS:
        ut.signal(done + tile, run, context.rank, context, scope="gpu")


@triton.jit
def send(c, at, inside, ready, arrived, run, context):
    """Copies a tile from this rank's c to that of every peer."""
    for step in range(1, context.size):
        peer = (context.rank + step) % context.size
        ut.wait(ready + peer, run, peer, context)
        ut.put(c + at, c + at, peer, context, mask=inside)
        ut.atomic_add(arrived + context.rank, 1, peer, context, sem="release")
    ut.atomic_add(arrived + context.rank, 1, context.rank, context, sem="release")


@triton.jit(do_not_specialize=["run"])
def scatter(c, done, ready, arrived, m, n, run, context, FLAGS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Programs take turns at the tiles; with FLAGS each waits for a tile's flag, without them the kernel follows the GEMM."""
    open_run(ready, run, context)
    for tile in range(tl.program_id(0), tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N), tl.num_programs(0)):
        if FLAGS:
            ut.wait(done + tile, run, context.rank, context, scope="gpu")
        row, column = place(tile, m, n, BLOCK_M, BLOCK_N)
        at, inside = part(row, column, m, n, n * context.size, n * context.rank, BLOCK_M, BLOCK_N)
        send(c, at, inside, ready, arrived, run, context)


@triton.jit(do_not_specialize=["run"])
def multiply_and_scatter(a, b, c, ready, arrived, m, n, k, run, context,
                         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Fused, sequential: the program that computes a tile stores it at all ranks."""
    open_run(ready, run, context)
    row, column = place(tl.program_id(0), m, n, BLOCK_M, BLOCK_N)
    total = product(a, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K).to(c.dtype.element_ty)
    at, inside = part(row, column, m, n, n * context.size, n * context.rank, BLOCK_M, BLOCK_N)
    for step in range(context.size):
        peer = (context.rank + step) % context.size
        ut.wait(ready + peer, run, peer, context)
        ut.store(c + at, total, peer, context, mask=inside)
        ut.atomic_add(arrived + context.rank, 1, peer, context, sem="release")


class GemmAllScatter:
    """A pattern for a problem. Runs are collective; c is in symmetric memory, and whole when the stream has done a run."""

    patterns = ("bulk_synchronous", "producer_consumer", "fused_sequential")

    def __init__(self, world, m, n, k, pattern, sizes=SIZES, senders=16):
        self.pattern, self.shape, self.sizes, self.run = pattern, (m, n, k), sizes, 0
        self.context = ut.context(world, f"gemm_all_scatter {pattern}"[:32])
        self.tiles = triton.cdiv(m, sizes["BLOCK_M"]) * triton.cdiv(n, sizes["BLOCK_N"])
        self.c = world.empty((m, n * world.size), torch.float16)
        self.ready, self.arrived, self.done = (world.zeros(count, torch.int64) for count in (world.size, world.size, self.tiles))
        self.blocks = {name: size for name, size in sizes.items() if name not in ("BLOCK_K", "num_stages")}
        self.senders = min(senders, self.tiles)
        self.beside = torch.cuda.Stream(priority=-1) if world.device >= 0 and pattern == "producer_consumer" else None

    def __call__(self, a, b):
        self.run += 1
        common = (*self.shape, self.run, self.context)
        moved = (self.c, self.done, self.ready, self.arrived, *self.shape[:2], self.run, self.context)
        if self.pattern == "fused_sequential":
            multiply_and_scatter[(self.tiles,)](a, b, self.c, self.ready, self.arrived, *common, **self.sizes)
        elif self.beside is None:  # one after the other; an interpreter has no streams
            flags = self.pattern == "producer_consumer"
            multiply[(self.tiles,)](a, b, self.c, self.done, *common, FLAGS=flags, **self.sizes)
            scatter[(self.tiles,)](*moved, FLAGS=flags, **self.blocks)
        else:  # the senders last, since their kernel may be loaded while this one runs; their stream has a high priority
            self.beside.wait_stream(torch.cuda.current_stream())
            multiply[(self.tiles,)](a, b, self.c, self.done, *common, FLAGS=True, **self.sizes)
            with torch.cuda.stream(self.beside):
                scatter[(self.senders,)](*moved, FLAGS=True, **self.blocks)
            torch.cuda.current_stream().wait_stream(self.beside)
        close_run[(1,)](self.arrived, self.tiles * self.run, self.context)
        return self.c


def main(world, m=96, n=64, k=64, runs=2, kind=GemmAllScatter):
    for pattern in kind.patterns:
        multiplied = kind(world, m, n, k, pattern)
        for run in range(runs):
            a, b = operands(world, m, n, k, seed=run)
            c = multiplied(a, b[world.rank])
            expect_close(c, a.float() @ torch.cat(b, 1).float(), pattern)
        settle(world)


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: the products are right\n", end="")
