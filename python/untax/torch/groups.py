"""The worlds of process groups, and the operators that are planned on them."""

from __future__ import annotations

import atexit
import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

from .. import _core
from ..errors import InvalidArgument, OutOfMemory, Unsupported
from ..operators import Operator, fields, kinds, own_kinds
from ..process_groups import group_of
from ..world import World, fail_if_uncaught

_world_names: dict[World, str] = {}
_numbers = itertools.count()  # no name is used twice: a compiled graph may still refer to it
_engines: dict[tuple[str, str], Engine] = {}
before_release: list[Callable[[str | None], None]] = []  #: called with the group's name before plans in graphs are released


def name_of(group: Any) -> str:
    """The name by which operators know a group; None stands for the default group. A world gets a name at this rank
    only, so each rank that is a thread passes the name of its own world."""
    if isinstance(group, World):
        if group not in _world_names:
            name = f"untax.World {next(_numbers)}, rank {group.rank}"
            _engines[name, "cpu" if group.device < 0 else "cuda"] = Engine(group)
            _world_names[group] = name
        return _world_names[group]
    return group if isinstance(group, str) else group_of(group).group_name


def _live_engine(key: tuple[str, str]) -> Engine | None:
    """The engine for a name and a device, or None. torch uses a name again after `destroy_process_group`; then the engine of
    the former group, whose ranks may differ, ends here."""
    engine = _engines.get(key)
    if engine is None or engine.group is None:
        return engine
    try:
        current = c10d._resolve_process_group(key[0])
    except RuntimeError:  # no group has this name
        current = None
    if current is not None and engine.group() is current:
        return engine
    _engines.pop(key, None)
    engine.world.close()
    return None


def live_engine(group_name: str, device: torch.device) -> Engine | None:
    """The engine of a group for tensors of a device, if there is one."""
    return _live_engine((group_name, device.type))


def ranks_of(group_name: str) -> int:
    """The number of ranks of the group with this name."""
    for device in ("cpu", "cuda"):
        if (engine := _live_engine((group_name, device))) is not None:
            return engine.world.size
    return group_of(group_name).size()


def rank_of(group_name: str) -> int:
    """The rank of this process, or thread, in the group with this name."""
    for device in ("cpu", "cuda"):
        if (engine := _live_engine((group_name, device))) is not None:
            return engine.world.rank
    return group_of(group_name).rank()


def make_world(group: Any = None, **options: Any) -> World:
    """Collective. A world of the processes of a group, which meet through the store of the group. With
    `memory="cuda"` a rank is on the GPU that is current, or `device`."""
    return World.from_torch(group, **options)


_least = 64


@functools.cache
def _capacity_of(kind: str) -> tuple[str, str] | None:
    """The first field of an operator's problem and the option that makes this field a capacity; None without such an option."""
    described = fields(kind) if kind in own_kinds else ()  # another operator may describe an option that it refuses
    option = next((field.name for field in described if field.option and field.name.startswith("varying_")), None)
    return None if option is None else (described[0].name, option)


def _key(kind: str, problem: dict[str, Any]) -> tuple[Any, ...]:
    return kind, *problem.values()  # all callers pass the fields of a kind in the same order


def _is_captured(device: int) -> bool:
    return device >= 0 and torch.cuda.is_current_stream_capturing()


def _require_no_capture(action: str, device: int) -> None:
    """Refuses to plan in a capture: planning meets other ranks, allocates and loads kernels, which a CUDA graph cannot do."""
    if _is_captured(device):
        raise Unsupported(f"{action} by a first call, and the current stream is captured in a CUDA graph, which cannot contain "
                          "that; make the same call once at all ranks before the capture")


class Engine:
    """A world, and the operators of the problems that ran on it last, as many as fit in the symmetric heap. All ranks of a
    group run the same operators, so all of them forget the same ones. An operator with a run in a CUDA graph is kept until
    `release_captured`, and does not count against `capacity`. `group` is the process group of the world, or None.
    """

    capacity = 128

    def __init__(self, world: World, group: Any = None) -> None:
        self.world = world
        self.group = None if group is None else weakref.ref(group)  # a weak reference, so that torch can free the group
        self._planned: dict[tuple[Any, ...], Operator] = {}
        self._too_large: set[tuple[Any, ...]] = set()  # problems that are too large for the heap
        self.known = _core.KnownCalls()

    def planned(self, kind: str, most: int | None = None, **problem: Any) -> Operator:
        """The operator for a problem. The first call plans it, which is collective. If the operator has plans of a capacity,
        and the heap has room for one, the plan is for all numbers of rows, or of elements, up to the next power of two, or
        up to `most`; else for this number."""
        if (capacity := _capacity_of(kind)) is not None:
            size, option = capacity
            room = self._last_room(kind, problem, size) or 1 << max(problem[size] - 1, _least - 1).bit_length()
            roomy = problem | {size: room if most is None else min(room, most), option: True}
            key = _key(kind, roomy)
            if key not in self._too_large:
                try:
                    return self._find_or_plan(kind, key, roomy)
                except OutOfMemory:
                    self._too_large.add(key)
        return self._find_or_plan(kind, _key(kind, problem), problem)

    def _last_room(self, kind: str, problem: dict[str, Any], size: str) -> int:
        """For a call without elements, the size of the plan that the other ranks most likely have: that of the last call of this
        kind. Ranks with elements then meet this rank in the same plan, which reports the difference at once. Else 0."""
        if problem[size] > 0:
            return 0
        place = 1 + list(problem).index(size)
        own = _key(kind, problem)
        alike = [key for key in self._planned if key[:place] == own[:place] and key[place + 1:-1] == own[place + 1:]]
        last_use = {op: used for op, used in self.known.uses()}
        return max(alike, key=lambda key: max(self._planned[key].used, last_use.get(self._planned[key], 0)))[place] if alike else 0

    def _find_or_plan(self, kind: str, key: tuple[Any, ...], problem: dict[str, Any]) -> Operator:
        """The planned operator of this key. If neither the heap nor its GPU has memory for a new plan, torch returns the memory
        of its cache; after that, the plans that were used longest ago are forgotten."""
        if (op := self._planned.get(key)) is not None:
            op.used = self.known.stamp()
            return op
        _require_no_capture(f"{kind} of {', '.join(f'{name} {value}' for name, value in problem.items())} is planned",
                            self.world.device)
        while len(self._forgettable()) >= self.capacity:
            self._forget_oldest()
        cached = self.world.device >= 0  # whether torch's allocator may hold free memory
        while True:
            try:
                op = self._planned[key] = kinds[kind](self.world, **problem)
                op.used = self.known.stamp()
                return op
            except OutOfMemory as error:  # raised at all ranks
                if cached:
                    torch.cuda.empty_cache()
                    cached = False
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
        """Forgets all known calls, but keeps the time of the last use of each operator, so that all ranks forget the
        same plans."""
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

    def keep(self, key: tuple[Any, ...], into: Any, tensors: tuple[Any, ...], op: Operator, names: tuple[str, ...],
             operands: tuple[Any, ...], shape: Any, hand_out: Any = None) -> None:
        """Records a call that ran `op`: the names of its operands, the operands, and the `shape` of its results, which are the
        last operands, in `into` unless that is None. `hand_out(result, stream)` copies a result from memory of the
        operator, or is None."""
        if len(self.known) >= 8 * self.capacity:
            self._forget_known()
        self.known.keep(key, into, tensors, op, names, operands, tuple(shape), self.world.default_stream, hand_out)

    def explain(self) -> list[str]:
        return [op.explain() for op in self._planned.values()]


