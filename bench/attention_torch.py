#!/usr/bin/env python3
"""Times attention by cuDNN, through PyTorch, on the shapes of `untax bench flash-attention --json FILE` or of one rank of
`untax bench flash-decode --ranks 1 --json FILE`, and says how untax compares: its rate over cuDNN's, of each shape, the
geometric mean and the least. Run both in the same minute; several files of the same shapes count with their best time of
each. Decode is timed in a CUDA graph, with keys that no cache holds, and with the better of two layouts for cuDNN.

    untax bench flash-attention --json a.json && python3 bench/attention_torch.py a.json
    untax bench flash-decode --ranks 1 --json b.json && python3 bench/attention_torch.py b.json
"""
import argparse
import json
import math
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


ROTATED_BYTES = 200 << 20  # more than three times L2
LEAST = 0.99  # the least rate of decode, over cuDNN's


def rows_of(document):
    """The rows of a document, of prefill or decode. The time of a decode row is that of one rank's kernel."""
    if "rows" in document:
        return [{**row, "own": row["seconds"]["automatic"]["median"]} for row in document["rows"]]
    return [{**problem, "type": document["dtype"], "queries": 1, "causal": False, "decode": True,
             "flops": 4 * problem["batch"] * problem["heads"] * problem["keys"] * problem["head_dim"],
             "own": next(f["seconds"]["median"] for f in problem["figures"] if f["by"] == "local")}
            for problem in document["problems"]]


def median_of(call, runs, repeats):
    """The median over `repeats` timings of the mean time of `runs` calls, after two timings that do not count."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for repeat in range(-2, repeats):
        begin.record()
        call()
        end.record()
        end.synchronize()
        if repeat >= 0:
            times.append(1e-3 * begin.elapsed_time(end) / runs)
    return statistics.median(times)


def seconds_of(row, backend, repeats, heads_first=False):
    """Seconds of one call; None if the library has no kernel, or the GPU no memory. `heads_first` is the layout of keys and
    values in memory."""
    # PyTorch's causal mask begins at the top left, so only square masks equal untax's.
    if row["causal"] and row["queries"] != row["keys"]:
        return None
    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "fp16": torch.float16}[row["type"]]
    decode = "decode" in row

    def rows(count, heads):
        shape = (row["batch"], heads, count) if heads_first else (row["batch"], count, heads)
        tensor = torch.randn(*shape, row["head_dim"], device="cuda", dtype=kind)
        return tensor if heads_first else tensor.transpose(1, 2)

    kv_bytes = 4 * row["batch"] * row["keys"] * row["kv_heads"] * row["head_dim"]
    places = max(2, min(16, ROTATED_BYTES // kv_bytes + 1)) if decode else 1
    runs = 2 * places if decode else max(1, min(50, round(2e12 / row["flops"])))

    def calls():
        for run in range(runs):
            k, v = kv[run % places]
            scaled_dot_product_attention(q, k, v, is_causal=row["causal"], enable_gqa=row["heads"] != row["kv_heads"])

    try:
        q = rows(row["queries"], row["heads"])
        kv = [(rows(row["keys"], row["kv_heads"]), rows(row["keys"], row["kv_heads"])) for _ in range(places)]
        with sdpa_kernel(backend), torch.no_grad():
            if not decode:
                return median_of(calls, runs, repeats)
            calls()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                calls()
            return median_of(graph.replay, runs, repeats)
    except RuntimeError:
        return None


def best_of_layouts(row, backend, repeats):
    times = [seconds_of(row, backend, repeats, first) for first in ([False, True] if "decode" in row else [False])]
    return min((f for f in times if f is not None), default=None)


def bars_of(ratios):
    """The bars of decode, as `untax bench --json` writes them."""
    figures = (("geometric mean", math.exp(statistics.fmean(math.log(r) for r in ratios))), ("least", min(ratios)))
    return [{"what": f"cuDNN / local kernel, {which}", "value": value, "at_least": LEAST, "met": value >= LEAST}
            for which, value in figures]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--json", help="write the figures")
    options = parser.parse_args()
    documents = [json.load(open(name, encoding="utf-8")) for name in options.files]
    ratios = []
    measured = [rows_of(document) for document in documents]
    for i, row in enumerate(measured[0]):
        own = min(rows[i]["own"] for rows in measured)
        library = best_of_layouts(row, SDPBackend.CUDNN_ATTENTION, options.repeat)
        documents[0]["rows" if "rows" in documents[0] else "problems"][i]["cudnn"] = library
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
    if ratios and "bars" in documents[0]:
        documents[0]["bars"] += bars_of(ratios)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(documents[0], out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
