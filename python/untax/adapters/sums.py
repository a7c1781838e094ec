"""Sums over the ranks of a group, for callers that ask before each call whether untax takes it.

All ranks ask with tensors of the same shape and type, and get the same answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import torch as untax_torch
from ..errors import OutOfMemory, Unsupported
from ..operators import Operator
from ..torch.calls import engine_for
from ..torch.groups import close, engine_of, name_of
from ..torch.norm import plan_norm
from ..torch.shapes import kernels_lack

_types = (torch.float32, torch.float16, torch.bfloat16)
_MIB = 1 << 20


def _true_at_all(group: Any, value: bool) -> bool:
    """Collective. Whether `value` is true at all ranks."""
    least = torch.tensor([int(value)], dtype=torch.int32)
    dist.all_reduce(least, dist.ReduceOp.MIN, group=group)
    return bool(least.item())


class Sums:
    """untax's sums over the ranks of `group`, for tensors of `device`. `log` gets each reason to leave a call once."""

    def __init__(self, group: Any, device: torch.device, log: logging.Logger) -> None:
        self.group_name = name_of(group)
        self._device, self._ranks, self._log = device, group.size(), log
        self._speaks = group.rank() == 0
        self._left: set[tuple[str, str]] = set()
        self._taken: dict[tuple[Any, ...], Operator] = {}  # by the properties that a call is asked about; frameworks ask several times a call
        # The largest sizes at which untax is ahead of NCCL in bench/results, between two ranks and between four.
        self._most_bytes_summed = 64 * _MIB if self._ranks == 2 else 2 * _MIB
        self._most_bytes_normed = 64 * _MIB if self._ranks == 2 else 8 * _MIB

    @classmethod
    def meet(cls, group: Any, device: torch.device, log: logging.Logger, wanted: bool = True) -> Sums | None:
        """Collective, over a group with tensors of the CPU. None if a rank declines or cannot run untax; the log of
        that rank has the reason."""
        if not _true_at_all(group, wanted):
            return None
        world = None
        try:
            world = engine_of(name_of(group), device.type, device.index).world
        except Exception as error:  # noqa: BLE001 - the framework goes on without untax, and the other ranks wait below
            log.warning("untax leaves the sums of this group: %s", error)
        if _true_at_all(group, world is not None):
            return cls(group, device, log)
        if world is not None:
            close(group)
        return None

    def takes_sum(self, x: Tensor) -> bool:
        """Whether `all_reduce` takes x; plans it."""
        key = x.shape, x.dtype, x.device
        if self._is_planned(key):
            return True
        why = self._why_not(x, self._most_bytes_summed)
        return self._plan(key, "all_reduce", why, lambda: engine_for(x, self.group_name).planned(
            "all_reduce", count=x.numel(), dtype=x.dtype, reduction="sum"))

    def takes_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> bool:
        """Whether `all_reduce_rms_norm` takes these tensors; plans it."""
        key = x.shape, x.dtype, x.device, residual.shape, residual.dtype, weight.shape, weight.dtype, eps
        if self._is_planned(key):
            return True
        why = self._why_not(x, self._most_bytes_normed)
        hidden = x.shape[-1] if x.dim() else 0
        if not why and (residual.shape != x.shape or residual.dtype != x.dtype or tuple(weight.shape) != (hidden,)
                        or weight.dtype not in (x.dtype, torch.float32)):
            why = f"residual of {residual.dtype} and weight of {weight.dtype} beside {x.dtype}, or of other shapes"
        if not why:
            why = f"rows of {hidden}" if hidden > 16384 else kernels_lack(x, hidden)
        return self._plan(key, "all_reduce_rms_norm", why, lambda: plan_norm(engine_for(x, self.group_name), x, eps))

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum of the x of all ranks, a new tensor."""
        return untax_torch.all_reduce(x, "sum", self.group_name)

    def all_reduce_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """(normed, total), new tensors."""
        return untax_torch.all_reduce_rms_norm(x, residual, weight, eps, self.group_name)

    def leave(self, operator: str, why: str) -> bool:
        """Returns False; the log of the first rank gets each reason once."""
        if (operator, why) not in self._left:
            self._left.add((operator, why))
            if self._speaks:
                self._log.info("untax leaves calls of %s: %s", operator, why)
        return False

    def close(self) -> None:
        close(self.group_name)

    def _why_not(self, x: Tensor, most_bytes: int) -> str:
        if x.dtype not in _types:
            return f"untax has no {x.dtype}"
        if x.device.type != self._device.type:
            return f"tensors of {x.device.type}"
        if x.numel() == 0:
            return "no elements"
        if x.numel() * x.element_size() > most_bytes:
            return f"more than {most_bytes // _MIB} MiB, between {self._ranks} ranks"
        return ""

    def _is_planned(self, key: tuple[Any, ...]) -> bool:
        op = self._taken.get(key)
        return op is not None and not op.closed

    def _plan(self, key: tuple[Any, ...], operator: str, why: str, plan: Callable[[], Operator]) -> bool:
        if why:
            return self.leave(operator, why)
        if len(self._taken) >= 1024:
            self._taken.clear()
        try:
            self._taken[key] = plan()
        except Unsupported as error:  # within the capture of a CUDA graph
            return self.leave(operator, str(error))
        except OutOfMemory:
            return self.leave(operator, "no symmetric memory for a plan")
        return True
