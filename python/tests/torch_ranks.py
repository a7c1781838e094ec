"""The ranks of test_torch.py: untax beside torch's own implementations, over gloo.

Usage: torchrun --nproc-per-node N torch_ranks.py [SEED]. Ends with status 0 where all is well.
"""

import os
import random
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import untax
import untax.torch as untax_torch
from torch_ends import a_rank_that_leaves, a_rank_that_raises, sub_groups, worlds_that_end

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
group = dist.group.WORLD.group_name
same = random.Random(seed)  # the same at all ranks
torch.manual_seed(seed * 100 + rank)


def close(got, expected, case):
    assert got.shape == expected.shape and got.dtype == expected.dtype, f"{case}: {got.shape} is not {expected.shape}"
    if expected.numel() == 0:
        return
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[expected.dtype]
    error = (got.double() - expected.double()).norm() / max(expected.double().norm().item(), 1)
    assert error <= limit, f"rank {rank}: {case}: relative error {error}"


def random_tensor(*shape, dtype=torch.float32):
    """Sometimes not contiguous, but in the same way at all ranks."""
    x = torch.randn(*shape, dtype=torch.float32).to(dtype)
    return x.transpose(0, -1).contiguous().transpose(0, -1) if same.random() < 0.3 else x


def takeover():
    """torch's reference for the two operators, and ours."""
    untax_torch.forget()
    for turn in range(24):
        dtype = same.choice([torch.float32, torch.bfloat16])
        dims = same.choice([2, 3])
        axis = same.randrange(dims)
        shape = [same.randint(1, 6) for _ in range(dims - 1)] + [same.choice([8, 16, same.randint(1, 20)])]
        if turn == 5:
            axis, shape[0] = 0, 0
        a = random_tensor(*shape, dtype=dtype)
        k = shape[-1] * ranks if axis == dims - 1 else shape[-1]
        bs = [random_tensor(k, same.randint(1, 30), dtype=dtype) for _ in range(1 if turn % 3 else 3)]
        whole = turn % 2 == 0
        untax_torch.install(rows_worth_a_copy=0 if turn % 12 < 6 else None)
        case = f"turn {turn}: {shape}, gather_dim {axis}, {len(bs)} weights, return_A {whole}, {dtype}"
        reference = symm_mem._fused_all_gather_matmul_fallback(a, bs, axis, group, return_A=whole)
        got = torch.ops.symm_mem.fused_all_gather_matmul(a, bs, axis, group, return_A=whole)
        assert (got[0] is None) == (not whole)
        if whole:
            close(got[0], reference[0], "A of " + case)
        for result, other in zip(got[1], reference[1], strict=True):
            close(result, other, case)

        shape[axis] = shape[axis] * ranks if axis < dims - 1 else shape[axis]
        n = same.randint(1, 12) * ranks
        a, b = random_tensor(*shape, dtype=dtype), random_tensor(shape[-1], n, dtype=dtype)
        reduce_op = same.choice(["sum", "avg"])
        case = f"turn {turn}: {shape} x {n}, scatter_dim {axis}, {reduce_op}, {dtype}"
        # In fp32, since gloo's sum of bf16 rounds at every rank.
        reference = symm_mem._fused_matmul_reduce_scatter_fallback(a.float(), b.float(), reduce_op, axis, group)
        got = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, reduce_op, axis, group)
        close(got, reference.to(dtype), case)
    ways = {way for _, way in untax_torch.report()}
    assert {"by untax, fused", "by untax, fused, with weights side by side"} < ways and len(ways) == 4, ways


def visible_fallback():
    untax_torch.forget()
    a, b = torch.randn(4, 8, dtype=torch.float64), torch.randn(8, 4 * ranks, dtype=torch.float64)
    torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, group, return_A=False)
    assert "by torch: untax has no torch.float64" in str(untax_torch.report())
    torch.ops.symm_mem.fused_all_gather_matmul(a.float(), [b.float()], 0, group, return_A=False)
    assert untax_torch.report()["fused_all_gather_matmul", "by untax, fused"] == 1
    os.environ["UNTAX_STRICT"] = "1"
    try:
        torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, group, return_A=False)
        raise AssertionError("nothing was raised")
    except untax.Unsupported as error:
        assert "UNTAX_STRICT" in str(error)
    del os.environ["UNTAX_STRICT"]
    untax_torch.uninstall()


