"""Decision trees that choose one of some kernels for an input, trained from a table of run times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _core
from .errors import InvalidArgument


def _in_order(what: str, given: Mapping[str, float], names: list[str]) -> list[float]:
    if set(given) != set(names):
        raise InvalidArgument(f"{what} features are {', '.join(given) or 'none'}; they have to be "
                              f"{', '.join(names) or 'none'}")
    return [float(given[name]) for name in names]


def _text_of(path: str | Path) -> str:
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return file.read()


class Selector:
    """Three trees: one that chooses by the known features of an input, one that also chooses by gathered features, and
    one that decides whether gathering pays. `str` of a selector has the trees as text, `json` is the form that `load`
    and the command `untax select` read. docs/select.md says how they are trained."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.known, self.gathered = core.features()

    @classmethod
    def train(cls, schema: Mapping[str, Any], table: str | Path | Iterable[Mapping[str, Any]], *,
              seed: int = 1) -> Selector:
        """Trains a selector. `schema` gives the meaning of the table's columns; `table` is a file of comma-separated
        values or JSON, which may be compressed (.gz), or records with a time of None for a kernel that failed. The same
        table and seed make the same trees. Raises InvalidArgument."""
        text = _text_of(table) if isinstance(table, (str, Path)) else json.dumps(list(table))
        return cls(_core.train_selector(json.dumps(schema), text, seed))

    @classmethod
    def load(cls, path: str | Path) -> Selector:
        """Reads a selector from the file that `save`, or `untax select train`, has written. Raises InvalidArgument."""
        return cls(_core.read_selector(_text_of(path)))

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.json, encoding="utf-8")

    @property
    def json(self) -> str:
        return self._core.json

    def choose(self, known: Mapping[str, float], gather: Callable[[], Mapping[str, float]] | None = None, *,
               iterations: float = 1) -> str:
        """The name of the kernel for an input. `known` has the known features; `gather` returns the others, and is
        called, at most once, if that pays. Without `gather` the known features decide."""
        looked = None if gather is None else lambda: _in_order("gathered", gather(), self.gathered)
        return self._core.choose(_in_order("known", known, self.known), iterations, looked)[0]

    def __str__(self) -> str:
        return self._core.text
