"""Runs calls of operators that do not need torch's dispatcher without it.

For a kernel in Python the dispatcher packs the arguments, asks for the interpreter and unpacks them, once for gradients and once
for the device: 15 to 30 us of the host for each call, as long as the kernels of a small sum take. A call on plain tensors, of
which no gradient is wanted, and that nothing watches, would reach the same function with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.nn import Parameter

from ..world import World
from .groups import name_of

_groups = (ProcessGroup, DeviceMesh, World)
_values = frozenset((str, int, bool, float, type(None)))


def _is_watched() -> bool:
    """Whether modes, transforms, a tracer or the profiler have to see a call."""
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack() or torch._C._get_tracing_state()
                or torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd._profiler_enabled())


def _are_plain(arguments: Iterable[Any]) -> bool:
    wants_gradients = torch.is_grad_enabled()
    for argument in arguments:
        kind = type(argument)
        if kind in _values:
            continue
        if kind is not Tensor and kind is not Parameter or argument.is_meta or wants_gradients and argument.requires_grad:
            return False
    return True


def _with_name(argument: Any) -> Any:
    return name_of(argument) if isinstance(argument, _groups) else argument


def run_directly(name: str, run: Callable[..., Any], results: tuple[str, ...]) -> None:
    """Lets calls of `torch.ops.untax.name` that need no dispatcher call `run`; those with a tensor for one of `results` are
    dispatched, like all others. A group may stand for its name."""
    packet = getattr(torch.ops.untax, name)
    dispatched = getattr(packet, "_op", None)
    try:
        _is_watched()
    except AttributeError:  # a torch without these functions dispatches every call
        dispatched = None
    if dispatched is None:
        return
    written = frozenset(results)

    def call(*positional: Any, **named: Any) -> Any:
        if (not named or written.isdisjoint(named) and _are_plain(named.values())) and _are_plain(positional) and not _is_watched():
            return run(*positional, **named)
        if any(isinstance(argument, _groups) for argument in (*positional, *named.values())):
            return call(*map(_with_name, positional), **{key: _with_name(argument) for key, argument in named.items()})
        return dispatched(*positional, **named)

    packet._op = call
