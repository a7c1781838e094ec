"""bench/torch_layers.py and bench/torch_models.py with small widths on CPUs: they compare results, and their files become tables."""

import importlib
import json
import sys

import pytest
from ranks import HERE, fork
from test_torch import pytestmark  # noqa: F401 (the mark is pytest's)

BENCH = HERE.parents[1] / "bench"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    file = tmp_path_factory.mktemp("bench") / "layers.json"
    said = fork(2, BENCH / "torch_layers.py", "--device", "cpu", "--tokens", "6", "--shrink", "32", "--keys", "64",
                    "--rounds", "2", "--models", "qwen3-32b", "--json", file)
    assert "projections, eager" in said and "left out" not in said
    return json.loads(file.read_text())


def test_every_way_is_timed_and_right(document):
    ways = {(row["what"], row["name"]): set(row["eager"]["seconds"]) for row in document["rows"]}
    pair = {"NCCL", "torch async", "untax", "matmul"}
    assert ways == {("projection", "qkv"): pair, ("projection", "gate_up"): pair, ("projection", "o"): pair,
                    ("projection", "down"): pair, ("projection", "o, all-reduce"): pair - {"torch async"},
                    ("projection", "down, all-reduce"): pair - {"torch async"},
                    ("layer", "decode"): {"NCCL all-reduce", "NCCL all-reduce behind untax attention", "no communication",
                                          "untax all_reduce_rms_norm", "untax matmul_all_reduce", "untax chain"}}
    assert not any("wrong" in row for row in document["rows"])
    assert all(len(row["errors"]) == len(row["eager"]["seconds"]) - 1 for row in document["rows"])
    assert {"NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST"} < set(document["environment"])


def test_the_file_becomes_a_table(document, monkeypatch):
    monkeypatch.syspath_prepend(BENCH / "results")
    module = importlib.import_module("whole_layers")
    text = module.details("FILE.json", document, "here")
    assert "| qwen3-32b | o, all-reduce | 6 |" in text and "NVLink multicast was off" in text


@pytest.mark.parametrize("ranks", [1, 2])
def test_whole_models_are_timed(ranks, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16, "vocab_size": 160, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5}))
    said = fork(ranks, BENCH / "torch_models.py", "--device", "cpu", "--model", folder / "config.json", "--layers", "2", "--sequences", "1",
                "3", "--prompt", "8", "--tokens", "4", "--repeat", "2", "--json", tmp_path / "models.json")
    assert all(len(line) <= 100 for line in said[said.index("sequences prompt way"):].splitlines())
    document = json.loads((tmp_path / "models.json").read_text())
    assert (document["model"], document["layers"], document["cut"], document["ranks"]) == ("tiny", 2, True, ranks)
    assert [(row["sequences"], row["prompt"]) for row in document["rows"]] == [(1, 8), (3, 8)]
    for row in document["rows"]:
        ways = row["ways"]
        assert list(ways) == ["transformers", "transformers, compiled", "untax", "untax.torch.Decoder"]
        assert "this is a CPU" in ways["transformers, compiled"]["not_run"]
        for way in ("transformers", "untax", "untax.torch.Decoder"):
            assert set(ways[way]["first"]) == set(ways[way]["token"]) == {"median", "least", "most"}, ways[way]
        assert ways["untax"]["same_tokens"] == 5 and any("a chain" in line for line in ways["untax"]["report"])
        for way in ("untax", "untax.torch.Decoder"):
            for key, factor in row["factors"][way].items():
                assert factor == pytest.approx(ways["transformers"][key]["median"] / ways[way][key]["median"])
    monkeypatch.syspath_prepend(BENCH / "results")
    module = importlib.import_module("torch_models")
    for text in (module.section([("FILE.json", document)], lambda _: "here"), module.of_front([("FILE.json", document)])):
        assert "| tiny, 2 layers | " in text and ("NVLink multicast was off" in text) == (ranks == 2)
    assert "compiled did not run: transformers compiles models on GPUs" in module.section([("FILE.json", document)], lambda _: "here")
    assert "5.0 of 5 tokens" in module.details("FILE.json", document, "here")
    assert module.section([], None) == module.of_front([]) == ""