def asynchronous_tensor_parallelism():
    """A program that gathers, multiplies and scatters, as the pass of inductor rewrites it, runs on untax."""
    import torch.distributed._functional_collectives as functional
    from torch._inductor.fx_passes.micro_pipeline_tp import micro_pipeline_tp_pass
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def program(x, up, down):
        gathered = functional.all_gather_tensor(x, 0, group)
        return functional.reduce_scatter_tensor(torch.relu(gathered @ up) @ down, "sum", 0, group)

    operands = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16, 8)
    with FakeTensorMode() as mode:
        traced = make_fx(program)(*(mode.from_tensor(x) for x in operands))
    with symm_mem._test_mode({group}):
        micro_pipeline_tp_pass(traced.graph)
    traced.recompile()
    untax_torch.install()
    untax_torch.forget()
    close(traced(*operands), functional.wait_tensor(program(*operands)), "rewritten program")
    assert sum(untax_torch.report().values()) == 2, str(traced.graph)
    untax_torch.uninstall()


def switched_on():
    """The pass is on with async_tp, for groups of CPUs, too, and says why it left a collective."""
    import logging

    import torch.distributed._functional_collectives as functional
    from torch._inductor import config
    from torch._inductor.fx_passes import micro_pipeline_tp, post_grad
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def gathered(x, dim=0):
        return functional.all_gather_single(x, dim, group)

    def scattered(x):
        return functional.reduce_scatter_single(x, "sum", 0, group)

    def two_waits(x):
        gathered = torch.ops._c10d_functional.all_gather_into_tensor(x, ranks, group)
        first, second = (torch.ops._c10d_functional.wait_tensor(gathered) for _ in range(2))
        return first @ square + second @ square

    def one_sequence(x):
        whole = aten.reshape(torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.all_gather_into_tensor(
            x[None], ranks, group)), [1, 8 * ranks, 8 * ranks])
        return aten.reshape(aten.mm(aten.reshape(whole, [8 * ranks, 8 * ranks]), square), [1, 8 * ranks, 8 * ranks])

    def moved_to_the_front(x):
        product = aten.mm(aten.reshape(torch.relu(aten.reshape(x, [2, 4, 8 * ranks])), [8, 8 * ranks]), square)
        front = aten.clone(aten.permute(aten.reshape(product, [2, 4, 8 * ranks]), [1, 0, 2]), memory_format=torch.contiguous_format)
        part = torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.reduce_scatter_tensor(front, "sum", ranks, group))
        return aten.permute(part, [1, 0, 2]) + 1, part

    aten, torchs, said = torch.ops.aten, post_grad.micro_pipeline_tp_pass, []
    gather, scatter = "all_gather_into_tensor", "reduce_scatter_tensor"
    log = logging.getLogger("untax.torch")
    log.setLevel(logging.INFO)
    log.addHandler(type("Listener", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())
    untax_torch.install(async_tp=True)
    untax_torch.forget()
    assert config._micro_pipeline_tp and post_grad.micro_pipeline_tp_pass is not torchs
    square = torch.randn(8 * ranks, 8 * ranks)
    for program, left in (
        (lambda x: torch.relu(gathered(x)), (gather, "no product takes its result, but aten.relu.default")),
        (lambda x: aten.addmm(x[0], gathered(x), square), (gather, "its product is aten.addmm.default, as that of a "
                                                           "layer with a bias")),
        (lambda x: square @ gathered(x), (gather, "it is the second operand of its product, as weights are")),
        (lambda x: gathered(x[:, :8], 1) @ square, (gather, "it gathers the last dimension, of which a rank has 8, and torch fuses from "
                                                    "1024 on")),
        (lambda x: gathered(gathered(x) @ square), (gather, "no product takes its result, but the graph's output")),
        (lambda x: scattered(torch.relu(x)), (scatter, "it sums no product, but what aten.relu.default gives")),
        (lambda x: (lambda y: (scattered(y), y * 2))(x @ square), (scatter, "its product has other users, too")),
        (lambda x: scattered(torch.relu(gathered(x) @ square) @ square), None), (two_waits, None), (one_sequence, None),
        (moved_to_the_front, None)):
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            traced = make_fx(program)(mode.from_tensor(torch.randn(8, 8 * ranks)))
            post_grad.view_to_reshape(traced)  # as it does before the pass
        untax_torch.forget()
        micro_pipeline_tp.micro_pipeline_tp_pass(traced.graph)
        right = {} if left is None else {(left[0], f"left by torch.compile: {left[1]}"): 1}
        assert untax_torch.report() == right, f"{untax_torch.report()}, and not {right}\n{traced.graph}"
        if left is None:
            assert "symm_mem.fused_" in str(traced.graph), str(traced.graph)
            traced.recompile()
            x = torch.randn(8, 8 * ranks)
            for got, expected in zip(*((y,) if isinstance(y, torch.Tensor) else y for y in (traced(x), program(x))), strict=True):
                close(got, functional.wait_tensor(expected), f"rewritten program {program}")
        else:
            assert said.count(f"{left[0]}: left by torch.compile: {left[1]}") == (rank == 0)
    untax_torch.uninstall()
    assert not config._micro_pipeline_tp and post_grad.micro_pipeline_tp_pass is torchs is micro_pipeline_tp.micro_pipeline_tp_pass


def collectives():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randint(-8, 9, (2 * ranks, 3)).to(dtype)
        all_of_them = [torch.empty_like(x) for _ in range(ranks)]
        dist.all_gather(all_of_them, x)
        total = torch.stack(all_of_them).sum(0)
        ops = torch.ops.untax
        assert (ops.all_gather(x, 1, group) == torch.cat(all_of_them, 1)).all()
        assert (ops.all_reduce(x, "sum", group) == total).all()
        assert (ops.all_reduce(x, "max", group) == torch.stack(all_of_them).max(0).values).all()
        assert (ops.reduce_scatter(x, "sum", 0, group) == total.chunk(ranks)[rank]).all()
        assert (ops.broadcast(x, ranks - 1, group) == all_of_them[-1]).all()
        assert (ops.all_to_all(x, group) == torch.cat([y.chunk(ranks)[rank] for y in all_of_them])).all()
        w = torch.randn(3, 5).to(dtype)
        summed = ops.all_reduce(x.float() @ w.float(), "sum", group)
        close(ops.matmul_all_reduce(x, w, "sum", group), summed.to(dtype), "matmul_all_reduce")
        close(ops.matmul_all_reduce(x, w, "avg", group), (summed / ranks).to(dtype), "average of products")
        for n in (5, 16):
            w = torch.randn(3, n).to(dtype)
            same_x = all_of_them[0]  # at all ranks
            everywhere = ops.all_gather((same_x.float() @ w.float()).to(dtype), 1, group)
            close(ops.matmul_all_scatter(same_x, w, group), everywhere, f"product of {n} columns a rank, at all ranks")
        for lying in (x, x.t().contiguous().t()):  # by rows, and by columns
            scale, residual = torch.ones(3, 2, dtype=dtype)[:, 1], torch.ones_like(lying)
            normed, kept = ops.all_reduce_rms_norm(lying, residual, scale, 1e-6, group)
            close(kept, total + residual, "residual")
            close(normed, torch.nn.functional.rms_norm(total + residual, (3,), scale, 1e-6), "norm")


def types_without_sums():
    """Are moved, bit by bit: integers, bool, and floating point of one and of eight bytes."""
    ops = torch.ops.untax
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float64, torch.complex64,
                  torch.float8_e4m3fn):
        for shape in ((ranks, 3), (2 * ranks, 3, 5), (0, 4), (4 * ranks, 16)):
            size = torch.empty(0, dtype=dtype).element_size()
            x = torch.randint(0, 2 if dtype == torch.bool else 256, (*shape[:-1], shape[-1] * size), dtype=torch.uint8).view(dtype)

            def gathered(x):
                """By gloo, which moves bytes."""
                flat = x.contiguous().view(torch.uint8).contiguous()
                parts = [torch.empty_like(flat) for _ in range(ranks)]
                dist.all_gather(parts, flat)
                return [part.view(x.dtype).view(x.shape) for part in parts]

            def check(got, right, case):
                assert got.dtype == right.dtype and got.shape == right.shape, f"{case}: {got.dtype} {got.shape}"
                assert torch.equal(got.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8)), case

            parts = gathered(x)
            for op, arguments, right in ((ops.all_gather, (x, 0, group), torch.cat(parts)),
                                         (ops.all_gather, (x, -1, group), torch.cat(parts, -1)),
                                         (ops.broadcast, (x, ranks - 1, group), parts[-1]),
                                         (ops.all_to_all, (x, group), torch.cat([part.chunk(ranks)[rank] for part in parts]))):
                case = f"rank {rank}: {op} of {dtype}, {shape}"
                check(op(*arguments), right, case)
                for out in (torch.empty_like(right), torch.empty(right.shape[::-1], dtype=dtype).permute(*reversed(range(x.dim())))):
                    assert op(*arguments, out=out) is None
                    check(out, right, f"{case}, out=")
    flags = torch.tensor(rank % 2 == 1)  # without dimensions
    assert ops.broadcast(flags, 1, group).item() is True
    numbers = torch.arange(3) + rank
    compiled = torch.compile(lambda x: ops.all_gather(x, 0, group) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(numbers), torch.cat([torch.arange(3) + r + 1 for r in range(ranks)]))
    refused(lambda: ops.all_reduce(numbers, "sum", group), "torch.int64")


