"""The symmetric memory that operators of torch.ops.untax take, at their defaults: of the projections of Llama-3.1-8B, 70B and
405B with their two all-reduces of activations, at 8192 and 32768 tokens. An operator may take twice the largest operand or
result that peers write, and 64 MiB (all_reduce_rms_norm has two such results). Beyond that the script ends with 1.

Usage: torchrun --nproc-per-node RANKS bench/symmetric_memory.py [--tokens N ...] [--models NAME ...] [--json FILE]
"""

import argparse
import json
import os

import torch
import torch.distributed as dist

import untax.torch as untax_torch
from layers import record

MEGA = 1 << 20
# hidden size, columns of qkv, columns of gate and up, of all ranks together
MODELS = {"llama-3.1-8b": (4096, 6144, 28672), "llama-3.1-70b": (8192, 10240, 57344),
          "llama-3.1-405b": (16384, 18432, 106496)}


def operators(hidden, qkv, gate_up, tokens, ranks, group):
    """Name, bytes that peers write, and a call that plans the operator and runs it once."""
    def matrix(rows, cols):
        return torch.zeros(rows, cols, dtype=torch.bfloat16, device="cuda")

    activations = 2 * tokens * hidden
    for name, cols in (("qkv", qkv), ("gate_up", gate_up)):
        yield (f"{name}: all_gather_matmul", activations, lambda cols=cols: torch.ops.untax.all_gather_matmul(
            matrix(tokens // ranks, hidden), matrix(cols // ranks, hidden).t(), 0, group))
    for name, depth in (("o", hidden), ("down", gate_up // 2)):
        yield (f"{name}: matmul_reduce_scatter", activations, lambda depth=depth: torch.ops.untax.matmul_reduce_scatter(
            matrix(tokens, depth // ranks), matrix(hidden, depth // ranks).t(), "sum", 0, group))
        yield (f"{name}: matmul_all_reduce", activations, lambda depth=depth: torch.ops.untax.matmul_all_reduce(
            matrix(tokens, depth // ranks), matrix(hidden, depth // ranks).t(), "sum", group))
    yield ("o: matmul_all_scatter", activations, lambda: torch.ops.untax.matmul_all_scatter(
        matrix(tokens, hidden), matrix(hidden // ranks, hidden).t(), group))
    yield ("all_reduce_rms_norm", 2 * activations, lambda: torch.ops.untax.all_reduce_rms_norm(
        matrix(tokens, hidden), matrix(tokens, hidden), matrix(1, hidden)[0], 1e-6, group))
    yield ("all_reduce", activations, lambda: torch.ops.untax.all_reduce(matrix(tokens, hidden), "sum", group))
    yield ("all_gather", activations, lambda: torch.ops.untax.all_gather(matrix(tokens // ranks, hidden), 0, group))
    yield ("reduce_scatter", activations, lambda: torch.ops.untax.reduce_scatter(matrix(tokens, hidden), "sum", 0, group))


def measured(model, tokens, ranks, group):
    world = untax_torch.world_of(device="cuda")
    for name, written, call in operators(*MODELS[model], tokens, ranks, group):
        before = world.heap_used
        call()
        torch.cuda.synchronize()
        for _ in range(2):  # after these barriers the memory that planning has dropped is free again
            world.barrier()
        yield {"model": model, "tokens": tokens, "operator": name, "written": written, "taken": world.heap_used - before,
               "bound": 2 * written + 64 * MEGA}
    untax_torch.close()
    torch.cuda.empty_cache()


def write(path, place, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "untax-symmetric-memory", **place, "operators": results}, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=sorted(MODELS))
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD.group_name
    place = record.place("cuda")
    results = []
    for model in options.models:
        for tokens in options.tokens:
            for result in measured(model, tokens, ranks, group):
                results.append(result)
                if rank == 0:
                    verdict = "within" if result["taken"] <= result["bound"] else "OVER"
                    print(f"{model:15} {tokens:6} {result['operator']:30} takes {result['taken'] / MEGA:8.1f} MiB, bound "
                          f"{result['bound'] / MEGA:8.1f}: {verdict}", flush=True)
                    if options.json:  # writes the results so far, in case a time limit ends the script
                        write(options.json, place, results)
    over = sum(result["taken"] > result["bound"] for result in results)
    if rank == 0:
        print(f"{over} over the bound")
    untax_torch.close()
    dist.destroy_process_group()
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
