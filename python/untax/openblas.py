"""The OpenBLAS of the package scipy-openblas32, for hosts where no other is installed."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

from . import _core


def folder() -> Path | None:
    """The folder of the library, found without importing the package; None if the package is not installed."""
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0], "lib")


def environment() -> dict[str, str]:
    """The environment for a command of untax, in which the linker finds the library after those of LD_LIBRARY_PATH."""
    found = dict(os.environ)
    if (where := folder()) is not None:
        found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (found.get("LD_LIBRARY_PATH"), str(where))))
    return found


@functools.cache
def offer() -> None:
    """Tells untax the path of the library, once. The first product on a host loads the library, unless the system has an
    OpenBLAS."""
    if (where := folder()) is not None:
        _core.offer_openblas(str(where / "libscipy_openblas.so"))
