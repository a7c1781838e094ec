"""Verbs for kernels in Triton: tiles, signals and atomics in the symmetric memory of a world (docs/triton.md)."""

from .context import DeviceContext, context
from .verbs import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xchg,
    atomic_xor,
    copy,
    get,
    load,
    put,
    put_signal,
    signal,
    store,
    translate,
    wait,
)

__all__ = ["DeviceContext", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_sub",
           "atomic_xchg", "atomic_xor", "context", "copy", "get", "load", "put", "put_signal", "signal", "store", "translate",
           "wait"]
