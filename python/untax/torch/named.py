"""Operators without functions of their own in `untax.torch`: their operands and fields become arguments, by name.

`torch.ops.untax.my_op(a, weights, group_name, m, n, k)` takes the operands that a run reads, the group, and the
fields of the problem. The element type is that of the first operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..named import Shape, results_of, shapes
from ..operators import fields, kinds, own_kinds
from ..types import type_name
from .calls import engine_for, stream_of
from .define import define
from .groups import rank_of, ranks_of

_kinds = {"integer": "int {}", "flag": "bool {}=False", "choice": "str? {}=None", "real": "float {}=0.0",
          "integers": "int[] {}"}


class NamedCall:
    """One operator as torch calls it: its schema, its run and its fake implementation."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        operands = shapes(kind, {}, 1, 0)
        self.reads = [shape.name for shape in operands if not shape.written]
        self.results = tuple(shape.name for shape in results_of(operands))
        self.fields = [field for field in fields(kind) if not field.option and field.name != "type"]
        arguments = [f"Tensor? {shape.name}" if shape.optional else f"Tensor {shape.name}"
                     for shape in operands if not shape.written]
        # Fields without a default come first.
        ordered = sorted(self.fields, key=lambda field: "=" in _kinds[field.kind])
        self.order = [*self.reads, "group_name", *(field.name for field in ordered)]
        self.schema = (f"{kind}({', '.join(arguments)}, str group_name, "
                       f"{', '.join(_kinds[field.kind].format(field.name) for field in ordered)})")

    def _split(self, arguments: Sequence[Any], named: dict[str, Any]) -> tuple[dict[str, Tensor], str, dict[str, Any]]:
        """Operands, the name of the group, and settings of the problem."""
        values = {**dict(zip(self.order, arguments, strict=False)), **named}
        operands = {name: values[name] for name in self.reads if values.get(name) is not None}
        settings = {field.name: values[field.name] for field in self.fields if field.name in values}
        return operands, values["group_name"], settings

    def run(self, *arguments: Any, **named: Any) -> Any:
        operands, group_name, settings = self._split(arguments, named)
        first = next(iter(operands.values()))
        engine = engine_for(first, group_name)
        op = engine.planned(self.kind, dtype=first.dtype, **settings)
        written = {name: named[name] for name in self.results if named.get(name) is not None}
        rows = {name: t.detach().contiguous() for name, t in operands.items()}
        results = self._allocate(self._shapes(first, group_name, settings), first, written)
        return op.run(**rows, **results, stream=stream_of(first, engine.world) or None)

    def _shapes(self, first: Tensor, group_name: str, settings: dict[str, Any]) -> tuple[Shape, ...]:
        """The operands of this problem. The plan that runs it may have a larger capacity."""
        return shapes(self.kind, {"type": type_name(first.dtype), **settings}, ranks_of(group_name), rank_of(group_name))

    def _allocate(self, operands: Sequence[Shape], like: Tensor, written: dict[str, Tensor]) -> dict[str, Tensor]:
        return {shape.name: written.get(shape.name, like.new_empty((shape.rows, shape.cols), dtype=getattr(torch, shape.dtype)))
                for shape in operands if shape.name in self.results}

    def fake(self, *arguments: Any, **named: Any) -> Any:
        operands, group_name, settings = self._split(arguments, named)
        first = next(iter(operands.values()))
        results = tuple(self._allocate(self._shapes(first, group_name, settings), first, {}).values())
        return results[0] if len(results) == 1 else results


for _kind in kinds:
    if _kind not in own_kinds:
        _call = NamedCall(_kind)
        define(_call.schema, _call.run, _call.fake, _call.results)
