"""A Llama, Mistral or Qwen of transformers, tensor-parallel for inference.

    torchrun --nproc-per-node 2 examples/python/transformers_split.py FOLDER_OR_NAME "The capital of France is"

On GPUs where torch sees them, else on CPUs. Tried with transformers 5.24 and torch 2.15.
"""

import sys

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer

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


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    dist.init_process_group()  # before the split, which asks for rank and number of ranks
    generate(*sys.argv[1:])
    untax.torch.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
