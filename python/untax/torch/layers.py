"""The operations of a layer between operators that send, on the tensors of one process."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument, Unsupported
from .calls import Call, aligned, operand_of, rows_of, stream_of
from .define import operator
from .groups import engine_alone
from .shapes import allocate_result, as_matrix, deliver, kernels_lack, last_extent, require_alike, require_dims, require_shape

__all__ = ["interleave_gate_up", "linear"]
_ops = torch.ops.untax
gated_activations = ("swiglu", "geglu")
interleaved_rows = 8  #: rows of gate and of up that lie together


def run_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none", constant_weights: bool = False, *,
               out: Tensor | None = None) -> Tensor:
    engine = engine_alone(x.device)
    key, tensors = ("linear", activation, constant_weights), (x, weight) if bias is None else (x, weight, bias)
    if (result := engine.known.again(key, out, *tensors)) is not None:
        return result
    require_alike(x, **({"weight": weight} if bias is None else {"weight": weight, "bias": bias}))
    require_dims(2, weight=weight)
    columns, k = weight.shape
    if last_extent("x", x) != k:
        raise InvalidArgument(f"weight is {tuple(weight.shape)}; it has to have {last_extent('x', x)} columns, like x")
    if bias is not None:
        require_shape("bias", bias, columns)
    n = columns // 2 if activation in gated_activations else columns
    result = allocate_result(x, (*x.shape[:-1], n), 0, out)
    if result.numel() > 0 and (k == 0 or kernels_lack(x, n, k)):  # untax has no kernels for these
        result.copy_(_by_torch(x, weight, bias, activation))
    elif result.numel() > 0:
        op = engine.planned("linear", rows=result.numel() // n, n=n, k=k, dtype=x.dtype, activation=activation,
                            constant_weights=constant_weights)
        rows = rows_of(as_matrix(x), x.is_cuda), rows_of(weight, x.is_cuda)
        reads = {"x": operand_of(rows[0]), "weights": operand_of(rows[1])}
        if bias is not None:
            reads["bias"] = operand_of(aligned(bias.contiguous()))
        to = operand_of(result.view(-1, n))
        op._core.run(reads, {"out": to}, stream_of(x, op.world))
        Call(engine, key, tensors, out).keep(op, (*reads.values(), to), result, names=(*reads, "out"))
    return deliver(result, out)


def _by_torch(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    functional = torch.nn.functional
    y = functional.linear(x, weight, bias)
    if activation in gated_activations:
        gate, up = y.unflatten(-1, (-1, 2, interleaved_rows)).unbind(-2)
        gate = functional.silu(gate) if activation == "swiglu" else functional.gelu(gate, approximate="tanh")
        return (gate * up).flatten(-2)
    if activation == "silu":
        return functional.silu(y)
    if activation in ("gelu", "gelu_tanh"):
        return functional.gelu(y, approximate="tanh" if activation == "gelu_tanh" else "none")
    return y


def _fake_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none",
                 constant_weights: bool = False) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0] // 2 if activation in gated_activations else weight.shape[0])


def _linear_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    if ctx.activation != "none":
        raise Unsupported(f"torch.ops.untax.linear has no derivative for the activation {ctx.activation!r}; it has one for none only")
    x, weight, bias = ctx.saved_tensors
    rows = as_matrix(grad)
    of_x = grad @ weight if ctx.needs_input_grad[0] else None
    of_weight = rows.t() @ as_matrix(x) if ctx.needs_input_grad[1] else None
    of_bias = rows.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
    return of_x, of_weight, of_bias


@operator(run_linear, fake=_fake_linear, gradient=_linear_gradients, saved=("x", "weight", "bias"))
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str = "none",
           constant_weights: bool = False) -> Tensor:
    """activation(x weight^T + bias), each process for itself: x is [..., k], weight [n, k] as nn.Linear has it, the result
    [..., n]. Activations: "none", "silu", "gelu", "gelu_tanh", and the gated "swiglu" and "geglu", whose weight is [2 n, k] as
    `interleave_gate_up` makes it. On GPUs it is the quicker of untax's kernels and cuBLASLt, which the first call of a shape
    times, for any number of rows up to a power of two. `constant_weights`: no kernel ahead in the stream writes weight, so it may be
    read before that kernel has ended."""
    return _ops.linear(x, weight, bias, activation, constant_weights)


def interleave_gate_up(gate: Tensor, up: Tensor) -> Tensor:
    """The weight of a gated `linear`, [2 n, k], of those of gate and up, [n, k]: eight rows of each in turn. Biases, of [n],
    likewise."""
    require_shape("up", up, *gate.shape)
    if gate.shape[0] % interleaved_rows != 0:
        raise InvalidArgument(f"gate has {gate.shape[0]} rows; they have to be a multiple of {interleaved_rows}")
    parts = (t.unflatten(0, (-1, interleaved_rows)) for t in (gate, up))
    return torch.stack(tuple(parts), 1).flatten(0, 2)
