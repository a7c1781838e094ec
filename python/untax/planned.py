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
    numbers = dict(options)
    for name, words in (("pattern", tuple(p.name for p in Pattern)), ("wire", _wires), ("inputs", _inputs)):
        if name in numbers:
            numbers[name] = number_of(name, numbers[name], words)
    return {name: int(value) for name, value in numbers.items()}


class Operator:
    """What all operators have."""

    name: ClassVar[str] = ""
    used: int = 0  #: for who keeps it for the next one with this problem: when it was used last

    def __init__(self, world: World, problem: dict[str, Any], options: dict[str, Any]) -> None:
        self.world = world
        self._varies = bool(options.get("varying_rows") or options.get("varying_count"))
        self._core = _core.plan(world._core, self.name, problem, _as_numbers(options))
        world._keep(self)

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
        """Collective. Ends it. Waits for no peer in a world of the host."""
        self._core.close()

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