def written_by(op):
    """The arguments of the variant with out= that it writes."""
    return [argument.name for argument in op.out._schema.arguments if argument.is_out]


def into_what_is_given():
    """The variants with out=, into tensors that lie as results do, and into some that do not."""
    ops = torch.ops.untax
    x, b = torch.randn(2 * ranks, 3 * ranks, 8), torch.randn(8, 8 * ranks)
    q, k, v = torch.randn(2, 4, 16), *torch.randn(2, 2, 3, 2, 16)
    lengths = torch.tensor([3, 1], dtype=torch.int32)
    for op, arguments in ((ops.all_reduce, (x, "sum", group)), (ops.all_reduce, (x[0, 0, 0], "max", group)),
                          (ops.all_gather, (x, 0, group)), (ops.all_gather, (x, 1, group)),
                          (ops.reduce_scatter, (x, "avg", 1, group)), (ops.all_to_all, (x, group)),
                          (ops.broadcast, (x, ranks - 1, group)),
                          (ops.all_gather_matmul, (x, b, 0, group)), (ops.all_gather_matmul, (x, b[:, :3], 1, group)),
                          (ops.matmul_all_reduce, (x, b, "sum", group)),
                          (ops.matmul_all_scatter, (torch.ones(2, 3, 8), b, group)),
                          (ops.matmul_reduce_scatter, (x, b, "sum", 0, group)),
                          (ops.matmul_reduce_scatter, (x, b, "avg", 2, group)),
                          (ops.all_reduce_rms_norm, (x, x.clone(), torch.ones(8), 1e-5, group)),
                          (ops.all_reduce_rms_norm_fp8, (x, x.clone(), torch.ones(8), 1e-5, group)),
                          (ops.flash_decode, (q, k, v, lengths, group)),
                          (ops.flash_attention, (q[:, None], k, v)),
                          (ops.merge_partial_attention, (x, x[..., 0].contiguous(), group))):
        expected = op(*arguments)
        expected = (expected,) if isinstance(expected, torch.Tensor) else expected
        for allocate in (lambda e: torch.full(e.shape, torch.nan), lambda e: torch.full_like(e, torch.nan),
                     lambda e: torch.full(e.shape[::-1], torch.nan).permute(tuple(reversed(range(e.dim()))))):
            outs = {name: allocate(e.float()).to(e.dtype) for name, e in zip(written_by(op), expected, strict=True)}
            addresses = [out.data_ptr() for out in outs.values()]
            assert op(*arguments, **outs) is None
            for address, out, right in zip(addresses, outs.values(), expected, strict=True):
                assert out.data_ptr() == address and torch.equal(out.float(), right.float()), f"{op} {arguments[2:]}"
        refused(lambda: op(*arguments, **{name: torch.empty(1, 1, 1) for name in outs}), "out is (1, 1, 1)")


