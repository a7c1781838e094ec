"""A Llama, Mistral or Qwen of transformers, tensor-parallel for inference.

    torchrun --nproc-per-node 2 examples/python/transformers_split.py FOLDER_OR_NAME "The capital of France is"
    torchrun --nproc-per-node 2 examples/python/transformers_split.py     # compares a small model with its parts, on CPUs

On GPUs where torch sees them. Tried with transformers 5.24 and torch 2.15.
"""

import copy
import sys

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

import untax.torch


def own_part(tensor, dim):
    """A copy of this rank's part, so that nothing keeps the whole tensor."""
    part = tensor.detach().chunk(dist.get_world_size(), dim)[dist.get_rank()]
    return torch.nn.Parameter(part.clone(memory_format=torch.contiguous_format), requires_grad=False)


class Summed(torch.nn.Module):
    """A linear layer whose input features are sharded; every rank gets the sum."""

    def __init__(self, linear):
        super().__init__()
        self.weight, self.bias = own_part(linear.weight, 1), linear.bias
        self.group = untax.torch.name_of(None)  # the default process group

    def forward(self, x):
        y = torch.ops.untax.matmul_all_reduce(x, self.weight.t(), "sum", self.group)
        return y if self.bias is None else y + self.bias


def keep_own_features(linear):
    """This rank keeps its share of the output features of a linear layer."""
    linear.weight = own_part(linear.weight, 0)
    if linear.bias is not None:
        linear.bias = own_part(linear.bias, 0)
    linear.out_features = linear.weight.shape[0]


def split_for_inference(model):
    """Each rank has all tokens. The number of key and value heads has to be a multiple of the number of ranks."""
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj):
            keep_own_features(linear)
        attention.o_proj, mlp.down_proj = Summed(attention.o_proj), Summed(mlp.down_proj)
    return model.eval()


def generate(name, prompt):
    """Loads a model, splits it and goes on with a text."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", dist.get_rank())
        torch.cuda.set_device(device)
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)  # whole, in the memory of the CPU
    model = split_for_inference(model).to(device)  # a GPU only gets its part
    torch.manual_seed(7)  # the same at every rank, so that all of them sample the same tokens
    tokens = tokenizer(prompt, return_tensors="pt").to(device)
    text = model.generate(**tokens, max_new_tokens=32, do_sample=True)
    if dist.get_rank() == 0:
        print(tokenizer.decode(text[0]))


def compare():
    """Logits and tokens of a small model with random weights, beside those of its parts, on CPUs."""
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
    if dist.get_rank() == 0:
        print(f"{ranks} ranks: logits and {got[1].shape[1] - 12} tokens are right")


dist.init_process_group()  # before the split, which asks for rank and number of ranks
if len(sys.argv) > 2:
    generate(sys.argv[1], sys.argv[2])
else:
    compare()
untax.torch.close()
dist.destroy_process_group()
