"""Derivatives of `torch.ops.untax`: those of the sum of what the ranks make of their results.

A rank's backward pass gives the gradient of the sum of the losses of all ranks with respect to what that rank passed, as for
the collectives of torch. Ranks that all have the same loss thus get the gradient of as many times that loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..errors import Unsupported
from .groups import rank_of, ranks_of
from .shapes import as_matrix

_ops = torch.ops.untax


def register(library: torch.library.Library) -> None:
    """Gives every operator its derivative, or one that raises, so that no gradient is lost silently."""
    for name, (keep, backward) in _derivatives.items():
        torch.library.register_autograd(f"untax::{name}", backward, setup_context=keep, lib=library)
    for name in ("flash_decode", "flash_attention", "merge_partial_attention"):
        torch.library.register_autograd(f"untax::{name}", _without(name), lib=library)


def _without(name: str) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise Unsupported(f"torch.ops.untax.{name} has no derivative; call it within torch.no_grad(), or on tensors that are "
                          "detached")

    return backward


def _mean(grad: Tensor, reduce_op: str, group: str, name: str) -> Tensor:
    """The gradient of a sum, of that of what `reduce_op` makes."""
    if reduce_op not in ("sum", "avg"):
        raise Unsupported(f"torch.ops.untax.{name} has no derivative for {reduce_op!r}; it has those of sum and avg")
    return grad / ranks_of(group) if reduce_op == "avg" else grad


def _factors(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a and b, of that of their product at this rank."""
    a, b = ctx.saved_tensors
    of_a = grad @ b.t() if ctx.needs_input_grad[0] else None
    of_b = as_matrix(a).t() @ as_matrix(grad) if ctx.needs_input_grad[1] else None
    return of_a, of_b


def _keep_all_gather(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.dim, ctx.group = inputs


def _all_gather(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _ops.reduce_scatter(grad, "sum", ctx.dim, ctx.group), None, None


def _keep_reduce_scatter(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.reduce_op, ctx.dim, ctx.group = inputs


def _reduce_scatter(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    grad = _mean(grad, ctx.reduce_op, ctx.group, "reduce_scatter")
    return _ops.all_gather(grad, ctx.dim, ctx.group), None, None, None


def _keep_all_reduce(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.reduce_op, ctx.group = inputs


def _all_reduce(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    _mean(grad, ctx.reduce_op, ctx.group, "all_reduce")  # which refuses what has none
    return _ops.all_reduce(grad, ctx.reduce_op, ctx.group), None, None


def _keep_all_to_all(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.group = inputs


def _all_to_all(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _ops.all_to_all(grad, ctx.group), None


def _keep_broadcast(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.root, ctx.group = inputs


def _broadcast(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    total = _ops.all_reduce(grad, "sum", ctx.group)
    return total if rank_of(ctx.group) == ctx.root else torch.zeros_like(total), None, None


def _keep_gather_matmul(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.dim, ctx.group, ctx.partials, ctx.invariant = inputs
    ctx.save_for_backward(a, b)


def _gather_matmul(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    a, b = ctx.saved_tensors
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = _ops.matmul_reduce_scatter(grad, b.t(), "sum", ctx.dim, ctx.group, ctx.partials, ctx.invariant)
    if ctx.needs_input_grad[1]:
        of_b = as_matrix(_ops.all_gather(a, ctx.dim, ctx.group)).t() @ as_matrix(grad)
    return of_a, of_b, None, None, None, None


def _keep_matmul_scatter(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.reduce_op, ctx.dim, ctx.group, _, ctx.invariant = inputs
    ctx.save_for_backward(a, b)


def _matmul_scatter(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    a, b = ctx.saved_tensors
    grad = _mean(grad, ctx.reduce_op, ctx.group, "matmul_reduce_scatter")
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = _ops.all_gather_matmul(grad, b.t(), ctx.dim, ctx.group, None, ctx.invariant)
    if ctx.needs_input_grad[1]:
        of_b = as_matrix(a).t() @ as_matrix(_ops.all_gather(grad, ctx.dim, ctx.group))
    return of_a, of_b, None, None, None, None, None


def _keep_matmul_all_reduce(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.reduce_op, ctx.group, _, _ = inputs
    ctx.save_for_backward(a, b)


def _matmul_all_reduce(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    _mean(grad, ctx.reduce_op, ctx.group, "matmul_all_reduce")
    return *_factors(ctx, _ops.all_reduce(grad, ctx.reduce_op, ctx.group)), None, None, None, None


def _keep_matmul_all_scatter(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.group, _ = inputs
    ctx.save_for_backward(a, b)


def _matmul_all_scatter(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return *_factors(ctx, _ops.reduce_scatter(grad, "sum", grad.dim() - 1, ctx.group)), None, None


def _keep_norm(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _, _, weight, ctx.eps, ctx.group = inputs
    ctx.save_for_backward(output[1], weight)


def _norm(ctx: Any, of_normed: Tensor, of_total: Tensor) -> tuple[Any, ...]:
    """In fp32: of total = sum of x + residual, and of normed = total * scale * weight, where scale is of each row."""
    total, weight = ctx.saved_tensors
    rows = total.float()
    scale = (rows.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    unit, grad = rows * scale, of_normed.float()
    of_unit = grad * weight.float()
    grad_of_rows = scale * (of_unit - unit * (of_unit * unit).mean(-1, keepdim=True)) + of_total.float()
    of_residual = grad_of_rows.to(total.dtype)
    of_x = _ops.all_reduce(of_residual, "sum", ctx.group) if ctx.needs_input_grad[0] else None
    of_weight = as_matrix(grad * unit).sum(0).to(weight.dtype) if ctx.needs_input_grad[2] else None
    return of_x, of_residual, of_weight, None, None


_derivatives: dict[str, tuple[Callable[..., None], Callable[..., tuple[Any, ...]]]] = {
    "all_gather": (_keep_all_gather, _all_gather),
    "reduce_scatter": (_keep_reduce_scatter, _reduce_scatter),
    "all_reduce": (_keep_all_reduce, _all_reduce),
    "all_to_all": (_keep_all_to_all, _all_to_all),
    "broadcast": (_keep_broadcast, _broadcast),
    "all_gather_matmul": (_keep_gather_matmul, _gather_matmul),
    "matmul_reduce_scatter": (_keep_matmul_scatter, _matmul_scatter),
    "matmul_all_reduce": (_keep_matmul_all_reduce, _matmul_all_reduce),
    "matmul_all_scatter": (_keep_matmul_all_scatter, _matmul_all_scatter),
    "all_reduce_rms_norm": (_keep_norm, _norm),
}


class _Replicated(torch.autograd.Function):
    """A parameter that all ranks have alike, and each applies to its own tokens: its gradient is that of all tokens."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, group: str) -> Tensor:
        ctx.group = group
        return parameter.view_as(parameter)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _ops.all_reduce(grad, "sum", ctx.group), None


def replicated(parameter: Tensor, group_name: str) -> Tensor:
    """`parameter`, whose gradient is then the sum of those of all ranks of a group."""
    return _Replicated.apply(parameter, group_name)
