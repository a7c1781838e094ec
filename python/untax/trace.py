"""A record of the work and the waits of operators on the host, as a file that Perfetto opens."""

from __future__ import annotations

import os
from types import TracebackType

from . import _core


class Trace:
    """Records all operators that are made in its `with`, and writes the file at the end.

        with untax.Trace("trace.json") as trace:
            untax.run_threads(4, body)
        print(trace.events, trace.lost)

    `events` is the number of events in the file, `lost` the number of older ones that did not fit in memory. With ranks
    as processes each of them has it around the same operators, with the same path. No operator may run at its end.
    Raises InvalidArgument for a file that cannot be opened, or inside another one. UNTAX_TRACE=trace.json does the same
    for a whole program.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.events, self.lost = os.fspath(path), 0, 0

    def __enter__(self) -> Trace:
        _core.start_trace(self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.events, self.lost = _core.stop_trace()