class FakeEngine:
    """An engine that runs nothing and has no known calls, for tensors without elements."""

    def __init__(self, world: Any) -> None:
        self.world, self.known = world, self

    def again(self, *_: Any) -> None:
        return None


class FakeGroup(str):
    """The name of a group in a call that runs nothing. It is equal to no other name, so it selects no engine."""

    __slots__ = ()
    __eq__, __hash__ = object.__eq__, object.__hash__

    @property
    def engine(self) -> FakeEngine:
        name = str(self)
        return FakeEngine(SimpleNamespace(size=ranks_of(name), rank=rank_of(name)))


def engine_of(group_name: str, device: str, index: int | None = None) -> Any:
    """The engine of a group for tensors of a kind of device. The first call makes the world, which is collective; on GPUs its
    rank is on GPU `index`, or on the current GPU."""
    key = (group_name, device)
    engine = _live_engine(key)
    if engine is None:
        if isinstance(group_name, FakeGroup):
            return group_name.engine
        if group_name in _world_names.values():
            raise InvalidArgument(f"{group_name} has its heaps in memory of another device than {device}")
        if device == "cuda":
            _require_no_capture(f"the world of group {group_name!r} is made", 0)
        placement = {"memory": "cuda", "device": index} if device == "cuda" else {"memory": "host"}
        group = group_of(group_name)
        engine = _engines[key] = Engine(make_world(group, **placement), group)
    return engine


class _Slot:
    """A number that belongs to one thread at a time. A later thread gets it again, so operators in captured graphs
    stay."""

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
    """The engine of this thread for operators that send nothing, on a device. Threads do not share it, since an operator is
    used by one thread at a time. Its heap is small."""
    if not hasattr(_thread, "slot"):
        _thread.slot = _Slot()
    key = ("", f"{device}, slot {_thread.slot.number}")
    if key not in _engines:
        placement = {"memory": "cuda", "device": device.index} if device.type == "cuda" else {"memory": "host"}
        _engines[key] = Engine(World.from_exchange(0, 1, lambda own: [own], heap_bytes=1 << 20, **placement))
    return _engines[key]


def world_of(group: Any = None, device: str = "cpu") -> World:
    """The world on which the operators of a group run, for tensors of a device. The first call is collective."""
    target = torch.device(device)
    return engine_of(name_of(group), target.type, target.index).world


def explain() -> list[str]:
    """The chosen pattern of each operator that is planned, and the reason."""
    for key, engine in list(_engines.items()):
        if engine.world.closed:  # closed by its owner
            _engines.pop(key, None)
            _world_names.pop(engine.world, None)
    return [text for engine in list(_engines.values()) for text in engine.explain()]


def release_captured(group: Any = None) -> None:
    """Promises that no CUDA graph with a call of this group's operators is replayed any more. None stands for all operators,
    also those without a group, such as flash_attention. Operators in a graph are kept until then, or until `close`; a graph
    that is replayed later would read and write memory of other operators. All ranks of a group make the same calls."""
    name = None if group is None else name_of(group)
    for forget in before_release:
        forget(name)
    for (known, _), engine in list(_engines.items()):
        if name is None or known == name:
            engine.release_captured()


def close(group: Any = None) -> None:
    """Closes the world of a group; for None all worlds of process groups, and those that `name_of` has named. Their operators end
    with them. Graphs with captured calls must not be replayed after that; untax cannot detect it."""
    name = None if group is None else name_of(group)
    for forget in before_release:
        forget(name)
    for key in list(_engines):
        if name is None or key[0] == name:
            world = _engines.pop(key).world
            _world_names.pop(world, None)
            world.close()
    if name is None:
        _world_names.clear()


def _end() -> None:
    fail_if_uncaught()  # before `close` tells the other ranks that this rank has finished
    close()


atexit.register(_end)
