"""A whole layer in all ways: projections, rotary positions, attention, norms and the gate. Prefill leaves out rotary
positions, since they are the same in all ways. `turn` is not used: the weights of a layer are larger than a cache."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import untax.torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

from .projections import ONE_SHOT_BYTES

EPSILON = 1e-5
BEHIND = " behind untax attention"


def add_norm(x, residual, weight):
    total = x + residual
    return rms_norm(total, (total.shape[-1],), weight, EPSILON), total


def gated(gate_up):
    gate, up = gate_up.chunk(2, -1)
    return silu(gate) * up


def rotate_and_append(qkv, rotations, position, keys, values):
    """Returns the rotated q of one token of each sequence, [tokens, heads, dim]; writes rotated k, and v, into the
    caches, [tokens, kv_heads, keys, dim]."""
    kv_heads, dim = keys.shape[1], keys.shape[3]
    q, k, v = qkv.unflatten(-1, (-1, dim)).split([qkv.shape[1] // dim - 2 * kv_heads, kv_heads, kv_heads], 1)
    cos, sin = rotations[position][:, None].chunk(2, -1)

    def rotated(x):
        first, second = x.float().chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)

    sequence = torch.arange(qkv.shape[0], device=qkv.device)
    keys[sequence, :, position] = rotated(k)
    values[sequence, :, position] = v
    return rotated(q)


class Weights:
    """One rank's part of a layer. The weights of o are larger, since averaging over many keys makes attention small: so
    an error of attention is seen in the result."""

    def __init__(self, model, dtype, device):
        def matrix(columns, k, scale=1.0):
            return (torch.randn(columns, k, device=device) * (scale / k**0.5)).to(dtype).t()

        self.model = model
        self.qkv, self.o = matrix(model.qkv, model.hidden), matrix(model.hidden, model.attended, 8.0)
        self.gate_up, self.down = matrix(2 * model.inner, model.hidden), matrix(model.hidden, model.inner)
        same = torch.Generator(device).manual_seed(7)  # the same weights of norms at every rank
        # The weights of gate and up in the order of untax.torch.linear; the products of both orders have the same
        # numbers.
        self.interleaved = untax.torch.interleave_gate_up(*self.gate_up.t().chunk(2))
        self.norms = [(1 + torch.randn(model.hidden, device=device, generator=same) / 8).to(dtype) for _ in range(2)]

    def float(self):
        """The layer in fp32."""
        copy = object.__new__(Weights)
        copy.model = self.model
        copy.norms = [t.float() for t in self.norms]
        copy.qkv, copy.o, copy.gate_up, copy.down = (t.float() for t in (self.qkv, self.o, self.gate_up, self.down))
        return copy


class Layer:
    """A layer in one mode. `keys`: the number that a token of decode attends to; None is prefill, in which all tokens
    are of one sequence."""

    def __init__(self, weights, tokens, keys, dtype, device, buffers, small):
        self.weights, self.model, self.tokens, self.buffers = weights, weights.model, tokens, buffers
        self.ranks, self.rank, self.group = dist.get_world_size(), dist.get_rank(), dist.group.WORLD.group_name
        self.add_norm, self.gated, self.rotate_and_append = small
        same = torch.Generator(device).manual_seed(tokens)
        self.x = torch.randn(tokens, self.model.hidden, device=device, generator=same).to(dtype)
        # A layer gets the normalised rows beside the residual, since the layer before it ends with its norm.
        self.h = rms_norm(self.x, (self.x.shape[-1],), weights.norms[0], EPSILON)
        self.cache = None
        if keys is not None:
            shape = tokens, self.model.kv_heads, keys, self.model.head_dim
            self.cache = [torch.randn(shape, dtype=dtype, device=device) for _ in range(2)]
            # The same keys and values with the heads of a key side by side, as paged caches have them.
            self.rows_of_keys = [t.transpose(1, 2).contiguous() for t in self.cache]
            self.lengths = torch.full((tokens,), keys, dtype=torch.int32, device=device)
            # The token is the last key of its sequence.
            self.position = self.lengths - 1
            angles = torch.arange(keys, device=device)[:, None] * 5e5 ** -torch.linspace(0, 1, self.model.head_dim // 2, device=device)
            self.rotations = torch.cat((angles.cos(), angles.sin()), 1)

    def heads(self, qkv):
        m = self.model
        return qkv.unflatten(-1, (-1, m.head_dim)).split([m.heads, m.kv_heads, m.kv_heads], 1)

    def attention(self, qkv):
        if self.cache is None:
            q, k, v = (t.transpose(0, 1)[None] for t in self.heads(qkv))
            done = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return done[0].transpose(0, 1).flatten(1)
        q = self.rotate_and_append(qkv, self.rotations, self.position, *self.cache)
        done = scaled_dot_product_attention(q[:, :, None], *self.cache, enable_gqa=True)
        return done.flatten(1)

    def untax_attention(self, qkv):
        q = torch.ops.untax.rope_append(qkv, self.rotations, self.position, *self.rows_of_keys)
        return torch.ops.untax.decode_attention(q, *self.rows_of_keys, self.lengths, None).flatten(1)

    def exact_attention(self, qkv):
        """Attention in fp32, for some tokens of decode at a time, since all keys in fp32 would fill a GPU."""
        times = self.model.heads // self.model.kv_heads
        if self.cache is None:
            q, k, v = self.heads(qkv)
            k, v = (t.repeat_interleave(times, 1) for t in (k, v))
            q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
            return scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1).flatten(1)
        done = []
        for begin in range(0, self.tokens, 16):
            part = slice(begin, begin + 16)
            cache = [t[part].float() for t in self.cache]
            q = rotate_and_append(qkv[part], self.rotations, self.position[part], *cache)
            k, v = (t.repeat_interleave(times, 1) for t in cache)
            done.append(scaled_dot_product_attention(q[:, :, None], k, v).flatten(1))
        return torch.cat(done)

    def reference(self):
        """The residual after the layer, in fp32."""
        w, x = self.weights.float(), self.x.float()
        qkv = rms_norm(x, (x.shape[-1],), w.norms[0], EPSILON) @ w.qkv
        partial = self.exact_attention(qkv) @ w.o
        dist.all_reduce(partial)
        h, x = add_norm(partial, x, w.norms[1])
        partial = gated(h @ w.gate_up) @ w.down
        dist.all_reduce(partial)
        return x + partial

    def summed(self, multiply_and_sum, turn=0, attention=None):
        """A layer whose tokens all ranks have. Returns the normalised rows for the next layer, and the residual.
        `multiply_and_sum(x, w, residual, norm)` ends both halves."""
        w = self.weights
        h, x = multiply_and_sum((attention or self.attention)(self.h @ w.qkv), w.o, self.x, w.norms[1])
        return multiply_and_sum(self.gated(h @ w.gate_up), w.down, x, w.norms[0])

    def chained(self, turn=0):
        """A layer of decode by untax alone: its products, its attention, and its all-reduces with the norms."""
        w, ops = self.weights, torch.ops.untax

        def multiply(x, weight, activation="none"):
            return ops.linear(x, weight, None, activation, constant_weights=True)

        attended = self.untax_attention(multiply(self.h, w.qkv.t()))
        h, x = ops.all_reduce_rms_norm(multiply(attended, w.o.t()), self.x, w.norms[1], EPSILON, self.group)
        inner = multiply(h, w.interleaved, "swiglu")
        return ops.all_reduce_rms_norm(multiply(inner, w.down.t()), x, w.norms[0], EPSILON, self.group)

    def shared(self, gather, scatter, turn=0):
        """A layer whose tokens are sharded over the ranks: `gather(x, w)` multiplies all tokens, and `scatter(x, w)`
        gives this rank's tokens of the sum."""
        w = self.weights
        h, x = (t.chunk(self.ranks)[self.rank] for t in (self.h, self.x))
        h, x = self.add_norm(scatter(self.attention(gather(h, w.qkv)), w.o), x, w.norms[1])
        return self.add_norm(scatter(self.gated(gather(h, w.gate_up)), w.down), x, w.norms[0])

    def nccl(self, x, w, residual, norm):
        product = x @ w
        dist.all_reduce(product)
        return self.add_norm(product, residual, norm)

    def on_symmetric_memory(self, x, w, residual, norm):
        product = torch.mm(x, w, out=self.buffers.of(self.tokens, w.shape[1]))
        few = product.numel() * product.element_size() <= ONE_SHOT_BYTES
        reduce = torch.ops.symm_mem.one_shot_all_reduce if few else torch.ops.symm_mem.two_shot_all_reduce_
        return self.add_norm(reduce(product, "sum", self.group), residual, norm)

    def silent(self, x, w, residual, norm):
        return self.add_norm(x @ w, residual, norm)

    def untax_norm(self, x, w, residual, norm):
        return torch.ops.untax.all_reduce_rms_norm(x @ w, residual, norm, EPSILON, self.group)

    def untax_sum(self, x, w, residual, norm):
        return self.add_norm(torch.ops.untax.matmul_all_reduce(x, w, "sum", self.group), residual, norm)

    def nccl_gather(self, x, w):
        whole = x.new_empty(self.tokens, x.shape[1])
        dist.all_gather_into_tensor(whole, x)
        return whole @ w

    def nccl_scatter(self, x, w):
        share = x.new_empty(self.tokens // self.ranks, w.shape[1])
        dist.reduce_scatter_tensor(share, x @ w)
        return share

    def asynchronous_gather(self, x, w):
        call = symm_mem._fused_all_gather_matmul if x.is_cuda else symm_mem._fused_all_gather_matmul_fallback
        return call(x, [w], 0, self.group, return_A=False)[1][0]

    def asynchronous_scatter(self, x, w):
        call = symm_mem._fused_matmul_reduce_scatter if x.is_cuda else symm_mem._fused_matmul_reduce_scatter_fallback
        return call(x, w, "sum", 0, self.group)

    def untax_gather(self, x, w):
        return torch.ops.untax.all_gather_matmul(x, w, 0, self.group)

    def untax_scatter(self, x, w):
        return torch.ops.untax.matmul_reduce_scatter(x, w, "sum", 0, self.group)

    def ways(self):
        """The functions to time, by name. Each returns the normalised rows and the residual, of all tokens or of this
        rank's. "no communication" is not a rival."""
        ends = {"NCCL all-reduce": self.nccl, "no communication": self.silent,
                "untax all_reduce_rms_norm": self.untax_norm, "untax matmul_all_reduce": self.untax_sum}
        if self.buffers:
            ends["torch symmetric memory"] = self.on_symmetric_memory
        ways = {name: lambda turn, end=end: self.summed(end, turn) for name, end in ends.items()}
        if self.cache is not None:
            # untax's attention with torch's all-reduce shows which part of the gain comes from the other operators of
            # the chain.
            for name in ("NCCL all-reduce", "torch symmetric memory"):
                if name in ends:
                    ways[name + BEHIND] = lambda turn, end=ends[name]: self.summed(
                        end, turn, self.untax_attention)
            return ways | {"untax chain": self.chained}
        if self.tokens % self.ranks:
            return ways
        pairs = {"NCCL gather, scatter": (self.nccl_gather, self.nccl_scatter),
                 "torch async": (self.asynchronous_gather, self.asynchronous_scatter),
                 "untax gather, scatter": (self.untax_gather, self.untax_scatter)}
        return ways | {name: lambda turn, pair=pair: self.shared(*pair, turn) for name, pair in pairs.items()}
