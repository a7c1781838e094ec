#!/usr/bin/env python3
"""Links and quotations in Markdown hold: what a relative link names exists, heading included, and code that is said
to be part of a file is part of it, word for word. A file that a text names in back-ticks exists, too.

A quotation is a fenced block right behind a line `<!-- from PATH -->`, PATH counted from the project's root.
"""
import fnmatch
import posixpath
import re
from urllib.parse import unquote

import gate

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"
                  r"|^\[[^\]]+\]:\s*(\S+)|\b(?:src|href|srcset)=\"([^\"]+)\"", re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r"^<!-- from (\S+) -->\n```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME = re.compile(r"[\w.{},*+-]+(?:/[\w.{},*+-]+)*/?")
ENDING = re.compile(r"[\w}*-]\.(?:md|hpp|cpp|cuh|cu|h|py|sh|def|json|cmake|svg|html|txt|csv|gz|in)$")
# Of which files a text may speak although they are not here.
ELSEWHERE = {
    "config.json": "a model's, as others publish it",
    "table.json": "what a user's command writes",
    "nccl.h": "of NCCL",
    "include/untax/ops/my_op.hpp": "of an operator that a reader adds",
}
OTHER = re.compile(r"^(?:[a-z][a-z+.-]*:|//)", re.IGNORECASE)


def blanked(pattern, text):
    """The text without what the pattern matches; line breaks stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def anchors(text):
    """The names under which headings can be reached, as GitHub makes them."""
    names = set()
    for heading in HEADING.findall(blanked(FENCE, text)):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        name, count = slug, 0
        while name in names:
            count += 1
            name = f"{slug}-{count}"
        names.add(name)
    return names | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


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


def expanded(name):
    """a.{b,c}: a.b and a.c."""
    match = re.search(r"\{([^{}]*)\}", name)
    if not match:
        return [name]
    return [whole for part in match.group(1).split(",")
            for whole in expanded(name[:match.start()] + part + name[match.end():])]


def is_file_name(text, folders):
    """Whether a span of code speaks of a file or a folder of the project: by its ending, or by where it begins."""
    return NAME.fullmatch(text) is not None and (
        bool(ENDING.search(text)) or ("/" in text.rstrip("/") and text.split("/")[0] in folders))


def check_names(tree, name, ends, folders):
    """File names in back-ticks: each is the end of a path of the project."""
    text = tree.text(name)
    findings = []
    for match in SPAN.finditer(blanked(FENCE, text)):
        said = match.group(1).removeprefix("./")
        if said in ELSEWHERE or not is_file_name(said, folders):
            continue
        for pattern in expanded(said.rstrip("/")):
            exists = any(fnmatch.fnmatch(end, pattern) for end in ends) if "*" in pattern else pattern in ends
            if not exists:
                findings.append(f"{name}:{gate.line_of(text, match.start())}: speaks of `{pattern}`, which does not exist")
    return findings


def endings(known):
    """Every end of every path of a file or a folder."""
    ends = set()
    for path in known:
        parts = path.split("/")
        for last in range(1, len(parts) + 1):
            ends.update("/".join(parts[first:last]) for first in range(last))
    return ends


def check(tree):
    known = set(tree.files(suffixes=None))
    ends, folders = endings(known), {path.split("/")[0] for path in known if "/" in path}
    findings = []
    for name in tree.files({".md"}):
        findings += check_links(tree, name, known) + check_quotes(tree, name, known)
        # A changelog speaks of what was.
        if name != "CHANGELOG.md":
            findings += check_names(tree, name, ends, folders)
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
    ("docs/a.md", "see `b.hpp`\n"),
    ("docs/a.md", "see `docs/b`\n"),
    ("docs/a.md", "see `docs/{a,b}.md`\n"),
    ("docs/a.md", "see `docs/*.hpp`\n"),
]
GOOD = [
    ("docs/a.md", "# One, `two`: three\nsee [this](a.md), [here](#one-two-three), [there](../docs/a.md#one-two-three), "
                  "[docs](.) and [that](https:/" + "/arxiv.org/abs/1)\n"),
    ("docs/a.md", "```\n[no link](nowhere.md)\n```\n`[nor this](nowhere.md)`\n"),
    ("docs/a.md", "<!-- from docs/a.md -->\n```cpp\nint b;\n```\nint b;\n"),
    ("docs/a.md", "`a.md`, `./docs/a.md`, `.md`, `docs/`, `docs/*.md`, `{a,a}.md`, `b/c`, `x.y`, `ctest -R a.cpp`, `config.json`\n"),
    ("docs/a.md", "```\n`b.hpp`\n```\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
