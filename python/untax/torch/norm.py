"""Sums over ranks whose rows are normalised."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .calls import Call, aligned, engine_for, has_run, run_norm
from .collectives import run_all_reduce
from .define import operator
from .groups import name_of
from .shapes import as_matrix, handed, kernels_lack, last_of, require_alike, require_shape, room

__all__ = ["all_reduce_rms_norm"]
_ops = torch.ops.untax


def run_all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, *,
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
        torch.add(run_all_reduce(x, "sum", group_name), residual, out=made[1])
        made[0].copy_(torch.nn.functional.rms_norm(made[1], (hidden,), weight, eps))
    elif has_run(engine, x, x.numel(), hidden > 0):
        # The library takes an epsilon of 0 for none given, and puts its own there; so the least normal number stands for 0.
        least = torch.finfo(torch.float32).tiny
        op = engine.planned("all_reduce_norm", tokens=x.numel() // hidden, hidden=hidden, dtype=x.dtype,
                            epsilon=least if 0 <= eps < least else eps)
        parts, residual = (aligned(t.reshape(-1, hidden).contiguous()) for t in (x, residual))
        run_norm(op, parts, residual, aligned(weight.contiguous()), made, Call(engine, what, given, into))
    return handed(made[0], normed), handed(made[1], total)


def _gradients(ctx: Any, of_normed: Tensor, of_total: Tensor) -> tuple[Tensor | None, ...]:
    """In fp32: of total = sum of x + residual, and of normed = total * scale * weight, where scale is of each row."""
    total, weight = ctx.saved_tensors
    rows = total.float()
    scale = (rows.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    unit, grad = rows * scale, of_normed.float()
    of_unit = grad * weight.float()
    grad_of_rows = scale * (of_unit - unit * (of_unit * unit).mean(-1, keepdim=True)) + of_total.float()
    of_residual = grad_of_rows.to(total.dtype)
    of_x = _ops.all_reduce(of_residual, "sum", ctx.group_name) if ctx.needs_input_grad[0] else None
    of_weight = as_matrix(grad * unit).sum(0).to(weight.dtype) if ctx.needs_input_grad[2] else None
    return of_x, of_residual, of_weight


@operator(run_all_reduce_rms_norm, results=("normed", "total"), gradient=_gradients, saved=("total", "weight"))
def all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-5,
                        group: Any = None) -> tuple[Tensor, Tensor]:
    """(normed, total): the sum of the x of all ranks and of residual, and its rows divided by the root of their mean square
    plus eps, times weight. weight may be of fp32 and is rounded to the type of x."""
    return _ops.all_reduce_rms_norm(x, residual, weight, eps, name_of(group))
