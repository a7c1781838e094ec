"""The ranks of test_torch_groups.py: several process groups that are used side by side, over gloo.

Usage: torchrun --nproc-per-node N torch_groups.py CHECK
"""

import os
import sys
import threading
import time

import torch
import torch.distributed as dist

import untax
import untax.torch as untax_torch

ops = torch.ops.untax


def groups_of_a_mesh():
    """Tensor parallelism along rows of a mesh and data parallelism along its columns, in turn; a rank is in both."""
    rank = dist.get_rank()
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    data, tensor = (untax_torch.name_of(mesh.get_group(name)) for name in ("data", "tensor"))
    torch.manual_seed(5)
    a = torch.randn(4, 6, 16)  # a batch for each rank
    weights = torch.randn(2, 16, 8)  # of each rank of a row
    for turn in range(6):
        row, column = divmod(rank, 2)
        got = ops.matmul_all_reduce(a[rank] + turn, weights[column], "sum", tensor)
        right = sum((a[2 * row + peer] + turn) @ weights[peer] for peer in range(2))
        torch.testing.assert_close(got, right, rtol=1e-4, atol=1e-4)
        for group in (mesh["tensor"], mesh.get_group("tensor"), untax_torch.world_of(tensor)):
            assert torch.equal(untax_torch.matmul_all_reduce(a[rank] + turn, weights[column], group=group), got)
            assert torch.equal(ops.matmul_all_reduce(a[rank] + turn, weights[column], "sum", group_name=group), got)
        summed = ops.all_reduce(got, "sum", data)
        everybody = sum((a[peer] + turn) @ weights[peer % 2] for peer in range(4))
        torch.testing.assert_close(summed, everybody, rtol=1e-4, atol=1e-4)
    assert untax_torch.world_of(mesh.get_group("data")) is untax_torch.world_of(mesh["data"])
    try:
        untax_torch.all_reduce(a, group=mesh)
        raise AssertionError("nothing was refused")
    except untax.InvalidArgument as error:
        assert "group is a mesh of 2 dimensions, ('data', 'tensor'); it has to be of one" in str(error), error


