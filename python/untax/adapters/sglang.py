"""The plugin for SGLang: its all-reduces, and the sum, residual and norm that it otherwise gives to FlashInfer."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .communicator import adopt, sums_of
from .sums import Sums
from .switch import is_on

VERSIONS = ("0.5.23",)
_log = logging.getLogger("sglang.untax")
_is_used = False  # whether a group sums on untax
_comm = "sglang.srt.layers.flashinfer_comm_fusion"


def register() -> None:
    """The entry point in `sglang.srt.plugins`."""
    if not is_on("sglang", "UNTAX_SGLANG", VERSIONS, _log):
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register("sglang.srt.distributed.device_communicators.custom_all_reduce.dispatch_custom_allreduce", dispatched,
                          HookType.AFTER)
    HookRegistry.register(f"{_comm}.flashinfer_allreduce_residual_rmsnorm", norm, HookType.AROUND)
    HookRegistry.register(f"{_comm}.ensure_workspace_initialized", workspace, HookType.AROUND)


def dispatched(own: Callable[..., Any], group: Any, device: torch.device) -> Callable[..., Any]:
    """Replaces the class that SGLang chose: makes its communicator, and lets it sum on untax."""
    return functools.partial(_adopted, own)


def _adopted(own: Callable[..., Any], group: Any, device: torch.device) -> Any:
    global _is_used
    communicator = adopt(own(group=group, device=device), group, torch.device(device), _log)
    _is_used = _is_used or sums_of(communicator) is not None
    return communicator


def _sums(use_attn_tp_group: bool) -> Sums | None:
    from sglang.srt.layers.flashinfer_comm_fusion import resolve_fusion_group

    coordinator = resolve_fusion_group(use_attn_tp_group=use_attn_tp_group)[2]
    return sums_of(getattr(coordinator, "ca_comm", None))


def norm(original: Callable[..., Any], input_tensor: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6,
         max_token_num: int = 2048, use_oneshot: bool | None = None, trigger_completion_at_end: bool = False,
         fp32_acc: bool = True, use_attn_tp_group: bool = True) -> tuple[Tensor | None, Tensor | None]:
    """(normed, total), or (None, None), after which SGLang sums and normalises by itself."""
    compiling = torch.compiler.is_compiling()  # the calls of `sums` that decide this cannot be traced
    if compiling and _is_used:
        return None, None
    sums = None if compiling else _sums(use_attn_tp_group)
    if sums is None:
        return original(input_tensor, residual, weight, eps, max_token_num, use_oneshot, trigger_completion_at_end, fp32_acc,
                        use_attn_tp_group)
    if not sums.takes_norm(input_tensor, residual, weight, eps):
        return None, None
    return sums.all_reduce_rms_norm(input_tensor, residual, weight, eps)


def workspace(original: Callable[..., Any], max_token_num: int = 2048, hidden_dim: int = 4096, use_fp32_lamport: bool = False,
              dtype: torch.dtype | None = None, token_num: int | None = None, use_oneshot: bool | None = None,
              use_attn_tp_group: bool = True) -> bool:
    """Whether FlashInfer has its memory. It needs no memory for a group that sums on untax. Without memory SGLang calls
    untax, instead of FlashInfer, for plain sums, too."""
    if _sums(use_attn_tp_group) is not None:
        return False
    return original(max_token_num, hidden_dim, use_fp32_lamport, dtype, token_num, use_oneshot, use_attn_tp_group)
