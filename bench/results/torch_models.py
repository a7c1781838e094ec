"""Whole models called from PyTorch, as bench/torch_models.py measured them."""
import kernels
import whole_layers
from tables import table
from whole_layers import mean

FORMAT = "untax-torch-models"
WAYS = {"transformers": "transformers", "transformers, compiled": "compiled", "untax": "untax", "untax.torch.Decoder": "Decoder"}
NAMES = WAYS | {"untax, invariant": "invariant"}
KEYS = {"first": "to the first token", "token": "a token after it"}
NOTE = ("Milliseconds to the first token / for each token after it, in {dtype}, with random weights and greedy `generate`. "
        "*transformers*: at its defaults; *compiled*: with `cache_implementation=\"static\"`, for which it compiles the model; on several "
        "GPUs both with its own tensor parallelism. *untax*: the same call after `untax.torch.parallelize(model)`. *Decoder*: "
        "`untax.torch.Decoder`. Factors are the time of the faster way of transformers over that of untax.{multicast}{older}\n")


def subject(document):
    """The subject of a file; files with the same subject replace each other. None for other formats."""
    if document["format"] != FORMAT:
        return None
    return tuple(document[key] for key in ("model", "layers", "ranks", "device")) + ("drawn" if drawn(document) else "asked",
                                                                                     document["asked"].get("prompt", 0))


def drawn(document):
    """Whether calls were drawn at random."""
    return "draw" in document["asked"]


def prompt(document, row):
    return row.get("prompt", document["asked"].get("prompt"))


def newest(documents):
    """The newest file of each subject, those of today's kernels first."""
    best = {}
    for name, d in documents:
        rank = not kernels.older(d), d["date"], name
        if rank > best.get(subject(d), ((),))[0]:
            best[subject(d)] = rank, (name, d)
    return [best[key][1] for key in sorted(best)]


def milliseconds(seconds):
    return f"{1e3 * seconds:.{1 if seconds >= 0.1 else 2}f}"


def pair(figures):
    """The two figures of a way, or nothing if it did not run."""
    return " / ".join(milliseconds(figures[key]["median"]) for key in KEYS) if "first" in figures else ""


def beside(row, way):
    factors = row["factors"].get(way)
    return " / ".join(f"{factors[key]:.2f}x" for key in KEYS) if factors else ""


def title(document):
    return document["model"] + (f", {document['layers']} layers" if document["cut"] else "")


def gpus(document):
    return f"{document['ranks']} {document['device'].removeprefix('NVIDIA ').split()[0]}"


def note(documents):
    off = any(d["ranks"] > 1 and whole_layers.baseline(d) for d in documents)
    return NOTE.format(dtype=" and ".join(dict.fromkeys(d["dtype"] for d in documents)),
                       multicast=" NVLink multicast was off." if off else "",
                       older=" The kernels have changed since." if any(kernels.older(d) for d in documents) else "")


def shown(documents):
    rows = [[title(d), gpus(d), str(row["sequences"]), str(prompt(d, row)), *(pair(row["ways"].get(way, {})) for way in WAYS),
             *(beside(row, way) for way in WAYS if way.startswith("untax"))] for d in documents for row in d["rows"]]
    return table(["model", "GPUs", "sequences", "prompt", *WAYS.values(), "factor of untax", "of Decoder"], rows, left=2)


def not_run(document):
    """The reasons why ways have no figures, each once for all numbers of sequences."""
    reasons = {}
    for row in document["rows"]:
        for way, figures in row["ways"].items():
            if "not_run" in figures:
                reasons.setdefault((way, figures["not_run"]), []).append(str(row["sequences"]))
    return "".join(f"* {title(document)}, {gpus(document)}, sequences {' and '.join(counts)}: {NAMES[way]} did not run: {why}\n"
                   for (way, why), counts in reasons.items())


def section(documents, place):
    """The section of the page of results; nothing without files."""
    files = newest(documents)
    if not files:
        return ""
    shown_documents = [d for _, d in files]
    reasons = "".join(map(not_run, shown_documents))
    return (f"\n## Whole models, called from PyTorch\n\n{note(shown_documents)}\n{shown(shown_documents)}\n"
            + (f"{reasons}\n" if reasons else "") + "\n".join(f"[{name}]({name}), {place(d)}.\n" for name, d in files))


def of_drawn(documents):
    """A line for each file about its calls that were drawn at random."""
    lines = []
    for d in documents:
        factors = [row["factors"]["untax"] for row in d["rows"] if row["factors"].get("untax")]
        if factors:
            said = " and ".join(f"{mean([f[key] for f in factors]):.2f} ({min(f[key] for f in factors):.2f} to "
                                f"{max(f[key] for f in factors):.2f}) {text}" for key, text in KEYS.items())
            sequences, prompts = ([value(row) for row in d["rows"]] for value in (
                lambda row: row["sequences"], lambda row, d=d: prompt(d, row)))
            lines.append(f"At {len(factors)} random calls of {title(d)} on {gpus(d)}, {min(sequences)} to {max(sequences)} sequences with prompts "
                         f"of {min(prompts)} to {max(prompts)} tokens, untax's factor is {said}, as geometric means.\n")
    return "\n".join(lines)


def of_front(documents):
    """The section of the project's README; nothing without files."""
    documents = [d for _, d in newest(documents)]
    random = of_drawn([d for d in documents if drawn(d)])
    documents = [d for d in documents if not drawn(d)]
    if not documents:
        return random
    text = f"**Whole models**, called from PyTorch. {note(documents)}\n{shown(documents)}"
    if any(map(not_run, documents)):
        text += "\nA way without figures did not run, for [a reason](bench/results/README.md#whole-models-called-from-pytorch).\n"
    return text + (f"\n{random}" if random else "")


def details(name, document, place):
    """Every figure, and the ways in which untax ran the steps."""
    asked, rows, lines = document["asked"], [], ""
    for row in document["rows"]:
        for way, figures in row["ways"].items():
            if "first" not in figures:
                continue
            cells = [milliseconds(figures[key][figure]) for key in KEYS for figure in ("median", "least", "most")]
            rows.append([way, str(row["sequences"]), str(prompt(document, row)), *cells, beside(row, way)])
            said = figures.get("report", [])
            if "same_tokens" in figures:
                said = [f"{figures['same_tokens']:.1f} of {asked['tokens'] + 1} tokens are those of the first way until one differs", *said]
            lines += f"* {way}, {row['sequences']} x {prompt(document, row)}: {'; '.join(said)}\n" if said else ""
    head = [f"{text}, ms" if figure == "median" else figure for text in KEYS.values() for figure in ("median", "least", "most")]
    return (f"\n## {title(document)} called from PyTorch, {gpus(document)}, {document['dtype']}\n\n"
            f"{asked['tokens']} tokens after the first, transformers {document['transformers']}.\n\n"
            + table(["way", "sequences", "prompt", *head, "factors"], rows) + f"\n{lines}{not_run(document)}\n"
            f"Medians of {asked['repeat']} calls. [{name}]({name}), {place}.\n")
