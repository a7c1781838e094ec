#!/usr/bin/env python3
"""The walks and reading paths of HACKING.md hold: a numbered item names files that exist, and each name in back-ticks
behind a file is an identifier of that file. The section of walks has five of them, README.md links to it, and its
commands name presets, targets, tests, verbs, options and variables of the tree.
"""
import json
import re
import shlex

import gate
import links

SECTION = "Five walks"
LINK = "HACKING.md#five-walks"
WALKS = 5
ITEM = re.compile(r"^\d+\. .*\n(?:^ +\S.*\n)*", re.MULTILINE)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
VARIABLE = re.compile(r"UNTAX_\w+(?:=\S+)?")
TOOLS = {"cmake", "ctest"}


def holds(tree, name, identifier):
    """Whether a file has the identifier in its code; other files than code have it anywhere."""
    text = tree.text(name)
    if any(name.endswith(suffix) for suffix in gate.CODE):
        text = gate.without_comments(text)
    return all(re.search(rf"\b{re.escape(part)}\b", text) for part in identifier.split("::"))


def variables(tree):
    """The environment variables that the code reads."""
    return {word for name in tree.files() for word in re.findall(r"\"(UNTAX_\w+)\"", tree.text(name))}


def check_item(tree, item, known, folders, ends):
    """Spans of an item in turn: a file, then names of it."""
    findings, files = [], []
    for span in links.SPAN.findall(item):
        if links.is_file_name(span, folders):
            files = [name for name in known if name == span or name.endswith("/" + span)]
            if span.rstrip("/") not in ends:
                findings.append(f"there is no {span}")
        elif VARIABLE.fullmatch(span):
            if span.partition("=")[0] not in variables(tree):
                findings.append(f"no code reads {span}")
        elif files and IDENTIFIER.fullmatch(span) and not any(holds(tree, name, span) for name in files):
            findings.append(f"{files[0]} has no {span}")
    return findings


