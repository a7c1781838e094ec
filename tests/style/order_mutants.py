#!/usr/bin/env python3
"""The gate `order` sees every instruction of a kernel that carries order: each is dropped in turn, from the text of its
file, and the gate has to notice. So has it to where a mutant of kernels (engines/gpu/channel/mutant.hpp) leaves out a
fence or a wait: what that orders a GPU may order by chance, so that no run of a test can tell.
"""
import argparse
import re
import sys

import gate
import order

# if (!left_out(mutant::name)) statement;  -- with the rest of its condition, if there is one
GUARDED = re.compile(r"if \((?:[^;{}]*&&\s*)?!(?:\w+::)*left_out\((?:\w+::)*mutant::(\w+)\)\)\s*([^;{}]*;)")


class OneFile:
    """A tree that has one file, with other text, and the lines of the list that are about it."""

    def __init__(self, tree, name, text):
        self.root, self._name, self._text, self._list = tree.root, name, text, tree.text(order.LIST)

    def files(self, *_):
        return [self._name]

    def text(self, name):
        if name == self._name:
            return self._text
        entries = re.split(r"\n(?=\S)", self._list)
        return "\n".join(entry for entry in entries if entry.startswith(self._name + " "))


def dropped_instructions(text):
    """(what, text without it) for each instruction that carries order."""
    blank = order.without_comments(text)
    for kind, pattern in order.TOKENS:
        if kind not in order.CARRIES or kind == "asm":
            continue
        for match in pattern.finditer(blank):
            if re.search(r"\bvoid\s+$", blank[:match.start()]):  # a function of that name, and no call
                continue
            line = text.count("\n", 0, match.start()) + 1
            yield f"line {line}: {match.group(0)}", text[:match.start()] + "dropped" + re.sub(
                r"\w", "d", match.group(0)[:-1]) + match.group(0)[-1] + text[match.end():]


def left_out(text):
    """(mutant, text with its statement left out)."""
    for match in GUARDED.finditer(text):
        yield match.group(1), text[:match.start()] + text[match.end():]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutant", help="only this mutant of kernels: exit status 1 if the gate does not see it")
    asked = parser.parse_args().mutant
    tree = gate.Tree(gate.PROJECT, gate.PROJECT / "build", gate.cache_folder())
    tried, missed = 0, []
    for name in tree.files(order.KERNELS, order.BELOW):
        text = tree.text(name)
        mutants = [(f"{name}, {change}", changed) for change, changed in ([] if asked else dropped_instructions(text))]
        mutants += [(f"{name}, {change}", changed) for change, changed in left_out(text) if asked in (None, change)]
        tried += len(mutants)
        missed += [change for change, changed in mutants if not order.check(OneFile(tree, name, changed))]
    print(f"{tried} mutants, {len(missed)} of them not noticed")
    print("\n".join(missed))
    sys.exit(1 if missed or tried == 0 else 0)


if __name__ == "__main__":
    main()
