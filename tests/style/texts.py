#!/usr/bin/env python3
"""No file holds paths of one machine, unfinished business, or links to hosts that nobody reviewed."""
import re

import gate

# Written in pieces, so that this file does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w.$}])/(?:wo" r"rk|ho" r"me|ro" r"ot)/"), "a path that exists on one machine only"),
    (re.compile(r"/tmp/(?:bui" r"ld|bash)"), "a path that exists on one machine only"),
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b"), "unfinished business: do it, or file an issue"),
    (re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE), "a merge conflict"),
    (re.compile(r"[ \t]+$", re.MULTILINE), "white space at the end of a line"),
    (re.compile(r"\r"), "a carriage return"),
]
HOSTS = {"arxiv.org", "www.apache.org", "docs.nvidia.com", "github.com", "huggingface.co", "www.w3.org",
         "ui.perfetto.dev", "en.cppreference.com", "cmake.org", "json-schema.org"}
LINK = re.compile(r"https?://([\w.-]+)")
EXEMPT = {"LICENSE"}


def check(tree):
    findings = []
    for name in tree.files(suffixes=None):
        text = tree.text(name)
        if name in EXEMPT or "\0" in text:
            continue
        for pattern, reason in FORBIDDEN:
            for match in pattern.finditer(text):
                findings.append(f"{name}:{gate.line_of(text, match.start())}: {match.group(0)!r}: {reason}")
        for match in LINK.finditer(text):
            if match.group(1) not in HOSTS:
                findings.append(f"{name}:{gate.line_of(text, match.start())}: a link to {match.group(1)}, "
                                "which is not among the hosts that tests/style/texts.py names")
        if text and not text.endswith("\n"):
            findings.append(f"{name}: no line break at its end")
    return findings


BAD = [
    ("docs/a.md", "see /wo" + "rk/main\n"),
    ("docs/a.md", "see /ro" + "ot/x\n"),
    ("src/core/a.cpp", "// TO" + "DO: later\n"),
    ("docs/a.md", "line \n"),
    ("docs/a.md", "line"),
    ("docs/a.md", "[x](https:/" + "/example.test/a)\n"),
    ("docs/a.md", "<" * 7 + " HEAD\n"),
]
GOOD = [
    ("docs/a.md", "See https://arxiv.org/abs/2511.02168 and the work/rest ratio.\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
