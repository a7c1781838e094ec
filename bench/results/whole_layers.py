"""Projections and whole layers called from PyTorch, as bench/torch_layers.py measured them."""
from math import exp, log

from tables import table

NO_RIVALS = ("matmul", "no communication")
SHOWN = [("prefill", 2048), ("prefill", 8192), ("decode", 1), ("decode", 64)]
MODES = {"prefill": "eager", "decode": "graph"}  # the mode in which models run each phase
NOTE = ("us, medians of {rounds} rounds in which all ways are timed in turn, of the slowest rank. Rivals: torch's matmul with NCCL; "
        "torch's asynchronous tensor parallelism (`symm_mem::fused_*`); torch's all-reduces on symmetric memory, one-shot or "
        "two-shot, whichever is quicker. untax is called at its defaults. Factors are the best rival over the best of untax. {baseline}"
        "Each result was compared with one in fp32.\n")


def baseline(document):
    """A sentence about features that rivals had to do without, from the recorded environment."""
    environment = document.get("environment", {})
    off = [name for name, value in (("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"))
           if environment.get(name) == value]
    if not off:
        return ""
    return ("NVLink multicast was off, so that torch's multicast path, which it takes up to 2048 rows, and NCCL's NVLS could not run; "
            "NCCL's buffers were not registered. ")


def median(row, mode, prefix):
    """The quickest way whose name has this beginning, or None."""
    times = [s["median"] for way, s in row.get(mode, {}).get("seconds", {}).items()
             if way.startswith(prefix) and way not in NO_RIVALS]
    return min(times, default=None)


def us(value):
    return "" if value is None else f"{1e6 * value:.1f}"


def factor(row, mode):
    return row.get(mode, {}).get("factor")


def mean(factors):
    return exp(sum(map(log, factors)) / len(factors)) if factors else None


def rows_of(document, kind):
    return sorted((row for row in document["rows"] if row["what"] == kind),
                  key=lambda row: (row["model"], row["name"], row["tokens"]))


def cells(row, mode):
    times = factor(row, mode)
    return [row["model"], row["name"], str(row["tokens"]), us(median(row, mode, "NCCL")), us(median(row, mode, "torch")),
            us(median(row, mode, "untax")), "" if times is None else f"{times:.2f}x"]


def modes_of(document):
    return [mode for mode in ("eager", "graph") if any(mode in row for row in document["rows"])]


def shown(document):
    """The README's table: some layers, in the mode in which models run them."""
    rows = [row for row in rows_of(document, "layer") if (row["name"], row["tokens"]) in SHOWN]
    rows.sort(key=lambda row: (row["name"] == "decode", row["model"]))
    return table(["model", "layer", "tokens", "NCCL", "torch", "untax", "factor"],
                 [cells(row, MODES[row["name"]]) for row in rows if MODES[row["name"]] in row], left=2)


def asked(document):
    return document.get("asked", {}).get("draw", 0)


def summary_lines(document):
    lines = []
    for kind in ("projection", "layer"):
        for mode in modes_of(document):
            rows = [row for row in rows_of(document, kind) if factor(row, mode)]
            if not rows:
                continue
            least = min(rows, key=lambda row: factor(row, mode))
            lines.append(f"* {kind}s, {mode}: {mean([factor(r, mode) for r in rows]):.2f} in the geometric mean of {len(rows)}, least "
                         f"{factor(least, mode):.2f} ({least['model']}, {least['name']}, {least['tokens']} tokens)\n")
            unconcerned = [factor(r, mode) for r in rows if r["tokens"] > 2048]
            if unconcerned and baseline(document) and len(unconcerned) < len(rows):
                lines.append(f"* {kind}s, {mode}, of more than 2048 tokens, which torch's multicast path does not concern: "
                             f"{mean(unconcerned):.2f}\n")
    for row in document["rows"]:
        for way, why in row.get("wrong", {}).items():
            lines.append(f"* {row['model']}, {row['name']}, {row['tokens']} tokens, {way}: **wrong**: {why}\n")
    if document.get("left_out"):
        lines.append(f"* {len(document['left_out'])} measurements are left out, since the time that was given was over\n")
    return "".join(lines)


def worst(document, count=10):
    """The drawn counts of tokens with the lowest factors."""
    rows = [(factor(row, mode), mode, row) for row in rows_of(document, "projection") for mode in modes_of(document)
             if factor(row, mode)]
    rows.sort(key=lambda drawn_row: drawn_row[0])
    return table(["model", "projection", "tokens", "NCCL", "torch", "untax", "factor", "mode"],
                 [cells(row, mode) + [mode] for _, mode, row in rows[:count]], left=2)


def details(name, document, place):
    drawn = asked(document)
    title = (f"Projections called from PyTorch, {drawn} counts of tokens drawn from seed {document['asked']['seed']}" if drawn
             else "Projections and whole layers called from PyTorch")
    note = NOTE.format(rounds=document["asked"]["rounds"], baseline=baseline(document))
    text = f"\n## {title}, {document['ranks']} GPUs, {document['dtype']}\n\n{note}\n{summary_lines(document)}"
    if drawn:
        text += f"\nThe least factors:\n\n{worst(document)}"
    else:
        for kind in ("layer", "projection"):
            for mode in modes_of(document):
                rows = [cells(row, mode) for row in rows_of(document, kind) if mode in row]
                if rows:
                    text += f"\n{kind.capitalize()}s, {mode}:\n\n" + table(
                        ["model", kind, "tokens", "NCCL", "torch", "untax", "factor"], rows, left=2)
    return text + f"\n[{name}]({name}), {place}.\n"
