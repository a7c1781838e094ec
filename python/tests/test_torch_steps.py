"""Ranks of untax.torch that stay in step, means, gradients and types of partial results, with ranks that are threads."""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed; ./test.sh installs it where there is no GPU", allow_module_level=True)

import torch  # noqa: E402

import untax  # noqa: E402
import untax.torch as untax_torch  # noqa: E402

ops = torch.ops.untax


def run(ranks, body, wait_limit=30.0):
    """`body(rank, name)` of each rank, which returns what it ends with, also errors."""

    def on_rank(world):
        try:
            return body(world.rank, untax_torch.name_of(world))
        except untax.Error as error:
            return error

    try:
        return untax.run_threads(ranks, on_rank, wait_limit=wait_limit)
    finally:
        untax_torch.close()


def all_right(results):
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


BY_ROWS = {
    "all_gather": lambda x, n: ops.all_gather(x, 0, n),
    "reduce_scatter": lambda x, n: ops.reduce_scatter(x, "sum", 0, n),
    "all_reduce": lambda x, n: ops.all_reduce(x, "sum", n),
    "all_to_all": lambda x, n: ops.all_to_all(x, n),
    "broadcast": lambda x, n: ops.broadcast(x, 0, n),
    "all_gather_matmul": lambda x, n: ops.all_gather_matmul(x, torch.ones(64, 8), 0, n),
    "matmul_reduce_scatter": lambda x, n: ops.matmul_reduce_scatter(x, torch.ones(64, 8), "sum", 0, n),
    "matmul_all_reduce": lambda x, n: ops.matmul_all_reduce(x, torch.ones(64, 8), "sum", n),
    "matmul_all_scatter": lambda x, n: ops.matmul_all_scatter(x, torch.ones(64, 8), n),
    "all_reduce_rms_norm": lambda x, n: ops.all_reduce_rms_norm(x, x.clone(), torch.ones(64), 1e-5, n)[1],
    "merge_partial_attention": lambda x, n: ops.merge_partial_attention(x.view(-1, 2, 32), x[:, :2].contiguous(), n)[0],
    "flash_decode": lambda x, n: ops.flash_decode(x.view(-1, 1, 64), *x.new_ones(2, len(x), 3, 1, 64),
                                                  torch.ones(len(x), dtype=torch.int32), n),
}


@pytest.mark.parametrize("operator", BY_ROWS)
@pytest.mark.parametrize("rows", [4, 600])
def test_a_rank_without_rows_is_reported_by_all(operator, rows):
    """Before, it returned at once, and its next calls met those of its peers a step too early."""

    def body(rank, name):
        for step, mine in enumerate([rows, 0, rows] if rank == 0 else [rows] * 3):
            BY_ROWS[operator](torch.full((mine, 64), float(2**step)), name)
        return None

    results = run(2, body, wait_limit=2)
    if operator == "flash_decode":  # whose plans are for one batch: they wait for each other until the limit
        assert all(isinstance(result, untax.Timeout | untax.Aborted) for result in results), results
    else:
        assert all(isinstance(result, untax.Disagreement) and "0 at rank 0" in str(result) for result in results), results


