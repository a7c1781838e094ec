"""The recipes of docs/python.md, on CPUs."""

import importlib.util
import re

import pytest
from test_torch import HERE, pytestmark, torchrun  # noqa: F401 (the mark is pytest's)
from test_torch_groups import needs_compiler

EXAMPLES = HERE.parents[1] / "examples/python"
needs_transformers = pytest.mark.skipif(importlib.util.find_spec("transformers") is None,
                                        reason="transformers is not installed; pip install transformers")


def test_first_program():
    # torchrun's processes do not buffer, so the end of one rank's line can follow the next rank's text.
    said = torchrun(2, EXAMPLES / "first.py")
    errors = [float(error) for error in re.findall(r"relative error (\d\.\de[-+]\d\d)", said)]
    assert len(errors) == 2 and all(0 < error < 1e-2 for error in errors)


@needs_compiler
def test_dtensor_that_is_compiled_runs_on_untax():
    said = torchrun(2, EXAMPLES / "dtensor.py")
    assert "result and gradient are within the tolerance" in said
    assert "fused_matmul_reduce_scatter" in said and "fused_all_gather_matmul" in said and "by torch" not in said


@needs_transformers
def test_model_of_transformers_for_inference():
    assert "logits and 8 tokens are right" in torchrun(2, EXAMPLES / "transformers_split.py")


@needs_transformers
@needs_compiler
def test_model_of_transformers_for_training():
    said = torchrun(2, EXAMPLES / "transformers_training.py")
    assert "gradients are right" in said and "fused_matmul_reduce_scatter" in said
