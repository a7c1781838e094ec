"""A framework's communicator whose all-reduces run on untax."""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch import Tensor

from .sums import Sums


@functools.cache
def summing(own: type) -> type:
    """A subclass of `own`, a framework's class for all-reduces of its own, that sums tensors on untax if untax supports
    them. The rest of the class is unchanged, so that code which checks the class of a communicator, or calls its other
    collectives, still works."""

    class UntaxAllReduce(own):  # type: ignore[misc, valid-type]
        untax: Sums

        def should_custom_ar(self, inp: Tensor) -> bool:
            return not self.disabled and (self.untax.takes_sum(inp) or super().should_custom_ar(inp))

        def custom_all_reduce(self, input: Tensor) -> Tensor | None:  # noqa: A002 - the framework's name
            if not self.disabled and self.untax.takes_sum(input):
                return self.untax.all_reduce(input)
            return super().custom_all_reduce(input)

        def close(self) -> None:
            self.untax.close()
            super().close()

    return UntaxAllReduce


def adopt(own: Any, group: Any, device: torch.device, log: logging.Logger) -> Any:
    """Collective. The communicator `own`, which sums on untax from here on, unless it is disabled or a rank cannot run untax."""
    if own.disabled:
        log.info("untax leaves the sums of this group: %s is disabled", type(own).__name__)
    sums = Sums.meet(group, device, log, wanted=not own.disabled)
    if sums is not None:
        own.__class__ = summing(type(own))
        own.untax = sums
        if group.rank() == 0:
            log.info("untax takes over all-reduces between %d ranks, in place of %s", group.size(), type(own).__base__.__name__)
    return own


def sums_of(communicator: Any) -> Sums | None:
    """The sums of an adopted communicator; None for others, and while the framework has it disabled."""
    return None if getattr(communicator, "disabled", True) else getattr(communicator, "untax", None)
