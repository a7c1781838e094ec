#!/usr/bin/env python3
"""The reading path for GPUs in HACKING.md, from `run` to wgmma and the signal, is whole and short.

Each step names a file by its path from the root. Headers are included by files that come before them, directly or
not, or by the sources of kernels that the build makes. The files together have the instructions that the path is said to lead to.
"""
import re

import gate

MOST_FILES, MOST_LINES = 26, 4000
SECTION = re.compile(r"^## From run to wgmma and the signal$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\d+\. `([\w/.]+)`", re.MULTILINE)
KERNELS = "cmake/untax_kernels.cmake"
ENDS = {"the matrix instruction": "wgmma.mma_async", "the signal": "red.release"}


def instantiated(tree):
    """What the sources of kernels, which the build makes, include, and what that includes at once."""
    if not (tree.root / KERNELS).is_file():
        return set()
    named = set(re.findall(r"[\w/]+\.cuh", tree.text(KERNELS)))
    return named | {tree.resolve(name, included) for name in named for included in tree.includes(name)}


def check(tree):
    section = SECTION.search(tree.text("HACKING.md")) if (tree.root / "HACKING.md").is_file() else None
    if section is None:
        return ["HACKING.md: has no section From run to wgmma and the signal"]
    steps = STEP.findall(section.group(1))
    missing = [name for name in steps if not (tree.root / name).is_file()]
    if missing:
        return [f"HACKING.md: the reading path names {name}, which does not exist" for name in missing]
    findings = []
    lines = sum(tree.text(name).count("\n") for name in set(steps))
    print(f"reading path: {len(steps)} files, {lines} lines")
    if len(steps) > MOST_FILES or lines > MOST_LINES:
        findings.append(f"HACKING.md: the reading path has {len(steps)} files and {lines} lines; it may have "
                        f"{MOST_FILES} and {MOST_LINES}")
    known = instantiated(tree)
    for name in steps:
        if name.endswith(("hpp", "cuh")) and name not in known:
            findings.append(f"HACKING.md: nothing that comes before {name} in the reading path includes it")
        known.update(tree.closure(name))
    for what, text in ENDS.items():
        if not any(text in tree.text(name) for name in steps):
            findings.append(f"HACKING.md: the reading path does not lead to {what}: no file has {text}")
    return findings


HEAD = "## From run to wgmma and the signal\n\n1. `HACKING.md`\n2. `HACKING.md`, wgmma.mma_async, red.release\n"
BAD = [
    ("HACKING.md", "# Hacking\n"),
    ("HACKING.md", HEAD + "3. `src/nowhere.cpp`\n"),
    ("HACKING.md", HEAD.replace("red.release", "")),
    ("HACKING.md", HEAD + "x\n" * MOST_LINES),
    ("HACKING.md", HEAD + "3. `HACKING.md`\n" * MOST_FILES),
]
GOOD = [("HACKING.md", HEAD), ("HACKING.md", HEAD + "\n## Next\n1. `src/nowhere.cpp`\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
