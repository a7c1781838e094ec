"""Symmetric memory as tensors of torch, which peers reach by the address of a rank's own tensor."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

from .errors import Unsupported

if TYPE_CHECKING:
    import torch

    from ._core import World as Core


class _Bytes:
    """Memory of a GPU in the form that torch takes. A tensor on the memory keeps this object alive."""

    def __init__(self, address: int, size: int, pin: Any) -> None:
        self.__cuda_array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}
        self._pin = pin


def tensor_at(address: int, size: int, device: torch.device, pin: Any) -> torch.Tensor:
    """A tensor of `size` bytes, uint8, on memory of the host or of a GPU. The tensor keeps `pin` alive, and `pin` the memory."""
    import torch

    if device.type != "cuda":
        buffer = (ctypes.c_char * size).from_address(address)
        buffer._pin = pin  # type: ignore[attr-defined]
        return torch.frombuffer(buffer, dtype=torch.uint8)
    taken = torch.as_tensor(_Bytes(address, size, pin), device=device)
    if taken.data_ptr() != address:
        raise Unsupported(f"torch copied memory of {device}, which untax needs in place")
    return taken


class Tensors:
    """The calls of a world that make tensors in symmetric memory: of the rank's GPU, or of the host if heaps lie there.

    All are collective. Ranks give the same shape and dtype; values may differ. A tensor's memory is handed out again when
    all ranks have dropped the tensor and have met after that, so keep a tensor until the kernels that use it have ended,
    at all ranks. `empty` waits for no rank. When one of the others returns, the tensors of all ranks are filled.
    """

    _core: Core

    def empty(self, shape: int | tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Collective. A tensor of any contents."""
        import torch

        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = dtype or torch.get_default_dtype()
        size = math.prod(shape) * dtype.itemsize
        device = self._core.device
        if size == 0:
            return torch.empty(shape, dtype=dtype, device="cpu" if device < 0 else f"cuda:{device}")
        allocation = self._core.allocate(size, "tensor")
        pin, address = allocation.pin(), allocation.address
        allocation.free()  # the tensor keeps the pin, and the pin keeps the memory
        place = torch.device("cpu") if device < 0 else torch.device("cuda", device)
        taken = tensor_at(address, size, place, pin)
        return taken.view(dtype).view(shape)

    def zeros(self, shape: int | tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Collective. A tensor of zeros, such as counters of signals."""
        return self._shared(self.empty(shape, dtype).zero_())

    def full(self, shape: int | tuple[int, ...], value: float, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Collective. A tensor whose elements are all `value`."""
        return self._shared(self.empty(shape, dtype).fill_(value))

    def randn(self, shape: int | tuple[int, ...], dtype: torch.dtype | None = None,
              generator: torch.Generator | None = None) -> torch.Tensor:
        """Collective. A tensor of normally distributed numbers, of each rank's own generator."""
        return self._shared(self.empty(shape, dtype).normal_(generator=generator))

    def arange(self, start: int, end: int | None = None, step: int = 1, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Collective. The numbers from `start` (0 if it is the only one given) up to, without, `end`."""
        import torch

        first, last = (0, start) if end is None else (start, end)
        values = torch.arange(first, last, step, dtype=dtype)
        return self._shared(self.empty(tuple(values.shape), values.dtype).copy_(values))

    def _shared(self, filled: torch.Tensor) -> torch.Tensor:
        if filled.is_cuda:
            import torch

            torch.cuda.current_stream(filled.device).synchronize()
        self._core.barrier()
        return filled
