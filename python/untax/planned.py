"""What all operators have: a plan on a world, which is run many times and closed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar

from . import _core
from .types import Pattern, number_of, type_names
from .world import World

_wires = ("automatic", "stores", "bulk", "packets")
_inputs = ("automatic", "in_place", "rooms")


def _as_numbers(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the extension takes them: words become numbers."""
    words = {"pattern": tuple(p.name for p in Pattern), "wire": _wires, "inputs": _inputs}
    return {name: number_of(name, value, words[name]) if name in words else value for name, value in options.items()}


class Operator:
    """What all operators have. One is used by one thread at a time; a second one gets `InvalidArgument`. All ranks run the
    operators of a world in the same order (docs/design.md, "The order of runs")."""

    name: ClassVar[str] = ""
    used: int = 0  #: the number of its last use, for an engine that forgets the oldest ones

    def __init__(self, world: World, problem: dict[str, Any], options: dict[str, Any]) -> None:
        self.world = world
        self._varies = bool(options.get("varying_rows") or options.get("varying_count"))
        self._core = _core.plan(world._core, self.name, problem, _as_numbers(options))

    @property
    def pattern(self) -> Pattern:
        """The pattern that was chosen."""
        return Pattern(self._core.pattern)

    def explain(self) -> str:
        """What was chosen, and why."""
        return self._core.explain()

    def operand(self, name: str) -> tuple[tuple[int, int], str]:
        """Shape and type of what this rank passes for an operand; arrays have one row."""
        rows, cols, number = self._core.operand(name)
        return (rows, cols), type_names[number]

    @property
    def plan(self) -> dict[str, tuple[tuple[int, int], str]]:
        """Shape and type of every operand of this rank."""
        return {name: self.operand(name) for name in self.operands}

    operands: ClassVar[tuple[str, ...]] = ()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Ends its use by this rank, without waiting. Its memory is free when all ranks have closed it, or have left it to
        the garbage collector, and have met in a collective call after that."""
        self._core.close()

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph has a run of it. Then it stays, without a reference, too, until it or its world is closed."""
        return self._core.captured

    def release_captured(self) -> None:
        """Says that no graph that has a run of it is replayed any more."""
        self._core.release_captured()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.run(*arguments, **named)

    def run(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<untax {self.name}, closed>" if self.closed else f"<untax {self.name}: {self.explain()}>"
