"""Defects that untax.torch has had: each test failed before it was mended. Run as a program, this file is a rank of the
tests that need processes, as `torchrun --nproc-per-node N test_torch_defects.py CHECK DIRECTORY SEED` starts it."""

import importlib.util
import os
import random
import shutil
import sys

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed; ./test.sh --with-torch installs it", allow_module_level=True)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from ranks import fork  # noqa: E402
from torch_cases import random_cases  # noqa: E402

import untax  # noqa: E402
import untax.torch as untax_torch  # noqa: E402

ops = torch.ops.untax


def alone(body):
    """`body(world, name)` of a world of one rank."""
    try:
        untax.run_threads(1, lambda world: body(world, untax_torch.name_of(world)))
    finally:
        untax_torch.close()


def strides(t):
    """Those that say where something is: the stride of a dimension with one element says nothing."""
    return [stride for extent, stride in zip(t.shape, t.stride(), strict=True) if extent > 1]


def results_of_the_takeover_lie_as_those_of_torch(directory, seed):
    """As its Meta says, for all ways in which a call is carried out."""
    same = random.Random(seed)
    group, ranks = dist.group.WORLD.group_name, dist.get_world_size()

    def compare(operator, case, tensors, *rest, **named):
        meta = [[b.to("meta") for b in t] if isinstance(t, list) else t.to("meta") for t in tensors]
        right = operator(*meta, *rest, **named)
        got = operator(*tensors, *rest, **named)
        right, got = ([t] if isinstance(t, torch.Tensor) else [x for x in (t[0], *t[1]) if x is not None]
                      for t in (right, got))
        for number, (result, other) in enumerate(zip(got, right, strict=True)):
            assert result.shape == other.shape and strides(result) == strides(other), (
                f"{case}: result {number} is {tuple(result.shape)} by {result.stride()}, not by {other.stride()}")

    for turn in range(60):
        dims, whole = same.choice([2, 3, 4]), same.random() < 0.5
        axis = same.randrange(dims)
        shape = [same.randint(1, 5) for _ in range(dims - 1)] + [same.choice([8, 16, same.randint(1, 20)])]
        k = shape[-1] * ranks if axis == dims - 1 else shape[-1]
        bs = [torch.randn(k, same.randint(1, 20)) for _ in range(same.choice([1, 2]))]
        copied = same.choice([0, None])
        untax_torch.install(rows_worth_a_copy=copied)
        case = f"turn {turn}: gather of {shape} along {axis}, {len(bs)} weights, return_A {whole}, copied from {copied} rows"
        compare(torch.ops.symm_mem.fused_all_gather_matmul, case, (torch.randn(shape), bs), axis, group, return_A=whole)
        shape[axis] *= ranks if axis < dims - 1 else 1
        b = torch.randn(shape[-1], ranks * same.randint(1, 9))
        case = f"turn {turn}: scatter of {shape} x {b.shape[1]} along {axis}"
        compare(torch.ops.symm_mem.fused_matmul_reduce_scatter, case, (torch.randn(shape), b), "sum", axis, group)
    ways = {way for _, way in untax_torch.report()}
    assert len(ways) == 4 and all(way.startswith("by untax") for way in ways), ways


def inductor_takes_the_takeover(directory, seed):
    group = dist.group.WORLD.group_name
    untax_torch.install(rows_worth_a_copy=None)

    def call(a, b, c, wide):
        whole, products = torch.ops.symm_mem.fused_all_gather_matmul(a, [b, c], 1, group, return_A=False)
        last, others = torch.ops.symm_mem.fused_all_gather_matmul(a, [wide], 2, group, return_A=True)
        scattered = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 1, group)
        return [t + 1 for t in (*products, last, *others, scattered)]

    tensors = torch.randn(2, 4, 8), torch.randn(8, 6), torch.randn(8, 3), torch.randn(8 * dist.get_world_size(), 5)
    for got, right in zip(torch.compile(call, fullgraph=True)(*tensors), call(*tensors), strict=True):
        torch.testing.assert_close(got, right)


def names_that_come_back_are_other_groups(directory, seed):
    """torch names the default group alike each time, whatever its ranks are."""
    process, worlds = dist.get_rank(), []
    name = dist.group.WORLD.group_name
    # As they were, swapped, the first alone, and both: the numbers of worlds that each has made differ then.
    for turn, (rank, ranks) in enumerate([(process, 2), (1 - process, 2), (0, 1), (process, 2)]):
        if ranks == 1 and process == 1:
            continue
        dist.destroy_process_group()
        if worlds:
            with pytest.raises(untax.InvalidArgument, match=name):
                untax_torch.groups.ranks_of(name)
            assert worlds[-1].closed
        dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/{turn}", ranks), rank=rank, world_size=ranks)
        assert dist.group.WORLD.group_name == name
        x = torch.tensor([float(rank)])
        for _ in range(3):  # planned, again, and by what is known
            assert ops.all_gather(x, 0, name).tolist() == [float(other) for other in range(ranks)], f"turn {turn}"
        assert (untax_torch.groups.ranks_of(name), untax_torch.groups.rank_of(name)) == (ranks, rank)
        worlds.append(untax_torch.world_of(name))
    # No call reads the name in between.
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.FileStore(f"{directory}/last", 2), rank=1 - process, world_size=2)
    assert ops.all_gather(torch.tensor([float(process)]), 0, name).tolist() == [1.0, 0.0]
    assert worlds[-1].closed