@pytest.mark.parametrize("operator", BY_ROWS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_calls_without_rows_at_any_rank_are_valid(operator, ranks):
    def body(rank, name):
        for rows in (0, 6, 0, 6):
            x = torch.full((rows, 64), float(rank + 1))
            BY_ROWS[operator](x, name)
            total = ops.all_reduce(x, "sum", name)
            assert total.shape == x.shape and (total == ranks * (ranks + 1) / 2).all()

    all_right(run(ranks, body))


@pytest.mark.parametrize("ranks", [2, 3])
def test_calls_without_columns_return_empty_or_zero_tensors(ranks):
    def body(rank, name):
        for a, b in ((torch.ones(6, 0), torch.ones(0, 8)), (torch.ones(6, 8), torch.ones(8, 0))):
            for got, shape in ((ops.all_gather_matmul(a, b, 0, name), (6 * ranks, b.shape[1])),
                               (ops.matmul_reduce_scatter(a, b, "avg", 0, name), (6 // ranks, b.shape[1])),
                               (ops.matmul_all_reduce(a, b, "sum", name), (6, b.shape[1])),
                               (ops.matmul_all_scatter(a, b, name), (6, b.shape[1] * ranks))):
                assert got.shape == shape and (got == 0).all()
        assert (ops.all_reduce(torch.ones(3), "sum", name) == ranks).all()

    all_right(run(ranks, body))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_means_do_not_overflow_where_sums_do(ranks, dtype):
    """Of the largest number that the type has, and of numbers whose mean needs no rounding."""
    largest = torch.finfo(dtype).max

    def body(rank, name):
        x, eye = torch.full((2 * ranks, 8), largest, dtype=dtype), torch.eye(8, dtype=dtype)
        steps = torch.full((2 * ranks, 8), float(rank * 4), dtype=dtype)
        for tensor, right in ((x, largest), (steps, 2.0 * (ranks - 1))):
            for got in (ops.all_reduce(tensor, "avg", name), ops.reduce_scatter(tensor, "avg", 0, name),
                        ops.matmul_reduce_scatter(tensor, eye, "avg", 0, name),
                        ops.matmul_reduce_scatter(tensor.t().contiguous(), torch.eye(2 * ranks, dtype=dtype), "avg", 1, name),
                        ops.matmul_all_reduce(tensor, eye, "avg", name)):
                limit = 0 if ranks in (1, 2, 4) else 1.5 * torch.finfo(dtype).eps  # 4 / 3 is rounded
                assert ((got.double() - right).abs() <= limit * right).all(), (got, right)

    all_right(run(ranks, body))


@pytest.mark.parametrize(("partials", "value"), [(None, 256), ("bf16", 256), ("fp32", 258)])
def test_partial_results_travel_in_the_type_of_the_operands(partials, value):
    """That of the peer is 257, which bf16 has not, and the own one is 1."""

    def body(rank, name):
        a, b = torch.zeros(2, 8, dtype=torch.bfloat16), torch.zeros(8, 8, dtype=torch.bfloat16)
        a[:, 1] = b[1] = 1
        a[1 - rank, 0] = 16
        b[0] = 16
        named = {} if partials is None else {"partials": partials}
        for _ in range(3):  # planned, again, and by what is known
            assert (ops.matmul_reduce_scatter(a, b, "sum", 0, name, **named) == value).all()
            assert (ops.matmul_all_reduce(a, b, "sum", name, **named)[rank] == value).all()
            assert (untax_torch.matmul_all_reduce(a, b, partials=partials, group=name)[rank] == value).all()
        layer = untax_torch.RowParallelLinear(16, 8, bias=False, group=name, dtype=torch.bfloat16, partials=partials)
        with torch.no_grad():
            layer.weight.copy_(b.t())
            assert (layer(a) == value).all()
        with pytest.raises(untax.InvalidArgument, match="partials is 'fp16'"):
            ops.matmul_all_reduce(a, b, "sum", name, partials="fp16")

    all_right(run(2, body))


@pytest.mark.parametrize("ranks", [1, 3])
def test_rows_have_the_same_bits_in_any_batch_where_that_is_asked_for(ranks):
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(70, 128, generator=generator).bfloat16(), torch.randn(128, 24, generator=generator).bfloat16()

    def body(rank, name):
        for call in (lambda x: ops.all_gather_matmul(x, b, 0, name, invariant=True),
                     lambda x: ops.matmul_reduce_scatter(x.repeat(ranks, 1), b, "sum", 0, name, invariant=True),
                     lambda x: ops.matmul_all_reduce(x, b, "sum", name, invariant=True),
                     lambda x: ops.matmul_all_scatter(x, b, name, invariant=True)):
            alone = call(a[:1])[0]
            for rows in (2, 7, 33, 70):
                assert torch.equal(call(a[:rows])[0], alone), rows
        with pytest.raises(untax.InvalidArgument, match="invariant is True"):
            ops.matmul_all_scatter(a, b[:, :3], name, invariant=True)

    all_right(run(ranks, body))


def test_norm_weights_of_fp32_equal_those_of_16_bits():
    def body(rank, name):
        x, weight = torch.randn(3, 16).bfloat16(), torch.rand(16) + 0.5
        got = ops.all_reduce_rms_norm(x, x, weight, 1e-5, name)
        right = ops.all_reduce_rms_norm(x, x, weight.bfloat16(), 1e-5, name)
        assert all(torch.equal(*pair) for pair in zip(got, right, strict=True))

    all_right(run(2, body))


def test_an_infinity_of_either_sign_is_a_rank_without_keys():
    def body(rank, name):
        o, lse = torch.full((2, 1, 8), float(rank)), torch.full((2, 1), torch.inf)
        if rank == 1:
            lse[0] = 3
        else:
            o[0] = torch.nan
        got, total = ops.merge_partial_attention(o, lse, name)
        assert (got[0] == 1).all() and (got[1] == 0).all()
        assert total[0] == 3 and total[1] == -torch.inf

    all_right(run(2, body))


def test_impossible_arguments_are_invalid():
    def body(rank, name):
        number, x = torch.tensor(1.0), torch.ones(4, 8)
        for call, text in ((lambda: ops.all_gather(number, 0, name), "dim is 0; there is none"),
                           (lambda: ops.all_gather(x, 5, name), "dim is 5; it has to be from -2 to 1"),
                           (lambda: ops.reduce_scatter(number, "sum", 0, name), "there is none"),
                           (lambda: ops.all_to_all(number, name), "there is none"),
                           (lambda: ops.all_reduce_rms_norm(number, number, number, 1e-5, name), "x has no dimension"),
                           (lambda: ops.matmul_all_reduce(number, x, "sum", name), "a has no dimension"),
                           (lambda: ops.matmul_all_scatter(number, x, name), "a has no dimension"),
                           (lambda: ops.flash_decode(x, x, x, x, name), "q has 2 dimensions; it has to have 3"),
                           (lambda: ops.flash_attention(x, x, x), "q has 2 dimensions; it has to have 4"),
                           (lambda: ops.merge_partial_attention(number, number, name), "partial_o has no dimension"),
                           (lambda: ops.all_reduce(x, "sum", "nobody's"), "'nobody's' is the name of no process group"),
                           (lambda: untax_torch.name_of(None), "init_process_group"),
                           (lambda: untax_torch.RowParallelLinear(8, 8), "init_process_group"),
                           (lambda: untax_torch.all_reduce(x, group=3), "group is 3; it has to be a process group")):
            with pytest.raises(untax.InvalidArgument) as refused:
                call()
            assert text in str(refused.value).replace('"nobody\'s"', "'nobody's'")

    all_right(run(1, body))


# Gradients: the sum of what all ranks make of their results is one function of what all ranks pass.


def _norm(x, residual, weight):
    total = [sum(x) + each for each in residual]
    scale = [(t.square().mean(-1, keepdim=True) + 1e-5).rsqrt() for t in total]
    return [torch.cat([t * s * w, t], 0) for t, s, w in zip(total, scale, weight, strict=True)]


def _products(a, b):
    return [x @ y for x, y in zip(a, b, strict=True)]


def _mean(sums, ranks):
    return [each / ranks for each in sums]


def differentiable(ranks):
    """By name: the call, how many tensors it takes, their shapes, and what all ranks get of what all ranks pass."""
    shares = lambda x, dim=0: list(x.chunk(ranks, dim))  # noqa: E731
    return {
        "all_gather": (lambda n, x: ops.all_gather(x, 1, n), [(3, 8)], lambda x: [torch.cat(x, 1)] * ranks),
        "reduce_scatter": (lambda n, x: ops.reduce_scatter(x, "sum", 0, n), [(2 * ranks, 8)], lambda x: shares(sum(x))),
        "reduce_scatter avg": (lambda n, x: ops.reduce_scatter(x, "avg", 1, n), [(3, 2 * ranks)],
                               lambda x: _mean(shares(sum(x), 1), ranks)),
        "all_reduce": (lambda n, x: ops.all_reduce(x, "sum", n), [(3, 8)], lambda x: [sum(x)] * ranks),
        "all_reduce avg": (lambda n, x: ops.all_reduce(x, "avg", n), [(3, 8)], lambda x: [sum(x) / ranks] * ranks),
        "all_to_all": (lambda n, x: ops.all_to_all(x, n), [(2 * ranks, 8)],
                       lambda x: [torch.cat([shares(peer)[rank] for peer in x]) for rank in range(ranks)]),
        "broadcast": (lambda n, x: ops.broadcast(x, ranks - 1, n), [(3, 8)], lambda x: [x[-1] + 0 * sum(x)] * ranks),
        "all_gather_matmul": (lambda n, a, b: ops.all_gather_matmul(a, b, 0, n), [(3, 8), (8, 16)],
                              lambda a, b: [torch.cat(a) @ each for each in b]),
        "matmul_reduce_scatter": (lambda n, a, b: ops.matmul_reduce_scatter(a, b, "sum", 0, n), [(2 * ranks, 8), (8, 16)],
                                  lambda a, b: shares(sum(_products(a, b)))),
        "matmul_reduce_scatter avg": (lambda n, a, b: ops.matmul_reduce_scatter(a, b, "avg", 1, n), [(3, 8), (8, 8 * ranks)],
                                      lambda a, b: _mean(shares(sum(_products(a, b)), 1), ranks)),
        "matmul_all_reduce": (lambda n, a, b: ops.matmul_all_reduce(a, b, "sum", n), [(2, 3, 8), (8, 16)],
                              lambda a, b: [sum(_products(a, b))] * ranks),
        "matmul_all_reduce avg": (lambda n, a, b: ops.matmul_all_reduce(a, b, "avg", n), [(3, 8), (8, 16)],
                                  lambda a, b: [sum(_products(a, b)) / ranks] * ranks),
        "matmul_all_scatter": (lambda n, a, b: ops.matmul_all_scatter(a, b, n), [(2, 3, 8), (8, 16)],
                               lambda a, b: [torch.cat(_products(a, b), -1)] * ranks),
        "all_reduce_rms_norm": (lambda n, x, r, w: torch.cat(ops.all_reduce_rms_norm(x, r, w, 1e-5, n), 0),
                                [(3, 16), (3, 16), (16,)], _norm),
    }


@pytest.mark.parametrize("operator", differentiable(2))
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_gradients_are_those_of_the_sum_over_ranks(operator, ranks):
    call, shapes, whole = differentiable(ranks)[operator]
    generator = torch.Generator().manual_seed(11)
    # An operand that has the same value at all ranks counts as a variable of each rank in the derivative.
    same = {"matmul_all_scatter": (0,), "all_reduce_rms_norm": (1, 2)}.get(operator, ())
    drawn = [[torch.randn(shape, generator=generator) for _ in range(ranks)] for shape in shapes]
    drawn = [[each[0]] * ranks if i in same else each for i, each in enumerate(drawn)]
    variables = [[x.clone().double().requires_grad_() for x in each] for each in drawn]
    results = whole(*variables)
    grads = [torch.randn(result.shape, generator=generator) for result in results]
    sum((result * factor).sum() for result, factor in zip(results, grads, strict=True)).backward()

    def body(rank, name):
        tensors = [each[rank].clone().requires_grad_() for each in drawn]
        got = call(name, *tensors)
        torch.testing.assert_close(got, results[rank].detach().float(), rtol=1e-4, atol=1e-4)
        (got * grads[rank]).sum().backward()
        for i, (tensor, each) in enumerate(zip(tensors, variables, strict=True)):
            torch.testing.assert_close(tensor.grad, each[rank].grad.float(), rtol=1e-4, atol=1e-4, msg=lambda m, i=i: f"{i}: {m}")

    all_right(run(ranks, body))


def test_backward_without_a_derivative_is_refused():
    def body(rank, name):
        q, k = torch.ones(2, 2, 16, requires_grad=True), torch.ones(2, 3, 1, 16)
        x = torch.ones(2, 8, requires_grad=True)
        lengths = torch.ones(2, dtype=torch.int32)
        for call, text in ((lambda: ops.flash_decode(q, k, k.clone(), lengths, name), "untax.flash_decode has no derivative"),
                           (lambda: ops.flash_attention(q[:, None], k, k.clone())[0], "untax.flash_attention has no"),
                           (lambda: ops.merge_partial_attention(x, x.detach()[:, 0].contiguous(), name)[0],
                            "untax.merge_partial_attention has no derivative"),
                           (lambda: ops.all_reduce(x, "max", name), "untax.all_reduce has no derivative for 'max'"),
                           (lambda: ops.reduce_scatter(x, "min", 0, name), "no derivative for 'min'"),
                           (lambda: ops.matmul_all_reduce(x, torch.ones(8, 8), "max", name), "no derivative for 'max'")):
            result = call()
            assert result.requires_grad
            with pytest.raises(untax.Unsupported, match=text):
                result.sum().backward()
        with pytest.raises(untax.InvalidArgument, match="x requires a gradient"):
            ops.all_reduce(x, "sum", name, out=torch.empty(2, 8))
        with torch.no_grad():
            ops.all_reduce(x, "sum", name, out=torch.empty(2, 8))

    all_right(run(1, body))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_bias_of_a_row_layer_has_the_gradient_of_all_tokens(ranks, compiled):
    """Before, it had that of this rank's tokens, and the ranks' biases went apart at the first step of an optimizer."""
    torch.manual_seed(2)
    linear = torch.nn.Linear(8 * ranks, 16)
    x = torch.randn(3 * ranks, 8 * ranks)
    linear(x).square().sum().backward()

    def body(rank, name):
        layer = untax_torch.RowParallelLinear.of(linear, group=name)
        forward = torch.compile(layer, fullgraph=True, backend="aot_eager") if compiled and rank == 0 else layer
        forward(x[:, 8 * rank:8 * rank + 8].contiguous()).square().sum().backward()
        torch.testing.assert_close(layer.bias.grad, linear.bias.grad, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(layer.weight.grad, linear.weight.grad.chunk(ranks, 1)[rank], rtol=1e-4, atol=1e-4)
        return layer.bias.grad

    grads = all_right(run(ranks, body))
    assert all(torch.equal(grad, grads[0]) for grad in grads), "the bits are the same at all ranks"