def refused(call, text):
    """A call that is wrong at all ranks raises at all of them, and no rank waits."""
    try:
        call()
    except untax.InvalidArgument as error:
        assert text in str(error), f"{text} is not in {error}"
    else:
        raise AssertionError(f"nothing was raised that says {text}")


def refusals():
    ops = torch.ops.untax
    x, b = torch.randn(4 * ranks, 8), torch.randn(8, 4 * ranks)
    odd, k = torch.randn(2 * ranks + 1, 8), torch.randn(2, 3, 2, 16)
    lengths = torch.tensor([3, 1], dtype=torch.int32)
    for call, text in (
        (lambda: ops.reduce_scatter(odd, "sum", 0, group), f"{ranks} ranks cannot share equally"),
        (lambda: ops.matmul_reduce_scatter(odd, b, "sum", 0, group), f"extent of {2 * ranks + 1}"),
        (lambda: ops.matmul_reduce_scatter(x, odd.t(), "sum", 1, group), f"extent of {2 * ranks + 1}"),
        (lambda: ops.all_to_all(odd, group), "cannot share equally"),
        (lambda: ops.all_reduce(x, "product", group), "it can be sum"),
        (lambda: ops.all_reduce(x.double(), "sum", group), "torch.float64"),
        (lambda: ops.all_gather_matmul(x, b[1:], 0, group), "a matrix with 8 rows"),
        (lambda: ops.all_gather_matmul(x, b, 1, group), f"a matrix with {8 * ranks} rows"),
        (lambda: ops.matmul_reduce_scatter(x, b[0], "sum", 0, group), "b is"),
        (lambda: ops.matmul_all_reduce(x, b.half(), "sum", group), "b is of torch.float16"),
        (lambda: ops.broadcast(x, ranks, group), "root"),
        (lambda: ops.all_reduce_rms_norm(x, odd, x[0], 1e-5, group), "residual is"),
        (lambda: ops.all_reduce_rms_norm(x, x, x[0, :3], 1e-5, group), "weight is"),
        (lambda: ops.flash_decode(k[:, 0], k, k[:, :2], lengths, group), "values is"),
        (lambda: ops.flash_decode(k[:, 0], k, k, lengths[:1], group), "lengths is"),
        (lambda: ops.flash_attention(k, k[..., :8], k), "keys is"),
        (lambda: ops.merge_partial_attention(x, x, group), "partial_lse is"),
    ):
        refused(call, text)
    # Wrong arguments are refused while a call is traced.
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        fake, fake_odd, fake_b = torch.empty(4 * ranks, 8), torch.empty(2 * ranks + 1, 8), torch.empty(8, 2 * ranks + 1)
        for call in (lambda: ops.reduce_scatter(fake_odd, "sum", 0, group), lambda: ops.all_to_all(fake_odd, group),
                     lambda: ops.matmul_reduce_scatter(fake_odd, fake.t()[:, :8], "sum", 0, group),
                     lambda: ops.matmul_reduce_scatter(fake, fake_b, "sum", 1, group),
                     lambda: ops.all_to_all(fake_odd, group, out=torch.empty_like(fake_odd))):
            refused(call, f"extent of {2 * ranks + 1}, which {ranks} ranks cannot share equally")
        refused(lambda: ops.all_gather_matmul(fake, fake[1:], 0, group), "a matrix with 8 rows")
        refused(lambda: ops.all_reduce(fake, "sum", group, out=fake_b), "out is (8, ")
    assert (ops.all_reduce(torch.ones(3), "sum", group) == ranks).all()


