"""Products of matrices that are sharded over the ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import Call, engine_for, has_run, operand_of, result_of, rows_of, run_gemm, stream_of
from .collectives import run_all_gather, run_all_reduce
from .define import gradient_of_sum, operator
from .groups import name_of
from .shapes import (after_sum, allocate_result, as_matrix, before_sum, columns_of, deliver, dimension, from_front,
                     kernels_lack, last_extent, pad_shards_of_k, partials_of, require_fit, require_sum, share_of, to_front)

__all__ = ["all_gather_matmul", "matmul_all_reduce", "matmul_all_scatter", "matmul_reduce_scatter"]
_ops = torch.ops.untax


def _plan_options(partials: str | None, invariant: bool) -> dict[str, Any]:
    """The options of a plan that differ from the defaults."""
    options: dict[str, Any] = {} if partials is None else {"partials": partials}
    return options | {"invariant": True} if invariant else options


def _refuse_invariant(invariant: bool, operator: str, why: str) -> None:
    """Refuses `invariant` if torch multiplies: the bits of its rows may depend on the batch."""
    if invariant:
        raise InvalidArgument(f"{operator}: invariant is True, which torch's matmul cannot do, and {why}")


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a and b, from the gradient of their product at this rank."""
    a, b = ctx.saved_tensors
    grad_a = grad @ b.t() if ctx.needs_input_grad[0] else None
    grad_b = as_matrix(a).t() @ as_matrix(grad) if ctx.needs_input_grad[1] else None
    return grad_a, grad_b


def run_all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int, group_name: str, partials: str | None = None,
                          invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`partials` is the type in which partial results of the derivative, a sum, are sent."""
    engine = engine_for(a, group_name)
    key = "all_gather_matmul", gather_dim, invariant
    if (result := engine.known.again(key, out, a, b)) is not None:
        return result
    ranks, gather_dim = engine.world.size, dimension("gather_dim", gather_dim, a)
    partials_of(a, partials)
    n = columns_of(a, b, a.shape[-1] * (ranks if gather_dim == a.dim() - 1 else 1))
    if gather_dim == a.dim() - 1:
        if out is not None:
            require_fit(a, (*a.shape[:-1], n), out)
        if a.shape[-1] % 8 != 0 and ranks > 1:
            why = f"shards of k begin at multiples of 8, and a has {a.shape[-1]} columns"
            _refuse_invariant(invariant, "all_gather_matmul", why)
            return deliver(torch.matmul(run_all_gather(a, gather_dim, group_name), b), out)
        result = allocate_result(a, (*a.shape[:-1], n), 0, out)
        flat = as_matrix(a)
        m, k, gather = flat.shape[0], flat.shape[1] * ranks, "k"
    else:
        front = to_front(a, gather_dim)
        result = allocate_result(a, (front.shape[0] * ranks, *front.shape[1:-1], n), gather_dim, out)
        flat = as_matrix(front)
        m, k, gather = flat.shape[0] * ranks, flat.shape[1], "rows"
    if has_run(engine, result, result.numel() * k, n * k > 0):
        call = Call(engine, key, (a, b), out) if gather_dim == 0 or gather == "k" or out is not None else None
        op = engine.planned("all_gather_gemm", m=m, n=n, k=k, dtype=a.dtype, gather=gather, **_plan_options(None, invariant))
        run_gemm(op, flat, b.t(), result, call)
    elif k == 0:
        result.zero_()
    return deliver(result if gather == "k" else from_front(result, gather_dim), out)


def _all_gather_matmul_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    dim, group = ctx.gather_dim, ctx.group_name
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = _ops.matmul_reduce_scatter(grad, b.t(), "sum", dim, group, ctx.partials, ctx.invariant)
    if ctx.needs_input_grad[1]:
        grad_b = as_matrix(_ops.all_gather(a, dim, group)).t() @ as_matrix(grad)
    return grad_a, grad_b


@operator(run_all_gather_matmul, gradient=_all_gather_matmul_gradients, saved=("a", "b"))
def all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int = 0, group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The a of all ranks, gathered along `gather_dim`, times this rank's b of [k, n]: a linear layer whose weights are split
    by columns. `partials` is the type in which partial results of the derivative, a sum over ranks, are sent."""
    return _ops.all_gather_matmul(a, b, gather_dim, name_of(group), partials, invariant)


