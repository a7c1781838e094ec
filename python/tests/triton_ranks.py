"""A rank of test_triton.py: carries kernels out in Triton's interpreter, and compares. `triton_ranks.py SEED`."""

import importlib.util
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

import untax
import untax.triton as ut

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples/python/triton").glob("*.py"))


@triton.jit
def store_at(tensor, value, peer, context, TILE: tl.constexpr):
    ut.store(tensor + tl.arange(0, TILE), value, peer, context)


@triton.jit
def copy_between(to, source, to_peer, from_peer, context, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    ut.copy(to + i, source + i, to_peer, from_peer, context, mask=i < TILE - 1)


@triton.jit
def fetch(to, source, peer, context, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    ut.get(to + i, source + i, peer, context)


@triton.jit
def ordered_words(words, seen, peer, context, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    ut.store(words + i, i + 0.5, peer, context, mask=i < TILE - 1, sem="release")
    tl.store(seen + i, ut.load(words + i, peer, context, sem="acquire"))


@triton.jit
def count_up(counters, numbers, seen, context, TILE: tl.constexpr):
    """Every program of every rank adds to the counters of rank 0."""
    before = ut.atomic_add(counters, 1, 0, context)
    tl.store(seen + tl.program_id(0), before)
    i = tl.arange(0, TILE)
    ut.atomic_add(numbers + i, i.to(tl.float32), 0, context, mask=i < TILE - 1, sem="relaxed")
    ut.atomic_sub(counters + 1, 2, 0, context)
    ut.atomic_min(counters + 2, -context.rank - 1, 0, context, sem="relaxed")
    ut.atomic_max(counters + 3, context.rank + 1, 0, context)
    ut.atomic_xor(counters + 4, 1, 0, context)
    ut.atomic_or(counters + 5, 1 + context.rank, 0, context)
    ut.atomic_and(counters + 6, 12, 0, context)


@triton.jit
def take_turns(counters, sum, rounds, context):
    """A lock at rank 0, taken by compare and exchange and given back by an exchange, around plain memory."""
    for _ in range(rounds):
        taken = ut.atomic_cas(counters, 0, 1, 0, context)
        while taken != 0:
            taken = ut.atomic_cas(counters, 0, 1, 0, context)
        ut.store(sum, ut.load(sum, 0, context) + 1, 0, context)
        ut.atomic_xchg(counters, 0, 0, context, sem="release")


@triton.jit
def wait_twice(counter, came, peer, context):
    first = ut.wait(counter, 5, peer, context)
    second = ut.wait(counter, 9, peer, context)
    tl.store(came, first.to(tl.int32) + 2 * second.to(tl.int32))


def check_examples(world, seed):
    sys.path.insert(0, str(EXAMPLES[0].parent))
    for path in EXAMPLES:
        module = importlib.import_module(path.stem)
        if hasattr(module, "main"):
            module.main(world)
            print(f"rank {world.rank}: {path.stem}\n", end="")


def check_tensors(world, seed):
    assert torch.equal(world.zeros((3, 5), torch.int64), torch.zeros(3, 5, dtype=torch.int64))
    assert torch.equal(world.full(7, world.rank, torch.bfloat16), torch.full((7,), world.rank, dtype=torch.bfloat16))
    assert torch.equal(world.arange(9), torch.arange(9)) and torch.equal(world.arange(2, 9, 3), torch.arange(2, 9, 3))
    mine = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed + world.rank))
    generator = torch.Generator().manual_seed(seed + world.rank)
    assert torch.equal(world.randn((4, 4), generator=generator), mine)
    assert world.empty((0, 4)).shape == (0, 4) and world.empty(3, torch.bool).dtype == torch.bool
    world.barrier()
    used = world.heap_used
    for _ in range(40):  # more than the heap has, if it were not handed out again
        tensor = world.empty(1 << 20, torch.float32)
        view = tensor[5:]
        del tensor
        view.zero_()
        del view
        world.barrier()
    assert world.heap_used == used


def check_moves(world, seed):
    peer, tile = (world.rank + 1) % world.size, 64
    context = ut.context(world)
    for dtype in (torch.int8, torch.float16, torch.float32, torch.int64, torch.float64, torch.bool):
        source, other = world.zeros(tile, dtype), world.zeros(tile, dtype)
        store_at[(1,)](source, True if dtype == torch.bool else world.rank + 3, peer, context, TILE=tile)
        world.barrier()
        assert (source == ((world.rank - 1) % world.size + 3 if dtype != torch.bool else True)).all(), dtype
        copy_between[(1,)](other, source, peer, peer, context, TILE=tile)
        world.barrier()
        assert torch.equal(other[:-1], source[:-1]) and other[-1] == 0
        fetched = torch.zeros(tile, dtype=dtype)
        fetch[(1,)](fetched, source, peer, context, TILE=tile)
        assert (fetched == (True if dtype == torch.bool else world.rank + 3)).all(), dtype
        world.barrier()
    for dtype in (torch.float32, torch.float64):
        words, seen = world.zeros(tile, dtype), torch.zeros(tile, dtype=dtype)
        ordered_words[(1,)](words, seen, peer, context, TILE=tile)
        expected = torch.arange(tile, dtype=dtype) + 0.5
        expected[-1] = 0
        assert torch.equal(seen, expected)
        world.barrier()
        assert torch.equal(words, expected)


def check_atomics(world, seed):
    context, programs, tile = ut.context(world), 200, 16
    counters, numbers = world.zeros(8, torch.int64), world.zeros(tile, torch.float32)
    counters[6] = 31
    world.barrier()
    seen = torch.zeros(programs, dtype=torch.int64)
    count_up[(programs,)](counters, numbers, seen, context, TILE=tile)
    assert (seen[1:] > seen[:-1]).all()
    world.barrier()
    if world.rank == 0:
        calls = programs * world.size
        expected = torch.arange(tile, dtype=torch.float32) * calls
        expected[-1] = 0
        assert torch.equal(numbers, expected)
        bits = 1 | 2 | (3 if world.size > 2 else 0)
        assert counters.tolist() == [calls, -2 * calls, -world.size, world.size, calls % 2, bits, 12, 0]
    world.barrier()
    lock, sum, rounds = world.zeros(1, torch.int64), world.zeros(1, torch.int32), 30
    take_turns[(1,)](lock, sum, rounds, context)
    world.barrier()
    assert world.rank > 0 or (lock.item() == 0 and sum.item() == rounds * world.size)


def check_bounded_waits(world, seed):
    """Rank 0 waits for rank 1, which has come to a wait for rank 0; the others hear of it."""
    counter, came = world.full(1, 2, torch.int64), torch.zeros(1, dtype=torch.int32)
    if world.rank == 1:
        wait_twice[(1,)](counter, came, 0, ut.context(world, "receiver"))
    elif world.rank == 0:
        wait_twice[(1,)](counter, came, 1, ut.context(world, "sender"))
    assert came.item() == 0
    try:
        while True:
            world.check()
            assert world.rank > 1, "the wait ended well"
    except (untax.Timeout, untax.Aborted) as error:
        text = str(error)
        assert f"rank {world.rank}" in text, text
        assert "waited 300 ms for rank 1: sender wait_until, needs 5, has 2" in text or \
            "waited 300 ms for rank 0: receiver wait_until, needs 5, has 2" in text, text


if __name__ == "__main__":
    seed = int(sys.argv[1])
    with untax.World.from_environment() as world:
        for check in (check_tensors, check_moves, check_atomics, check_examples):
            check(world, seed)
            world.barrier()
            print(f"rank {world.rank}: {check.__name__}\n", end="")
    # Of a world of its own, which it stops.
    world = untax.World.from_environment(wait_limit=0.3)
    check_bounded_waits(world, seed)
    print(f"rank {world.rank}: check_bounded_waits\n", end="")
    world.close()
