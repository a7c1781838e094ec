#!/usr/bin/env python3
"""Links and quotations in Markdown hold: what a relative link names exists, heading included, and code that is said
to be part of a file is part of it, word for word.

A quotation is a fenced block right behind a line `<!-- from PATH -->`, PATH counted from the project's root.
"""
import posixpath
import re
from urllib.parse import unquote

import gate

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"
                  r"|^\[[^\]]+\]:\s*(\S+)|\b(?:src|href|srcset)=\"([^\"]+)\"", re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r"^<!-- from (\S+) -->\n```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
OTHER = re.compile(r"^(?:[a-z][a-z+.-]*:|//)", re.IGNORECASE)


def blanked(pattern, text):
    """The text without what the pattern matches; line breaks stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def anchors(text):
    """The names under which headings can be reached, as GitHub makes them."""
    found = set()
    for heading in HEADING.findall(blanked(FENCE, text)):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        name, count = slug, 0
        while name in found:
            count += 1
            name = f"{slug}-{count}"
        found.add(name)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def check_links(tree, name, known):
    text = tree.text(name)
    findings = []
    for match in LINK.finditer(blanked(re.compile(r"`[^`\n]+`"), blanked(FENCE, text))):
        link = next(group for group in match.groups() if group)
        if OTHER.match(link):
            continue
        where = f"{name}:{gate.line_of(text, match.start())}"
        path, _, anchor = unquote(link).partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        if target.startswith("..") or (target not in known and not any(k.startswith(target + "/") for k in known)):
            findings.append(f"{where}: a link to {link}, but there is no {target}")
        elif anchor and target.endswith(".md") and anchor not in anchors(tree.text(target)):
            findings.append(f"{where}: a link to {link}, but {target} has no heading of that name")
    return findings


def check_quotes(tree, name, known):
    text = tree.text(name)
    findings = []
    for match in QUOTE.finditer(text):
        source, quoted = match.groups()
        where = f"{name}:{gate.line_of(text, match.start())}"
        if source not in known:
            findings.append(f"{where}: quotes {source}, which does not exist")
        elif tree.text(source).count(quoted) < (2 if source == name else 1):
            findings.append(f"{where}: this is not, or no more, a part of {source}; copy it again")
    return findings


def check(tree):
    known = set(tree.files(suffixes=None))
    findings = []
    for name in tree.files({".md"}):
        findings += check_links(tree, name, known) + check_quotes(tree, name, known)
    return findings


BAD = [
    ("docs/a.md", "see [b](b.md)\n"),
    ("docs/a.md", "see ![b](../a.md)\n"),
    ("docs/a.md", "# One\nsee [two](#two)\n"),
    ("docs/a.md", "# One\nsee [two](a.md#two)\n"),
    ("docs/a.md", '<img src="missing.svg">\n'),
    ("docs/a.md", "[one]\n\n[one]: missing.md\n"),
    ("docs/a.md", "out of [the tree](../../a.md)\n"),
    ("docs/a.md", "<!-- from src/b.cpp -->\n```cpp\nint b;\n```\n"),
    ("docs/a.md", "<!-- from docs/a.md -->\n```cpp\nint b;\n```\nint c;\n"),
]
GOOD = [
    ("docs/a.md", "# One, `two`: three\nsee [this](a.md), [here](#one-two-three), [there](../docs/a.md#one-two-three), "
                  "[docs](.) and [that](https:/" + "/arxiv.org/abs/1)\n"),
    ("docs/a.md", "```\n[no link](nowhere.md)\n```\n`[nor this](nowhere.md)`\n"),
    ("docs/a.md", "<!-- from docs/a.md -->\n```cpp\nint b;\n```\nint b;\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
