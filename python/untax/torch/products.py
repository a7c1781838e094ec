"""Matrix products on tensors, of which the ranks have parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import Call, engine_for, has_run, operand_of, result_of, rows_of, run_gemm, stream_of
from .collectives import run_all_gather, run_all_reduce
from .define import of_sum, operator
from .groups import name_of
from .shapes import (after_sum, as_matrix, before_sum, columns_of, dimension, fits, from_front, handed, kernels_lack, last_of,
                     of_sharded_k, partials_of, require_sum, room, share_of, to_front)

__all__ = ["all_gather_matmul", "matmul_all_reduce", "matmul_all_scatter", "matmul_reduce_scatter"]
_ops = torch.ops.untax


def _asked(partials: str | None, invariant: bool) -> dict[str, Any]:
    """Options of a plan that a call asks for, beside its problem: nothing, at the defaults."""
    options: dict[str, Any] = {} if partials is None else {"partials": partials}
    return options | {"invariant": True} if invariant else options


def _refuse_invariant(invariant: bool, operator: str, why: str) -> None:
    """Refuses rows whose bits do not depend on the batch where torch multiplies, which does not promise it."""
    if invariant:
        raise InvalidArgument(f"{operator}: invariant is True, which torch's matmul has not, and {why}")


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a and b, of that of their product at this rank."""
    a, b = ctx.saved_tensors
    of_a = grad @ b.t() if ctx.needs_input_grad[0] else None
    of_b = as_matrix(a).t() @ as_matrix(grad) if ctx.needs_input_grad[1] else None
    return of_a, of_b


def run_all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int, group_name: str, partials: str | None = None,
                          invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`partials` is of its derivative, a sum."""
    engine = engine_for(a, group_name)
    what = "all_gather_matmul", gather_dim, invariant
    if (made := engine.known.again(what, out, a, b)) is not None:
        return made
    ranks, gather_dim = engine.world.size, dimension("gather_dim", gather_dim, a)
    partials_of(a, partials)
    n = columns_of(a, b, a.shape[-1] * (ranks if gather_dim == a.dim() - 1 else 1))
    if gather_dim == a.dim() - 1:
        if out is not None:
            fits(a, (*a.shape[:-1], n), out)
        if a.shape[-1] % 8 != 0 and ranks > 1:
            why = f"shards of k begin at multiples of 8, and a has {a.shape[-1]} columns"
            _refuse_invariant(invariant, "all_gather_matmul", why)
            return handed(torch.matmul(run_all_gather(a, gather_dim, group_name), b), out)
        made = room(a, (*a.shape[:-1], n), 0, out)
        flat = as_matrix(a)
        m, k, gather = flat.shape[0], flat.shape[1] * ranks, "k"
    else:
        front = to_front(a, gather_dim)
        made = room(a, (front.shape[0] * ranks, *front.shape[1:-1], n), gather_dim, out)
        flat = as_matrix(front)
        m, k, gather = flat.shape[0] * ranks, flat.shape[1], "rows"
    if has_run(engine, made, made.numel() * k, n * k > 0):
        call = Call(engine, what, (a, b), out) if gather_dim == 0 or gather == "k" or out is not None else None
        op = engine.planned("all_gather_gemm", m=m, n=n, k=k, dtype=a.dtype, gather=gather, **_asked(None, invariant))
        run_gemm(op, flat, b.t(), made, call)
    elif k == 0:
        made.zero_()
    return handed(made if gather == "k" else from_front(made, gather_dim), out)


def _all_gather_matmul_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    dim, group = ctx.gather_dim, ctx.group_name
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = _ops.matmul_reduce_scatter(grad, b.t(), "sum", dim, group, ctx.partials, ctx.invariant)
    if ctx.needs_input_grad[1]:
        of_b = as_matrix(_ops.all_gather(a, dim, group)).t() @ as_matrix(grad)
    return of_a, of_b


@operator(run_all_gather_matmul, gradient=_all_gather_matmul_gradients, saved=("a", "b"))
def all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int = 0, group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The a of all ranks, gathered along `gather_dim`, times this rank's b of [k, n]: a linear layer whose weights are split
    by columns. `partials` is of its derivative, which is a sum over ranks."""
    return _ops.all_gather_matmul(a, b, gather_dim, name_of(group), partials, invariant)


def run_matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str,
                              partials: str | None = None, invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    what = "matmul_reduce_scatter", reduce_op, scatter_dim, partials, invariant
    if (made := engine.known.again(what, out, a, b)) is not None:
        return made
    require_sum(reduce_op)
    ranks, scatter_dim = engine.world.size, dimension("scatter_dim", scatter_dim, a)
    asked = _asked(partials_of(a, partials), invariant)
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
            fits(a, (*a.shape[:-1], share), out)
        made = a.new_empty((share, n))
    else:
        made = room(a, (share, *front.shape[1:-1], n), scatter_dim, out)
    if has_run(engine, made, made.numel() * k, n * k > 0):
        call = Call(engine, what, (a, b), out) if scatter_dim == 0 and not last or out is not None else None
        left, right = of_sharded_k(*_factors(left, right, reduce_op, ranks), ranks)
        op = engine.planned("gemm_reduce_scatter", m=m, n=n, k=left.shape[1] * ranks, dtype=a.dtype, **asked)
        run_gemm(op, left, right, made, call)
    elif k == 0:
        made.zero_()
    after_sum(made, reduce_op, ranks)
    if last:
        return handed(made.t().reshape(*a.shape[:-1], share), out)
    return handed(from_front(made, scatter_dim), out)


