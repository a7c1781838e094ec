#!/usr/bin/env python3
"""clang-tidy 14 has nothing to say about the library's sources (.clang-tidy says what it looks for).

Sources that passed are remembered until they, or what they include, change. Sources that reach Relacy or GoogleTest
are left out: their macros expand to what clang-tidy complains about.

With UNTAX_GATE_SHARE=N only every Nth source is looked at, others for each commit.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cached
import gate

BELOW = ("src/", "engines/", "ops/", "decoder/")
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*cmake_pch\.hxx")
TOGETHER = "/generated/unity/"  # cmake/untax_unity.cmake
LEFT_OUT = ("relacy/", "gtest/", "gmock/")


def commands_of(tree):
    """How each source is compiled, without GCC's precompiled headers, which clang cannot read."""
    database = tree.build / "compile_commands.json"
    try:
        entries = json.loads(database.read_text())
    except OSError:
        print(f"skipped: {database} is missing; configure first")
        sys.exit(gate.SKIPPED)
    commands = {}
    for entry in entries:
        if not entry["file"].endswith(".cpp"):
            continue
        command = PRECOMPILED.sub("", entry["command"])
        for file in sources_of(entry["file"]):
            commands[file] = {**entry, "file": file, "command": command.replace(entry["file"], file)}
    return commands


def sources_of(file):
    """The sources that are compiled by this one: itself, or those of a folder that are compiled together."""
    if TOGETHER not in file:
        return [file]
    return [str(gate.PROJECT / name) for name in re.findall(r'#include "(.*)"', Path(file).read_text())]


def reaches_left_out(tree, name):
    return any(included.startswith(LEFT_OUT)
               for reached in tree.closure(name) for included in tree.includes(reached))


def check(tree):
    program = gate.tool("clang-tidy-14")
    config = gate.PROJECT / ".clang-tidy"
    commands = commands_of(tree)
    version = cached.version_of(program)
    names = [name for name in tree.files({".cpp"}, BELOW) if not reaches_left_out(tree, name)]
    if tree.root != gate.PROJECT:  # the self-test: snippets are compiled as any source is
        example = next(entry for file, entry in commands.items() if "/src/" in file)
        commands = {(path := str(tree.root / name)): {
            **example, "file": path, "command": example["command"].replace(example["file"], path)}
            for name in names}
    names = [name for name in names if str(tree.root / name) in commands]
    if tree.root == gate.PROJECT:
        names = cached.share_of(names)

    def run(name):
        done = subprocess.run([program, f"--config-file={config}", "--quiet", "-p", folder,
                               "--extra-arg=-Wno-unknown-warning-option", str(tree.root / name)],
                              capture_output=True, text=True)
        findings = [line.replace(f"{tree.root}/", "") for line in done.stdout.splitlines()
                    if ": error:" in line or ": warning:" in line]
        if done.returncode != 0 and not findings:
            findings = [f"{name}: clang-tidy-14 failed: {done.stderr.strip()[-500:]}"]
        return findings

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "compile_commands.json").write_text(json.dumps(list(commands.values())))
        reports = cached.check_all(tree, "tidy", names,
                                 lambda name: cached.fingerprint(tree, name, config.read_text(), version), run)
    return sorted(set(reports))


BAD = [
    ("src/core/a.cpp", "int* f() { return 0; }\n"),
    ("src/core/a.cpp", "#include <string>\nvoid f(std::string s);\nint g(std::string s) { return s.size() == 0; }\n"),
    ("src/core/a.cpp", "int CamelCase() { return 1; }\n"),
]
GOOD = [("src/core/a.cpp", "int* f() { return nullptr; }\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