def attention():
    torch.manual_seed(seed)  # q is the same at all ranks
    batch, heads, kv_heads, dim, keys = 2, 4, 2, 16, 6
    q = torch.randn(batch, heads, dim)
    k, v = torch.randn(2, ranks, batch, keys, kv_heads, dim)
    lengths = torch.randint(1, keys + 1, (ranks, batch), dtype=torch.int32)
    out = torch.ops.untax.flash_decode(q, k[rank], v[rank], lengths[rank], group)
    for b in range(batch):
        ks = torch.cat([k[r, b, : lengths[r, b]] for r in range(ranks)]).repeat_interleave(2, 1)
        vs = torch.cat([v[r, b, : lengths[r, b]] for r in range(ranks)]).repeat_interleave(2, 1)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q[b, :, None], ks.transpose(0, 1), vs.transpose(0, 1))[:, 0]
        close(out[b], expected, "flash_decode")
    # The same keys in pages of a cache that has others, too, in any order.
    page, pages = 4, torch.randperm(7)[: batch * 2].view(batch, 2)
    caches = torch.full((2, 7, page, kv_heads, dim), torch.nan)
    for cache, own in zip(caches, (k[rank], v[rank]), strict=True):
        padded = torch.nn.functional.pad(own, (0, 0, 0, 0, 0, 2 * page - keys), value=torch.nan)
        cache[pages] = padded.unflatten(1, (2, page))
    paged = torch.ops.untax.flash_decode(q, *caches, lengths[rank], group, page_table=pages)
    close(paged, out, "flash_decode of pages")
    capped = torch.ops.untax.flash_decode(q, k[rank], v[rank], lengths[rank], group, 0.0, None, 2.0)
    close(untax_torch.flash_decode(q, *caches, lengths[rank], page_table=pages, logit_cap=2.0), capped, "with a cap, of pages")
    assert not torch.allclose(capped, out, atol=1e-4)
    refused(lambda: torch.ops.untax.flash_decode(q, *caches, lengths[rank], group, page_table=pages[:1]), "page_table is (1, 2)")


