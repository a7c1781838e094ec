"""A model that DTensor has split over ranks, compiled; untax runs the operators that torch.compile emits for it.

    torchrun --nproc-per-node 2 examples/python/dtensor.py     # on GPUs where torch sees them, else on the CPU
"""

import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import silu

import untax.torch

dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
kind, dtype, tolerance = ("cuda", torch.bfloat16, 2e-2) if torch.cuda.is_available() else ("cpu", torch.float32, 1e-4)
if kind == "cuda":
    torch.cuda.set_device(rank)


class MLP(torch.nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = (torch.nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(silu(self.gate(x)) * self.up(x))


torch.manual_seed(7)  # the same weights and tokens at every rank
model = MLP(256, 512).to(kind, dtype)
x = torch.randn(64 * ranks, 256).to(kind, dtype)
x.requires_grad_()
expected = model(x)
expected.sum().backward()
expected_gradient = x.grad.chunk(ranks)[rank]

# As torch's documentation splits a model: tokens are sharded, and features within the layer.
mesh = dist.init_device_mesh(kind, (ranks,))
split = ColwiseParallel(input_layouts=Shard(0))
parallelize_module(model, mesh, {"gate": split, "up": split, "down": RowwiseParallel(output_layouts=Shard(0))})

# torch.compile turns gather and product, product and scatter, into symm_mem::fused_*, and untax takes these over.
untax.torch.install(async_tp=True)
compiled = torch.compile(model)

mine = x.detach().chunk(ranks)[rank].clone().requires_grad_()
y = compiled(mine)
y.sum().backward()

for name, got, right in (("result", y, expected.chunk(ranks)[rank]), ("gradient", mine.grad, expected_gradient)):
    error = ((got - right).float().norm() / right.float().norm()).item()
    assert error < tolerance, f"rank {rank}: {name} has a relative error of {error}"
if rank == 0:
    print(f"{ranks} ranks: result and gradient are within the tolerance of {tolerance}")
    print(untax.torch.report())
untax.torch.close()
dist.destroy_process_group()
