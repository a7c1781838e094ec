"""`generate` of a model that `parallelize` has split, on `untax.Decoder`.

transformers calls a model once a token, through Python, and reads the token before it goes on, so a GPU waits for the host in each
step. Here `generate` still prepares and checks a call, and makes the processors of logits and the criteria that end it; in place of
transformers' loop over tokens, `untax.Decoder` runs prompts and steps on the model's own weights, and the host is a step ahead of
what it reads. Calls that it does not serve run as transformers has them.
"""

from __future__ import annotations

import copy
import functools
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..decoder import Decoder
from ..errors import InvalidArgument, OutOfMemory, Unsupported
from ..tensors import tensor_at
from . import groups
from .counts import count
from .shards import Layout

_ops = torch.ops.untax
_prompt_tokens = 2048  # of one prefill; longer prompts take several
_least_tokens = 1024  # that a sequence has room for
_names = frozenset(("attention_mask", "position_ids", "cache_position", "cache", "past_key_values", "use_cache", "logits_to_keep"))


def _power(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def has_foreign_hooks(model: nn.Module, within: bool = False) -> bool:
    """Whether modules of a model, or with `within` those within it, call functions that are neither untax's nor transformers'."""
    for module in model.modules():
        if within and module is model:
            continue
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()):
            function = getattr(hook, "func", hook)
            if not (getattr(function, "__module__", None) or "").startswith(("untax.", "transformers.")):
                return True
    return False


class _Weights:
    """The weights of a split model as `Decoder.from_weights` takes them. Norms with an offset are copies."""

    def __init__(self, model: nn.Module, base: nn.Module, layout: Layout) -> None:
        self.offset = 1.0 if base.config.model_type.startswith("gemma") else 0.0
        self.sums: list[tuple[Tensor, Tensor]] = []
        self.rank = layout.rank
        embedding = base.embed_tokens
        tokens = min(embedding.weight.shape[0], embedding.num_embeddings - embedding.first)  # without padding
        self.whole = {"embedding": embedding.weight.detach()[:tokens], "head": model.lm_head.weight.detach()[:tokens],
                      "final_norm": self._norm(base.norm)}
        self.layers = [self._layer(layer) for layer in base.layers]
        self.addresses = [parameter.data_ptr() for parameter in model.parameters()]

    def _norm(self, norm: nn.Module) -> Tensor:
        weight = norm.weight.detach()
        if self.offset == 0:
            return weight
        total = torch.empty_like(weight)
        self.sums.append((total, weight))
        return total

    def _layer(self, layer: nn.Module) -> dict[str, Tensor]:
        attention, mlp = layer.self_attn, layer.mlp
        has_post_norms = hasattr(layer, "pre_feedforward_layernorm")
        weights = {"qkv": attention.qkv_proj.weight, "output": attention.o_proj.weight, "gate_up": mlp.gate_up_proj.weight,
                   "down": mlp.down_proj.weight, "qkv_bias": attention.qkv_proj.bias, "gate_up_bias": mlp.gate_up_proj.bias}
        if self.rank == 0:
            weights |= {"output_bias": attention.o_proj.bias, "down_bias": mlp.down_proj.bias}
        norms = {"input_norm": layer.input_layernorm, "q_norm": getattr(attention, "q_norm", None),
                 "k_norm": getattr(attention, "k_norm", None)}
        if has_post_norms:
            norms |= {"attention_post_norm": layer.post_attention_layernorm, "mlp_norm": layer.pre_feedforward_layernorm,
                      "mlp_post_norm": layer.post_feedforward_layernorm}
        else:
            norms["mlp_norm"] = layer.post_attention_layernorm
        return {name: weight.detach() for name, weight in weights.items() if weight is not None} | {
            name: self._norm(norm) for name, norm in norms.items() if norm is not None}

    def refresh(self) -> None:
        for total, weight in self.sums:
            torch.add(weight, self.offset, out=total)