def norm_in_fp8():
    """Beside the norm that is not rounded: with a scale of each token, and with one for all."""
    for dtype, hidden in ((torch.float32, 72), (torch.float16, 64), (torch.bfloat16, 64), (torch.float32, 16400)):
        x, same_rows = torch.randn(3, 2, hidden).to(dtype), torch.Generator().manual_seed(seed)
        residual, weight = (torch.randn(*shape, generator=same_rows).to(dtype) for shape in ((3, 2, hidden), (hidden,)))
        normed, total = untax_torch.all_reduce_rms_norm(x.float(), residual.float(), weight.float())
        for scale in (0.0, 0.02):
            got, kept, scales = untax_torch.all_reduce_rms_norm_fp8(x, residual, weight, scale=scale)
            case = f"fp8 of {dtype}, {hidden} elements, scale {scale}"
            assert got.dtype == torch.float8_e4m3fn and scales.dtype == torch.float32 and scales.shape == (3, 2), case
            close(kept, total.to(dtype), f"{case}: total")
            if scale == 0:
                limit = 2e-2 if dtype == torch.bfloat16 else 2e-3
                torch.testing.assert_close(scales, normed.abs().amax(-1) / 448, rtol=limit, atol=0)
            else:
                assert (scales == torch.tensor(scale)).all(), case
            error = (got.float() * scales[..., None] - normed.clamp(-448 * scales[..., None], 448 * scales[..., None])).norm()
            assert error <= 0.04 * normed.norm(), f"{case}: error {error / normed.norm()}"
    refused(lambda: untax_torch.all_reduce_rms_norm_fp8(x, residual, weight, scale=-1.0), "scale is -1.0; it has to be above 0")


