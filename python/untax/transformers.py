"""untax under the tensor parallelism of transformers itself: `tp_plan` entries that run on untax.

transformers splits a model by a plan that names a style for each layer. `register` replaces the styles that multiply
and communicate by untax's: "colwise" and "rowwise", with derivatives, and "colwise_gather_output", the head's. They
keep the parameters as transformers splits them, so that loading and saving stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from transformers.distributed import mixin
from transformers.distributed.parallel_utils import ALL_PARALLEL_STYLES
from transformers.distributed.tensor_parallel import ColwiseParallel, RowwiseParallel

from .errors import Unsupported
from .torch.groups import name_of, rank_of, ranks_of
from .torch.parallel import _Product
from .torch.shards import Layout

__all__ = ["register", "unregister"]

_ops = torch.ops.untax


class _ColumnProduct(torch.autograd.Function):
    """x, the same at all ranks, times this rank's weight; the gradient of x is the sum over ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.group_name = group_name
        return nn.functional.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        of_x = _ops.matmul_all_reduce(grad, weight, "sum", ctx.group_name) if ctx.needs_input_grad[0] else None
        of_weight = grad.flatten(0, -2).t() @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, None


class _RowProduct(torch.autograd.Function):
    """This rank's features times its weight, summed over the ranks; the gradient is the same at all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _ops.matmul_all_reduce(x, weight.t(), "sum", group_name)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        of_x = grad @ weight if ctx.needs_input_grad[0] else None
        of_weight = grad.flatten(0, -2).t() @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, None


def _local(parameter: Tensor) -> Tensor:
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def _group_of(mesh: Any) -> str:
    return name_of(mesh.get_group() if mesh.ndim == 1 else mesh.get_group("tp"))


class _Linear:
    """Runs a style's torch.nn.Linear on untax, and calls for which untax has no kernels as transformers does."""

    #: Whether all ranks need equal parts of the output features, or of the input features.
    equal = ""

    def product(self, module: nn.Linear, x: Tensor, group_name: str) -> Tensor:
        raise NotImplementedError

    def install_forward(self, module: nn.Module, mesh: Any) -> nn.Module:
        super().install_forward(module, mesh)  # type: ignore[misc]
        if type(module) is not nn.Linear:
            return module
        group_name = _group_of(mesh)
        if self.equal and getattr(module, self.equal) % ranks_of(group_name) != 0:
            return module
        otherwise = module.forward

        def forward(x: Tensor) -> Tensor:
            return otherwise(x) if isinstance(x, DTensor) else self.product(module, x, group_name)

        module.forward = forward
        return module


class Colwise(_Linear, ColwiseParallel):
    def product(self, module: nn.Linear, x: Tensor, group_name: str) -> Tensor:
        y = _ColumnProduct.apply(x, _local(module.weight), group_name)
        return y if module.bias is None else y + _local(module.bias)


class ColwiseGathered(_Linear, ColwiseParallel):
    equal = "out_features"

    def product(self, module: nn.Linear, x: Tensor, group_name: str) -> Tensor:
        layout = Layout(group_name, ranks_of(group_name), rank_of(group_name), 0)
        y = _Product.apply(x, _local(module.weight), layout)
        if module.bias is None:
            return y
        return y + (module.bias.full_tensor() if isinstance(module.bias, DTensor) else module.bias)


class Rowwise(_Linear, RowwiseParallel):
    equal = "in_features"

    def product(self, module: nn.Linear, x: Tensor, group_name: str) -> Tensor:
        y = _RowProduct.apply(x, _local(module.weight), group_name)
        return y if module.bias is None else y + _local(module.bias)


def _share_heads(model: nn.Module, mesh: Any) -> None:
    """Gives each rank a whole key/value head where there are fewer of these than ranks, which have a part of one each: parts are
    gathered behind the projection, and several ranks take the same head."""
    group_name = _group_of(mesh)
    ranks, rank = ranks_of(group_name), rank_of(group_name)
    for name, attention in model.named_modules():
        projections = [getattr(attention, key, None) for key in ("k_proj", "v_proj")]
        dim, groups = getattr(attention, "head_dim", 0), getattr(attention, "num_key_value_groups", 0)
        if not dim or not groups or not all(type(p) is nn.Linear and isinstance(p.weight, DTensor) for p in projections):
            continue
        heads = projections[0].out_features // dim
        if heads % ranks == 0:
            continue
        if ranks % heads != 0 or heads * groups % ranks != 0 or heads * dim % ranks != 0:
            raise Unsupported(f"{name}: {heads} key/value heads of {dim} elements for {heads * groups} heads; {ranks} ranks have to divide "
                              "the number of key/value heads; or the ranks have to be a multiple of this number, and divide the number of "
                              "heads and the elements of all key/value heads")
        attention.num_key_value_groups = heads * groups // ranks
        for projection in projections:
            projection.forward = _gathering(projection.forward, group_name, rank * heads // ranks * dim, dim)


def _gathering(part: Any, group_name: str, first: int, width: int) -> Any:
    def forward(x: Tensor) -> Tensor:
        return _ops.all_gather(part(x), x.dim() - 1, group_name).narrow(-1, first, width).contiguous()

    return forward


_before: dict[str, Any] = {}
_apply_before: list[Any] = []


def _apply(model: nn.Module, tp_mesh: Any, tp_plan: dict[str, str]) -> nn.Module:
    """Replaces transformers' function that splits a model."""
    model = _apply_before[0](model, tp_mesh, tp_plan)
    _share_heads(model, tp_mesh)
    return model


def register() -> None:
    """Lets "colwise", "rowwise" and "colwise_gather_output" (also called "colwise_rep") of transformers' `tp_plan` run on untax,
    for models that are split from now on. A torch.nn.Linear on plain tensors is multiplied, summed and gathered by
    `matmul_all_reduce` and `matmul_all_scatter`; other layers, and those that ranks cannot share equally, run as before. Where there
    are fewer key/value heads than ranks, several ranks have the same head, which transformers itself cannot."""
    styles = {"colwise": Colwise(input_layouts=Replicate(), output_layouts=Shard(-1)),
              "rowwise": Rowwise(input_layouts=Shard(-1), output_layouts=Replicate()),
              "colwise_gather_output": ColwiseGathered(input_layouts=Replicate(), output_layouts=Replicate()),
              "colwise_rep": ColwiseGathered(input_layouts=Replicate(), output_layouts=Replicate())}
    for name, style in styles.items():
        _before.setdefault(name, ALL_PARALLEL_STYLES[name])
        ALL_PARALLEL_STYLES.register(name, style)
    if not _apply_before:
        _apply_before.append(mixin.apply_tensor_parallelism)
        mixin.apply_tensor_parallelism = _apply


def unregister() -> None:
    """Restores the styles of transformers; models that are already split keep untax's."""
    while _before:
        ALL_PARALLEL_STYLES.register(*_before.popitem())
    while _apply_before:
        mixin.apply_tensor_parallelism = _apply_before.pop()
