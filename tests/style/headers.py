#!/usr/bin/env python3
"""Every header compiles alone, so a file that includes it needs no other header.

Headers that need CUDA are left out of builds without it. Headers that passed are remembered until they, or what they
include, change. With UNTAX_GATE_SHARE=N only every Nth is compiled, others for each commit.
"""
import json
import shlex
import subprocess
import sys

import cached
import gate

BELOW = ("include/", "engines/", "ops/", "decoder/", "src/", "cli/")


def compiler_call(tree):
    """The compiler and the include directories and macros of the build."""
    database = tree.build / "compile_commands.json"
    try:
        commands = json.loads(database.read_text())
    except OSError:
        print(f"skipped: {database} is missing; configure first")
        sys.exit(gate.SKIPPED)
    program, options = None, {}
    for entry in commands:
        words = shlex.split(entry["command"])
        if not entry["file"].endswith(".cpp"):
            continue
        compiler = next(word for word in words
                        if word.split("/")[-1].startswith(("c++", "g++", "clang++")))
        program = program or compiler
        for i, word in enumerate(words):
            if word == "-isystem":
                options[(word, words[i + 1])] = None
            elif word.startswith(("-I", "-D", "-std=")):
                options[(word,)] = None
    # Headers of the tree at hand, not of the tree that was configured; Relacy's before the system's.
    flags = [word for option in options for word in option if not word.startswith(f"-I{gate.PROJECT}")]
    return [program, *flags, f"-I{tree.root}/include", f"-I{tree.root}"]


def needs_cuda(tree, name):
    return any(included.startswith("cuda") and included.endswith(".h")
               for reached in tree.closure(name) for included in tree.includes(reached))


def check(tree):
    call = [*compiler_call(tree), "-fsyntax-only", "-w", "-x", "c++"]

    def run(name):
        source = f'#include "{tree.root / name}"\n#include "{tree.root / name}"\n'
        done = subprocess.run([*call, "-"], input=source, capture_output=True, text=True)
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        return [f"{name}: does not compile alone: {(errors or [done.stderr])[0]}"] if done.returncode else []

    has_cuda = any("cuda" in word for word in call)
    version = cached.version_of(call[0])
    names = [name for name in tree.files({".hpp"}, BELOW) if has_cuda or not needs_cuda(tree, name)]
    if tree.root == gate.PROJECT:
        names = cached.share_of(names)
    return cached.check_all(tree, "headers", names,
                            lambda name: cached.fingerprint(tree, name, call, version), run)


BAD = [
    ("include/untax/core/a.hpp", "#pragma once\ninline std::string f() { return {}; }\n"),
    ("include/untax/core/a.hpp", "inline int f() { return 1; }\n"),
]
GOOD = [("include/untax/core/a.hpp", "#pragma once\n#include <string>\ninline std::string f() { return {}; }\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
