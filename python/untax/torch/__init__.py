"""untax for torch: operators, modules, and a takeover of what torch's own tensor parallelism calls.

The operators are in `torch.ops.untax`, where they take the name of a process group, whose ranks are processes of one host.
The functions of this module are the same, and take a group as torch has it. The first call of a group makes its world, and
the first with a problem plans it; both are collective, and cannot be captured in a CUDA graph. Calls of a group take place in
the order in which they are made, the same at all ranks, also on several streams and in graphs (docs/design.md, "The order of
runs").
"""

from . import library as _operators
from .functions import (all_gather, all_gather_matmul, all_reduce, all_reduce_rms_norm, all_to_all, broadcast,
                        flash_attention, flash_decode, matmul_all_reduce, matmul_all_scatter, matmul_reduce_scatter,
                        merge_partial_attention, reduce_scatter)
from .groups import close, explain, make_world, name_of, release_captured, world_of
from .modules import ColumnParallelLinear, RowParallelLinear
from .takeover import Report, forget, install, report, uninstall

__all__ = ["ColumnParallelLinear", "Report", "RowParallelLinear", "all_gather", "all_gather_matmul", "all_reduce",
           "all_reduce_rms_norm", "all_to_all", "broadcast", "close", "explain", "flash_attention", "flash_decode", "forget",
           "install", "make_world", "matmul_all_reduce", "matmul_all_scatter", "matmul_reduce_scatter",
           "merge_partial_attention", "name_of", "reduce_scatter", "release_captured", "report", "uninstall", "world_of"]
