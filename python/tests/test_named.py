"""Operators by the names that the library describes give what their own classes give."""

import numpy as np
import pytest

import untax
from untax import named, operators

f32 = np.float32
PROBLEMS = {
    "all_gather_gemm": dict(m=6, n=5, k=16),
    "gemm_reduce_scatter": dict(m=6, n=5, k=32),
    "gemm_all_reduce": dict(m=6, n=5, k=32),
    "all_gather": dict(count=12),
    "reduce_scatter": dict(count=12, reduction="max"),
    "all_to_all": dict(count=5),
    "merge_partial_attention": dict(tokens=3, heads=4, head_dim=8, own_heads=True),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_named_operator_is_its_own_class(name, seed):
    problem = PROBLEMS[name]
    kind = named.class_of(name)
    assert kind.__name__ == operators.kinds[name].__name__

    def body(world):
        rng = np.random.default_rng([seed, world.rank])
        op = kind(world, dtype="fp32", **problem)
        inputs = [rng.standard_normal((s.rows, s.cols)).astype(f32) for s in op.shapes if not s.written and not s.optional]
        results = op(*inputs)
        own = operators.kinds[name](world, dtype="fp32", **problem)
        expected = own(*inputs)
        for got, right in zip(*((x,) if not isinstance(x, tuple) else x for x in (results, expected)), strict=True):
            assert np.array_equal(got.reshape(-1), right.reshape(-1)), name

    untax.run_threads(2, body)


def test_descriptions_of_fields_and_operands():
    described = {field.name: field for field in operators.fields("all_reduce")}
    assert described["reduction"].words == ("sum", "max", "min") and described["reduction"].kind == "choice"
    assert described["depth"].option and not described["count"].option
    shapes = {s.name: s for s in named.shapes("flash_decode", dict(batch=3, heads=4, kv_heads=2, head_dim=8, keys=20, page_size=8,
                                                                  pages=9, type="bf16"), 2, 0)}
    assert shapes["page_table"] == ("page_table", 3, 3, 16, False, True) and shapes["page_table"].dtype == "int32"
    assert shapes["out"].written and shapes["q"][1:3] == (12, 8)
    with pytest.raises(untax.InvalidArgument, match="there is no operator all_sum"):
        operators.fields("all_sum")
    with pytest.raises(untax.InvalidArgument, match="there is no size; all_gather has count, type"):
        named.shapes("all_gather", dict(size=3), 2, 0)


def test_wrong_operands_are_refused():
    with untax.World.threads(1)[0] as world:
        op = named.class_of("gemm_all_reduce")(world, m=2, n=3, k=8, dtype="fp32")
        a, weights = np.ones((2, 8), f32), np.ones((3, 8), f32)
        for call, text in ((lambda: op(a), "weights is missing"), (lambda: op(a, weights, a), "reads a, weights"),
                           (lambda: op(a, weights, b=a), "there is no operand b; there are a, weights, c"),
                           (lambda: op(a, weights.astype(np.int32)), "int32")):
            with pytest.raises(untax.InvalidArgument, match=text):
                call()
        frozen = np.ones((2, 3), f32)
        frozen.flags.writeable = False
        with pytest.raises(untax.InvalidArgument, match="may be written"):
            op(a, weights, c=frozen)
