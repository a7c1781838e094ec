"""Whole models: the logits of every family equal those of transformers, on any number of ranks."""

import functools
import json

import numpy
import pytest

import untax

small = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4,
         "vocab_size": 157, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "head_dim": 16, "pad_token_id": 0}


def scaled(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0, **more}}


families = {
    "llama": ("Llama", {}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama3-scaling": ("Llama", scaled("llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)),
    "linear-scaling": ("Llama", scaled("linear")),
    "yarn-scaling": ("Qwen2", scaled("yarn", original_max_position_embeddings=16)),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral-window": ("Mistral", {"sliding_window": 7}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"num_key_value_heads": 2}),
    "phi3": ("Phi3", {}),
    "gemma": ("Gemma", {}),
    "gemma2": ("Gemma2", {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 24}),
    "gemma3": ("Gemma3", {"query_pre_attn_scalar": 24, "sliding_window": 9, "num_hidden_layers": 7}),
}


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


def model_of(transformers, family, fields, folder):
    """A random model, saved in a folder."""
    import torch
    torch.manual_seed(1)
    name = "Gemma3Text" if family == "Gemma3" else family
    config = getattr(transformers, f"{name}Config")(**small | fields)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(config).float().eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            # As large as those of a trained model, so that nothing is lost in the residual.
            value.add_(torch.randn_like(value) * (0.2 if key.endswith("norm.weight") or key.endswith("bias") else 0.1))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", families)
def test_logits_are_those_of_transformers(name, transformers, tmp_path):
    import torch
    model = model_of(transformers, *families[name], tmp_path)
    prompts = [[3, 141, 59, 26, 53], [58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95, 2, 88, 41, 97, 16, 93, 99, 37, 51], [7]]
    steps = 6

    @functools.cache
    def right(tokens):
        with torch.no_grad():
            return model(torch.tensor([tokens])).logits[0, -1].numpy()

    def body(world):
        decoder = untax.Decoder(world, tmp_path, tokens=64, page_size=4, sequences=3, logits=True)
        sequences = [decoder.add() for _ in prompts]
        so_far = [list(prompt) for prompt in prompts]
        tokens = decoder.prefill(dict(zip(sequences, prompts)))
        results = []
        for _ in range(steps):
            results.append(([list(s) for s in so_far], decoder.logits(), tokens))
            for sequence, token in zip(so_far, tokens):
                sequence.append(token)
            tokens = decoder.decode(sequences)
        return results

    for ranks in (1, 2, 3, 4):
        for other in untax.run_threads(ranks, body):
            for sequences, logits, tokens in other:
                for row, sequence in enumerate(sequences):
                    expected = right(tuple(sequence))
                    scale = max(1.0, float(numpy.abs(expected).max()))
                    assert numpy.abs(logits[row] - expected).max() <= 1e-4 * scale, f"{ranks} ranks, {len(sequence)} tokens"
                    assert tokens[row] == int(logits[row].argmax())
                    assert expected[tokens[row]] >= expected.max() - 2e-4 * scale


def test_generated_tokens_do_not_depend_on_ranks(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**small, "model_type": "llama", "torch_dtype": "float32"}))

    def body(world):
        decoder = untax.Decoder(world, path, random_weights=True, seed=3, tokens=40, sequences=2)
        tokens = decoder.generate([[1, 2, 3], [4, 5]], 12)
        assert decoder.generate([[4, 5]], 12) == tokens[1:]
        return tokens

    alone, = untax.run_threads(1, body)
    assert [len(tokens) for tokens in alone] == [12, 12]
    for ranks in (2, 4):
        assert untax.run_threads(ranks, body) == [alone] * ranks


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_invariant_model_has_the_same_bits_alone_and_in_a_batch(dtype, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(small | {"model_type": "llama", "torch_dtype": dtype}))
    draw = numpy.random.default_rng()
    prompts = [draw.integers(small["vocab_size"], size=draw.integers(1, 60)).tolist() for _ in range(4)]
    following = draw.integers(small["vocab_size"], size=(3, 4)).tolist()

    def body(world):
        decoder = untax.Decoder(world, tmp_path / "config.json", random_weights=True, sequences=4, tokens=64, logits=True, invariant=True)

        def logits_of(which):
            numbers = [decoder.add() for _ in which]
            decoder.prefill({number: prompts[i] for number, i in zip(numbers, which)})
            results = [decoder.logits()]
            for step in following:
                decoder.decode(numbers, [step[i] for i in which])
                results.append(decoder.logits())
            for number in numbers:
                decoder.remove(number)
            return numpy.stack(results, 1)

        beside = logits_of(range(4))
        assert all(numpy.array_equal(logits_of([i])[0], beside[i]) for i in range(4))

    for ranks in (1, 2):
        untax.run_threads(ranks, body)


