"""torch.ops.untax.rope_append beside plain torch, and beside the rotary embeddings of transformers."""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed; ./test.sh installs it where there is no GPU", allow_module_level=True)

import torch  # noqa: E402

import untax  # noqa: E402
import untax.torch as untax_torch  # noqa: E402

ops = torch.ops.untax
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@pytest.fixture(autouse=True)
def ended():
    yield
    untax_torch.close()


def rotations_of(positions, rotated, theta=10000.0):
    angles = torch.arange(positions).double()[:, None] * theta ** (-torch.arange(0, rotated, 2).double() / rotated)
    return torch.cat([angles.cos(), angles.sin()], 1).float()


def plain(qkv, rotations, position, heads, kv_heads, dim, *, bias=None, q_norm=None, k_norm=None, interleaved=False,
          norm_offset=0.0, epsilon=1e-6):
    """q, k and v in fp64."""
    y = (qkv.double() + (0 if bias is None else bias.double())).view(*qkv.shape[:-1], heads + 2 * kv_heads, dim)
    parts = list(y.split([heads, kv_heads, kv_heads], -2))
    cos, sin = rotations.double()[position.long()].unsqueeze(-2).chunk(2, -1)
    for i, weight in enumerate((q_norm, k_norm)):
        x = parts[i]
        if weight is not None:
            x = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() * (weight.double() + norm_offset)
        first, rest = x.split([2 * cos.shape[-1], dim - 2 * cos.shape[-1]], -1)
        a, b = first.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else first.chunk(2, -1)
        a, b = a * cos - b * sin, b * cos + a * sin
        first = torch.stack([a, b], -1).flatten(-2) if interleaved else torch.cat([a, b], -1)
        parts[i] = torch.cat([first, rest], -1)
    return parts


