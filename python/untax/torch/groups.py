"""Worlds of process groups, and the operators that were planned on them."""

from __future__ import annotations

import atexit
import functools
import itertools
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

from .. import _core
from ..errors import InvalidArgument, OutOfMemory, Unsupported
from ..operators import Operator, fields, kinds, own_kinds
from ..process_groups import group_of
from ..world import World, fail_if_uncaught

_given: dict[World, str] = {}
_numbers = itertools.count()  # so that no name comes back, which a compiled graph may still have
_engines: dict[tuple[str, str], Engine] = {}


def name_of(group: Any) -> str:
    """The name by which operators know a group: that of the default one for None. A world has one, too, of this rank
    alone: so ranks that are threads have operators, each with the name that it got for its own world."""
    if isinstance(group, World):
        if group not in _given:
            name = f"untax.World {next(_numbers)}, rank {group.rank}"
            _engines[name, "cpu" if group.device < 0 else "cuda"] = Engine(group)
            _given[group] = name
        return _given[group]
    return group if isinstance(group, str) else group_of(group).group_name


def _found(key: tuple[str, str]) -> Engine | None:
    """The engine for a name and a device. torch gives names anew after `destroy_process_group`, and then the engine is that
    of another group, perhaps with other ranks: it ends here."""
    engine = _engines.get(key)
    if engine is None or engine.group is None:
        return engine
    try:
        now = c10d._resolve_process_group(key[0])
    except RuntimeError:  # nobody has this name
        now = None
    if now is not None and engine.group() is now:
        return engine
    _engines.pop(key, None)
    engine.world.close()
    return None


def ranks_of(group_name: str) -> int:
    """How many ranks the group of a name has."""
    for device in ("cpu", "cuda"):
        if (engine := _found((group_name, device))) is not None:
            return engine.world.size
    return group_of(group_name).size()


def rank_of(group_name: str) -> int:
    """Which of them this process, or thread, is."""
    for device in ("cpu", "cuda"):
        if (engine := _found((group_name, device))) is not None:
            return engine.world.rank
    return group_of(group_name).rank()


def make_world(group: Any = None, **options: Any) -> World:
    """Collective. A world of the processes of a group, which may be some of the job's. They meet through its store. With
    `memory="cuda"` a rank is on the GPU that is current, or `device`."""
    return World.from_torch(group, **options)


_least = 64


@functools.cache
def _capacity_of(kind: str) -> tuple[str, str] | None:
    """The field of an operator that may be a capacity, which is the first of its problem, and the option that makes it one."""
    described = fields(kind) if kind in own_kinds else ()  # others may describe an option that they refuse
    option = next((field.name for field in described if field.option and field.name.startswith("varying_")), None)
    return None if option is None else (described[0].name, option)


def _key(kind: str, problem: dict[str, Any]) -> tuple[Any, ...]:
    return kind, *problem.values()  # whoever asks for a kind says its problem in the same order


def _is_captured(device: int) -> bool:
    return device >= 0 and torch.cuda.is_current_stream_capturing()


def _require_no_capture(what: str, device: int) -> None:
    """Planning meets other ranks, allocates and loads kernels, none of which a CUDA graph can have."""
    if _is_captured(device):
        raise Unsupported(f"{what} by a first call, and the current stream is captured in a CUDA graph, which cannot contain "
                          "that; make the same call once at all ranks before the capture")


