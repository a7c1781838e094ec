#!/usr/bin/env python3
"""Writes bench/results/README.md, and the results in other texts, from the JSON files in this folder.

The files are what `untax taxes --json` and `untax bench SUITE --json` (host, rma, collectives, gemm, all-gather-gemm and the
other GEMMs between GPUs, all-reduce-norm, flash-decode, tune --check), bench/async_tensor_parallelism.py,
bench/torch_layers.py, bench/torch_models.py and bench/triton_verbs.py write; times of others' kernels are in
bench/data/public_kernels.json. Nothing here is typed by hand; `--check` tells whether the texts are still what the files say.
`--details` prints every figure, which the page of results leaves out.
"""
import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attention
import front
import kernels
import norm
import page
import seer
import symmetric_memory
import torch_layers
import torch_models
import triton_verbs
import whole_layers
from compared import bars_of, beside_public, drawn_by, measured_how, over_bound, overlap_title, shape
from tables import bars, table, timed
from taxes import LAYER_NOTE, comparisons, layers, seconds
from where import place

BEGIN, END = "<!-- results:begin -->\n", "<!-- results:end -->"
STEPS = ["E0", "E1", "E2", "E3", "E4"]
FORMATS = ["untax-taxes", "untax-bench-host", "untax-bench-rma", "untax-bench-collectives",
           "untax-bench-gemm", "untax-bench-overlap", "untax-bench-norm", "untax-bench-attention",
           "untax-bench-tune-check", "untax-async-tensor-parallelism", "untax-torch-layers",
           "untax-symmetric-memory", "untax-triton-verbs", torch_models.FORMAT]
KB, MB = 1 << 10, 1 << 20
SHOWN_SIZES = [8 * KB, 64 * KB, 512 * KB, 4 * MB, 64 * MB, 256 * MB, 1024 * MB]


def load(folder):
    """The files of each format, in the order of their names; prefill before decode, few tokens before many."""
    documents = {kind: [] for kind in FORMATS}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        kind = document.get("format") if isinstance(document, dict) else None
        if kind not in documents:
            raise SystemExit(f"{path}: format is {kind!r}; this folder takes {', '.join(documents)}")
        documents[kind].append((path.name, document))
    documents["untax-bench-overlap"].sort(key=lambda f: (f[1]["suite"] != "prefill", f[1]["operator"]))
    documents["untax-taxes"].sort(key=lambda f: f[1].get("tokens", 0))
    return documents


def operations(document):
    """Every operation of one model: the five steps, the bound, and the gain of E4."""
    rows = []
    for row in document["rows"]:
        time = {step["id"]: step["median"] for step in row["steps"]}
        bound = max(row["compute_seconds"], row["link_seconds"])
        rows.append([row["name"], f"{row['operator']} {row['m']} x {row['n']} x {row['k']}",
                     str(row["per_layer"] * row["layers"]),
                     *(seconds(time[step]) if step in time else "" for step in STEPS), seconds(bound),
                     over_bound(time["E4"], bound, row.get("verdict", {})), f"{time['E0'] / time['E4']:.2f}",
                     f"{time['E1'] / time['E4']:.2f}" if "E1" in time else "",
                     next(step["ran"] for step in row["steps"] if step["id"] == "E4")])
    return table(["operation", "problem", "times", *STEPS, "bound", "E4 / bound", "E0 / E4", "E1 / E4", "E4 was"],
                 rows, left=2)


def size(count):
    return f"{count // MB} MB" if count >= MB else f"{count // KB} KB"


def verdict(figure):
    if "bar" not in figure:
        return ""
    return "yes" if figure["met"] else "by another method" if figure["met_by_any"] else "no"


def latencies(document):
    rows = [[f["what"], f["method"], *(f"{1e6 * f['seconds'][key]:.2f}" for key in ("median", "p10", "p90")),
             f"{1e6 * f['bar']:.2f}" if "bar" in f else "", verdict(f)]
            for f in document["figures"] if f["table"] == "latency"]
    return table(["between kernels that run", "by", "us", "p10", "p90", "at most", "is"], rows, left=2)


def atomics(document):
    """Nothing for files that are older than these measurements."""
    rows = [[f["what"], f["method"], *(f"{1e9 * f['seconds'][key]:.3g}" for key in ("median", "p10", "p90"))]
            for f in document["figures"] if f["table"] == "atomics"]
    return "\n" + table(["atomics of rank 0 on words of rank 1", "order", "ns", "p10", "p90"], rows, left=2) if rows else ""


