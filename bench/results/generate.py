#!/usr/bin/env python3
"""Writes bench/results/README.md, and the results in other texts, from the JSON files in this folder.

The files are what `untax taxes --json` and `untax bench SUITE --json` (host, rma, collectives, gemm, all-gather-gemm and the
other GEMMs between GPUs, all-reduce-norm, flash-decode, tune --check), bench/async_tensor_parallelism.py and
bench/torch_layers.py write; times of others' kernels are in bench/data/public_kernels.json. Nothing here is typed by hand; `--check` tells whether the texts are still
what the files say.
"""
import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attention
import front
import kernels
import norm
import seer
import symmetric_memory
import torch_layers
import whole_layers
from compared import (bars_of, beside_public, drawn_by, measured_how, measured_how_all, over_bound, overlap_title,
                      shape)
from tables import bars, table, timed
from where import place, places

BEGIN, END = "<!-- results:begin -->\n", "<!-- results:end -->"
PARTS = [("launch", "launch tax"), ("engine", "engine"), ("bulk_synchronous", "bulk-synchronous tax"),
         ("locality", "locality tax"), ("remainder", "remainder"), ("bound", "bound")]
STEPS = ["E0", "E1", "E2", "E3", "E4"]
FORMATS = ["untax-taxes", "untax-bench-host", "untax-bench-rma", "untax-bench-collectives",
           "untax-bench-gemm", "untax-bench-overlap", "untax-bench-norm", "untax-bench-attention",
           "untax-bench-tune-check", "untax-async-tensor-parallelism", "untax-torch-layers",
           "untax-symmetric-memory"]
KB, MB = 1 << 10, 1 << 20
SHOWN_ROWS = [1, 16, 128]
SHOWN_SIZES = [8 * KB, 64 * KB, 512 * KB, 4 * MB, 64 * MB, 256 * MB, 1024 * MB]


def load(folder):
    """The files of each format, in the order of their names; prefill before decode, few tokens before many."""
    found = {kind: [] for kind in FORMATS}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        kind = document.get("format") if isinstance(document, dict) else None
        if kind not in found:
            raise SystemExit(f"{path}: format is {kind!r}; this folder takes {', '.join(found)}")
        found[kind].append((path.name, document))
    found["untax-bench-overlap"].sort(key=lambda f: (f[1]["suite"] != "prefill", f[1]["operator"]))
    found["untax-taxes"].sort(key=lambda f: f[1].get("tokens", 0))
    return found


