"""A tensor-parallel MLP, against the same in plain torch.

    torchrun --nproc-per-node 4 examples/python/mlp.py --device cpu
    torchrun --nproc-per-node 2 examples/python/mlp.py --device cuda    # a GPU for each process
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.functional import gelu

import untax.torch

options = argparse.ArgumentParser()
options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
options.add_argument("--tokens", type=int, default=256)
options.add_argument("--width", type=int, default=128)
options.add_argument("--hidden", type=int, default=512)
chosen = options.parse_args()

dist.init_process_group("gloo" if chosen.device == "cpu" else "nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
if chosen.device == "cuda":
    torch.cuda.set_device(rank)
    torch.set_default_dtype(torch.bfloat16)  # kernels multiply bf16 and fp16
tolerance = 1e-5 if chosen.device == "cpu" else 2e-2

# Every rank has the layer as a whole, for comparison, and takes its part of it.
torch.manual_seed(7)
up = torch.nn.Linear(chosen.width, chosen.hidden, device=chosen.device)
down = torch.nn.Linear(chosen.hidden, chosen.width, device=chosen.device)
x = torch.randn(chosen.tokens, chosen.width, device=chosen.device)
column = untax.torch.ColumnParallelLinear.of(up)
row = untax.torch.RowParallelLinear.of(down)

# Each rank has some of the tokens, and ends with the results of these.
mine = x.chunk(ranks)[rank]
with torch.no_grad():
    y = row(gelu(column(mine)))
    expected = down(gelu(up(x))).chunk(ranks)[rank]
error = ((y - expected).norm() / expected.norm()).item()
assert error < tolerance, f"rank {rank}: relative error {error}"

# The plans of the two products.
world = untax.torch.world_of(device=chosen.device)
if rank == 0:
    print(f"{ranks} ranks, {world.kind}: relative error {error:.1e}, within the tolerance of {tolerance}")
    print("\n".join(untax.torch.explain()))
untax.torch.close()
dist.destroy_process_group()
