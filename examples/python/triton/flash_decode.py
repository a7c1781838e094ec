"""Flash decode in one kernel: attention of one new token to keys that are sharded over ranks. Every rank attends to its own
keys, sends each head's result to all ranks, and merges what comes.

    torchrun --nproc-per-node 2 examples/python/triton/flash_decode.py         # with TRITON_INTERPRET=1 on CPUs
"""

import torch
import triton
import triton.language as tl
from tiles import expect_close, settle

import untax
import untax.triton as ut


@triton.jit(do_not_specialize=["run"])
def decode(q, keys, values, out, partial_o, partial_lse, arrived, length, heads, scale, run, context,
           GROUP: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr):
    """A program has GROUP heads of one sequence, which share a head of the keys: [batch, keys, kv_heads, DIM]. Partial results
    have two sets of rooms, used in turn: a peer reuses a room two runs later, after this rank's results of the run between."""
    number = tl.program_id(0)
    kv_heads = heads // GROUP
    dims = tl.arange(0, DIM)
    mine = number * GROUP + tl.arange(0, GROUP)  # among the heads of all sequences
    query = tl.load(q + mine[:, None] * DIM + dims[None, :]).to(tl.float32) * scale
    begin = (number // kv_heads * length * kv_heads + number % kv_heads) * DIM
    top = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    o = tl.zeros((GROUP, DIM), tl.float32)
    for first in range(0, length, BLOCK):
        rows = first + tl.arange(0, BLOCK)
        at = begin + rows[:, None] * (kv_heads * DIM) + dims[None, :]
        k = tl.load(keys + at, mask=rows[:, None] < length, other=0).to(tl.float32)
        v = tl.load(values + at, mask=rows[:, None] < length, other=0).to(tl.float32)
        logits = tl.sum(query[:, None, :] * k[None, :, :], 2)
        logits = tl.where(rows[None, :] < length, logits, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, 1))
        weights = tl.exp(logits - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        o = o * shrink[:, None] + tl.sum(weights[:, :, None] * v[None, :, :], 1)
        top = higher

    rooms = (run % 2) * context.size * tl.num_programs(0) * GROUP
    room = rooms + context.rank * tl.num_programs(0) * GROUP + mine
    for step in range(context.size):
        peer = (context.rank + step) % context.size
        ut.store(partial_o + room[:, None] * DIM + dims[None, :], o / total[:, None], peer, context)
        ut.store(partial_lse + room, top + tl.log(total), peer, context)
        ut.signal(arrived + context.rank * tl.num_programs(0) + number, run, peer, context)

    top = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    o = tl.zeros((GROUP, DIM), tl.float32)
    for peer in range(context.size):
        ut.wait(arrived + peer * tl.num_programs(0) + number, run, peer, context)
        room = rooms + peer * tl.num_programs(0) * GROUP + mine
        lse = tl.load(partial_lse + room)
        higher = tl.maximum(top, lse)
        shrink = tl.exp(top - higher)
        weight = tl.exp(lse - higher)
        total = total * shrink + weight
        o = o * shrink[:, None] + weight[:, None] * tl.load(partial_o + room[:, None] * DIM + dims[None, :])
        top = higher
    tl.store(out + mine[:, None] * DIM + dims[None, :], (o / total[:, None]).to(out.dtype.element_ty))


class FlashDecode:
    """Attends with q [batch, heads, dim] to this rank's keys and values [batch, keys, kv_heads, dim]. The GPU has to hold all
    programs at a time: one for each sequence and head of the keys."""

    def __init__(self, world, batch, heads, kv_heads, dim):
        self.context, self.run, self.group = ut.context(world, "flash_decode"), 0, heads // kv_heads
        self.programs = batch * kv_heads
        self.partial_o = world.empty((2, world.size, batch * heads, dim), torch.float32)
        self.partial_lse = world.empty((2, world.size, batch * heads), torch.float32)
        self.arrived = world.zeros((world.size, self.programs), torch.int64)

    def __call__(self, q, keys, values):
        self.run += 1
        heads, dim = q.shape[1:]
        out = torch.empty_like(q)
        decode[(self.programs,)](q, keys, values, out, self.partial_o, self.partial_lse, self.arrived, keys.shape[1], heads,
                                 dim**-0.5, self.run, self.context, GROUP=self.group, DIM=dim, BLOCK=32, num_warps=8)
        return out


def main(world, batch=2, heads=4, kv_heads=2, dim=32, length=75, runs=3):
    attention = FlashDecode(world, batch, heads, kv_heads, dim)
    for run in range(runs):
        generator = torch.Generator().manual_seed(run)
        device = "cpu" if world.device < 0 else f"cuda:{world.device}"
        q = torch.randn((batch, heads, dim), generator=generator).half().to(device)
        shape = batch, world.size * length, kv_heads, dim
        keys, values = (torch.randn(shape, generator=generator).half().to(device) for _ in range(2))
        own = slice(world.rank * length, (world.rank + 1) * length)
        out = attention(q, keys[:, own].contiguous(), values[:, own].contiguous())
        k, v = (t.float().repeat_interleave(heads // kv_heads, 2).transpose(1, 2) for t in (keys, values))
        expected = torch.nn.functional.scaled_dot_product_attention(q.float()[:, :, None], k, v)[:, :, 0]
        expect_close(out, expected, "flash_decode")
    settle(world)


if __name__ == "__main__":
    with untax.World.from_environment(memory="automatic") as world:
        world.use_device()
        main(world)
        print(f"rank {world.rank} of {world.size}: the attention is right\n", end="")
