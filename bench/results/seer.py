"""Generated parts of docs/seer.md: trees over public tables of SpMV and over untax's own, and rules that choose
patterns."""
import gzip
import json
import math
import statistics

import timed_choices
from tables import table

BEGIN, END = "<!-- {}:begin -->\n", "<!-- {}:end -->\n"
DEVICES = ["MI250X", "V100", "MI100", "RadeonVII"]
MEAN_BARS = {"MI250X": 1.035, "V100": 1.035, "MI100": 1.045, "RadeonVII": 1.045}
TAIL_BAR, SELECTOR_BAR = 1.6, 1.01
# Bars of untax's own trees: mean and tail of the regret with free gathering; then the speedup of the selector over the
# library's best, in the mean and at each matrix.
OWN_MEAN_BAR, OWN_TAIL_BAR, FASTER_BAR, LEAST_BAR = 1.03, 1.25, 1.10, 0.95
OWN_SETS = {"twins": "twins, five-fold", "real": "real matrices, held out"}
PAID_SETS = {"H200, twins, five-fold": "H200/twins-evaluation.json", "H200, real, held out": "H200/real-evaluation.json",
             "V100, Ginkgo, five-fold": "V100-evaluation.json", "V100, loops, five-fold": "loops-V100-evaluation.json"}
WITHIN_BAR = 0.95
REGULAR_BAR = 0.85  # the least share of the rate at which memory is read
LEAVES_BAR = 60
SIZES = ((0, 1e4), (1e4, 1e5), (1e5, 1e6), (1e6, 1e9))  # numbers of elements: from the first, and below the second
TREES = {"gather": "Does gathering pay?", "known": "Which way, by what is known?",
         "gathered": "Which way, by what was gathered?"}


def met(is_met):
    return "met" if is_met else "missed"


def of(figures, way, iterations):
    return next(f for f in figures if f["way"] == way and f["iterations"] == iterations)


def single(figures, iterations):
    return min((f for f in figures if f["way"].startswith("always ") and f["iterations"] == iterations),
               key=lambda f: f["seconds"])


def public_tables(folder):
    """The figures of trees that were trained on all features."""
    rows = []
    for device in DEVICES:
        figures = json.loads((folder / f"{device}-evaluation.json").read_text(encoding="utf-8"))
        free, best = of(figures, "gathered for free", 1000), single(figures, 1000)
        rows.append([device, str(free["records"]), f"{free['mean_ratio']:.3f}", met(free["mean_ratio"] <= MEAN_BARS[device]),
                     f"{free['p99_ratio']:.2f}", met(free["p99_ratio"] <= TAIL_BAR),
                     f"{free['seconds'] / free['oracle_seconds']:.3f}", best["way"].removeprefix("always "),
                     f"{best['mean_ratio']:.3f}", f"{best['seconds'] / best['oracle_seconds']:.3f}",
                     met(free["seconds"] < best["seconds"])])
    return table(["device", "matrices", "mean", "", "p99", "", "total", "best single format", "its mean", "its total",
                  "total is less"], rows)


def paid(folder):
    """The cost of a choice in one run, gathering included, beside the best single kernel: means, tails and totals."""
    rows = []
    for text, path in PAID_SETS.items():
        figures = json.loads((folder / path).read_text(encoding="utf-8"))
        chosen, free = of(figures, "selector", 1), of(figures, "gathered for free", 1)
        singles = [f for f in figures if f["way"].startswith("always ") and f["iterations"] == 1]
        mean, tail = (min(singles, key=lambda f: f[key]) for key in ("mean_ratio", "p99_ratio"))
        least = single(figures, 1)
        rows.append([text, str(chosen["records"]), f"{chosen['mean_ratio']:.3f}",
                     f"{mean['mean_ratio']:.3f} ({mean['way'].removeprefix('always ')})",
                     met(chosen["mean_ratio"] <= mean["mean_ratio"]), f"{free['p99_ratio']:.2f}", f"{chosen['p99_ratio']:.2f}",
                     f"{tail['p99_ratio']:.2f} ({tail['way'].removeprefix('always ')})",
                     met(chosen["p99_ratio"] <= tail["p99_ratio"]), f"{chosen['seconds'] / chosen['oracle_seconds']:.3f}",
                     f"{least['seconds'] / least['oracle_seconds']:.3f} ({least['way'].removeprefix('always ')})",
                     f"{mean['mean_ratio'] / chosen['mean_ratio']:.2f}", f"{least['seconds'] / chosen['seconds']:.2f}"])
    return table(["matrices", "number", "mean", "best single", "", "p99, unpaid", "p99, paid", "best single", "", "total",
                  "best single", "gain in means", "in totals"], rows)