def run_matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str,
                              partials: str | None = None, invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    key = "matmul_reduce_scatter", reduce_op, scatter_dim, partials, invariant
    if (result := engine.known.again(key, out, a, b)) is not None:
        return result
    require_sum(reduce_op)
    ranks, scatter_dim = engine.world.size, dimension("scatter_dim", scatter_dim, a)
    options = _plan_options(partials_of(a, partials), invariant)
    columns = columns_of(a, b, a.shape[-1])
    # Rows of the product are scattered; columns are rows of the transposed product.
    last = scatter_dim == a.dim() - 1
    share = share_of(columns if last else a.shape[scatter_dim], scatter_dim, ranks)
    front = a if last else to_front(a, scatter_dim)
    flat = as_matrix(front)
    left, right = (b.t(), flat) if last else (flat, b.t())
    m, n, k = left.shape[0], right.shape[0], left.shape[1]
    if last:
        if out is not None:
            require_fit(a, (*a.shape[:-1], share), out)
        result = a.new_empty((share, n))
    else:
        result = allocate_result(a, (share, *front.shape[1:-1], n), scatter_dim, out)
    if has_run(engine, result, result.numel() * k, n * k > 0):
        call = Call(engine, key, (a, b), out) if scatter_dim == 0 and not last or out is not None else None
        left, right = pad_shards_of_k(*_factors(left, right, reduce_op, ranks), ranks)
        op = engine.planned("gemm_reduce_scatter", m=m, n=n, k=left.shape[1] * ranks, dtype=a.dtype, **options)
        run_gemm(op, left, right, result, call)
    elif k == 0:
        result.zero_()
    after_sum(result, reduce_op, ranks)
    if last:
        return deliver(result.t().reshape(*a.shape[:-1], share), out)
    return deliver(from_front(result, scatter_dim), out)


def _factors(left: Tensor, right: Tensor, reduce_op: str, ranks: int) -> tuple[Tensor, Tensor]:
    """The factors of the product; for "avg" the smaller one is divided."""
    if left.numel() < right.numel():
        return before_sum(left, reduce_op, ranks), right
    return left, before_sum(right, reduce_op, ranks)


def _matmul_reduce_scatter_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    dim, group = ctx.scatter_dim, ctx.group_name
    grad = gradient_of_sum(ctx, grad, "matmul_reduce_scatter")
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = _ops.all_gather_matmul(grad, b.t(), dim, group, None, ctx.invariant)
    if ctx.needs_input_grad[1]:
        grad_b = as_matrix(a).t() @ as_matrix(_ops.all_gather(grad, dim, group))
    return grad_a, grad_b


@operator(run_matmul_reduce_scatter, gradient=_matmul_reduce_scatter_gradients,
          saved=("a", "b"))
def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str = "sum", scatter_dim: int = 0, group: Any = None, *,
                          partials: str | None = None, invariant: bool = False) -> Tensor:
    """This rank's share, along `scatter_dim`, of the "sum" or "avg" of a times b over ranks: a linear layer whose weights are
    split by rows. Partial results travel in the type of the operands, or in fp32 with `partials="fp32"`."""
    return _ops.matmul_reduce_scatter(a, b, reduce_op, scatter_dim, name_of(group), partials, invariant)


