"""`untax.torch.parallelize` on models of transformers, on CPUs."""

from types import SimpleNamespace

import pytest
from ranks import HERE, fork
from test_torch import pytestmark  # noqa: F401 (the mark is pytest's)
from test_torch_recipes import needs_transformers
from test_torch_worlds import needs_gpus, run

import untax

FAMILIES = ["llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text"]


@needs_transformers
@pytest.mark.parametrize(("ranks", "checks"), [(2, [*FAMILIES, "biases", "frozen", "autocast", "compiled", "different_models", "tp_plan"]),
                                               (4, ["llama", "qwen3", "gemma3_text", "biases", "tp_plan"])])
def test_models_equal_those_of_one_process(ranks, checks, seed):
    """In processes, over gloo."""
    said = fork(ranks, HERE / "torch_parallel.py", seed, *checks)
    for check in checks:
        assert said.count(f"{check}: right with {ranks} ranks") == ranks


@needs_transformers
@pytest.mark.parametrize("checks", [["decoding", "steps_by_hand", "decoder"], ["ragged", "left_to_transformers"], ["compiled_steps"],
                                    ["graphs", "graphs_by_hand"]])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_steps_of_decoding_are_chains(ranks, checks, seed):
    said = fork(ranks, HERE / "torch_parallel.py", seed, *checks)
    for check in checks:
        assert said.count(f"{check}: right with {ranks} ranks") == ranks


@needs_transformers
@pytest.mark.parametrize(("family", "changes", "error", "text"), [
    ("mixtral", {}, untax.Unsupported, "it has experts"),
    ("gpt2", {"n_layer": 1, "n_head": 2, "n_embd": 16}, untax.Unsupported, "families are gemma, .*, llama, mistral, qwen2, qwen3"),
    ("llama", {"num_attention_heads": 3}, untax.Unsupported, "layer 0: 3 attention heads, which 2 ranks cannot share"),
    ("llama", {"num_attention_heads": 6, "num_key_value_heads": 3}, untax.Unsupported, "layer 0: 3 key/value heads"),
    ("llama", {"intermediate_size": 33}, untax.Unsupported, "layer 0: an MLP of 33 features")])
def test_models_that_are_refused_stay_whole(family, changes, error, text):
    import transformers

    import untax.torch

    fields = {"vocab_size": 64, "hidden_size": 48, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": changes.get("num_attention_heads", 4)}

    def body(world):
        config = transformers.AutoConfig.for_model(family, **{**fields, **changes})
        model = transformers.AutoModelForCausalLM.from_config(config)
        modules = [name for name, _ in model.named_modules()]
        with pytest.raises(error, match=text):
            untax.torch.parallelize(model, world)
        assert [name for name, _ in model.named_modules()] == modules

    try:
        untax.run_threads(2, body)
    finally:
        untax.torch.close()


@needs_transformers
@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_generate_gives_the_cache_by_a_new_or_an_old_name(name):
    """transformers 5.17 makes masks with `past_key_values`, 5.24 with `cache`."""
    import torch

    from untax.torch.chain import _masks_for_generate

    chain, cache = SimpleNamespace(is_read=False), SimpleNamespace(untax_is_read=True)
    masks = _masks_for_generate(chain, None, **{name: cache}, inputs_embeds=torch.empty(2, 1, 8), attention_mask=None)
    assert masks is None and chain.is_read


@needs_transformers
def test_states_that_do_not_fit_are_refused():
    import torch
    import transformers

    import untax.torch

    config = transformers.LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                      num_attention_heads=4)
    whole = transformers.LlamaForCausalLM(config)

    def body(world):
        model = transformers.LlamaForCausalLM(config)
        with pytest.raises(untax.InvalidArgument, match="LlamaForCausalLM has not been split"):
            untax.torch.full_state_dict(model)
        model.load_state_dict(whole.state_dict())
        untax.torch.parallelize(model, world)
        with pytest.raises(untax.InvalidArgument, match="is split already, over 2 ranks"):
            untax.torch.parallelize(model, world)
        with pytest.raises(untax.InvalidArgument, match="rank is 2; it has to be from 0 to 1"):
            untax.torch.full_state_dict(model, rank=2)
        state = whole.state_dict()
        state["model.norm.weights"] = state.pop("model.norm.weight")
        state["lm_head.weight"] = torch.zeros(64, 31)
        with pytest.raises(untax.InvalidArgument, match=f"rank {world.rank}: .*model.norm.weight is missing; lm_head.weight is "
                                                        r"\(64, 31\) and has to be \(64, 32\); the model has no model.norm.weights"):
            untax.torch.load_full_state_dict(model, state)

    try:
        untax.run_threads(2, body)
    finally:
        untax.torch.close()