class Commands:
    """The presets, targets, tests, verbs and options of the tree."""

    def __init__(self, tree, known):
        self.known = set(known)
        build = "\n".join(tree.text(name) for name in known if name.endswith((".cmake", "CMakeLists.txt")))
        presets = json.loads(tree.text("CMakePresets.json")) if "CMakePresets.json" in self.known else {}
        self.presets = {preset["name"] for preset in presets.get("configurePresets", [])}
        self.targets = set(re.findall(r"\badd_executable\((\w+)", build))
        self.targets |= {f"{name}_test" for name in re.findall(r"\buntax_add_(?:gpu_)?test\((\w+)", build)}
        code = {name: tree.text(name) for name in known if name.endswith((".cpp", ".cu", ".hpp"))}
        self.tests = {f"{suite}.{test}" for text in code.values()
                      for suite, test in re.findall(r"\bTEST(?:_F)?\((\w+),\s*(\w+)\)", text)}
        command = "\n".join(text for name, text in code.items() if name.startswith("cli/"))
        self.verbs = set(re.findall(r"add_subcommand\(\s*\"([\w-]+)\"", command))
        self.options = set(re.findall(r"(?<=[\",])--[\w-]+", command))
        self.variables = variables(tree)

    def check(self, line):
        words = shlex.split(line, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            variable = words.pop(0).partition("=")[0]
            if variable.startswith("UNTAX_") and variable not in self.variables:
                yield f"no code reads {variable}"
        if not words:
            return
        program, words = words[0], words[1:]
        built = re.fullmatch(r"build/(\w+)/(?:tests/)?(\w+)", program)
        if built:
            yield from self.check_built(*built.groups(), words)
        elif program not in TOOLS and program.removeprefix("./") not in self.known:
            yield f"there is no program {program}"
        for option, value in zip(words, words[1:]):
            if option == "--preset" and value not in self.presets:
                yield f"CMakePresets.json has no {value}"
            if option == "--target" and value not in self.targets:
                yield f"no target is {value}"

    def check_built(self, preset, program, words):
        if preset not in self.presets:
            yield f"CMakePresets.json has no {preset}"
        if program != "untax":
            if program not in self.targets:
                yield f"no target is {program}"
            for word in words:
                test = word.removeprefix("--gtest_filter=")
                if test != word and test not in self.tests:
                    yield f"no test is {test}"
            return
        if not words or words[0] not in self.verbs:
            yield f"untax has no verb {' '.join(words[:1])}"
        for option, value in zip(words, words[1:] + [""]):
            if option.startswith("--") and option not in self.options:
                yield f"untax has no option {option}"
            if option in ("--model", "--machine") and f"{option[2:]}s/{value}.json" not in self.known:
                yield f"there is no {option[2:]}s/{value}.json"


def check(tree):
    known = tree.files(suffixes=None)
    folders, ends = {name.split("/")[0] for name in known if "/" in name}, links.endings(known)
    text = tree.text("HACKING.md") if "HACKING.md" in known else ""
    findings = []
    for item in ITEM.finditer(links.blanked(links.FENCE, text)):
        findings += [f"HACKING.md:{gate.line_of(text, item.start())}: {finding}"
                     for finding in check_item(tree, item.group(0), known, folders, ends)]
    begin = re.search(rf"^## {SECTION}$", text, re.MULTILINE)
    if not begin:
        return findings + [f"HACKING.md: no section {SECTION}"]
    section = re.split(r"^## ", text[begin.end():], maxsplit=1, flags=re.MULTILINE)[0]
    walks = re.split(r"^### ", section, flags=re.MULTILINE)[1:]
    if len(walks) != WALKS:
        findings.append(f"HACKING.md: {len(walks)} walks; {WALKS} were promised")
    findings += [f"HACKING.md: no files in the walk {walk.splitlines()[0]}" for walk in walks if not ITEM.search(walk)]
    commands = Commands(tree, known)
    for block in COMMANDS.findall(section):
        findings += [f"HACKING.md: {line}: {finding}" for line in block.splitlines() for finding in commands.check(line)]
    if f"]({LINK})" not in (tree.text("README.md") if "README.md" in known else ""):
        findings.append(f"README.md: no link to {LINK}")
    return findings


def sample(walk="1. `src/a.cpp`, `f`: waits.\n", command="build/release/untax run --ranks 2", link=LINK, count=WALKS):
    walks = "".join(f"### Walk {number}\n\n{walk}\n" for number in range(count))
    return {"HACKING.md": f"# Hacking\n\n## {SECTION}\n\n{walks}```sh\n{command}\n```\n\n## End\n",
            "README.md": f"[walks]({link})\n",
            "CMakePresets.json": '{"configurePresets": [{"name": "release"}]}\n',
            "CMakeLists.txt": "add_executable(untax_cli a.cpp)\nuntax_add_gpu_test(gpu SOURCES a.cpp)\n",
            "models/small.json": "{}\n",
            "cli/run.cpp": 'app.add_subcommand("run", "");\nverb.add_option("-r,--ranks", ranks);\nverb.add_option("--model", m);\n'
                           'auto v = "UNTAX_LIMIT";\n',
            "tests/t.cpp": "TEST(suite, test) {}\n",
            "src/a.cpp": "void f() {}  // not g\n",
            "src/b.cpp": "void g() {}\n"}


BAD = [
    sample(count=4),
    sample(link="HACKING.md"),
    sample(walk="None.\n"),
    sample(walk="1. `src/c.cpp`: waits.\n"),
    sample(walk="1. `src/a.cpp`, `g`: waits.\n"),
    sample(walk="1. `src/b.cpp`, `g`, then `src/a.cpp`,\n   `h`: waits.\n"),
    sample(walk="1. `src/a.cpp`, `a::f`: waits.\n"),
    sample(walk="1. `src/a.cpp`, `f`: waits for `UNTAX_LIMITS=2`.\n"),
    sample(command="build/release/untax walk"),
    sample(command="build/release/untax run --rank 2"),
    sample(command="build/release/untax run --model large"),
    sample(command="build/debug/untax run"),
    sample(command="UNTAX_LIMITS=2 build/release/untax run"),
    sample(command="cmake --preset debug"),
    sample(command="cmake --build --preset release --target cpu_test"),
    sample(command="build/release/tests/gpu_test --gtest_filter=suite.tests"),
    sample(command="./walk.sh"),
    {**sample(), "HACKING.md": sample()["HACKING.md"] + "\n1. `src/a.cpp`, `g`: elsewhere.\n"},
    {**sample(), "HACKING.md": "# Hacking\n"},
]
GOOD = [
    sample(),
    sample(walk="1. `src/a.cpp`, `f`, and `b.cpp`,\n   `g` of `src/`: waits for `UNTAX_LIMIT`.\n"),
    sample(command="UNTAX_LIMIT=2 build/release/tests/gpu_test --gtest_filter=suite.test  # few"),
    sample(command="cmake --preset release\ncmake --build --preset release --target untax_cli\n"
                   "build/release/untax run --model small"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
