"""untax.triton: kernels of ranks that are processes, in Triton's interpreter, and what is compiled for a GPU."""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest
from ranks import HERE, fork

missing = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} not installed; ./test.sh installs both where there is "
                                "no GPU, ./test.sh --with-torch everywhere")


@pytest.fixture
def interpreter(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_kernels_in_the_interpreter(seed, interpreter):
    said = fork(3, HERE / "triton_ranks.py", seed)
    assert all(f"rank {rank}: check_bounded_waits" in said for rank in range(3))


def test_the_benchmark_finds_every_example_right(tmp_path, monkeypatch, interpreter):
    """Between two ranks, on CPUs: rates are of GPUs only, and of products the ways are there, which it compares."""
    fork(2, HERE.parents[1] / "bench/triton_verbs.py", "--rounds", "2", "--json", tmp_path / "verbs.json")
    document = json.loads((tmp_path / "verbs.json").read_text())
    programs = (HERE.parents[1] / "examples/python/triton").glob("*.py")
    assert document["examples"] == {path.stem: "right" for path in programs if path.stem != "tiles"}
    patterns = ("bulk_synchronous", "producer_consumer", "fused_sequential", "workgroup_specialized")
    assert set(document["products"][0]["seconds"]) == {*(f"triton {pattern}" for pattern in patterns), "untax", "NCCL", "NCCL in place"}
    monkeypatch.syspath_prepend(HERE.parents[1] / "bench/results")
    page = importlib.import_module("triton_verbs")
    assert "| 64 x 128 x 64 |" in page.details("FILE.json", document, "here") and len(page.factors(document)) == 1


def test_the_examples_between_gpus(tmp_path):
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip(f"torch sees {torch.cuda.device_count()} GPUs, and this takes 2")
    said = fork(2, HERE.parents[1] / "bench/triton_verbs.py", "--rounds", "2", "--seconds", "0")
    assert "wait in vain" in said and "torch copy" in said and said.count(": right") >= 6


def test_an_example_runs_by_itself(interpreter):
    said = fork(2, HERE.parents[1] / "examples/python/triton/message_passing.py")
    assert all(f"rank {rank} of 2: 2 messages" in said for rank in range(2))


def test_a_world_that_kernels_do_not_reach_is_refused():
    program = ("import untax, untax.triton\n"
               "with untax.World.from_environment() as world:\n"
               "    try: untax.triton.context(world)\n"
               "    except untax.Unsupported as error: print(error)\n")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert "rank 0: a world in host memory" in done.stdout and "TRITON_INTERPRET=1" in done.stdout


def test_verbs_are_compiled_with_their_order():
    """Without a GPU. The instructions that carry order, with the barriers by which one thread speaks for its program, and
    accesses of 16 bytes to peers."""
    done = subprocess.run([sys.executable, HERE / "triton_ptx.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    kernels = dict(re.findall(r"^kernel (\w+)\n(.*?)(?=^kernel |\Z)", done.stdout, re.M | re.S))

    def expect(kernel, *instructions):
        assert re.search(".*?".join(instructions), kernels[kernel], re.S), kernels[kernel]

    expect("sender", r"st\.global\.v4\.b32", r"bar\.sync", r"@%p\d+ (atom|red)\.global\.sys\.release\.max\.s64")
    expect("receiver", r"(atom\.global\.sys\.acquire\.or\.b64|ld\.global\.acquire\.sys\.b64)", r"st\.shared", r"bar\.sync",
           r"ld\.global\.v4\.b32", r"st\.global\.v4\.b32")
    assert "globaltimer" in kernels["receiver"] and "atom.global.sys.acq_rel.exch.b64" in kernels["receiver"]
    expect("words", r"atom\.global\.sys\.acquire\.or\.b32|ld\.global\.acquire\.sys\.b32", r"atom\.global\.sys\.release\.exch\.b32",
           r"atom\.global\.sys\.acq_rel\.cas\.b64", r"(atom|red)\.global\.gpu\.relaxed\.min\.s64")
