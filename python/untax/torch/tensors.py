"""Collectives and matrix products on tensors: shapes of torch become problems of untax, and its results tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import Call, aligned, operand_of, result_of, rows_of, run_collective, run_gemm, run_norm, stream_of
from .groups import Engine, engine_of
from .shapes import (after_sum, as_matrix, before_sum, columns_of, dimension, fits, from_front, handed, kernels_lack, last_of,
                     of_sharded_k, partials_of, reduction_of, require_alike, require_shape, require_sum, room, share_of,
                     to_front)


def engine_for(t: Tensor, group_name: str) -> Engine:
    """The engine of a group for tensors that lie where `t` does."""
    return engine_of(group_name, "cuda", t.get_device()) if t.is_cuda else engine_of(group_name, t.device.type)


def has_run(engine: Engine, like: Tensor, elements: int, planned: bool = True) -> bool:
    """Whether a call has a run. With no elements it has one on hosts, of no rows, in which ranks that differ hear so. On
    GPUs, where such a run waits for nobody, and where nothing can be planned, the rank takes part in a small sum instead:
    no rank is a step ahead of one that has something to move."""
    if elements > 0 or (planned and not like.is_cuda):
        return True
    if engine.world.size > 1:
        one = like.new_zeros(1, dtype=torch.float32)
        op = engine.planned("all_reduce", count=1, dtype="fp32", reduction="sum", phases=1)  # as nobody else asks for it
        run_collective(op, one, torch.empty_like(one))
    return False


def all_gather(x: Tensor, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    what = "all_gather", dim
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    dim = dimension("dim", dim, x, "x")
    front = to_front(x, dim).contiguous()
    made = room(x, (front.shape[0] * engine.world.size, *front.shape[1:]), dim, out)
    if has_run(engine, made, made.numel()):
        call = Call(engine, what, (x,), out) if dim == 0 or out is not None else None
        run_collective(engine.planned("all_gather", count=made.numel(), dtype=x.dtype), front, made, call)
    return handed(from_front(made, dim), out)


def reduce_scatter(x: Tensor, reduce_op: str, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    ranks = engine.world.size
    what = "reduce_scatter", reduce_op, dim
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    dim = dimension("dim", dim, x, "x")
    front = to_front(before_sum(x, reduce_op, ranks), dim).contiguous()
    made = room(x, (share_of(front.shape[0], dim, ranks), *front.shape[1:]), dim, out)
    if has_run(engine, made, made.numel()):
        call = Call(engine, what, (x,), out) if dim == 0 or out is not None else None
        op = engine.planned("reduce_scatter", count=front.numel(), dtype=x.dtype, reduction=reduction_of(reduce_op))
        run_collective(op, front, made, call)
    return handed(from_front(after_sum(made, reduce_op, ranks), dim), out)


def all_reduce(x: Tensor, reduce_op: str, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    ranks = engine.world.size
    what = "all_reduce", reduce_op
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    made = room(x, tuple(x.shape), 0, out)
    if has_run(engine, made, made.numel()):
        op = engine.planned("all_reduce", count=x.numel(), dtype=x.dtype, reduction=reduction_of(reduce_op))
        run_collective(op, before_sum(x, reduce_op, ranks).contiguous(), made, Call(engine, what, (x,), out))
    return handed(after_sum(made, reduce_op, ranks), out)


def all_to_all(x: Tensor, group_name: str, *, out: Tensor | None = None) -> Tensor:
    """The parts of the first dimension, equally many rows for each rank."""
    engine = engine_for(x, group_name)
    what = ("all_to_all",)
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    dimension("dim", 0, x, "x")
    share_of(x.shape[0], 0, engine.world.size)
    made = room(x, tuple(x.shape), 0, out)
    if has_run(engine, made, made.numel()):
        op = engine.planned("all_to_all", count=x.numel() // engine.world.size, dtype=x.dtype)
        run_collective(op, x.contiguous(), made, Call(engine, what, (x,), out))
    return handed(made, out)


def broadcast(x: Tensor, root: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    what = "broadcast", root
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    made = room(x, tuple(x.shape), 0, out)
    if has_run(engine, made, made.numel()):
        op = engine.planned("broadcast", count=x.numel(), dtype=x.dtype, root=root)
        run_collective(op, x.contiguous(), made, Call(engine, what, (x,), out))
    return handed(made, out)


def _asked(partials: str | None, invariant: bool) -> dict[str, Any]:
    """Options of a plan that a call asks for, beside its problem: nothing, at the defaults."""
    options: dict[str, Any] = {} if partials is None else {"partials": partials}
    return options | {"invariant": True} if invariant else options


def _refuse_invariant(invariant: bool, operator: str, why: str) -> None:
    """Refuses rows whose bits do not depend on the batch where torch multiplies, which does not promise it."""
    if invariant:
        raise InvalidArgument(f"{operator}: invariant is True, which torch's matmul has not, and {why}")


def all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int, group_name: str, partials: str | None = None,
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
            return handed(torch.matmul(all_gather(a, gather_dim, group_name), b), out)
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


def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str,
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


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str, partials: str | None = None,
                      invariant: bool = False, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(a, group_name)
    what = "matmul_all_reduce", reduce_op, partials, invariant
    if (made := engine.known.again(what, out, a, b)) is not None:
        return made
    n, asked = columns_of(a, b, last_of("a", a)), _asked(partials_of(a, partials), invariant)
    lacks = "it only sums" if reduce_op not in ("sum", "avg") else kernels_lack(a, *b.shape)
    if lacks:  # for which gemm_all_reduce is not there
        _refuse_invariant(invariant, "matmul_all_reduce", lacks)
        return all_reduce(torch.matmul(a, b), reduce_op, group_name, out=out)
    ranks, k = engine.world.size, a.shape[-1]
    made = room(a, (*a.shape[:-1], n), 0, out)
    if has_run(engine, made, made.numel() * k, n * k > 0):
        left, right = of_sharded_k(*_factors(as_matrix(a), b.t(), reduce_op, ranks), ranks)
        op = engine.planned("gemm_all_reduce", m=left.shape[0], n=n, k=left.shape[1] * ranks, dtype=a.dtype, **asked)
        run_gemm(op, left, right, made, Call(engine, what, (a, b), out))
    elif k == 0:
        made.zero_()
    return handed(after_sum(made, reduce_op, ranks), out)


def matmul_all_scatter(a: Tensor, b: Tensor, group_name: str, invariant: bool = False, *,
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
        made.copy_(all_gather(torch.matmul(a, b), a.dim() - 1, group_name))
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


def all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, *,
                        normed: Tensor | None = None, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
    engine, what = engine_for(x, group_name), ("all_reduce_rms_norm", eps)
    into = None if normed is None and total is None else (normed, total)
    if (made := engine.known.again(what, into, x, residual, weight)) is not None:
        return made
    given = x, residual, weight
    hidden, shape = last_of("x", x), tuple(x.shape)
    if weight.dtype == torch.float32:  # as models keep it beside activations of 16 bits
        weight = weight.to(x.dtype)
    require_alike(x, residual=residual, weight=weight)
    require_shape("residual", residual, *shape)
    require_shape("weight", weight, hidden)
    made = room(x, shape, 0, normed), room(x, shape, 0, total)
    if hidden > 16384 or kernels_lack(x, hidden):  # for which all_reduce_norm is not there
        torch.add(all_reduce(x, "sum", group_name), residual, out=made[1])
        made[0].copy_(torch.nn.functional.rms_norm(made[1], (hidden,), weight, eps))
    elif has_run(engine, x, x.numel(), hidden > 0):
        # The library takes an epsilon of 0 for none given, and puts its own there; so the least normal number stands for 0.
        least = torch.finfo(torch.float32).tiny
        op = engine.planned("all_reduce_norm", tokens=x.numel() // hidden, hidden=hidden, dtype=x.dtype,
                            epsilon=least if 0 <= eps < least else eps)
        parts, residual = (aligned(t.reshape(-1, hidden).contiguous()) for t in (x, residual))
        run_norm(op, parts, residual, aligned(weight.contiguous()), made, Call(engine, what, given, into))
    return handed(made[0], normed), handed(made[1], total)
