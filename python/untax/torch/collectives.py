"""Collectives on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .calls import Call, engine_for, has_run, run_collective
from .define import gradient_of_sum, operator
from .groups import name_of, rank_of
from .shapes import (after_sum, allocate_result, before_sum, deliver, dimension, from_front, reduction_of, share_of, to_front)

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "reduce_scatter"]
_ops = torch.ops.untax
_summed = (torch.float32, torch.float16, torch.bfloat16)


def _as_words(x: Tensor, parts: int) -> Tensor:
    """The bytes of x, whose type has no sums, as words that operators move. Each of equal `parts` is padded to whole
    words."""
    each = x.numel() * x.element_size() // parts
    flat = x.contiguous().view(-1).view(torch.uint8)
    if each % 2 != 0:
        flat = torch.nn.functional.pad(flat.view(parts, each), (0, 1)).view(-1)
    return flat.view(torch.float32 if each % 4 == 0 else torch.float16)


def _from_words(words: Tensor, parts: int, like: Tensor, shape: tuple[int, ...], dim: int, out: Tensor | None) -> Tensor:
    """The result of `shape` with `dim` outermost in memory, of whose equal `parts` these are the words."""
    result = allocate_result(like, shape, dim, out)
    flat = words.view(torch.uint8)
    each = result.numel() * result.element_size() // parts
    moved = flat.view(parts, flat.numel() // parts)[:, :each].reshape(-1).view(like.dtype)
    return deliver(from_front(result.copy_(moved.view(shape)), dim), out)


def run_all_gather(x: Tensor, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    key = "all_gather", dim
    if (result := engine.known.again(key, out, x)) is not None:
        return result
    dim = dimension("dim", dim, x, "x")
    ranks, front = engine.world.size, to_front(x, dim).contiguous()
    shape = front.shape[0] * ranks, *front.shape[1:]
    if x.dtype not in _summed:
        return _from_words(run_all_gather(_as_words(front, 1), 0, group_name), ranks, x, shape, dim, out)
    result = allocate_result(x, shape, dim, out)
    if has_run(engine, result, result.numel()):
        call = Call(engine, key, (x,), out) if dim == 0 or out is not None else None
        run_collective(engine.planned("all_gather", count=result.numel(), dtype=x.dtype), front, result, call)
    return deliver(from_front(result, dim), out)


@operator(run_all_gather, gradient=lambda ctx, grad: _ops.reduce_scatter(grad, "sum", ctx.dim, ctx.group_name))
def all_gather(x: Tensor, dim: int = 0, group: Any = None) -> Tensor:
    """The x of all ranks, concatenated along `dim`. All x have the same shape, and any type."""
    return _ops.all_gather(x, dim, name_of(group))


def run_reduce_scatter(x: Tensor, reduce_op: str, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    ranks = engine.world.size
    key = "reduce_scatter", reduce_op, dim
    if (result := engine.known.again(key, out, x)) is not None:
        return result
    dim = dimension("dim", dim, x, "x")
    front = to_front(before_sum(x, reduce_op, ranks), dim).contiguous()
    result = allocate_result(x, (share_of(front.shape[0], dim, ranks), *front.shape[1:]), dim, out)
    if has_run(engine, result, result.numel()):
        call = Call(engine, key, (x,), out) if dim == 0 or out is not None else None
        op = engine.planned("reduce_scatter", count=front.numel(), dtype=x.dtype, reduction=reduction_of(reduce_op))
        run_collective(op, front, result, call)
    return deliver(from_front(after_sum(result, reduce_op, ranks), dim), out)


@operator(run_reduce_scatter,
          gradient=lambda ctx, grad: _ops.all_gather(gradient_of_sum(ctx, grad, "reduce_scatter"), ctx.dim, ctx.group_name))
def reduce_scatter(x: Tensor, reduce_op: str = "sum", dim: int = 0, group: Any = None) -> Tensor:
    """This rank's share, along `dim`, of the "sum", "avg", "max" or "min" of the x of all ranks."""
    return _ops.reduce_scatter(x, reduce_op, dim, name_of(group))