def link_rates(document, kind):
    rows = [[f["what"], f["method"], "all" if f["to"] < 0 else f"{f['from']} - {f['to']}", str(f["blocks"]),
             size(f["bytes"]), *(f"{1e-9 * f['bytes'] / f['seconds'][key]:.0f}" for key in ("median", "p90", "p10")),
             f"{f['bytes_per_second'] / f['bound']:.2f}", f"{1e-9 * f['bar']:.0f}" if "bar" in f else "", verdict(f)]
            for f in document["figures"] if f["table"] == kind]
    return table(["verb", "by", "ranks", "blocks", "size", "GB/s", "p10", "p90", "of the link", "at least", "is"],
                 rows, left=3)


def best_of(row):
    """The quickest way of untax, and of NCCL, plain or on symmetric windows; None where there is none."""
    return tuple(min((f for f in row["figures"] if "seconds" in f and f["by"].startswith("NCCL") == by_nccl),
                     key=lambda f: f["seconds"]["median"], default=None) for by_nccl in (False, True))


def collective_summary(document):
    """The speedup over NCCL, by collective and size."""
    names = list(dict.fromkeys(row["collective"] for row in document["collectives"]))
    rows = []
    for count in SHOWN_SIZES:
        cells = []
        for name in names:
            row = next((r for r in document["collectives"] if (r["collective"], r["bytes"]) == (name, count)), None)
            ours, library = best_of(row) if row else (None, None)
            cells.append("" if ours is None else seconds(ours["seconds"]["median"]) + (
                f" ({library['seconds']['median'] / ours['seconds']['median']:.2f}x)" if library else ""))
        rows.append([size(count), *cells])
    return table(["size", *names], rows)


def collective_rows(document):
    rows = []
    for row in document["collectives"]:
        library = best_of(row)[1]
        for f in row["figures"]:
            if "seconds" not in f:
                continue
            ratio = (f"{library['seconds']['median'] / f['seconds']['median']:.2f}"
                     if library and not f["by"].startswith("NCCL") else "")
            rows.append([row["collective"], f["by"], size(row["bytes"]),
                         *(f"{1e6 * f['seconds'][key]:.2f}" for key in ("median", "p10", "p90")),
                         f"{1e-9 * row['sent_bytes'] / f['seconds']['median']:.1f}", ratio])
    return table(["collective", "by", "size", "us", "p10", "p90", "GB/s", "times NCCL"], rows, left=2)


def device_details(documents):
    """The suites that were measured on GPUs."""
    text = ""
    for name, d in documents["untax-bench-rma"]:
        text += (f"\n## Verbs of kernels, {d['ranks']} GPUs\n\n{latencies(d)}{atomics(d)}\nRates by number of blocks, by size, of "
                 "every pair, and of every rank to its next at once:\n")
        text += "".join(f"\n{link_rates(d, kind)}" for kind in ("blocks", "sizes", "pairs", "all"))
        text += f"\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n"
    for name, d in documents["untax-bench-collectives"]:
        text += (f"\n## Collectives, {d['ranks']} GPUs, {d['dtype']}\n\n{COLLECTIVE_NOTE}\n{collective_summary(d)}\nEvery way:\n\n{collective_rows(d)}\n"
                 f"{measured_how(d)}Medians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n")
    for name, d in documents["untax-bench-gemm"]:
        drawn = f", {len(d['gemms'])} problems drawn from seed {d['seed']}" if "seed" in d else ""
        text += (f"\n## GEMM alone, {d['dtype']}{drawn}\n\nIn turn with the best of cuBLASLt's heuristics.\n\n"
                 f"{bars(d)}\n{gemms(d)}\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n")
    for name, d in documents["untax-bench-overlap"]:
        command = f"untax bench {d['operator'].replace('_', '-')} --suite {d['suite']}{drawn_by(d)}"
        text += (f"\n## {overlap_title(d)}\n\n`{command}`. {OVERLAP_NOTE}\n{overlaps(d['problems'])}\n{bars_of(d)}"
                 f"{beside_public(d)}\nEvery figure:\n\n{overlap_figures(d)}\n{measured_how(d)}Medians of {d['repeats']} runs; the link sends "
                 f"{1e-9 * d['link_bytes_per_second']:.0f} GB/s, memory is read at "
                 f"{1e-12 * d['memory_bytes_per_second']:.2f} TB/s. [{name}]({name}), {place(d)}.\n")
    for name, d in documents["untax-bench-norm"]:
        text += norm.details(name, d, place(d), measured_how(d))
    for name, d in documents["untax-bench-attention"]:
        text += attention.details(name, d, place(d), measured_how(d))
    for name, d in documents["untax-async-tensor-parallelism"]:
        text += torch_layers.details(name, d, place(d))
    for name, d in documents["untax-torch-layers"]:
        text += whole_layers.details(name, d, place(d))
    for name, d in documents[torch_models.FORMAT]:
        text += torch_models.details(name, d, place(d))
    for name, d in documents["untax-symmetric-memory"]:
        text += symmetric_memory.details(name, d, place(d))
    for name, d in documents["untax-triton-verbs"]:
        text += triton_verbs.details(name, d, place(d))
    for name, d in documents["untax-bench-tune-check"]:
        text += (f"\n## What automatic chooses\n\n{choice_verdict(d)}\n{choices(d)}\nMedians of {d['repeats']} runs. "
                 f"[{name}]({name}), {place(d)}.\n")
    return text


