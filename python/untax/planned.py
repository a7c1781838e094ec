"""The base of all operators: a plan on a world, which is run many times and closed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, NamedTuple

from . import _core
from .types import Pattern, type_names
from .world import World

kinds: dict[str, type[Operator]] = {}
"""The classes of operators, by the names of the library."""


class Field(NamedTuple):
    """A field of an operator's problem, or of its options."""

    name: str
    help: str
    words: tuple[str, ...]  #: the possible words; empty for numbers
    kind: str  #: "integer", "flag", "choice", "real" or "integers"
    option: bool


def fields(operator: str) -> tuple[Field, ...]:
    """The fields of the operator `operator`, as the library describes them; those of its problem come first."""
    kinds = ("integer", "flag", "choice", "real", "integers")
    return tuple(Field(name, text, tuple(words.split(", ")) if words else (), kinds[kind], option)
                 for name, text, words, kind, option in _core.fields(operator))


class Operator:
    """The base of all operators. An operator is used by one thread at a time; a second thread gets `InvalidArgument`. All
    ranks run the operators of a world in the same order (docs/design.md, "The order of runs")."""

    name: ClassVar[str] = ""
    used: int = 0  #: the number of its last use, by which an engine forgets the operators that were used longest ago

    def __init_subclass__(cls) -> None:
        if cls.name:
            kinds.setdefault(cls.name, cls)

    def __init__(self, world: World, /, **settings: Any) -> None:
        """`settings` are fields of the problem and of the options, as `untax.fields(name)` lists them. A choice is a word or
        its number; None leaves a field as it is."""
        self.world = world
        self._varies = any(value for name, value in settings.items() if name.startswith("varying_"))
        self._core = _core.plan(world._core, self.name, settings)

    @property
    def pattern(self) -> Pattern:
        """The pattern that was chosen."""
        return Pattern(self._core.pattern)

    def explain(self) -> str:
        """The chosen pattern, and the reason."""
        return self._core.explain()

    def operand(self, name: str) -> tuple[tuple[int, int], str]:
        """Shape and type of an operand of this rank; arrays have one row."""
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
        """Ends the use of the operator by this rank, without waiting. The operator's memory is free when all ranks have closed
        it, or have left it to the garbage collector, and have met in a collective call after that."""
        self._core.close()

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph contains a run of this operator. If so, the operator stays alive, also without a
        reference, until it or its world is closed."""
        return self._core.captured

    def release_captured(self) -> None:
        """Promises that no graph with a run of this operator is replayed any more."""
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