class Engine:
    """A world, and the operators of the last problems that were run on it, as many as the symmetric heap has room for.
    All ranks of a group run the same, so all of them forget the same. An operator with a run in a CUDA graph is not
    forgotten before `release_captured`, nor does it count. `group` is the process group, if the world is of one.
    """

    capacity = 128

    def __init__(self, world: World, group: Any = None) -> None:
        self.world = world
        self.group = None if group is None else weakref.ref(group)  # weak, so that torch can end it
        self._planned: dict[tuple[Any, ...], Operator] = {}
        self._too_large: set[tuple[Any, ...]] = set()  # for the heap
        self.known = _core.KnownCalls()

    def planned(self, kind: str, most: int | None = None, **problem: Any) -> Operator:
        """The operator for a problem; the first time it is planned, which is collective. One serves all numbers of
        rows, or of elements, up to the next power of two, or to `most`, where operators have such plans and the heap has
        room for one, and else this number."""
        if (capacity := _capacity_of(kind)) is not None:
            size, option = capacity
            room = self._last_room(kind, problem, size) or 1 << max(problem[size] - 1, _least - 1).bit_length()
            roomy = problem | {size: room if most is None else min(room, most), option: True}
            key = _key(kind, roomy)
            if key not in self._too_large:
                try:
                    return self._found_or_made(kind, key, roomy)
                except OutOfMemory:
                    self._too_large.add(key)
        return self._found_or_made(kind, _key(kind, problem), problem)

    def _last_room(self, kind: str, problem: dict[str, Any], size: str) -> int:
        """For a call with nothing to move, the size of the plan that others have most likely: that of the last call of this
        kind. If they have more, they meet this rank there, and all of them hear of it at once. Else 0."""
        if problem[size] > 0:
            return 0
        place = 1 + list(problem).index(size)
        mine = _key(kind, problem)
        alike = [key for key in self._planned if key[:place] == mine[:place] and key[place + 1:-1] == mine[place + 1:]]
        last = {op: used for op, used in self.known.uses()}
        return max(alike, key=lambda key: max(self._planned[key].used, last.get(self._planned[key], 0)))[place] if alike else 0

    def _found_or_made(self, kind: str, key: tuple[Any, ...], problem: dict[str, Any]) -> Operator:
        """Where the heap has no room for this one, and its GPU has none to let it grow, torch gives back the memory that it
        keeps; after that, the plans that were used longest ago are forgotten."""
        if (op := self._planned.get(key)) is not None:
            op.used = self.known.stamp()
            return op
        _require_no_capture(f"{kind} of {', '.join(f'{name} {value}' for name, value in problem.items())} is planned",
                            self.world.device)
        while len(self._forgettable()) >= self.capacity:
            self._forget_oldest()
        kept = self.world.device >= 0  # by torch's allocator
        while True:
            try:
                op = self._planned[key] = kinds[kind](self.world, **problem)
                op.used = self.known.stamp()
                return op
            except OutOfMemory as error:  # at all ranks
                if kept:
                    torch.cuda.empty_cache()
                    kept = False
                    continue
                if not self._forgettable():
                    if not self._planned:
                        raise
                    raise OutOfMemory(f"{error}\n{len(self._planned)} operators are kept since CUDA graphs have runs of them; "
                                      "untax.torch.release_captured() forgets them, once no such graph is replayed any "
                                      "more") from None
                self._forget_oldest()

    def _forgettable(self) -> list[tuple[Any, ...]]:
        return [key for key, op in self._planned.items() if not op.captured]

    def _forget_known(self) -> None:
        """All calls that are known; when they used their operators is not forgotten: all ranks forget the same plans."""
        for op, used in self.known.uses():
            op.used = max(op.used, used)
        self.known.clear()

    def _forget_oldest(self) -> None:
        self._forget_known()
        oldest = min(self._forgettable(), key=lambda key: self._planned[key].used)
        self._planned.pop(oldest).close()

    def release_captured(self) -> None:
        for op in self._planned.values():
            op.release_captured()

    def keep(self, what: tuple[Any, ...], into: Any, tensors: tuple[Any, ...], op: Operator, names: tuple[str, ...],
             operands: tuple[Any, ...], shape: Any, hand_out: Any = None) -> None:
        """That a call ran an operator with these operands, by these names, of which the last are results of this shape, written where `into`
        lies, if that is given. `hand_out(result, stream)`, if given, copies a result from the operator's own memory."""
        if len(self.known) >= 8 * self.capacity:
            self._forget_known()
        self.known.keep(what, into, tensors, op, names, operands, tuple(shape), self.world.default_stream, hand_out)

    def explain(self) -> list[str]:
        return [op.explain() for op in self._planned.values()]


