#!/usr/bin/env python3
"""The tables of results are what bench/results/generate.py makes of the JSON files beside it: no figure is typed."""
import importlib.util

import gate


def generator():
    path = gate.PROJECT / "bench" / "results" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(tree):
    if not (tree.root / "README.md").is_file():
        return ["README.md: missing"]
    try:
        generate = generator()
        texts = generate.generated(tree.root)
        generate.details(generate.load(tree.root / "bench" / "results"))  # what no file holds can be rendered, too
    except (SystemExit, KeyError, ValueError) as wrong:
        return [f"bench/results: {wrong}"]
    return [f"{path.relative_to(tree.root)}: not what the JSON files say; run bench/results/generate.py"
            for path, text in texts.items()
            # Without results there may be no table yet.
            if (path.is_file() or any(tree.root.glob("bench/results/*.json")))
            and (not path.is_file() or path.read_text(encoding="utf-8") != text)]


MARKS = "<!-- results:begin -->\n{}<!-- results:end -->\n"
BAD = [
    ("README.md", "# no table\n"),
    ("README.md", MARKS.format("| 1.00 |\n")),
    ("bench/results/README.md", "| 1.00 |\n"),
]
GOOD = [("README.md", MARKS.format("There are none yet.\n"))]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
