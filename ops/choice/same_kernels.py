#!/usr/bin/env python3
"""Whether the kernels of GEMM operators are the same in two commits, but for names and places of files.

    ops/choice/same_kernels.py BEFORE [AFTER] [--renamed NEW=OLD ...]

Each generated kernel (cmake/untax_kernels.cmake) is compiled from headers of the tree. Both commits have to have the same
instantiations, and for each of them the same headers: token for token, without comments and includes, with NEW read as
OLD. Headers are matched by the names of their files, whatever their folders. A header that differs is printed with its first
difference, and the exit status is 1. AFTER is the working tree if it is left out.

The other sources that a table depends on (cmake/untax_kernel_sources.cmake) run on the host: they plan and launch. Those
that differ are listed, for a person to read.
"""
import argparse
import fnmatch
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
KERNELS = "cmake/untax_kernels.cmake"
SOURCES = "cmake/untax_kernel_sources.cmake"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|[^\w\s]')
PATH = re.compile(r"\b(?:engines|ops)/[\w/]+\.\w+")


def git(*command):
    return subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True).stdout


class Tree:
    """The files of a commit, or of the working tree."""

    def __init__(self, commit):
        self.commit = commit
        listed = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files")
        self.files = {name for name in listed.splitlines() if commit or (ROOT / name).is_file()}
        self.texts = {}

    def text(self, name):
        if name not in self.texts:
            self.texts[name] = git("show", f"{self.commit}:{name}") if self.commit else (ROOT / name).read_text("utf-8")
        return self.texts[name]

    def closure(self, names):
        """These files and all files of the tree that they include."""
        seen, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for included in INCLUDE.findall(self.text(name)):
                places = (f"include/{included}", included, str(PurePosixPath(name).parent / included))
                waiting.extend([place for place in places if place in self.files][:1])
        return seen

    def kernels(self):
        """The headers of each call of untax_kernels and untax_comm_kernels, by the kernels that it instantiates."""
        found = {}
        for call in re.findall(r"^untax_(?:comm_)?kernels\((.*?)\)$", self.text(KERNELS), re.MULTILINE | re.DOTALL):
            headers = PATH.findall(call)
            found[" ".join(PATH.sub("", call).split())] = ["engines/gpu/gemm/kernel.cuh", "engines/gpu/gemm/kernels.hpp", *headers]
        return found

    def hashed(self):
        """The sources whose hash the tables carry."""
        text = self.text(SOURCES)
        folders = re.search(r"foreach\(part IN ITEMS (.*?)\)", text).group(1).split()
        operators, parts = re.search(r"foreach\(operator IN ITEMS (.*?)\)\s*foreach\(part IN ITEMS (.*?)\)", text, re.DOTALL).groups()
        globs = [f"engines/gpu/{folder}/*" for folder in folders]
        globs += [f"ops/{operator}/{part}*" for operator in operators.split() for part in parts.split()]
        globs += ["ops/common/planning.*"]
        return {name for name in self.files if re.search(r"\.(cpp|hpp|cu|cuh|def)$", name) and
                any(fnmatch.fnmatchcase(name, pattern) for pattern in globs)}  # fmt: skip


def tokens(text, renamed):
    code = NOT_CODE.sub(lambda match: match.group(1) or " ", INCLUDE.sub("", text))
    return [renamed.get(token, token) for token in TOKEN.findall(code)]


def by_name(tree, names, renamed):
    """The tokens of files by the names that these have without their folders."""
    found = {}
    for name in names:
        place = PurePosixPath(name).name
        found.setdefault(renamed.get(place, place), []).append((tokens(tree.text(name), renamed), name))
    return {place: sorted(same, key=lambda pair: pair[1]) for place, same in found.items()}


def differences(before, after, old_names, new_names, renamed):
    """A line for each difference between files of one name."""
    was, now = by_name(before, old_names, {}), by_name(after, new_names, renamed)
    for place in sorted(was.keys() | now.keys()):
        old_files, new_files = was.get(place, []), now.get(place, [])
        if len(old_files) != len(new_files):
            yield f"{[name for _, name in old_files]} became {[name for _, name in new_files]}"
            continue
        for (old, name), (new, _) in zip(old_files, new_files):
            at = next((i for i, (x, y) in enumerate(zip(old, new)) if x != y), min(len(old), len(new)))
            if old != new:
                yield f"{name}: '{' '.join(old[max(at - 5, 0):at + 5])}' became '{' '.join(new[max(at - 5, 0):at + 5])}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--renamed", nargs="*", default=[], metavar="NEW=OLD")
    arguments = parser.parse_args()
    renamed = dict(pair.split("=") for pair in arguments.renamed)
    before, after = Tree(arguments.before), Tree(arguments.after)
    was, now = before.kernels(), after.kernels()
    failures = [f"{call}: only in one of both" for call in was.keys() ^ now.keys()]
    compared = set()
    for call in sorted(was.keys() & now.keys()):
        old, new = before.closure(was[call]), after.closure(now[call])
        compared |= new
        failures += [f"{call.split()[0]}: {text}" for text in differences(before, after, old, new, renamed)]
    print("\n".join(dict.fromkeys(failures)) or f"{len(now)} groups of kernels are the same, from {len(compared)} headers")
    hosts = after.hashed() - compared
    others = list(differences(before, after, before.hashed() - before.closure(sum(was.values(), [])), hosts, renamed))
    print("\n".join(["on the host, to be read:", *others]) if others else "on the host: the same")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
