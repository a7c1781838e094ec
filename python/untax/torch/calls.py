"""How operators are given tensors: as addresses and forms, which calls that were made before need not find again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..types import type_number
from ..world import World
from .groups import Engine

_numbers = {torch.float32: type_number("fp32"), torch.float16: type_number("fp16"), torch.bfloat16: type_number("bf16")}


def rows_of(t: Tensor) -> Tensor:
    """A matrix whose rows lie as untax needs them; itself where they do."""
    rows, cols = t.shape
    between, side = t.stride()
    t = t if (cols <= 1 or side == 1) and (rows <= 1 or between >= cols) else t.contiguous()
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


class Call:
    """A call by shapes, strides, types and numbers of its arguments. What it came to is kept, if operands were taken where
    they lie and the result is a tensor of its own: the next such call reads addresses, and nothing else of its tensors. Of
    what a call costs the host, shapes and views are the most."""

    __slots__ = ("engine", "given", "key")

    def __init__(self, name: str, engine: Engine, given: tuple[Tensor, ...], *rest: Any) -> None:
        self.engine, self.given = engine, given
        self.key = (name, *rest, *[(t.shape, t.stride(), t.dtype, t.get_device()) for t in given])

    def again(self) -> Tensor | None:
        """The result, if there was one such call, and what it ran is still planned."""
        known = self.engine.known.get(self.key)
        if known is None or not self.engine.uses(known[0]):
            return None
        op, run, forms, form, shape = known
        first = self.given[0]
        addresses = [t.data_ptr() for t in self.given]
        if first.is_cuda and any(address % 16 != 0 for address in addresses):
            return None
        made = first.new_empty(shape)
        run(*[(address, *one) for address, one in zip(addresses, forms, strict=True)], (made.data_ptr(), *form),
            stream_of(made, op.world))
        return made

    def keep(self, op: Any, run: Any, operands: tuple[Any, ...], made: Tensor) -> None:
        """What it was: `run` of these operands, of which the last is the result."""
        *inputs, result = operands
        if all(operand[0] == t.data_ptr() for operand, t in zip(inputs, self.given, strict=True)):
            self.engine.keep(self.key, (op, run, [operand[1:] for operand in inputs], result[1:], made.shape))


def run_gemm(op: Any, a: Tensor, weights: Tensor, out: Tensor, call: Call | None = None) -> None:
    a, weights = rows_of(a), rows_of(weights)
    operands = operand_of(a), operand_of(weights), operand_of(out.view(-1, out.shape[-1]))
    op._core.run_gemm(*operands, stream_of(a, op.world))
    if call is not None:
        call.keep(op, op._core.run_gemm, operands, out)


def run_collective(op: Any, x: Tensor | None, out: Tensor, call: Call | None = None) -> None:
    operands = None if x is None else operand_of(x.reshape(-1)), operand_of(out.view(-1))
    op._core.run_collective(*operands, stream_of(out, op.world))
    if call is not None:
        call.keep(op, op._core.run_collective, operands, out)