def prefill():
    """Many queries of a sequence, each rank with a part of the keys, merged; and with all of them, against torch."""
    torch.manual_seed(seed)
    q = torch.randn(2, 3, 4, 16)
    k, v = torch.randn(2, 2, 3 * ranks, 2, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    ks, vs = (x.repeat_interleave(2, 2).transpose(1, 2) for x in (k, v))
    expected = attend(q.transpose(1, 2), ks, vs).transpose(1, 2)
    part = slice(rank * 3, rank * 3 + 3)
    merged, lse = untax_torch.merge_partial_attention(*torch.ops.untax.flash_attention(q, k[:, part], v[:, part]), group)
    close(merged, expected, "merged prefill")
    whole, log_sums = torch.ops.untax.flash_attention(q, k, v)
    close(whole, expected, "prefill")
    close(log_sums, lse, "its logarithms")
    square = attend(q.transpose(1, 2), ks[:, :, :3], vs[:, :, :3], is_causal=True).transpose(1, 2)
    close(torch.ops.untax.flash_attention(q, k[:, :3], v[:, :3], True)[0], square, "causal prefill")


def merged_attention():
    """Partial results of torch's attention, of which a rank may have none."""
    torch.manual_seed(seed)
    batch, heads, dim, keys = 3, 2, same.choice([24, 576]), 5
    q = torch.randn(batch, heads, dim)
    k, v = torch.randn(2, ranks, batch, heads, keys, dim)
    counts = torch.randint(0, keys + 1, (ranks, batch))
    counts[:, 0], counts[0, 1] = 0, 1
    logits = torch.einsum("bhd,rbhkd->rbhk", q, k) / dim**0.5
    logits.masked_fill_(torch.arange(keys) >= counts[:, :, None, None], -torch.inf)
    o = torch.einsum("bhk,bhkd->bhd", logits[rank].softmax(-1).nan_to_num(), v[rank])
    merged, lse = untax_torch.merge_partial_attention(o, logits[rank].logsumexp(-1))
    together = logits.movedim(0, 2).flatten(2)
    expected = torch.einsum("bhk,bhkd->bhd", together.softmax(-1).nan_to_num(), v.movedim(0, 2).flatten(2, 3))
    close(merged, expected, "merged attention")
    assert torch.allclose(lse, together.logsumexp(-1), atol=1e-5) and (lse[0] == -torch.inf).all()


def named_operators():
    """Calls an operator as torch does if it has no shapes for it, although it has some for this one."""
    from untax.named import class_of
    from untax.operators import kinds
    from untax.torch.named import NamedCall

    call = NamedCall("gemm_reduce_scatter")
    own_class, kinds[call.kind] = kinds[call.kind], class_of(call.kind)
    assert call.schema == ("gemm_reduce_scatter(Tensor a, Tensor weights, str group_name, int m, int n, int k, "
                           "str? partials=None)"), call.schema
    m, n, k = 3 * ranks, 8, 8 * ranks
    a, weights = torch.randn(m, k // ranks), torch.randn(n, k // ranks)
    total = a @ weights.t()
    dist.all_reduce(total)
    got = call.run(a, weights, group, m, n, k)
    close(got, total[3 * rank:3 * rank + 3], "a named operator")
    into = torch.empty(3, n)
    call.run(a, weights, group, m, n, k, c=into)
    assert torch.equal(into, got)
    fake = call.fake(a, weights, group, m, n, k)
    assert fake.shape == got.shape and fake.dtype == got.dtype
    kinds[call.kind] = own_class


def derivatives():
    """A layer that is split, against the layer as a whole: results, and gradients of input and weights."""
    torch.manual_seed(seed)  # the whole layer is the same at all ranks
    tokens, width, hidden = 3 * ranks, 8, 8 * ranks
    up, down = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)
    x = torch.randn(tokens, width, requires_grad=True)
    expected = down(torch.nn.functional.gelu(up(x)))
    expected.square().sum().backward()
    mine = slice(rank * 3, rank * 3 + 3)
    column = untax_torch.ColumnParallelLinear.of(up)
    row = untax_torch.RowParallelLinear.of(down)
    share = x.detach()[mine].clone().requires_grad_()

    def layer(tensor):
        return row(torch.nn.functional.gelu(column(tensor)))

    for run in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        share.grad = column.weight.grad = row.weight.grad = None
        got = run(share)
        close(got, expected.detach()[mine], "mlp")
        got.square().sum().backward()
        close(share.grad, x.grad[mine], "gradient of the input")
        close(column.weight.grad, up.weight.grad.chunk(ranks)[rank], "gradient of column weights")
        close(row.weight.grad, down.weight.grad.chunk(ranks, 1)[rank], "gradient of row weights")


def checked_by_torch():
    """Schemas, fake tensors, derivatives, and what torch.compile makes of them, as torch itself looks at them."""
    looked = set()

    def looked_at(overload, arguments, named={}):
        # torch compares no tensors of fp8, which a check of schemas and one of what is traced would do.
        checks = ("test_autograd_registration", "test_faketensor") if "fp8" in overload.name() else (
            "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        torch.library.opcheck(overload, arguments, named, test_utils=checks)
        looked.add(overload.name())

    ops = torch.ops.untax
    a, b = torch.randn(4, 8, requires_grad=True), torch.randn(8, 4 * ranks, requires_grad=True)
    c = torch.randn(2 * ranks, 3, 8)
    lengths = torch.tensor([3, 1], dtype=torch.int32)
    k = torch.randn(2, 4, 1, 16)
    for op, arguments in (
        (ops.all_gather_matmul, (a, b, 0, group)), (ops.all_gather_matmul, (c, b.detach(), 1, group)),
        (ops.all_gather_matmul, (torch.randn(3, 8), torch.randn(8 * ranks, 5), 1, group)),
        (ops.matmul_reduce_scatter, (torch.randn(2 * ranks, 8, requires_grad=True), b, "sum", 0, group)),
        (ops.matmul_reduce_scatter, (c, b.detach(), "avg", 2, group)), (ops.all_gather, (c, 1, group)),
        (ops.reduce_scatter, (c, "sum", 0, group)), (ops.all_reduce, (c, "sum", group)), (ops.all_to_all, (c, group)),
        (ops.broadcast, (c, 0, group)), (ops.matmul_all_reduce, (c, torch.randn(8, 3), "sum", group)),
        (ops.matmul_all_scatter, (c, torch.randn(8, 16), group)),
        (ops.all_reduce_rms_norm, (c, c.clone(), torch.ones(8), 1e-6, group)),
        (ops.all_reduce_rms_norm_fp8, (c, c.clone(), torch.ones(8), 1e-6, group)),
        (ops.merge_partial_attention, (c, c[..., 0].contiguous(), group)),
        (ops.flash_decode, (torch.randn(2, 2, 16), k, k.clone(), lengths, group)),
        (ops.flash_attention, (torch.randn(2, 3, 2, 16), k, k.clone(), True)),
        (ops.linear, (a, torch.randn(6, 8, requires_grad=True), torch.randn(6), "none")),
        (ops.linear, (c, torch.randn(16, 8), None, "swiglu")),
        (ops.decode_attention, (torch.randn(2, 2, 16), k, k.clone(), lengths)),
        (ops.rope_append, (torch.randn(2, 64), torch.ones(4, 16), lengths, k.clone(), k.clone())),
    ):
        looked_at(op.default, arguments)
        if "out" in op.overloads():
            with torch.no_grad():
                results = op(*arguments)
            results = (results,) if isinstance(results, torch.Tensor) else results
            looked_at(op.out, tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in arguments),
                      {name: torch.empty_like(result) for name, result in zip(written_by(op), results, strict=True)})
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    names = {name for name in registered if name.startswith("untax::")}
    assert names == looked, f"nobody has looked at {names - looked}"


for check in (takeover, visible_fallback, asynchronous_tensor_parallelism, switched_on, collectives, types_without_sums, into_what_is_given, refusals,
              attention, norm_in_fp8, prefill, merged_attention, derivatives, named_operators, checked_by_torch, sub_groups, worlds_that_end,
              a_rank_that_raises):
    check()
    if rank == 0:
        print(f"{check.__name__}: right with {ranks} ranks", flush=True)
dist.barrier()
a_rank_that_leaves()
print(f"rank {rank}: done", flush=True)