def tensors_of_a_mesh():
    """Operators of one rank on DTensors: results, gradients and placements; those that send refuse them."""
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    ranks = dist.get_world_size()
    meshes = [dist.init_device_mesh("cpu", (ranks,))]
    if ranks == 4:
        meshes.append(dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor")))
    torch.manual_seed(3)
    n, k = 32 * ranks, 8 * ranks
    x, weight, bias = torch.randn(4, ranks, k), torch.randn(n, k), torch.randn(n)
    for mesh in meshes:
        def sharded(tensor, *placements, mesh=mesh):
            return distribute_tensor(tensor, mesh, (*[Replicate()] * (mesh.ndim - len(placements)), *placements))

        def check(got, right, placement, case, mesh=mesh):
            assert got.placements[-1] == placement, f"{case}, {mesh}: placements are {got.placements}"
            assert got.shape == right.shape, f"{case}: {got.shape}"
            torch.testing.assert_close(got.full_tensor(), right, rtol=1e-4, atol=1e-4, msg=lambda text, case=case: f"{case}: {text}")

        for of_x, of_weight, of_result in ((Replicate(), Replicate(), Replicate()), (Shard(0), Replicate(), Shard(0)),
                                           (Shard(1), Replicate(), Shard(1)), (Replicate(), Shard(0), Shard(2)),
                                           (Shard(2), Shard(1), Partial())):
            # The same placements with one activation after another: torch keeps its choice for one.
            for activation in ("none", "silu", "swiglu", "none"):
                for own_bias in (None, bias):
                    right = untax_torch.linear(x, weight, own_bias, activation=activation)
                    placement = of_result
                    if of_result == Partial() and not (activation == "none" and own_bias is None):
                        placement = Replicate()
                    got = untax_torch.linear(sharded(x, of_x), sharded(weight, of_weight),
                                             None if own_bias is None else sharded(own_bias, Shard(0) if of_weight == Shard(0)
                                                                                   else Replicate()), activation=activation)
                    case = f"x by {of_x}, weight by {of_weight}, {activation}, bias {own_bias is not None}"
                    if placement == Replicate() != of_result:  # torch chooses how it moves them
                        placement = got.placements[-1]
                        assert placement != Partial(), case
                    check(got, right, placement, case)
            odd = weight[:24 * ranks]  # of which a rank's rows are no pairs of gate and up
            got = untax_torch.linear(sharded(x, of_x), sharded(odd, of_weight), activation="swiglu")
            check(got, untax_torch.linear(x, odd, activation="swiglu"), got.placements[-1], f"weight by {of_weight}, of odd parts")
            leaves = [t.clone().requires_grad_() for t in (x, weight)]
            untax_torch.linear(*leaves).square().sum().backward()
            parts = [sharded(x, of_x).requires_grad_(), sharded(weight, of_weight).requires_grad_()]
            untax_torch.linear(*parts).redistribute(placements=[Replicate()] * mesh.ndim).square().sum().backward()
            for part, leaf in zip(parts, leaves, strict=True):
                torch.testing.assert_close(part.grad.full_tensor(), leaf.grad, rtol=1e-4, atol=1e-3)
        q, keys, values = torch.randn(ranks, 3, 2 * ranks, 16), *torch.randn(2, ranks, 5, ranks, 16)
        lengths = torch.arange(ranks, dtype=torch.int32) + 1
        pages = torch.arange(ranks, dtype=torch.int32).flip(0).view(-1, 1)
        decoded = untax_torch.decode_attention(q[:, 0], keys, values, lengths)
        paged = untax_torch.decode_attention(q[:, 0], keys, values, lengths, pages)
        for placement in (Replicate(), Shard(0), Shard(2)):
            for causal in (False, True):
                right = untax_torch.flash_attention(q, keys, values, causal=causal)
                got = untax_torch.flash_attention(*(sharded(t, placement) for t in (q, keys, values)), causal=causal)
                for index in range(2):
                    check(got[index], right[index], placement, f"attention by {placement}, causal {causal}, result {index}")
            of_q, of_lengths = (Shard(1), Replicate()) if placement == Shard(2) else (placement, placement)
            operands = sharded(q[:, 0], of_q), sharded(keys, placement), sharded(values, placement), sharded(lengths, of_lengths)
            check(untax_torch.decode_attention(*operands), decoded, of_q, f"decoding by {placement}")
            if placement != Shard(0):
                check(untax_torch.decode_attention(*operands, sharded(pages, Replicate())), paged, of_q, f"decoding of pages by {placement}")
        name = untax_torch.name_of(dist.group.WORLD)
        whole = sharded(x, Replicate())
        for operator, arguments in ((ops.all_reduce, (whole, "sum", name)), (ops.matmul_all_reduce, (whole, sharded(weight.t(), Replicate()),
                                                                                                  "sum", name))):
            try:
                operator(*arguments)
                raise AssertionError(f"{operator} took a DTensor")
            except Exception as error:
                assert f"{operator} takes what each rank has".replace("untax.", "torch.ops.untax.") in str(error), error


def two_groups_of_the_same_ranks():
    """Each has a world of its own, with its own plans and its own count of runs; both are used from two threads, whose order
    differs from rank to rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    groups = [dist.group.WORLD, dist.new_group(list(range(ranks)))]
    names = [group.group_name for group in groups]
    worlds = [untax_torch.world_of(name) for name in names]  # collective: in one order
    assert worlds[0] is not worlds[1]
    faults = []

    def use(which, runs):
        try:
            for turn in range(runs):
                x = torch.full((3 + which, 8), float(rank + turn + 100 * which))
                right = sum(peer + turn + 100 * which for peer in range(ranks))
                got = ops.all_reduce(x, "sum", names[which])
                assert (got == right).all(), f"group {which}, turn {turn}: {got[0, 0].item()} is not {right}"
        except BaseException as fault:
            faults.append(fault)

    order = (0, 1) if rank % 2 == 0 else (1, 0)
    threads = [threading.Thread(target=use, args=(which, 40)) for which in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
    if ranks % 2 == 0:  # one rank is not expected in a group that it does not belong to
        pair = dist.new_group([0, 1])
        if rank < 2:
            assert ops.all_gather(torch.tensor([float(rank)]), 0, pair.group_name).tolist() == [0, 1]


def compiled_layers():
    """torch.compile of a column and a row layer, with gradients, equal to eager; in two groups of the same ranks."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    other = dist.new_group(list(range(ranks)))
    torch.manual_seed(3)
    up, down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
    x = torch.randn(8 * ranks, 16)
    right = down(torch.relu(up(x)))
    right.sum().backward()
    for group in (dist.group.WORLD, other):
        column = untax_torch.ColumnParallelLinear.of(up, group=group)
        row = untax_torch.RowParallelLinear.of(down, group=group)

        @torch.compile(fullgraph=True)
        def layer(mine, column=column, row=row):
            return row(torch.relu(column(mine)))

        got = layer(x.chunk(ranks)[rank])
        torch.testing.assert_close(got, right.chunk(ranks)[rank], rtol=1e-4, atol=1e-4)
        got.sum().backward()
        torch.testing.assert_close(column.weight.grad, up.weight.grad.chunk(ranks)[rank], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(row.weight.grad, down.weight.grad.chunk(ranks, 1)[rank], rtol=1e-4, atol=1e-4)


def a_rank_that_does_not_come():
    """Before, the first call of a group waited as long as torch's store, five minutes, and named no rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    os.environ["UNTAX_JOIN_LIMIT_MS"] = "3000"
    dist.barrier()  # the others come together, also where the machine is busy
    if rank != 1:
        began = time.monotonic()
        try:
            ops.all_reduce(torch.ones(4), "sum", dist.group.WORLD.group_name)
        except untax.Timeout as error:
            assert f"rank {rank}: rank 1 of {ranks} did not come" in str(error) and error.suspect == 1, error
        else:
            raise AssertionError("nobody missed rank 1")
        assert time.monotonic() - began < 30
    dist.barrier()
    os.environ["UNTAX_JOIN_LIMIT_MS"] = "60000"
    got = untax_torch.all_reduce(torch.ones(4))  # what failed has left nothing behind
    assert (got == ranks).all()
    assert (ops.all_reduce(torch.ones(4), "sum", untax_torch.name_of(dist.new_group(list(range(ranks))))) == ranks).all()
    alone = dist.new_group([0])
    if rank > 0:
        try:
            untax_torch.all_reduce(torch.ones(4), group=alone)
        except untax.InvalidArgument as error:
            assert "a process group that this rank is in" in str(error), error
        else:
            raise AssertionError("a group of others was taken")


dist.init_process_group("gloo")
globals()[sys.argv[1]]()
dist.barrier()
untax_torch.close()
print(f"rank {dist.get_rank()}: {sys.argv[1]} is right, untax {untax.__version__}")
dist.destroy_process_group()
