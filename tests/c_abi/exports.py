#!/usr/bin/env python3
"""libuntax_c.so shows the functions of untax.h and nothing else, and both are what exports.txt lists.

Usage: exports.py LIBRARY. With UNTAX_WRITE_EXPORTS=1 the list is written anew.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADERS = HERE.parents[1] / "include/untax/c"
LIST = HERE / "exports.txt"


def main(library):
    nm = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    shown = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()}
    declared = {name for header in HEADERS.glob("*.h")
                for name in re.findall(r"UNTAX_API\s+[^;{(]*?\b(untax_\w+)\s*\(", header.read_text())}
    if os.environ.get("UNTAX_WRITE_EXPORTS") == "1":
        LIST.write_text("".join(f"{name}\n" for name in sorted(shown)))
    listed = set(LIST.read_text().split())
    wrong = [f"{name}: {kind}" for kind, names in (
        ("is shown by the library, and exports.txt does not list it", shown - listed),
        ("is in exports.txt, and the library does not show it", listed - shown),
        ("is declared in include/untax/c, and exports.txt does not list it", declared - listed),
        ("is in exports.txt, and no header declares it", listed - declared)) for name in sorted(names)]
    print("\n".join(wrong) or f"{len(shown)} functions, as they are listed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
