#!/usr/bin/env python3
"""Every C++ source is formatted as .clang-format says (by version 14: other versions format differently)."""
import subprocess

import gate


def check(tree):
    program = gate.tool("clang-format-14")
    style = f"--style=file:{gate.PROJECT / '.clang-format'}"
    findings = []
    for name in tree.files():
        run = subprocess.run([program, style, "--dry-run", "-Werror", str(tree.root / name)],
                             capture_output=True, text=True)
        if "error: code should be clang-formatted" in run.stderr:
            findings.append(f"{name}: not formatted; run: clang-format-14 -i {name}")
        elif run.returncode != 0:
            findings.append(f"{name}: clang-format-14 failed: {run.stderr.strip()}")
    return findings


BAD = [("src/core/a.cpp", "int  f( ){return 1;}\n")]
GOOD = [("src/core/a.cpp", "int f() { return 1; }\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
