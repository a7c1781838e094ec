"""The parts of the average layer of models, from the output of `untax taxes --json`; and the host engine beside bare
calls."""
from compared import over_bound
from tables import table

PARTS = [("launch", "launch tax"), ("engine", "engine"), ("bulk_synchronous", "bulk-synchronous tax"),
         ("locality", "locality tax"), ("joint", "joint tax"), ("stand_in", "cost of the stand-in"),
         ("remainder", "remainder"), ("bound", "bound")]
LAYER_NOTE = ("Milliseconds of an average layer: E0 and its parts, which add up to it. After ±: how far chance may have "
              "moved a part. Parts that are not separable are together in the joint tax. E4 / bound is invalid where E4 is below the bound of an operation by more than that, so that "
              "computing or sending alone was measured too slow; ~ where E4 is below it by less.\n")


def seconds(value):
    """Three digits, in the unit that fits."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        scaled = value * factor
        if abs(scaled) >= 1 or unit == "us":
            break
    digits = 0 if abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2
    return f"{scaled:.{digits}f} {unit}"


def milliseconds(value, digits=3):
    """A number with that many digits, without an exponent and without zeros at the end."""
    text = f"{float(f'{1e3 * value:.{digits}g}'):f}"
    return text.rstrip("0").rstrip(".")


def with_error(value, uncertainty):
    """Of a part without a figure what stands in its place."""
    if isinstance(value, str):
        return value
    error = f" ± {milliseconds(uncertainty, 2)}" if uncertainty else ""
    return milliseconds(value) + error


def coverage(document):
    """The operations that sums leave out."""
    names = [layer["name"] for layer in document.get("unmeasured", [])] + document.get("left_out", [])
    return f", without {' and '.join(names)}" if names else ""


def layers(taxes):
    """The parts of the average layer of each model."""
    rows = []
    for _, d in taxes:
        parts, error = d["average_layer"], d["average_layer_uncertainty"]
        best = parts["bound"] + parts["remainder"]
        rows.append([f"{d['model']}, {d['dtype']}{coverage(d)}", d.get("gpus", "threads of a CPU"),
                     str(d["tensor_parallel"]), str(d["tokens"]),
                     milliseconds(parts["total"]), *(with_error(parts.get(key, 0), error.get(key, 0)) for key, _ in PARTS),
                     over_bound(best, parts["bound"], d.get("verdict", {}))])
    return table(["model", "on", "ranks", "tokens", "E0", *(title for _, title in PARTS), "E4 / bound"], rows,
                 left=2)


def comparisons(bench):
    rows = [[c["name"], c["reference"], seconds(c["seconds"]["median"]), seconds(c["reference_seconds"]["median"]),
             f"{c['ratio']:.2f}", c["bar"], "yes" if c["met"] else "no"]
            for _, d in bench for c in d["comparisons"]]
    return table(["untax", "beside", "time", "time of the other", "ratio", "has to be", "is"], rows, left=2)