def run_all_reduce(x: Tensor, reduce_op: str, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    ranks = engine.world.size
    key = "all_reduce", reduce_op
    if (result := engine.known.again(key, out, x)) is not None:
        return result
    result = allocate_result(x, tuple(x.shape), 0, out)
    if has_run(engine, result, result.numel()):
        op = engine.planned("all_reduce", count=x.numel(), dtype=x.dtype, reduction=reduction_of(reduce_op))
        run_collective(op, before_sum(x, reduce_op, ranks).contiguous(), result, Call(engine, key, (x,), out))
    return deliver(after_sum(result, reduce_op, ranks), out)


def _all_reduce_gradient(ctx: Any, grad: Tensor) -> Tensor:
    gradient_of_sum(ctx, grad, "all_reduce")  # refuses reductions without a derivative
    return _ops.all_reduce(grad, ctx.reduce_op, ctx.group_name)


@operator(run_all_reduce, gradient=_all_reduce_gradient)
def all_reduce(x: Tensor, reduce_op: str = "sum", group: Any = None) -> Tensor:
    """The "sum", "avg", "max" or "min" of the x of all ranks, the same bits everywhere. `x` stays as it is."""
    return _ops.all_reduce(x, reduce_op, name_of(group))


def run_all_to_all(x: Tensor, group_name: str, *, out: Tensor | None = None) -> Tensor:
    """The first dimension is divided into equal parts, one for each rank."""
    engine = engine_for(x, group_name)
    key = ("all_to_all",)
    if (result := engine.known.again(key, out, x)) is not None:
        return result
    dimension("dim", 0, x, "x")
    ranks = engine.world.size
    share_of(x.shape[0], 0, ranks)
    if x.dtype not in _summed:
        return _from_words(run_all_to_all(_as_words(x, ranks), group_name), ranks, x, tuple(x.shape), 0, out)
    result = allocate_result(x, tuple(x.shape), 0, out)
    if has_run(engine, result, result.numel()):
        op = engine.planned("all_to_all", count=x.numel() // ranks, dtype=x.dtype)
        run_collective(op, x.contiguous(), result, Call(engine, key, (x,), out))
    return deliver(result, out)


@operator(run_all_to_all, gradient=lambda ctx, grad: _ops.all_to_all(grad, ctx.group_name))
def all_to_all(x: Tensor, group: Any = None) -> Tensor:
    """The first dimension of x has an equal part for each rank. Returns the parts of all ranks for this one, in rank
    order. x has any type."""
    return _ops.all_to_all(x, name_of(group))


def run_broadcast(x: Tensor, root: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    key = "broadcast", root
    if (result := engine.known.again(key, out, x)) is not None:
        return result
    if x.dtype not in _summed:
        return _from_words(run_broadcast(_as_words(x, 1), root, group_name), 1, x, tuple(x.shape), 0, out)
    result = allocate_result(x, tuple(x.shape), 0, out)
    if has_run(engine, result, result.numel()):
        op = engine.planned("broadcast", count=x.numel(), dtype=x.dtype, root=root)
        run_collective(op, x.contiguous(), result, Call(engine, key, (x,), out))
    return deliver(result, out)


def _broadcast_gradient(ctx: Any, grad: Tensor) -> Tensor:
    total = _ops.all_reduce(grad, "sum", ctx.group_name)
    return total if rank_of(ctx.group_name) == ctx.root else torch.zeros_like(total)


@operator(run_broadcast, gradient=_broadcast_gradient)
def broadcast(x: Tensor, root: int = 0, group: Any = None) -> Tensor:
    """The x of rank `root`. The x of other ranks gives shape and type only, which may be any type."""
    return _ops.broadcast(x, root, name_of(group))
