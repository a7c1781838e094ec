"""The projections of a layer, each in all ways: the calls, and the reference in fp32. A call gets the number of its
turn, and uses another copy of the weights at each turn, so that weights are read from memory, as in a model of many
layers, and not from a cache.
"""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

CACHE = 160 << 20  # bytes of weights, larger than any cache
ONE_SHOT_BYTES = 512 << 10  # up to this size torch's one-shot is the faster of both


def problems(model):
    """Name: (kind, columns of the result at a rank, k at a rank)."""
    return {"qkv": ("gather", model.qkv, model.hidden), "gate_up": ("gather", 2 * model.inner, model.hidden),
            "o": ("scatter", model.hidden, model.attended), "down": ("scatter", model.hidden, model.inner),
            "o, all-reduce": ("reduce", model.hidden, model.attended),
            "down, all-reduce": ("reduce", model.hidden, model.inner)}


class Buffers:
    """Symmetric memory of torch, made once for the largest result: its all-reduces take no other operands."""

    def __init__(self, elements, dtype, device, group):
        self.room = symm_mem.empty(elements, dtype=dtype, device=device)
        symm_mem.rendezvous(self.room, group)

    def of(self, rows, columns):
        return self.room[: rows * columns].view(rows, columns)


class Projection:
    def __init__(self, kind, tokens, columns, k, dtype, device, buffers):
        self.kind, self.tokens, self.buffers = kind, tokens, buffers
        self.ranks, self.group = dist.get_world_size(), dist.group.WORLD.group_name
        self.cuda = torch.device(device).type == "cuda"
        rows = tokens // self.ranks if kind == "gather" else tokens
        copies = max(CACHE // (columns * k * dtype.itemsize), 1) if self.cuda else 1
        self.x = torch.randn(rows, k, device=device).to(dtype)
        self.weights = [(torch.randn(columns, k, device=device) / k**0.5).to(dtype).t() for _ in range(copies)]
        parts = self.ranks if kind == "scatter" else 1
        self.whole = self.x.new_empty(tokens, k) if kind == "gather" else None
        self.share = self.x.new_empty(tokens // parts, columns) if kind == "scatter" else None

    def weight(self, turn):
        return self.weights[turn % len(self.weights)]

    def reference(self):
        """The product with the first copy of the weights, in fp32."""
        x, w = self.x.float(), self.weight(0).float()
        if self.kind == "gather":
            whole = x.new_empty(self.tokens, x.shape[1])
            dist.all_gather_into_tensor(whole, x)
            return whole @ w
        total = x @ w
        dist.all_reduce(total)
        return total.chunk(self.ranks)[dist.get_rank()] if self.kind == "scatter" else total

    def library(self, turn):
        """torch's matmul beside the collective of NCCL, or of gloo on hosts."""
        w = self.weight(turn)
        if self.kind == "gather":
            dist.all_gather_into_tensor(self.whole, self.x)
            return self.whole @ w
        product = self.x @ w
        if self.kind == "reduce":
            dist.all_reduce(product)
            return product
        dist.reduce_scatter_tensor(self.share, product)
        return self.share

    def asynchronous(self, turn):
        """The operator that torch.compile emits for tensor parallelism with
        torch._inductor.config._micro_pipeline_tp."""
        if self.kind == "gather":
            call = symm_mem._fused_all_gather_matmul if self.cuda else symm_mem._fused_all_gather_matmul_fallback
            return call(self.x, [self.weight(turn)], 0, self.group, return_A=False)[1][0]
        call = symm_mem._fused_matmul_reduce_scatter if self.cuda else symm_mem._fused_matmul_reduce_scatter_fallback
        return call(self.x, self.weight(turn), "sum", 0, self.group)

    def partial(self, turn):
        out = self.buffers.of(self.tokens, self.weight(turn).shape[1])
        return torch.mm(self.x, self.weight(turn), out=out)

    def one_shot(self, turn):
        return torch.ops.symm_mem.one_shot_all_reduce(self.partial(turn), "sum", self.group)

    def two_shot(self, turn):
        return torch.ops.symm_mem.two_shot_all_reduce_(self.partial(turn), "sum", self.group)

    def untax(self, turn):
        """untax at its defaults."""
        ops, w = torch.ops.untax, self.weight(turn)
        if self.kind == "gather":
            return ops.all_gather_matmul(self.x, w, 0, self.group)
        if self.kind == "scatter":
            return ops.matmul_reduce_scatter(self.x, w, "sum", 0, self.group)
        return ops.matmul_all_reduce(self.x, w, "sum", self.group)

    def ways(self):
        """The functions to time, by name. "matmul" communicates nothing, and so is not a rival."""
        ways = {"NCCL": self.library, "untax": self.untax,
                "matmul": lambda turn: (self.x if self.whole is None else self.whole) @ self.weight(turn)}
        if self.kind != "reduce":
            ways["torch async"] = self.asynchronous
        elif self.buffers:
            ways["torch two-shot"] = self.two_shot
            if self.tokens * self.weight(0).shape[1] * self.x.element_size() <= 16 * ONE_SHOT_BYTES:
                ways["torch one-shot"] = self.one_shot
        return ways
