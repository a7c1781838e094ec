"""How operators are given tensors: as addresses and forms, which are found once for each call that is made again."""

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
    """A matrix whose rows lie as untax needs them: itself where they do, else a copy. On a GPU every row begins at a
    multiple of 16 bytes; with `dense` rows follow each other without gaps."""
    rows, cols = t.shape
    between, side = t.stride()
    gaps = rows > 1 and between != cols
    if cols > 1 and side != 1 or gaps and (dense or between < cols or t.is_cuda and between * t.element_size() % 16 != 0):
        t = t.contiguous()
    return aligned(t)


def is_aligned(t: Tensor) -> bool:
    """Whether kernels can read it where it is: on a GPU at a multiple of 16 bytes."""
    return not t.is_cuda or t.data_ptr() % 16 == 0


def aligned(t: Tensor) -> Tensor:
    return t if is_aligned(t) else t.clone(memory_format=torch.contiguous_format)


def operand_of(t: Tensor) -> tuple[int, int, int, int, int]:
    number = _numbers.get(t.dtype)
    if number is None:
        number = type_number(t.dtype)  # which refuses it
    rows, cols = t.shape if t.dim() == 2 else (1, t.numel())
    return (t.data_ptr(), rows, cols, t.stride(0) if rows > 1 else 0, number)


def stream_of(t: Tensor, world: World) -> int:
    """The current stream of a tensor's GPU. Kernels of the default stream follow each other, so ranks that share a GPU
    cannot wait for each other there: they get none, and such a call begins behind that stream and returns when its result
    is complete."""
    if not t.is_cuda:
        return 0
    return torch._C._cuda_getCurrentRawStream(t.get_device()) or world.default_stream


class _DeviceMemory:
    """Elements of 16 bits as `torch.as_tensor` takes memory of a GPU."""

    def __init__(self, address: int, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": "<i2", "data": (address, False)}


def result_of(op: Any, like: Tensor) -> Tensor:
    """A tensor on the operator's own C, for no longer than until it is closed."""
    if not like.is_cuda:
        return op.result.torch()
    if op.own_result is None:
        own = op.result
        op.own_result = torch.as_tensor(_DeviceMemory(own.address, own.shape), device=like.device).view(like.dtype)
    return op.own_result


class Call(NamedTuple):
    """A call as `Engine.known` keeps it: its tensors, what was given for its results, and in `what` its other arguments."""

    engine: Engine
    what: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    into: Tensor | tuple[Tensor, ...] | None = None

    def keep(self, op: Operator, operands: tuple[Any, ...], made: Tensor,
             hand_out: Callable[[Tensor, int], None] | None = None, names: tuple[str, ...] | None = None) -> None:
        """That it ran `op` with these operands, by `names`, or those of `op.operands`, of which the last are the results, of the shape of `made`.
        `hand_out(result, stream)` copies it from where the operator leaves it, if that is its own memory."""
        self.engine.keep(self.what, self.into, self.tensors, op, names or op.operands, operands, made.shape, hand_out)


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


def run_norm(op: Operator, x: Tensor, residual: Tensor, weight: Tensor, made: tuple[Tensor, Tensor], call: Call) -> None:
    """Of matrices whose rows follow each other; `made` are the normalised rows and the sum."""
    normed, total = (operand_of(t.view(x.shape)) for t in made)
    operands = operand_of(x), operand_of(residual), operand_of(weight)
    op._core.run_norm(*operands, total, (normed[0], 0, 1.0), stream_of(x, op.world))
    call.keep(op, (*operands, normed, total), made[0], names=("in", "residual", "weight", "out", "x"))


def engine_for(t: Tensor, group_name: str) -> Engine:
    """The engine of a group for tensors that lie where `t` does."""
    return engine_of(group_name, "cuda", t.get_device()) if t.is_cuda else engine_of(group_name, t.device.type)


def has_run(engine: Engine, like: Tensor, elements: int, planned: bool = True) -> bool:
    """Whether a call has a run. With no elements it has one on hosts, of no rows, in which ranks that differ hear so. On
    GPUs, where such a run waits for nobody, and where nothing can be planned, the rank takes part in a small sum instead:
    no rank is a step ahead of one that has something to move."""
    if isinstance(engine, FakeEngine):
        return False
    if elements > 0 or (planned and not like.is_cuda):
        return True
    if engine.world.size > 1:
        one = like.new_zeros(1, dtype=torch.float32)
        op = engine.planned("all_reduce", count=1, dtype="fp32", reduction="sum", phases=1)  # as nobody else asks for it
        run_collective(op, one, torch.empty_like(one))
    return False
