"""Lets the ranks of a process group of torch meet. Imports torch."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh

from .errors import InvalidArgument, Timeout

_worlds_made: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # by group, since torch reuses names


def group_of(group: Any) -> Any:
    """The process group that `group` is or names, or that a DeviceMesh of one dimension has; the default group for None. Raises
    InvalidArgument if there is none."""
    if group is None:
        if not dist.is_initialized():
            raise InvalidArgument("there is no default process group; call torch.distributed.init_process_group first, or "
                                  "give a group")
        return dist.group.WORLD
    if isinstance(group, str):
        try:
            return c10d._resolve_process_group(group)
        except RuntimeError as error:
            raise InvalidArgument(f"{group!r} is the name of no process group of this rank; it has to be one that the rank "
                                  "is in, as untax.torch.name_of(group) gives it") from error
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise InvalidArgument(f"group is a mesh of {group.ndim} dimensions, {group.mesh_dim_names}; it has to be of one, such as "
                                  "mesh[name], or the process group mesh.get_group(name)")
        return group.get_group()
    if not isinstance(group, dist.ProcessGroup):
        raise InvalidArgument(f"group is {group!r}; it has to be a process group that this rank is in, its "
                              "name, a DeviceMesh of one dimension, or None")
    return group


def meet(group: Any, from_exchange: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Collective. The result of `from_exchange(rank, ranks, exchange, **options)`, where processes of a group exchange bytes
    through its store. Raises Timeout, which names the ranks that did not come within the join limit."""
    group = group_of(group)
    if options.get("memory") == "cuda" and options.get("device") is None:
        options = options | {"device": torch.cuda.current_device()}
    store = c10d._get_process_group_store(group)
    number = _worlds_made.get(group, -1) + 1
    rank, ranks = group.rank(), group.size()
    keys = [f"untax/{number}/{other}" for other in range(ranks)]

    def exchange(own: bytes) -> list[bytes]:
        store.set(keys[rank], own)
        _wait_for_ranks(store, keys, rank, options.get("join_limit") or _join_limit())
        return [store.get(key) for key in keys]

    try:
        world = from_exchange(rank, ranks, exchange, **options)
        _worlds_made[group] = number  # after a failure ranks meet at the same number again
    finally:
        store.delete_key(keys[rank])  # all ranks have read the key, or the call has failed
    return world


def _join_limit() -> float:
    """The seconds within which all ranks have to come; 0 waits for ever. The library also reads the variable, and
    refuses other texts."""
    milliseconds = os.environ.get("UNTAX_JOIN_LIMIT_MS", "")
    return int(milliseconds) / 1000 if milliseconds.isdecimal() else 60


def _wait_for_ranks(store: Any, keys: list[str], rank: int, limit: float) -> None:
    """Returns when each rank has set its key. The store's own limit would be minutes, and its error does not name a
    rank."""
    end = time.monotonic() + limit
    came: set[int] = set()
    while missing := [other for other, key in enumerate(keys) if not store.check([key])]:
        came.update(set(range(len(keys))).difference(missing))
        if limit > 0 and time.monotonic() > end:
            # A rank whose limit ended a moment earlier has removed its key, but counts as arrived.
            late = [other for other in missing if other not in came] or missing
            names = f"rank {late[0]}" if len(late) == 1 else "ranks " + " and ".join(map(str, late))
            raise Timeout(f"rank {rank}: {names} of {len(keys)} did not come to the first call of this group within {limit:g} s "
                          "(UNTAX_JOIN_LIMIT_MS); all ranks of a group have to make it", late[0])
        time.sleep(0.002)
