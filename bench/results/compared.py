"""The terms of a comparison: kernels of other projects, the calls of NCCL, the sharing of weights, and whether a bound
holds."""
import json
from pathlib import Path

from tables import bars, table, timed

HERE = Path(__file__).resolve().parent
# Older files use these words.
OLD_WORDS = {"strongest public kernel / time, least": "{} / time, least",
             "strongest public kernel known in November 2026, whose name is not on record / time, least": "{} / time, least"}
OLD_NCCL_CALLS = ("ncclCommInitRank with its own defaults, untax registers no memory with it; ncclAllGather, "
                  "ncclReduceScatter, ncclAllReduce, ncclBroadcast, and ncclSend and ncclRecv in a group for all_to_all")
# Files of these commits lack the field, though their code has the feature.
OLD_CONSTANT_WEIGHTS = {"aa1ba918e871": True, "961e9bcb211e": False, "aff6cee81648": False}


def shape(problem):
    by_k = ", by k" if problem.get("gather") == "k" else ""
    return f"{problem['m']} x {problem['n']} x {problem['k']}{by_k}"


def public_kernel(operator):
    """The published figures of the strongest kernel of other projects, or None."""
    data = json.loads((HERE.parent / "data" / "public_kernels.json").read_text(encoding="utf-8"))
    return next((k for k in data["kernels"] if k["operator"] == operator), None)


def bars_today(document):
    """The bars of a document, in today's words."""
    known = public_kernel(document.get("operator"))
    return [dict(b, what=OLD_WORDS.get(b["what"], b["what"]).format(known["label"] if known else ""))
            for b in document.get("bars", [])]


def bars_of(document):
    """The bars as Markdown: value, limit, and whether the value meets it."""
    return bars({"bars": bars_today(document)})


def beside_public(document):
    """The problems for which a time of another project's kernel is on record, with these times."""
    known = public_kernel(document["operator"])
    if known is None:
        return ""
    rows = []
    for p in document["problems"]:
        other = next((t["microseconds"] for t in known["times"]
                      if (t["ranks"], t["m"], t["n"], t["k"]) == (document["ranks"], p["m"], p["n"], p["k"])
                      and p.get("gather", "rows") == known["gather"]), None)
        if other is None or "best" not in p:
            continue
        ours = 1e6 * timed(p, p["best"])
        rows.append([shape(p), p["best"], f"{ours:.1f}", f"{other:g}", f"{other / ours:.2f}"])
    if not rows:
        return ""
    source = f"{known['name']} ({known['source']}, commit {known['commit']})" if known["name"] else f"the {known['label']}"
    return (f"\nBeside {source}. Machine: {known['machine']}. {known['how']}\n\n"
            + table(["M x N x K", "best", "us", "us of the public kernel", "public / ours"], rows, left=2))


def measured_how(document):
    """The calls of the library and the sharing of weights, from the file or else from the code of its commit."""
    commit = document["commit"]
    text = ""
    if "nccl_calls" in document:
        variables = ", ".join(f"{k}={v}" for k, v in document.get("nccl_environment", {}).items())
        text += f"NCCL: {document['nccl_calls']}; {variables or 'none of its variables set'}. "
    elif "NCCL" in document.get("library", document.get("libraries", "")):
        text += (f"NCCL: {OLD_NCCL_CALLS}, as the code of that commit has it; which of its variables were set is not on "
                 "record. " if commit in OLD_CONSTANT_WEIGHTS else "How NCCL was called is not on record. ")
    # Newer reports of taxes have these in their notes.
    old_taxes = "gpus" in document and commit in OLD_CONSTANT_WEIGHTS
    if document["format"] != "untax-bench-overlap" and not old_taxes:
        return text
    constant = document.get("constant_weights", OLD_CONSTANT_WEIGHTS.get(commit))
    by_code = "" if "constant_weights" in document else ", as the code of that commit has it"
    if constant is None:
        return text + "Whether weights were constant (`constant_weights`) is not on record. "
    return text + (f"Weights are constant (`constant_weights`){by_code}: patterns may read some while the kernel ahead "
                   "ends. " if constant else f"`constant_weights` is off{by_code}. ")


def over_bound(best, bound, verdict):
    """E4 over the bound; None if that is known to be invalid."""
    state = verdict.get("bound", "holds")
    if state in ("invalid", "unknown"):
        return state
    return ("~" if state == "reached" else "") + f"{best / bound:.2f}"


def overlap_title(document):
    device = document["device"].removeprefix("NVIDIA ").split()[0]
    partials = document["problems"][0].get("partials")
    drawn = ", rows drawn at random" if "seed" in document else ""
    return (f"{document['operator']}, {document['suite']}{drawn}, {document['ranks']} {device}, {document['dtype']}"
            + (f", {partials} partials" if partials else ""))


def drawn_by(document):
    return f" --problems {len(document['problems'])} --seed {document['seed']}" if "seed" in document else ""
