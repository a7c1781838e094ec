"""untax for torch: operators, modules, and a takeover of the operators that torch's own tensor parallelism calls.

The operators are in `torch.ops.untax`, where they take the name of a process group, whose ranks are processes of one host.
The functions of this module are the same, and take a group as torch has it. The first call of a group makes its world, and
the first with a problem plans it; both are collective, and cannot be captured in a CUDA graph. Calls of a group take place in
the order in which they are made, the same at all ranks, also on several streams and in graphs (docs/design.md, "The order of
runs").
"""

from . import attention, collectives, layers, named, norm, placements, products, rope
from .attention import *
from .collectives import *
from .counts import Report, forget, report
from .decoder import Decoder
from .groups import close, explain, make_world, name_of, release_captured, world_of
from .layers import *
from .modules import ColumnParallelLinear, RowParallelLinear
from .norm import *
from .parallel import parallelize
from .products import *
from .rope import *
from .shards import clip_grad_norm_, full_state_dict, load_full_state_dict
from .takeover import install, uninstall

__all__ = ["ColumnParallelLinear", "Decoder", "Report", "RowParallelLinear", "clip_grad_norm_", "close", "explain", "forget",
           "full_state_dict", "install", "load_full_state_dict", "make_world", "name_of", "parallelize", "release_captured", "report",
           "uninstall", "world_of"]
__all__ += attention.__all__
__all__ += collectives.__all__
__all__ += layers.__all__
__all__ += norm.__all__
__all__ += products.__all__
__all__ += rope.__all__

placements.register()