def test_calls_of_models_are_drawn_at_random(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.delitem(sys.modules, "torch_models", raising=False)  # that of bench/results
    module = importlib.import_module("torch_models")
    monkeypatch.delitem(sys.modules, "torch_models")
    monkeypatch.setattr("sys.argv", ["torch_models.py", "--draw", "50", "--seed", "3", "--sequences", "2", "9", "--prompt", "40", "1000"])
    calls = module.calls(module.arguments())
    assert len(calls) == 50 and calls == module.calls(module.arguments())
    assert all(2 <= sequences <= 9 and 40 <= prompt <= 1000 for sequences, prompt in calls)
    assert len({prompt for _, prompt in calls}) > 30 and {sequences for sequences, _ in calls} == set(range(2, 10))


def test_drawn_calls_of_models_are_one_sentence(monkeypatch):
    monkeypatch.syspath_prepend(BENCH / "results")
    module = importlib.import_module("torch_models")
    factors = [{"first": 2.0, "token": 4.0}, {"first": 0.5, "token": 1.0}]
    document = {"format": module.FORMAT, "model": "tiny", "layers": 2, "cut": False, "ranks": 1, "device": "NVIDIA H200", "date": "2026", "commit": "",
                "dtype": "bfloat16", "asked": {"draw": 2, "seed": 1, "tokens": 4, "repeat": 2}, "environment": {},
                "rows": [{"sequences": 1, "prompt": 30, "ways": {}, "factors": {"untax": factors[0]}},
                         {"sequences": 7, "prompt": 20, "ways": {}, "factors": {"untax": factors[1]}}]}
    text = module.of_front([("FILE.json", document)])
    assert "2 random calls of tiny on 1 H200, 1 to 7 sequences with prompts of 20 to 30 tokens" in text
    assert "1.00 (0.50 to 2.00) to the first token and 2.00 (1.00 to 4.00) a token after it" in text and "| tiny" not in text
    assert "| tiny | 1 H200 | 7 | 20 |" in module.section([("FILE.json", document)], lambda _: "here")


def test_one_wrong_word_is_noticed(monkeypatch):
    import torch

    monkeypatch.syspath_prepend(BENCH)
    checks = importlib.import_module("layers.checks")
    right = torch.randn(512, 4096)
    assert checks.require(right.clone(), right, 1e-2, 8e-2) == (0, 0)
    wrong = right.clone()
    wrong[300, 8:12] = wrong[300, 12:16]  # 16 bytes, of which the error of the whole says nothing
    assert checks.errors(wrong, right)[0] < 1e-2
    with pytest.raises(checks.Wrong, match="of an element over its row"):
        checks.require(wrong, right, 1e-2, 8e-2)
    wrong[300, 8] = torch.nan
    assert checks.errors(wrong, right)[0] == float("inf")


def test_results_of_other_kernels_are_noticed(monkeypatch):
    monkeypatch.syspath_prepend(BENCH / "results")
    kernels = importlib.import_module("kernels")
    source = {"engines/gpu/gemm/a.cuh": "int a = 1;  // why\n"}
    assert kernels.hash_of(source) == kernels.hash_of({"engines/gpu/gemm/a.cuh": "int  a = 1; // because\n\n"})
    assert kernels.hash_of(source) != kernels.hash_of({"engines/gpu/gemm/a.cuh": "int a = 2;\n"})
    today = {"format": "untax-bench-overlap", "commit": "0123456789ab-dirty"}
    assert kernels.older(today), "nothing is on record"
    monkeypatch.setitem(kernels.known(), "0123456789ab", {"gemm": kernels.of_this_tree("gemm")})
    assert not kernels.older(today)
    assert not kernels.older({"format": "untax-bench-host", "commit": ""}), "no kernels"
