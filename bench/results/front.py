"""The figures of the project's README, and the picture of the taxes."""
from math import exp, log

import kernels
import norm
import torch_layers
import whole_layers
from attention import shape_of_heads
from compared import shape
from tables import table, timed

PARTS = [("launch", "launch tax", "#d1242f"), ("engine", "engine", "#9a6700"),
         ("bulk_synchronous", "bulk-synchronous tax", "#d1242f"), ("locality", "locality tax", "#d1242f"),
         ("remainder", "remainder", "#9a6700"), ("bound", "bound", "#1a7f37")]
KB, MB = 1 << 10, 1 << 20


def ranks_of(document):
    return document.get("ranks") or max((p["ranks"] for p in document.get("problems", []) if "ranks" in p), default=0)


def of_most_ranks(found):
    """Of what was measured with several numbers of GPUs, the files with the largest one; only of today's kernels where there
    are such files."""
    def kind(document):
        return document.get("operator"), document.get("suite")

    kept = {}
    for name, files in found.items():
        fresh = {kind(d) for _, d in files if not kernels.older(d)}
        files = [(path, d) for path, d in files if kind(d) not in fresh or not kernels.older(d)]
        most = {kind(d): max(ranks_of(other) for _, other in files if kind(other) == kind(d)) for _, d in files}
        kept[name] = [(path, d) for path, d in files if ranks_of(d) == most[kind(d)]]
    return kept


def overlap_factors(document):
    """(factor, shape, ours, library) of each problem: the quickest pattern beside the library in a graph."""
    found = []
    for p in document["problems"]:
        ours, library = timed(p, p["best"]) if "best" in p else None, timed(p, "bulk_library graph")
        if ours and library:
            found.append((library / ours, shape(p), ours, library))
    return found


def attention_factors(document):
    found = []
    for p in document["problems"]:
        ours, library = timed(p, "fused_sequential"), timed(p, "bulk_library")
        if ours and library:
            what = f"batch {p['batch']}, {p['keys'] // 1024}K keys a rank, heads {shape_of_heads(p)}"
            found.append((library / ours, what, ours, library))
    return found


def collective_factors(document, name):
    found = []
    for row in document["collectives"]:
        times = {f["by"]: f["seconds"]["median"] for f in row["figures"] if "seconds" in f}
        library = min((t for by, t in times.items() if by.startswith("NCCL")), default=None)
        ours = min((t for by, t in times.items() if not by.startswith("NCCL")), default=None)
        if row["collective"] == name and library and ours:
            size = f"{row['bytes'] // MB} MB" if row["bytes"] >= MB else f"{row['bytes'] // KB} KB"
            found.append((library / ours, size, ours, library))
    return found


