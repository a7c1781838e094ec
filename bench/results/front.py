"""The figures of the project's README, and the picture of the taxes."""
import kernels
import torch_layers
import torch_models
import whole_layers
from attention import shape_of_heads
from compared import shape
from tables import table, timed

PARTS = [("launch", "launch tax", "#d1242f"), ("engine", "engine", "#9a6700"),
         ("bulk_synchronous", "bulk-synchronous tax", "#d1242f"), ("locality", "locality tax", "#d1242f"),
         ("joint", "joint tax", "#d1242f"), ("stand_in", "cost of the stand-in", "#9a6700"),
         ("remainder", "remainder", "#9a6700"), ("bound", "bound", "#1a7f37")]
MAYBE = ("joint", "stand_in")
KB, MB = 1 << 10, 1 << 20


def ranks_of(document):
    return document.get("ranks") or max((p["ranks"] for p in document.get("problems", []) if "ranks" in p), default=0)


def of_most_ranks(documents):
    """The files of each format with the largest number of GPUs; only files of today's kernels if there are any."""
    def kind(document):
        return document.get("operator"), document.get("suite"), torch_models.subject(document)

    kept = {}
    for name, files in documents.items():
        fresh = {kind(d) for _, d in files if not kernels.older(d)}
        files = [(path, d) for path, d in files if kind(d) not in fresh or not kernels.older(d)]
        most = {kind(d): max(ranks_of(other) for _, other in files if kind(other) == kind(d)) for _, d in files}
        kept[name] = [(path, d) for path, d in files if ranks_of(d) == most[kind(d)]]
    return kept


def overlap_factors(document):
    """(factor, shape, untax's time, the library's time) of each problem: the quickest pattern beside the library in a
    graph."""
    rows = []
    for p in document["problems"]:
        ours, library = timed(p, p["best"]) if "best" in p else None, timed(p, "bulk_library graph")
        if ours and library:
            rows.append((library / ours, shape(p), ours, library))
    return rows


def attention_factors(document):
    rows = []
    for p in document["problems"]:
        ours, library = timed(p, "fused_sequential"), timed(p, "bulk_library")
        if ours and library:
            problem = f"batch {p['batch']}, {p['keys'] // 1024}K keys a rank, heads {shape_of_heads(p)}"
            rows.append((library / ours, problem, ours, library))
    return rows


def collective_factors(document, name):
    rows = []
    for row in document["collectives"]:
        times = {f["by"]: f["seconds"]["median"] for f in row["figures"] if "seconds" in f}
        library = min((t for way, t in times.items() if way.startswith("NCCL")), default=None)
        ours = min((t for way, t in times.items() if not way.startswith("NCCL")), default=None)
        if row["collective"] == name and library and ours:
            size = f"{row['bytes'] // MB} MB" if row["bytes"] >= MB else f"{row['bytes'] // KB} KB"
            rows.append((library / ours, size, ours, library))
    return rows


def newest(documents, name):
    return [d for _, d in sorted(documents[name], key=lambda file: file[1]["date"], reverse=True)]


def place_of(document):
    """"2 H100"."""
    return f"{document['ranks']} {document['device'].removeprefix('NVIDIA ').split()[0]}"


def text(documents):
    """The README's figures: those of calls from PyTorch. `found` has the files of the largest number of GPUs; figures
    of operators alone are on the page of results."""
    called = newest(documents, "untax-torch-layers")
    shown = [d for d in called if not whole_layers.asked(d)][:1]
    parts = [torch_models.of_front(documents[torch_models.FORMAT])] + [of_layers(d) for d in shown] + [of_projections(newest(documents, "untax-async-tensor-parallelism")),
                                             of_slower(shown + [d for d in called if whole_layers.asked(d)][:1])]
    return "\n".join(part for part in parts if part) or "There are none yet.\n"


def of_layers(document):
    """The table of whole layers, after a text about the measurement."""
    factors_of = {}
    for phase, fewest in (("prefill", 2048), ("decode", 0)):
        mode = whole_layers.MODES[phase]
        factors_of[phase] = [whole_layers.factor(row, mode) for row in whole_layers.rows_of(document, "layer")
                        if row["name"] == phase and row["tokens"] >= fewest and whole_layers.factor(row, mode)]
    if not all(factors_of.values()):
        return ""

    def summary(phase):
        factors = factors_of[phase]
        return f"{whole_layers.mean(factors):.2f} over {len(factors)} layers ({min(factors):.2f} to {max(factors):.2f})"

    return (f"{multicast(document)}\n"
            f"**Whole layers**, called from PyTorch in {document['dtype']} on {place_of(document)}, in microseconds a layer; the factor is the "
            "time of the faster of NCCL and torch over that of untax. *Prefill* is a layer over the tokens of a prompt, in eager mode: "
            f"{summary('prefill')} of at least 2048 tokens. *Decode* is a layer over one new token for each sequence, in a CUDA graph: "
            f"{summary('decode')}. Means are geometric, over all layers; the table has some of them.\n\n{whole_layers.shown(document)}\n"
            "NCCL: torch's matmul and NCCL's collectives. torch: all-reduces on symmetric memory or asynchronous tensor parallelism, "
            "whichever is quicker. untax: at its defaults, the quickest of `matmul_all_reduce`, `all_reduce_rms_norm` and, in prefill, "
            "gather and scatter.\n")


