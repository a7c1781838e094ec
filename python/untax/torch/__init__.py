"""untax for torch: operators, modules, and a takeover of what torch's own tensor parallelism calls.

The operators are in `torch.ops.untax`: all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce,
all_reduce_rms_norm, flash_decode, and the collectives. They take the name of a process group, whose ranks are processes
of one host. The first call of a group makes its world, and the first with a problem plans it; both are collective.
"""

from . import library as _operators
from .groups import close, explain, make_world, name_of, world_of
from .modules import ColumnParallelLinear, RowParallelLinear
from .takeover import Report, forget, install, report, uninstall

__all__ = ["ColumnParallelLinear", "Report", "RowParallelLinear", "close", "explain", "forget", "install", "make_world", "name_of",
           "report", "uninstall", "world_of"]
