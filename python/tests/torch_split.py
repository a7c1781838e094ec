"""Each rank of test_torch_recipes.py compares a small model with random weights with the parts that
examples/python/transformers_split.py makes of it, on CPUs."""

import copy
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, LlamaConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python"))
from transformers_split import split_for_inference


def compare():
    """Logits and tokens, and whether parts keep memory of their own alone."""
    ranks = dist.get_world_size()
    torch.manual_seed(7)  # the same model at every rank
    config = LlamaConfig(vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=8,
                         num_key_value_heads=4, attn_implementation="sdpa")
    whole = AutoModelForCausalLM.from_config(config)
    prompt = torch.randint(256, (1, 12))

    with torch.inference_mode():
        expected = whole(prompt).logits, whole.generate(prompt, max_new_tokens=8, do_sample=False)
        part = split_for_inference(copy.deepcopy(whole))
        got = part(prompt).logits, part.generate(prompt, max_new_tokens=8, do_sample=False)
    torch.testing.assert_close(got[0], expected[0], rtol=1e-4, atol=1e-4)
    assert (got[1] == expected[1]).all()
    names = {name for name, _ in part.named_parameters()}
    assert {"model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.down_proj.weight"} <= names  # so that .to() takes them
    for name, parameter in part.named_parameters():
        assert parameter.untyped_storage().nbytes() == parameter.numel() * parameter.element_size(), f"{name} keeps the whole"
    if dist.get_rank() == 0:
        print(f"{ranks} ranks: logits and {got[1].shape[1] - 12} tokens are right")


dist.init_process_group("gloo")
compare()
dist.destroy_process_group()
