"""The shardings of DTensors that operators of one rank accept as operands. Other operators refuse DTensors.

An operator that sends works on what each rank has, while a DTensor stands for the whole of all ranks: torch moves its parts
before and after an operator, as placements need it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from ..errors import Unsupported
from .define import functions
from .layers import gated_activations, interleaved_rows

_Strategies = list[tuple[list[Any], list[Any]]]


def _linear(x: Any, weight: Any, bias: Any = None, activation: str = "none", constant_weights: bool = False) -> _Strategies:
    """Shardings of a linear layer: rows of x; features of the result; features of x, if no function is applied to a sum
    over them."""
    whole, last = Replicate(), x.ndim - 1
    strategies = [([row], [row, whole, whole]) for row in (Replicate(), *map(Shard, range(last)))]
    if activation not in gated_activations or weight.shape[0] % (2 * interleaved_rows * weight.mesh.size()) == 0:
        strategies.append(([Shard(last)], [whole, Shard(0), Shard(0)]))
    if bias is None and activation == "none":
        strategies.append(([Partial()], [Shard(last), Shard(1), None]))
    return [(results, operands if bias is not None else operands[:2]) for results, operands in strategies]


def _flash_attention(q: Any, keys: Any, values: Any, causal: bool = False, scale: float = 0.0) -> _Strategies:
    """Shardings: sequences, and heads."""
    return [([placement] * 2, [placement] * 3) for placement in (Replicate(), Shard(0), Shard(2))]


def _decode_attention(q: Any, keys: Any, values: Any, lengths: Any, page_table: Any = None, scale: float = 0.0,
                      logit_cap: float = 0.0) -> _Strategies:
    """Shardings: sequences, if each has its own keys, and heads."""
    whole = Replicate()
    if page_table is None:
        return [([placement], [placement] * 4) for placement in (whole, Shard(0))] + [
            ([Shard(1)], [Shard(1), Shard(2), Shard(2), whole])]
    return [([whole], [whole] * 5), ([Shard(1)], [Shard(1), Shard(2), Shard(2), whole, whole])]


_own = {"linear": _linear, "flash_attention": _flash_attention, "decode_attention": _decode_attention}


def _refusing(name: str) -> Callable[..., _Strategies]:
    def refuse(*_: Any, **__: Any) -> _Strategies:
        raise Unsupported(f"torch.ops.untax.{name} takes what each rank has, and no DTensors; pass x.to_local(), and make a DTensor "
                          "of the result by DTensor.from_local")

    return refuse


def register() -> None:
    """Registers the shardings of DTensors of all operators with torch. A torch without that interface refuses all
    DTensors."""
    try:
        from torch.distributed.tensor.experimental import register_sharding

        known = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info
    except (ImportError, AttributeError):
        return
    for name in functions:
        overload = getattr(torch.ops.untax, name).default
        register_sharding(overload)(_own.get(name) or _refusing(name))
        # torch keeps a choice for equal arguments. It would not compare words, nor numbers that are not integers.
        numbers = [place for place, argument in enumerate(overload._schema.arguments) if "Tensor" not in str(argument.type)]
        known[overload].static_argnum = min(numbers, default=100)
        known[overload].static_kwargkey = [overload._schema.arguments[place].name for place in numbers] or None