@needs_transformers
def test_captures_replay_into_the_same_memory(monkeypatch):
    """`capture` with stand-ins for torch's graphs: nothing runs but the function, on a stream of its own."""
    import torch

    from untax.torch import graphs

    said = []

    class Recorded:
        def __init__(self, *args, **kwargs):
            self.args, self.kwargs = args, kwargs

        def __enter__(self):
            said.append((self.args, self.kwargs))

        def __exit__(self, *_):
            said.append("end")

        def replay(self):
            said.append("replay")

    for name in ("CUDAGraph", "Stream", "device", "graph"):
        monkeypatch.setattr(torch.cuda, name, type(name, (Recorded,), {}))
    logits = torch.zeros(2)
    replay = graphs.capture(lambda: said.append("run") or logits, torch.device("cuda", 1))
    (_, options) = said[1]
    assert options["capture_error_mode"] == "thread_local" and options["stream"].args == (torch.device("cuda", 1),)
    assert said[2:] == ["run", "end", "end"]
    assert replay() is logits and replay() is logits and said[5:] == ["replay", "replay"]


@needs_transformers
@pytest.mark.parametrize(("options", "inputs", "mode", "cache", "compiles_not"), [
    ({}, {}, "greedy_search", "static", True),
    ({"num_return_sequences": 3}, {}, "sample", "static", True),
    ({"cache_implementation": "static"}, {}, "sample", "static", True),
    ({"cache_implementation": "static", "disable_compile": False}, {}, "sample", "static", False),
    ({"cache_implementation": "static", "compile_config": object()}, {}, "sample", "static", None),
    ({"cache_implementation": "dynamic"}, {}, "sample", "dynamic", None),
    ({"use_cache": False}, {}, "sample", None, None),
    ({"return_dict_in_generate": True}, {}, "sample", None, None),
    ({"output_attentions": True}, {}, "sample", None, None),
    ({}, {"past_key_values": object()}, "sample", None, None),
    ({}, {}, "beam_search", None, None),
    ({"cache_implementation": "static"}, {}, "beam_search", "static", None),
    ({"num_return_sequences": 300}, {}, "sample", None, None)])  # which has no room
def test_generate_gets_a_static_cache_where_steps_are_graphs(options, inputs, mode, cache, compiles_not):
    from untax.torch import chain

    fields = {"cache_implementation": None, "use_cache": True, "return_dict_in_generate": False, "output_attentions": False,
              "num_return_sequences": 1, "disable_compile": None, "compile_config": None}
    for why, enabled in (("", True), ("a reason", True), ("", False)):
        own = SimpleNamespace(**{**fields, **options})
        model = SimpleNamespace(graphs=SimpleNamespace(enabled=enabled), why_no_graph=lambda why=why: why,
                                has_room=lambda batch, length: batch * length < 10000)
        assert chain._prepare_cache(model, lambda *args: args, own, inputs, mode, 2, 50) == (own, inputs, mode, 2, 50)
        right = (cache, compiles_not) if enabled and not why else (options.get("cache_implementation"), options.get("disable_compile"))
        assert (own.cache_implementation, own.disable_compile) == right


@needs_gpus
@needs_transformers
def test_steps_on_a_gpu_are_graphs(seed):
    """One rank: the same bits as the same steps without graphs, for two prompts of the same extents, one of them with padding."""
    import copy

    import torch
    import transformers

    import untax.torch

    fields = {"vocab_size": 320, "hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
              "intermediate_size": 192, "num_hidden_layers": 2, "eos_token_id": None, "bos_token_id": None, "pad_token_id": 0}

    def body(world, name, settle):
        torch.manual_seed(seed)
        config = transformers.AutoConfig.for_model("llama", **fields)
        whole = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").eval().to("cuda")
        with_graphs, without = (untax.torch.parallelize(copy.deepcopy(whole), world, graphs=graphs) for graphs in (True, False))
        options = {"do_sample": False, "max_new_tokens": 12}
        static = {**options, "cache_implementation": "static", "return_dict_in_generate": True, "output_logits": True}
        way = f"decode of {type(whole).__name__}", "a chain, as a CUDA graph"
        for turn, padding in enumerate((0, 0, 3)):
            prompt = torch.randint(320, (2, 9), device="cuda")
            mask = torch.ones_like(prompt)
            mask[1, :padding] = 0
            right = without.generate(prompt, attention_mask=mask, **static, disable_compile=True)
            untax.torch.forget()
            got = with_graphs.generate(prompt, attention_mask=mask, **static)
            assert untax.torch.report().get(way) == (11 if turn == 1 else 10), untax.torch.report()
            assert all(torch.equal(a, b) for a, b in zip(got.logits, right.logits, strict=True)), f"turn {turn}"
            del got
            assert torch.equal(with_graphs.generate(prompt, attention_mask=mask, **options), right.sequences), f"turn {turn}"
            assert untax.torch.report()[way] == (22 if turn == 1 else 21), untax.torch.report()

    run("cuda", 1, body)
