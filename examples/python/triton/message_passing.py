"""Message passing: every rank sends tiles to the next one, around a ring. docs/triton.md explains it.

    torchrun --nproc-per-node 2 examples/python/triton/message_passing.py      # with TRITON_INTERPRET=1 on CPUs
"""

import torch
import triton
import triton.language as tl

import untax
import untax.triton as ut


@triton.jit(do_not_specialize=["turn"])
def pass_on(source, inbox, received, arrived, taken, turn, context, TILE: tl.constexpr):
    tile = tl.program_id(0)
    following = (context.rank + 1) % context.size
    before = (context.rank + context.size - 1) % context.size
    i = tile * TILE + tl.arange(0, TILE)
    ut.wait(taken + tile, turn - 1, following, context)  # it has read what came in the turn before
    ut.put_signal(inbox + i, source + i, arrived + tile, turn, following, context)
    ut.wait(arrived + tile, turn, before, context)
    tl.store(received + i, tl.load(inbox + i))
    ut.signal(taken + tile, turn, before, context)


def main(world, tiles=8, tile=1024, turns=3):
    context = ut.context(world, "pass_on")
    inbox = world.empty(tiles * tile, torch.float32)
    arrived, taken = world.zeros(tiles, torch.int64), world.zeros(tiles, torch.int64)
    received = torch.empty_like(inbox)
    for turn in range(1, turns + 1):
        source = torch.full_like(inbox, 100.0 * world.rank + turn)
        pass_on[(tiles,)](source, inbox, received, arrived, taken, turn, context, TILE=tile)
        expected = torch.full_like(inbox, 100.0 * ((world.rank - 1) % world.size) + turn)
        assert torch.equal(received, expected), f"rank {world.rank}, turn {turn}: {received}"
    world.check()  # raises if a wait gave up
    world.barrier()


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: {world.size} messages around the ring\n", end="")
