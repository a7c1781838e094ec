"""Takes over the operators that torch's own tensor parallelism calls."""

from __future__ import annotations

import math
import os

import torch
import torch.distributed._symmetric_memory as symm_mem
from torch import Tensor
from torch.distributed.distributed_c10d import _get_group_size_by_name

from ..errors import Unsupported
from . import micro_pipeline
from .collectives import run_all_gather
from .products import run_all_gather_matmul, run_matmul_reduce_scatter
from .counts import count
from .shapes import dimension, kernels_lack

_types = (torch.float32, torch.float16, torch.bfloat16)
_installed: list[torch.library.Library] = []

_rows_worth_a_copy: float = 0


def _why_not(a: Tensor, bs: list[Tensor], group_name: str) -> str:
    """The reason why untax cannot take a call; empty if it can. The answer is the same at all ranks."""
    if a.dtype not in _types:
        return f"untax has no {a.dtype}"
    for b in bs:
        if b.dtype != a.dtype:
            return f"operands of {a.dtype} and {b.dtype}"
        if b.dim() != 2:
            return f"weights with {b.dim()} dimensions"
    if a.dim() < 2:
        return f"an operand with {a.dim()} dimensions"
    return ""


def _gathered_rows(a: Tensor, gather_dim: int, group_name: str) -> int:
    ranks = 1 if gather_dim % a.dim() == a.dim() - 1 else _get_group_size_by_name(group_name)
    return a.shape[:-1].numel() * ranks


def _count_refusal(operator: str, why: str) -> None:
    if os.environ.get("UNTAX_STRICT") == "1":
        raise Unsupported(f"{operator}: {why}, and UNTAX_STRICT is 1, so torch's implementation is not called")
    count(operator, f"by torch: {why}")


def _all_gather_matmul(A: Tensor, Bs: list[Tensor], gather_dim: int, group_name: str, *,  # noqa: N803
                       return_A: bool = True) -> tuple[Tensor | None, list[Tensor]]:  # noqa: N803
    name = "fused_all_gather_matmul"
    why = _why_not(A, Bs, group_name)
    columns = [] if why else [b.shape[1] for b in Bs]
    together = not why and not return_A and (
        len(Bs) == 1 or _gathered_rows(A, gather_dim, group_name) >= _rows_worth_a_copy)
    if together:
        why = kernels_lack(A, Bs[0].shape[0], sum(columns))
    if why:
        _count_refusal(name, why)
        others = symm_mem._fused_all_gather_matmul if A.is_cuda else symm_mem._fused_all_gather_matmul_fallback
        return others(A, Bs, gather_dim, group_name, return_A=return_A)
    if len(Bs) == 1 and together:
        count(name, "by untax, fused")
        return None, [run_all_gather_matmul(A, Bs[0], gather_dim, group_name)]
    if together:
        count(name, "by untax, fused, with weights side by side")
        whole = run_all_gather_matmul(A, torch.cat([b.t() for b in Bs]).t(), gather_dim, group_name)
        outermost = 0 if gather_dim % A.dim() == A.dim() - 1 else gather_dim
        parts = whole.movedim(outermost, 0).split(columns, -1)
        return None, [part.contiguous().movedim(0, outermost) for part in parts]
    # A matrix that is needed whole, or several times, is gathered once.
    reason = "A is asked for" if return_A else "rows are few for several weights"
    count(name, f"by untax, gathered first, since {reason}")
    outermost = dimension("gather_dim", gather_dim, A)
    whole = run_all_gather(A, outermost, group_name)
    # All results have the strides of torch's own, since code that torch compiles relies on them.
    if outermost == A.dim() - 1:
        whole, outermost = whole.contiguous(), 0
    products = [torch.matmul(whole.movedim(outermost, 0), b).movedim(0, outermost) for b in Bs]
    return whole if return_A else None, products


def _matmul_reduce_scatter(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,  # noqa: N803
                           group_name: str) -> Tensor:
    name = "fused_matmul_reduce_scatter"
    why = _why_not(A, [B], group_name)
    if not why and reduce_op not in ("sum", "avg"):
        why = f"reduce_op {reduce_op}"
    if not why:  # columns that are scattered are rows of the transposed product
        last = scatter_dim % A.dim() == A.dim() - 1
        why = kernels_lack(A, A.shape[-1], A.shape[:-1].numel() if last else B.shape[1])
    if why:
        _count_refusal(name, why)
        others = symm_mem._fused_matmul_reduce_scatter if A.is_cuda else symm_mem._fused_matmul_reduce_scatter_fallback
        return others(A, B, reduce_op, scatter_dim, group_name)
    count(name, "by untax, fused")
    # Contiguous, as torch's own result is, since code that torch compiles relies on strides.
    return run_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name).contiguous()


def install(rows_worth_a_copy: int | None = 2048, *, async_tp: bool = False) -> None:
    """Makes `symm_mem::fused_all_gather_matmul` and `symm_mem::fused_matmul_reduce_scatter` run on untax from now on,
    for tensors of CPUs and of GPUs, and with them all code that emits these operators. A call that untax does not
    support goes to torch's implementation; `report` counts such calls with the reasons, and with UNTAX_STRICT=1 they
    are errors. The log `untax.torch` has each way and reason once.

    `async_tp`: switches on the pass of torch.compile that emits these operators, for what is compiled from here on, and for all
    groups that torch or untax can serve; `report` says, too, which gathers and scatters it left, and why. `Unsupported` if this
    torch does not have the pass.

    `rows_worth_a_copy`: from this number of gathered rows on, several weights of one call are copied side by side, at
    each call, for one fused product; below, and at all numbers of rows for None, A is gathered first, and torch
    multiplies. A copy takes as long for few rows as for many, while the time that the fused product hides grows with
    the rows. The number at which both are equal depends on the machine, so the default is only a guess. All ranks give
    the same. May be called again to change it.
    """
    global _rows_worth_a_copy
    _rows_worth_a_copy = math.inf if rows_worth_a_copy is None else rows_worth_a_copy
    if async_tp:
        micro_pipeline.switch_on()
    if _installed:
        return
    library = torch.library.Library("symm_mem", "IMPL")
    for device in ("CPU", "CUDA"):
        library.impl("fused_all_gather_matmul", _all_gather_matmul, device, allow_override=True)
        library.impl("fused_matmul_reduce_scatter", _matmul_reduce_scatter, device, allow_override=True)
    _installed.append(library)


def uninstall() -> None:
    """Gives both operators back to torch, and the pass and its switch. On CPUs torch has no such operators, so graphs
    that were compiled for them have to be compiled again."""
    micro_pipeline.leave()
    while _installed:
        _installed.pop()._destroy()
