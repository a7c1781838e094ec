"""Every operator, with numpy, in random worlds of threads, against numpy in fp64."""

import numpy as np
import pytest

import untax
from untax import _core, operators
from untax.types import address_of


def shard(total, ranks, rank, step=1):
    """The slice of `total` that a rank has, in shards of ceil(total / ranks) rounded up to `step`."""
    size = -(-(-(-total // ranks)) // step) * step
    return slice(min(rank * size, total), min((rank + 1) * size, total))


def close(got, expected, k):
    return np.linalg.norm(np.asarray(got, np.float64) - expected) <= 1e-6 * k**0.5 * max(np.linalg.norm(expected), 1)


@pytest.fixture
def case(seed):
    rng = np.random.default_rng(seed)
    ranks, m, n, k = (int(rng.integers(*bounds)) for bounds in ((1, 5), (1, 40), (1, 50), (1, 60)))
    return rng, ranks, m, n, k


def test_python_has_every_operator_of_the_library():
    assert set(_core.operator_names()) == set(operators.kinds)
    for name, kind in operators.kinds.items():
        assert kind.__name__ in untax.__all__, name
        assert kind.__doc__, name


@pytest.mark.parametrize("gather", ["rows", "k"])
def test_all_gather_gemm(case, gather):
    rng, ranks, m, n, k = case
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((ranks, n, k)).astype(np.float32)

    def body(world):
        r = world.rank
        mine = a[shard(m, ranks, r)] if gather == "rows" else a[:, shard(k, ranks, r, 8)]
        with untax.AllGatherGemm(world, m, n, k, "fp32", gather=gather) as op:
            assert op.plan["a"] == (mine.shape, "fp32")
            for _ in range(3):
                assert close(op(mine, b[r]), a.astype(np.float64) @ b[r].T, k)
            wide = np.zeros((n, k + 5), np.float32)
            wide[:, :k] = b[r]
            out = np.full((m, n), np.nan, np.float32)
            assert op.run(mine, wide[:, :k], out) is out
            assert close(out, a.astype(np.float64) @ b[r].T, k)

    untax.run_threads(ranks, body)


def test_gemm_all_scatter(case):
    rng, ranks, m, n, k = case
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(np.float32)

    def body(world):
        op = untax.GemmAllScatter(world, m, n, k, "fp32")
        mine = np.ascontiguousarray(b[shard(n, ranks, world.rank, 8)])
        assert close(np.asarray(op(a, mine)), a.astype(np.float64) @ b.T, k)
        own = world.allocate((m, n), "fp32", "c of the test")
        assert op(a, mine, own) is own
        assert close(np.asarray(own), a.astype(np.float64) @ b.T, k)
        with pytest.raises(untax.NotSymmetric):
            op(a, mine, np.empty((m, n), np.float32))

    untax.run_threads(ranks, body)


def test_gemm_reduce_scatter(case):
    rng, ranks, m, n, k = case
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(np.float32)

    def body(world):
        part = shard(k, ranks, world.rank, 8)
        op = untax.GemmReduceScatter(world, m, n, k, "fp32")
        c = op(np.ascontiguousarray(a[:, part]), np.ascontiguousarray(b[:, part]))
        assert close(c, (a.astype(np.float64) @ b.T)[shard(m, ranks, world.rank)], k)

    untax.run_threads(ranks, body)


@pytest.mark.parametrize("phases", [0, 1, 2])
def test_gemm_all_reduce(case, phases):
    rng, ranks, m, n, k = case
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(np.float32)

    def body(world):
        part = shard(k, ranks, world.rank, 8)
        mine = np.ascontiguousarray(a[:, part]), np.ascontiguousarray(b[:, part])
        op = untax.GemmAllReduce(world, m, n, k, "fp32", phases=phases)
        out = np.full((m, n), np.nan, np.float32)
        assert op(*mine, out) is out
        assert close(out, a.astype(np.float64) @ b.T, k)
        assert (np.asarray(op(*mine, op.result)) == out).all()
        return out.tobytes()

    assert len(set(untax.run_threads(ranks, body))) == 1


@pytest.mark.parametrize("output", ["same", "e4m3", "e4m3_per_token"])
@pytest.mark.parametrize("phases", [0, 1, 2])
def test_all_reduce_norm(case, phases, output):
    rng, ranks, tokens, hidden, _ = case
    parts = rng.standard_normal((ranks, tokens, hidden)).astype(np.float32)
    residual = rng.standard_normal((tokens, hidden)).astype(np.float32)
    weight = rng.standard_normal(hidden).astype(np.float32)
    total = parts.astype(np.float64).sum(0) + residual
    normed = total / np.sqrt((total**2).mean(1, keepdims=True) + 1e-6) * weight
    bytes_of = np.arange(256)  # what each byte of e4m3 stands for
    exponent, mantissa = bytes_of >> 3 & 15, bytes_of & 7
    values = np.where(exponent == 0, mantissa / 512.0, (8 + mantissa) * 2.0 ** (exponent - 10.0)) * (1 - (bytes_of >> 7) * 2)

    def body(world):
        op = untax.AllReduceNorm(world, tokens, hidden, "fp32", output=output, epsilon=1e-6, phases=phases)
        x = residual.copy()
        out, same, *scales = op(parts[world.rank], x, weight, x, scale=1 / 16)
        assert same is x and close(x, total, 1)
        if output == "same":
            assert close(out, normed, 1)
        else:
            scale = scales[0][:, None] if scales else 1 / 16
            assert np.linalg.norm(values[out] * scale - normed) <= 0.065 * np.linalg.norm(normed)
        with pytest.raises(untax.InvalidArgument):
            op(parts[world.rank], residual, weight, out=np.empty((tokens, hidden + 1), np.float32))

    untax.run_threads(ranks, body)


@pytest.mark.parametrize("own_heads", [False, True])
@pytest.mark.parametrize("varying", [0, 1])
def test_merge_partial_attention(seed, own_heads, varying):
    rng = np.random.default_rng(seed)
    ranks, tokens, heads, dim = int(rng.integers(1, 6)), 3, 4, 24
    parts = rng.standard_normal((ranks, tokens, heads, dim)).astype(np.float32)
    sums = rng.standard_normal((ranks, tokens, heads)).astype(np.float32) * 5
    sums[:, 0, 1] = sums[0, 1] = -np.inf
    parts[:, 0, 1] = parts[0, 1] = np.nan
    weights = np.exp(sums.astype(np.float64))
    total = weights.sum(0)
    products = np.where(weights[..., None] > 0, weights[..., None] * parts, 0).sum(0)
    expected = products / np.where(total > 0, total, 1)[..., None]

    def body(world):
        op = untax.MergePartialAttention(world, tokens=tokens + varying, heads=heads, head_dim=dim, dtype="fp32",
                                         own_heads=own_heads, varying_tokens=varying)
        out, lse = op(parts[world.rank].reshape(-1, dim), sums[world.rank])
        return out.reshape(tokens, -1, dim) if out.size else np.empty((tokens, 0, dim)), lse

    results = untax.run_threads(ranks, body)
    if own_heads:
        results = [tuple(np.concatenate([r[i] for r in results], 1) for i in (0, 1))]
    for out, lse in results:
        assert np.allclose(out, expected, atol=1e-5)
        with np.errstate(divide="ignore"):
            assert np.allclose(lse, np.log(total), atol=1e-5)


@pytest.mark.parametrize("page_size", [0, 4])
def test_flash_decode(seed, page_size):
    rng = np.random.default_rng(seed)
    ranks, batch, kv_heads, group, dim, keys = 3, 2, 2, 2, 16, 10
    heads = kv_heads * group
    lengths = rng.integers(0, keys + 1, (ranks, batch)).astype(np.int32)
    lengths[:, 1] = 0
    q = rng.standard_normal((batch * heads, dim)).astype(np.float32)
    k, v = (rng.standard_normal((ranks, batch, keys, kv_heads, dim)).astype(np.float32) for _ in range(2))
    expected = np.zeros((batch, heads, dim))
    for b in range(batch):
        for h in range(heads):
            ks = np.concatenate([k[r, b, : lengths[r, b], h // group] for r in range(ranks)]).astype(np.float64)
            vs = np.concatenate([v[r, b, : lengths[r, b], h // group] for r in range(ranks)]).astype(np.float64)
            if len(ks):
                weights = np.exp(ks @ q[b * heads + h] / dim**0.5)
                expected[b, h] = weights @ vs / weights.sum()
    per_sequence = -(-keys // page_size) if page_size else 0
    table = rng.permutation(batch * per_sequence).reshape(batch, per_sequence).astype(np.int32)

    def cache(x):
        if not page_size:
            return x.reshape(batch * keys, kv_heads * dim)
        pages = np.zeros((batch * per_sequence, page_size, kv_heads * dim), np.float32)
        for b in range(batch):
            for i in range(keys):
                pages[table[b, i // page_size], i % page_size] = x[b, i].reshape(-1)
        return pages.reshape(-1, kv_heads * dim)

    def body(world):
        op = untax.FlashDecode(world, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim, keys=keys,
                               page_size=page_size, pages=batch * per_sequence, dtype="fp32")
        if page_size:
            with pytest.raises(untax.InvalidArgument, match="page_table has elements of int64; it has to hold"):
                op(q, cache(k[world.rank]), cache(v[world.rank]), lengths[world.rank], page_table=table.astype(np.int64))
        return op(q, cache(k[world.rank]), cache(v[world.rank]), lengths[world.rank],
                  page_table=table if page_size else None)

    for out in untax.run_threads(ranks, body):
        assert np.allclose(out.reshape(expected.shape), expected, atol=1e-5)


@pytest.mark.parametrize("page_size", [0, 4])
def test_rope_append(seed, page_size):
    rng = np.random.default_rng(seed)
    heads, kv_heads, dim, rotated, batch, keys = 3, 2, 8, 6, 4, 10
    per_sequence = -(-keys // page_size) if page_size else 0
    cache = np.full(((batch * per_sequence + 2) * page_size if page_size else batch * keys, kv_heads * dim), np.nan, np.float32)
    caches = cache.copy(), cache.copy()
    qkv = rng.standard_normal((3, heads + 2 * kv_heads, dim)).astype(np.float32)
    bias = rng.standard_normal(qkv.shape[1:]).astype(np.float32)
    weights = rng.standard_normal((2, dim)).astype(np.float32)
    angles = np.outer(np.arange(keys), 100 ** (-np.arange(rotated // 2) / (rotated // 2)))
    rotations = np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    position, sequence = np.array([9, 0, 5], np.int32), np.array([2, 0, 2], np.int32)
    table = rng.permutation(batch * per_sequence + 2)[:batch * per_sequence].reshape(batch, per_sequence).astype(np.int32)

    y = (qkv + bias).astype(np.float64)
    for part, weight in ((y[:, :heads], weights[0]), (y[:, heads:-kv_heads], weights[1])):
        part *= (weight + 1) / np.sqrt((part**2).mean(-1, keepdims=True) + 1e-6)
        a, b = (part[..., :rotated].reshape(*part.shape[:2], -1, 2) + 0).transpose(3, 0, 1, 2)
        cos, sin = (f(angles[position])[:, None] for f in (np.cos, np.sin))
        part[..., 0:rotated:2], part[..., 1:rotated:2] = a * cos - b * sin, b * cos + a * sin

    with untax.World.threads(1)[0] as world:
        op = untax.RopeAppend(world, tokens=5, heads=heads, kv_heads=kv_heads, head_dim=dim, rotated=rotated, batch=batch,
                              keys=keys, positions=keys, page_size=page_size, pages=batch * per_sequence + 2 if page_size else 0,
                              dtype="fp32", interleaved=True, bias=True, norm=True, norm_offset=1, varying_tokens=True)
        given = dict(bias=bias.reshape(-1), q_norm=weights[0], k_norm=weights[1], sequence=sequence,
                     page_table=table if page_size else None)
        q = op(qkv.reshape(3, -1), rotations, position, *caches, **given)
        assert np.allclose(q.reshape(3, heads, dim), y[:, :heads], atol=1e-5)
        for t, (b, i) in enumerate(zip(sequence, position, strict=True)):
            row = table[b, i // page_size] * page_size + i % page_size if page_size else b * keys + i
            for found, right in zip(caches, (y[t, heads:-kv_heads], y[t, -kv_heads:]), strict=True):
                assert np.allclose(found[row].reshape(kv_heads, dim), right, atol=1e-5)
                found[row] = np.nan
        assert all(np.isnan(found).all() for found in caches)
        with pytest.raises(untax.InvalidArgument, match=r"position\[1\] is -1"):
            op(qkv.reshape(3, -1), rotations, np.array([9, -1, 5], np.int32), *caches, **given)
        with pytest.raises(untax.InvalidArgument, match="position"):
            op(qkv.reshape(3, -1), rotations, position[:2], *caches, **given)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(seed, causal):
    rng = np.random.default_rng(seed)
    batch, kv_heads, group, dim = 3, 2, 2, 8
    heads = kv_heads * group
    lengths = rng.integers(0, 7, (2, batch))
    begins = np.concatenate([np.zeros((2, 1), int), lengths.cumsum(1)], 1).astype(np.int32)
    q = rng.standard_normal((begins[0, -1], heads, dim)).astype(np.float32)
    k, v = rng.standard_normal((2, begins[1, -1], kv_heads, dim)).astype(np.float32)
    expected, sums = np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for b in range(batch):
        for i in range(lengths[0, b]):
            seen = max(0, lengths[1, b] - (lengths[0, b] - 1 - i if causal else 0))
            ks, vs = (np.repeat(x[begins[1, b]:][:seen], group, 1).astype(np.float64) for x in (k, v))
            if seen:
                row = begins[0, b] + i
                weights = np.exp(np.einsum("khd,hd->kh", ks, q[row]) / dim**0.5)
                expected[row] = np.einsum("kh,khd->hd", weights, vs) / weights.sum(0)[:, None]
                sums[row] = np.log(weights.sum(0))

    with untax.World.threads(1)[0] as world:
        op = untax.FlashAttention(world, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim, queries=6, keys=6,
                                  causal=causal, dtype="fp32")
        flat = [x.reshape(len(x), x.shape[1] * dim) for x in (q, k, v)]  # -1 is no width of zero rows
        out, log_sums = op(*flat, log_sums=True, query_begins=begins[0], key_begins=begins[1])
        assert np.allclose(out.reshape(q.shape), expected, atol=1e-5) and np.allclose(log_sums, sums, atol=1e-5)
        assert "nothing is sent" in op.explain() and op.pattern == untax.Pattern.automatic
        with pytest.raises(untax.InvalidArgument, match="both or none"):
            op(*flat, query_begins=begins[0])
        with pytest.raises(untax.InvalidArgument, match="has to hold 4 of int32"):
            op(*flat, query_begins=begins[0, 1:], key_begins=begins[1])
        with pytest.raises(untax.InvalidArgument, match="log_sums is"):
            op(*flat, log_sums=np.empty((len(q) + 1, heads), np.float32), query_begins=begins[0], key_begins=begins[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_collectives(seed, dtype):
    rng = np.random.default_rng(seed)
    ranks, count = int(rng.integers(1, 5)), int(rng.integers(1, 200))
    root = int(rng.integers(ranks))
    x = rng.integers(-8, 9, (ranks, count)).astype(dtype)
    parts = rng.integers(-8, 9, (ranks, ranks, 3)).astype(dtype)
    name = np.dtype(dtype)

    def body(world):
        r = world.rank
        mine = shard(count, ranks, r)
        assert (untax.AllGather(world, count, name)(x[0][mine]) == x[0]).all()
        assert (untax.ReduceScatter(world, count, name)(x[r]) == x.sum(0)[mine]).all()
        assert (untax.AllReduce(world, count, name, reduction="max")(x[r]) == x.max(0)).all()
        assert (untax.AllToAll(world, 3, name)(parts[r]).reshape(ranks, 3) == parts[:, r]).all()
        uneven = [to for _ in range(ranks) for to in range(ranks)]
        sent = np.concatenate([np.full(to, 10 * r + to) for to in range(ranks)]).astype(dtype)
        got = untax.AllToAll(world, dtype=name, counts=uneven)(sent)
        assert (got == np.repeat(10 * np.arange(ranks) + r, r)).all()
        out = np.empty(count, dtype)
        untax.Broadcast(world, count, name, root=root).run(x[r] if r == root else None, out)
        assert (out == x[root]).all()
        in_place = x[r].copy()
        assert untax.AllReduce(world, count, name, phases=2, pattern="fused_sequential").run(in_place, in_place) is in_place
        assert (in_place == x.sum(0)).all()

    untax.run_threads(ranks, body)


class Elsewhere:
    """An array of a GPU, as cupy has them."""

    def __init__(self, array):
        self.shape, self.dtype, self.flags, self.data = array.shape, array.dtype, array.flags, self
        self.ptr, self.__cuda_array_interface__ = array.ctypes.data, array.__array_interface__


@pytest.mark.parametrize("wrong, text", [
    (lambda fits: np.frombuffer(bytes(fits.nbytes), fits.dtype).reshape(fits.shape), "read-only"),
    (lambda fits: fits.view(f"i{fits.itemsize}"), "of int"),
    (lambda fits: np.asfortranarray(fits) if fits.ndim > 1 else np.repeat(fits, 2)[::2], "side by side"),
    (lambda fits: np.concatenate([fits, fits]), "it has to be ("),
    (Elsewhere, "lies on a GPU, and the heaps of this world lie in host memory"),
    (memoryview, "is a memoryview; it has to be an array of numpy, cupy or torch"),
])
def test_arrays_to_write_are_checked_before_a_run(wrong, text):
    q = np.ones((3, 16), np.float32)
    with untax.World.threads(1)[0] as world:
        attention = untax.FlashAttention(world, batch=1, heads=2, kv_heads=2, head_dim=8, queries=3, keys=3, dtype="fp32")
        norm = untax.AllReduceNorm(world, 3, 16, "fp32")
        bytes_of_rows = untax.AllReduceNorm(world, 3, 16, "fp32", output="e4m3_per_token")
        arguments = q, q, q[0]
        for name, run, fits in (
                ("log_sums", lambda log_sums: attention(q, q, q, log_sums=log_sums), np.zeros((3, 2), np.float32)),
                ("out", lambda out: norm(*arguments, out=out), np.zeros((3, 16), np.float32)),
                ("out", lambda out: bytes_of_rows(*arguments, out=out), np.zeros((3, 16), np.uint8)),
                ("scales", lambda scales: bytes_of_rows(*arguments, scales=scales), np.zeros(3, np.float32))):
            with pytest.raises(untax.InvalidArgument) as caught:
                run(wrong(fits))
            assert name in str(caught.value) and text in str(caught.value)
            assert not fits.any()
            run(fits)
            assert fits.any()
            own = OnlyInterface(np.zeros_like(fits))
            run(own)
            assert (np.asarray(own) == fits).all()
        own = world.allocate((3, 16), "fp32")
        assert norm(*arguments, out=own)[0] is own and (np.asarray(own) == norm(*arguments)[0]).all()


def test_arrays_to_write_lie_where_the_heaps_do():
    x = np.zeros(4, np.float32)
    assert address_of("scales", Elsewhere(x), (4,), ("fp32",), True) == x.ctypes.data
    with pytest.raises(untax.InvalidArgument, match="scales lies in host memory, and the heaps of this world lie on GPUs"):
        address_of("scales", x, (4,), ("fp32",), True)


class OnlyInterface:
    """An array that has nothing but `__array_interface__`."""

    def __init__(self, array):
        self._array, self.__array_interface__ = array, array.__array_interface__


def test_arrays_of_others_are_taken():
    x = np.arange(6, dtype=np.float32)

    def body(world):
        out = np.empty(6, np.float32)
        op = untax.AllReduce(world, 6, "fp32")
        assert (op.run(OnlyInterface(x), OnlyInterface(out)) is not None) and (out == 2 * x).all()
        assert (op.run(memoryview(x), out) == 2 * x).all()
        read_only = x.copy()
        read_only.flags.writeable = False
        assert (op.run(read_only, out) == 2 * x).all()

    untax.run_threads(2, body)


def test_one_plan_runs_any_number_of_rows(case):
    rng, ranks, m, n, k = case
    rows = [int(r) for r in rng.integers(0, m + 1, 6)] + [0, m]
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(np.float32)

    def body(world):
        r = world.rank
        part = shard(k, ranks, r, 8)
        gather = untax.AllGatherGemm(world, m, n, k, "fp32", varying_rows=True)
        scatter = untax.GemmReduceScatter(world, m, n, k, "fp32", varying_rows=True)
        total = untax.GemmAllReduce(world, m, n, k, "fp32", varying_rows=True)
        everywhere = untax.GemmAllScatter(world, m, n, k, "fp32", varying_rows=True)
        norm = untax.AllReduceNorm(world, m, k, "fp32", varying_rows=True)
        summed = untax.AllReduce(world, m * k, "fp32", varying_count=True)
        assert "any number of rows up to" in gather.explain()
        for count in rows:
            few = a[:count]
            right = few.astype(np.float64) @ b.T
            out = np.full((count, n), np.nan, np.float32)
            assert close(gather.run(few[shard(count, ranks, r)], b, out), right, k)
            with pytest.raises(untax.InvalidArgument, match="needs out"):
                gather.run(few[shard(count, ranks, r)], b)
            assert close(scatter.run(few[:, part], b[:, part]), right[shard(count, ranks, r)], k)
            assert close(total.run(few[:, part], b[:, part]), right, k)
            result = everywhere.run(few, b[shard(n, ranks, r, 8)])
            assert close(np.asarray(result)[:count], right, k)
            normed, x = norm.run(few, few, np.ones(k, np.float32))
            assert normed.shape == x.shape == (count, k)
            assert close(x, few.astype(np.float64) * (ranks + 1), k)
            assert close(summed.run(few.reshape(-1)), few.reshape(-1).astype(np.float64) * ranks, k)
            world.barrier()  # before the next run writes the result that was just read

    untax.run_threads(ranks, body)
