"""Starts the ranks of tests, as processes."""

import atexit
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 280  # seconds
PRELOADED = ["torch", "torch.distributed.tensor", "torch.distributed._symmetric_memory", "torch._inductor.compile_fx", "torch.profiler"]
PRELOADED_OF_TRANSFORMERS = ["transformers", "transformers.generation.utils",
                             *(f"transformers.models.{name}.modeling_{name}" for name in ("llama", "qwen2", "qwen3", "mistral", "gemma"))]


def started_twice(start):
    """What `start` returns, (succeeded, output, errors). On a busy machine gloo sometimes fails to connect ranks, before anything of
    untax runs; then they are started once more. Returns the output."""
    for _ in range(2):
        succeeded, out, err = start()
        if "Gloo connectFullMesh failed" not in err:
            break
    assert succeeded, out + err
    return out


def own_environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def torchrun(ranks, *program):
    """The output of the program, run by each of `ranks` processes that torchrun starts."""
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *map(str, program)]

    def start():
        done = subprocess.run(call, capture_output=True, text=True, env=own_environment(), timeout=LIMIT)
        return done.returncode == 0, done.stdout, done.stderr

    return started_twice(start)


class ForkServer:
    """Forks ranks off a process that has imported torch, and transformers where it is, which takes longer than most checks."""

    def __init__(self, environment):
        modules = [*PRELOADED, *(PRELOADED_OF_TRANSFORMERS if importlib.util.find_spec("transformers") else [])]
        self.process = subprocess.Popen([sys.executable, "-u", HERE / "fork_server.py", *modules], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def statuses(self, request):
        """The status of each rank, or None if they took too long; then nothing is left of the server."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        if not ready:
            self.end()
            return None
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Ends the server and all that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


_servers = {}


@atexit.register
def end_servers():
    for server in _servers.values():
        server.end()
    _servers.clear()


def server_for(environment):
    """The server whose modules were imported in such an environment: some read variables when they are imported, or look for others."""
    key = frozenset((name, value) for name, value in environment.items() if not name.startswith(("UNTAX_", "PYTEST_")))
    if key not in _servers or _servers[key].process.poll() is not None:
        _servers[key] = ForkServer(environment)
    return _servers[key]


def fork(ranks, *program):
    """The output of the program, run by each of `ranks` processes with the variables that torchrun sets."""
    from torch.distributed import TCPStore

    environment = own_environment()

    def start():
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        common = {**environment, "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
        with tempfile.NamedTemporaryFile("r+") as out, tempfile.NamedTemporaryFile("r+") as err:
            statuses = server_for(environment).statuses({
                "program": [str(argument) for argument in program], "out": out.name, "err": err.name,
                "environments": [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]})
            said, failed = out.read(), err.read()
        if statuses is None:
            raise TimeoutError(f"{ranks} ranks of {program} took {LIMIT} s\n{said}{failed}")
        return not any(statuses), said, f"{failed}statuses of the ranks: {statuses}"

    return started_twice(start)
