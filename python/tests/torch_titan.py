"""The ranks of test_adapters.py in torchtitan: a tiny Llama that torchtitan splits, compiles and trains, on untax by its override.

Usage: torchrun --nproc-per-node N torch_titan.py compiled|fused. Ends with status 0 where all is well.
"""

import copy
import logging
import os
import sys
import types

import torch
import torch.distributed as dist
import torchtitan.tools.utils as tools
from torch.distributed.tensor import DTensor, distribute_tensor

# torchtitan takes CUDA where no device is, and imports its trainer, with packages for data and logs, to tell who asks.
tools.device_type, tools.device_module = "cpu", torch.cpu
trainer = sys.modules["torchtitan.trainer"] = types.ModuleType("torchtitan.trainer")
trainer.Trainer = type("Trainer", (), {"Config": type("Config", (), {})})

from torchtitan.config import (  # noqa: E402
    CompileConfig,
    OverrideConfig,
    ParallelismConfig,
    TrainingConfig,
    apply_overrides,
)
from torchtitan.distributed import ParallelDims, utils  # noqa: E402
from torchtitan.models.common.attention import ScaledDotProductAttention  # noqa: E402
from torchtitan.models.llama3 import model_registry  # noqa: E402

import untax.torch  # noqa: E402

OVERRIDE = "untax.adapters.torchtitan.async_tp"
TOLERANCE = 1e-4
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
said = []
log = logging.getLogger("untax")
log.setLevel(logging.INFO)
log.addHandler(type("Listener", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())


def product_with_other_type(a, b, out_dtype):
    """torch has it for GPUs alone; torchtitan's own layers take it for gradients of weights."""
    return a.to(out_dtype) @ b.to(out_dtype)


aten = torch.library.Library("aten", "IMPL")
aten.impl("mm.dtype", product_with_other_type, "CPU")


def near(got, right, case):
    error = ((got - right).norm() / right.norm()).item()
    assert got.shape == right.shape and error <= TOLERANCE, f"rank {rank}: {case}: error {error}"


def step(backend, sequences, compiled=False):
    """Logits and gradients of a step, beside those of the model in one process, by torchtitan's usual layers, compiled, or by its
    layers that call fused operators. Returns the number of calls of these."""
    case = f"{backend}, {'compiled' if compiled else 'fused'} layers, {sequences} sequences"
    utils.set_spmd_backend(backend)
    dims = ParallelDims(dp_replicate=1, dp_shard=1, cp=1, tp=ranks, pp=1, ep=1, world_size=ranks, spmd_backend=backend)
    dims.build_mesh()
    parallelism = ParallelismConfig(tensor_parallel_degree=ranks, data_parallel_shard_degree=1, spmd_backend=backend)
    spec = model_registry("debugmodel", tp_gemm_backend="default" if compiled else "dist_gemm")
    spec.model.layers = spec.model.layers[:1]
    for layer in spec.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()  # others are for GPUs
    whole = copy.deepcopy(spec.model).build()
    spec.model.update_from_config(config=types.SimpleNamespace(parallelism=parallelism))
    line, = apply_overrides(OverrideConfig(imports=[(OVERRIDE, {"rows_worth_a_copy": None})]), spec.model)
    assert OVERRIDE in line and "tok_embeddings" in line, line
    with torch.device("meta"):
        model = spec.model.build()
    model = spec.parallelize_fn(
        model, parallel_dims=dims, training=TrainingConfig(mixed_precision_param="float32"), parallelism=parallelism,
        compile_config=CompileConfig(enable=compiled, enable_async_tensor_parallel=compiled), ac_config=None, dump_folder="")
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.init_weights(buffer_device=None)
        whole.init_weights(buffer_device=None)
        generator = torch.Generator().manual_seed(11)
        wholes = dict(whole.named_parameters())
        for name, parameter in model.named_parameters():
            wholes[name].copy_(torch.randn(wholes[name].shape, generator=generator) * 0.05 + (wholes[name].dim() == 1))
            parameter.to_local().copy_(distribute_tensor(wholes[name], parameter.device_mesh, parameter.placements,
                                                         src_data_rank=None).to_local())
    tokens = torch.randint(2048, (sequences, 8 * ranks), generator=generator)
    untax.torch.forget()
    with utils.get_spmd_context(parallel_dims=dims)():
        logits = model(tokens)
        logits = logits.to_local() if isinstance(logits, DTensor) else logits
        logits.square().mean().backward()  # of this rank's part of the vocabulary
    expected = whole(tokens)
    expected.square().mean().mul(ranks).backward()
    near(logits, expected.chunk(ranks, -1)[rank], f"{case}: logits")
    for name, parameter in model.named_parameters():
        near(parameter.grad.full_tensor(), wholes[name].grad, f"{case}: gradient of {name}")
    calls = untax.torch.report()
    ran = {name: sum(number for (operator, way), number in calls.items() if operator == name and way.startswith("by untax"))
           for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter")}
    assert not any(way.startswith("by torch") for _, way in calls), f"{case}: {calls}"
    return ran


def switched_off():
    os.environ["UNTAX_TORCHTITAN"] = "0"
    spec = model_registry("debugmodel")
    before = spec.model.tok_embeddings
    apply_overrides(OverrideConfig(imports=[OVERRIDE]), spec.model)
    assert spec.model.tok_embeddings is before and said[-1] == "untax is off, since UNTAX_TORCHTITAN is 0", said
    assert "symm_mem::fused_matmul_reduce_scatter" not in " ".join(said)
    del os.environ["UNTAX_TORCHTITAN"]


switched_off()
layers = sys.argv[1]
if layers == "compiled":
    # A layer gathers before attention and before its MLP, and in the backward pass of what follows each. Two products are summed
    # before the gradient of the MLP's input is scattered, which leaves three of four.
    for backend, sequences in (("spmd_types", 2), ("partial_dtensor", 1)):
        ran = step(backend, sequences, compiled=True)
        assert ran == {"fused_all_gather_matmul": 4, "fused_matmul_reduce_scatter": 3}, f"{backend}: {ran}"
else:
    ran = step("spmd_types", 2)
    # torchtitan's layers gather twice more, for gradients of weights, and scatter both gradients of the MLP's input at once.
    assert ran == {"fused_all_gather_matmul": 6, "fused_matmul_reduce_scatter": 4}, ran
assert said.count("untax takes over symm_mem::fused_all_gather_matmul and symm_mem::fused_matmul_reduce_scatter") == (rank == 0), said
if rank == 0:
    assert "fused_matmul_reduce_scatter: by untax, fused" in said, said
print(f"rank {rank}: {layers} layers are right\n", end="")
untax.torch.close()
dist.destroy_process_group()
