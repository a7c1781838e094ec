"""Runs a slow check of many files, two at a time or more, and remembers in the build directory which files passed."""
import hashlib
import json
import os
import subprocess
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import gate


def fingerprint(tree, name, *more):
    """A hash of the file, of all that it includes, and of whatever else decides the result."""
    digest = hashlib.sha256()
    for part in more:
        digest.update(str(part).encode())
    for included in tree.closure(name):
        digest.update(included.encode())
        digest.update(tree.text(included).encode())
    return digest.hexdigest()


def share_of(names):
    """The names that it is the turn of: with UNTAX_GATE_SHARE=N every Nth, others for each commit."""
    parts = int(os.environ.get("UNTAX_GATE_SHARE", "1"))
    if parts <= 1:
        return names
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=gate.PROJECT, capture_output=True, text=True)
    turn = int(commits.stdout or 0) % parts
    print(f"looks at one file in {parts}, by the number of the commit")
    return [name for name in names if zlib.crc32(name.encode()) % parts == turn]


def check_all(tree, cache_name, names, fingerprint_of, run):
    """Findings of run(name) over the names whose fingerprint has not passed before."""
    cache = tree.cache / f"{cache_name}.json"
    try:
        passed = json.loads(cache.read_text())
    except (OSError, ValueError):
        passed = {}
    prints = {name: fingerprint_of(name) for name in names}
    todo = [name for name in names if passed.get(name) != prints[name]]
    good = {name: prints[name] for name in names if name not in todo}

    def run_and_remember(name):
        findings = run(name)
        if not findings:
            with lock:  # at once, so that a run that is stopped was not in vain
                good[name] = prints[name]
                cache.write_text(json.dumps(good, indent=1, sort_keys=True))
        return findings

    lock = threading.Lock()
    cache.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = list(pool.map(run_and_remember, todo))
    print(f"{len(names)} files, {len(names) - len(todo)} of them unchanged since they passed")
    return [finding for findings in results for finding in findings]
