"""Random calls of every operator of torch.ops.untax, with what each rank passes and what it has to get."""

import random

import torch

TYPES = (torch.bfloat16, torch.float16)


class Case:
    """A call: the tensors of each rank, what follows them, and the results of each rank, in fp64."""

    def __init__(self, operator, dtype, tensors, rest, expected):
        self.operator, self.dtype, self.tensors, self.rest, self.expected = operator, dtype, tensors, rest, expected

    def __repr__(self):
        shapes = [tuple(t.shape) for t in self.tensors[0]]
        return f"{self.operator} {shapes} {self.rest} {self.dtype}"

    def call(self, overload, tensors, name, **named):
        """`overload` is the operator, or what torch.compile made of it."""
        rest = tuple(name if r == "group" else r for r in self.rest)
        return overload(*tensors, *rest, **named)

    def compare(self, rank, got, case):
        got = got if isinstance(got, tuple) else (got,)
        for result, right in zip(got, self.expected[rank], strict=True):
            assert result.shape == right.shape, f"{case}, rank {rank}: {self} is {tuple(result.shape)}, not {tuple(right.shape)}"
            limit = 2e-3 if result.dtype in (torch.float16, torch.float32) else 2e-2
            result = result.cpu().double()
            wrong = result != right  # infinities differ by no number
            error = ((result - right)[wrong].norm() / max(right[right.isfinite()].norm().item(), 1e-3)).item()
            assert error <= limit, f"{case}, rank {rank}: {self} has a relative error of {error}"


def _matrices(same, ranks, dtype, *shape):
    generator = torch.Generator().manual_seed(same.randrange(2**31))
    return [torch.randn(*shape, generator=generator).to(dtype) for _ in range(ranks)]


def _eights(same, most=24):
    return 8 * same.randint(1, most)


def _gather(same, ranks, dtype):
    x = _matrices(same, ranks, dtype, same.randint(1, 9), _eights(same))
    dim = same.randrange(2)
    return Case("all_gather", dtype, [(t,) for t in x], (dim, "group"), [(torch.cat(x, dim).double(),)] * ranks)


def _reduce_scatter(same, ranks, dtype):
    x = _matrices(same, ranks, dtype, ranks * same.randint(1, 9), _eights(same))
    total = sum(t.double() for t in x).chunk(ranks)
    return Case("reduce_scatter", dtype, [(t,) for t in x], ("sum", 0, "group"), [(t,) for t in total])


def _all_reduce(same, ranks, dtype):
    x = _matrices(same, ranks, dtype, same.randint(1, 40), _eights(same))
    kind = same.choice(["sum", "max"])
    whole = torch.stack(x).double()
    right = whole.sum(0) if kind == "sum" else whole.amax(0)
    return Case("all_reduce", dtype, [(t,) for t in x], (kind, "group"), [(right,)] * ranks)


def _all_to_all(same, ranks, dtype):
    x = _matrices(same, ranks, dtype, ranks * same.randint(1, 5), _eights(same))
    parts = [t.double().chunk(ranks) for t in x]
    return Case("all_to_all", dtype, [(t,) for t in x], ("group",),
                [(torch.cat([parts[peer][rank] for peer in range(ranks)]),) for rank in range(ranks)])


def _broadcast(same, ranks, dtype):
    x, root = _matrices(same, ranks, dtype, same.randint(1, 9), _eights(same)), same.randrange(ranks)
    return Case("broadcast", dtype, [(t,) for t in x], (root, "group"), [(x[root].double(),)] * ranks)


def _gather_matmul(same, ranks, dtype):
    rows, k, n, dim = same.randint(1, 70), _eights(same), _eights(same), same.randrange(2)
    a = _matrices(same, ranks, dtype, rows, k)
    b = _matrices(same, ranks, dtype, k * (ranks if dim == 1 else 1), n)
    whole = torch.cat(a, dim).double()
    return Case("all_gather_matmul", dtype, list(zip(a, b, strict=True)), (dim, "group"),
                [(whole @ b[rank].double(),) for rank in range(ranks)])


def _matmul_scatter(same, ranks, dtype):
    rows, k, n = ranks * same.randint(1, 40), _eights(same), _eights(same)
    a, b = _matrices(same, ranks, dtype, rows, k), _matrices(same, ranks, dtype, k, n)
    total = sum(x.double() @ y.double() for x, y in zip(a, b, strict=True)).chunk(ranks)
    return Case("matmul_reduce_scatter", dtype, list(zip(a, b, strict=True)), ("sum", 0, "group"), [(t,) for t in total])


def _matmul_all_reduce(same, ranks, dtype):
    rows, k, n = same.randint(1, 100), _eights(same), _eights(same)
    a, b = _matrices(same, ranks, dtype, rows, k), _matrices(same, ranks, dtype, k, n)
    total = sum(x.double() @ y.double() for x, y in zip(a, b, strict=True))
    return Case("matmul_all_reduce", dtype, list(zip(a, b, strict=True)), ("sum", "group"), [(total,)] * ranks)


