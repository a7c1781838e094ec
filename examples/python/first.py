"""A matrix product whose sum over all ranks is complete at every rank, by one kernel.

    torchrun --nproc-per-node 2 examples/python/first.py     # on GPUs where torch sees them, else on the CPU
"""

import torch
import torch.distributed as dist
import untax.torch

dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(rank)

x = torch.randn(512, 4096 // ranks, device=device).bfloat16()  # this rank's features of all tokens
w = torch.randn(4096 // ranks, 1024, device=device).bfloat16()  # and its rows of the weights
y = untax.torch.matmul_all_reduce(x, w)  # for y = x @ w; dist.all_reduce(y)

expected = x.float() @ w.float()
dist.all_reduce(expected)
error = ((y - expected).norm() / expected.norm()).item()
print(f"rank {rank}: relative error {error:.1e}\n", end="")  # in one piece, since torchrun does not buffer
dist.destroy_process_group()
