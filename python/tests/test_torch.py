"""untax.torch, in processes, over gloo, on CPUs."""

import importlib.util
import inspect

import pytest
from ranks import HERE, fork, torchrun

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                reason="torch is not installed; ./test.sh installs it where there is no GPU, ./test.sh --with-torch everywhere")


def test_torch_has_all_operators_of_the_library():
    import torch

    import untax.torch

    called = {"all_gather_gemm": "all_gather_matmul", "all_reduce_norm": "all_reduce_rms_norm"}
    for kind in untax.operators.kinds:
        name = called.get(kind, kind.replace("gemm_", "matmul_"))
        assert set(getattr(torch.ops.untax, name).overloads()) == {"default", "out"}, kind


def test_the_page_on_python_has_all_signatures():
    import torch

    import untax.torch
    from untax.torch.define import functions

    page = (HERE.parents[1] / "docs/python.md").read_text()
    assert len(functions) == 17
    for name, function in functions.items():
        assert getattr(untax.torch, name) is function and name in untax.torch.__all__
        plain = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
        said = str(inspect.Signature(plain)).replace("'", '"')
        assert f"`{name}{said}`" in page
        arguments = getattr(torch.ops.untax, name).default._schema.arguments
        said = ", ".join(a.name + (f"={a.default_value}" if a.has_default_value() else "") for a in arguments)
        assert f"{name}({said})" in page


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_agree_with_torch(ranks, seed):
    said = fork(ranks, HERE / "torch_ranks.py", seed)
    for check in ("takeover", "visible_fallback", "asynchronous_tensor_parallelism", "switched_on", "collectives",
                  "types_without_sums", "into_what_is_given", "refusals", "attention", "norm_in_fp8", "prefill", "merged_attention", "derivatives", "named_operators",
                  "checked_by_torch", "sub_groups", "worlds_that_end", "a_rank_that_raises"):
        assert f"{check}: right with {ranks} ranks" in said
    for rank in range(ranks - 1):
        assert f"rank {rank}: done" in said


@pytest.mark.parametrize(("start", "ranks"), [(torchrun, 2), (fork, 4)])
def test_mlp_is_right(start, ranks):
    said = start(ranks, HERE.parents[1] / "examples/python/mlp.py", "--device", "cpu")
    assert "within the tolerance" in said and "all_gather_gemm" in said


def test_llama_layer_is_right_both_ways():
    examples = HERE.parents[1] / "examples/python"
    model = HERE.parents[1] / "models/llama-3.2-1b.json"
    said = fork(2, examples / "llama_layer.py", "--model", model)
    assert said.count("within the tolerance") == 2
    assert "fused_matmul_reduce_scatter: 2 calls, by untax, fused" in said


def test_known_calls_read_the_tensors_of_each_call():
    import torch

    import untax
    import untax.torch
    from untax.torch import groups

    def body(world):
        ops, name, rank, ranks = torch.ops.untax, untax.torch.name_of(world), world.rank, world.size
        engine = groups.engine_of(name, "cpu")
        drawn = torch.Generator().manual_seed(3)  # the same at all ranks
        for number in range(4):
            if number == 3:  # what known calls ran is no longer planned
                while engine._planned:
                    engine._forget_oldest()
            a = [torch.randn(4, 16, generator=drawn) for _ in range(ranks)]
            b = torch.randn(24, 16, generator=drawn).t()
            mine, total = a[rank], sum(a)
            for got, right in (
                    (ops.all_gather_matmul(mine, b, 0, name), torch.cat(a) @ b),
                    (ops.matmul_reduce_scatter(mine, b, "sum", 0, name), (total @ b).chunk(ranks)[rank]),
                    (ops.matmul_all_reduce(mine, b, "sum", name), total @ b),
                    (ops.all_gather(mine, 0, name), torch.cat(a)),
                    (ops.all_reduce(mine, "sum", name), total),
                    (ops.reduce_scatter(mine, "sum", 0, name), total.chunk(ranks)[rank])):
                torch.testing.assert_close(got, right, rtol=1e-4, atol=1e-4)
            assert len(engine.known) == (7 if number in (1, 2) else 6), "with that of a wide matrix"
            # The same shapes of a matrix that lies otherwise are another call.
            wide = torch.randn(4, 40, generator=drawn)[:, :16]
            torch.testing.assert_close(ops.matmul_all_reduce(wide, b, "sum", name), ranks * wide @ b, rtol=1e-4, atol=1e-4)

    untax.run_threads(2, body)


