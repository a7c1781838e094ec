"""Ranks, and the memory that they share."""

from __future__ import annotations

import atexit
import ctypes
import math
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from . import _core, openblas
from .errors import Aborted, InvalidArgument
from .tensors import Tensors
from .types import DEFAULT_STREAM, item_sizes, number_of, stream_number, type_name, type_number

_memories = ("default", "host", "cuda", "automatic")
_open: weakref.WeakSet[World] = weakref.WeakSet()


def _options(heap_bytes: int, wait_limit: float, join_limit: float, memory: str, heap_guards: bool | None,
             ranks_per_gpu: int = 0, device: int | None = None) -> dict[str, int]:
    def milliseconds(seconds: float) -> int:
        return -1 if seconds < 0 or seconds == float("inf") else max(1, int(seconds * 1000)) if seconds else 0

    return {
        "heap_bytes": heap_bytes,
        "wait_limit_ms": milliseconds(wait_limit),
        "join_limit_ms": milliseconds(join_limit),
        "memory": number_of("memory", memory, _memories),
        "heap_guards": 0 if heap_guards is None else 1 if heap_guards else -1,
        "ranks_per_gpu": ranks_per_gpu,
        "gpu": 0 if device is None else device + 1,
    }


class World(Tensors):
    """One rank's view of the world. It is used by one thread at a time.

    Calls that are said to be collective are made by every rank, in the same order. A world is closed by `close`, or
    at the end of a `with`; an exception that leaves the `with`, or that ends the program, tells the other ranks that
    this one has failed, and why. Closing a world closes its operators and memory. Options of all constructors, where 0 stands
    for the value of the environment variable, or the default, in parentheses:

    * `heap_bytes`: symmetric heap of each rank (UNTAX_HEAP_BYTES, or 1 GiB); on GPUs its first size: it grows when it
      is full, up to UNTAX_HEAP_LIMIT;
    * `wait_limit`: seconds after which a wait is an error (UNTAX_WAIT_LIMIT_MS, or 20); negative: for ever;
    * `join_limit`: seconds in which all processes have to come (UNTAX_JOIN_LIMIT_MS, or 60); negative: for ever;
    * `memory`: "host", "cuda" or "automatic", where the heaps of processes lie (UNTAX_MEMORY, or host);
    * `device`: the GPU of a rank that is a process, under this process's number for it; None: its rank, modulo those it sees;
    * `heap_guards`: whether there are guard bands between allocations (UNTAX_HEAP_GUARDS).
    """

    def __init__(self, core: _core.World) -> None:
        self._core = core
        _open.add(self)
        if core.device < 0:
            openblas.offer()
        #: Stands for the default stream in runs; 0 if ranks share a GPU, since they would wait for each other on that stream.
        self.default_stream = DEFAULT_STREAM if core.ranks_per_gpu == 1 else 0

    @classmethod
    def threads(cls, ranks: int, *, heap_bytes: int = 0, wait_limit: float = 0,
                heap_guards: bool | None = None) -> list[World]:
        """The worlds of `ranks` ranks that are threads of this process: each is for a thread of its own.

        `run_threads` starts the threads, too. Raises InvalidArgument, OutOfMemory.
        """
        options = _options(heap_bytes, wait_limit, 0, "default", heap_guards)
        return [cls(core) for core in _core.threads(ranks, options)]

    @classmethod
    def gpus(cls, ranks: int, *, heap_bytes: int = 0, wait_limit: float = 0, heap_guards: bool | None = None,
             ranks_per_gpu: int = 0) -> list[World]:
        """The worlds of `ranks` ranks that are threads of this process, rank r on GPU r. Each thread calls `use_device` first.

        Raises Unsupported if there are fewer GPUs, or if untax was built without CUDA.
        """
        options = _options(heap_bytes, wait_limit, 0, "default", heap_guards, ranks_per_gpu)
        return [cls(core) for core in _core.gpus(ranks, options)]

    @classmethod
    def from_environment(cls, *, heap_bytes: int = 0, wait_limit: float = 0, join_limit: float = 0,
                         memory: str = "default", heap_guards: bool | None = None, device: int | None = None) -> World:
        """Collective. The rank of this process in the world that `untax run --processes`, torchrun, mpirun or srun
        describes; a single rank without a launcher. Raises Disagreement, Timeout, PeerLost, Unsupported.
        """
        options = _options(heap_bytes, wait_limit, join_limit, memory, heap_guards, device=device)
        return cls(_core.from_environment(options))

    @classmethod
    def from_exchange(cls, rank: int, ranks: int, exchange: Callable[[bytes], Sequence[bytes]], *,
                      heap_bytes: int = 0, wait_limit: float = 0, join_limit: float = 0, memory: str = "default",
                      heap_guards: bool | None = None, device: int | None = None) -> World:
        """Collective. Rank `rank` of `ranks` processes of this host that can already exchange bytes.

        `exchange` is called once with this rank's bytes, and returns those of all ranks, in rank order. The ranks may
        be some of a larger job. Raises as `from_environment`, and what `exchange` raises.
        """
        options = _options(heap_bytes, wait_limit, join_limit, memory, heap_guards, device=device)
        return cls(_core.from_exchange(rank, ranks, exchange, options))

    @classmethod
    def from_torch(cls, group: Any = None, **options: Any) -> World:
        """Collective. The ranks of a process group of torch, which may be some of the job's. With `memory="cuda"` a rank is
        on the GPU that is current, or `device`."""
        from .process_groups import meet  # imports torch

        world: World = meet(group, cls.from_exchange, options)
        return world

    @property
    def rank(self) -> int:
        return self._core.rank

    @property
    def size(self) -> int:
        return self._core.size

    @property
    def kind(self) -> str:
        """ "threads", "processes", "GPUs" (of this process) or "alone"."""
        return self._core.kind

    @property
    def device(self) -> int:
        """The number of the rank's GPU; -1 if heaps lie in host memory."""
        return self._core.device

    @property
    def ranks_per_gpu(self) -> int:
        """The number of ranks that share a GPU; 1 unless `ranks_per_gpu` or its variable was set."""
        return self._core.ranks_per_gpu

    @property
    def heap_used(self) -> int:
        """The bytes of this rank's symmetric heap that are allocated, by operators and by `allocate`."""
        return self._core.heap_used

    @property
    def closed(self) -> bool:
        return self._core.closed

    def use_device(self) -> None:
        """Makes the rank's GPU the current one of the calling thread. In a world of the host it does nothing."""
        self._core.use_device()

    def barrier(self) -> None:
        """Collective. Returns when all ranks have called it. Writes of all ranks before the barrier are visible after it."""
        self._core.barrier()

    def let_runs_follow(self, stream: Any) -> None:
        """Later runs of collective operators begin after the work that is now on a stream (an address, or a stream of torch or
        cupy), also in a graph that captures it. For work that reads memory which peers write, such as a copy of an
        operator's own result. In a world of the host it does nothing."""
        self._core.let_runs_follow(stream_number(stream))

    def agree(self, what: str, description: str) -> None:
        """Collective. Raises Disagreement, at every rank, unless all ranks pass the same texts."""
        self._core.agree(what, description)

    def check(self) -> None:
        """Raises the reason if the world was stopped, also by a kernel that gave up waiting."""
        self._core.check()

    def fail(self, text: str) -> None:
        """Tells the other ranks that this one has failed: all their waits end, with `text` as the reason."""
        self._core.fail(text.encode("utf-8", "backslashreplace").decode())  # a lone surrogate is not valid UTF-8

    def allocate(self, shape: int | tuple[int, ...], dtype: Any = "fp32", label: str = "memory of Python") -> Memory:
        """Collective. Symmetric memory at every rank, at the same offset. Nothing is cleared. It waits for the other
        ranks only if the heap is full but for memory that they have freed, or dropped.

        Raises OutOfMemory, which lists the allocations and their sizes. """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        name = type_name(dtype)
        allocation = self._core.allocate(math.prod(shape) * item_sizes[name], label)
        return Memory(self, allocation.address, shape, name, allocation)

    def close(self) -> None:
        """Ends this rank, its operators and its memory. Peers that still wait for it get the error that it is lost."""
        self._core.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if error is not None and not self.closed:
                self.fail(_error_text(error))
        finally:
            self.close()

    def __repr__(self) -> str:
        return "<untax.World, closed>" if self.closed else f"<untax.World of {self.kind}, rank {self.rank} of {self.size}>"