class Generation:
    """The decoder of a split model, which is made by the first call that it serves, and anew for larger ones.

    `enabled`: whether it serves calls; None: those of models on GPUs. `invariant`: an option of the decoder."""

    def __init__(self, layout: Layout, model: nn.Module, base: nn.Module, enabled: bool | None, invariant: bool) -> None:
        self.layout, self.model, self.base, self.enabled, self.invariant = layout, model, base, enabled, invariant
        self.owns_cache = False  # whether the cache of the call in progress is of no use to the caller
        self.refusal = ""
        self._forget()

    def _forget(self) -> None:
        self.decoder: Decoder | None = None
        self.weights: _Weights | None = None
        self.room = 0, 0  # sequences and tokens
        self.stream: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Generation:
        return Generation(self.layout, copy.deepcopy(self.model, memo), copy.deepcopy(self.base, memo), self.enabled, self.invariant)

    def __reduce__(self) -> tuple[Any, ...]:
        return Generation, (self.layout, self.model, self.base, self.enabled, self.invariant)  # a copy of a model has no decoder

    def release(self) -> None:
        if self.decoder is not None:
            self.decoder.close()
        self._forget()

    def is_enabled(self) -> bool:
        weight = self.base.norm.weight
        return self.enabled if self.enabled is not None else weight.is_cuda

    def _lack_of_model(self) -> str:
        """Why no call can be served now; empty if some can."""
        base, weight = self.base, self.base.norm.weight
        if self.refusal:
            return self.refusal
        if self.model.training:
            return "the model is in training"
        if torch.is_autocast_enabled(weight.device.type):
            return "torch.autocast is on"
        if any(parameter.dtype != weight.dtype or parameter.device != weight.device for parameter in self.model.parameters()):
            return "parameters are of several types or on several devices"
        if not all(layer.mlp.gate_up_proj.interleaved for layer in base.layers):
            return "the features of an MLP at a rank are no multiple of 8"
        return "a module has a hook, which would not be called" if has_foreign_hooks(self.model) else ""

    def _lack_of_call(self, owns_cache: bool, ids: Tensor, options: Any, others: Mapping[str, Any]) -> str:
        """Why a call is not served; empty if it is, as far as the host can tell without waiting for the GPU."""
        if not owns_cache:
            return "the call has a cache of its own, or returns more than tokens"
        if ids.dim() != 2 or ids.shape[1] == 0 or ids.dtype != torch.int64:
            return "the prompt is not of token ids"
        names = [name for name, value in others.items() if name not in _names and value is not None and value is not False]
        if names:
            return f"the model is called with {', '.join(names)}"
        mask, positions = others.get("attention_mask"), others.get("position_ids")
        if mask is not None and mask.shape != ids.shape:
            return f"attention_mask is {tuple(mask.shape)}, and the prompt {tuple(ids.shape)}"
        if positions is not None and positions.shape[-1] != ids.shape[1]:
            return "position_ids are not those of the prompt"
        if options.max_length > self.base.config.max_position_embeddings:
            return f"{options.max_length} tokens are more than the positions of the model"
        return ""

    def _prompts(self, ids: Tensor, mask: Tensor | None, positions: Tensor | None) -> list[list[int]] | None:
        """The tokens of each sequence without padding at its left; None where a mask or positions say something else."""
        tokens = ids.tolist()
        starts = [0] * len(tokens)
        if mask is not None:
            kept = [[value != 0 for value in row] for row in mask.tolist()]
            starts = [row.index(True) if True in row else len(row) for row in kept]
            if any(start == len(row) or not all(row[start:]) for start, row in zip(starts, kept, strict=True)):
                return None
        if positions is not None:
            for start, row in zip(starts, positions.expand(len(tokens), -1).tolist(), strict=True):
                if row[start:] != list(range(len(row) - start)):
                    return None
        return [row[start:] for start, row in zip(starts, tokens, strict=True)]

    def _has_room(self, sequences: int, tokens: int) -> bool:
        """Whether keys and values take an eighth of the GPU's memory at most."""
        weight = self.base.norm.weight
        if not weight.is_cuda:
            return True
        attention = self.base.layers[0].self_attn
        size = 2 * len(self.base.layers) * attention.v_proj.count * weight.element_size() * sequences * tokens
        free, total = torch.cuda.mem_get_info(weight.device)
        if size > free:
            torch.cuda.empty_cache()
        return size <= total // 8

    def _require(self, sequences: int, tokens: int) -> str:
        """Makes the decoder, unless it has room for so many sequences and tokens of each. Why it cannot be made; empty if it is there.
        Collective, and decided alike at all ranks."""
        known = self.weights is not None and self.weights.addresses == [p.data_ptr() for p in self.model.parameters()]
        if known and self.decoder is not None and not self.decoder.closed and sequences <= self.room[0] and tokens <= self.room[1]:
            return ""
        config = self.base.config
        most = config.max_position_embeddings
        room = _power(max(sequences, self.room[0])), min(max(_power(tokens), self.room[1], _least_tokens), most)
        if not self._has_room(*room):
            room = sequences, tokens
        if not self._has_room(*room):
            return f"keys of {sequences} sequences of {tokens} tokens take more than an eighth of the GPU's memory"
        self.release()
        weight = self.base.norm.weight
        self.engine = groups.engine_of(self.layout.group_name, weight.device.type, weight.device.index)
        text = json.dumps(config.to_dict() | {"dtype": str(weight.dtype).removeprefix("torch.")}, default=str)
        self.weights = _Weights(self.model, self.base, self.layout)
        try:
            self.decoder = Decoder.from_weights(
                self.engine.world, text, self.weights.whole, self.weights.layers, sequences=room[0], tokens=room[1],
                prompt_tokens=_prompt_tokens, prompt_keys=_prompt_tokens + room[1], logits=True, graphs=True,
                invariant=self.invariant)
        except (Unsupported, InvalidArgument) as error:
            self._forget()
            self.refusal = str(error)
            return self.refusal
        except OutOfMemory as error:
            self._forget()
            return str(error)
        self.room = room
        tokens_at, logits_at = self.decoder.results
        device, vocabulary = weight.device, config.vocab_size
        self.tokens = tensor_at(tokens_at, 4 * room[0], device, self.decoder).view(torch.int32)
        self.logits = tensor_at(logits_at, 4 * room[0] * vocabulary, device, self.decoder).view(torch.float32).view(room[0], -1)
        # Kernels of the default stream follow each other, and those of ranks that share a GPU wait for each other.
        if weight.is_cuda and self.engine.world.default_stream != 0:
            self.stream = torch.cuda.Stream(device)
        return ""

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        """Runs what is launched within behind the current stream's work, and lets that stream wait for it."""
        if self.stream is None:
            yield
            return
        caller = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(caller)
        with torch.cuda.stream(self.stream):
            yield
        caller.wait_stream(self.stream)

    def sample(self, otherwise: Callable[..., Any], ids: Tensor, *, logits_processor: Any, stopping_criteria: Any,
               generation_config: Any, synced_gpus: bool = False, streamer: Any = None, **others: Any) -> Any:
        """In place of `_sample` of transformers, which is `otherwise`: greedy or random choice of the next tokens."""
        operator = f"generate of {type(self.model).__name__}"
        owns_cache, self.owns_cache = self.owns_cache, False
        lack = "synced_gpus is on" if synced_gpus else self._lack_of_model() or self._lack_of_call(
            owns_cache, ids, generation_config, others)
        prompts = None if lack else self._prompts(ids, others.get("attention_mask"), others.get("position_ids"))
        if prompts is None:
            lack = lack or "attention_mask or position_ids do not say padding at the left"
        else:
            lack = self._require(len(prompts), generation_config.max_length)
        if lack or prompts is None:
            count(operator, f"the loop of transformers: {lack}", logging.WARNING)
            return otherwise(self.model, ids, logits_processor=logits_processor, stopping_criteria=stopping_criteria,
                             generation_config=generation_config, synced_gpus=synced_gpus, streamer=streamer, **others)
        count(operator, "untax.Decoder")
        return self._run(ids, prompts, logits_processor, stopping_criteria, generation_config, streamer)

    def _prefill(self, sequences: list[int], prompts: list[list[int]], with_logits: bool) -> None:
        """Runs prompts, as many of their tokens at once as the decoder takes. The results of all are then in their rows."""
        decoder = self.decoder
        assert decoder is not None
        first = self.tokens[: len(prompts)].clone()
        first_logits = self.logits[: len(prompts)].clone() if with_logits else None
        done = [0] * len(prompts)
        index = 0
        while index < len(prompts):
            part: dict[int, list[int]] = {}
            rows: list[tuple[int, int]] = []  # of this part, and of the results, where a prompt ends
            left, keys = _prompt_tokens, _prompt_tokens + self.room[1]
            while index < len(prompts) and left > 0:
                tokens = prompts[index][done[index] : done[index] + left]
                if done[index] + len(tokens) > keys:
                    break
                keys -= done[index] + len(tokens)
                left -= len(tokens)
                part[sequences[index]] = tokens
                done[index] += len(tokens)
                if done[index] < len(prompts[index]):
                    break
                rows.append((len(part) - 1, index))
                index += 1
            decoder.append(part, stream=self.stream)
            for row, of_results in rows:
                first[of_results].copy_(self.tokens[row])
                if first_logits is not None:
                    first_logits[of_results].copy_(self.logits[row])
        self.tokens[: len(prompts)].copy_(first)
        if first_logits is not None:
            self.logits[: len(prompts)].copy_(first_logits)

    def _run(self, ids: Tensor, prompts: list[list[int]], processors: Any, criteria: Any, options: Any, streamer: Any) -> Tensor:
        decoder, weights = self.decoder, self.weights
        assert decoder is not None and weights is not None
        batch, length = ids.shape
        picks = bool(options.do_sample) or len(processors) > 0
        ends = [c for c in criteria if type(c).__name__ != "MaxLengthCriteria"]
        pads = any(hasattr(c, "eos_token_id") for c in ends)
        waits = bool(ends) or streamer is not None
        sequences = [decoder.add() for _ in prompts]
        result = ids.new_empty(batch, options.max_length)
        if self.stream is not None:
            result.record_stream(self.stream)
        try:
            with self._on_stream():
                weights.refresh()
                result[:, :length] = ids
                unfinished = torch.ones(batch, dtype=torch.int64, device=ids.device)
                news = torch.empty(2, batch, dtype=torch.int64, pin_memory=ids.is_cuda)
                copied = torch.cuda.Event() if ids.is_cuda else None
                self._prefill(sequences, prompts, picks)
                while True:
                    token = self._choose(result[:, :length], processors, options) if picks else self.tokens[:batch].long()
                    if pads:
                        token = token * unfinished + options._pad_token_tensor.to(ids.device) * (1 - unfinished)
                    result[:, length] = token
                    length += 1
                    if ends:
                        unfinished = unfinished & ~criteria(result[:, :length], None)
                    if waits:
                        news.copy_(torch.stack([unfinished, token]), non_blocking=True)
                        if copied is not None:
                            copied.record()
                    if length < result.shape[1]:  # before the host knows whether anybody wants it
                        if picks:
                            self.tokens[:batch].copy_(token)
                        decoder.stage(sequences, self._first(token), stream=self.stream)
                        decoder.step(stream=self.stream)
                    if waits:
                        if copied is not None:
                            copied.synchronize()
                        if streamer is not None:
                            streamer.put(news[1].clone())
                    if length == result.shape[1] or ends and not news[0].any():
                        break
                decoder.tokens(stream=self.stream)  # waits, and raises the error of a wait for another rank
        finally:
            for sequence in sequences:
                decoder.remove(sequence)
        if streamer is not None:
            streamer.end()
        return result[:, :length].contiguous()

    def _first(self, token: Tensor) -> list[int] | None:
        """The tokens for the host, where the last run was not of all sequences: a part of the prompts."""
        assert self.decoder is not None
        return None if self.decoder.shape[0] == token.shape[0] else token.tolist()

    def _choose(self, ids: Tensor, processors: Any, options: Any) -> Tensor:
        """The next tokens, as transformers chooses them. All ranks have the same logits; they draw the tokens of the first."""
        scores = processors(ids, self.logits[: ids.shape[0]].clone())
        if not options.do_sample:
            return torch.argmax(scores, dim=-1)
        token = torch.multinomial(nn.functional.softmax(scores, dim=-1), num_samples=1).squeeze(1)
        return _ops.broadcast(token, 0, self.layout.group_name) if self.layout.ranks > 1 else token


