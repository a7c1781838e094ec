"""Counts of calls that untax took over or left; the log `untax.torch` gets each reason once."""

from __future__ import annotations

import logging
from collections import Counter

import torch.distributed as dist

_calls: Counter[tuple[str, str]] = Counter()
_said: set[tuple[str, str]] = set()
_log = logging.getLogger("untax.torch")


class Report(dict[tuple[str, str], int]):
    """The number of calls of each operator, by the way in which they were carried out, and the reasons for calls of torch.
    Collectives that torch.compile left as they were are counted once for each place in a graph."""

    def __str__(self) -> str:
        lines = [f"{operator}: {calls} calls, {way}" for (operator, way), calls in sorted(self.items())]
        return "\n".join(lines) or "no calls"


def report() -> Report:
    """The calls since `install`, or since `forget`, and the steps of decoding of models that `parallelize` has split."""
    return Report(_calls)


def forget() -> None:
    """Sets all counts to zero."""
    _calls.clear()


def count(operator: str, way: str, level: int = logging.INFO) -> None:
    """Counts a call. The log of the first rank has each way of an operator once, at `level`."""
    key = operator, way
    if key not in _said:
        _said.add(key)
        if not dist.is_initialized() or dist.get_rank() == 0:
            _log.log(level, "%s: %s", operator, way)
    _calls[key] += 1
