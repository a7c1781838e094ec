"""Collectives on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .calls import Call, engine_for, has_run, run_collective
from .define import of_sum, operator
from .groups import name_of, rank_of
from .shapes import (after_sum, before_sum, dimension, from_front, handed, reduction_of, room, share_of, to_front)

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "reduce_scatter"]
_ops = torch.ops.untax


def run_all_gather(x: Tensor, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
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


@operator(run_all_gather, gradient=lambda ctx, grad: _ops.reduce_scatter(grad, "sum", ctx.dim, ctx.group_name))
def all_gather(x: Tensor, dim: int = 0, group: Any = None) -> Tensor:
    """The x of all ranks, one behind the other along `dim`. All have the same shape."""
    return _ops.all_gather(x, dim, name_of(group))


def run_reduce_scatter(x: Tensor, reduce_op: str, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
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


@operator(run_reduce_scatter,
          gradient=lambda ctx, grad: _ops.all_gather(of_sum(ctx, grad, "reduce_scatter"), ctx.dim, ctx.group_name))
def reduce_scatter(x: Tensor, reduce_op: str = "sum", dim: int = 0, group: Any = None) -> Tensor:
    """This rank's share, along `dim`, of the "sum", "avg", "max" or "min" of the x of all ranks."""
    return _ops.reduce_scatter(x, reduce_op, dim, name_of(group))


def run_all_reduce(x: Tensor, reduce_op: str, group_name: str, *, out: Tensor | None = None) -> Tensor:
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


def _all_reduce_gradient(ctx: Any, grad: Tensor) -> Tensor:
    of_sum(ctx, grad, "all_reduce")  # which refuses what has none
    return _ops.all_reduce(grad, ctx.reduce_op, ctx.group_name)


@operator(run_all_reduce, gradient=_all_reduce_gradient)
def all_reduce(x: Tensor, reduce_op: str = "sum", group: Any = None) -> Tensor:
    """The "sum", "avg", "max" or "min" of the x of all ranks, the same bits everywhere. `x` stays as it is."""
    return _ops.all_reduce(x, reduce_op, name_of(group))


def run_all_to_all(x: Tensor, group_name: str, *, out: Tensor | None = None) -> Tensor:
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


@operator(run_all_to_all, gradient=lambda ctx, grad: _ops.all_to_all(grad, ctx.group_name))
def all_to_all(x: Tensor, group: Any = None) -> Tensor:
    """Of the first dimension, which ranks share equally: the parts that the ranks have for this one."""
    return _ops.all_to_all(x, name_of(group))


def run_broadcast(x: Tensor, root: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = engine_for(x, group_name)
    what = "broadcast", root
    if (made := engine.known.again(what, out, x)) is not None:
        return made
    made = room(x, tuple(x.shape), 0, out)
    if has_run(engine, made, made.numel()):
        op = engine.planned("broadcast", count=x.numel(), dtype=x.dtype, root=root)
        run_collective(op, x.contiguous(), made, Call(engine, what, (x,), out))
    return handed(made, out)


def _broadcast_gradient(ctx: Any, grad: Tensor) -> Tensor:
    total = _ops.all_reduce(grad, "sum", ctx.group_name)
    return total if rank_of(ctx.group_name) == ctx.root else torch.zeros_like(total)


@operator(run_broadcast, gradient=_broadcast_gradient)
def broadcast(x: Tensor, root: int = 0, group: Any = None) -> Tensor:
    """The x of rank `root`; elsewhere x says shape and type alone."""
    return _ops.broadcast(x, root, name_of(group))
