"""The operators of one process between those that send, against torch, at random shapes."""

import random

import pytest

torch = pytest.importorskip("torch")
untax_torch = pytest.importorskip("untax.torch")
from torch.nn import functional  # noqa: E402

ACTIVATIONS = {"none": lambda y: y, "silu": functional.silu, "gelu": functional.gelu,
               "gelu_tanh": lambda y: functional.gelu(y, approximate="tanh")}
GATED = {"swiglu": functional.silu, "geglu": ACTIVATIONS["gelu_tanh"]}


@pytest.fixture
def draw():
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    torch.manual_seed(seed)
    return random.Random(seed)


@pytest.mark.parametrize("name", [*ACTIVATIONS, *GATED])
def test_linear_equals_torch_with_each_activation(name, draw):
    for _ in range(8):
        shape = [draw.randint(1, 4) for _ in range(draw.randint(0, 2))]
        n, k = 8 * draw.randint(1, 6), draw.randint(1, 70)
        x = torch.randn(*shape, k)
        has_bias = draw.random() < 0.5
        if name in GATED:
            gate, up = (torch.randn(n, k) / k**0.5 for _ in range(2))
            biases = [torch.randn(n) for _ in range(2)] if has_bias else [None, None]
            weight = untax_torch.interleave_gate_up(gate, up)
            bias = untax_torch.interleave_gate_up(*biases) if has_bias else None
            expected = GATED[name](functional.linear(x, gate, biases[0])) * functional.linear(x, up, biases[1])
        else:
            weight, bias = torch.randn(n, k) / k**0.5, torch.randn(n) if has_bias else None
            expected = ACTIVATIONS[name](functional.linear(x, weight, bias))
        for _ in range(2):  # the second call is known
            torch.testing.assert_close(untax_torch.linear(x, weight, bias, activation=name), expected, rtol=1e-4, atol=1e-4)


def test_linear_has_the_gradients_of_torch(draw):
    x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((3, 5, 12), (8, 12), (8,)))
    gradients = [torch.autograd.grad(layer(x, weight, bias).square().sum(), (x, weight, bias))
                 for layer in (untax_torch.linear, functional.linear)]
    for result, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(untax_torch.define.Unsupported, match="no derivative for the activation 'silu'"):
        untax_torch.linear(x, weight, activation="silu").sum().backward()


def test_linear_refuses_shapes_that_do_not_fit():
    x = torch.randn(2, 6)
    with pytest.raises(ValueError, match=r"weight is \(4, 5\); it has to have 6 columns"):
        untax_torch.linear(x, torch.randn(4, 5))
    with pytest.raises(ValueError, match=r"bias is \(3,\); it has to be \(4,\)"):
        untax_torch.linear(x, torch.randn(4, 6), torch.randn(3))
    with pytest.raises(ValueError, match="multiple of 8"):
        untax_torch.interleave_gate_up(torch.randn(4, 6), torch.randn(4, 6))


@pytest.mark.parametrize("paged", [False, True])
def test_decode_attention_equals_attention_of_each_sequence(paged, draw):
    for _ in range(6):
        batch, kv_heads, group, dim, size = draw.randint(1, 4), draw.randint(1, 2), draw.randint(1, 4), 16, draw.randint(1, 5)
        pages = draw.randint(1, 5)
        held = pages * size
        q = torch.randn(batch, kv_heads * group, dim)
        lengths = torch.tensor([draw.randint(1, held) for _ in range(batch)])
        if paged:
            table = torch.randperm(batch * pages).view(batch, pages)
            keys, values = (torch.randn(batch * pages, size, kv_heads, dim) for _ in range(2))
            whole = [t[table].flatten(1, 2) for t in (keys, values)]
        else:
            table, (keys, values) = None, (torch.randn(batch, held, kv_heads, dim) for _ in range(2))
            whole = [keys, values]
        result = untax_torch.decode_attention(q, keys, values, lengths, table)
        for b, length in enumerate(lengths):
            k, v = (t[b, :length].repeat_interleave(group, 1).transpose(0, 1) for t in whole)
            expected = functional.scaled_dot_product_attention(q[b, :, None], k, v)[:, 0]
            torch.testing.assert_close(result[b], expected, rtol=1e-4, atol=1e-5)


def test_calls_skip_the_dispatcher_unless_it_is_needed(draw):
    """Modes, transforms and gradients need the dispatcher, and see the call."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, weight = torch.randn(3, 8), torch.randn(8, 8)
    expected = functional.linear(x, weight)
    with Watching():
        watched = torch.ops.untax.linear(x, weight)
    assert any("untax.linear" in name for name in seen)
    torch.testing.assert_close(watched, expected)
    torch.testing.assert_close(torch.ops.untax.linear(x, weight), expected)
    assert torch.ops.untax.linear(x.requires_grad_(), weight).requires_grad
    with torch.no_grad():
        assert not torch.ops.untax.linear(x, weight).requires_grad
    assert torch.ops.untax.linear(x.detach().to("meta"), weight.to("meta")).is_meta
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile, torch.no_grad():
        torch.ops.untax.linear(x, weight)
    assert any("untax::linear" in event.name for event in profile.events())


def test_linear_of_no_columns_is_the_bias():
    bias = torch.randn(8)
    torch.testing.assert_close(untax_torch.linear(torch.randn(3, 0), torch.randn(8, 0), bias), bias.expand(3, 8))