def median_row(operator, document, factors):
    """The problem with the median factor; of an even number the lower one."""
    operator += " (older kernels)" if kernels.older(document) else ""
    factor, what, ours, library = sorted(factors)[(len(factors) - 1) // 2]
    return [operator, what, f"{1e6 * ours:.1f}", f"{1e6 * library:.1f}", f"{factor:.2f}x"]


def text(found):
    """The README's figures: what PyTorch gets, then the operators. `found` has the files of the largest number of GPUs."""
    def newest(format_name):
        return [d for _, d in sorted(found[format_name], key=lambda file: file[1]["date"], reverse=True)]

    called = "".join(whole_layers.front(d) for d in newest("untax-torch-layers"))
    called += "".join("\n" + torch_layers.sentence(d) for d in newest("untax-async-tensor-parallelism"))
    called = called.strip("\n") + "\n" if called else ""
    operators = of_operators(found)
    return called + "\n" + operators if called and operators else called or operators or "There are none yet.\n"


def of_operators(found):
    """One sentence, and one row for each operator."""
    everything = [d for _, d in found["untax-bench-overlap"]]
    if not everything:
        return ""
    one = max(everything, key=lambda d: (not kernels.older(d), ranks_of(d)))
    overlaps = [d for d in everything if place_of(d) == place_of(one)]
    factors = [factor for d in overlaps for factor, *_ in overlap_factors(d)]
    rows = [median_row(f"{d['operator']}, {d['suite']}", d, overlap_factors(d)) for d in overlaps
            if has_most_shapes(d, overlaps)]
    rows += [median_row("flash_decode", d, attention_factors(d)) for _, d in found["untax-bench-attention"]
             if attention_factors(d)]
    for _, d in found["untax-bench-collectives"]:
        rows += [median_row(name, d, collective_factors(d, name)) for name in ("all_gather", "all_reduce")]
    rows += [median_row(f"{d['operator']}, {d['suite']}, {place_of(d)}", d, overlap_factors(d)) for d in everything
             if place_of(d) != place_of(one) and has_most_shapes(d, everything)]
    rows += [median_row(f"all_reduce_norm, {place_of(d)}", d, norm.factors(d)) for _, d in found["untax-bench-norm"]]
    mean = exp(sum(log(f) for f in factors) / len(factors))
    return (f"On {one['ranks']} {one['device']} with NVLink, the fused GEMM operators are **{mean:.2f} times as fast** as "
            f"cuBLASLt with NCCL in a CUDA graph: the geometric mean of {len(factors)} shapes of prefill and decode "
            f"({min(factors):.2f} to {max(factors):.2f}).\n\n"
            + table(["operator", "shape", "ours, us", "library, us", "factor"], rows, left=2)
            + "\nEach row is the shape with the median factor of its suite, in a CUDA graph, in the quickest of untax's patterns; "
            "`automatic`, the default, chooses one. *Older kernels*: those of the "
            "operator have changed since it was measured. Shapes of GEMMs are M x N x K. The library is "
            "cuBLASLt with NCCL, NCCL alone for collectives, NCCL and a kernel that normalises for all_reduce_norm, and our "
            "attention kernel with NCCL for flash_decode. "
            "[More figures, and what is missed](bench/results/README.md).\n")


def place_of(document):
    """"2 H100"."""
    return f"{document['ranks']} {document['device'].removeprefix('NVIDIA ').split()[0]}"


def has_most_shapes(document, overlaps):
    """Whether this is the largest file of its operator and suite: another has a public kernel's shapes only, or rows that
    were drawn."""
    same = [d for d in overlaps
            if (d["operator"], d["suite"]) == (document["operator"], document["suite"]) and "seed" not in d]
    return "seed" not in document and max(same, key=lambda d: len(d["problems"])) is document


def picture(document):
    """E0 of an average layer taken apart: each bar begins where the one above it ended."""
    layer = document["average_layer"]
    whole = layer["total"]
    left, right, step = 190, 560, 30
    title = (f"{document['model']}, {document['gpus']}, {document['tokens']} tokens: an average layer, "
             f"{1e6 * whole:.0f} us in bulk-synchronous form")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {70 + step * (len(PARTS) + 1)}" role="img">',
             f"<title>{title}</title>",
             "<style>text{font:14px system-ui,sans-serif;fill:#1f2328}.base{fill:#d1d9e0}"
             "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.base{fill:#3d444d}}</style>",
             f'<text x="10" y="24" font-weight="bold">{title}</text>']
    level = whole
    bars_shown = [("E0, bulk-synchronous", whole, whole, None)]
    for key, name, colour in PARTS:
        bars_shown.append((name, layer[key], level, colour))
        level -= layer[key]
    for i, (name, value, end, colour) in enumerate(bars_shown):
        y = 46 + i * step
        low, high = sorted((end - value, end))
        x, width = left + right * 0.75 * low / whole, max(right * 0.75 * (high - low) / whole, 1)
        fill = f'fill="{colour}"' if colour else 'class="base"'
        lines += [f'<text x="10" y="{y + 15}">{name}</text>',
                  f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" {fill}/>',
                  f'<text x="{left + right * 0.75 + 12:.0f}" y="{y + 15}">{1e6 * value:.1f} us, '
                  f'{100 * value / whole:.0f} %</text>']
    return "\n".join(lines) + "\n</svg>\n"


def pictured(found):
    """The report of the fewest tokens on the most GPUs, or None."""
    taxes = [d for _, d in found["untax-taxes"] if "gpus" in d]
    return max(taxes, key=lambda d: (d["tensor_parallel"], -d["tokens"]), default=None)
