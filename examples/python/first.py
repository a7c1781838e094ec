"""A matrix product whose sum over all ranks is complete at every rank, by one kernel, compared with torch's all-reduce.

    torchrun --nproc-per-node 2 examples/python/first.py     # on GPUs where torch sees them, else on the CPU
"""

import torch
import torch.distributed as dist
import untax.torch

dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
if torch.cuda.is_available():
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
torch.manual_seed(rank)

x = torch.randn(512, 4096 // ranks, device=device).bfloat16()  # this rank's features of all tokens
w = torch.randn(4096 // ranks, 1024, device=device).bfloat16()  # the rows of the weights for these features
y = untax.torch.matmul_all_reduce(x, w)  # in place of y = x @ w; dist.all_reduce(y)

expected = x.float() @ w.float()
dist.all_reduce(expected)
error = ((y - expected).norm() / expected.norm()).item()
assert error < 1e-2, f"rank {rank}: relative error {error}"
print(f"rank {rank} of {ranks}: untax on {y.device}, relative error {error:.1e}\n", end="")
dist.destroy_process_group()
