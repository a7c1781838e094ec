"""A layer of a Llama with random weights, tensor-parallel in two ways, against the same in plain torch.

    torchrun --nproc-per-node 4 examples/python/llama_layer.py --model models/llama-3.2-1b.json
    torchrun --nproc-per-node 2 examples/python/llama_layer.py --device cuda    # a GPU for each process

The first way calls the operators of untax. The second calls those that torch's own asynchronous tensor parallelism
emits, and `untax.torch.install()` has them run on untax. `--shrink` divides the width of the model, so that it is quick.
"""

import argparse
import json

import torch
import torch.distributed as dist
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

import untax.torch

options = argparse.ArgumentParser()
options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
options.add_argument("--model", default="models/llama-3.2-1b.json")
options.add_argument("--tokens", type=int, default=64)
options.add_argument("--shrink", type=int, default=8)
chosen = options.parse_args()
with open(chosen.model) as file:
    config = json.load(file)

dist.init_process_group("gloo" if chosen.device == "cpu" else "nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
group = dist.group.WORLD.group_name
torch.set_default_device(f"cuda:{rank}" if chosen.device == "cuda" else "cpu")
if chosen.device == "cuda":
    torch.cuda.set_device(rank)
    torch.set_default_dtype(torch.bfloat16)  # kernels multiply bf16 and fp16
tolerance = 1e-5 if chosen.device == "cpu" else 2e-2
heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
width, hidden = config["hidden_size"] // chosen.shrink, config["intermediate_size"] // chosen.shrink
head_dim = width // heads

# Every rank has the layer as a whole, for comparison.
torch.manual_seed(7)
x = torch.randn(chosen.tokens, width)
whole = {name: torch.randn(rows, cols) / cols**0.5 for name, rows, cols in (
    ("q", width, width), ("k", kv_heads * head_dim, width), ("v", kv_heads * head_dim, width), ("o", width, width),
    ("gate", hidden, width), ("up", hidden, width), ("down", width, hidden))}


def attention(q, k, v):
    """Attention of some of the heads over all tokens. All ways share positions, so these are left out."""
    q, k, v = (t.unflatten(-1, (-1, head_dim)).transpose(0, 1) for t in (q, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(0, 1).flatten(1)


def layer(x, weights, gather, scatter):
    """`gather(x, weights)`: x of all tokens times each of `weights`. `scatter(x, weight)`: this rank's tokens of the sum."""
    q, k, v = gather(rms_norm(x, (width,)), [weights["q"], weights["k"], weights["v"]])
    x = x + scatter(attention(q, k, v), weights["o"])
    gate, up = gather(rms_norm(x, (width,)), [weights["gate"], weights["up"]])
    return x + scatter(silu(gate) * up, weights["down"])


expected = layer(x, whole, lambda x, several: [x @ w.t() for w in several], lambda x, w: x @ w.t())

# Ranks share features: rows of the weights that produce them, columns of those that consume them. They share tokens, too.
part = {name: w.chunk(ranks, 1 if name in ("o", "down") else 0)[rank].contiguous() for name, w in whole.items()}
mine = x.chunk(ranks)[rank]


def by_untax():
    ops = torch.ops.untax
    return layer(mine, part, lambda x, several: ops.all_gather_matmul(x, torch.cat(several).t(), 0, group).split(
        [len(w) for w in several], 1), lambda x, w: ops.matmul_reduce_scatter(x, w.t(), "sum", 0, group))


def by_torch():
    ops = torch.ops.symm_mem
    return layer(mine, part, lambda x, several: ops.fused_all_gather_matmul(
        x, [w.t() for w in several], 0, group, return_A=False)[1],
        lambda x, w: ops.fused_matmul_reduce_scatter(x, w.t(), "sum", 0, group))


untax.torch.install()
for way, run in (("operators of untax", by_untax), ("operators of torch, taken over", by_torch)):
    error = ((run() - expected.chunk(ranks)[rank]).norm() / expected.norm() * ranks**0.5).item()
    assert error < tolerance, f"rank {rank}, {way}: relative error {error}"
    if rank == 0:
        print(f"{way}, {ranks} ranks: relative error {error:.1e}, within the tolerance of {tolerance}")
if rank == 0:
    print(untax.torch.report())
untax.torch.close()
dist.destroy_process_group()
