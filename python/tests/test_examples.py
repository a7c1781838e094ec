"""The examples do what they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/python"


def test_hello():
    done = subprocess.run([sys.executable, EXAMPLES / "hello.py"], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == [f"rank {rank}: c[0] is 512" for rank in range(4)]


def test_mlp_with_numpy():
    done = subprocess.run([sys.executable, EXAMPLES / "mlp_numpy.py"], capture_output=True, text=True, check=True,
                          timeout=120)
    assert "within the tolerance" in done.stdout and "all_gather_gemm" in done.stdout


def test_decode_step():
    done = subprocess.run([sys.executable, EXAMPLES / "decode_step.py"], capture_output=True, text=True, check=True,
                          timeout=120)
    assert "the same bits" in done.stdout and "all_reduce_norm" in done.stdout and "gemm_all_reduce" in done.stdout