def _error_text(error: BaseException) -> str:
    """Kind and text of an error, also of an error whose `__str__` raises."""
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - the other ranks need the first error
        text = f"its __str__ raised {type(second).__name__}"
    return f"{type(error).__name__}: {text}"


def fail_if_uncaught() -> None:
    """If an uncaught exception ends the program, the ranks of its open worlds fail with it: other ranks that wait for
    them get the error."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or hasattr(sys, "ps1"):  # an interactive session continues after an exception
        return
    for world in list(_open):
        world.fail(_error_text(error))


atexit.register(fail_if_uncaught)


class Memory:
    """Elements in the memory of a rank. They stay until `free`, or until their owner is closed: a world, or an operator.

    `numpy.asarray` (fp32, fp16) and `torch()` make views of it, both in host memory; operators accept it directly.
    These arrays and tensors are views. While one is left, the memory stays mapped, and is not handed out again, also
    after `free` and `close`; only the end of the world invalidates its contents. """

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: str,
                 allocation: _core.Allocation | None = None) -> None:
        self._owner, self.address, self.shape, self.dtype = owner, address, shape, dtype
        self._world: World = getattr(owner, "world", owner)
        self._allocation = allocation  # None if the memory is an operator's own

    def _require_open(self) -> None:
        if self._allocation is not None and self._allocation.freed:
            raise InvalidArgument(f"this memory of {self.shape} was freed")
        if self._owner.closed:
            raise InvalidArgument(f"this memory of {self.shape} went with its owner, {self._owner!r}; copy it before that is "
                                  "closed, by numpy.array(memory) or memory.torch().clone()")

    def _require_host(self, reader: str) -> None:
        """Refuses memory that a CPU must not read: freed memory, and memory of a GPU."""
        self._require_open()
        if self._world.device >= 0:
            raise InvalidArgument(f"this memory of {self.shape} lies on GPU {self._world.device}, where {reader} cannot read "
                                  "it; pass it to an operator of its world")

    def _buffer(self) -> Any:
        """The bytes of this memory. An array on them keeps the memory mapped."""
        buffer = (ctypes.c_char * (math.prod(self.shape) * item_sizes[self.dtype])).from_address(self.address)
        buffer._pin = (self._owner._core if self._allocation is None else self._allocation).pin()  # type: ignore[attr-defined]
        return buffer

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._require_host("numpy")
        if self.dtype == "bf16":
            raise InvalidArgument("numpy has no bf16; torch() takes it")
        return {"version": 3, "shape": self.shape, "typestr": "<f4" if self.dtype == "fp32" else "<f2",
                "data": self._buffer()}

    def _place(self) -> tuple[int, str]:
        """The address, and the kind of device under torch's name."""
        self._require_open()
        return self.address, "cuda" if self._world.device >= 0 else "cpu"

    def _rows(self) -> tuple[int, int, int, int, int]:
        """Address, rows, columns, row stride and type of an operand, as the extension takes it. Arrays other than
        matrices have one row."""
        self._require_open()
        rows, cols = self.shape if len(self.shape) == 2 else (1, math.prod(self.shape))
        return self.address, rows, cols, 0, type_number(self.dtype)

    def _operand(self) -> Any:
        """An array of numpy, whose dimensions the extension checks, or `_rows` if numpy cannot have one."""
        if self.dtype == "bf16" or self._place()[1] != "cpu":
            return self._rows()
        import numpy

        return numpy.asarray(self)

    def at(self, peer: int) -> Memory:
        """The memory of rank `peer` at the same offset."""
        self._require_open()
        address = self._world._core.translate(self.address, peer)
        return Memory(self._owner, address, self.shape, self.dtype, self._allocation)

    def free(self) -> None:
        """Ends the use of the memory by this rank. The memory is free when all ranks have freed it, no view of it is
        left, and the ranks have met in a collective call after that. An operator's own memory is refused: closing the
        operator frees it."""
        if self._allocation is None:
            raise InvalidArgument(f"this memory of {self.shape} is {self._owner.name}'s own, which frees it; close that")
        self._require_open()
        self._allocation.free()

    def torch(self) -> Any:
        """A tensor on this memory, of the host."""
        self._require_host("a tensor of the host")
        import torch

        kind = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[self.dtype]
        if math.prod(self.shape) == 0:
            return torch.empty(self.shape, dtype=kind)
        return torch.frombuffer(self._buffer(), dtype=kind).view(self.shape)


