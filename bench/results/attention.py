"""The texts about flash_decode, from the output of `untax bench flash-decode --json`."""
from math import exp, log

from tables import bars, table, timed

# The ways from the oldest to the newest, and the tax that each removes.
STEPS = [("bulk_library eager", "library, eager", ""),
         ("bulk_library", "library, graph", "launches by the host"),
         ("bulk_synchronous", "bulk-synchronous", "the library's collective"),
         ("producer_consumer", "producer-consumer", "kernels that begin when all of the one before is done"),
         ("fused_sequential", "fused", "a second kernel, and partial results on their way through memory")]
SHORT = 32 << 10
HEADS = ("Heads are called by name, then heads of the queries / heads of the keys x elements of a head. `paper`: those of the "
         "case study of arXiv 2511.02168; `70b` and `8b`: of Llama models; `mha`: each head has keys of its own. ")
NOTE = (HEADS + "Runs in a CUDA graph, but for eager ones, in turn. The bound is what reading keys and values takes at the rate of "
        "the memory; `local` is the kernel alone, of which nobody else hears. cuDNN, through PyTorch, has the better of "
        "two layouts of keys and values, and no pages (`bench/attention_torch.py`).\n")


def microseconds(value):
    return "" if value is None else f"{1e6 * value:.1f}" if value < 1e-3 else f"{1e6 * value:.0f}"


def mean_ratio(problems, numerator, denominator):
    """The geometric mean; None if neither was measured."""
    pairs = [(timed(p, numerator), timed(p, denominator)) for p in problems]
    logarithms = [log(a / b) for a, b in pairs if a and b]
    return exp(sum(logarithms) / len(logarithms)) if logarithms else None


def factor(value):
    return "" if value is None else f"{value:.2f}x"


def figures(document):
    """The figures of every problem."""
    ways = [step for step, *_ in reversed(STEPS) if timed(document["problems"][0], step)]
    titles = {step: title for step, title, _ in STEPS}
    rows = []
    for p in document["problems"]:
        local, bound = timed(p, "local"), p["bound_seconds"]
        fused, library = timed(p, "fused_sequential"), timed(p, "bulk_library")
        rows.append([shape_of_heads(p), str(p["batch"]),
                     keys_of(p), f"{1e-6 * p['bytes']:.0f}", microseconds(bound), microseconds(local),
                     f"{bound / local:.2f}", *(microseconds(timed(p, step)) for step in ways),
                     *([factor(library / fused if fused and library else None)] if ways else []),
                     *beside_cudnn(p, local)])
    head = ["heads", "batch", "keys", "MB", "bound, us", "local", "of the rate", *(titles[step] for step in ways)]
    cudnn = ["cuDNN", "cuDNN / local"] if "cudnn" in document["problems"][0] else []
    return table(head + (["library / fused"] if ways else []) + cudnn, rows)


def keys_of(problem):
    keys = problem["keys"]
    return str(keys) if keys % 1024 else f"{keys // 1024}K"


def beside_cudnn(problem, local):
    """The times of cuDNN that bench/attention_torch.py has added, if any; cuDNN has no kernel for some shapes."""
    if "cudnn" not in problem:
        return []
    library = problem["cudnn"]
    return [microseconds(library), factor(library / local if library else None)]


def shape_of_heads(problem):
    return f"{problem['heads_of']}: {problem['heads']} / {problem['kv_heads']} x {problem['head_dim']}"


def title(document):
    count = document["ranks"]
    drawn = ", shapes at random" if document["problems"][0]["heads_of"] == "random" else ""
    return f"flash_decode, {count} GPU{'s' if count > 1 else ''}, {document['dtype']}{drawn}"


def by_heads_and_keys(document):
    """The fused pattern at batch 1, and how many times as fast as the library in a graph."""
    problems = [p for p in document["problems"] if p["batch"] == 1 and timed(p, "fused_sequential")]
    heads = list(dict.fromkeys(p["heads_of"] for p in problems))
    rows = []
    for keys in sorted({p["keys"] for p in problems}):
        cells = []
        for name in heads:
            p = next((p for p in problems if (p["heads_of"], p["keys"]) == (name, keys)), None)
            cells.append("" if p is None else f"{microseconds(timed(p, 'fused_sequential'))} us "
                         f"({factor(mean_ratio([p], 'bulk_library', 'fused_sequential'))})")
        rows.append([f"{keys // 1024}K", *cells])
    titles = [shape_of_heads(next(p for p in problems if p["heads_of"] == name)) for name in heads]
    return table(["keys a rank", *titles], rows)


def details(name, document, where, settings):
    """The section about one file."""
    short = "" if document["ranks"] == 1 else f"One sequence, fused, and how many times as fast as the library in a graph:\n\n{by_heads_and_keys(document)}\n"
    return (f"\n## {title(document)}\n\n{NOTE}\n{short}{figures(document)}\n{bars(document)}\n{settings}Medians of {document['repeats']} "
            f"runs; memory is read at {1e-12 * document['memory_bytes_per_second']:.2f} TB/s. [{name}]({name}), {where}.\n")


def worth(document):
    """The speedup of each step over the step before it, by batch and length."""
    rows = []
    for batch in sorted({p["batch"] for p in document["problems"]}):
        for text, short in ((f"up to {SHORT >> 10}K", True), (f"over {SHORT >> 10}K", False)):
            some = [p for p in document["problems"] if p["batch"] == batch and (p["keys"] <= SHORT) == short]
            if not some:
                continue
            ratios = [mean_ratio(some, before[0], after[0]) for before, after in zip(STEPS, STEPS[1:])]
            rows.append([str(batch), text, *map(factor, ratios),
                         factor(mean_ratio(some, STEPS[1][0], STEPS[-1][0]))])
    return table(["batch", "keys a rank", *(after[1] for after in STEPS[1:]), "fused / library, graph"], rows, left=2)


def stairs(document, batch):
    """Every step at the first heads of the list."""
    name = document["problems"][0]["heads_of"]
    rows = [[f"{p['keys'] // 1024}K", microseconds(p["bound_seconds"]), microseconds(timed(p, "local")),
             *(microseconds(timed(p, label)) for label, *_ in STEPS)]
            for p in document["problems"] if p["heads_of"] == name and p["batch"] == batch]
    return table(["keys a rank", "bound, us", "local", *(step for _, step, _ in STEPS)], rows)


def evolution(documents, place):
    """The tables of docs/flash_decode_evolution.md, from documents by name."""
    text = ""
    for _, d in documents:
        if d["ranks"] == 1:
            continue
        first = d["problems"][0]
        text += (f"### {title(d)}, {d['device']}\n\nThe steps with heads {first['heads']} / {first['kv_heads']} x {first['head_dim']}, in "
                 "us:\n")
        for batch in (min(p["batch"] for p in d["problems"]), max(p["batch"] for p in d["problems"])):
            text += f"\nBatch {batch}:\n\n{stairs(d, batch)}"
        text += (f"\nHow many times as fast each step is as the one before it, geometric means over all heads:\n\n{worth(d)}\n"
                 f"{bars(d)}\nMeasured on {place(d)}.\n")
    return text