def seconds(value):
    """Three digits, in the unit that fits."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        scaled = value * factor
        if abs(scaled) >= 1 or unit == "us":
            break
    digits = 0 if abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2
    return f"{scaled:.{digits}f} {unit}"


def milliseconds(value, digits=3):
    """So many digits, without an exponent and without zeros at the end."""
    text = f"{float(f'{1e3 * value:.{digits}g}'):f}"
    return text.rstrip("0").rstrip(".")


def with_error(value, uncertainty):
    error = f" ± {milliseconds(uncertainty, 2)}" if uncertainty else ""
    return milliseconds(value) + error


def coverage(document):
    """What sums leave out."""
    names = [one["name"] for one in document.get("unmeasured", [])] + document.get("left_out", [])
    return f", without {' and '.join(names)}" if names else ""


def layers(taxes):
    """The average layer of each model, taken apart."""
    rows = []
    for _, d in taxes:
        parts, error = d["average_layer"], d["average_layer_uncertainty"]
        best = parts["bound"] + parts["remainder"]
        rows.append([f"{d['model']}, {d['dtype']}{coverage(d)}", d.get("gpus", "threads of a CPU"),
                     str(d["tensor_parallel"]), str(d["tokens"]),
                     milliseconds(parts["total"]), *(with_error(parts[key], error[key]) for key, _ in PARTS),
                     over_bound(best, parts["bound"], d.get("verdict", {}))])
    return table(["model", "on", "ranks", "tokens", "E0", *(title for _, title in PARTS), "E4 / bound"], rows,
                 left=2)


def comparisons(bench):
    rows = [[c["name"], c["reference"], seconds(c["seconds"]["median"]), seconds(c["reference_seconds"]["median"]),
             f"{c['ratio']:.2f}", c["bar"], "yes" if c["met"] else "no"]
            for _, d in bench for c in d["comparisons"]]
    return table(["untax", "beside", "time", "time of the other", "ratio", "has to be", "is"], rows, left=2)


def operations(document):
    """Every operation of one model: the five steps, the bound, and what E4 is worth."""
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
    """How many times as fast as NCCL, by collective and size."""
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


def device_details(found):
    """What was measured on GPUs."""
    text = ""
    for name, d in found["untax-bench-rma"]:
        text += (f"\n## Verbs of kernels, {d['ranks']} GPUs\n\n{latencies(d)}\nRates by number of blocks, by size, of "
                 "every pair, and of every rank to its next at once:\n")
        text += "".join(f"\n{link_rates(d, kind)}" for kind in ("blocks", "sizes", "pairs", "all"))
        text += f"\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n"
    for name, d in found["untax-bench-collectives"]:
        text += (f"\n## Collectives, {d['ranks']} GPUs, {d['dtype']}\n\n{COLLECTIVE_NOTE}\n{collective_rows(d)}\n"
                 f"{measured_how(d)}Medians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n")
    for name, d in found["untax-bench-gemm"]:
        drawn = f", {len(d['gemms'])} problems drawn from seed {d['seed']}" if "seed" in d else ""
        text += (f"\n## GEMM alone, {d['dtype']}{drawn}\n\nIn turn with the best of cuBLASLt's heuristics.\n\n"
                 f"{bars(d)}\n{gemms(d)}\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n")
    for name, d in found["untax-bench-overlap"]:
        text += (f"\n## {overlap_title(d)}\n\n{OVERLAP_NOTE}\n{overlaps(d['problems'])}\n{bars_of(d)}"
                 f"{beside_public(d)}\nEvery figure:\n\n{overlap_figures(d)}\n{measured_how(d)}Medians of {d['repeats']} runs; the link sends "
                 f"{1e-9 * d['link_bytes_per_second']:.0f} GB/s, memory is read at "
                 f"{1e-12 * d['memory_bytes_per_second']:.2f} TB/s. [{name}]({name}), {place(d)}.\n")
    for name, d in found["untax-bench-norm"]:
        text += norm.details(name, d, place(d), measured_how(d))
    for name, d in found["untax-bench-attention"]:
        text += attention.details(name, d, place(d), measured_how(d))
    for name, d in found["untax-async-tensor-parallelism"]:
        text += torch_layers.details(name, d, place(d))
    for name, d in found["untax-torch-layers"]:
        text += whole_layers.details(name, d, place(d))
    for name, d in found["untax-symmetric-memory"]:
        text += symmetric_memory.details(name, d, place(d))
    for name, d in found["untax-bench-tune-check"]:
        text += (f"\n## What automatic chooses\n\n{choice_verdict(d)}\n{choices(d)}\nMedians of {d['repeats']} runs. "
                 f"[{name}]({name}), {place(d)}.\n")
    return text


def overlaps(problems):
    """The quickest pattern of each problem, beside the bound and the library."""
    rows = []
    for p in problems:
        bound = max(p["compute_bound_seconds"], p["link_bound_seconds"])
        best = timed(p, p["best"]) if "best" in p else None
        ratios = [f"{timed(p, by) / best:.2f}" if best and timed(p, by) else ""
                  for by in ("bulk_library eager", "bulk_library graph")]
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
    """What automatic stands for at problems that are in no table, beside the best."""
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


def shown_problems(document):
    """A few of them, where there are many."""
    all_of_them = document["problems"]
    return all_of_them if len(all_of_them) <= 12 else [p for p in all_of_them if p["m"] in SHOWN_ROWS]


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
                "and \"bulk graph / us\" are what bulk_library takes over that. \"By k\": A is dealt by columns, else "
                "by rows. Where partial results are summed, K is that of all ranks.\n")
COLLECTIVE_NOTE = ("Each is launched in a CUDA graph of several runs, in turn with NCCL, from the first rank's start to "
                   "the last one's end. The size is that of the whole vector; GB/s are the bytes that a rank has to send at "
                   "least, over the time.\n")
LAYER_NOTE = ("Milliseconds of an average layer: E0 and its parts, which add up to it. After ±: how far chance may have "
              "moved a part. E4 / bound is invalid where E4 is below the bound of an operation by more than that, so that "
              "computing or sending alone was measured too slow; ~ where E4 is below it by less.\n")


def summary(everything_found):
    """What comes first of all results: the largest number of GPUs of each kind, a few shapes."""
    found = front.of_most_ranks(everything_found)
    taxes, bench = found["untax-taxes"], found["untax-bench-host"]
    # The kernel of one GPU has bars of its own.
    decode = found["untax-bench-attention"] + [
        (name, d) for name, d in everything_found["untax-bench-attention"] if "cudnn" in d["problems"][0]]
    # What is fast on a grid is judged between its points, wherever that was measured.
    drawn = [(name, d) for name, d in everything_found["untax-bench-overlap"] if "seed" in d]
    gemm = [(name, d) for name, d in everything_found["untax-bench-gemm"] if "seed" in d]
    judged = found | {"untax-bench-attention": decode, "untax-bench-overlap": found["untax-bench-overlap"] + drawn,
                      "untax-bench-gemm": gemm}
    text = f"\n## What is missed\n\n{front.missed(judged)}\n## In short\n\n"
    for _, d in found["untax-bench-overlap"]:
        command = d["operator"].replace("_", "-")
        text += (f"{overlap_title(d)}, the quickest pattern in a graph beside cuBLASLt + NCCL "
                 f"(`untax bench {command} --suite {d['suite']}{drawn_by(d)}`):\n\n{overlaps(shown_problems(d))}\n{bars_of(d)}{beside_public(d)}\n")
    for _, d in found["untax-bench-norm"]:
        text += norm.summary(d)
    for _, d in found["untax-bench-attention"]:
        text += attention.summary(d)
    for _, d in found["untax-bench-tune-check"]:
        text += choice_verdict(d) + "\n"
    for _, d in found["untax-bench-collectives"]:
        text += (f"Collectives between {d['ranks']} GPUs, the quicker of through rooms and direct, and how many times as "
                 f"fast as {d['library']} (`untax bench collectives`):\n\n{collective_summary(d)}\n")
    if taxes:
        text += LAYER_NOTE + "\n" + layers(taxes) + "\n"
    if bench:
        text += "What the host engine is built on, and what untax makes of it:\n\n" + comparisons(bench) + "\n"
    everything = [one for files in found.values() for one in files]
    return text + measured_how_all(d for _, d in everything) + places(everything)


def details(found):
    """bench/results/README.md."""
    text = "# Results\n\nGenerated by `generate.py` from the JSON files in this folder; do not edit.\n"
    taxes, bench = found["untax-taxes"], found["untax-bench-host"]
    if not any(found.values()):
        return text + "\nThere are none yet.\n"
    text += summary(found)
    if taxes:
        text += "\n## Taxes of an average layer\n\n" + LAYER_NOTE + "\n" + layers(taxes)
    for name, d in taxes:
        text += (f"\n### {d['model']}, {d['tensor_parallel']} ranks, {d['tokens']} tokens\n\n"
                 f"{d['finding']}\n\n{operations(d)}\n"
                 f"{measured_how(d)}Medians of {d['repeats']} runs, each from the first rank's start to the last one's end. "
                 f"[{name}]({name}), {place(d)}.\n")
        text += "".join(f"\nNot measured: {one['name']}, since {one['reason']}.\n" for one in d.get("unmeasured", []))
        text += "".join(f"\n* {note}" if i == 0 else f"* {note}" for i, note in
                        enumerate(note + "\n" for note in d["notes"]))
    if bench:
        text += "\n## Beside the bare thing\n\n" + comparisons(bench)
    for name, d in bench:
        text += f"\nMedians of {d['repeats']} runs. [{name}]({name}), {place(d)}.\n"
    return text + device_details(found)


def between_marks(path, text):
    """A file with `text` between its marks."""
    now = path.read_text(encoding="utf-8")
    if now.count(BEGIN) != 1 or now.count(END) != 1:
        raise SystemExit(f"{path.name} has to hold {BEGIN.strip()} and {END}, once each")
    before, rest = now.split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


def generated(root):
    """The texts as they should be, by file."""
    found = load(root / "bench" / "results")
    texts = {root / "README.md": between_marks(root / "README.md", front.text(front.of_most_ranks(found))),
             root / "bench" / "results" / "README.md": details(found)}
    steps = root / "docs" / "flash_decode_evolution.md"
    if found["untax-bench-attention"]:
        texts[steps] = between_marks(steps, attention.evolution(found["untax-bench-attention"], place))
    if shown := front.pictured(found):
        texts[root / "docs" / "taxes.svg"] = front.picture(shown)
    return texts | seer.texts(root, found["untax-bench-tune-check"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    arguments = parser.parse_args()
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
