"""Every field of the problems and options of operators is reached from the classes of Python.

The library describes the fields, and tests/c_abi/fields.cpp compares them with the headers.
"""

import re
from pathlib import Path

import pytest

import untax
import untax.planned
import untax.world

WORLD_LIST = Path(__file__).resolve().parents[2] / "tests/c_abi/fields.def"
GEMM_OPTIONS = dict(pattern="fused_sequential", pull=True, eager=True, workers=11, senders=12, constant_weights=True,
                    tile_m=13, tile_n=14, panel_k=15, phases=2, varying_rows=True, invariant=True)
COLLECTIVE_OPTIONS = dict(pattern="fused_specialized", phases=2, eager=True, wire="packets", workers=11, depth=12,
                          chunk_bytes=13, direct=True, inputs="rooms", varying_count=True)
DECODE_OPTIONS = dict(pattern="fused_specialized", eager=True, workers=11, senders=12, splits=13)
MERGE_OPTIONS = dict(pattern="fused_sequential", eager=True, workers=11, senders=12, varying_tokens=True)
NAMES = {"dtype": "type", "gather": "gather_k"}
# By operator: what has to be given, what else can be, and its options.
CASES = {
    "all_gather_gemm": (dict(m=21, n=22, k=23), dict(dtype="bf16", gather="k"), GEMM_OPTIONS),
    "gemm_all_scatter": (dict(m=21, n=22, k=23), dict(dtype="bf16"), GEMM_OPTIONS),
    "gemm_reduce_scatter": (dict(m=21, n=22, k=23), dict(dtype="fp16", partials="bf16"), GEMM_OPTIONS),
    "gemm_all_reduce": (dict(m=21, n=22, k=23), dict(dtype="fp16", partials="bf16"), GEMM_OPTIONS),
    "all_reduce_norm": (dict(tokens=21, hidden=22), dict(dtype="bf16", output="e4m3", epsilon=0.5), GEMM_OPTIONS),
    "flash_attention": (dict(batch=21, heads=22, kv_heads=23, head_dim=24, queries=25, keys=26),
                        dict(causal=True, dtype="bf16", scale=0.25), dict(order="sections")),
    "flash_decode": (dict(batch=21, heads=22, kv_heads=23, head_dim=24, keys=25),
                     dict(page_size=26, pages=27, dtype="fp16", partials="bf16", scale=0.25, logit_cap=0.5),
                     DECODE_OPTIONS),
    "linear": (dict(rows=21, n=24, k=23), dict(dtype="fp16", activation="swiglu"),
               dict(varying_rows=True, invariant=True, constant_weights=True, library=True)),
    "merge_partial_attention": (dict(tokens=21, heads=22, head_dim=23), dict(dtype="bf16", own_heads=True, log2=True),
                                MERGE_OPTIONS),
    "rope_append": (dict(tokens=21, heads=22, kv_heads=23, head_dim=24, batch=25, keys=26, positions=27),
                    dict(rotated=28, page_size=29, pages=30, dtype="bf16", interleaved=True, bias=True, norm=True,
                         norm_offset=1.0, epsilon=0.5), dict(varying_tokens=True, constant_weights=True)),
    "all_gather": (dict(count=21), dict(dtype="bf16"), COLLECTIVE_OPTIONS),
    "reduce_scatter": (dict(count=21), dict(dtype="bf16", reduction="max"), COLLECTIVE_OPTIONS),
    "all_reduce": (dict(count=21), dict(dtype="bf16", reduction="max"), COLLECTIVE_OPTIONS),
    "all_to_all": (dict(count=21), dict(dtype="bf16", counts=[5, 6, 7, 8]), COLLECTIVE_OPTIONS),
    "broadcast": (dict(count=21), dict(dtype="bf16", root=1), COLLECTIVE_OPTIONS),
}


class Planned(Exception):
    pass


class Recorder:
    """Stands for the extension, and keeps what it is asked to plan."""

    def plan(self, _world, name, settings):
        raise Planned(name, settings)


class NoWorld:
    _core, size, rank = None, 2, 0


def planned_with(name, monkeypatch, **values):
    """The settings that a class hands on."""
    with monkeypatch.context() as patch:
        patch.setattr(untax.planned, "_core", Recorder())
        with pytest.raises(Planned) as planned:
            untax.operators.kinds[name](NoWorld(), **values)
    kind, settings = planned.value.args
    assert kind == name
    return {field: value for field, value in settings.items() if value is not None}


def test_all_operators_are_tried():
    assert set(CASES) == set(untax.operators.kinds)


@pytest.mark.parametrize("name", CASES)
def test_every_argument_reaches_its_field(name, monkeypatch):
    needed, more, options = CASES[name]
    arguments = {**needed, **more, **options}
    settings = planned_with(name, monkeypatch, **arguments)
    fields = {field.name: field for field in untax.operators.fields(name)}
    assert set(settings) == set(fields)
    assert {f.name for f in fields.values() if f.option} == set(options)
    for argument, value in arguments.items():
        field = fields[NAMES.get(argument, argument)]
        passed = settings[field.name]
        assert passed == value or isinstance(passed, int) and field.words[passed] == value, argument
    # Each of them is something else if it is not given.
    for argument in {**more, **options}:
        others = planned_with(name, monkeypatch, **{key: value for key, value in arguments.items() if key != argument})
        field = NAMES.get(argument, argument)
        if (argument, more.get(argument)) != ("dtype", "bf16"):  # the default
            assert settings[field] != others.get(field), argument


@pytest.mark.parametrize("name", CASES)
def test_the_library_knows_every_field(name):
    with untax.World.threads(1)[0] as world:
        with pytest.raises(untax.InvalidArgument) as refused:
            untax.planned._core.plan(world._core, name, {"nonsense": 0})
    names = re.search(r"there is no nonsense; \w+ has (.*)", str(refused.value)).group(1).split(", ")
    assert names == [field.name for field in untax.operators.fields(name)]


def test_every_option_of_a_world_reaches_its_field(monkeypatch):
    values = {}

    def keep(options):
        values.update(options)
        raise Planned

    monkeypatch.setattr(untax.world, "_core", type("core", (), {"from_environment": staticmethod(keep),
                                                                 "gpus": staticmethod(lambda _, o: keep(o))}))
    with pytest.raises(Planned):
        untax.World.from_environment(heap_bytes=11, wait_limit=0.012, join_limit=0.013, memory="cuda",
                                     heap_guards=True, device=2)
    expected = dict(heap_bytes=11, wait_limit_ms=12, join_limit_ms=13, memory=2, heap_guards=1, gpu=3)
    assert {name: values[name] for name in expected} == expected
    with pytest.raises(Planned):
        untax.World.gpus(2, ranks_per_gpu=4)
    assert values["ranks_per_gpu"] == 4
    listed = re.findall(r"^FIELD\(untax_world_options, (\w+), ", WORLD_LIST.read_text(), re.MULTILINE)
    assert set(values) == set(listed)