def overlaps(problems):
    """The quickest pattern of each problem, beside the bound and the library."""
    rows = []
    for p in problems:
        bound = max(p["compute_bound_seconds"], p["link_bound_seconds"])
        best = timed(p, p["best"]) if "best" in p else None
        ratios = [f"{timed(p, way) / best:.2f}" if best and timed(p, way) else ""
                  for way in ("bulk_library eager", "bulk_library graph")]
        rows.append([shape(p), p.get("best", ""), f"{1e6 * best:.1f}" if best else "", f"{1e6 * bound:.1f}",
                     f"{best / bound:.2f}" if best else "", *ratios])
    return table(["M x N x K", "best", "us", "bound, us", "/ bound", "bulk eager / us", "bulk graph / us"], rows,
                 left=2)


def overlap_figures(document):
    rows = []
    for p in document["problems"]:
        bound = max(p["compute_bound_seconds"], p["link_bound_seconds"])
        for f in p["figures"]:
            if "seconds" in f:
                rows.append([shape(p), f["by"], *(f"{1e6 * f['seconds'][key]:.1f}" for key in ("median", "p10", "p90")),
                             f"{f['seconds']['median'] / bound:.2f}" if f["whole"] else "",
                             f"{f['relative_error']:.1e}" if f.get("relative_error") is not None else ""])
    return table(["M x N x K", "by", "us", "p10", "p90", "/ bound", "relative error"], rows, left=2)


def choices(document):
    """The choice of automatic at problems that are in no table, beside the best pattern."""
    rows = []
    for p in document["problems"]:
        gather = f", {p['gather']}" if "gather" in p else ""
        rows.append([f"{p['operator']}{gather}, {p['ranks']} ranks", f"{p['m']} x {p['n']} x {p['k']}", p["chosen"],
                     f"{1e6 * p['chosen_seconds']:.1f}", p["best"], f"{1e6 * p['best_seconds']:.1f}",
                     f"{100 * (p['chosen_seconds'] / p['best_seconds'] - 1):.1f} %"])
    return table(["what", "M x N x K", "automatic", "us", "best", "us", "lost"], rows, left=3)


def choice_verdict(document):
    return (f"`automatic` is at most {100 * document['at_most_slower']:.0f} % slower than the best pattern at "
            f"{100 * document['share']:.0f} % of {len(document['problems'])} problems that are in no table; it has to be "
            f"at {100 * document['bar']:.0f} %: {'met' if document['met'] else 'missed'}.\n")


def gemms(document):
    rows = []
    drawn = "seed" in document
    for g in sorted(document["gemms"], key=lambda g: (g["m"], g["n"], g["k"]) if drawn else 0):
        mine, library = g["seconds"], g["library_seconds"]
        rate = (f"{1e-12 * 2 * g['n'] * g['k'] / mine['median']:.2f} TB/s of weights" if g["m"] <= 64 else
                f"{1e-12 * 2 * g['m'] * g['n'] * g['k'] / mine['median']:.0f} TFLOP/s")
        rows.append([f"{g['m']} x {g['n']} x {g['k']}", *(f"{1e6 * mine[key]:.1f}" for key in ("median", "p10", "p90")),
                     rate, f"{1e6 * library['median']:.1f}", f"{library['median'] / mine['median']:.2f}"])
    return table(["M x N x K", "us", "p10", "p90", "rate", "us of cuBLASLt", "times cuBLASLt"], rows)


