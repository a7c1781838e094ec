"""Passes tensors to operators, as addresses, shapes and strides. A repeated call is resolved once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..planned import Operator
from ..types import type_number
from ..world import World
from .groups import Engine, FakeEngine, engine_of

_numbers = {torch.float32: type_number("fp32"), torch.float16: type_number("fp16"), torch.bfloat16: type_number("bf16")}


def rows_of(t: Tensor, dense: bool = False) -> Tensor:
    """The matrix `t`, or a copy of it if untax cannot read its rows where they lie. On a GPU every row begins at a
    multiple of 16 bytes; with `dense` rows follow each other without gaps."""
    rows, cols = t.shape
    between, side = t.stride()
    gaps = rows > 1 and between != cols
    if cols > 1 and side != 1 or gaps and (dense or between < cols or t.is_cuda and between * t.element_size() % 16 != 0):
        t = t.contiguous()
    return aligned(t)


def is_aligned(t: Tensor) -> bool:
    """Whether kernels can read `t` where it lies: on a GPU at a multiple of 16 bytes."""
    return not t.is_cuda or t.data_ptr() % 16 == 0


def aligned(t: Tensor) -> Tensor:
    return t if is_aligned(t) else t.clone(memory_format=torch.contiguous_format)


def operand_of(t: Tensor) -> tuple[int, int, int, int, int]:
    number = _numbers.get(t.dtype)
    if number is None:
        number = type_number(t.dtype)  # refuses the type
    rows, cols = t.shape if t.dim() == 2 else (1, t.numel())
    return (t.data_ptr(), rows, cols, t.stride(0) if rows > 1 else 0, number)


def stream_of(t: Tensor, world: World) -> int:
    """The current stream of a tensor's GPU. Kernels of the default stream follow each other, so ranks that share a GPU
    cannot wait for each other on it: for them 0 takes its place. A call on 0 begins after the default stream, and returns
    when its result is complete."""
    if not t.is_cuda:
        return 0
    return torch._C._cuda_getCurrentRawStream(t.get_device()) or world.default_stream


class _DeviceMemory:
    """Memory of a GPU with 16-bit elements, as `torch.as_tensor` takes it."""

    def __init__(self, address: int, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": "<i2", "data": (address, False)}


def result_of(op: Any, like: Tensor) -> Tensor:
    """A tensor on the operator's own C. It is valid until the operator is closed."""
    if not like.is_cuda:
        return op.result.torch()
    if op.own_result is None:
        own = op.result
        op.own_result = torch.as_tensor(_DeviceMemory(own.address, own.shape), device=like.device).view(like.dtype)
    return op.own_result


class Call(NamedTuple):
    """A call as `Engine.known` keeps it: its tensors, the `into` of its results, and in `key` its other arguments."""

    engine: Engine
    key: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    into: Tensor | tuple[Tensor, ...] | None = None

    def keep(self, op: Operator, operands: tuple[Any, ...], result: Tensor,
             hand_out: Callable[[Tensor, int], None] | None = None, names: tuple[str, ...] | None = None) -> None:
        """Records that this call ran `op` with these operands, whose names are `names` or `op.operands`. Results are the last
        operands, and have the shape of `result`. If the operator leaves the result in its own memory,
        `hand_out(result, stream)` copies it from there."""
        self.engine.keep(self.key, self.into, self.tensors, op, names or op.operands, operands, result.shape, hand_out)


def run_gemm(op: Operator, a: Tensor, weights: Tensor, out: Tensor, call: Call | None = None) -> None:
    a, weights = rows_of(a, a.is_cuda), rows_of(weights, a.is_cuda)
    operands = operand_of(a), operand_of(weights), operand_of(out.view(-1, out.shape[-1]))
    op._core.run_gemm(*operands, stream_of(a, op.world))
    if call is not None:
        call.keep(op, operands, out)


def run_collective(op: Operator, x: Tensor, out: Tensor, call: Call | None = None) -> None:
    operands = operand_of(x.reshape(-1)), operand_of(out.view(-1))
    op._core.run_collective(*operands, stream_of(out, op.world))
    if call is not None:
        call.keep(op, operands, out)


def run_norm(op: Operator, x: Tensor, residual: Tensor, weight: Tensor, results: tuple[Tensor, Tensor], call: Call) -> None:
    """All tensors are matrices without gaps between rows; `results` are the normalised rows and the sum."""
    normed, total = (operand_of(t.view(x.shape)) for t in results)
    operands = operand_of(x), operand_of(residual), operand_of(weight)
    op._core.run_norm(*operands, total, (normed[0], 0, 1.0), stream_of(x, op.world))
    call.keep(op, (*operands, normed, total), results[0], names=("in", "residual", "weight", "out", "x"))


def engine_for(t: Tensor, group_name: str) -> Engine:
    """The engine of a group for tensors on the device of `t`."""
    return engine_of(group_name, "cuda", t.get_device()) if t.is_cuda else engine_of(group_name, t.device.type)


def has_run(engine: Engine, like: Tensor, elements: int, planned: bool = True) -> bool:
    """Whether a call runs its operator. On hosts a call without elements does so, since a run of no rows reports ranks
    that differ. On GPUs such a run waits for no rank, so the rank takes part in a small sum instead, as it does if
    nothing can be planned: so no rank is a step ahead of a rank with elements to move."""
    if isinstance(engine, FakeEngine):
        return False
    if elements > 0 or (planned and not like.is_cuda):
        return True
    if engine.world.size > 1:
        element = like.new_zeros(1, dtype=torch.float32)
        op = engine.planned("all_reduce", count=1, dtype="fp32", reduction="sum", phases=1)  # no other call plans this problem
        run_collective(op, element, torch.empty_like(element))
    return False