def multicast(document):
    """A sentence about missing multicast, from the recorded environment."""
    if not whole_layers.baseline(document):
        return ""
    return (f"Layers and projections were measured between {document['ranks']} GPUs **with NVLink multicast off** and NCCL's buffers unregistered. On HGX "
            "machines, where multicast is on, NCCL and torch are faster than shown; untax does not use multicast. There are no figures "
            "of them with multicast, nor for 8 GPUs.\n")


def of_projections(documents):
    """The table of projections of models that torch compiles with its asynchronous tensor parallelism."""
    if not documents:
        return ""
    rows, slower = [], []
    for d in documents:
        rivals = [torch_layers.mean_factor(d["rows"], way) for way in ("nccl", "torch")]
        others = torch_layers.without_multicast_path(d["rows"])
        rows.append([place_of(d), str(len(d["rows"])), *(f"{factor:.2f}x" for factor in rivals),
                     f"{torch_layers.mean_factor(others, 'torch'):.2f}x"])
        slower.append(rivals[1] / rivals[0])
    tokens = [row["tokens"] for d in documents for row in d["rows"]]
    old = " The kernels have changed since." if any(kernels.older(d) for d in documents) else ""
    least, most = (f"{end:.1f}" for end in (min(slower), max(slower)))
    how_much = f"{least} times" if least == most else f"{least} to {most} times"
    return (f"**Projections that torch compiles for asynchronous tensor parallelism**, taken over by `untax.torch.install()`, in eager mode, "
            f"of {min(tokens)} to {max(tokens)} tokens. At these sizes torch's own operators take {how_much} as long as matmul and NCCL, which "
            "is why the factors beside them are larger than those of whole layers, which are beside the faster of the two.\n\n"
            + table(["GPUs", "projections", "matmul and NCCL / untax", "torch's operators / untax",
                     "the same without its multicast path"], rows, left=1)
            + f"\nGeometric means. torch gathers up to {torch_layers.MULTICAST_ROWS} rows by multicast where that is on; the last column leaves "
            f"these projections out.{old}\n")


def of_slower(documents):
    """The cases in which untax is slower than the faster rival."""
    def count(document, kind, mode):
        rows = [row for row in whole_layers.rows_of(document, kind) if whole_layers.factor(row, mode)]
        slow = [row for row in rows if whole_layers.factor(row, mode) < 1]
        return rows, slow, min((whole_layers.factor(row, mode) for row in slow), default=1)

    said = []
    for document in documents:
        drawn = whole_layers.asked(document)
        kind = "projection" if drawn else "layer"
        for mode in whole_layers.modes_of(document):
            rows, slow, least = count(document, kind, mode)
            if slow:
                tokens = [row["tokens"] for row in slow]
                said.append(f"{len(slow)} of {len(rows)} {kind}s{', at random numbers of tokens,' if drawn else ''} "
                            f"{'in eager mode' if mode == 'eager' else 'in graphs'} (least factor {least:.2f}, "
                            f"{min(tokens)} to {max(tokens)} tokens)")
    if not said:
        return ""
    return (f"**untax is slower** than the faster of NCCL and torch in {'; in '.join(said)}. "
            "[All suites, and the bars they miss](bench/results/README.md): operators alone, collectives and attention, on 4 GPUs too.\n")


def picture(document):
    """The parts of E0 of an average layer. Each bar begins where the bar above it ends."""
    layer = document["average_layer"]
    whole = layer["total"]
    left, right, step = 190, 560, 30
    parts = [part for part in PARTS if part[0] not in MAYBE or layer.get(part[0])]
    title = (f"{document['model']}, {document['gpus']}, {document['tokens']} tokens: an average layer, "
             f"{1e6 * whole:.0f} us in bulk-synchronous form")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {70 + step * (len(parts) + 1)}" role="img">',
             f"<title>{title}</title>",
             "<style>text{font:14px system-ui,sans-serif;fill:#1f2328}.base{fill:#d1d9e0}"
             "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.base{fill:#3d444d}}</style>",
             f'<text x="10" y="24" font-weight="bold">{title}</text>']
    level = whole
    bars_shown = [("E0, bulk-synchronous", whole, whole, None)]
    for key, name, colour in parts:
        bars_shown.append((name, layer[key], level, colour))
        level -= 0 if isinstance(layer[key], str) else layer[key]
    for i, (name, value, end, colour) in enumerate(bars_shown):
        y = 46 + i * step
        if isinstance(value, str):
            lines += [f'<text x="10" y="{y + 15}">{name}</text>',
                      f'<text x="{left + right * 0.75 + 12:.0f}" y="{y + 15}">{value}</text>']
            continue
        low, high = sorted((end - value, end))
        x, width = left + right * 0.75 * low / whole, max(right * 0.75 * (high - low) / whole, 1)
        fill = f'fill="{colour}"' if colour else 'class="base"'
        lines += [f'<text x="10" y="{y + 15}">{name}</text>',
                  f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" {fill}/>',
                  f'<text x="{left + right * 0.75 + 12:.0f}" y="{y + 15}">{1e6 * value:.1f} us, '
                  f'{round(100 * value / whole)} %</text>']
    return "\n".join(lines) + "\n</svg>\n"


def pictured(documents):
    """The report of the fewest tokens on the most GPUs, or None."""
    taxes = [d for _, d in documents["untax-taxes"] if "gpus" in d]
    return max(taxes, key=lambda d: (d["tensor_parallel"], -d["tokens"]), default=None)
