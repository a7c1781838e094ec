"""The OpenBLAS of the package scipy-openblas32, for hosts where no other is installed."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from pathlib import Path


def folder() -> Path | None:
    """Where the library is, without importing the package; None if it is not installed."""
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0], "lib")


def environment() -> dict[str, str]:
    """The environment of a command of untax, whose linker finds the library behind those of LD_LIBRARY_PATH."""
    found = dict(os.environ)
    if (where := folder()) is not None:
        found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (found.get("LD_LIBRARY_PATH"), str(where))))
    return found


@functools.cache
def load() -> None:
    """Loads it, once. untax then finds it by its name at the first product on a host, unless the system has an OpenBLAS."""
    if (where := folder()) is None or not (library := where / "libscipy_openblas.so").is_file():
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})  # it makes as many threads as the one that loads it may use processors
    try:
        ctypes.CDLL(str(library))
    except OSError:  # then the first product says what is missing
        pass
    finally:
        os.sched_setaffinity(0, allowed)
