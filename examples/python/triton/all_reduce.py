"""An all-reduce in one shot: every rank reads the vectors of all ranks and adds them, in rank order, in one kernel.

    torchrun --nproc-per-node 2 examples/python/triton/all_reduce.py           # with TRITON_INTERPRET=1 on CPUs
"""

import torch
import triton
import triton.language as tl

import untax
import untax.triton as ut


@triton.jit(do_not_specialize=["run"])
def add_up(x, total, ready, done, count, run, context, TILE: tl.constexpr):
    """`ready` and `done` have a counter for each tile and rank."""
    tile = tl.program_id(0)
    i = tile * TILE + tl.arange(0, TILE)
    mine, its = tile * context.size + context.rank, tile * context.size
    for peer in range(context.size):
        ut.signal(ready + mine, run, peer, context)
    accumulator = tl.zeros((TILE,), tl.float32)
    for peer in range(context.size):
        ut.wait(ready + its + peer, run, peer, context)
        accumulator += ut.load(x + i, peer, context, mask=i < count, other=0).to(tl.float32)
    tl.store(total + i, accumulator.to(total.dtype.element_ty), mask=i < count)
    for peer in range(context.size):
        ut.signal(done + mine, run, peer, context)
    for peer in range(context.size):  # when the kernel ends, no peer reads x any more
        ut.wait(done + its + peer, run, peer, context)


def main(world, count=3000, tile=1024, runs=3):
    context = ut.context(world, "all_reduce")
    x = world.empty(count, torch.float16)
    total = torch.empty_like(x)
    tiles = triton.cdiv(count, tile)
    ready, done = (world.zeros((tiles, world.size), torch.int64) for _ in range(2))
    for run in range(1, runs + 1):
        inputs = [torch.randn(count, generator=torch.Generator().manual_seed(100 * run + rank)).half()
                  for rank in range(world.size)]
        x.copy_(inputs[world.rank])
        add_up[(tiles,)](x, total, ready, done, count, run, context, TILE=tile)
        expected = sum(tensor.float() for tensor in inputs).half()  # in rank order, rounded once: the same bits
        assert torch.equal(total.cpu(), expected), f"rank {world.rank}, run {run}"
    world.check()
    world.barrier()


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: the sums are right\n", end="")
