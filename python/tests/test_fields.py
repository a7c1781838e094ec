"""Every field of the problems and options of the C ABI is reached from the classes of Python.

tests/c_abi/fields.def lists the fields, and tests/c_abi/fields.cpp compares that list with the headers.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest

import untax
import untax.planned
import untax.world

LIST = Path(__file__).resolve().parents[2] / "tests/c_abi/fields.def"


def listed():
    fields = defaultdict(set)
    for structure, field in re.findall(r"^FIELD\((\w+), (\w+), ", LIST.read_text(), re.MULTILINE):
        fields[structure].add(field)
    return fields


FIELDS = listed()
GEMM_OPTIONS = dict(pattern="fused_sequential", pull=True, eager=True, workers=11, senders=12, constant_weights=True,
                    tile_m=13, tile_n=14, panel_k=15, phases=2, varying_rows=True, invariant=True)
COLLECTIVE_OPTIONS = dict(pattern="fused_specialized", phases=2, eager=True, wire="packets", workers=11, depth=12,
                          chunk_bytes=13, direct=True, inputs="rooms", varying_count=True)
DECODE_OPTIONS = dict(pattern="fused_specialized", eager=True, workers=11, senders=12, splits=13)
MERGE_OPTIONS = dict(pattern="fused_sequential", eager=True, workers=11, senders=12, varying_tokens=True)
NUMBERS = {"pattern": {"fused_sequential": 5, "fused_specialized": 6}, "wire": {"packets": 3}, "inputs": {"rooms": 2},
           "order": {"sections": 4}, "dtype": {"fp16": 1, "bf16": 2}, "partials": {"bf16": 2}, "gather": {"k": 1},
           "output": {"e4m3": 1}, "reduction": {"max": 1}}
NAMES = {"dtype": "type", "gather": "gather_k"}
# By operator: what has to be given, what else can be, and the structure of its options with what they can be.
CASES = {
    "all_gather_gemm": (dict(m=21, n=22, k=23), dict(dtype="bf16", gather="k"), "operator", GEMM_OPTIONS),
    "gemm_all_scatter": (dict(m=21, n=22, k=23), dict(dtype="bf16"), "operator", GEMM_OPTIONS),
    "gemm_reduce_scatter": (dict(m=21, n=22, k=23), dict(dtype="fp16", partials="bf16"), "operator", GEMM_OPTIONS),
    "gemm_all_reduce": (dict(m=21, n=22, k=23), dict(dtype="fp16", partials="bf16"), "operator", GEMM_OPTIONS),
    "all_reduce_norm": (dict(tokens=21, hidden=22), dict(dtype="bf16", output="e4m3", epsilon=0.5), "operator",
                        GEMM_OPTIONS),
    "flash_attention": (dict(batch=21, heads=22, kv_heads=23, head_dim=24, queries=25, keys=26),
                        dict(causal=True, dtype="bf16", scale=0.25), "flash_attention", dict(order="sections")),
    "flash_decode": (dict(batch=21, heads=22, kv_heads=23, head_dim=24, keys=25),
                     dict(page_size=26, pages=27, dtype="fp16", partials="bf16", scale=0.25, logit_cap=0.5),
                     "flash_decode", DECODE_OPTIONS),
    "merge_partial_attention": (dict(tokens=21, heads=22, head_dim=23), dict(dtype="bf16", own_heads=True, log2=True),
                                "merge_partial_attention", MERGE_OPTIONS),
    "all_gather": (dict(count=21), dict(dtype="bf16"), "collective", COLLECTIVE_OPTIONS),
    "reduce_scatter": (dict(count=21), dict(dtype="bf16", reduction="max"), "collective", COLLECTIVE_OPTIONS),
    "all_reduce": (dict(count=21), dict(dtype="bf16", reduction="max"), "collective", COLLECTIVE_OPTIONS),
    "all_to_all": (dict(count=21), dict(dtype="bf16", counts=[5, 6, 7, 8]), "collective", COLLECTIVE_OPTIONS),
    "broadcast": (dict(count=21), dict(dtype="bf16", root=1), "collective", COLLECTIVE_OPTIONS),
}


class Planned(Exception):
    pass


class Recorder:
    """Stands for the extension, and keeps what it is asked to plan."""

    def plan(self, _world, name, problem, options):
        raise Planned(name, problem, options)


class NoWorld:
    _core, size, rank = None, 2, 0


def as_fields(given):
    """Arguments of a class as fields of the C ABI."""
    return {NAMES.get(name, name): NUMBERS[name][value] if name in NUMBERS else value for name, value in given.items()}


def test_all_operators_are_tried():
    assert set(CASES) == set(untax.operators.kinds)


@pytest.mark.parametrize("name", CASES)
def test_every_argument_reaches_its_field(name, monkeypatch):
    needed, more, structure, options = CASES[name]
    monkeypatch.setattr(untax.planned, "_core", Recorder())
    with pytest.raises(Planned) as planned:
        untax.operators.kinds[name](NoWorld(), **needed, **more, **options)
    kind, problem, numbers = planned.value.args
    assert kind == name
    assert problem == as_fields({**needed, **more})
    assert numbers == as_fields(options)
    reached = set(problem) | ({"counts_size"} if "counts" in problem else set())
    assert reached == FIELDS[f"untax_{name}_problem"]
    assert set(numbers) == FIELDS[f"untax_{structure}_options"]
    # Each of them is something else if it is not given.
    for argument in {**more, **options}:
        rest = {key: value for key, value in {**more, **options}.items() if key != argument}
        with pytest.raises(Planned) as planned:
            untax.operators.kinds[name](NoWorld(), **needed, **rest)
        _, other_problem, other_numbers = planned.value.args
        field = NAMES.get(argument, argument)
        if (argument, more.get(argument)) != ("dtype", "bf16"):  # the default
            assert {**problem, **numbers}[field] != {**other_problem, **other_numbers}.get(field, 0), argument


@pytest.mark.parametrize("name", CASES)
def test_the_extension_knows_every_field(name):
    _, _, structure, _ = CASES[name]
    with untax.World.threads(1)[0] as world:
        def known(problem, options):
            with pytest.raises(untax.InvalidArgument) as refused:
                untax.planned._core.plan(world._core, name, problem, options)
            return set(re.search(r"there is no nonsense; there are (.*)", str(refused.value)).group(1).split(", "))
        # A list of counts is no number, and is no field among the others.
        assert known({"nonsense": 0}, {}) == FIELDS[f"untax_{name}_problem"] - {"counts", "counts_size"}
        assert known({}, {"nonsense": 0}) == FIELDS[f"untax_{structure}_options"]


def test_every_option_of_a_world_reaches_its_field(monkeypatch):
    given = {}

    def keep(options):
        given.update(options)
        raise Planned

    monkeypatch.setattr(untax.world, "_core", type("core", (), {"from_environment": staticmethod(keep),
                                                                 "gpus": staticmethod(lambda _, o: keep(o))}))
    with pytest.raises(Planned):
        untax.World.from_environment(heap_bytes=11, wait_limit=0.012, join_limit=0.013, memory="cuda",
                                     heap_guards=True, device=2)
    expected = dict(heap_bytes=11, wait_limit_ms=12, join_limit_ms=13, memory=2, heap_guards=1, gpu=3)
    assert {name: given[name] for name in expected} == expected
    with pytest.raises(Planned):
        untax.World.gpus(2, ranks_per_gpu=4)
    assert given["ranks_per_gpu"] == 4
    assert set(given) == FIELDS["untax_world_options"]
