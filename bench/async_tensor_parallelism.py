#!/usr/bin/env python3
"""Times the two operators that torch's asynchronous tensor parallelism emits, in three ways: torch's own, the same
operators taken over by `untax.torch.install()`, and a matmul beside NCCL's collective.

A process for each GPU:

    torchrun --nproc-per-node 2 bench/async_tensor_parallelism.py --json FILE

Shapes are the projections of a Llama of 70 B, split over the ranks. Times are of eager calls one after the other, as a
model without graphs makes them.
"""
import argparse
import json
import os
import subprocess
from datetime import datetime, timezone
from functools import partial
from statistics import quantiles

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import untax.torch

os.environ.setdefault("UNTAX_HEAP_BYTES", "8G")  # plans for up to 8192 rows of 8192 columns
CALLS = 10


def layers(ranks):
    """Name, operator, columns of the result at a rank, and k at a rank."""
    return (("qkv", "all_gather_matmul", 10240 // ranks, 8192), ("gate, up", "all_gather_matmul", 57344 // ranks, 8192),
            ("o", "matmul_reduce_scatter", 8192, 8192 // ranks), ("down", "matmul_reduce_scatter", 8192, 28672 // ranks))


def ways_of(operator, x, w, group):
    """The functions to time, by name: torch's implementations, untax's, which `install` puts into their place, and
    NCCL."""
    ranks = dist.get_world_size()
    if operator == "all_gather_matmul":
        gathered = x.new_empty(x.shape[0] * ranks, x.shape[1])

        def library():
            dist.all_gather_into_tensor(gathered, x)
            return gathered @ w

        return {"torch": lambda: symm_mem._fused_all_gather_matmul(x, [w], 0, group, return_A=False)[1][0],
                "untax": lambda: torch.ops.symm_mem.fused_all_gather_matmul(x, [w], 0, group, return_A=False)[1][0],
                "nccl": library}
    scattered = x.new_empty(x.shape[0] // ranks, w.shape[1])

    def library():
        dist.reduce_scatter_tensor(scattered, x @ w)
        return scattered

    return {"torch": lambda: symm_mem._fused_matmul_reduce_scatter(x, w, "sum", 0, group),
            "untax": lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(x, w, "sum", 0, group),
            "nccl": library}


def several(call):
    for _ in range(CALLS):
        call()


def timed(runs, repeats):
    """Seconds of a call, by way, measured in turn: the 10th, 50th and 90th percentile."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = {way: [] for way in runs}
    for repeat in range(-2, repeats):
        for way, run in runs.items():
            dist.barrier()
            begin.record()
            run()
            end.record()
            end.synchronize()
            if repeat >= 0:
                times[way].append(1e-3 * begin.elapsed_time(end) / CALLS)
    return {way: [quantiles(t, n=10)[place] for place in (0, 4, 8)] for way, t in times.items()}


def measured(name, operator, columns, k, tokens, repeats):
    ranks, group = dist.get_world_size(), dist.group.WORLD.group_name
    rows = tokens // ranks if operator == "all_gather_matmul" else tokens
    x = torch.randn(rows, k, device="cuda").bfloat16()
    w = (torch.randn(columns, k, device="cuda") / k**0.5).bfloat16().t()
    ways = ways_of(operator, x, w, group)
    expected = ways["nccl"]().double()
    for way, call in ways.items():
        error = ((call().double() - expected).norm() / expected.norm()).item()
        assert error < 2e-2, f"{name}, {tokens} tokens, {way}: relative error {error}"
    return {"layer": name, "operator": operator, "tokens": tokens, "n": columns, "k": k,
            "eager": timed({way: partial(several, call) for way, call in ways.items()}, repeats)}


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().split("\n")[0]


def place():
    """The fields that name the origin of the figures."""
    return {"format": "untax-async-tensor-parallelism",
            "commit": said_by("git", "describe", "--always", "--dirty", "--abbrev=12"),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "device": torch.cuda.get_device_name(),
            "driver": said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
            "runtime": f"CUDA {torch.version.cuda}", "dtype": "bf16",
            "library": f"torch {torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}"}


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--tokens", type=int, nargs="+", default=[64, 256, 1024, 4096, 8192])
    asked.add_argument("--repeat", type=int, default=15)
    asked.add_argument("--json", help="write the figures to this file")
    chosen = asked.parse_args()
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    untax.torch.install()
    rows = []
    for layer in layers(ranks):
        for tokens in chosen.tokens:
            rows.append(measured(*layer, tokens, chosen.repeat))
            if rank == 0:
                print(f"{layer[0]:10}{tokens:6} tokens: " + ", ".join(
                    f"{way} {1e6 * t[1]:.1f} us" for way, t in rows[-1]["eager"].items()), flush=True)
    if rank == 0:
        print(untax.torch.report())
        if chosen.json:
            with open(chosen.json, "w") as out:
                json.dump(place() | {"ranks": ranks, "repeats": chosen.repeat,
                                     "unit": "seconds: 10th, 50th and 90th percentile", "rows": rows}, out, indent=1)
                out.write("\n")
    untax.torch.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
