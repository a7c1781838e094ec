"""Runs a slow check of many files, two at a time or more, and remembers which files passed, in a folder that all
checkouts share: an empty file for each fingerprint."""
import hashlib
import os
import subprocess
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import gate


KEPT_DAYS = 30


def fingerprint(tree, name, *more):
    """A hash of the file, of all that it includes, and of whatever else decides the result. Where the checkout lies
    does not count."""
    digest = hashlib.sha256(name.encode())
    for part in more:
        digest.update(str(part).replace(str(tree.build), "build").replace(str(tree.root), ".").encode())
    for included in tree.closure(name):
        digest.update(included.encode())
        digest.update(tree.text(included).encode())
    return digest.hexdigest()


def version_of(program):
    """The version of a tool: another version may have other findings."""
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout


def share_of(names):
    """The names that it is the turn of: with UNTAX_GATE_SHARE=N every Nth, others for each commit."""
    parts = int(os.environ.get("UNTAX_GATE_SHARE", "1"))
    if parts <= 1:
        return names
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=gate.PROJECT, capture_output=True, text=True)
    turn = int(commits.stdout or 0) % parts
    print(f"looks at one file in {parts}, by the number of the commit")
    return [name for name in names if zlib.crc32(name.encode()) % parts == turn]


def forget_old(folder):
    """Removes entries that were not used for a month."""
    for entry in folder.iterdir():
        try:
            if time.time() - entry.stat().st_mtime > KEPT_DAYS * 86400:
                entry.unlink()
        except OSError:
            pass  # another run was first


def check_all(tree, gate_name, names, fingerprint_of, run):
    """Findings of run(name) over the names whose fingerprint has not passed before."""
    folder = tree.cache / gate_name
    folder.mkdir(parents=True, exist_ok=True)
    forget_old(folder)

    def look(name):
        passed = folder / fingerprint_of(name)
        if passed.exists():
            passed.touch()
            return None
        findings = run(name)
        if not findings:
            passed.touch()
        return findings

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = list(pool.map(look, names))
    print(f"{len(names)} files, {results.count(None)} of them unchanged since they passed")
    return [finding for findings in results for finding in findings or []]