CHECKS = {check.__name__: check for check in (results_of_the_takeover_lie_as_those_of_torch, inductor_takes_the_takeover,
                                              names_that_come_back_are_other_groups)}


def in_processes(ranks, check, directory, seed=0):
    said = fork(ranks, __file__, check.__name__, directory, seed)
    assert said.count("right") == ranks, said


def test_results_of_the_takeover_have_the_strides_of_torch(tmp_path, seed):
    in_processes(2, results_of_the_takeover_lie_as_those_of_torch, tmp_path, seed)


@pytest.mark.skipif(not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))),
                    reason="inductor compiles with a C++ compiler, and there is none")
def test_inductor_compiles_the_takeover(tmp_path):
    in_processes(1, inductor_takes_the_takeover, tmp_path)


def test_a_reused_name_belongs_to_another_group(tmp_path):
    in_processes(2, names_that_come_back_are_other_groups, tmp_path)


def written_by(operator):
    return [a.name for a in operator.out._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def test_written_tensors_have_a_new_version(seed):
    def body(world, name):
        for case in random_cases(seed, 1, 1):
            operator = getattr(ops, case.operator)
            outs = {out: torch.empty(right.shape, dtype=torch.float32 if out in ("lse", "log_sums") else case.dtype)
                    for out, right in zip(written_by(operator), case.expected[0], strict=True)}
            case.call(operator, case.tensors[0], name, **outs)
            assert all(out._version > 0 for out in outs.values()), case
            with torch.inference_mode():  # where nothing has a version
                case.call(operator, case.tensors[0], name, **{key: torch.empty_like(out) for key, out in outs.items()})

    alone(body)


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_that_need_overwritten_tensors_are_refused(compiled):
    def body(world, name):
        def write(x, buffer):
            ops.all_reduce.out(x, "sum", name, out=buffer)

        p, buffer = torch.ones(3, requires_grad=True), torch.full((3,), 2.0)
        product = (buffer * p).sum()
        (torch.compile(write, backend="aot_eager") if compiled else write)(torch.full((3,), 7.0), buffer)
        assert buffer.tolist() == [7] * 3
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()

    torch._dynamo.reset()
    alone(body)


def test_tensors_that_require_a_gradient_are_not_written():
    def body(world, name):
        x, out = torch.ones(2, 3), torch.zeros(2, 3, requires_grad=True)
        with pytest.raises(untax.InvalidArgument, match="out requires a gradient"):
            ops.all_reduce.out(x, "sum", name, out=out)
        with torch._subclasses.FakeTensorMode() as mode:
            with pytest.raises(untax.InvalidArgument, match="out requires a gradient"):
                ops.all_reduce.out(mode.from_tensor(x), "sum", name, out=mode.from_tensor(out))
        assert not out.any()
        with torch.no_grad():
            ops.all_reduce.out(x, "sum", name, out=out)
        assert (out == 1).all()

    alone(body)


def test_arguments_that_mean_nothing_are_refused():
    def calls(a, b, name):
        for dim in (2, -3, 7):
            right = f"is {dim}; it has to be from -2 to 1"
            yield lambda dim=dim: ops.all_gather_matmul(a, b, dim, name), f"gather_dim {right}"
            yield lambda dim=dim: ops.matmul_reduce_scatter(a, b, "sum", dim, name), f"scatter_dim {right}"
        for reduce_op in ("max", "bogus"):
            yield (lambda reduce_op=reduce_op: ops.matmul_reduce_scatter(a, b, reduce_op, 0, name),
                   f"reduce_op is '{reduce_op}'; it can be sum, avg")

    def refused(a, b, name):
        for call, text in calls(a, b, name):
            with pytest.raises(untax.InvalidArgument, match=text):
                call()

    def body(world, name):
        a, b = torch.randn(4, 8), torch.randn(8, 8)
        refused(a, b, name)
        with torch._subclasses.FakeTensorMode() as mode:
            refused(mode.from_tensor(a), mode.from_tensor(b), name)
        for dim in (0, 1, -1, -2):  # these there are
            torch.testing.assert_close(ops.all_gather_matmul(a, b, dim, name), a @ b)
            for reduce_op in ("sum", "avg"):
                torch.testing.assert_close(ops.matmul_reduce_scatter(a, b, reduce_op, dim, name), a @ b)

    alone(body)


def test_an_epsilon_of_zero_is_zero():
    def body(world, name):
        x, zeros, ones = torch.full((2, 8), 1e-4), torch.zeros(2, 8), torch.ones(8)
        for eps, right in ((0.0, 1.0), (1e-42, 1.0), (1e-8, 0.5**0.5)):
            normed, _ = ops.all_reduce_rms_norm(x, zeros, ones, eps, name)
            torch.testing.assert_close(normed, torch.full((2, 8), right), msg=f"epsilon {eps}")
        with pytest.raises(untax.InvalidArgument, match="negative"):
            ops.all_reduce_rms_norm(x, zeros, ones, -1e-42, name)

    alone(body)


def test_worlds_that_were_closed_are_not_explained():
    def body(world, name):
        ops.all_reduce(torch.ones(8), "sum", name)
        assert len(untax_torch.explain()) == 1
        world.close()
        assert untax_torch.explain() == []
        assert not untax_torch.groups._engines and not untax_torch.groups._world_names, "closed worlds are forgotten"

    alone(body)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    CHECKS[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
    dist.barrier()
    print("right", flush=True)
    untax_torch.close()
    dist.destroy_process_group()
