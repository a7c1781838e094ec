"""The mutations of a file: small changes of expressions and statements."""

import hashlib
from dataclasses import dataclass

from tokens import OPENING, function_bodies, tokens_of

RELATIONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("/",), "+=": ("-=",), "-=": ("+=",)}
LOGIC = {"&&": ("||",), "||": ("&&",)}
ALIKE = {
    "min": "max", "max": "min", "producer": "consumer", "consumer": "producer", "ready": "free", "free": "ready",
    "row": "col", "col": "row", "rows": "cols", "cols": "rows", "begin": "end", "first": "last", "last": "first",
    "rank_": "peer", "rank": "peer", "peer": "rank", "source": "destination", "even": "odd", "true": "false",
    "false": "true", "memory_order_acquire": "memory_order_relaxed", "memory_order_release": "memory_order_relaxed",
    "memory_order_acq_rel": "memory_order_relaxed",
}  # fmt: skip
SHIFTED = {"epoch", "hop", "entered_", "epoch_"}
OPERAND_ENDS = {"name", "number", "char", "string"}
KEYWORDS = {"return", "case", "throw", "co_return", "else", "new", "delete", "goto", "using", "typedef", "if", "for",
            "while", "do", "switch", "break", "continue", "default", "const", "constexpr", "static", "auto"}  # fmt: skip