def _factors(left: Tensor, right: Tensor, reduce_op: str, ranks: int) -> tuple[Tensor, Tensor]:
    """The factors of the product: for "avg" the smaller factor is divided."""
    if left.numel() < right.numel():
        return before_sum(left, reduce_op, ranks), right
    return left, before_sum(right, reduce_op, ranks)


def _matmul_reduce_scatter_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    dim, group = ctx.scatter_dim, ctx.group_name
    grad = of_sum(ctx, grad, "matmul_reduce_scatter")
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = _ops.all_gather_matmul(grad, b.t(), dim, group, None, ctx.invariant)
    if ctx.needs_input_grad[1]:
        of_b = as_matrix(a).t() @ as_matrix(_ops.all_gather(grad, dim, group))
    return of_a, of_b


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
    what = "matmul_all_reduce", reduce_op, partials, invariant
    if (made := engine.known.again(what, out, a, b)) is not None:
        return made
    n, asked = columns_of(a, b, last_of("a", a)), _asked(partials_of(a, partials), invariant)
    lacks = "it only sums" if reduce_op not in ("sum", "avg") else kernels_lack(a, *b.shape)
    if lacks:  # for which gemm_all_reduce is not there
        _refuse_invariant(invariant, "matmul_all_reduce", lacks)
        return run_all_reduce(torch.matmul(a, b), reduce_op, group_name, out=out)
    ranks, k = engine.world.size, a.shape[-1]
    made = room(a, (*a.shape[:-1], n), 0, out)
    if has_run(engine, made, made.numel() * k, n * k > 0):
        left, right = of_sharded_k(*_factors(as_matrix(a), b.t(), reduce_op, ranks), ranks)
        op = engine.planned("gemm_all_reduce", m=left.shape[0], n=n, k=left.shape[1] * ranks, dtype=a.dtype, **asked)
        run_gemm(op, left, right, made, Call(engine, what, (a, b), out))
    elif k == 0:
        made.zero_()
    return handed(after_sum(made, reduce_op, ranks), out)


def _matmul_all_reduce_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    of_sum(ctx, grad, "matmul_all_reduce")  # which refuses what has none
    return _gradients(ctx, _ops.all_reduce(grad, ctx.reduce_op, ctx.group_name))


@operator(run_matmul_all_reduce, gradient=_matmul_all_reduce_gradients, saved=("a", "b"))
def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str = "sum", group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The same, complete at every rank, with the same bits."""
    return _ops.matmul_all_reduce(a, b, reduce_op, name_of(group), partials, invariant)


def run_matmul_all_scatter(a: Tensor, b: Tensor, group_name: str, invariant: bool = False, *,
                           out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    what = "matmul_all_scatter", invariant
    if (made := engine.known.again(what, out, a, b)) is not None:
        return made
    n = columns_of(a, b, last_of("a", a))
    made = room(a, (*a.shape[:-1], n * engine.world.size), 0, out)
    k = a.shape[-1]
    lacks = f"shards of n begin at multiples of 8, and b has {n} columns" if n % 8 != 0 else kernels_lack(a, n, k)
    if lacks:  # for which gemm_all_scatter is not there
        _refuse_invariant(invariant, "matmul_all_scatter", lacks)
        made.copy_(run_all_gather(torch.matmul(a, b), a.dim() - 1, group_name))
    elif has_run(engine, made, made.numel() * k, n * k > 0):
        flat, result = as_matrix(a), made.view(-1, made.shape[-1])
        op = engine.planned("gemm_all_scatter", m=flat.shape[0], n=result.shape[1], k=k, dtype=a.dtype,
                            **_asked(None, invariant))
        flat, weights, stream = rows_of(flat, a.is_cuda), rows_of(b.t(), a.is_cuda), stream_of(a, op.world)
        operands = operand_of(flat), operand_of(weights), operand_of(result)
        op._core.run_gemm(*operands[:2], None, stream)
        own, on_gpu = result_of(op, a)[: result.shape[0]].view(made.shape), a.is_cuda

        def hand_out(made: Tensor, stream: int) -> None:
            """Peers write the operator's C as soon as this rank begins the next run, so it cannot be handed out itself, and
            that run follows the copy, also on another stream."""
            made.copy_(own)
            if on_gpu:
                op.world._core.let_runs_follow(stream)

        hand_out(made, stream)
        Call(engine, what, (a, b), out).keep(op, operands, made, hand_out)
    elif k == 0:
        made.zero_()
    return handed(made, out)


@operator(run_matmul_all_scatter, saved=("a", "b"),
          gradient=lambda ctx, grad: _gradients(ctx, _ops.reduce_scatter(grad, "sum", grad.dim() - 1, ctx.group_name)))
def matmul_all_scatter(a: Tensor, b: Tensor, group: Any = None, *, invariant: bool = False) -> Tensor:
    """`a`, the same at all ranks, times the columns b of each rank, side by side at every rank."""
    return _ops.matmul_all_scatter(a, b, name_of(group), invariant)
