"""The recipes of docs/python.md, on CPUs."""

import importlib.util
import re

import pytest
from ranks import HERE, fork, torchrun
from test_torch import pytestmark  # noqa: F401 (the mark is pytest's)
from test_torch_groups import needs_compiler

EXAMPLES = HERE.parents[1] / "examples/python"
needs_transformers = pytest.mark.skipif(importlib.util.find_spec("transformers") is None,
                                        reason="transformers is not installed; pip install transformers")


def test_first_program():
    # torchrun's processes do not buffer, so the end of one rank's line can follow the next rank's text.
    said = torchrun(2, EXAMPLES / "first.py")
    errors = [float(error) for error in re.findall(r"relative error (\d\.\de[-+]\d\d)", said)]
    assert len(errors) == 2 and all(0 < error < 1e-2 for error in errors)
    assert all(f"rank {rank} of 2: untax on c" in said for rank in range(2))


def test_gradients():
    assert "2 ranks: the gradients are right" in fork(2, EXAMPLES / "gradients.py")


@needs_compiler
def test_dtensor_that_is_compiled_runs_on_untax():
    said = fork(2, EXAMPLES / "dtensor.py")
    assert "result and gradient are within the tolerance" in said
    assert "fused_matmul_reduce_scatter" in said and "fused_all_gather_matmul" in said and "by torch" not in said


@needs_transformers
def test_loaded_model_of_transformers_continues_a_text(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["[UNK]", *map(str, range(255))])}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(tmp_path)
    config = LlamaConfig(vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4,
                         num_key_value_heads=2, bos_token_id=None, eos_token_id=None)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    said = fork(2, EXAMPLES / "transformers_split.py", tmp_path, "3 1 4 1 5")
    assert said.startswith("3 1 4 1 5 ") and len(said.split()) == 5 + 32


@needs_transformers
@needs_compiler
def test_model_of_transformers_for_training():
    said = fork(2, EXAMPLES / "transformers_training.py")
    assert "gradients are right" in said and "fused_matmul_reduce_scatter" in said
