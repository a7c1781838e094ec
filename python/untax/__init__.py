"""untax: fused operators of compute and communication, on tile-grained symmetric memory.

    import numpy
    import untax

    def body(world):
        op = untax.AllGatherGemm(world, m=512, n=256, k=1024, dtype="fp32")
        a = numpy.ones((512 // world.size, 1024), numpy.float32)
        weights = numpy.full((256, 1024), 0.5, numpy.float32)
        return op(a, weights)[0, 0]

    print(untax.run_threads(4, body))
"""

try:
    from . import _core
except ImportError as error:
    from pathlib import Path as _Path

    if any(_Path(__file__).parent.glob("_core*.so")):
        raise
    raise ImportError(f"{_Path(__file__).parent} has the sources of untax without its compiled extension; `pip install .` in "
                      "the clone installs it, and Python has to start in a folder without a folder untax") from error
from . import operators
from .decoder import Decoder
from .errors import (Aborted, Disagreement, Error, Internal, InvalidArgument, NotSymmetric, OutOfMemory, PeerLost,
                     Timeout, Unsupported)
from .operators import *
from .select import Selector
from .sparse import Spmv, spmv_ways
from .taxes import Taxes, taxes
from .trace import Trace
from .types import Pattern
from .world import Memory, World, run_gpus, run_threads

__version__ = _core.version()


def __getattr__(name: str) -> type[operators.Operator]:
    """The class of an operator without a class in this package."""
    for kind in operators.kinds.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module 'untax' has no attribute {name!r}")


__all__ = [
    "Aborted", "Decoder", "Disagreement", "Error", "Internal", "InvalidArgument", "Memory", "NotSymmetric", "OutOfMemory", "Pattern", "PeerLost",
    "Selector", "Spmv", "Taxes", "Timeout", "Trace", "Unsupported", "World", "run_gpus", "run_threads", "spmv_ways", "taxes",
]
__all__ += operators.__all__