def selectors(folder):
    """The gain of the tree that decides whether gathering pays."""
    rows = []
    for device in DEVICES:
        figures = json.loads((folder / f"{device}-evaluation.json").read_text(encoding="utf-8"))
        for iterations in (1, 10, 100, 1000):
            known, gathered, chosen = (of(figures, way, iterations) for way in ("known", "gathered", "selector"))
            mean = chosen["mean_ratio"] / min(known["mean_ratio"], gathered["mean_ratio"])
            total = chosen["seconds"] / min(known["seconds"], gathered["seconds"])
            rows.append([device, str(iterations), *(f"{result['mean_ratio']:.3f}" for result in (known, gathered, chosen)),
                         f"{mean:.3f}", f"{total:.3f}", met(max(mean, total) <= SELECTOR_BAR)])
    return table(["device", "iterations", "never gathers", "always gathers", "selector", "over the better",
                  "total over the better", "at most 1.01"], rows)


def own_trees(folder):
    """The figures of the selector that was trained on twins."""
    rows = []
    for name, text in OWN_SETS.items():
        figures = json.loads((folder / f"{name}-evaluation.json").read_text(encoding="utf-8"))
        for iterations in (1, 10, 100, 1000):
            free, chosen, over = (of(figures, way, iterations)
                                  for way in ("gathered for free", "selector", "selector over cusparse_"))
            best = single(figures, iterations)
            rows.append([text, str(iterations), str(free["records"]), f"{free['mean_ratio']:.3f}", f"{free['p99_ratio']:.2f}",
                         met(free["mean_ratio"] <= OWN_MEAN_BAR and free["p99_ratio"] <= OWN_TAIL_BAR),
                         f"{chosen['mean_ratio']:.3f}", best["way"].removeprefix("always "), f"{best['mean_ratio']:.3f}",
                         f"{over['mean_speedup']:.3f}", f"{over['least_speedup']:.3f}",
                         met(over["mean_speedup"] >= FASTER_BAR and over["least_speedup"] >= LEAST_BAR)
                         if iterations == 100 else ""])
    return table(["matrices", "iterations", "number", "mean", "p99", "", "with gathering", "best single way", "its mean",
                  "over cuSPARSE", "least", ""], rows)


