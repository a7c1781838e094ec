"""Takes over what torch's own tensor parallelism calls, and says of each call who carried it out."""

from __future__ import annotations

import os
from collections import Counter

import torch
import torch.distributed._symmetric_memory as symm_mem
from torch import Tensor

from ..errors import Unsupported
from . import tensors

_types = (torch.float32, torch.float16, torch.bfloat16)
_calls: Counter[tuple[str, str]] = Counter()
_installed: list[torch.library.Library] = []


class Report(dict[tuple[str, str], int]):
    """How many calls of each operator were carried out in which way, with the reason where it was not by untax."""

    def __str__(self) -> str:
        lines = [f"{operator}: {calls} calls, {way}" for (operator, way), calls in sorted(self.items())]
        return "\n".join(lines) or "no calls"


def report() -> Report:
    """The calls since `install`, or since `forget`."""
    return Report(_calls)


def forget() -> None:
    """Begins to count anew."""
    _calls.clear()


def _why_not(a: Tensor, bs: list[Tensor], group_name: str) -> str:
    """Why untax cannot take a call; empty if it can. All ranks find the same."""
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


def _refused(operator: str, why: str) -> None:
    if os.environ.get("UNTAX_STRICT") == "1":
        raise Unsupported(f"{operator}: {why}, and UNTAX_STRICT is 1, so torch's implementation is not asked")
    _calls[operator, f"by torch: {why}"] += 1


def _all_gather_matmul(A: Tensor, Bs: list[Tensor], gather_dim: int, group_name: str, *,  # noqa: N803
                       return_A: bool = True) -> tuple[Tensor | None, list[Tensor]]:  # noqa: N803
    name = "fused_all_gather_matmul"
    why = _why_not(A, Bs, group_name)
    if not why and len(Bs) == 1 and not return_A:
        why = tensors.kernels_lack(A, *Bs[0].shape)
    if why:
        _refused(name, why)
        others = symm_mem._fused_all_gather_matmul if A.is_cuda else symm_mem._fused_all_gather_matmul_fallback
        return others(A, Bs, gather_dim, group_name, return_A=return_A)
    if len(Bs) == 1 and not return_A:
        _calls[name, "by untax, fused"] += 1
        return None, [tensors.all_gather_matmul(A, Bs[0], gather_dim, group_name)]
    # What is needed as a whole, or several times, is gathered once.
    _calls[name, "by untax, gathered first, since A is asked for or has several weights"] += 1
    whole = tensors.all_gather(A, gather_dim % A.dim(), group_name)
    return whole if return_A else None, [torch.matmul(whole, b) for b in Bs]


def _matmul_reduce_scatter(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,  # noqa: N803
                           group_name: str) -> Tensor:
    name = "fused_matmul_reduce_scatter"
    why = _why_not(A, [B], group_name)
    if not why and reduce_op not in ("sum", "avg"):
        why = f"reduce_op {reduce_op}"
    if not why:  # columns that are scattered are rows of the transposed product
        last = scatter_dim % A.dim() == A.dim() - 1
        why = tensors.kernels_lack(A, A.shape[-1], A.shape[:-1].numel() if last else B.shape[1])
    if why:
        _refused(name, why)
        others = symm_mem._fused_matmul_reduce_scatter if A.is_cuda else symm_mem._fused_matmul_reduce_scatter_fallback
        return others(A, B, reduce_op, scatter_dim, group_name)
    _calls[name, "by untax, fused"] += 1
    return tensors.matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name)


def install() -> None:
    """From here on `symm_mem::fused_all_gather_matmul` and `symm_mem::fused_matmul_reduce_scatter` run on untax, for
    tensors of CPUs and of GPUs, and so does what emits them. What untax cannot take goes to torch's implementation;
    `report` says how often, and why, and with UNTAX_STRICT=1 it is an error."""
    if _installed:
        return
    library = torch.library.Library("symm_mem", "IMPL")
    for device in ("CPU", "CUDA"):
        library.impl("fused_all_gather_matmul", _all_gather_matmul, device, allow_override=True)
        library.impl("fused_matmul_reduce_scatter", _matmul_reduce_scatter, device, allow_override=True)
    _installed.append(library)


def uninstall() -> None:
    """Gives both operators back to torch."""
    while _installed:
        _installed.pop()._destroy()