def _matmul_all_scatter(same, ranks, dtype):
    a = _matrices(same, 1, dtype, same.randint(1, 60), _eights(same))[0]
    b = _matrices(same, ranks, dtype, a.shape[1], _eights(same))
    whole = a.double() @ torch.cat(b, 1).double()
    return Case("matmul_all_scatter", dtype, [(a, t) for t in b], ("group",), [(whole,)] * ranks)


def _norm(same, ranks, dtype):
    tokens, hidden = same.randint(1, 40), _eights(same, 200)
    x = _matrices(same, ranks, dtype, tokens, hidden)
    residual, weight = _matrices(same, 1, dtype, tokens, hidden)[0], _matrices(same, 1, dtype, hidden)[0]
    total = sum(t.double() for t in x) + residual.double()
    normed = total / (total.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    return Case("all_reduce_rms_norm", dtype, [(t, residual, weight) for t in x], (1e-5, "group"),
                [(normed, total)] * ranks)


def _attention(q, keys, values, lengths=None):
    """[batch, queries, heads, dim] and [batch, keys, kv_heads, dim] in fp64; each query sees `lengths` keys, or all."""
    group = q.shape[2] // keys.shape[2]
    keys, values = (t.double().repeat_interleave(group, 2) for t in (keys, values))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.double(), keys) / q.shape[3] ** 0.5
    if lengths is not None:
        hidden = torch.arange(keys.shape[1])[None, :] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None, None, :], -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), values), scores.logsumexp(-1).transpose(1, 2)


def _decode(same, ranks, dtype):
    batch, kv_heads, keys = same.randint(1, 4), same.randint(1, 3), same.randint(1, 90)
    heads = kv_heads * same.choice([1, 4, 8])
    q = _matrices(same, 1, dtype, batch, heads, 128)[0]
    k, v = (_matrices(same, ranks, dtype, batch, keys, kv_heads, 128) for _ in range(2))
    lengths = [torch.tensor([same.randint(1, keys) for _ in range(batch)], dtype=torch.int32) for _ in range(ranks)]
    outs, sums = zip(*(_attention(q.unsqueeze(1), k[r], v[r], lengths[r]) for r in range(ranks)), strict=True)
    shares = torch.softmax(torch.stack(sums), 0).unsqueeze(-1)
    right = (shares * torch.stack(outs)).sum(0).squeeze(1)
    return Case("flash_decode", dtype, [(q, k[r], v[r], lengths[r]) for r in range(ranks)],
                ("group",), [(right,)] * ranks)


def _prefill(same, ranks, dtype):
    batch, kv_heads, queries = same.randint(1, 2), same.randint(1, 2), same.randint(1, 150)
    heads = kv_heads * same.choice([1, 4])
    q = _matrices(same, ranks, dtype, batch, queries, heads, 128)
    keys = same.randint(1, 150)
    k, v = (_matrices(same, ranks, dtype, batch, keys, kv_heads, 128) for _ in range(2))
    return Case("flash_attention", dtype, list(zip(q, k, v, strict=True)), (),
                [_attention(q[r], k[r], v[r]) for r in range(ranks)])


def _merge(same, ranks, dtype):
    """Parts, of which some are empty, with an infinity of either sign, and hold NaN; all heads for all ranks, or some for
    each."""
    heads, own_heads = same.randint(1, 5), same.random() < 0.5
    shape = same.randint(1, 9), heads, same.choice([20, 64, 128, 576])
    parts = _matrices(same, ranks, dtype, *shape)
    sums = [20 + 4 * t for t in _matrices(same, ranks, torch.float32, *shape[:2])]
    for part, logarithms in zip(parts, sums, strict=True):
        for token in range(shape[0]):
            head = same.randrange(2 * heads)
            part[token, head:head + 1], logarithms[token, head:head + 1] = torch.nan, -torch.inf
    whole = torch.stack(sums).double()
    for logarithms in sums[::2]:
        logarithms[logarithms.isinf()] = torch.inf
    right = (whole.softmax(0).unsqueeze(-1) * torch.stack(parts).double()).nan_to_num().sum(0), whole.logsumexp(0)
    each = -(-heads // ranks) if own_heads else heads
    own = [slice(min(r * each, heads), (r + 1) * each) if own_heads else slice(heads) for r in range(ranks)]
    return Case("merge_partial_attention", dtype, list(zip(parts, sums, strict=True)), ("group", own_heads),
                [tuple(t[:, mine] for t in right) for mine in own])


_makers = (_gather, _reduce_scatter, _all_reduce, _all_to_all, _broadcast, _gather_matmul, _matmul_scatter,
           _matmul_all_reduce, _matmul_all_scatter, _norm, _decode, _prefill, _merge)


def random_cases(seed, ranks, turns):
    """Every operator `turns` times: the same list at all ranks."""
    same = random.Random(seed)
    return [make(same, ranks, same.choice(TYPES)) for _ in range(turns) for make in _makers]
