#!/usr/bin/env python3
"""Times attention by cuDNN, through PyTorch, on the shapes of `untax bench flash-attention --json FILE`, and says how
untax compares: its rate over cuDNN's, of each shape, the geometric mean and the least. Run both in the same minute;
several files of the same shapes count with their best time of each.

    untax bench flash-attention --json a.json && python3 bench/attention_torch.py a.json
"""
import argparse
import json
import math
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def seconds_of(row, backend, repeats):
    """Median of `repeats` timings of one call; None where the library has no kernel."""
    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "fp16": torch.float16}[row["type"]]

    def rows(count, heads):
        made = torch.randn(row["batch"], count, heads, row["head_dim"], device="cuda", dtype=kind)
        return made.transpose(1, 2)

    q = rows(row["queries"], row["heads"])
    k, v = (rows(row["keys"], row["kv_heads"]) for _ in range(2))
    # PyTorch's causal mask begins at the top left: only square ones are the same as ours.
    if row["causal"] and row["queries"] != row["keys"]:
        return None

    def call():
        return scaled_dot_product_attention(q, k, v, is_causal=row["causal"],
                                            enable_gqa=row["heads"] != row["kv_heads"])

    runs = max(1, min(50, round(2e12 / row["flops"])))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    try:
        with sdpa_kernel(backend), torch.no_grad():
            for repeat in range(-2, repeats):
                begin.record()
                for _ in range(runs):
                    call()
                end.record()
                end.synchronize()
                if repeat >= 0:
                    times.append(1e-3 * begin.elapsed_time(end) / runs)
    except RuntimeError:
        return None
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--json", help="write the figures")
    given = parser.parse_args()
    documents = [json.load(open(name, encoding="utf-8")) for name in given.files]
    ratios = []
    for i, row in enumerate(documents[0]["rows"]):
        own = min(d["rows"][i]["seconds"]["automatic"]["median"] for d in documents)
        library = seconds_of(row, SDPBackend.CUDNN_ATTENTION, given.repeat)
        row["cudnn"] = library
        shape = (f"{row['batch']} x {row['heads']}/{row['kv_heads']} x {row['head_dim']}, {row['queries']} x "
                 f"{row['keys']}{', causal' if row['causal'] else ''}")
        rate = row["flops"] / own * 1e-12
        if library is None:
            print(f"{shape:44} {rate:6.0f}      -     -")
            continue
        ratios.append(library / own)
        print(f"{shape:44} {rate:6.0f} {row['flops'] / library * 1e-12:6.0f} {ratios[-1]:6.3f}", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
        print(f"untax over cuDNN: geometric mean {mean:.3f}, least {min(ratios):.3f}, of {len(ratios)} shapes")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as out:
            json.dump(documents[0], out, indent=1)


if __name__ == "__main__":
    main()
