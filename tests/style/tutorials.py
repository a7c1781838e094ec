#!/usr/bin/env python3
"""Tutorials and examples belong together: docs/tutorials/NN-*.md is about the one program in examples/NN_*/, names it,
and every fenced C++ block in it is part of that program, word for word. A program is one .cpp or .cu file."""
import re
import sys
import tempfile
from pathlib import Path

import gate

TUTORIAL = re.compile(r"^docs/tutorials/(\d+)-[^/]+\.md$")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
CPP = {"cpp", "c++", "cc", "cxx"}


def check(tree):
    findings = []
    names = tree.files({".md", ".cpp", ".cu"}, below=("docs/tutorials/", "examples/"))
    for name in names:
        number = TUTORIAL.match(name)
        if not number:
            continue
        programs = [p for p in names if p.startswith(f"examples/{number.group(1)}_") and p.endswith((".cpp", ".cu"))]
        if len(programs) != 1:
            findings.append(f"{name}: is about one program, but examples/{number.group(1)}_*/ holds "
                            f"{len(programs)} of them")
            continue
        text = tree.text(name)
        if programs[0] not in text:
            findings.append(f"{name}: does not name {programs[0]}, its program")
        blocks = 0
        for block in BLOCK.finditer(text):
            if block.group(1) not in CPP:
                continue
            blocks += 1
            if "\n" + block.group(2) not in "\n" + tree.text(programs[0]):
                findings.append(f"{name}:{gate.line_of(text, block.start())}: this is not, or no more, a part of "
                                f"{programs[0]}; copy it again")
        if blocks == 0:
            findings.append(f"{name}: quotes nothing of {programs[0]}")
    return findings


PROGRAM = "int a;\n\nint main() {\n  return a;\n}\n"
# Texts that a tutorial on this program may have and may not; gate.main tries single files only.
TELLING = [
    ("examples/00_a/a.cpp\n```cpp\n  return a;\n```\n", True),
    ("examples/00_a/a.cpp\n```\nanything\n```\n```cpp\nint a;\n```\n", True),
    ("examples/00_a/a.cpp\n```cpp\nint b;\n```\n", False),
    ("examples/00_a/a.cpp\n```cpp\nint a;\n```\n```cpp\nreturn a;\n```\n", False),
    ("examples/00_a/a.cpp\n", False),
    ("```cpp\nint a;\n```\n", False),
]


def misjudged():
    """How many of TELLING the gate judges wrongly."""
    wrong = 0
    for text, right in TELLING:
        with tempfile.TemporaryDirectory() as folder:
            for path, content in (("examples/00_a/a.cpp", PROGRAM), ("docs/tutorials/00-a.md", text)):
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(content)
            if (not check(gate.Tree(folder, folder, folder))) != right:
                wrong += 1
                print(f"should be {'accepted' if right else 'rejected'}:\n{text}")
    return wrong


BAD = [("docs/tutorials/00-a.md", "examples/00_a/a.cpp\n```cpp\nint a;\n```\n")]
GOOD = [("docs/tutorials/README.md", "```cpp\nint a;\n```\n"), ("docs/a.md", "```cpp\nint a;\n```\n")]

if __name__ == "__main__":
    if "--self-test" in sys.argv and misjudged() > 0:
        sys.exit(1)
    gate.main(check, BAD, GOOD)
