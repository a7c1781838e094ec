"""Sums over ranks with normalised rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from ..operators import Operator
from .calls import Call, aligned, engine_for, has_run, operand_of, run_norm, stream_of
from .collectives import run_all_reduce
from .define import operator
from .groups import name_of
from .shapes import allocate_result, as_matrix, deliver, kernels_lack, last_extent, require_alike, require_shape

__all__ = ["all_reduce_rms_norm", "all_reduce_rms_norm_fp8"]
_ops = torch.ops.untax
_fp8 = torch.float8_e4m3fn


def plan_norm(engine: Any, x: Tensor, eps: float, **options: Any) -> Operator:
    """The operator that sums and normalises the rows of x; the first call plans it, which is collective."""
    # The library replaces an epsilon of 0 by its default, so the least normal number stands for 0.
    least = torch.finfo(torch.float32).tiny
    return engine.planned("all_reduce_norm", tokens=x.numel() // x.shape[-1], hidden=x.shape[-1], dtype=x.dtype,
                          epsilon=least if 0 <= eps < least else eps, **options)


def _require_rows(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    """The weight, in the type of x. Models may keep it in fp32 beside activations of 16 bits."""
    weight = weight.to(x.dtype) if weight.dtype == torch.float32 else weight
    require_alike(x, residual=residual, weight=weight)
    require_shape("residual", residual, *x.shape)
    require_shape("weight", weight, last_extent("x", x))
    return weight


def run_all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, *,
                            normed: Tensor | None = None, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
    engine, key = engine_for(x, group_name), ("all_reduce_rms_norm", eps)
    into = None if normed is None and total is None else (normed, total)
    if (results := engine.known.again(key, into, x, residual, weight)) is not None:
        return results
    tensors = x, residual, weight
    hidden, shape = last_extent("x", x), tuple(x.shape)
    weight = _require_rows(x, residual, weight)
    results = allocate_result(x, shape, 0, normed), allocate_result(x, shape, 0, total)
    if hidden > 16384 or kernels_lack(x, hidden):  # all_reduce_norm does not support the call
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


def run_all_reduce_rms_norm_fp8(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, scale: float = 0.0, *,
                                normed: Tensor | None = None, total: Tensor | None = None,
                                scales: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    engine, shape = engine_for(x, group_name), tuple(x.shape)
    hidden, weight = last_extent("x", x), _require_rows(x, residual, weight)
    if not scale >= 0:
        raise InvalidArgument(f"scale is {scale}; it has to be above 0, or 0 for a scale of each token")
    rows = allocate_result(x.new_empty(0, dtype=_fp8), shape, 0, normed)
    sums = allocate_result(x, shape, 0, total)
    factors = allocate_result(x.new_empty(0, dtype=torch.float32), shape[:-1], 0, scales)
    if scale > 0:
        factors.fill_(scale)
    if hidden > 16384 or kernels_lack(x, hidden):  # all_reduce_norm does not support the call
        torch.add(run_all_reduce(x, "sum", group_name), residual, out=sums)
        unscaled = torch.nn.functional.rms_norm(sums.float(), (hidden,), weight.float(), eps)
        largest = torch.finfo(_fp8).max
        if scale == 0:
            factors.copy_(unscaled.abs().amax(-1) / largest)
            factors[factors == 0] = 1
        rows.copy_((unscaled / factors.unsqueeze(-1)).clamp(-largest, largest))
    elif has_run(engine, x, x.numel(), hidden > 0):
        op = plan_norm(engine, x, eps, output="e4m3" if scale > 0 else "e4m3_per_token")
        parts, beside = (aligned(t.reshape(-1, hidden).contiguous()) for t in (x, residual))
        op._core.run_norm(operand_of(parts), operand_of(beside), operand_of(aligned(weight.contiguous())), operand_of(sums.view(-1, hidden)),
                          (rows.data_ptr(), 0 if scale > 0 else factors.data_ptr(), scale), stream_of(x, op.world))
    return deliver(rows, normed), deliver(sums, total), deliver(factors, scales)


@operator(run_all_reduce_rms_norm_fp8, results=("normed", "total", "scales"))
def all_reduce_rms_norm_fp8(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-5, group: Any = None, *,
                            scale: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """(normed, total, scales): as `all_reduce_rms_norm`, with normed in float8_e4m3fn, as a product in fp8 takes it: times scales,
    [...] in fp32, it is the normalised rows. A token's scale makes its largest element 448, or all are `scale`, if that is not 0;
    larger elements are 448 then."""
    return _ops.all_reduce_rms_norm_fp8(x, residual, weight, eps, name_of(group), scale)
