"""A copy of the project with mutants compiled in, and the test programs that it makes."""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from schemata import HEADER, OWN_LINES, SWITCH, instrumented

MENTION = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? +required from", re.MULTILINE)
ERROR = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
NOTE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? note: ", re.MULTILINE)


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_if_other(path, text):
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Scratch:
    def __init__(self, root, folder, jobs):
        self.root, self.folder, self.jobs = root, folder, jobs
        self.build = folder / "build" / "mutants"
        self.originals = {}

    def copy_tree(self):
        """Copies what git knows or would add, as it is now; no unchanged file is touched."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root, capture_output=True,
                                text=True, check=True).stdout.split("\n")  # fmt: skip
        for name in filter(None, listed):
            source = self.root / name
            if source.is_file() and not name.startswith("tests/mutation/"):
                self.originals[name] = source.read_bytes()

    def put_sources(self, chosen):
        """`chosen`: numbers and mutations of the copied files."""
        by_file = {}
        for number, m in chosen.items():
            by_file.setdefault(m.file, []).append((number, m))
        for name, data in self.originals.items():
            if name in by_file:
                data = instrumented(data.decode(), by_file[name]).encode()
            target = self.folder / name
            if target.exists() and target.read_bytes() == data:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        write_if_other(self.folder / HEADER, SWITCH)
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if path.is_file() and name not in self.originals and not name.startswith(("build/", HEADER)):
                path.unlink()  # what the tree does not have any more would still be built

    def configure(self):
        subprocess.run(
            ["cmake", "-S", self.folder, "-B", self.build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Mutants",
             "-D", "CMAKE_CXX_FLAGS_MUTANTS=-O1 -DNDEBUG -w", "-D", "UNTAX_EXAMPLES=OFF"],
            check=True, stdout=subprocess.DEVNULL)  # fmt: skip

    def drop_what_fails(self, chosen, new, refuse):
        """Compiles every file with `new` mutants alone, and calls `refuse` with those that the compiler does not take."""
        files = {m.file for number, m in chosen.items() if number in new}
        if any(f.endswith(".hpp") for f in files):  # templates are compiled where they are used
            files |= {n for n in self.originals if fnmatch(n, "ops/*/test.cpp") or fnmatch(n, "ops/*/operator.cpp")}
        files = sorted(files)
        flags = ["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{self.folder}", f"-I{self.folder}/include"]
        openblas = Path("/usr/include/x86_64-linux-gnu/openblas-pthread")
        if openblas.exists():
            flags += [f"-I{openblas}", '-DUNTAX_OPENBLAS=""']

        def errors_of(name):
            command = [*flags, "-x", "c++", str(self.folder / name)]
            return subprocess.run(command, capture_output=True, text=True).stderr

        for _ in range(16):
            with ThreadPoolExecutor(self.jobs) as pool:
                texts = list(pool.map(errors_of, files))
            bad = self.refused("\n".join(texts), chosen)
            if not bad:
                return
            say(f"the compiler refuses {len(bad)} mutants")
            refuse(bad)
            self.put_sources(chosen)
            files = [f for f, t in zip(files, texts) if t]
        raise SystemExit("mutated sources do not compile:\n" + "\n".join(texts)[-3000:])

    def refused(self, text, chosen):
        """The mutants that errors point at, or else what they say that a template was required from, or what explains them."""
        patterns = (ERROR, MENTION, NOTE)
        return next(filter(None, (self.pointed_at(p, text, chosen) for p in patterns)), set())

    def pointed_at(self, pattern, text, chosen):
        """Those whose own text it is, else those whose expression begins in such a line, else those that go over it."""
        own = {int(match["line"]) - OWN_LINES for match in pattern.finditer(text)} & chosen.keys()
        if own:
            return own
        bad = set()
        for match in pattern.finditer(text):
            try:
                name = str(Path(match["file"]).resolve().relative_to(self.folder.resolve()))
            except ValueError:
                name = os.path.relpath((self.build / match["file"]).resolve(), self.folder.resolve())
            line = int(match["line"])
            inside, over = set(), set()
            for number, m in chosen.items():
                if m.file != name:
                    continue
                if m.first_line == line:
                    inside.add(number)
                elif m.first_line < line <= m.last_line:
                    over.add(number)
            bad |= inside or over
        return bad

    def make(self, targets, chosen, refuse):
        """Builds the test programs; mutants that only break what includes their header are refused here."""
        for _ in range(16):
            command = ["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *targets, "--", "-k", "0"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return
            bad = self.refused(done.stdout + done.stderr, chosen)
            if not bad:
                raise SystemExit("the build fails:\n" + (done.stdout + done.stderr)[-4000:])
            say(f"the build refuses {len(bad)} mutants")
            refuse(bad)
            self.put_sources(chosen)
        raise SystemExit("the build goes on failing")

    def stamp(self, programs):
        """Changes with every source and mutant."""
        digest = hashlib.sha1(" ".join(programs).encode())
        for name in sorted(self.originals):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest()

    def program(self, target):
        return self.build / "tests" / target
