"""All-gather + GEMM, pull and push: a is sharded by rows, and every rank multiplies all of it by its own b.

    torchrun --nproc-per-node 2 examples/python/triton/all_gather_gemm.py      # with TRITON_INTERPRET=1 on CPUs
"""

import torch
import triton
import triton.language as tl
from tiles import SIZES, expect_close, open_run, operands, part, place, product, settle

import untax
import untax.triton as ut


@triton.jit(do_not_specialize=["run"])
def pull(shard, b, c, ready, m, n, k, run, context, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A program loads the rows of its tile from the rank that has them, while it multiplies. m: rows of a shard."""
    open_run(ready, run, context)
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    peer = (context.rank + tl.program_id(0) // tiles) % context.size  # starts with its own shard, so ranks read different peers
    row, column = place(tl.program_id(0) % tiles, m, n, BLOCK_M, BLOCK_N)
    ut.wait(ready + peer, run, peer, context)
    total = product(ut.translate(shard, peer, context), b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    at, inside = part(row, column, m, n, n, 0, BLOCK_M, BLOCK_N)
    tl.store(c + peer * m * n + at, total.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["run"])
def push(shard, gathered, b, c, arrived, m, n, k, run, senders, context,
         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The first programs send the shard, BLOCK_M rows at a time; the others multiply what has arrived. `gathered` has two sets of
    rooms, used in turn. A peer reuses a room two runs later, after it has received rows of the run between: this rank sends
    those only when it has read all rooms of the run before."""
    chunks = tl.cdiv(m, BLOCK_M)
    room = gathered + tl.cast(run % 2, tl.int64) * context.size * m * k
    if tl.program_id(0) < senders:
        for chunk in range(tl.program_id(0), chunks, senders):
            for step in range(context.size):
                peer = (context.rank + step) % context.size
                for begin in range(0, k, BLOCK_K):
                    at, inside = part(chunk * BLOCK_M, begin, m, k, k, 0, BLOCK_M, BLOCK_K)
                    ut.put(room + context.rank * m * k + at, shard + at, peer, context, mask=inside)
                ut.signal(arrived + context.rank * chunks + chunk, run, peer, context)
    else:
        tiles = chunks * tl.cdiv(n, BLOCK_N)
        number = tl.program_id(0) - senders
        peer = (context.rank + number // tiles) % context.size
        row, column = place(number % tiles, m, n, BLOCK_M, BLOCK_N)
        ut.wait(arrived + peer * chunks + row // BLOCK_M, run, peer, context)
        total = product(room + peer * m * k, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
        at, inside = part(row, column, m, n, n, 0, BLOCK_M, BLOCK_N)
        tl.store(c + peer * m * n + at, total.to(c.dtype.element_ty), mask=inside)


class AllGatherGemm:
    """A way for a problem: a shard is [m, k], b [k, n], c [m * ranks, n]."""

    def __init__(self, world, m, n, k, way, sizes=SIZES, senders=16):
        self.way, self.shape, self.sizes, self.run = way, (m, n, k), sizes, 0
        self.context = ut.context(world, f"all_gather_gemm {way}")
        self.shard = world.empty((m, k), torch.float16)
        self.c = torch.empty((m * world.size, n), dtype=torch.float16, device=self.shard.device)
        chunks = triton.cdiv(m, sizes["BLOCK_M"])
        self.tiles = world.size * chunks * triton.cdiv(n, sizes["BLOCK_N"])
        self.senders = min(senders, chunks)
        self.counters = world.zeros(world.size * chunks, torch.int64)
        self.gathered = world.empty((2, world.size * m, k), torch.float16) if way == "push" else None

    def __call__(self, b):
        self.run += 1
        if self.way == "pull":
            pull[(self.tiles,)](self.shard, b, self.c, self.counters, *self.shape, self.run, self.context, **self.sizes)
        else:
            push[(self.senders + self.tiles,)](self.shard, self.gathered, b, self.c, self.counters, *self.shape, self.run,
                                               self.senders, self.context, **self.sizes)
        return self.c


def main(world, m=64, n=96, k=64, runs=3):
    for way in ("pull", "push"):
        multiplied = AllGatherGemm(world, m, n, k, way)
        for run in range(runs):
            a, b = operands(world, m * world.size, n, k, seed=run)
            multiplied.shard.copy_(a[world.rank * m:(world.rank + 1) * m])
            c = multiplied(b[world.rank])
            expect_close(c, a.float() @ b[world.rank].float(), way)
            if way == "pull":
                settle(world)  # peers have to read the shard before it is written again
        settle(world)


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: the products are right\n", end="")
