"""The argument by which a kernel reaches peers and waits for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..errors import Unsupported
from ..world import World
from .waits import interpreted

PAGE = 4096  # bytes; the distance between the memories of ranks is counted in pages


class DeviceContext(NamedTuple):
    """The rank and size of a world in a kernel, as `context.rank` and `context.size`. The other fields are for the verbs."""

    rank: int
    size: int
    pages: int  # distance from the memory of a rank to that of the next one
    state: Any  # the words that waits.py lists


def context(world: World, name: str = "a Triton kernel") -> DeviceContext:
    """The context of this rank, for any number of kernels. Errors about waits name the kernels `name`. Keep the context
    until the kernels have ended.

    Raises Unsupported if the kernels of this process cannot reach the memory of the world.
    """
    if interpreted and world.device >= 0:
        raise Unsupported(f"rank {world.rank}: TRITON_INTERPRET=1 carries kernels out on the CPU, which does not reach the memory "
                          "of GPUs; make the world in host memory")
    if not interpreted and world.device < 0:
        raise Unsupported(f"rank {world.rank}: a world in host memory is for kernels on the CPU; set TRITON_INTERPRET=1 before "
                          'triton is imported, or make the world with memory="cuda"')
    control = world._core.kernel_state()
    letters = name.encode("ascii", "replace")[:32].ljust(32, b"\0")
    names = [int.from_bytes(letters[i:i + 8], "little") for i in range(0, 32, 8)]
    words = [0, 0, control["limit_ns"], control["clock_offset"], control["records"], control["progress"],
             control["first_slot"], control["slots"], control["host_stop"], control["stop"], control["stop_span"],
             control["outcome"], *names]
    device = "cpu" if world.device < 0 else f"cuda:{world.device}"
    return DeviceContext(world.rank, world.size, control["span"] // PAGE, torch.tensor(words, dtype=torch.int64, device=device))
