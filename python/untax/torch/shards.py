"""Parameters that are split over ranks, and state dicts of such a model as one process has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument
from .layers import interleaved_rows

_chunk = 1 << 19  # elements of a rank that are gathered at once, so that the symmetric heap need not have room for a
                  # matrix


class Shard(NamedTuple):
    """The split of a whole parameter along `dim`: each rank has `width` of its `extent` rows or columns, from
    `first[rank]` on. Ranks may have the same ones. Where the whole ends earlier, zeros follow."""

    name: str
    dim: int
    extent: int
    width: int
    first: tuple[int, ...]

    def _span(self, rank: int) -> tuple[int, int]:
        return self.first[rank], max(0, min(self.width, self.extent - self.first[rank]))

    def part(self, whole: Tensor, rank: int) -> Tensor:
        """A copy of the part of a rank."""
        shape = list(whole.shape)
        shape[self.dim] = self.width
        own = whole.new_zeros(shape)
        first, count = self._span(rank)
        own.narrow(self.dim, 0, count).copy_(whole.narrow(self.dim, min(first, self.extent - count), count))
        return own

    def whole(self, parts: Sequence[Tensor]) -> Tensor:
        """The whole parameter, from the parts of all ranks."""
        shape = self.shape(parts[0])
        joined = parts[0].new_empty(shape)
        for rank, part in enumerate(parts):
            first, count = self._span(rank)
            joined.narrow(self.dim, min(first, self.extent - count), count).copy_(part.narrow(self.dim, 0, count))
        return joined

    def shape(self, part: Tensor) -> tuple[int, ...]:
        """The shape of the whole parameter, from the part of a rank."""
        return tuple(self.extent if dim == self.dim else extent for dim, extent in enumerate(part.shape))


class Layout(NamedTuple):
    """The group of a parallel model, and the least number of tokens that a call splits over the ranks."""

    group_name: str
    ranks: int
    rank: int
    split_from: int

    def splits(self, x: Tensor) -> bool:
        """Whether the tokens of x, [batch, length, features], are split. Those that ranks cannot share equally are padded, but
        not in sequences that are shorter than the padding may be: the batch could not be told from the number of tokens."""
        batch, length = x.shape[:2]
        total = batch * length
        return self.ranks > 1 and total >= self.split_from and (total % self.ranks == 0 or length >= self.ranks)


class Plan(NamedTuple):
    """The record of how `parallelize` split a model: the names of its state dict before, and for each split parameter
    the shards that lie in it, one behind the other along their `dim`, or for names in `interleaved` as
    `interleave_gate_up` has them. Parameters that are not here are whole at every rank."""

    layout: Layout
    names: tuple[str, ...]
    shards: dict[str, tuple[Shard, ...]]
    interleaved: frozenset[str]

    def _views(self, key: str, own: Tensor) -> list[Tensor]:
        """The elements of a split parameter that belong to each of its shards, interleaved ones as [n / 8, 8, ...]."""
        shards = self.shards[key]
        if key in self.interleaved:
            return list(own.unflatten(0, (-1, len(shards), interleaved_rows)).unbind(1))
        return list(own.split([shard.width for shard in shards], shards[0].dim))

    def pieces(self, key: str, own: Tensor) -> list[tuple[Shard, Tensor]]:
        """The elements of each shard of a split parameter: views, or copies of interleaved rows."""
        views = self._views(key, own)
        if key in self.interleaved:
            views = [view.flatten(0, 1) for view in views]
        return list(zip(self.shards[key], views, strict=True))

    def write(self, key: str, own: Tensor, shard: Shard, part: Tensor) -> None:
        """Copies the elements of a shard into a split parameter."""
        view = self._views(key, own)[self.shards[key].index(shard)]
        view.copy_(part.reshape(view.shape))


def plan_of(model: nn.Module) -> Plan:
    plan = getattr(model, "untax_plan", None)
    if plan is None:
        raise InvalidArgument(f"{type(model).__name__} has not been split by untax.torch.parallelize")
    return plan


def _gathered(own: Tensor, group_name: str, ranks: int, kept: bool) -> list[Tensor]:
    """The tensors of all ranks, on the CPU; empty tensors on ranks that do not keep them."""
    flat = own.contiguous().view(-1)
    parts = [torch.empty(flat.shape if kept else 0, dtype=own.dtype) for _ in range(ranks)]
    for piece, first in ((piece, i * _chunk) for i, piece in enumerate(flat.split(_chunk))):
        pieces = torch.ops.untax.all_gather(piece, 0, group_name).view(ranks, -1)
        if kept:
            for part, gathered in zip(parts, pieces, strict=True):
                part[first : first + piece.numel()].copy_(gathered)
    return [part.view(own.shape) for part in parts] if kept else parts


@torch.no_grad()
def full_state_dict(model: nn.Module, *, rank: int | None = None) -> dict[str, Tensor]:
    """Collective. The state dict that a model had before `parallelize`, with the current values: the same names in the same
    order, whole tensors, on the CPU. With `rank` only this rank of the group gets it, and the others an empty one, which spares
    their memory. `model.save_pretrained(folder, state_dict=...)` writes it, at one rank.

    `InvalidArgument` if `parallelize` has not split the model, or if `rank` is no rank of its group."""
    plan = plan_of(model)
    layout = plan.layout
    if rank is not None and not 0 <= rank < layout.ranks:
        raise InvalidArgument(f"rank is {rank}; it has to be from 0 to {layout.ranks - 1}, or None for all ranks")
    kept = rank is None or rank == layout.rank
    whole: dict[str, Tensor] = {}
    seen: dict[int, str] = {}  # tied parameters are gathered once
    for key, own in model.state_dict().items():
        first = seen.setdefault(own.data_ptr(), key) if key in plan.shards else key
        if first != key:
            for shard, same in zip(plan.shards[key], plan.shards[first], strict=True):
                if kept:
                    whole[shard.name] = whole[same.name]
        elif key not in plan.shards:
            if kept:
                whole[key] = own.detach().cpu().clone()
        else:
            parts = _gathered(own, layout.group_name, layout.ranks, kept)
            if kept:
                each = [plan.pieces(key, part) for part in parts]
                for index, shard in enumerate(plan.shards[key]):
                    whole[shard.name] = shard.whole([pieces[index][1] for pieces in each])
    return {name: whole[name] for name in plan.names} if kept else {}


@torch.no_grad()
def load_full_state_dict(model: nn.Module, state_dict: Mapping[str, Any]) -> None:
    """Loads the whole state dict of the model before `parallelize`, such as `full_state_dict` gives: each rank copies its parts.
    Of tied parameters one is enough.

    `InvalidArgument` before anything is copied, with all names that are missing, that the model lacks, or whose shapes
    differ."""
    plan = plan_of(model)
    own = model.state_dict()
    targets = {key: plan.shards[key] if key in plan.shards else
               (Shard(key, 0, tensor.shape[0] if tensor.dim() > 0 else 1, 0, ()),) for key, tensor in own.items()}
    loaded = {(own[key].data_ptr(), index) for key, shards in targets.items() for index, shard in enumerate(shards)
              if shard.name in state_dict}
    wrong = []
    for key, shards in targets.items():
        tensor = own[key]
        for index, shard in enumerate(shards):
            if shard.name not in state_dict:
                if (tensor.data_ptr(), index) not in loaded:
                    wrong.append(f"{shard.name} is missing")
            elif (whole := tuple(state_dict[shard.name].shape)) != (shape := shard.shape(tensor)):
                wrong.append(f"{shard.name} is {whole} and has to be {shape}")
    wrong += [f"the model has no {name}" for name in state_dict if name not in plan.names]
    if wrong:
        raise InvalidArgument(f"rank {plan.layout.rank}: the state dict does not fit {type(model).__name__}: "
                              f"{'; '.join(wrong)}")
    for key, shards in targets.items():
        for shard in shards:
            if shard.name not in state_dict:
                continue
            if key in plan.shards:
                plan.write(key, own[key], shard, shard.part(state_dict[shard.name], plan.layout.rank))
            else:
                own[key].copy_(state_dict[shard.name])


@torch.no_grad()
def clip_grad_norm_(model: nn.Module, max_norm: float) -> Tensor:
    """Collective. Scales the gradients of a model that `parallelize` has split so that the 2-norm of all of them together, those
    of other ranks' parts included, is at most `max_norm`, as `torch.nn.utils.clip_grad_norm_` does in one process. Returns the
    norm before, fp32, the same at all ranks. torch's own function sees the parts of one rank alone, and would scale the
    parameters that all ranks have in another way at each.

    `InvalidArgument` if `parallelize` has not split the model."""
    plan = plan_of(model)
    parameters = dict(model.named_parameters())
    total = next(iter(parameters.values())).new_zeros(1, dtype=torch.float32)
    for key, parameter in parameters.items():
        if parameter.grad is None:
            continue
        if key in plan.shards:
            for shard, grad in plan.pieces(key, parameter.grad):
                owners = shard.first.count(shard.first[plan.layout.rank])
                total += grad.float().square().sum() / owners
        else:
            total += parameter.grad.float().square().sum() / plan.layout.ranks
    norm = torch.ops.untax.all_reduce(total, "sum", plan.layout.group_name).sqrt().squeeze(0)
    torch.nn.utils.clip_grads_with_norm_(parameters.values(), max_norm, norm)
    return norm
