"""A Gemma, Llama, Mistral or Qwen of transformers, tensor-parallel, goes on with a text.

    torchrun --nproc-per-node 2 examples/python/transformers_split.py FOLDER_OR_NAME "The capital of France is"

On GPUs where torch sees them, else on CPUs. Tried with transformers 5.24 and torch 2.15.
"""

import sys

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer

import untax.torch

if len(sys.argv) != 3:
    sys.exit(__doc__)
name, prompt = sys.argv[1:]
dist.init_process_group()  # before the split, which asks for rank and number of ranks
device = torch.device("cpu")
if torch.cuda.is_available():
    device = torch.device("cuda", dist.get_rank())
    torch.cuda.set_device(device)

tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)  # whole, in the memory of the CPU
model = untax.torch.parallelize(model).to(device)  # a GPU only gets its part
torch.manual_seed(7)  # the same at every rank, so that all of them sample the same tokens
tokens = tokenizer(prompt, return_tensors="pt").to(device)
text = model.generate(**tokens, max_new_tokens=32, do_sample=True)
if dist.get_rank() == 0:
    print(tokenizer.decode(text[0]))
untax.torch.close()
dist.destroy_process_group()
