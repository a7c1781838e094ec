"""A Llama, Mistral or Qwen of transformers, tensor-parallel for inference.

    torchrun --nproc-per-node 2 examples/python/transformers_split.py     # a small model with random weights, on CPUs

The logits and the tokens that it generates are compared with those of the whole model.
"""

import copy

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, LlamaConfig

import untax.torch


class Summed(torch.nn.Module):
    """A linear layer whose input features are sharded; every rank gets the sum."""

    def __init__(self, linear):
        super().__init__()
        self.weight = linear.weight.chunk(dist.get_world_size(), 1)[dist.get_rank()].contiguous()
        self.bias, self.group = linear.bias, untax.torch.name_of(None)

    def forward(self, x):
        y = torch.ops.untax.matmul_all_reduce(x, self.weight.t(), "sum", self.group)
        return y if self.bias is None else y + self.bias


def keep_own_features(linear):
    """Of the output features of a linear layer this rank keeps its own."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    linear.weight = torch.nn.Parameter(linear.weight.chunk(ranks)[rank].contiguous())
    if linear.bias is not None:
        linear.bias = torch.nn.Parameter(linear.bias.chunk(ranks)[rank].contiguous())


def split_for_inference(model):
    """All ranks have all tokens. The number of key and value heads has to be a multiple of the number of ranks."""
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj):
            keep_own_features(linear)
        attention.o_proj, mlp.down_proj = Summed(attention.o_proj), Summed(mlp.down_proj)
    return model.eval()


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
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

    if rank == 0:
        print(f"{ranks} ranks: logits and {got[1].shape[1] - 12} tokens are right")
    untax.torch.close()
    dist.destroy_process_group()


main()
