"""Element types, patterns, and arrays of numpy, torch and cupy."""

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


def type_name(dtype: Any) -> str:
    """ "fp32", "fp16" or "bf16" for such a word, or for the corresponding type of numpy or torch."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)
    word = str(name).rpartition(".")[2]
    word = _aliases.get(word, word)
    if word not in _types:
        raise InvalidArgument(f"type is {dtype!r}; untax has {', '.join(_types)}")
    return word


def type_number(dtype: Any) -> int:
    return _types[type_name(dtype)]


def number_of(field: str, value: str | int, names: tuple[str, ...]) -> int:
    """The number of a word among `names` in the C ABI. A number is returned as it is."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return int(value)
    if value not in names:
        raise InvalidArgument(f"{field} is {value!r}; it can be {', '.join(names)}")
    return names.index(value)


DEFAULT_STREAM = 1  #: the default stream of a GPU under CUDA's number for interfaces in which 0 stands for no stream


def stream_number(stream: Any) -> int:
    """The address of a CUDA stream, which is an integer or an object of torch or cupy; 0 for none."""
    if stream is None:
        return 0
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute)) or DEFAULT_STREAM
    return int(stream)


def empty_like(model: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """A new array of the framework and on the device of `model`, of its type or of `dtype`, a name of that framework."""
    framework = type(model).__module__.partition(".")[0]
    if framework in ("numpy", "cupy", "torch"):
        import importlib

        module = importlib.import_module(framework)
        kind = model.dtype if dtype is None else getattr(module, dtype)
        return model.new_empty(shape, dtype=kind) if framework == "torch" else module.empty(shape, dtype=kind)
    raise InvalidArgument(f"a result cannot be made like a {type(model).__name__}; pass arrays of numpy, cupy or torch, or pass "
                          "out=")


def _place(array: Any) -> tuple[int, bool, bool, str]:
    """The address of an array, whether its elements are contiguous, whether they may be written, and the kind of its device."""
    if hasattr(array, "_place"):  # Memory
        address, device = array._place()
        return address, True, True, device
    if hasattr(array, "data_ptr"):  # a tensor of torch
        return array.data_ptr(), array.is_contiguous(), True, array.device.type
    if hasattr(array, "__cuda_array_interface__"):  # an array of cupy
        return array.data.ptr, array.flags.c_contiguous, True, "cuda"
    address, read_only = array.__array_interface__["data"]
    return address, array.flags.c_contiguous, not read_only, "cpu"


def address_of(operand: str, array: Any, shape: tuple[int, ...], kinds: tuple[str, ...], on_gpu: bool) -> int:
    """The address of an array that a run writes. Later code gets only the address, so the array is checked here: it
    must have the given shape and a type of `kinds`, be contiguous, and lie in the kind of memory of its world's
    heaps."""
    if not hasattr(array, "_place"):
        array = as_operand(array)
    if not any(hasattr(array, known) for known in ("_place", "data_ptr", "flags")):
        raise InvalidArgument(f"{operand} is a {type(array).__name__}; it has to be an array of numpy, cupy or torch")
    word = str(array.dtype).rpartition(".")[2]
    extents, kind = tuple(array.shape), _aliases.get(word, word)
    if extents != shape or kind not in kinds:
        raise InvalidArgument(f"{operand} is {extents} of {kind}; it has to be {shape} of {' or '.join(kinds)}")
    address, side_by_side, may_be_written, device = _place(array)
    if device != ("cuda" if on_gpu else "cpu"):
        places = {"cuda": "on a GPU", "cpu": "in host memory"}
        raise InvalidArgument(f"{operand} lies {places.get(device, 'on ' + device)}, and the heaps of this world lie "
                              + ("on GPUs" if on_gpu else "in host memory"))
    if not may_be_written:
        raise InvalidArgument(f"{operand} is a {type(array).__name__} that is read-only; it has to be one that may be written")
    if not side_by_side:
        raise InvalidArgument(f"elements of {operand} have to lie side by side, in their order")
    return int(address)


def as_operand(array: Any) -> Any:
    """The operand that the extension takes for an array: an array with DLPack or a buffer itself, another one through
    `__array_interface__`."""
    if getattr(array, "requires_grad", False):
        raise InvalidArgument("a tensor that requires a gradient would lose it here; pass tensor.detach(), or call an operator "
                              "of torch.ops.untax")
    if array is None or hasattr(array, "__dlpack__") or isinstance(array, tuple):
        return array
    if hasattr(array, "_operand"):  # Memory
        return array._operand()
    if hasattr(array, "__array_interface__"):
        import numpy

        return numpy.asarray(array)
    return array
