#!/usr/bin/env python3
"""Each library needs symbols only of itself and of those that it uses, and libuntax_c.so has nothing of a library of
checks, measurements or simulations.

The gate `layers` judges includes; this looks at what is linked, which includes do not show: a declaration in one library
whose body is in another.

Usage: libraries.py FOLDER, with the archives of a build and libuntax_c.so.
"""
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests/style"))
import layers  # noqa: E402

NOT_IN_C = {"untax_verify", "untax_measure", "untax_locality"}
NOT_NEEDED_BY_C = ("libz.", "libCLI")


def symbols(path, kinds):
    """The symbols of these kinds of nm, by name."""
    lines = subprocess.run(["nm", "--format=posix", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {fields[0] for fields in map(str.split, lines) if len(fields) >= 2 and fields[1] in kinds}


def main(folder):
    uses = layers.Libraries((PROJECT / "CMakeLists.txt").read_text()).uses
    archives = {name: folder / f"lib{name}.a" for name in uses}
    # Weak symbols, of templates and inline functions, are wherever they are used.
    defined = {name: symbols(path, "TDBR") for name, path in archives.items()}
    wrong = []
    for name, path in archives.items():
        missing = symbols(path, "U")
        for other in uses.keys() - uses[name] - {name}:
            wrong += [f"{name} needs {symbol} of {other}, which it does not use" for symbol in sorted(missing & defined[other] - defined[name])]
    c_abi = folder / "libuntax_c.so"
    in_c = symbols(c_abi, "TtDdBbRr")
    for name in sorted(NOT_IN_C):
        wrong += [f"libuntax_c.so has {symbol} of {name}" for symbol in sorted(in_c & defined[name])]
    needed = subprocess.run(["readelf", "-d", str(c_abi)], capture_output=True, text=True, check=True).stdout
    wrong += [f"libuntax_c.so needs {library}" for library in NOT_NEEDED_BY_C if f"[{library}" in needed]
    if not all(defined.values()) or not in_c:
        wrong.append("nm shows no symbols")
    print("\n".join(wrong) or f"{', '.join(f'{name} {len(defined[name])}' for name in archives)} symbols, libuntax_c.so {len(in_c)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