BOUNDARIES = {",", ";", "=", "?", ":", "return", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="}


@dataclass
class Mutation:
    """Source text [start, end) becomes `text`; a statement, if it is one, else an expression."""

    kind: str
    file: str
    line: int
    context: str  # the line's text
    start: int
    end: int
    text: str
    change: str
    statement: bool = False
    key: str = ""


class Reader:
    def __init__(self, file, source):
        self.file, self.source = file, source
        self.tokens = tokens_of(source)
        self.found = []
        self.seen = {}

    def mutations(self):
        bodies, members = function_bodies(self.tokens)
        for first, last in bodies:
            self.read_body(first, last)
        for i in members:
            if self.tokens[i].kind == "number":
                self.constant(i, i, i + 1)
        return self.found

    # Skips code that is not mutated: texts of errors, compile-time expressions, types.
    def switch_off(self, first, last):
        i = first
        while i < last:
            token = self.tokens[i]
            if token.text in ("throw", "static_assert", "constexpr", "case", "using", "typedef", "goto"):
                while self.tokens[i].text not in (";", ":") and i < last:
                    if self.tokens[i].text in OPENING and self.tokens[i].partner > 0:
                        for j in range(i, self.tokens[i].partner):
                            self.tokens[j].off = True
                        i = self.tokens[i].partner
                    self.tokens[i].off = True
                    i += 1
            elif token.text in ("format", "format_to", "refuse", "error", "decltype", "noexcept", "alignas", "requires"):
                if self.tokens[i + 1].text == "(":
                    for j in range(i, self.tokens[i + 1].partner + 1):
                        self.tokens[j].off = True
            elif token.text == "[" and self.tokens[i + 1].text == "[":
                for j in range(i, token.partner + 1):
                    self.tokens[j].off = True
            i += 1

    def read_body(self, first, last):
        self.switch_off(first, last)
        for i in range(first + 1, last):
            token = self.tokens[i]
            if token.off or token.template:
                continue
            self.statement(i, first, last)
            span = None
            before = self.tokens[i - 1]
            binary = before.kind in OPERAND_ENDS and before.text not in KEYWORDS or before.text in (")", "]")
            if token.text in RELATIONS and token.spaced:
                choices = RELATIONS[token.text][self.is_choice(i) :]
            elif token.text in ARITHMETIC and binary and token.spaced:
                choices = ARITHMETIC[token.text]
            elif token.text in LOGIC and binary and token.spaced:
                choices = LOGIC[token.text]
            else:
                choices = ()
            for choice in choices:
                if token.text in ("+=", "-="):
                    self.add("operator", self.statement_around(i), i, i, choice, statement=True)
                else:
                    span = span or self.span_around(i, first, last)
                    self.add("operator", span, i, i, choice)
            if token.text == "!" and not binary:
                self.add("negation", self.span_around(i, first, last), i, i, "")
            elif token.kind == "number":
                self.constant(i, *self.span_around(i, first, last))
            elif token.kind == "name":
                self.name(i, first, last)
            if token.text == "if" and self.tokens[i + 1].text == "(":
                self.condition(i + 1)
            if token.text == "(" and before.kind == "name" and before.text not in KEYWORDS:
                self.exchanged(i, first, last)

    def is_choice(self, i):
        """`a < b ? a : b` and `if (a > b) a = b`: where both are equal it is the same value, so `<` may be `<=`."""
        if self.tokens[i].text not in ("<", "<=", ">", ">="):
            return False
        start, end = self.span_around(i, 0, len(self.tokens) - 1)
        first, second = self.text(start, i), self.text(i + 1, end)
        rest = self.text(end, min(end + 2 * (end - start) + 6, len(self.tokens)))
        return any(rest.startswith(f"{head} : {that}") for head, that in ((f"? {first}", second), (f"? {second}", first))) or any(
            rest.startswith(f") {a} = {b};") for a, b in ((first, second), (second, first)))

    def constant(self, i, start, end):
        text = self.tokens[i].text
        digits = text.rstrip("uUlLfFzZ")
        if not digits.isdigit() or len(digits) > 6:
            return
        suffix = text[len(digits) :]
        for value in {int(digits) + 1, max(int(digits) - 1, 0)} - {int(digits)}:
            self.add("constant", (start, end), i, i, f"{value}{suffix}")

    def name(self, i, first, last):
        text = self.tokens[i].text
        after = self.tokens[i + 1].text
        if after in ("{", "::") or self.tokens[i - 1].kind == "name" and self.tokens[i - 1].text not in ("return", "else"):
            return
        span = self.span_around(i, first, last)
        if text in ALIKE and not (text in ("first", "last") and self.tokens[i - 1].text in (".", "->")):
            self.add("alike", span, i, i, ALIKE[text])
        if text in SHIFTED and after != "(" and self.tokens[i - 1].text not in (".", "->", "++", "--", "&", "::"):
            if after not in ("=", "+=", "++", "--"):
                self.add("shift", span, i, i, f"({text} + 1)")

    def condition(self, bracket):
        inside = range(bracket + 1, self.tokens[bracket].partner)
        texts = [self.tokens[j].text for j in inside]
        if ";" in texts or "=" in texts or not texts or self.tokens[bracket - 2].text == "else_":
            return
        for value in ("true", "false"):
            self.add("condition", (bracket + 1, self.tokens[bracket].partner), bracket + 1,
                     self.tokens[bracket].partner - 1, value)  # fmt: skip

    def exchanged(self, bracket, first, last):
        """Neighbouring arguments of a call change places; the compiler refuses those of other kinds."""
        cuts, i, end = [bracket], bracket + 1, self.tokens[bracket].partner
        while i < end:
            if self.tokens[i].text in OPENING and self.tokens[i].partner > 0:
                if self.tokens[i].text == "{":
                    return
                i = self.tokens[i].partner
            elif self.tokens[i].text == "," and not self.tokens[i].template:
                cuts.append(i)
            i += 1
        cuts.append(end)
        if len(cuts) < 3 or self.tokens[bracket - 1].text in ("min", "max", "least", "minimum", "maximum", "swap"):
            return
        span = self.span_around(bracket, first, last)
        if self.tokens[bracket - 1].text == "clamp":
            cuts = cuts[1:]  # the larger of value and lower bound is the same either way
        for a, b, c in zip(cuts, cuts[1:], cuts[2:]):
            first, second = self.text(a + 1, b), self.text(b + 1, c)
            if first != second and '"' not in first + second:
                self.add("swap", span, a + 1, c - 1, f"{second}, {first}")

    def statement(self, i, first, last):
        """Calls and assignments can be left out, and values returned by default."""
        token, before = self.tokens[i], self.tokens[i - 1].text
        starts = before in (";", "{", "}", "else") or before == ")" and self.controls(i - 1)
        if not starts or i - 1 == first and before != "{":
            return
        end = self.statement_end(i, last)
        if end is None:
            return
        if token.text == "return" and end > i + 1:
            if self.text(i + 1, end) not in ("{}", "0", "false", "nullptr", "std::nullopt", "-1"):
                self.add_statement("return", i, end, "return {};", "return {}")
        elif token.text in ("break", "continue") or token.text == "return":
            self.add_statement("dropped", i, end, ";", "")
        elif token.text not in KEYWORDS and token.text != "." and self.is_expression(i, end):
            self.add_statement("dropped", i, end, ";", "")

    def controls(self, bracket):
        opened = self.tokens[bracket].partner
        word = self.tokens[opened - 1].text if opened > 0 else ""
        return word in ("if", "for", "while") or word == "constexpr"

    def statement_end(self, i, last):
        while i < last:
            if self.tokens[i].text in OPENING and self.tokens[i].partner > 0:
                i = self.tokens[i].partner
            elif self.tokens[i].text in ("}", ")"):
                return None
            elif self.tokens[i].text == ";":
                return i
            i += 1
        return None

    def is_expression(self, i, end):
        """A chain of names, calls and brackets, perhaps assigned to: no declaration, and nothing that a type begins."""
        if self.tokens[i].text in ("++", "--", "*"):
            i += 1
        while i < end:
            token = self.tokens[i]
            if token.text in ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "%=", "++", "--"):
                return True
            if token.text in ("(", "["):
                i = token.partner + 1
                continue
            if token.kind == "name" and self.tokens[i + 1].kind == "name" and not token.template:
                return False
            if token.kind != "name" and token.text not in ("::", ".", "->") and not token.template:
                return False
            if token.template and self.tokens[i + 1].kind == "name" and token.text in (">", ">>"):
                return False
            if token.kind == "name" and self.tokens[i + 1].text in ("&", "{"):
                return False
            i += 1
        return self.tokens[end - 1].text == ")"

    def statement_around(self, i):
        start = i
        while self.tokens[start - 1].text not in (";", "{", "}", "else"):
            if self.tokens[start - 1].text == ")":
                if self.controls(start - 1):
                    break
                start = self.tokens[start - 1].partner
                continue
            if self.tokens[start - 1].text in ("(", ","):
                return None
            start -= 1
        end = self.statement_end(i, len(self.tokens) - 1)
        return None if end is None else (start, end)

    def span_around(self, i, first, last):
        """The smallest full expression around a token, as token indices [start, end)."""
        start = i
        while start > first + 1:
            before = self.tokens[start - 1]
            if before.text in (")", "]", "}") and before.partner >= 0:
                if before.text == ")" and self.controls(start - 1) or before.text == "}" and start != i:
                    break
                start = before.partner
                continue
            if before.text in OPENING or before.text in BOUNDARIES and not before.template:
                break
            if before.text == "else" or before.text in ("}",):
                break
            start -= 1
        end = i
        while end < last:
            token = self.tokens[end]
            if token.text in OPENING and token.partner > 0:
                end = token.partner + 1
                continue
            if token.text in (")", "]", "}") or token.text in BOUNDARIES and not token.template:
                break
            end += 1
        return start, end

    def text(self, start, end):
        pieces = []
        for token in self.tokens[start:end]:
            pieces.append((" " if token.spaced and pieces else "") + token.text)
        return "".join(pieces)

    def add(self, kind, span, first, last, replacement, statement=False):
        if span is None or span[0] >= span[1]:
            return
        start, end = span
        if any(self.tokens[j].off for j in range(start, end)):
            return
        if self.tokens[start].text == "." or self.tokens[start].text in ("&", "[", "{"):
            return
        if not statement and not self.is_value(start, end):
            return
        # A bool, too: beside what is not negated, `!optional` would become an optional that holds it.
        put = "!!" if kind == "negation" else replacement
        parts = [self.text(start, first), put, self.text(last + 1, end)]
        self.append(kind, start, end, " ".join(p for p in parts if p), first, last, replacement, statement)

    def is_value(self, start, end):
        """No declaration: two names side by side are a type and what it declares."""
        for j in range(start, end - 1):
            first, second = self.tokens[j], self.tokens[j + 1]
            if first.template or first.text in OPENING or second.template:
                continue
            if first.kind == "name" and second.kind == "name":
                return False
        return True

    def add_statement(self, kind, start, end, text, change):
        if any(self.tokens[j].off for j in range(start, end)) and kind != "dropped":
            return
        self.append(kind, start, end + 1, text, start, end - 1, change, True)

    def append(self, kind, start, end, text, first, last, replacement, statement):
        at = self.tokens[first].start
        line = self.source.count("\n", 0, at) + 1
        context = " ".join(self.source.splitlines()[line - 1].split())
        change = f"{self.text(first, last + 1)} -> {replacement or 'nothing'}"
        if statement and kind == "operator":
            end, text = end + 1, text + ";"
        name = f"{self.file}|{context}|{change}"
        self.seen[name] = self.seen.get(name, 0) + 1
        key = hashlib.sha1(f"{name}|{self.seen[name]}".encode()).hexdigest()[:12]
        stop = self.tokens[end - 1].start + len(self.tokens[end - 1].text)
        self.found.append(Mutation(kind, self.file, line, context, self.tokens[start].start, stop, text, change, statement, key))


def mutations_of(file, source):
    return Reader(file, source).mutations()
