"""Gradients through a sum over ranks, beside those of the whole product.

    torchrun --nproc-per-node 2 examples/python/gradients.py     # on GPUs where torch sees them, else on the CPU
"""

import torch
import torch.distributed as dist

import untax.torch

dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
kind, dtype, tolerance = ("cuda", torch.bfloat16, 2e-2) if torch.cuda.is_available() else ("cpu", torch.float32, 1e-4)
if kind == "cuda":
    torch.cuda.set_device(rank)

torch.manual_seed(7)  # the same tensors at every rank
whole_x = torch.randn(64, 64 * ranks).to(kind, dtype).requires_grad_()
whole_w = torch.randn(64 * ranks, 32).to(kind, dtype).requires_grad_()
scale = torch.randn(32).to(kind, dtype).requires_grad_()
((whole_x @ whole_w) * scale).square().mean().backward()
expected = whole_x.grad.chunk(ranks, 1)[rank], whole_w.grad.chunk(ranks)[rank], scale.grad.clone()
scale.grad = None

x = whole_x.detach().chunk(ranks, 1)[rank].contiguous().requires_grad_()
w = whole_w.detach().chunk(ranks)[rank].contiguous().requires_grad_()
# Every rank computes the same loss of the same y, and backward adds the losses of all ranks.
loss = (untax.torch.matmul_all_reduce(x, w) * scale).square().mean()
(loss / ranks).backward()  # x.grad and w.grad are those of this rank's shards
dist.all_reduce(scale.grad)  # a parameter that every rank has whole, and uses without untax

for name, got, right in zip(("x", "w", "scale"), (x.grad, w.grad, scale.grad), expected):
    error = ((got - right).float().norm() / right.float().norm()).item()
    assert error < tolerance, f"rank {rank}: the gradient of {name} has a relative error of {error}"
if rank == 0:
    print(f"{ranks} ranks: the gradients are right")
dist.destroy_process_group()
