"""Linear layers that are split over ranks, with the tokens split between them (sequence parallelism)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument
from .groups import name_of, rank_of, ranks_of


class _Replicated(torch.autograd.Function):
    """A parameter that is the same at all ranks, and that each rank applies to its own tokens. Its gradient is summed over
    the ranks, so it is that of all tokens."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, group: str) -> Tensor:
        ctx.group = group
        return parameter.view_as(parameter)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return torch.ops.untax.all_reduce(grad, "sum", ctx.group), None


def in_autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in the type of torch.autocast, as torch.nn.Linear converts them; unchanged if autocast is off."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    return tuple(t.to(torch.get_autocast_dtype(kind)) for t in tensors)


class _ParallelLinear(nn.Module):
    def __init__(self, rows: int, cols: int, bias: int | None, group: Any, dim: int, device: Any, dtype: Any,
                 partials: str | None) -> None:
        super().__init__()
        self.group_name, self.dim, self.partials = name_of(group), dim, partials
        self.weight = nn.Parameter(torch.empty(rows, cols, device=device, dtype=dtype))
        self.bias = None if bias is None else nn.Parameter(torch.zeros(bias, device=device, dtype=dtype))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def extra_repr(self) -> str:
        rows, cols = self.weight.shape
        return f"{cols} -> {rows} of this rank, bias={self.bias is not None}, dim={self.dim}, partials={self.partials}"


def _part(whole: int, name: str, group: Any) -> tuple[int, int]:
    """The size of a rank's equal part of `whole`, and the begin of this rank's part."""
    group_name = name_of(group)
    ranks = ranks_of(group_name)
    if whole % ranks != 0:
        raise InvalidArgument(f"{name} is {whole}, which {ranks} ranks cannot share equally")
    part = whole // ranks
    return part, part * rank_of(group_name)


class ColumnParallelLinear(_ParallelLinear):
    """Each rank has some of the output features. The input is this rank's share of the tokens, along `dim`; the output
    has all tokens, and this rank's features. One fused all_gather_gemm. The gradient of the input is a sum over ranks,
    whose partial results travel in the type of the layer, or in fp32 with `partials="fp32"`."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, group: Any = None, dim: int = 0,
                 device: Any = None, dtype: Any = None, partials: str | None = None) -> None:
        own, _ = _part(out_features, "out_features", group)
        super().__init__(own, in_features, own if bias else None, group, dim, device, dtype, partials)

    @classmethod
    def of(cls, linear: nn.Linear, *, group: Any = None, dim: int = 0,
           partials: str | None = None) -> ColumnParallelLinear:
        """This rank's part of `linear`, a layer that every rank has as a whole."""
        own, first = _part(linear.out_features, "out_features", group)
        layer = cls(linear.in_features, linear.out_features, linear.bias is not None, group=group, dim=dim,
                   device=linear.weight.device, dtype=linear.weight.dtype, partials=partials)
        with torch.no_grad():
            layer.weight.copy_(linear.weight[first : first + own])
            if layer.bias is not None:
                layer.bias.copy_(linear.bias[first : first + own])
        return layer

    def forward(self, x: Tensor) -> Tensor:
        x, weight = in_autocast(x, self.weight)
        y = torch.ops.untax.all_gather_matmul(x, weight.t(), self.dim, self.group_name, self.partials)
        return y if self.bias is None else y + self.bias.to(y.dtype)


class RowParallelLinear(_ParallelLinear):
    """Each rank has some of the input features. The input has all tokens, and this rank's features; the output is this
    rank's share of the tokens, along `dim`. One fused gemm_reduce_scatter, whose partial results travel in the type of the
    layer, or in fp32 with `partials="fp32"`. The bias is the same at all ranks, and its gradient that of all tokens: the
    backward pass sums it over the ranks."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, group: Any = None, dim: int = 0,
                 device: Any = None, dtype: Any = None, partials: str | None = None) -> None:
        own, _ = _part(in_features, "in_features", group)
        super().__init__(out_features, own, out_features if bias else None, group, dim, device, dtype, partials)

    @classmethod
    def of(cls, linear: nn.Linear, *, group: Any = None, dim: int = 0,
           partials: str | None = None) -> RowParallelLinear:
        """This rank's part of `linear`, a layer that every rank has as a whole."""
        own, first = _part(linear.in_features, "in_features", group)
        layer = cls(linear.in_features, linear.out_features, linear.bias is not None, group=group, dim=dim,
                   device=linear.weight.device, dtype=linear.weight.dtype, partials=partials)
        with torch.no_grad():
            layer.weight.copy_(linear.weight[:, first : first + own])
            if layer.bias is not None:
                layer.bias.copy_(linear.bias)
        return layer

    def forward(self, x: Tensor) -> Tensor:
        x, weight = in_autocast(x, self.weight)
        y = torch.ops.untax.matmul_reduce_scatter(x, weight.t(), "sum", self.dim, self.group_name, self.partials)
        return y if self.bias is None else y + _Replicated.apply(self.bias, self.group_name).to(y.dtype)
