"""The operations of a layer between operators that send; each rank computes alone."""

from __future__ import annotations

from typing import Any

from .planned import Operator
from .types import as_operand, empty_like, stream_number, type_name
from .world import World

__all__ = ["Linear"]


class Linear(Operator):
    """A linear layer: out = activation(x weights^T + bias). Nothing is sent.

    `x`: [rows, k], `out`: [rows, n], `weights`: [n, k], `bias`: [n]. The gated activations, "swiglu" and "geglu", take [2 n, k]
    and [2 n], rows of gate and up in turn, eight of each; others are "none", "silu", "gelu" and "gelu_tanh". With
    `varying_rows` a run has any number of rows up to that. On GPUs n and k have to be multiples of 8.
    """

    name = "linear"
    operands = ("x", "weights", "bias", "out")

    def __init__(self, world: World, *, rows: int, n: int, k: int, dtype: Any = "bf16", activation: str = "none",
                 **options: Any) -> None:
        super().__init__(world, rows=rows, n=n, k=k, type=type_name(dtype), activation=activation, **options)

    def run(self, x: Any, weights: Any, bias: Any = None, out: Any = None, *, stream: Any = None) -> Any:
        """One run. Returns `out`, which is made like `x` if it is not given."""
        operand = as_operand(x)
        if out is None:
            out = empty_like(x, (operand[1], self.operand("out")[0][1]))
        reads = {"x": operand, "weights": as_operand(weights)}
        if bias is not None:
            reads["bias"] = as_operand(bias)
        self._core.run(reads, {"out": as_operand(out)}, stream_number(stream))
        return out
