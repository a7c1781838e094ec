"""Host time of a call from Python: of operators of torch.ops.untax, of the Python package, and of the extension below
both, which reads the arguments and calls the C ABI. "inference" is that of torch in torch.inference_mode(), where
nothing looks for derivatives, and "out" that of the variant which is given its result there. Also how long `import
untax` and a first call take.

Usage: python bench/python_calls.py [--device cuda|cpu] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import datetime, timezone
from statistics import median

import torch

import untax
import untax.torch as untax_torch
from untax.torch import calls, groups

CALLS, ROUNDS = 200, 15  # launches that fit into the queue of a stream


def seconds_of(call, settle):
    for _ in range(20):
        call()
    times = []
    for _ in range(ROUNDS):
        settle()
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - began) / CALLS)
    settle()
    return median(times)


def in_inference(call, settle):
    with torch.inference_mode():
        return seconds_of(call, settle)


def gemm_calls(device, name, engine, settle):
    a = torch.randn(16, 512, device=device).bfloat16()
    b = torch.randn(512, 512, device=device).bfloat16()
    weights = b.t().contiguous().t()
    for operator, rest in (("all_gather_matmul", (0, name)), ("matmul_reduce_scatter", ("sum", 0, name)),
                           ("matmul_all_reduce", ("sum", name))):
        call = getattr(torch.ops.untax, operator)
        out = call(a, weights, *rest)
        planned = next(reversed(engine._planned.values()))
        stream = calls.stream_of(a, engine.world)
        operands = tuple(calls.operand_of(t) for t in (a, weights.t(), out))
        yield operator, {"torch": seconds_of(lambda: call(a, weights, *rest), settle),
                         "inference": in_inference(lambda: call(a, weights, *rest), settle),
                         "out": in_inference(lambda: call.out(a, weights, *rest, out=out), settle),
                         "package": seconds_of(lambda: planned(a, weights.t(), out, stream=stream), settle),
                         "extension": seconds_of(lambda: planned._core.run_gemm(*operands, stream), settle)}


def collective_calls(device, name, engine, settle):
    x = torch.randn(16, 512, device=device).bfloat16()
    call = torch.ops.untax.all_reduce
    out = call(x, "sum", name)
    planned = next(op for key, op in engine._planned.items() if key[0] == "all_reduce")
    stream = calls.stream_of(x, engine.world)
    operands = tuple(calls.operand_of(t.view(-1)) for t in (x, out))
    yield "all_reduce", {"torch": seconds_of(lambda: call(x, "sum", name), settle),
                         "inference": in_inference(lambda: call(x, "sum", name), settle),
                         "out": in_inference(lambda: call.out(x, "sum", name, out=out), settle),
                         "package": seconds_of(lambda: planned(x, out, stream=stream), settle),
                         "extension": seconds_of(lambda: planned._core.run_collective(*operands, stream), settle)}


def seconds_in_a_process(program):
    """The number that a fresh interpreter prints as its last line."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return float(done.stdout.split()[-1])


IMPORT = "import time; t = time.perf_counter(); import untax; print(time.perf_counter() - t)"
FIRST = """
import time, torch
x = torch.randn(16, 512, device={0!r}).bfloat16(); w = torch.randn(512, 512, device={0!r}).bfloat16(); (x @ w).sum().item()
t = time.perf_counter()
import untax, untax.torch
def body(world):
    y = torch.ops.untax.all_gather_matmul(x, w, 0, untax.torch.name_of(world))
    assert y.float().norm().item() > 0
    untax.torch.close()
untax.{1}(1, body)
print(time.perf_counter() - t)
"""


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--json", help="write the figures to this file")
    chosen = asked.parse_args()
    start = "run_gpus" if chosen.device == "cuda" else "run_threads"

    def body(world):
        name = untax_torch.name_of(world)
        engine = groups.engine_of(name, chosen.device)
        settle = torch.cuda.synchronize if chosen.device == "cuda" else lambda: None
        calls = dict(gemm_calls(chosen.device, name, engine, settle))
        calls |= collective_calls(chosen.device, name, engine, settle)
        x = torch.ones(512, device=chosen.device)
        calls["torch's own add_"] = {"torch": seconds_of(lambda: x.add_(1), settle)}
        untax_torch.close()
        return calls

    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True).stdout.strip()
    result = {"format": "untax-python-calls", "date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "commit": commit,
              "torch": torch.__version__, "python": sys.version.split()[0],
              "gpu": torch.cuda.get_device_name() if chosen.device == "cuda" else "", "device": chosen.device,
              "calls": getattr(untax, start)(1, body)[0], "import_seconds": seconds_in_a_process(IMPORT),
              "first_call_seconds": seconds_in_a_process(FIRST.format(chosen.device, start))}
    for operator, seconds in result["calls"].items():
        print(f"{operator:24}" + "".join(f"{where} {1e6 * took:6.1f} us   " for where, took in seconds.items()))
    print(f"import {result['import_seconds']:.3f} s, first call behind it {result['first_call_seconds']:.2f} s")
    if chosen.json:
        with open(chosen.json, "w") as out:
            json.dump(result, out, indent=1)


main()
