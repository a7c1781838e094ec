"""Checks the tensors that are passed to operators, and reshapes them to matrices."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from ..types import type_name
from .calls import is_aligned


def as_matrix(t: Tensor) -> Tensor:
    """Flattens all dimensions but the last."""
    return t if t.dim() == 2 else t.reshape(math.prod(t.shape[:-1]), t.shape[-1])


def to_front(t: Tensor, dim: int) -> Tensor:
    return t if dim == 0 else t.movedim(dim, 0)


def from_front(t: Tensor, dim: int) -> Tensor:
    return t if dim == 0 else t.movedim(0, dim)


def require_alike(first: Tensor, **others: Tensor) -> None:
    """Refuses operands whose device or type is not that of the first operand."""
    for name, t in others.items():
        if t.device != first.device or t.dtype != first.dtype:
            raise InvalidArgument(f"{name} is of {t.dtype} on {t.device}; it has to be of {first.dtype} on {first.device}, "
                                  "like the first operand")


def require_shape(name: str, t: Tensor, *shape: int) -> None:
    if tuple(t.shape) != shape:
        raise InvalidArgument(f"{name} is {tuple(t.shape)}; it has to be {shape}")


def require_dims(dims: int, **tensors: Tensor) -> None:
    for name, t in tensors.items():
        if t.dim() != dims:
            raise InvalidArgument(f"{name} has {t.dim()} dimensions; it has to have {dims}")


def last_extent(name: str, t: Tensor) -> int:
    """The extent of the last dimension."""
    if t.dim() == 0:
        raise InvalidArgument(f"{name} has no dimension; it has to have one at least")
    return t.shape[-1]


def share_of(extent: int, dim: int, ranks: int) -> int:
    """The share of a dimension that each rank has. All ranks decide the same, so no rank waits for a refused one."""
    if extent % ranks != 0:
        raise InvalidArgument(f"dimension {dim} has an extent of {extent}, which {ranks} ranks cannot share equally")
    return extent // ranks


def dimension(name: str, dim: int, t: Tensor, operand: str = "a") -> int:
    """`dim` as counted from the first dimension. A `dim` outside of the dimensions of `t`, which is `operand`, is refused: its
    remainder would be another dimension."""
    if not -t.dim() <= dim < t.dim():
        right = f"it has to be from {-t.dim()} to {t.dim() - 1}" if t.dim() > 0 else "there is none"
        raise InvalidArgument(f"{name} is {dim}; {right}, since {operand} has {t.dim()} dimensions")
    return dim % t.dim()


def require_sum(reduce_op: str) -> None:
    """Refuses reductions that kernels with a product and a scatter do not support."""
    if reduce_op not in ("sum", "avg"):
        raise InvalidArgument(f"reduce_op is {reduce_op!r}; it can be sum, avg")


def columns_of(a: Tensor, b: Tensor, k: int) -> int:
    """The number of columns of b, [k, n]."""
    require_alike(a, b=b)
    if b.dim() != 2 or b.shape[0] != k:
        raise InvalidArgument(f"b is {tuple(b.shape)}; it has to be a matrix with {k} rows")
    return b.shape[1]


def kernels_lack(t: Tensor, *extents: int) -> str:
    """The reason why kernels that multiply, add or normalise cannot take a tensor of a GPU; empty if they can, and for
    tensors of hosts. Each of `extents` has to be a multiple of 8."""
    if not t.is_cuda:
        return ""
    if t.dtype == torch.float32:
        return "kernels have no torch.float32"
    odd = [extent for extent in extents if extent % 8 != 0]
    return f"kernels need multiples of 8, and there is {odd[0]}" if odd else ""


def partials_of(t: Tensor, partials: Any) -> str | None:
    """The type in which partial results of operands like `t` are sent: None for the type of the operands,
    or "fp32"."""
    if partials is None or (name_of_type := type_name(partials)) == type_name(t.dtype):
        return None
    if name_of_type != "fp32":
        raise InvalidArgument(f"partials is {partials!r}; partial results are sent in the type of the operands, which is "
                              f"{type_name(t.dtype)}, if partials is None, or in \"fp32\"")
    return name_of_type


def allocate_result(like: Tensor, shape: tuple[int, ...], dim: int, out: Tensor | None) -> Tensor:
    """The tensor for a result with `dim` outermost in memory: a view of `out` if its memory has this order, else a new one."""
    if out is not None:
        view = out.movedim(dim, 0) if out.dim() == len(shape) > 0 else out
        require_fit(like, shape, view)
        if view.is_contiguous() and is_aligned(view):
            return view
    return like.new_empty(shape)


def require_fit(like: Tensor, shape: tuple[int, ...], out: Tensor) -> None:
    if tuple(out.shape) != shape or out.dtype != like.dtype or out.device != like.device:
        raise InvalidArgument(f"out is {tuple(out.shape)} of {out.dtype} on {out.device}, in the order of memory; it has "
                              f"to be {tuple(shape)} of {like.dtype} on {like.device}")


def deliver(result: Tensor, out: Tensor | None) -> Tensor:
    """The result, copied into `out` if that is given."""
    if out is None:
        return result
    return out if result.data_ptr() == out.data_ptr() else out.copy_(result)


def pad_shards_of_k(left: Tensor, right: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """Pads the operands of a rank with zeros, so that its shard of k is a multiple of 8."""
    k = left.shape[1]
    rounded = -(-k // 8) * 8 if ranks > 1 else k
    if rounded == k:
        return left, right
    return (torch.nn.functional.pad(left, (0, rounded - k)), torch.nn.functional.pad(right, (0, rounded - k)))


def _power_of(ranks: int) -> int:
    """The least power of two that is at least `ranks`."""
    return 1 << (ranks - 1).bit_length()


def before_sum(t: Tensor, reduce_op: str, ranks: int) -> Tensor:
    """The summand for "avg": divided by a power of two, which rounds nothing but subnormal numbers, so that no sum
    overflows where the mean does not."""
    return t / _power_of(ranks) if reduce_op == "avg" and ranks > 1 else t


def after_sum(total: Tensor, reduce_op: str, ranks: int) -> Tensor:
    """The mean, from the sum of the results of `before_sum`."""
    if reduce_op == "avg" and _power_of(ranks) != ranks:
        total.mul_(_power_of(ranks) / ranks)
    return total


def reduction_of(reduce_op: str) -> str:
    return "sum" if reduce_op == "avg" else reduce_op
