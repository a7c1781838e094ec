"""GEMM + all-scatter, workgroup-specialised: most programs of one kernel multiply and put finished tiles into a queue, the
others take tiles out of it and send them.

    torchrun --nproc-per-node 2 examples/python/triton/gemm_all_scatter_queue.py    # with TRITON_INTERPRET=1 on CPUs
"""

import gemm_all_scatter
import torch
import triton
import triton.language as tl
from gemm_all_scatter import GemmAllScatter, send
from tiles import SIZES, close_run, open_run, part, place, product

import untax
import untax.triton as ut


@triton.jit
def take(counter, tickets, run, context):
    """The next number of this run. A run takes `tickets` in all: each program goes on until its number is beyond the tiles."""
    return ut.atomic_add(counter, 1, context.rank, context, sem="relaxed", scope="gpu") - (run - 1) * tickets


@triton.jit(do_not_specialize=["run"])
def multiply_or_send(a, b, c, queue, heads, ready, arrived, m, n, k, run, senders, context,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """`heads` counts the tiles that were begun, put into the queue, and taken out. A place of the queue holds its tile and the run
    as one number, which only rises, so that a sender waits for it as for any counter."""
    open_run(ready, run, context)
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    workers = tl.num_programs(0) - senders
    if tl.program_id(0) < workers:
        tile = take(heads, tiles + workers, run, context)
        while tile < tiles:
            row, column = place(tile, m, n, BLOCK_M, BLOCK_N)
            total = product(a, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
            at, inside = part(row, column, m, n, n * context.size, n * context.rank, BLOCK_M, BLOCK_N)
            tl.store(c + at, total.to(c.dtype.element_ty), mask=inside)
            end = take(heads + 1, tiles, run, context)
            ut.signal(queue + end, run * tiles + tile, context.rank, context, scope="gpu")
            tile = take(heads, tiles + workers, run, context)
    else:
        begin = take(heads + 2, tiles + senders, run, context)
        while begin < tiles:
            ut.wait(queue + begin, tl.cast(run, tl.int64) * tiles, context.rank, context, scope="gpu")
            tile = ut.load(queue + begin, context.rank, context, sem="relaxed", scope="gpu") - run * tiles
            tile = tl.minimum(tl.maximum(tile, 0), tiles - 1)  # a failed wait leaves an older number
            row, column = place(tile, m, n, BLOCK_M, BLOCK_N)
            at, inside = part(row, column, m, n, n * context.size, n * context.rank, BLOCK_M, BLOCK_N)
            send(c, at, inside, ready, arrived, run, context)
            begin = take(heads + 2, tiles + senders, run, context)


class QueuedGemmAllScatter(GemmAllScatter):
    patterns = ("workgroup_specialized",)

    def __init__(self, world, m, n, k, pattern, sizes=SIZES, senders=16):
        super().__init__(world, m, n, k, pattern, sizes, senders)
        self.queue, self.heads = world.zeros(self.tiles, torch.int64), world.zeros(3, torch.int64)
        self.programs = 4  # the senders are the last: an interpreter carries programs out one after the other
        if world.device >= 0:  # all have to be resident
            self.programs = torch.cuda.get_device_properties(world.device).multi_processor_count
        self.senders = min(self.senders, self.programs // 2)

    def __call__(self, a, b):
        self.run += 1
        multiply_or_send[(self.programs,)](a, b, self.c, self.queue, self.heads, self.ready, self.arrived, *self.shape, self.run,
                                           self.senders, self.context, **self.sizes)
        close_run[(1,)](self.arrived, self.tiles * self.run, self.context)
        return self.c


def main(world, **problem):
    gemm_all_scatter.main(world, **problem, kind=QueuedGemmAllScatter)


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: the products are right\n", end="")
