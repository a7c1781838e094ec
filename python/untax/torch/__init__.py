"""untax for torch: operators, modules, and a takeover of what torch's own tensor parallelism calls.

The operators are in `torch.ops.untax`: all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce,
all_reduce_rms_norm, flash_decode, and the collectives. They take the name of a process group, whose ranks are processes
of one host. The first call of a group makes its world, and the first with a problem plans it; both are collective.
"""

from typing import Any

import torch as _torch

from . import library as _operators
from .groups import close, explain, make_world, name_of, world_of
from .modules import ColumnParallelLinear, RowParallelLinear
from .takeover import Report, forget, install, report, uninstall



def merge_partial_attention(partial_o: _torch.Tensor, partial_lse: _torch.Tensor, group: Any = None, *,
                            own_heads: bool = False) -> tuple[_torch.Tensor, _torch.Tensor]:
    """Merges what anybody's attention kernel made of the keys of each rank.

    `partial_o`: [..., heads, head_dim], `partial_lse`: [..., heads], the logarithm of the sum of exponentials, base e,
    -inf where a rank has no key, and then its row of `partial_o` may hold anything. Returns the attention to the keys of
    all ranks, and its lse in fp32, zeros and -inf where nobody has one: of all heads at every rank, or with `own_heads`
    of this rank's ceil(heads / W), the last ranks fewer or none. Collective.
    """
    return _torch.ops.untax.merge_partial_attention(partial_o, partial_lse, name_of(group), own_heads)


__all__ = ["ColumnParallelLinear", "Report", "RowParallelLinear", "close", "explain", "forget", "install", "make_world",
           "merge_partial_attention", "name_of", "report", "uninstall", "world_of"]
