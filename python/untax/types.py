"""Element types, patterns and the arrays of others, by the names that they have there."""

from __future__ import annotations

import enum
from typing import Any

from .errors import InvalidArgument

_types = {"fp32": 0, "fp16": 1, "bf16": 2}
_aliases = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "half": "fp16", "float": "fp32"}
type_names = tuple(_types)
item_sizes = {"fp32": 4, "fp16": 2, "bf16": 2}


class Pattern(enum.IntEnum):
    """Ways to overlap communication with computation; docs/design.md describes them."""

    automatic = 0
    bulk_library = 1
    bulk_synchronous = 2
    producer_consumer = 3
    copy_engine = 4
    fused_sequential = 5
    fused_specialized = 6
    fused_warp_specialized = 7


def type_name(given: Any) -> str:
    """ "fp32", "fp16" or "bf16" for such a word, or for the type that numpy or torch has for it."""
    named = given if isinstance(given, str) else getattr(given, "name", None) or getattr(given, "__name__", given)
    word = str(named).rpartition(".")[2]
    word = _aliases.get(word, word)
    if word not in _types:
        raise InvalidArgument(f"type is {given!r}; untax has {', '.join(_types)}")
    return word


def type_number(given: Any) -> int:
    return _types[type_name(given)]


def number_of(what: str, given: str | int, names: tuple[str, ...]) -> int:
    """The number of a word among `names`, by which the C ABI knows it; or that number itself."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(names):
        return int(given)
    if given not in names:
        raise InvalidArgument(f"{what} is {given!r}; it can be {', '.join(names)}")
    return names.index(given)


DEFAULT_STREAM = 1  #: of a GPU, as CUDA names it where 0 stands for none


def stream_number(stream: Any) -> int:
    """An address of a CUDA stream, of an integer or of an object of torch or cupy; 0 for none."""
    if stream is None:
        return 0
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute)) or DEFAULT_STREAM
    return int(stream)


def empty_like(model: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """A new array of the framework that `model` is of, where it lies, with its type or the one of that name there."""
    framework = type(model).__module__.partition(".")[0]
    if framework in ("numpy", "cupy", "torch"):
        import importlib

        module = importlib.import_module(framework)
        kind = model.dtype if dtype is None else getattr(module, dtype)
        return model.new_empty(shape, dtype=kind) if framework == "torch" else module.empty(shape, dtype=kind)
    raise InvalidArgument(f"a result cannot be made like a {type(model).__name__}; pass arrays of numpy, cupy or torch, or pass "
                          "out=")


def _place(given: Any) -> tuple[int, bool, bool, str]:
    """Where an array lies, whether its elements lie side by side and may be written, and on which kind of device."""
    if hasattr(given, "_place"):  # Memory
        address, device = given._place()
        return address, True, True, device
    if hasattr(given, "data_ptr"):  # of torch
        return given.data_ptr(), given.is_contiguous(), True, given.device.type
    if hasattr(given, "__cuda_array_interface__"):  # of cupy
        return given.data.ptr, given.flags.c_contiguous, True, "cuda"
    address, read_only = given.__array_interface__["data"]
    return address, given.flags.c_contiguous, not read_only, "cpu"


def address_of(what: str, given: Any, shape: tuple[int, ...], kinds: tuple[str, ...], on_gpu: bool) -> int:
    """The address of an array that a run writes. Later code gets only the address, so the array is checked here: it has
    to have this shape and elements of one of these kinds, side by side, and to lie where the heaps of its world do."""
    if not hasattr(given, "_place"):
        given = as_operand(given)
    if not any(hasattr(given, known) for known in ("_place", "data_ptr", "flags")):
        raise InvalidArgument(f"{what} is a {type(given).__name__}; it has to be an array of numpy, cupy or torch")
    word = str(given.dtype).rpartition(".")[2]
    found, kind = tuple(given.shape), _aliases.get(word, word)
    if found != shape or kind not in kinds:
        raise InvalidArgument(f"{what} is {found} of {kind}; it has to be {shape} of {' or '.join(kinds)}")
    address, side_by_side, may_be_written, device = _place(given)
    if device != ("cuda" if on_gpu else "cpu"):
        places = {"cuda": "on a GPU", "cpu": "in host memory"}
        raise InvalidArgument(f"{what} lies {places.get(device, 'on ' + device)}, and the heaps of this world lie "
                              + ("on GPUs" if on_gpu else "in host memory"))
    if not may_be_written:
        raise InvalidArgument(f"{what} is a {type(given).__name__} that is read-only; it has to be one that may be written")
    if not side_by_side:
        raise InvalidArgument(f"elements of {what} have to lie side by side, in their order")
    return int(address)


def as_operand(given: Any) -> Any:
    """An operand of the extension: arrays with DLPack or a buffer as they are, others through `__array_interface__`."""
    if getattr(given, "requires_grad", False):
        raise InvalidArgument("a tensor that requires a gradient would lose it here; pass tensor.detach(), or call an operator "
                              "of torch.ops.untax")
    if given is None or hasattr(given, "__dlpack__") or isinstance(given, tuple):
        return given
    if hasattr(given, "_operand"):  # Memory
        return given._operand()
    if hasattr(given, "__array_interface__"):
        import numpy

        return numpy.asarray(given)
    return given