def own_ways(folder):
    """The best of untax's kernels at each matrix beside the best of cuSPARSE, without conversion and choice, by size."""
    rows = []
    for name, text in OWN_SETS.items():
        with gzip.open(folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            records = json.load(file)
        for least, behind in SIZES:
            ratios = [min(theirs) / min(own) for own, theirs in map(times_of, records_within(records, least, behind))]
            if ratios:
                rows.append([text, f"from {least:,.0f}", str(len(ratios)), f"{statistics.geometric_mean(ratios):.3f}",
                             f"{min(ratios):.3f}", str(sum(r < 1 for r in ratios))])
    return table(["matrices", "elements", "number", "own over cuSPARSE", "least", "slower"], rows)


def own_regular(folder):
    """The share of the memory rate that the best kernels reach on matrices of regular grids that do not fit in caches."""
    with gzip.open(folder / "regular.json.gz", "rt", encoding="utf-8") as file:
        records = json.load(file)
    rows = []
    for record in records:
        # The matrix by compressed rows of 12 bytes an element, x and y, each once.
        moved = 12 * record["nnz"] + 4 * (record["rows"] + 1) + 8 * (record["rows"] + record["cols"])
        ways = [min((value, key.removeprefix("t_")) for key, value in record.items()
                    if key.startswith("t_") and value and key.startswith("t_cusparse_") == theirs) for theirs in (False, True)]
        (own, way), (theirs, their_way) = ways
        share = moved / own / record["memory_rate"]
        rows.append([record["name"], f"{record['nnz']:,.0f}", way, f"{moved / own / 1e9:,.0f}", f"{share:.2f}",
                     met(share >= REGULAR_BAR), their_way.removeprefix("cusparse_"),
                     f"{moved / theirs / record['memory_rate']:.2f}"])
    return table(["matrix", "elements", "best own way", "GB/s", "of the memory's rate", f"at least {REGULAR_BAR}",
                  "best of cuSPARSE", "of the rate"], rows)


def own_coo(folder):
    """untax's COO beside that of cuSPARSE, and the number of matrices at which each is the fastest kernel."""
    rows = []
    for name, text in OWN_SETS.items():
        with gzip.open(folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            records = json.load(file)
        for least, behind in SIZES:
            within = [r for r in records_within(records, least, behind) if r.get("t_coo") and r.get("t_cusparse_coo")]
            if not within:
                continue
            ratios = [r["t_cusparse_coo"] / r["t_coo"] for r in within]
            quickest = [min((key for key in r if key.startswith("t_") and r[key]), key=r.get) for r in within]
            rows.append([text, f"from {least:,.0f}", str(len(ratios)), f"{statistics.geometric_mean(ratios):.3f}",
                         str(sum(r > 1 for r in ratios)), str(quickest.count("t_coo")),
                         str(quickest.count("t_cusparse_coo"))])
    return table(["matrices", "elements", "number", "own COO over cuSPARSE's", "quicker", "quickest of all: own COO",
                  "cuSPARSE's COO"], rows)


def trees(folder):
    """The checked-in trees and their sizes."""
    kept = json.loads((folder / "selector.json").read_text(encoding="utf-8"))
    rows = []
    for name, question in TREES.items():
        leaves = sum("feature" not in n for n in kept["trees"][name])
        rows.append([question, str(leaves), met(leaves <= LEAVES_BAR)])
    text = table(["tree", "leaves", f"at most {LEAVES_BAR}"], rows)
    printed = (folder / "selector.txt").read_text(encoding="utf-8").rstrip("\n")
    return f"{text}\n<details>\n<summary>The trees and the guards</summary>\n\n```text\n{printed}\n```\n\n</details>\n"


def records_within(records, least, behind):
    return [r for r in records if least <= r["nnz"] < behind]


def times_of(record):
    """Times of untax's kernels and of cuSPARSE's; infinite for a kernel that failed."""
    own, theirs = [math.inf], [math.inf]
    for key, value in record.items():
        if key.startswith("t_") and value:
            (theirs if key.startswith("t_cusparse_") else own).append(value)
    return own, theirs


def choosers(path):
    """Rules that choose a pattern without timing it, at problems that they have not seen."""
    figures = json.loads(path.read_text(encoding="utf-8"))
    text = ""
    for which in dict.fromkeys(f["of"] for f in figures):
        rows = [[f["split"], str(f["ranks"]), f["way"], str(f["problems"]), f"{100 * f['within_3_percent']:.0f} %",
                 *(f"{f[key]:.3f}" for key in ("mean_ratio", "p95_ratio", "worst_ratio"))]
                for f in figures if f["of"] == which]
        text += (f"{which[0].upper()}{which[1:]}:\n\n" if which != "all" else "All operators:\n\n") + table(
            ["held out", "ranks", "way", "problems", "within 3 %", "mean", "p95", "worst"], rows, left=3) + "\n"
    return text


def timed(checks):
    """The share of problems at which `automatic`, which times the likely patterns, is near the best."""
    rows = [[str(max(p["ranks"] for p in d["problems"])), str(len(d["problems"])), f"{100 * d['share']:.1f} %",
             met(d["share"] >= WITHIN_BAR), f"[{name}](../bench/results/{name})"] for name, d in checks]
    return table(["ranks", "problems", "within 3 %", "at least 95 %", "measured"], rows, left=0)


def texts(root, checks):
    """The content that docs/seer.md should have, if the file exists."""
    page = root / "docs" / "seer.md"
    if not page.is_file():
        return {}
    text = page.read_text(encoding="utf-8")
    folder = root / "bench" / "select"
    parts = {"public": public_tables(folder), "paid": paid(folder), "selectors": selectors(folder),
             "own-trees": own_trees(folder / "H200"), "own-ways": own_ways(folder / "H200"),
             "own-regular": own_regular(folder / "H200"), "own-coo": own_coo(folder / "H200"), "trees": trees(folder / "H200"),
             "choosers": choosers(root / "bench" / "choosers" / "choosers.json"), "timed": timed(checks),
             "timed-rules": timed_choices.rules(checks), "timed-spreads": timed_choices.spreads(checks)}
    for name, part in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"docs/seer.md has to hold {begin.strip()} and {end.strip()}, once each")
        before, rest = text.split(begin)
        text = before + begin + part + end + rest.split(end)[1]
    return {page: text}
