"""The examples do what they say."""

import json
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


def test_sparse_product():
    done = subprocess.run([sys.executable, EXAMPLES / "sparse_product.py"], capture_output=True, text=True, check=True,
                          timeout=120)
    assert done.stdout.endswith("ways, the same heat\n")


def test_selector():
    done = subprocess.run([sys.executable, EXAMPLES / "selector.py"], capture_output=True, text=True, check=True, timeout=120)
    assert "Does gathering pay?" in done.stdout and done.stdout.endswith("numbers below 1000000000: sort\n")


def test_notebook_on_the_taxes():
    """Its cells, one after the other; the last line of a cell is what it shows."""
    cells = json.loads((EXAMPLES / "taxes.ipynb").read_text())["cells"]
    names, shown = {}, []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "figures are measured where it is read"
            *lines, last = "".join(cell["source"]).split("\n")
            exec("\n".join(lines), names)
            shown.append(eval(last, names))
    assert "all_gather_gemm" in str(shown[0]) and "An average layer" in str(shown[1]) and "rows" in shown[2]
    assert all("&lt;svg" in report._repr_html_() for report in shown[:2])
