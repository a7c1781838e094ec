"""Shared by the gates: the files of the tree, their includes, and the main program of a gate.

A gate is a function check(tree) that returns one line of text for each thing that is wrong. Each gate also names
snippets that it must reject and snippets that it must accept; `--self-test` tries them, so a gate that has become
blind fails the suite.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SKIPPED = 77  # the exit status that ctest counts as skipped
CODE = {".hpp", ".cpp", ".cuh", ".cu", ".h", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def cache_folder():
    """Where slow gates remember what passed; all checkouts of a user share it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "untax" / "gates"


class Tree:
    """The files of a source tree, by their path relative to its root."""

    def __init__(self, root, build, cache):
        self.root, self.build, self.cache = Path(root), Path(build), Path(cache)
        self._texts = {}

    def files(self, suffixes=CODE, below=()):
        """Files that are tracked, or would be: everything that git does not ignore."""
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, text=True)
        if listed.returncode == 0:
            names = [name for name in listed.stdout.split("\0") if name]
        else:
            names = [str(p.relative_to(self.root)) for p in self.root.rglob("*")
                     if "build" not in p.relative_to(self.root).parts[:1]]
        return sorted({name for name in names
                       if (suffixes is None or Path(name).suffix in suffixes)
                       and (not below or name.startswith(tuple(below)))
                       and (self.root / name).is_file()})

    def text(self, name):
        if name not in self._texts:
            self._texts[name] = (self.root / name).read_text(encoding="utf-8", errors="replace")
        return self._texts[name]

    def includes(self, name):
        """The includes of a file, as written."""
        return INCLUDE.findall(self.text(name))

    def resolve(self, name, included):
        """The project's file that `included` stands for in `name`, or None for a header of others."""
        for candidate in (Path("include") / included, Path(included), Path(name).parent / included):
            if (self.root / candidate).is_file():
                return candidate.as_posix()
        return None

    def closure(self, name):
        """The file itself and every file of the project that it includes, directly or not."""
        seen, waiting = set(), [name]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                resolved = (self.resolve(current, included) for included in self.includes(current))
                waiting.extend(file for file in resolved if file)
        return sorted(seen)


def without_comments(text):
    """C++ text with comments and the insides of literals blanked; line breaks stay where they are."""
    def blank(match):
        literal = match.group(0)
        if literal.startswith("/"):
            return re.sub(r"[^\n]", " ", literal)
        return literal[0] + " " * (len(literal) - 2) + literal[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                  blank, text, flags=re.DOTALL)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def tool(*names):
    """The first of the programs that is installed; without one, the gate is skipped."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    print(f"skipped: {names[0]} is not installed")
    sys.exit(SKIPPED)


def _self_test(check, build, bad, good):
    wrong = 0
    for expected, snippets in ((True, bad), (False, good)):
        for snippet in snippets:  # a path and its text, or several of them
            files = snippet if isinstance(snippet, dict) else dict([snippet])
            with tempfile.TemporaryDirectory() as folder:
                for path, text in files.items():
                    target = Path(folder) / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text)
                findings = check(Tree(folder, build, folder))
            if bool(findings) != expected:
                wrong += 1
                for path, text in files.items():
                    print(f"should be {'rejected' if expected else 'accepted'}: {path}\n{text}")
                print("\n".join(findings))
    print(f"self-test: {len(bad)} bad and {len(good)} good snippets, {wrong} judged wrongly")
    return wrong


def main(check, bad, good=()):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--root", default=PROJECT, help="the tree to look at")
    parser.add_argument("--build", default=PROJECT / "build" / "release", help="its build directory")
    parser.add_argument("--self-test", action="store_true", help="check the gate itself")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(1 if _self_test(check, Path(arguments.build).absolute(), bad, good) else 0)
    build = Path(arguments.build).absolute()
    findings = check(Tree(arguments.root, build, cache_folder()))
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings")
    sys.exit(1 if findings else 0)
