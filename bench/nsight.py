"""Counters of Nsight Compute (ncu) for the kernels of a command."""
import csv
import io

# Output as text: each launch is a row with unscaled counts.
OPTIONS = ["ncu", "--csv", "--page", "raw", "--print-units", "base"]


def launches(printed, names):
    """The counts of each launch, from the output of ncu: a line of names, a line of units, one line of each launch."""
    lines = printed.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))[1:]
    return [{name: float(row[name].replace(",", "")) for name in names} for row in rows]
