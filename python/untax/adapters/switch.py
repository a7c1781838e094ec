"""Whether an adapter takes over calls: the variable that switches it off, and the versions of the framework that it
knows."""

from __future__ import annotations

import importlib.metadata
import logging
import os


def is_on(framework: str, variable: str, known: tuple[str, ...], log: logging.Logger) -> bool:
    """False if `variable` is 0, or if the installed version of the framework is not in `known`, which the log then
    reports."""
    if os.environ.get(variable) == "0":
        log.info("untax is off, since %s is 0", variable)
        return False
    try:
        version = importlib.metadata.version(framework)
    except importlib.metadata.PackageNotFoundError:
        version = "without a version"
    if version.partition("+")[0] not in known:  # the version of CUDA follows the +
        log.warning("untax leaves %s %s as it is: it knows %s. %s=0 switches this message off", framework, version,
                    ", ".join(known), variable)
        return False
    return True
