"""The override for torchtitan: its asynchronous tensor parallelism on untax. torchtitan imports it, by its name:

    --compile.enable --compile.enable_async_tensor_parallel --override.imports untax.adapters.torchtitan.async_tp
"""

from __future__ import annotations

import functools
import logging

import torch.distributed as dist
from torchtitan.config import override
from torchtitan.models.common.embedding import Embedding

from ..torch import install, micro_pipeline
from .switch import is_on

VERSIONS = ("0.3.0",)
_log = logging.getLogger("untax.torchtitan")


@functools.cache
def _say_once() -> None:
    if dist.get_rank() == 0:
        _log.info("untax takes over symm_mem::fused_all_gather_matmul and symm_mem::fused_matmul_reduce_scatter")


@override(target=Embedding.Config, fqns=["*tok_embeddings"], description="asynchronous tensor parallelism on untax; the embeddings "
          "stay as they are, which torchtitan visits once for each model, before it compiles")
def async_tp(config: Embedding.Config, *, rows_worth_a_copy: int | None = 2048) -> Embedding.Config:
    """Lets `symm_mem::fused_all_gather_matmul` and `symm_mem::fused_matmul_reduce_scatter` run on untax. torchtitan's layers call
    them with `tp_gemm_backend="dist_gemm"`, and torch.compile emits them with `--compile.enable_async_tensor_parallel`. Returns
    `config`. `rows_worth_a_copy` is that of `untax.torch.install`."""
    if is_on("torchtitan", "UNTAX_TORCHTITAN", VERSIONS, _log):
        install(rows_worth_a_copy)
        micro_pipeline.follow()
        _say_once()
    return config
