#!/usr/bin/env python3
"""A name of a namespace stands for one type.

Two types of one name in one namespace break the one-definition rule without a word of the compiler, as soon as the headers of both
reach one program. Types in an unnamed namespace belong to their file.
"""
import collections
import re

import gate

PRODUCT = ("include/", "src/", "engines/", "ops/", "decoder/", "bench/", "cli/", "python/")
TOKEN = re.compile(r"\bnamespace(?:\s+(?P<space>[\w:]+))?\s*\{"
                   r"|(?<!<)(?<!, )\b(?:class|struct|enum(?:\s+class)?|union)\s+(?:alignas\s*\([^)]*\)\s*)?(?P<type>\w+)\s*"
                   r"(?:final\s*)?(?::(?!:)[^;{(]*)?\{"
                   r"|\{|\}")


def types(name, text):
    """The qualified names of the types that a file defines in namespaces."""
    open_blocks = []
    for match in TOKEN.finditer(gate.without_comments(text)):
        token = match.group(0)
        if token.startswith("namespace"):
            open_blocks.append(match["space"] or f"({name})")
        elif token == "}":
            if open_blocks:
                open_blocks.pop()
        else:
            if match["type"] and None not in open_blocks:
                yield "::".join([*open_blocks, match["type"]])
            open_blocks.append(None)


def check(tree):
    places = collections.defaultdict(set)
    for name in tree.files(below=PRODUCT):
        for defined in types(name, tree.text(name)):
            places[defined].add(name)
    return [f"{min(names)}: {defined} is another type in {', '.join(sorted(names)[1:])}"
            for defined, names in sorted(places.items()) if len(names) > 1 and not variants(names)]


def variants(names):
    """Whether a program has only one of these files: with CUDA, or without."""
    return sum("/no_cuda/" not in name for name in names) <= 1


TWO = "namespace untax {\nstruct room {\n  int rows;\n};\n}\n"
BAD = [{"src/a.hpp": TWO, "ops/b.hpp": "namespace untax {\nclass room final : public base {\n};\n}\n"}]
GOOD = [{"src/a.hpp": TWO, "ops/b.cpp": "namespace untax {\nnamespace {\nstruct room {};\n}\nstruct world::room {\n};\n}\n"},
        {"src/a.hpp": TWO, "ops/b.hpp": "namespace untax::gpu {\nclass room {};\ntemplate <>\nstruct room<int> {\n};\n}\n"}]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
