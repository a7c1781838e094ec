"""Linear layers that are split over ranks, with the tokens split between them (sequence parallelism)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument
from .groups import group_of


class _ParallelLinear(nn.Module):
    def __init__(self, rows: int, cols: int, bias: int | None, group: Any, dim: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.group_name, self.dim = group_of(group).group_name, dim
        self.weight = nn.Parameter(torch.empty(rows, cols, device=device, dtype=dtype))
        self.bias = None if bias is None else nn.Parameter(torch.zeros(bias, device=device, dtype=dtype))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)


def _part(whole: int, what: str, group: Any) -> tuple[int, int]:
    """How many of `whole` a rank has, and where its own begin."""
    group = group_of(group)
    if whole % group.size() != 0:
        raise InvalidArgument(f"{what} is {whole}, which {group.size()} ranks cannot share equally")
    part = whole // group.size()
    return part, part * group.rank()


class ColumnParallelLinear(_ParallelLinear):
    """Each rank has some of the output features. The input is this rank's share of the tokens, along `dim`; the output
    has all tokens, and this rank's features. One fused all_gather_gemm."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, group: Any = None, dim: int = 0,
                 device: Any = None, dtype: Any = None) -> None:
        own, _ = _part(out_features, "out_features", group)
        super().__init__(own, in_features, own if bias else None, group, dim, device, dtype)

    @classmethod
    def of(cls, linear: nn.Linear, *, group: Any = None, dim: int = 0) -> ColumnParallelLinear:
        """This rank's part of a layer that every rank has whole."""
        own, first = _part(linear.out_features, "out_features", group)
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, group=group, dim=dim,
                   device=linear.weight.device, dtype=linear.weight.dtype)
        with torch.no_grad():
            made.weight.copy_(linear.weight[first : first + own])
            if made.bias is not None:
                made.bias.copy_(linear.bias[first : first + own])
        return made

    def forward(self, x: Tensor) -> Tensor:
        y = torch.ops.untax.all_gather_matmul(x, self.weight.t(), self.dim, self.group_name)
        return y if self.bias is None else y + self.bias


class RowParallelLinear(_ParallelLinear):
    """Each rank has some of the input features. The input has all tokens, and this rank's features; the output is this
    rank's share of the tokens, along `dim`. One fused gemm_reduce_scatter."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, group: Any = None, dim: int = 0,
                 device: Any = None, dtype: Any = None) -> None:
        own, _ = _part(in_features, "in_features", group)
        super().__init__(out_features, own, out_features if bias else None, group, dim, device, dtype)

    @classmethod
    def of(cls, linear: nn.Linear, *, group: Any = None, dim: int = 0) -> RowParallelLinear:
        """This rank's part of a layer that every rank has whole."""
        own, first = _part(linear.in_features, "in_features", group)
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, group=group, dim=dim,
                   device=linear.weight.device, dtype=linear.weight.dtype)
        with torch.no_grad():
            made.weight.copy_(linear.weight[:, first : first + own])
            if made.bias is not None:
                made.bias.copy_(linear.bias)
        return made

    def forward(self, x: Tensor) -> Tensor:
        y = torch.ops.untax.matmul_reduce_scatter(x, self.weight.t(), "sum", self.dim, self.group_name)
        return y if self.bias is None else y + self.bias
