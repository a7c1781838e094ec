"""C++ as tokens, as far as mutations need it: what is a comment, what a template argument, where a function begins."""

import re
from dataclasses import dataclass

PATTERN = re.compile(
    r"""(?P<space>\s+)
      |(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<directive>\#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*)
      |(?P<string>(?:u8|u|U|L)?R"(?P<fence>[^()\s]*)\(.*?\)(?P=fence)"|(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*")
      |(?P<char>'(?:[^'\\\n]|\\.)+')
      |(?P<number>(?:0[xX][0-9a-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][+-]?\d+)?)[uUlLfFzZ]*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<sign><=>|->\*|<<=|>>=|\.\.\.|::|->|\+\+|--|&&|\|\||<=|>=|==|!=|\+=|-=|\*=|/=|%=|&=|\|=|\^=|<<|>>|.)""",
    re.VERBOSE | re.DOTALL,
)
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = set(OPENING.values())


@dataclass
class Token:
    kind: str
    text: str
    start: int
    spaced: bool  # whether a space is before it
    template: bool = False  # < and > of template arguments, and what lies between
    partner: int = -1  # index of the other bracket
    off: bool = False  # not to be mutated


def tokens_of(source):
    """The tokens without comments, spaces and directives, and without what is compiled for devices only."""
    tokens, spaced, hidden = [], True, []
    for match in PATTERN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if match.group("string"):
            kind = "string"
        if kind in ("space", "comment"):
            spaced = True
        elif kind == "directive" and source[: match.start()].rpartition("\n")[2].strip() == "":
            word = re.match(r"#\s*(\w+)", text)
            word = word.group(1) if word else ""
            if word in ("if", "ifdef", "ifndef"):
                device = re.search(r"__CUDA|UNTAX_HAS_CUDA", text) is not None
                hidden.append(device and word != "ifndef" and "!" not in text)
            elif word in ("else", "elif") and hidden:
                hidden[-1] = not hidden[-1] and "__CUDA" in text
            elif word == "endif" and hidden:
                hidden.pop()
            spaced = True
        else:
            if not any(hidden):
                tokens.append(Token(kind, text, match.start(), spaced))
            spaced = False
    mark_templates(tokens)
    match_brackets(tokens)
    return tokens


def mark_templates(tokens):
    """clang-format puts spaces around a comparison and none before template arguments."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else None
        if token.text != "<" or token.template or before is None:
            continue
        if before.kind != "name" or (token.spaced and before.text != "template"):
            continue
        depth = 0
        for j in range(i, min(i + 200, len(tokens))):
            text = tokens[j].text
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
            elif text == ">>":
                depth -= 2
            elif text in ";{}":
                break
            if depth <= 0:
                for inside in tokens[i : j + 1]:
                    inside.template = True
                break


def match_brackets(tokens):
    stack = []
    for i, token in enumerate(tokens):
        if token.text in OPENING:
            stack.append(i)
        elif token.text in CLOSING and stack:
            opened = stack.pop()
            tokens[opened].partner, token.partner = i, opened


def head_of(tokens, brace):
    """The tokens of the declaration that ends at this brace."""
    first = brace
    while first > 0:
        text = tokens[first - 1].text
        if text in ("}", ")", "]") and tokens[first - 1].partner >= 0 and text != "}":
            first = tokens[first - 1].partner
            continue
        if text in (";", "{", "}") or (text == ":" and tokens[first - 2].text in ("public", "private", "protected")):
            break
        first -= 1
    return first


def function_bodies(tokens):
    """Pairs of indices of the braces of functions, and the indices of members' initial values."""
    bodies, members, i = [], [], 0
    in_class = []
    while i < len(tokens):
        text = tokens[i].text
        if text == "}" and in_class:
            in_class.pop()
        elif text == "{" and tokens[i].partner > i:
            head = [t.text for t in tokens[head_of(tokens, i) : i] if not t.template]
            if "namespace" in head or ("extern" in head and len(head) == 2):
                in_class.append(False)
            elif "enum" in head or "concept" in head:
                i = tokens[i].partner
            elif "(" in head and tokens[i - 1].text not in ("=", ","):
                if "constexpr" not in head or ")" in head:
                    end = body_end(tokens, i)
                    bodies.append((end, tokens[end].partner))
                    i = tokens[end].partner
            elif {"struct", "class", "union"} & set(head) and "=" not in head:
                in_class.append(True)
            else:
                i = tokens[i].partner
        elif text == "=" and in_class and in_class[-1] and i + 2 < len(tokens) and tokens[i + 2].text == ";":
            head = [t.text for t in tokens[head_of(tokens, i) : i]]
            if "static" not in head and "constexpr" not in head and "(" not in head:
                members.append(i + 1)
        i += 1
    return bodies, members


def body_end(tokens, brace):
    """The brace of the body, behind member initialisers that use braces themselves."""
    while tokens[brace - 1].kind == "name" and tokens[brace - 1].text not in (
        "const", "noexcept", "override", "final", "try", "else", "mutable"):  # fmt: skip
        after = tokens[brace].partner + 1
        if after >= len(tokens) or tokens[after].text not in (",", "{"):
            break
        while after < len(tokens) and tokens[after].text != "{":
            after += 1
        if after >= len(tokens):
            break
        brace = after
    return brace
