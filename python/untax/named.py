"""Operators without a class of their own, which are planned and run by the names that the library describes."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from . import _core
from .errors import InvalidArgument
from .planned import Operator
from .types import as_operand, empty_like, stream_number, type_name
from .world import World

_dtypes = {0: "float32", 1: "float16", 2: "bfloat16", 16: "int32", 17: "uint8"}


class Shape(NamedTuple):
    """An operand of a run as a rank passes it. Arrays have one row."""

    name: str
    rows: int
    cols: int
    type: int  #: as the C ABI numbers element types
    written: bool
    optional: bool

    @property
    def dtype(self) -> str:
        """The name of the type in numpy and torch."""
        return _dtypes[self.type]


def shapes(operator: str, settings: dict[str, Any], ranks: int, rank: int) -> tuple[Shape, ...]:
    """The operands of a problem, in the order of the library, without a plan of it."""
    return tuple(Shape(*shape) for shape in _core.shapes(operator, settings, ranks, rank))


def results_of(described: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The written operands that a run allocates if they are not passed: the required ones, or all if none is required."""
    written = tuple(shape for shape in described if shape.written)
    return tuple(shape for shape in written if not shape.optional) or written


class NamedOperator(Operator):
    """An operator by the fields and operands that the library describes.

    `settings` are the fields that `untax.operators.fields(name)` lists; `dtype` stands for `type`. A run takes the
    operands that it reads, in the order of `operands` or by name, and the results by name. A result that is not passed is
    allocated like the first operand.
    """

    shapes: tuple[Shape, ...]

    def __init__(self, world: World, /, *, dtype: Any = "bf16", **settings: Any) -> None:
        settings = {"type": type_name(dtype), **settings}
        self.shapes = shapes(self.name, settings, world.size, world.rank)
        super().__init__(world, **settings)

    operands: ClassVar[tuple[str, ...]] = ()

    def run(self, *inputs: Any, stream: Any = None, **named: Any) -> Any:
        """One run. Returns the result, or a tuple of all of them."""
        read = [shape.name for shape in self.shapes if not shape.written]
        if len(inputs) > len(read):
            raise InvalidArgument(f"{self.name} reads {', '.join(read)}; {len(inputs)} operands were passed")
        arrays = {**dict(zip(read, inputs, strict=False)), **named}
        for shape in results_of(self.shapes):
            if arrays.get(shape.name) is None:
                arrays[shape.name] = empty_like(inputs[0], (shape.rows, shape.cols), shape.dtype)
        written = {shape.name for shape in self.shapes if shape.written}
        passed = {name: as_operand(value) for name, value in arrays.items() if value is not None}
        self._core.run({name: value for name, value in passed.items() if name not in written},
                       {name: value for name, value in passed.items() if name in written}, stream_number(stream))
        results = tuple(arrays[shape.name] for shape in self.shapes if shape.written and shape.name in arrays)
        return results[0] if len(results) == 1 else results


def class_of(name: str) -> type[NamedOperator]:
    """The class of an operator, called after it: MyOp for my_op."""
    operands = tuple(shape.name for shape in shapes(name, {}, 1, 0))
    title = "".join(word.capitalize() for word in name.split("_"))
    return type(title, (NamedOperator,), {"name": name, "operands": operands, "__doc__": NamedOperator.__doc__})
