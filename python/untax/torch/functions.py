"""The operators of `torch.ops.untax` as functions that take a group as torch has it: a process group, its name, an
`untax.World`, or None for the default group. All are collective but flash_attention, and have derivatives where
docs/python.md says so."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .groups import name_of

_ops = torch.ops.untax


def all_gather(x: Tensor, dim: int = 0, group: Any = None) -> Tensor:
    """The x of all ranks, one behind the other along `dim`. All have the same shape."""
    return _ops.all_gather(x, dim, name_of(group))


def reduce_scatter(x: Tensor, reduce_op: str = "sum", dim: int = 0, group: Any = None) -> Tensor:
    """This rank's share, along `dim`, of the "sum", "avg", "max" or "min" of the x of all ranks."""
    return _ops.reduce_scatter(x, reduce_op, dim, name_of(group))


def all_reduce(x: Tensor, reduce_op: str = "sum", group: Any = None) -> Tensor:
    """The "sum", "avg", "max" or "min" of the x of all ranks, the same bits everywhere. `x` stays as it is."""
    return _ops.all_reduce(x, reduce_op, name_of(group))


def all_to_all(x: Tensor, group: Any = None) -> Tensor:
    """Of the first dimension, which ranks share equally: the parts that the ranks have for this one."""
    return _ops.all_to_all(x, name_of(group))


def broadcast(x: Tensor, root: int = 0, group: Any = None) -> Tensor:
    """The x of rank `root`; elsewhere x says shape and type alone."""
    return _ops.broadcast(x, root, name_of(group))


def all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int = 0, group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The a of all ranks, gathered along `gather_dim`, times this rank's b of [k, n]: a linear layer whose weights are split
    by columns. `partials` is of its derivative, which is a sum over ranks."""
    return _ops.all_gather_matmul(a, b, gather_dim, name_of(group), partials, invariant)


def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str = "sum", scatter_dim: int = 0, group: Any = None, *,
                          partials: str | None = None, invariant: bool = False) -> Tensor:
    """This rank's share, along `scatter_dim`, of the "sum" or "avg" of a times b over ranks: a linear layer whose weights are
    split by rows. Partial results travel in the type of the operands, or in fp32 with `partials="fp32"`."""
    return _ops.matmul_reduce_scatter(a, b, reduce_op, scatter_dim, name_of(group), partials, invariant)


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str = "sum", group: Any = None, *, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    """The same, complete at every rank, with the same bits."""
    return _ops.matmul_all_reduce(a, b, reduce_op, name_of(group), partials, invariant)


def matmul_all_scatter(a: Tensor, b: Tensor, group: Any = None, *, invariant: bool = False) -> Tensor:
    """`a`, the same at all ranks, times the columns b of each rank, side by side at every rank."""
    return _ops.matmul_all_scatter(a, b, name_of(group), invariant)


def all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-5,
                        group: Any = None) -> tuple[Tensor, Tensor]:
    """(normed, total): the sum of the x of all ranks and of residual, and its rows divided by the root of their mean square
    plus eps, times weight. weight may be of fp32 and is rounded to the type of x."""
    return _ops.all_reduce_rms_norm(x, residual, weight, eps, name_of(group))


def flash_decode(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, group: Any = None, *,
                 scale: float = 0.0) -> Tensor:
    """Attention of q, [batch, heads, dim], the same at all ranks, to the keys and values that all ranks have together. A rank
    has [batch, keys, kv_heads, dim], of which the first `lengths` of a sequence count. scale 0 is 1 / sqrt(dim)."""
    return _ops.flash_decode(q, keys, values, lengths, name_of(group), scale)


def flash_attention(q: Tensor, keys: Tensor, values: Tensor, *, causal: bool = False,
                    scale: float = 0.0) -> tuple[Tensor, Tensor]:
    """(o, lse) of [batch, queries, heads, dim] to [batch, keys, kv_heads, dim], each process for itself; lse is the natural
    logarithm of the sum of exponentials, in fp32, [batch, queries, heads]."""
    return _ops.flash_attention(q, keys, values, causal, scale)


def merge_partial_attention(partial_o: Tensor, partial_lse: Tensor, group: Any = None, *,
                            own_heads: bool = False) -> tuple[Tensor, Tensor]:
    """Merges what anybody's attention kernel made of the keys of each rank.

    `partial_o`: [..., heads, head_dim], `partial_lse`: [..., heads], the logarithm of the sum of exponentials, base e,
    -inf or inf where a rank has no key, and then its row of `partial_o` may hold anything. Returns the attention to the
    keys of all ranks, and its lse in fp32, zeros and -inf where nobody has one: of all heads at every rank, or with
    `own_heads` of this rank's ceil(heads / W), the last ranks fewer or none.
    """
    return _ops.merge_partial_attention(partial_o, partial_lse, name_of(group), own_heads)
