#!/usr/bin/env python3
"""No file of code is longer than 400 lines."""
import statistics

import gate

LIMIT = 400
SUFFIXES = gate.CODE | {".py", ".sh", ".cmake", ".html", ".js", ".css"}


def check(tree):
    lengths = {name: tree.text(name).count("\n") for name in tree.files(SUFFIXES)}
    if lengths:
        longest = max(lengths, key=lengths.get)
        print(f"{len(lengths)} files, median {statistics.median(lengths.values()):.0f} lines, "
              f"longest {longest} with {lengths[longest]}")
    return [f"{name}: {length} lines, more than {LIMIT}" for name, length in lengths.items() if length > LIMIT]


BAD = [("src/core/a.cpp", "int x;\n" * (LIMIT + 1))]
GOOD = [("src/core/a.cpp", "int x;\n" * LIMIT)]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
