"""Generated parts of docs/seer.md: trees over public tables of SpMV, and ways of choosing patterns."""
import json

from tables import table

BEGIN, END = "<!-- {}:begin -->\n", "<!-- {}:end -->\n"
DEVICES = ["MI250X", "V100", "MI100", "RadeonVII"]
MEAN_BARS = {"MI250X": 1.035, "V100": 1.035, "MI100": 1.045, "RadeonVII": 1.045}
TAIL_BAR, SELECTOR_BAR = 1.6, 1.01
WITHIN_BAR = 0.95


def met(is_met):
    return "met" if is_met else "missed"


def of(figures, way, iterations):
    return next(f for f in figures if f["way"] == way and f["iterations"] == iterations)


def single(figures, iterations):
    return min((f for f in figures if f["way"].startswith("always ") and f["iterations"] == iterations),
               key=lambda f: f["seconds"])


def public_tables(folder):
    """How good trees are that know what there is to know."""
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


def selectors(folder):
    """What the tree is worth that says whether gathering pays."""
    rows = []
    for device in DEVICES:
        figures = json.loads((folder / f"{device}-evaluation.json").read_text(encoding="utf-8"))
        for iterations in (1, 10, 100, 1000):
            known, gathered, chosen = (of(figures, way, iterations) for way in ("known", "gathered", "selector"))
            mean = chosen["mean_ratio"] / min(known["mean_ratio"], gathered["mean_ratio"])
            total = chosen["seconds"] / min(known["seconds"], gathered["seconds"])
            rows.append([device, str(iterations), *(f"{one['mean_ratio']:.3f}" for one in (known, gathered, chosen)),
                         f"{mean:.3f}", f"{total:.3f}", met(max(mean, total) <= SELECTOR_BAR)])
    return table(["device", "iterations", "never gathers", "always gathers", "selector", "over the better",
                  "total over the better", "at most 1.01"], rows)


def choosers(path):
    """Ways of choosing a pattern without timing it, at problems that they have not seen."""
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
    """What `automatic` came to, which times what is likely."""
    rows = [[str(max(p["ranks"] for p in d["problems"])), str(len(d["problems"])), f"{100 * d['share']:.1f} %",
             met(d["share"] >= WITHIN_BAR), f"[{name}](../bench/results/{name})"] for name, d in checks]
    return table(["ranks", "problems", "within 3 %", "at least 95 %", "measured"], rows, left=0)


def texts(root, checks):
    """docs/seer.md as it should be, if it is there."""
    page = root / "docs" / "seer.md"
    if not page.is_file():
        return {}
    text = page.read_text(encoding="utf-8")
    folder = root / "bench" / "select"
    parts = {"public": public_tables(folder), "selectors": selectors(folder),
             "choosers": choosers(root / "bench" / "choosers" / "choosers.json"), "timed": timed(checks)}
    for name, part in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"docs/seer.md has to hold {begin.strip()} and {end.strip()}, once each")
        before, rest = text.split(begin)
        text = before + begin + part + end + rest.split(end)[1]
    return {page: text}