def run_threads(ranks: int, body: Callable[[World], Any], **options: Any) -> list[Any]:
    """Runs `body(world)` for each of `ranks` ranks, a thread each, and returns the results in rank order.

    If ranks raise, the error of the rank that failed first is raised, not those of the ranks that waited
    for it. `options` are those of `World.threads`.
    """
    return _run(World.threads(ranks, **options), body)


def run_gpus(ranks: int, body: Callable[[World], Any], **options: Any) -> list[Any]:
    """Runs `body(world)` for each of `ranks` ranks, a thread and a GPU each, as `run_threads` does; the GPU of a rank is the
    current one of its thread. `options` are those of `World.gpus`: with `ranks_per_gpu` ranks share GPUs. Kernels of ranks
    that share a GPU wait for each other on it, so no rank waits for the whole GPU (torch.cuda.synchronize, or a torch kernel
    that is loaded for the first time) while a peer waits for it.
    """
    return _run(World.gpus(ranks, **options), body)


def _run(worlds: list[World], body: Callable[[World], Any]) -> list[Any]:
    results: list[Any] = [None] * len(worlds)
    errors: list[BaseException] = []
    lock = threading.Lock()
    # An interrupted Thread.join of CPython 3.10 to 3.12 treats a running thread as ended.
    ended = [threading.Event() for _ in worlds]

    def run(rank: int, world: World) -> None:
        try:
            with world:
                world.use_device()
                results[rank] = body(world)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            with lock:
                errors.append(error)
        finally:
            ended[rank].set()

    threads = [threading.Thread(target=run, args=(rank, world), name=f"untax rank {rank}")
               for rank, world in enumerate(worlds)]
    try:
        for thread in threads:
            thread.start()
        for event in ended:
            event.wait()
    except BaseException as error:  # such as KeyboardInterrupt, or no memory for a thread
        started = [(thread, event) for thread, event in zip(threads, ended, strict=True) if thread.ident is not None]
        _end_ranks(worlds, started, _error_text(error))
        raise
    for thread in threads:
        thread.join()
    for error in errors:
        if not isinstance(error, Aborted):
            raise error
    if errors:
        raise errors[0]
    return results


def _end_ranks(worlds: list[World], ranks: list[tuple[threading.Thread, threading.Event]], reason: str) -> None:
    """Ends all waits of the ranks, and returns when their threads have ended. A rank that does not wait gets the error
    at its next call of untax; another Ctrl-C interrupts ranks at once."""

    def interrupt(*_: Any) -> None:
        for thread, event in ranks:
            if not event.is_set():
                number = ctypes.c_ulong(thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(KeyboardInterrupt))

    catches = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, interrupt) if catches else None
    try:
        for world in worlds:
            world.fail(reason)
        for thread, event in ranks:
            event.wait()
            thread.join()
    finally:
        if catches:
            signal.signal(signal.SIGINT, before)
