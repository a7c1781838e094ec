"""A process that has imported modules, and forks ranks of tests, which then have them; for ranks.py.

Usage: fork_server.py MODULE...

A request is a line of JSON: the program with its arguments, an environment for each rank, and files for what ranks write. The
answer is one, too: the status of each rank.
"""

import gc
import importlib
import json
import os
import signal
import sys
import time
import types

GRACE = 30  # seconds that other ranks have to end after one has failed, as with torchrun


def wait_for(children):
    """The status of each rank. When one fails the others are ended."""
    statuses, deadline = [None] * len(children), None
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            if deadline is not None and time.monotonic() > deadline:
                end_all(children, signal.SIGKILL)
                deadline = None
            time.sleep(0.005)
        elif pid in children:
            statuses[children.pop(pid)] = os.waitstatus_to_exitcode(status)
            if status != 0 and deadline is None:
                end_all(children, signal.SIGTERM)
                deadline = time.monotonic() + GRACE
    return statuses


def end_all(children, number):
    for pid in children:
        os.kill(pid, number)


def serve():
    """Returns in ranks, with the request and the environment of the rank, and at the end of requests."""
    for line in sys.stdin:
        request, children = json.loads(line), {}
        for rank, environment in enumerate(request["environments"]):
            if (pid := os.fork()) == 0:
                return request, environment
            children[pid] = rank
        print(json.dumps(wait_for(children)), flush=True)
    return None


def become(request, environment):
    """The program that the rank runs, as code, in a process that looks like one that runs it from the start."""
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, request["out"], os.O_WRONLY | os.O_APPEND),
                                (2, request["err"], os.O_WRONLY | os.O_APPEND)):
        file = os.open(name, flags)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    path, *_ = sys.argv = request["program"]
    sys.path[0] = os.path.dirname(path)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = path
    with open(path) as file:
        return compile(file.read(), path, "exec"), vars(module)


for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()  # so that a collection writes to no page that ranks share
rank = serve()
if rank is not None:
    exec(*become(*rank))