def _prepare_cache(generation: Generation, otherwise: Callable[..., Any], options: Any, inputs: dict[str, Any], *others: Any) -> Any:
    """In place of transformers' function that makes the cache of `generate`: sees whether the caller has one, needs one of a kind,
    or gets more than tokens."""
    generation.owns_cache = not (
        any(inputs.get(name) is not None for name in ("cache", "past_key_values"))
        or options.cache_implementation not in (None, "static") or options.use_cache is False or options.return_dict_in_generate)
    return otherwise(options, inputs, *others)


def install_generation(generation: Generation) -> None:
    """Lets `generate` of a split model choose tokens by `generation`. transformers finds its loop at the class, so the class has
    one that leaves other models of it as they are."""
    model: Any = generation.model
    kind: Any = type(model)
    model.untax_generation = generation
    model._prepare_cache_for_generation = functools.partial(_prepare_cache, generation, model._prepare_cache_for_generation)
    otherwise = kind._sample
    if getattr(otherwise, "is_of_untax", False):
        return

    @functools.wraps(otherwise)
    def sample(model: nn.Module, input_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
        own = model.__dict__.get("untax_generation")
        if own is None or args or not own.is_enabled():
            return otherwise(model, input_ids, *args, **kwargs)
        return own.sample(otherwise, input_ids, **kwargs)

    sample.is_of_untax = True  # type: ignore[attr-defined]
    kind._sample = sample
