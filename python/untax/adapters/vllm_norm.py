"""The implementation on untax of the operator by which vLLM's pass replaces a sum, a residual and a norm."""

from __future__ import annotations

import logging

import torch
from torch import Tensor
from vllm.compilation.passes.fusion import allreduce_rms_fusion as fusion
from vllm.distributed import get_tp_group
from vllm.platforms import current_platform

from .communicator import sums_of
from .sums import Sums

_name = "flashinfer_trtllm_fused_allreduce_norm"
_installed: list[torch.library.Library] = []


def take_over(log: logging.Logger) -> None:
    """Makes the operator run on untax from now on, for calls that untax supports."""
    if _installed:
        return
    if fusion.flashinfer_comm is None:
        log.info("untax leaves vllm::%s: vLLM has it only with FlashInfer, which is not installed", _name)
        return
    library = torch.library.Library("vllm", "IMPL")
    library.impl(_name, fused_norm, current_platform.dispatch_key, allow_override=True)
    _installed.append(library)
    log.info("untax takes over vllm::%s", _name)


def _takes(sums: Sums, x: Tensor, residual: Tensor, weight: Tensor, eps: float, pattern_code: int, weight_bias: float) -> bool:
    if pattern_code != fusion.flashinfer_comm.AllReduceFusionPattern.kARResidualRMSNorm:
        return sums.leave(_name, "quantized results")
    if weight_bias != 0:
        return sums.leave(_name, "a weight_bias, as Gemma has it")
    return sums.takes_norm(x, residual, weight, eps)


def fused_norm(allreduce_in: Tensor, residual: Tensor, rms_gamma: Tensor, rms_eps: float, world_size: int, launch_with_pdl: bool,
               fp32_acc: bool, max_token_num: int, pattern_code: int, norm_out: Tensor | None = None,
               quant_out: Tensor | None = None, scale_out: Tensor | None = None, scale_factor: Tensor | None = None,
               weight_bias: float = 0.0) -> None:
    """Writes the norm into `norm_out` and the sum into `allreduce_in`; without `norm_out` the norm into `allreduce_in` and the
    sum into `residual`."""
    sums = sums_of(getattr(get_tp_group().device_communicator, "ca_comm", None))
    if sums is None or not _takes(sums, allreduce_in, residual, rms_gamma, rms_eps, pattern_code, weight_bias):
        fusion.call_trtllm_fused_allreduce_norm(allreduce_in, residual, rms_gamma, rms_eps, world_size, launch_with_pdl, fp32_acc,
                                                max_token_num, pattern_code, norm_out, quant_out, scale_out, scale_factor,
                                                weight_bias)
        return
    # Rows of the input are still being sent while others are already normalised, so the result is copied there at the
    # end.
    beside = torch.empty_like(allreduce_in)
    normed, total = (beside, residual) if norm_out is None else (norm_out, beside)
    torch.ops.untax.all_reduce_rms_norm.out(allreduce_in, residual, rms_gamma, rms_eps, sums.group_name, normed=normed, total=total)
    allreduce_in.copy_(beside)
