"""Whole models: decoder-only transformers, split over the ranks of a world, with their cache of keys and values."""

from __future__ import annotations

import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _core
from .errors import InvalidArgument
from .types import stream_number, type_number
from .world import World


def _options(sequences: int, tokens: int, page_size: int, pages: int, prompt_tokens: int, prompt_keys: int, logits: bool,
             graphs: bool, invariant: bool) -> list[int]:
    return [sequences, tokens, page_size, pages, prompt_tokens, prompt_keys, int(logits), int(graphs), int(invariant)]


def _part(weights: Mapping[str, Any]) -> _core.WeightPart:
    """Weights as `create_decoder` takes them: matrices, and the addresses of vectors."""
    matrices, vectors = {}, {}
    for name, w in weights.items():
        is_torch = hasattr(w, "data_ptr")
        address = w.data_ptr() if is_torch else w.__array_interface__["data"][0]
        strides = w.stride() if is_torch else [stride // w.itemsize for stride in w.strides]
        if strides[-1] != 1 and w.shape[-1] > 1:
            raise InvalidArgument(f"{name} has elements apart from each other in its rows")
        if len(w.shape) == 1:
            vectors[name] = address
        else:
            matrices[name] = (address, w.shape[0], w.shape[1], strides[0], type_number(w.dtype))
    return matrices, vectors


class Decoder:
    """A decoder-only transformer: Llama 2 and 3, Mistral, Qwen2, Qwen3, Phi-3, Gemma 1, 2 and 3; decoder/README.md says
    what is refused. All ranks make the same calls with the same sequences and tokens, and all get the same results.

    `model` is a folder of Hugging Face with config.json and model.safetensors or its parts, of which each rank reads what
    it holds. With `random_weights`, `model` is a config.json, and `seed` decides about the weights, whatever the number of
    ranks. Capacities are 0 for their defaults: `sequences` at a time (16), `tokens` of a sequence (2048, or the positions
    of the model), `page_size` (64) and `pages` of the cache, `prompt_tokens` of all prompts of a prefill (2048) and
    `prompt_keys` of their sequences, cached ones as well. `logits` keeps the logits of all tokens. On GPUs `graphs` launches
    steps as CUDA graphs, unless their stream is captured or the default one, and steps of up to four sequences are one kernel, for models that there is one
    for (decoder/README.md). With `invariant` the bits of a sequence's logits depend on its own tokens and calls alone, not on the
    other sequences of a run, and steps take longer. Making one is collective. Raises InvalidArgument, Unsupported with the name of a field, OutOfMemory.
    """

    def __init__(self, world: World, model: str | Path, *, random_weights: bool = False, seed: int = 1, sequences: int = 0,
                 tokens: int = 0, page_size: int = 0, pages: int = 0, prompt_tokens: int = 0, prompt_keys: int = 0,
                 logits: bool = False, graphs: bool = False, invariant: bool = False) -> None:
        options = _options(sequences, tokens, page_size, pages, prompt_tokens, prompt_keys, logits, graphs, invariant)
        self._core = (_core.random_decoder(world._core, str(model), seed, options) if random_weights else
                      _core.load_decoder(world._core, str(model), options))

    @classmethod
    def from_weights(cls, world: World, config: str, weights: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], *,
                     sequences: int = 0, tokens: int = 0, page_size: int = 0, pages: int = 0, prompt_tokens: int = 0,
                     prompt_keys: int = 0, logits: bool = False, graphs: bool = False, invariant: bool = False) -> Decoder:
        """Collective. A decoder on weights that the caller has: tensors of torch or arrays of numpy, this rank's parts, which the
        decoder reads where they are and keeps alive. `config` is the text of a config.json. `weights` has `embedding`, `head` and
        `final_norm`; `layers` have `qkv`, `output`, `gate_up`, `down`, `input_norm` and `mlp_norm`, and `qkv_bias`,
        `output_bias`, `gate_up_bias`, `down_bias`, `q_norm`, `k_norm`, `attention_post_norm` and `mlp_post_norm` where the
        model has them. include/untax/c/decoder.h says which rows and columns a rank has, and how they lie.
        Raises InvalidArgument for weights of other shapes."""
        self = cls.__new__(cls)
        options = _options(sequences, tokens, page_size, pages, prompt_tokens, prompt_keys, logits, graphs, invariant)
        self._weights = weights, layers
        self._core = _core.create_decoder(world._core, config, _part(weights), [_part(layer) for layer in layers], options)
        return self

    def add(self) -> int:
        """Begins a sequence without tokens, and returns its number."""
        return self._core.add()

    def fork(self, sequence: int, *, stream: Any = None) -> int:
        """Begins a sequence with the tokens of another one, whose full pages of the cache it shares."""
        return self._core.fork(sequence, stream_number(stream))

    def remove(self, sequence: int) -> None:
        """Ends a sequence; its pages are free."""
        self._core.remove(sequence)

    def length(self, sequence: int) -> int:
        return self._core.length(sequence)

    def prefill(self, prompts: Mapping[int, Sequence[int]], *, stream: Any = None) -> list[int]:
        """Appends tokens to sequences, by their numbers, and returns the next token of each, the one with the largest logit.
        A full cache and tokens that the vocabulary does not have are refused before anything is written."""
        self.append(prompts, stream=stream)
        return self.tokens(stream=stream)

    def append(self, prompts: Mapping[int, Sequence[int]], *, stream: Any = None) -> None:
        """The part of `prefill` before its results are read: with a stream it launches, and does not wait."""
        tokens = [[int(token) for token in prompt] for prompt in prompts.values()]
        self._core.prefill(list(prompts), [len(prompt) for prompt in tokens], sum(tokens, []), stream_number(stream))

    def decode(self, sequences: Sequence[int], tokens: Sequence[int] | None = None, *, stream: Any = None) -> list[int]:
        """Appends a token to each of `sequences` and returns the next ones. Without `tokens` it appends the results of the
        previous run, row by row."""
        self.stage(sequences, tokens, stream=stream)
        self.step(stream=stream)
        return self.tokens(stream=stream)

    def stage(self, sequences: Sequence[int], tokens: Sequence[int] | None = None, *, stream: Any = None) -> None:
        """The part of `decode` before the model runs. It copies a few numbers to the GPU, and cannot be captured."""
        self._core.stage(list(sequences), None if tokens is None else [int(token) for token in tokens], stream_number(stream))

    def step(self, *, stream: Any = None) -> None:
        """Computes the next tokens of what was staged last. On a stream it can be captured in a CUDA graph; a replay takes
        what was staged before it, as many sequences as in the capture."""
        self._core.step(stream_number(stream))

    def tokens(self, *, stream: Any = None) -> list[int]:
        """The next tokens of the sequences of the last run. It waits for the run."""
        tokens = array.array("i", bytes(4 * self.shape[0]))
        if tokens:
            self._core.read_tokens(tokens, stream_number(stream))
        return tokens.tolist()

    def logits(self, out: Any = None, *, stream: Any = None) -> Any:
        """The logits of the last run, float32 [rows, vocabulary]: in `out`, an array of the host of one dimension, or in one
        of numpy."""
        rows, vocabulary = self.shape
        if out is not None:
            self._core.read_logits(out, stream_number(stream))
            return out
        import numpy
        values = numpy.empty(rows * vocabulary, numpy.float32)
        self._core.read_logits(values, stream_number(stream))
        return values.reshape(rows, vocabulary)

    def generate(self, prompts: Sequence[Sequence[int]], count: int, *, stream: Any = None) -> list[list[int]]:
        """Continues each prompt by `count` tokens, of which each has the largest logit."""
        if count < 1:
            raise InvalidArgument(f"{count} tokens; there has to be one at least")
        sequences = [self.add() for _ in prompts]
        try:
            steps = [self.prefill(dict(zip(sequences, prompts)), stream=stream)]
            while len(steps) < count:
                steps.append(self.decode(sequences, stream=stream))
        finally:
            for sequence in sequences:
                self.remove(sequence)
        return [list(tokens) for tokens in zip(*steps)]

    @property
    def results(self) -> tuple[int, int]:
        """Where the results of the last run are, on a GPU in its memory: the addresses of the next tokens, int32 [rows], and of
        the logits, float32 [rows, vocabulary], which is 0 without the option. Other tokens may be written there, for a `stage`
        without tokens."""
        return self._core.results()

    @property
    def shape(self) -> tuple[int, int]:
        """The sequences of the last run, and the tokens of the vocabulary."""
        rows, vocabulary = self._core.shape()
        return rows, vocabulary

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Ends its use by this rank. The memory is free when all ranks have done so and meet."""
        self._core.close()
