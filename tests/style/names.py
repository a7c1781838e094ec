#!/usr/bin/env python3
"""Declarations are named by nouns of the field, not by function words.

The tree still has some from before this rule; their number may only fall. Set MOST to the number that is printed.
"""
import re

import gate

WORDS = "all|one|found|made|of|by|here|there"
DECLARATION = re.compile(rf"[\w>\]][\s&*]*[\s&*](?P<name>{WORDS})(?=\s*(?:=[^=]|[;,):{{\[]))")
STATEMENT = re.compile(r"(?:return|co_return|case|else|throw)\s+[&*]*$")
MOST = 300


def declared(text):
    """(offset, word) of each declaration that is named by a function word."""
    code = gate.without_comments(text)
    for match in DECLARATION.finditer(code):
        if not STATEMENT.search(code[max(0, match.start() - 10):match.start("name")]):
            yield match.start("name"), match["name"]


def check(tree):
    findings = [f"{name}:{gate.line_of(tree.text(name), offset)}: {word!r} names nothing; take a noun"
                for name in tree.files() for offset, word in declared(tree.text(name))]
    print(f"{len(findings)} declarations are named by function words; {MOST} may be")
    return findings if len(findings) > MOST else []


BAD = [("src/a.cpp", "const owned& one = memory;\n" * (MOST + 1)), ("src/a.cpp", "int f(int of);\n" * (MOST + 1))]
GOOD = [("src/a.cpp", "return one; // all\nint rank = 0;\nx.all();\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