OVERLAP_NOTE = ("Patterns in CUDA graphs, in turn with bulk_library (cuBLASLt and NCCL) in a graph and launched eagerly. The "
                "bound is the larger of computing alone, which is cuBLASLt's GEMM alone in prefill and reading the "
                "weights in decode, and of the link alone. \"us\" is the quickest pattern in a graph; \"bulk eager / us\" "
                "and \"bulk graph / us\" are the times of bulk_library over that. \"By k\": A is dealt by columns, else "
                "by rows. Where partial results are summed, K is that of all ranks.\n")
COLLECTIVE_NOTE = ("Each is launched in a CUDA graph of several runs, in turn with NCCL, from the first rank's start to "
                   "the last one's end. The size is that of the whole vector; GB/s are the bytes that a rank has to send at "
                   "least, over the time.\n")


def details(documents):
    """Every figure of these files."""
    text = ""
    layers_of_models, hosts = documents["untax-taxes"], documents["untax-bench-host"]
    if layers_of_models:
        text += "\n## Taxes of an average layer\n\n" + LAYER_NOTE + "\n" + layers(layers_of_models)
    for name, d in layers_of_models:
        text += (f"\n### {d['model']}, {d['tensor_parallel']} ranks, {d['tokens']} tokens\n\n"
                 f"{d['finding']}\n\n{operations(d)}\n"
                 f"{measured_how(d)}Medians of {d['repeats']} runs, each from the first rank's start to the last one's end. "
                 f"[{name}]({name}), {place(d)}.\n")
        text += "".join(f"\nNot measured: {layer['name']}, since {layer['reason']}.\n" for layer in d.get("unmeasured", []))
        text += "".join(f"\n* {note}" if i == 0 else f"* {note}" for i, note in
                        enumerate(note + "\n" for note in d["notes"]))
    if hosts:
        text += "\n## Beside the bare thing\n\n" + comparisons(hosts)
    for name, d in hosts:
        text += f"\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n"
    return text + device_details(documents)


def matching(documents, pattern):
    """The files whose names match, as in a shell."""
    return {kind: [(name, d) for name, d in files if fnmatch(name, pattern) or fnmatch(name, pattern + ".json")]
            for kind, files in documents.items()}


def between_marks(path, text):
    """A file with `text` between its marks."""
    present = path.read_text(encoding="utf-8")
    if present.count(BEGIN) != 1 or present.count(END) != 1:
        raise SystemExit(f"{path.name} has to hold {BEGIN.strip()} and {END}, once each")
    before, rest = present.split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


def generated(root):
    """The texts that the files should hold, by file."""
    documents = load(root / "bench" / "results")
    texts = {root / "README.md": between_marks(root / "README.md", front.text(front.of_most_ranks(documents))),
             root / "bench" / "results" / "README.md": page.text(documents)}
    steps = root / "docs" / "flash_decode_evolution.md"
    if documents["untax-bench-attention"]:
        texts[steps] = between_marks(steps, attention.evolution(documents["untax-bench-attention"], place))
    if shown := front.pictured(documents):
        texts[root / "docs" / "taxes.svg"] = front.picture(shown)
    return texts | seer.texts(root, documents["untax-bench-tune-check"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    parser.add_argument("--details", nargs="?", const="*", metavar="PATTERN",
                        help="write nothing else; print every figure of the files with such names")
    parser.add_argument("--to", type=Path, metavar="FILE", help="with --details: write to this file")
    arguments = parser.parse_args()
    if arguments.to and not arguments.details:
        parser.error("--to goes with --details")
    if arguments.details:
        text = details(matching(load(HERE), arguments.details)).lstrip("\n")
        if not text:
            raise SystemExit(f"no file in {HERE} matches {arguments.details}")
        if arguments.to:
            arguments.to.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
        return
    if not arguments.check:
        kernels.learn(d for files in load(HERE).values() for _, d in files)
    stale = [path for path, text in generated(HERE.parents[1]).items()
             if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if arguments.check:
        for path in stale:
            print(f"{path.relative_to(HERE.parents[1])}: not what the JSON files say; run {Path(__file__).name}")
        sys.exit(1 if stale else 0)
    for path, text in generated(HERE.parents[1]).items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