def test_known_calls_write_into_the_out_of_each_call():
    import torch

    import untax
    import untax.torch
    from untax.torch import groups

    def body(world):
        ops, name, rank, ranks = torch.ops.untax, untax.torch.name_of(world), world.rank, world.size
        engine = groups.engine_of(name, "cpu")
        drawn = torch.Generator().manual_seed(3)  # the same at all ranks
        b, wide = torch.randn(24, 16, generator=drawn).t(), torch.randn(24, 16 * ranks, generator=drawn).t()
        scale, residual = torch.randn(16, generator=drawn), torch.randn(4, 16, generator=drawn)

        def calls():
            a = [torch.randn(4, 16, generator=drawn) for _ in range(ranks)]
            mine, total = a[rank], sum(a)
            kept = total + residual
            normed = torch.nn.functional.rms_norm(kept, (16,), scale, 1e-5)
            return (
                (ops.all_gather, (mine, 0), [torch.cat(a)]),
                (ops.reduce_scatter, (mine, "sum", 0), [total.chunk(ranks)[rank]]),
                (ops.all_reduce, (mine, "sum"), [total]),
                (ops.all_to_all, (mine,), [torch.cat([part.chunk(ranks)[rank] for part in a])]),
                (ops.broadcast, (mine, 1), [a[1]]),
                (ops.all_gather_matmul, (mine, b, 0), [torch.cat(a) @ b]),
                (ops.all_gather_matmul, (mine, wide, 1), [torch.cat(a, 1) @ wide]),
                (ops.matmul_reduce_scatter, (mine, b, "sum", 0), [(total @ b).chunk(ranks)[rank]]),
                (ops.matmul_all_reduce, (mine, b, "sum"), [total @ b]),
                (ops.matmul_all_scatter, (a[0], b), [torch.cat([a[0] @ b] * ranks, 1)]),
                (ops.all_reduce_rms_norm, (mine, residual, scale, 1e-5), [normed, kept]))

        def write(lying, added):
            """Calls all of them with results that lie so, each of which makes `added` calls known."""
            for op, arguments, expected in calls():
                outputs = [argument.name for argument in op.out._schema.arguments if argument.is_out]
                outs = {out: lying(right) for out, right in zip(outputs, expected, strict=True)}
                before = len(engine.known), [(t.data_ptr(), t._version) for t in outs.values()]
                assert op(*arguments, name, **outs) is None
                assert len(engine.known) == before[0] + added, op
                for t, right, (address, version) in zip(outs.values(), expected, before[1], strict=True):
                    torch.testing.assert_close(t, right, rtol=1e-4, atol=1e-4)
                    assert t.data_ptr() == address and t._version > version, op

        def new(right):
            return torch.full(right.shape, torch.nan)

        def by_columns(right):
            return torch.full(right.shape[::-1], torch.nan).t()

        write(new, 1)
        write(new, 0)
        write(by_columns, 0)  # which are copied, and not known
        for _ in range(2):  # a result that is made is another call than one that is given
            for op, arguments, expected in calls():
                got = op(*arguments, name)
                for t, right in zip([got] if len(expected) == 1 else got, expected, strict=True):
                    torch.testing.assert_close(t, right, rtol=1e-4, atol=1e-4)
        assert len(engine.known) == 2 * len(calls())
        for known in (new, by_columns):
            x, out = torch.ones(4, 16), known(torch.empty(4, 16)).requires_grad_()
            with pytest.raises(untax.InvalidArgument, match="out requires a gradient"):
                ops.all_reduce(x, "sum", name, out=out)
            with pytest.raises(untax.InvalidArgument, match="x requires a gradient"):
                ops.all_reduce(x.requires_grad_(), "sum", name, out=out.detach())
            with torch.no_grad():
                ops.all_reduce(x, "sum", name, out=out)
            assert (out == ranks).all()

    untax.run_threads(2, body)


def test_plans_that_known_calls_use_are_kept():
    import torch

    import untax
    import untax.torch
    from untax.torch import groups

    def body(world):
        name = untax.torch.name_of(world)
        engine = groups.engine_of(name, "cpu")
        engine.capacity = 2
        first, second, third = (torch.ones(rows, 16) for rows in (8, 200, 3000))  # each has a plan of its own
        for x in (first, second, first, third):
            assert (torch.ops.untax.all_reduce(x, "sum", name) == world.size).all()
        assert sorted(op.used for op in engine._planned.values()) == [3, 4], "the second was forgotten, not the first"

    untax.run_threads(2, body)


def test_operators_take_tensors_where_they_lie():
    import torch

    import untax

    def body(world):
        op = untax.AllReduce(world, 8, "fp32")
        x, out = torch.arange(16.0)[::2].contiguous(), torch.full((3, 8), float("nan"))
        op(x, out[1])
        assert (out[1] == x).all() and out[0].isnan().all() and out[2].isnan().all()
        for wrong, text in ((torch.arange(16.0)[::2], "side by side"), (x.double(), "elements of float64"),
                            (x.clone().requires_grad_(), "requires a gradient")):
            with pytest.raises(untax.InvalidArgument, match=text):
                op(wrong, out[1])
            with pytest.raises(untax.InvalidArgument, match=text):
                op(x, wrong)

    untax.run_threads(1, body)