class Case:
    """Tokens at places of a cache that no others have."""

    heads, kv_heads, dim, batch, keys, tokens = 4, 2, 16, 3, 12, 7

    def __init__(self, seed, dtype, page_size=0, rotated=16):
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype, self.page_size = dtype, page_size
        self.qkv = self.randn(self.tokens, (self.heads + 2 * self.kv_heads) * self.dim)
        self.rotations = rotations_of(self.keys, rotated)
        places = torch.randperm(self.batch * self.keys, generator=self.generator)[:self.tokens].int()
        self.position, self.sequence = places % self.keys, places // self.keys
        pages = -(-self.keys // page_size) if page_size else 0
        shape = (self.batch * pages + 2, page_size) if page_size else (self.batch, self.keys)
        self.page_table = None
        if page_size:
            self.page_table = torch.randperm(shape[0], generator=self.generator)[:self.batch * pages].int().view(self.batch, pages)
        self.caches = [torch.full((*shape, self.kv_heads, self.dim), torch.nan, dtype=dtype) for _ in range(2)]

    def randn(self, *shape):
        return torch.randn(*shape, generator=self.generator).to(self.dtype)

    def options(self):
        return dict(bias=self.randn(self.qkv.shape[1]), q_norm=self.randn(self.dim), k_norm=self.randn(self.dim), norm_offset=1.0)

    def operands(self):
        return self.qkv, self.rotations, self.position, *self.caches

    def places(self):
        return dict(sequence=self.sequence, page_table=self.page_table)

    def append(self, **options):
        return untax_torch.rope_append(*self.operands(), **self.places(), **options)

    def plain(self, **options):
        return plain(self.qkv, self.rotations, self.position, self.heads, self.kv_heads, self.dim, **options)

    def slots(self):
        if not self.page_size:
            return self.sequence.long(), self.position.long()
        page = self.page_table[self.sequence.long(), self.position.long() // self.page_size]
        return page.long(), self.position.long() % self.page_size

    def compare(self, q, expected):
        close = dict(atol=TOLERANCE[self.dtype], rtol=TOLERANCE[self.dtype])
        torch.testing.assert_close(q.double(), expected[0], **close)
        for cache, right in zip(self.caches, expected[1:], strict=True):
            torch.testing.assert_close(cache[self.slots()].double(), right, **close)
            cache[self.slots()] = torch.nan
            assert cache.isnan().all(), "another place was written"


@pytest.mark.parametrize("page_size", [0, 4, 5])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_append_equals_plain_torch(seed, dtype, page_size, interleaved):
    case = Case(seed, dtype, page_size, rotated=12)
    for options in ({}, {**case.options(), "interleaved": interleaved, "epsilon": 0.5}):
        case.compare(case.append(**options), case.plain(**options))


@pytest.mark.parametrize("page_size", [0, 4])
def test_rope_append_equals_transformers(seed, page_size):
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    from transformers import LlamaConfig

    scaling = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=512,
                         rope_parameters=scaling)
    case = Case(seed, torch.float32, page_size)
    embedding = llama.LlamaRotaryEmbedding(config)
    every = embedding(case.qkv, torch.arange(case.keys)[None])
    case.rotations = torch.cat([part[0, :, :case.dim // 2] for part in every], 1)
    q, k, v = case.qkv.view(1, case.tokens, -1, case.dim).transpose(1, 2).split([case.heads, case.kv_heads, case.kv_heads], 1)
    q, k = llama.apply_rotary_pos_emb(q, k, *embedding(q, case.position[None].long()))
    case.compare(case.append(), [part[0].transpose(0, 1).double() for part in (q, k, v)])


def test_tokens_of_any_shape_and_caches_that_are_interleaved(seed):
    case = Case(seed, torch.float32)
    both = torch.full((case.batch, case.keys, 2, case.kv_heads, case.dim), torch.nan)
    case.caches = [both[:, :, i] for i in range(2)]
    expected, places = case.plain(), case.places()
    more = [t.reshape(7, 1, *t.shape[1:]) for t in (case.qkv, case.position, case.sequence)]
    q = ops.rope_append(more[0], case.rotations, more[1].long(), *case.caches, sequence=more[2])
    assert q.shape == (7, 1, case.heads, case.dim)
    case.compare(q[:, 0], expected)
    q = torch.empty_like(q[:, 0])
    assert ops.rope_append.out(*case.operands(), **places, out=q) is None
    case.compare(q, expected)
    no_tokens = ops.rope_append(case.qkv[:0], case.rotations, case.position[:0], *case.caches)
    assert no_tokens.shape == (0, case.heads, case.dim)


def test_rope_append_works_under_compile(seed):
    case = Case(seed, torch.float32, 4)
    options = case.options()

    def program(qkv, keys, values):
        q = untax_torch.rope_append(qkv * 1, case.rotations, case.position, keys, values, **case.places(), **options)
        return q + 0, keys.nan_to_num().sum()

    q, total = torch.compile(program, backend="aot_eager", fullgraph=True)(case.qkv, *case.caches)
    expected = case.plain(**options)
    torch.testing.assert_close(total.double(), expected[1].sum(), atol=1e-3, rtol=1e-4)
    case.compare(q, expected)
    torch.library.opcheck(ops.rope_append.default, case.operands(), {**case.places(), **options},
                          test_utils=("test_schema", "test_faketensor"))


def test_refusals(seed):
    case = Case(seed, torch.float32, 4)
    norm = torch.ones(case.dim)

    def refused(text, change=None, **more):
        names = ("qkv", "rotations", "position", "keys", "values")
        given = {**dict(zip(names, case.operands(), strict=True)), **case.places(), **more}
        with pytest.raises(untax.InvalidArgument, match=text):
            ops.rope_append(**given)
        assert all(cache.isnan().all() for cache in case.caches)

    refused("qkv has rows of 120", qkv=torch.ones(7, 120))
    refused("qkv has rows of 64; .* above 64", qkv=torch.ones(7, 64))
    refused("keys has 3 dimensions", keys=case.caches[0][0])
    refused(r"values is \(11, 4, 2, 8\)", values=case.caches[1][..., :8])
    refused(r"position is \(6,\)", position=case.position[:6])
    refused("rotations is of torch.float64", rotations=case.rotations.double())
    refused("bias is of torch.bfloat16", bias=torch.ones(128).bfloat16())
    refused(r"q_norm is \(15,\)", q_norm=norm[:15], k_norm=norm)
    refused("pass both or none", q_norm=norm)
    refused("sequence is null.* 7 tokens for 3 sequences", sequence=None)
    refused(r"position\[\d\] is -1", position=torch.full((7,), -1))
    refused(r"page_table\[\d, \d\], of token 0, is 11", page_table=torch.full_like(case.page_table, 11))
    refused("keys has strides", keys=case.caches[0].transpose(0, 1).contiguous().transpose(0, 1))
    refused("qkv requires a gradient, and rope_append", qkv=case.qkv.clone().requires_grad_())
    with torch.no_grad():
        case.qkv.requires_grad_()
        case.append()
    version = case.caches[0]._version
    case.qkv = case.qkv.detach()
    case.append()
    assert case.caches[0]._version > version, "torch has to see that a cache was written"
