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
                                    ["graphs", "graphs_by_hand"], ["generation", "generation_that_fails"]])
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


@needs_gpus
@needs_transformers
def test_steps_on_a_gpu_are_graphs(seed):
    """One rank: steps with a static cache are graphs, and have the same bits as without."""
    import copy

    import torch

    import untax.torch

    def body(world, name, settle):
        torch.manual_seed(seed)
        whole = on_gpu("llama")
        with_graphs, without = (untax.torch.parallelize(copy.deepcopy(whole), world, graphs=graphs) for graphs in (True, False))
        static = {"do_sample": False, "max_new_tokens": 12, "cache_implementation": "static", "return_dict_in_generate": True,
                  "output_logits": True, "disable_compile": True}
        for padding in (0, 0, 3):
            prompt = torch.randint(320, (2, 9), device="cuda")
            mask = torch.ones_like(prompt)
            mask[1, :padding] = 0
            right = without.generate(prompt, attention_mask=mask, **static)
            untax.torch.forget()
            got = with_graphs.generate(prompt, attention_mask=mask, **static)
            assert untax.torch.report().get((f"decode of {type(whole).__name__}", "a chain, as a CUDA graph")) == 10, untax.torch.report()
            assert all(torch.equal(a, b) for a, b in zip(got.logits, right.logits, strict=True)), f"{padding} tokens of padding"

    run("cuda", 1, body)


def on_gpu(family):
    """A random model in bf16 on the current GPU, with heads that kernels have."""
    import torch
    import transformers

    more = {"mistral": {"sliding_window": 7}, "gemma2": {"query_pre_attn_scalar": 64, "sliding_window": 7},
            "gemma3_text": {"query_pre_attn_scalar": 64, "sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"]}}
    config = transformers.AutoConfig.for_model(
        family, vocab_size=320, hidden_size=512, num_attention_heads=8, num_key_value_heads=2, head_dim=64, intermediate_size=192,
        num_hidden_layers=2, eos_token_id=None, bos_token_id=None, pad_token_id=0, **more.get(family, {}))
    attention = "eager" if family == "gemma2" else "sdpa"
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention).eval().to("cuda")


@needs_gpus
@needs_transformers
@pytest.mark.parametrize("family", FAMILIES)
def test_generation_on_a_gpu(family, seed):
    """One rank: `generate` at its defaults is on `untax.Decoder`, and has the tokens of a model in fp32 as far as its logits tell them
    apart."""
    import copy

    import torch

    import untax.torch

    def body(world, name, settle):
        torch.manual_seed(seed)
        whole = on_gpu(family)
        model, exact = untax.torch.parallelize(copy.deepcopy(whole), world), whole.float()
        for padding in (0, 3):
            prompt = torch.randint(1, 320, (5, 9), device="cuda")
            mask = torch.ones_like(prompt)
            mask[1, :padding] = 0
            for rows, more in ((5, {}), (2, {}), (2, {"eos_token_id": [1, 7, 9], "min_new_tokens": 2})):
                untax.torch.forget()
                got = model.generate(prompt[:rows], attention_mask=mask[:rows], do_sample=False, max_new_tokens=12, **more)
                assert untax.torch.report() == {(f"generate of {type(whole).__name__}", "untax.Decoder"): 1}, untax.torch.report()
                assert got.shape[1] <= 21 and torch.equal(got[:, :9], prompt[:rows])
                if more:
                    continue
                logits = exact(got, attention_mask=torch.cat([mask[:rows], torch.ones_like(got[:, 9:])], 1)).logits[:, 8:-1]
                lost = logits.max(2).values - logits.gather(2, got[:, 9:, None])[..., 0]
                assert (lost <= 2e-2 * logits.abs().max()).all(), f"{rows} sequences, {padding} tokens of padding: {lost.max()}"

    run("cuda", 1, body)
