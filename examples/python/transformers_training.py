"""A Llama, Mistral or Qwen of transformers, split by DTensor for training, compiled, and run on untax.

    torchrun --nproc-per-node 2 examples/python/transformers_training.py     # a small model with random weights, on CPUs

The loss and the gradients are compared with those of the whole model.
"""

import copy

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from transformers import AutoModelForCausalLM, LlamaConfig

import untax.torch


def split_for_training(model, mesh):
    """Tokens are sharded between attention and MLP, features within them: torch's usual plan."""
    whole_input = {"hidden_states": Shard(1)}, {"hidden_states": Replicate()}
    layer_plan = {
        "input_layernorm": SequenceParallel(), "post_attention_layernorm": SequenceParallel(),
        "self_attn": PrepareModuleInput(input_kwarg_layouts=whole_input[0], desired_input_kwarg_layouts=whole_input[1]),
        "mlp": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        "self_attn.o_proj": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "mlp.down_proj": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)}
    for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"):
        layer_plan[name] = ColwiseParallel()
    for layer in model.model.layers:
        parallelize_module(layer, mesh, layer_plan)
    return parallelize_module(model, mesh, {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "model.norm": SequenceParallel(), "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)  # the same model and tokens at every rank
    config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
                         num_key_value_heads=2, attn_implementation="sdpa")
    whole, tokens = AutoModelForCausalLM.from_config(config), torch.randint(256, (1, 32))

    mesh = dist.init_device_mesh("cpu", (ranks,))
    part = split_for_training(copy.deepcopy(whole), mesh)
    untax.torch.install(async_tp=True)
    loss = torch.compile(part)(tokens, labels=tokens).loss
    loss.backward()

    right = whole(tokens, labels=tokens).loss
    right.backward()
    torch.testing.assert_close(loss.detach(), right.detach(), rtol=1e-4, atol=1e-4)
    wholes = dict(whole.named_parameters())
    for name, parameter in part.named_parameters():
        gradient = parameter.grad.full_tensor() if isinstance(parameter.grad, DTensor) else parameter.grad
        torch.testing.assert_close(gradient, wholes[name].grad, rtol=1e-3, atol=1e-5)
    if rank == 0:
        print(f"{ranks} ranks: the loss and {len(wholes)} gradients are right")
        print(untax.torch.report())
    untax.torch.close()
    dist.destroy_process_group()


main()
