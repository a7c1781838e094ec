"""How worlds of process groups end; part of torch_ranks.py."""

import os

import torch
import torch.distributed as dist

import untax
import untax.torch as untax_torch


def sub_groups():
    """Tensor parallelism within a larger job: pairs of ranks."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pairs = [dist.new_group([first, first + 1]) for first in range(0, ranks - 1, 2)]
    if rank // 2 >= len(pairs):
        return
    name = pairs[rank // 2].group_name
    got = torch.ops.untax.all_gather(torch.tensor([float(rank)]), 0, name)
    assert got.tolist() == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert untax_torch.world_of(name).size == 2


def worlds_that_end():
    """They leave no memory, no descriptors, no files and no keys in the store."""
    group = dist.group.WORLD.group_name
    ranks = dist.get_world_size()

    def left():
        keys = dist.distributed_c10d._get_process_group_store(dist.group.WORLD).num_keys()
        return len(os.listdir("/proc/self/fd")), keys, [name for name in os.listdir("/dev/shm") if "untax" in name]

    def pages():
        return int(open("/proc/self/statm").read().split()[1])

    def once():
        assert (torch.ops.untax.all_reduce(torch.ones(4), "sum", group) == ranks).all()
        untax_torch.close()

    for _ in range(20):
        once()
    dist.barrier()
    before, pages_before = left(), pages()
    dist.barrier()
    for _ in range(100):
        once()
    dist.barrier()
    assert left() == before
    assert pages() - pages_before < 500
    dist.barrier()


def a_rank_that_raises():
    """The operators of the others that wait for it name this rank and the reason."""
    group = dist.group.WORLD.group_name
    rank, ranks = dist.get_rank(), dist.get_world_size()
    untax_torch.close()
    world = untax_torch.world_of(group)
    if rank == ranks - 1:
        world.fail("KeyError: the tokenizer")
    else:
        try:
            torch.ops.untax.all_reduce(torch.ones(4), "sum", group)
            raise AssertionError("nobody was missed")
        except untax.Aborted as error:
            assert error.suspect == ranks - 1 and "KeyError: the tokenizer" in str(error)
    dist.barrier()
    untax_torch.close()


def a_rank_that_leaves():
    """It is gone at once, in the middle of everything; the others end as programs end."""
    group = dist.group.WORLD.group_name
    rank, ranks = dist.get_rank(), dist.get_world_size()
    world = untax_torch.world_of(group)
    if rank == ranks - 1:
        os._exit(0)
    try:
        torch.ops.untax.all_reduce(torch.ones(4), "sum", group)
        raise AssertionError("nobody was missed")
    except untax.PeerLost as error:
        assert error.suspect == ranks - 1
    assert world.rank == rank
