"""Sums over ranks with normalised rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..operators import Operator
from .calls import Call, aligned, engine_for, has_run, run_norm
from .collectives import run_all_reduce
from .define import operator
from .groups import name_of
from .shapes import allocate_result, as_matrix, deliver, kernels_lack, last_extent, require_alike, require_shape

__all__ = ["all_reduce_rms_norm"]
_ops = torch.ops.untax


def plan_norm(engine: Any, x: Tensor, eps: float) -> Operator:
    """The operator that sums and normalises the rows of x; the first call plans it, which is collective."""
    # The library replaces an epsilon of 0 by its default, so the least normal number stands for 0.
    least = torch.finfo(torch.float32).tiny
    return engine.planned("all_reduce_norm", tokens=x.numel() // x.shape[-1], hidden=x.shape[-1], dtype=x.dtype,
                          epsilon=least if 0 <= eps < least else eps)


def run_all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, *,
                            normed: Tensor | None = None, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
    engine, key = engine_for(x, group_name), ("all_reduce_rms_norm", eps)
    into = None if normed is None and total is None else (normed, total)
    if (results := engine.known.again(key, into, x, residual, weight)) is not None:
        return results
    tensors = x, residual, weight
    hidden, shape = last_extent("x", x), tuple(x.shape)
    if weight.dtype == torch.float32:  # models may keep norm weights in fp32 beside activations of 16 bits
        weight = weight.to(x.dtype)
    require_alike(x, residual=residual, weight=weight)
    require_shape("residual", residual, *shape)
    require_shape("weight", weight, hidden)
    results = allocate_result(x, shape, 0, normed), allocate_result(x, shape, 0, total)
    if hidden > 16384 or kernels_lack(x, hidden):  # all_reduce_norm does not take the call
        torch.add(run_all_reduce(x, "sum", group_name), residual, out=results[1])
        results[0].copy_(torch.nn.functional.rms_norm(results[1], (hidden,), weight, eps))
    elif has_run(engine, x, x.numel(), hidden > 0):
        op = plan_norm(engine, x, eps)
        parts, residual = (aligned(t.reshape(-1, hidden).contiguous()) for t in (x, residual))
        run_norm(op, parts, residual, aligned(weight.contiguous()), results, Call(engine, key, tensors, into))
    return deliver(results[0], normed), deliver(results[1], total)


def _gradients(ctx: Any, grad_normed: Tensor, grad_total: Tensor) -> tuple[Tensor | None, ...]:
    """In fp32, the gradients of total = sum of x + residual and normed = total * scale * weight, with a scale for each row."""
    total, weight = ctx.saved_tensors
    rows = total.float()
    scale = (rows.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    unit, grad = rows * scale, grad_normed.float()
    grad_unit = grad * weight.float()
    grad_of_rows = scale * (grad_unit - unit * (grad_unit * unit).mean(-1, keepdim=True)) + grad_total.float()
    grad_residual = grad_of_rows.to(total.dtype)
    grad_x = _ops.all_reduce(grad_residual, "sum", ctx.group_name) if ctx.needs_input_grad[0] else None
    grad_weight = as_matrix(grad * unit).sum(0).to(weight.dtype) if ctx.needs_input_grad[2] else None
    return grad_x, grad_residual, grad_weight


@operator(run_all_reduce_rms_norm, results=("normed", "total"), gradient=_gradients, saved=("total", "weight"))
def all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-5,
                        group: Any = None) -> tuple[Tensor, Tensor]:
    """(normed, total): total is the sum of the x of all ranks and of residual; normed is total with each row divided by
    sqrt(mean square of the row + eps) and multiplied by weight. weight may be fp32 and is rounded to the type of x."""
    return _ops.all_reduce_rms_norm(x, residual, weight, eps, name_of(group))
