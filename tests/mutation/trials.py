"""Which test comes by which mutant, and whether one of them notices it."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

RUN = re.compile(r"^\[ +(OK|FAILED) +\] ([\w/]+\.[\w/]+)(?:.*\((\d+) ms\))?", re.MULTILINE)
# Bounds the waits of a mutant that hangs. A limit that a test sets itself wins.
WAIT_LIMIT_MS = "6000"


def run(command, environment, limit, folder):
    """(exit status or None after the limit, output, seconds). Takes the children along."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = subprocess.Popen([*map(str, command)], stdout=out, stderr=subprocess.STDOUT,
                                   env={**os.environ, **environment}, cwd=folder, start_new_session=True)  # fmt: skip
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        return status, out.read(), time.monotonic() - begin


class Cases:
    """The test cases, how long each takes, and the mutants that it comes by."""

    def __init__(self, scratch, count, seed):
        self.scratch, self.count = scratch, count
        self.environment = {"UNTAX_WAIT_LIMIT_MS": WAIT_LIMIT_MS, "GTEST_RANDOM_SEED": str(seed)}
        self.seconds, self.reached = {}, {}  # by (program, case)

    def record(self, programs, jobs, say):
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda program: self.record_program(program, say), programs))

    def record_program(self, program, say):
        path = self.scratch.program(program)
        listed = subprocess.run([path, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
        suite, count, broken = "", 0, []
        for line in listed.splitlines():
            if not line.startswith(" "):
                suite = line.split("#")[0].strip()
                continue
            case = (program, suite + line.split("#")[0].strip())
            if "DISABLED" in case[1] or not self.record_one(path, case):
                broken.append(case[1])
            count += 1
        say(f"{program}: {count} cases" + (f", left out: {', '.join(broken)}" if broken else ""))

    def record_one(self, path, case):
        with tempfile.NamedTemporaryFile() as reached:
            reached.truncate(self.count)
            environment = {**self.environment, "MUTANT_REACHED": reached.name}
            for _ in range(2):
                status, _, seconds = run([path, f"--gtest_filter={case[1]}"], environment, 300, self.scratch.folder)
                if status == 0:
                    break
            else:
                return False
            self.seconds[case] = seconds
            self.reached[case] = {i for i, byte in enumerate(reached.read()) if byte}
        return True

    def save(self, path, stamp):
        rows = [[*c, self.seconds[c], sorted(self.reached[c])] for c in self.seconds]
        path.write_text(json.dumps({"stamp": stamp, "cases": rows}))

    def load(self, path, stamp):
        """Whether the last run was with the same mutants and programs."""
        data = json.loads(path.read_text()) if path.exists() else {"stamp": ""}
        if data["stamp"] != stamp:
            return False
        for program, name, seconds, reached in data["cases"]:
            self.seconds[program, name] = seconds
            self.reached[program, name] = set(reached)
        return True

    def of(self, mutant):
        cases = [c for c in self.seconds if mutant in self.reached[c]]
        return sorted(cases, key=lambda c: self.seconds[c])


def groups(cases, seconds):
    """One call of a program for cases that take as long: quick ones first, so that most mutants die soon."""
    for low, high in ((0, 0.1), (0.1, 0.5), (0.5, 2), (2, 10), (10, 1e9)):
        by_program = {}
        for case in cases:
            if low <= seconds[case] < high:
                by_program.setdefault(case[0], []).append(case[1])
        yield from sorted(by_program.items(), key=lambda g: sum(seconds[g[0], n] for n in g[1]))


def verdict_of(cases, mutant):
    """("killed" | "timeout" | "survived" | "unreached", by which test)"""
    covering = cases.of(mutant)
    if not covering:
        return "unreached", ""
    folder = cases.scratch.folder  # where files that tests read do not change under them
    for program, names in groups(covering, cases.seconds):
        path = cases.scratch.program(program)
        limit = 15 + 5 * sum(cases.seconds[program, n] for n in names)
        command = [path, "--gtest_fail_fast", f"--gtest_filter={':'.join(names)}"]
        for _ in range(2):
            status, output, _ = run(command, {**cases.environment, "MUTANT_ACTIVE": str(mutant)}, limit, folder)
            if status == 0:
                break
            if status is None:
                return "timeout", f"{program}: {unfinished(output, names)[0]}"
            failed = [name for verdict, name, _ in RUN.findall(output) if verdict == "FAILED"]
            culprit = failed[:1] or unfinished(output, names)
            control = [path, f"--gtest_filter={':'.join(culprit)}"]
            if run(control, cases.environment, limit, folder)[0] == 0:  # not the test's own doing
                return "killed", f"{program}: {culprit[0]}"
    return "survived", ""


def unfinished(output, names):
    started = re.findall(r"^\[ RUN +\] (\S+)", output, re.MULTILINE)
    return started[-1:] or names[:1]