def test_wrong_calls_are_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**small, "model_type": "llama", "torch_dtype": "float32"}))

    def body(world):
        with pytest.raises(untax.InvalidArgument, match="model.safetensors"):
            untax.Decoder(world, tmp_path)
        with pytest.raises(untax.InvalidArgument, match="positions|max_position"):
            untax.Decoder(world, path, random_weights=True, tokens=1000)
        decoder = untax.Decoder(world, path, random_weights=True, tokens=16, sequences=1)
        sequence = decoder.add()
        for prompt, kind, text in (([157], untax.InvalidArgument, "token 157"), ([], untax.InvalidArgument, "without tokens"),
                                   ([1] * 17, untax.OutOfMemory, "up to 16")):
            with pytest.raises(kind, match=text):
                decoder.prefill({sequence: prompt})
        with pytest.raises(untax.OutOfMemory, match="sequences"):
            decoder.add()
        with pytest.raises(untax.InvalidArgument, match="keeps no logits"):
            decoder.prefill({sequence: [1]})
            decoder.logits()
        copy = decoder
        decoder.close()
        with pytest.raises(untax.InvalidArgument, match="closed"):
            copy.length(sequence)

    untax.run_threads(2, body)


def test_weights_of_the_caller_are_read_where_they_are(transformers, tmp_path):
    """Arrays of numpy, of one rank: the logits are those of the model that has the same weights."""
    import torch
    model = model_of(transformers, "Llama", {}, tmp_path)
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    layers = []
    for index in range(small["num_hidden_layers"]):
        def of(name, index=index):
            return state[f"model.layers.{index}.{name}.weight"]
        gate, up = (of(f"mlp.{name}").reshape(-1, 8, small["hidden_size"]) for name in ("gate_proj", "up_proj"))
        layers.append({"qkv": numpy.concatenate([of(f"self_attn.{name}_proj") for name in "qkv"]), "output": of("self_attn.o_proj"),
                       "gate_up": numpy.stack([gate, up], 1).reshape(-1, small["hidden_size"]), "down": of("mlp.down_proj"),
                       "input_norm": of("input_layernorm"), "mlp_norm": of("post_attention_layernorm")})
    weights = {"embedding": state["model.embed_tokens.weight"], "head": state["lm_head.weight"], "final_norm": state["model.norm.weight"]}
    config = (tmp_path / "config.json").read_text()
    prompt = [3, 141, 59, 26, 53]
    with torch.no_grad():
        right = model(torch.tensor([prompt])).logits[0, -1].numpy()

    def body(world):
        decoder = untax.Decoder.from_weights(world, config, weights, layers, tokens=16, logits=True)
        token, = decoder.prefill({decoder.add(): prompt})
        logits = decoder.logits()[0]
        assert numpy.abs(logits - right).max() <= 1e-4 * max(1.0, float(numpy.abs(right).max())) and token == int(logits.argmax())
        for name, value, why in (("down", layers[1]["down"][:, :-8], r"down is fp32 \[64, 88\]; it has to be fp32 \[64, 96\]"),
                                 ("mlp_norm", None, "mlp_norm is null"), ("q_norm", weights["final_norm"], "q_norm is given"),
                                 ("output", layers[1]["output"][:, ::2], "output has elements apart"), ("qkv", None, "no qkv")):
            wrong = {**layers[1], name: value}
            if value is None:
                del wrong[name]
            with pytest.raises(untax.InvalidArgument, match=why):
                untax.Decoder.from_weights(world, config, weights, [layers[0], wrong, layers[2]], tokens=16)

    untax.run_threads(1, body)