def run_matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str, partials: str | None = None,
                          invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    key = "matmul_all_reduce", reduce_op, partials, invariant
    if (result := engine.known.again(key, out, a, b)) is not None:
        return result
    n, options = columns_of(a, b, last_extent("a", a)), _plan_options(partials_of(a, partials), invariant)
    reason = "it only sums" if reduce_op not in ("sum", "avg") else kernels_lack(a, *b.shape)
    if reason:  # gemm_all_reduce does not support the call
        _refuse_invariant(invariant, "matmul_all_reduce", reason)
        return run_all_reduce(torch.matmul(a, b), reduce_op, group_name, out=out)
    ranks, k = engine.world.size, a.shape[-1]
    result = allocate_result(a, (*a.shape[:-1], n), 0, out)
    if has_run(engine, result, result.numel() * k, n * k > 0):
        left, right = pad_shards_of_k(*_factors(as_matrix(a), b.t(), reduce_op, ranks), ranks)
        op = engine.planned("gemm_all_reduce", m=left.shape[0], n=n, k=left.shape[1] * ranks, dtype=a.dtype, **options)
        run_gemm(op, left, right, result, Call(engine, key, (a, b), out))
    elif k == 0:
        result.zero_()
    return deliver(after_sum(result, reduce_op, ranks), out)


def _matmul_all_reduce_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    gradient_of_sum(ctx, grad, "matmul_all_reduce")  # refuses reductions without a derivative
    return _gradients(ctx, _ops.all_reduce(grad, ctx.reduce_op, ctx.group_name))


@operator(run_matmul_all_reduce, gradient=_matmul_all_reduce_gradients, saved=("a", "b"))
def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str = "sum", group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The "sum" or "avg" of a times b over ranks, complete at every rank, with the same bits."""
    return _ops.matmul_all_reduce(a, b, reduce_op, name_of(group), partials, invariant)


def run_matmul_all_scatter(a: Tensor, b: Tensor, group_name: str, invariant: bool = False, *,
                           out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    key = "matmul_all_scatter", invariant
    if (result := engine.known.again(key, out, a, b)) is not None:
        return result
    n = columns_of(a, b, last_extent("a", a))
    result = allocate_result(a, (*a.shape[:-1], n * engine.world.size), 0, out)
    k = a.shape[-1]
    reason = f"shards of n begin at multiples of 8, and b has {n} columns" if n % 8 != 0 else kernels_lack(a, n, k)
    if reason:  # gemm_all_scatter does not support the call
        _refuse_invariant(invariant, "matmul_all_scatter", reason)
        result.copy_(run_all_gather(torch.matmul(a, b), a.dim() - 1, group_name))
    elif has_run(engine, result, result.numel() * k, n * k > 0):
        flat, matrix = as_matrix(a), result.view(-1, result.shape[-1])
        op = engine.planned("gemm_all_scatter", m=flat.shape[0], n=matrix.shape[1], k=k, dtype=a.dtype,
                            **_plan_options(None, invariant))
        flat, weights, stream = rows_of(flat, a.is_cuda), rows_of(b.t(), a.is_cuda), stream_of(a, op.world)
        operands = operand_of(flat), operand_of(weights), operand_of(matrix)
        op._core.run_gemm(*operands[:2], None, stream)
        own, on_gpu = result_of(op, a)[: matrix.shape[0]].view(result.shape), a.is_cuda

        def hand_out(result: Tensor, stream: int) -> None:
            """Copies the operator's C, which peers overwrite as soon as this rank begins the next run. That run follows the
            copy, also on another stream."""
            result.copy_(own)
            if on_gpu:
                op.world._core.let_runs_follow(stream)

        hand_out(result, stream)
        Call(engine, key, (a, b), out).keep(op, operands, result, hand_out)
    elif k == 0:
        result.zero_()
    return deliver(result, out)


@operator(run_matmul_all_scatter, saved=("a", "b"),
          gradient=lambda ctx, grad: _gradients(ctx, _ops.reduce_scatter(grad, "sum", grad.dim() - 1, ctx.group_name)))
def matmul_all_scatter(a: Tensor, b: Tensor, group: Any = None, *, invariant: bool = False) -> Tensor:
    """`a`, the same at all ranks, times the columns b of each rank, side by side at every rank."""
    return _ops.matmul_all_scatter(a, b, name_of(group), invariant)