class FakeEngine:
    """An engine that runs nothing and knows no call, for tensors without elements."""

    def __init__(self, world: Any) -> None:
        self.world, self.known = world, self

    def again(self, *_: Any) -> None:
        return None


class FakeGroup(str):
    """The name of a group as a call has it that runs nothing; no engine is known by it."""

    __slots__ = ()
    __eq__, __hash__ = object.__eq__, object.__hash__

    @property
    def engine(self) -> FakeEngine:
        name = str(self)
        return FakeEngine(SimpleNamespace(size=ranks_of(name), rank=rank_of(name)))


def engine_of(group_name: str, device: str, index: int | None = None) -> Any:
    """The engine of a group for tensors of a kind of device; the first time its world is made, which is collective, on the
    GPU with this index, or the current one."""
    key = (group_name, device)
    engine = _found(key)
    if engine is None:
        if isinstance(group_name, FakeGroup):
            return group_name.engine
        if group_name in _given.values():
            raise InvalidArgument(f"{group_name} has its heaps in memory of another device than {device}")
        if device == "cuda":
            _require_no_capture(f"the world of group {group_name!r} is made", 0)
        where = {"memory": "cuda", "device": index} if device == "cuda" else {"memory": "host"}
        group = group_of(group_name)
        engine = _engines[key] = Engine(make_world(group, **where), group)
    return engine


class _Slot:
    """A number that a thread has while it lives, and then another thread. So what a thread captured in a graph stays."""

    _free: list[int] = []
    _next = itertools.count()

    def __init__(self) -> None:
        try:
            self.number = self._free.pop()
        except IndexError:
            self.number = next(self._next)

    def __del__(self) -> None:
        self._free.append(self.number)


_thread = threading.local()


def engine_alone(device: torch.device) -> Engine:
    """The engine of what a thread does for itself, on a device; an operator is used by one thread at a time. Nothing is sent,
    so its heap is small."""
    if not hasattr(_thread, "slot"):
        _thread.slot = _Slot()
    key = ("", f"{device}, slot {_thread.slot.number}")
    if key not in _engines:
        where = {"memory": "cuda", "device": device.index} if device.type == "cuda" else {"memory": "host"}
        _engines[key] = Engine(World.from_exchange(0, 1, lambda mine: [mine], heap_bytes=1 << 20, **where))
    return _engines[key]


def world_of(group: Any = None, device: str = "cpu") -> World:
    """Collective the first time. The world on which the operators of a group run, of tensors of a device."""
    where = torch.device(device)
    return engine_of(name_of(group), where.type, where.index).world


def explain() -> list[str]:
    """The chosen pattern of each operator that is planned, and the reason."""
    for key, engine in list(_engines.items()):
        if engine.world.closed:  # by whoever made it
            _engines.pop(key, None)
            _given.pop(engine.world, None)
    return [text for engine in list(_engines.values()) for text in engine.explain()]


def release_captured(group: Any = None) -> None:
    """Says that no CUDA graph with a call of this group's operators is replayed any more; None: of any operator, also those
    without a group, such as flash_attention. Operators in a graph are kept until then, or until `close`; a graph that is
    replayed later reads and writes memory that others have. All ranks of a group make the same calls."""
    name = None if group is None else name_of(group)
    for (known, _), engine in list(_engines.items()):
        if name is None or known == name:
            engine.release_captured()


def close() -> None:
    """Ends all worlds of process groups, and those whose names were asked for, with what was planned on them. Graphs that
    have captured calls must not be replayed any more: nothing can notice it."""
    while _engines:
        _engines.popitem()[1].world.close()
    _given.clear()


def _end() -> None:
    fail_if_uncaught()  # before others hear that this rank has merely finished
    close()


atexit.register(_end)
