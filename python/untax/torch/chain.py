"""Steps of decoding of a model that `parallelize` has split, as a chain of untax's operators.

A layer of transformers adds, normalises, multiplies, gates and sums by separate operators. In a call of few tokens without
gradients the layers hand the residual and its normalised rows to each other: four products with their bias and gate, and two sums
over ranks, each with the residual and the norm that follows it. Where a step has one token of each sequence and a static cache,
rope_append and decode_attention take the place of transformers' rotation, cache and attention; elsewhere these run
within the chain. What is not taken is said once in the log, and counted.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from . import graphs as cuda_graphs
from .counts import count
from .shards import Layout

_ops = torch.ops.untax
_longest = 16  # tokens of each sequence in a call that counts as a step, such as those that an assistant proposes
_rotations = ("default", "linear", "llama3", "yarn")  # kinds whose angles depend on the position alone


@torch.compiler.assume_constant_result
def _count(operator: str, way: str, level: int) -> None:
    """`count`, which torch.compile calls while it traces."""
    count(operator, way, level)


def gate_of(activation: Any) -> str | None:
    """The activation of `linear` that is an activation of transformers times up, or None."""
    x = torch.linspace(-3, 3, 13)
    gates = {"swiglu": nn.functional.silu(x), "geglu": nn.functional.gelu(x, approximate="tanh")}
    y = activation(x)
    return next((gate for gate, right in gates.items() if torch.allclose(y, right, rtol=0, atol=1e-6)), None)


def _epsilon(norm: nn.Module) -> float:
    return norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps


def _has_keys_first(t: Tensor) -> bool:
    """Whether [batch, kv_heads, keys, dim] lies in memory as [batch, keys, kv_heads, dim]."""
    _, heads, keys, dim = t.shape
    return t.stride(3) == 1 and t.stride(2) == heads * dim and t.stride(0) == keys * heads * dim and (
        heads == 1 or t.stride(1) == dim)


class Padding(NamedTuple):
    """What lies ahead of the first key of each sequence in a static cache. With it a cache is one of pages of a key each."""

    starts: Tensor  #: [batch] of int32, the place of the first key
    table: Tensor  #: [batch, keys] of int32, the page of each position


class Chain:
    """What the layers of a model share during a call, and what is known of the model."""

    def __init__(self, layout: Layout, model: nn.Module, base: nn.Module, graphs: bool) -> None:
        self.layout = layout
        self.graphs = cuda_graphs.Graphs(graphs, layout.group_name)
        self.model, self.name = model, type(model).__name__
        self.config = base.config
        self.layers, self.norm, self.rotary = base.layers, base.norm, base.rotary_emb
        self.norm_offset = 1.0 if base.config.model_type == "gemma" else 0.0
        self.gates = [gate_of(layer.mlp.act_fn) for layer in base.layers]
        self.refusal = ""
        if hasattr(base.layers[0], "pre_feedforward_layernorm"):
            self.refusal = "its layers have norms behind attention and behind the MLP"
        self.is_counted = True  # False while a step is captured
        self.partial = False  # whether row-parallel layers leave their sum over ranks to the chain
        self.begin(False)

    def begin(self, plain: bool, padding: Padding | None = None) -> None:
        """Begins a call. `plain`: the token of a sequence that has n keys is at position n, and no key is masked, apart from
        `padding`."""
        self.plain, self.padding, self.partial = plain, padding, False
        self.is_read = False  # whether `read_prompt` knows the mask and the positions of the next call
        self.total: Tensor | None = None  # the residual that the layer before returned
        self.rows: Tensor | None = None  # its normalised rows
        self.own: list[bool] | None = None  # which layers attend by untax; None before the first layer
        self.position = self.lengths = None

    @staticmethod
    def padding_of(cache: Any) -> Padding | None:
        return getattr(cache, "untax_padding", None)

    def count(self, way: str, lack: str = "") -> None:
        """Counts a call that is carried out in this way, with what is lacking for a better one."""
        if not self.is_counted:
            return
        _count(f"decode of {self.name}", f"{way}: {lack}" if lack else way, logging.WARNING if lack else logging.INFO)

    def takes(self, layer: nn.Module, x: Tensor) -> bool:
        """Whether a call of a layer is part of a chain."""
        if torch.is_grad_enabled() or layer.training or x.dim() != 3 or x.shape[1] > _longest:
            return False
        if x.shape[0] * x.shape[1] >= self.layout.split_from:
            return False
        weight = layer.self_attn.qkv_proj.weight
        why = self.refusal
        if not why and torch.is_autocast_enabled(x.device.type):
            why = "torch.autocast is on"
        if not why and x.dtype != weight.dtype:
            why = f"hidden states are of {x.dtype}, and weights of {weight.dtype}"
        if why and layer is self.layers[0]:
            self.count("layers of transformers", why)
        return not why

    def normed(self, x: Tensor) -> Tensor | None:
        """The normalised rows of x, if the layer before has left them; they are taken once."""
        rows = self.rows if self.total is x else None
        self.total = self.rows = None
        return rows

    def multiply(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
        return _ops.linear(x, weight, bias, activation=activation, constant_weights=True)

    def part_of_sum(self, row: nn.Module, x: Tensor) -> Tensor:
        """What this rank adds to the sum of a row-parallel layer; the bias comes from one rank."""
        return self.multiply(x, row.weight, row.bias if self.layout.rank == 0 else None)

    def sum_and_norm(self, x: Tensor, residual: Tensor, norm: nn.Module) -> tuple[Tensor, Tensor]:
        weight = norm.weight + self.norm_offset if self.norm_offset else norm.weight
        return _ops.all_reduce_rms_norm(x, residual, weight, _epsilon(norm), self.layout.group_name)

    def _why_no_layer(self) -> str:
        """Why no layer attends by untax; empty if some may."""
        kind = getattr(self.rotary, "rope_type", None)
        if self.config._attn_implementation == "eager":
            return "attn_implementation is \"eager\""
        if kind not in _rotations:
            return f"rotations of the kind {kind!r} depend on more than the position"
        return ""

    def _why_not(self, layer: nn.Module, cached: Any, x: Tensor) -> str:
        """Why a layer does not attend by untax; empty if it does."""
        window = getattr(layer.self_attn, "sliding_window", getattr(self.config, "sliding_window", None))
        if window is not None or getattr(cached, "is_sliding", False):
            return "there are layers that attend in a window"
        if type(cached).__name__ != "StaticLayer":
            return f"keys are in a {type(cached).__name__}; cache_implementation=\"static\" has a StaticLayer"
        if not self.plain:
            return "the call has an attention mask or positions of its own; generate takes those of padding at the left"
        if not cached.is_initialized or not (_has_keys_first(cached.keys) and _has_keys_first(cached.values)):
            return "the first call with this cache was not one of parallelize's model, or keys were copied since, as beams do"
        rotations = getattr(self.rotary, "untax_rotations", None)
        if rotations is None or rotations.dtype != torch.float32 or rotations.shape[0] < cached.keys.shape[2]:
            return "the prompt was not the first call with this cache, so there is no table of rotations"
        if cached.keys.dtype != x.dtype:
            return f"keys are of {cached.keys.dtype}, and hidden states of {x.dtype}"
        if self.padding is not None and self.padding.table.shape != cached.keys.shape[::2]:
            return "the prompt had other extents than the cache"
        if x.is_cuda and self._kernels_lack(x.dtype, cached.keys.shape[3]):
            return f"kernels lack heads of {cached.keys.shape[3]} elements of {x.dtype}"
        return ""

    @staticmethod
    def _kernels_lack(dtype: torch.dtype, head: int) -> bool:
        return dtype == torch.float32 or head % 16 != 0 or head > 256

    def choose(self, cache: Any, x: Tensor) -> list[bool]:
        """Decides which layers of this call attend by untax, and counts their new keys."""
        own = [False] * len(self.layers)
        if cache is None or x.shape[1] != 1:
            return own
        why = self._why_no_layer()
        if not why and (len(getattr(cache, "layers", ())) < len(own) or getattr(cache, "offloading", False)):
            why = f"the keys of a {type(cache).__name__} are not all where they stay"
        reasons = [why or self._why_not(layer, cache.layers[index], x) for index, layer in enumerate(self.layers)]
        for reason in dict.fromkeys(reasons):
            self.count("a chain, with attention of transformers" if reason else "a chain", reason)
        own = [not reason for reason in reasons]
        self.graphs.served = all(own)
        if not any(own):
            return own
        counters = [cached.cumulative_length for cached, is_own in zip(cache.layers, own, strict=False) if is_own]
        self.position = counters[0].to(torch.int32).expand(x.shape[0]).contiguous()
        if self.padding is not None:
            self.position = self.position - self.padding.starts
        self.lengths = self.position + 1
        torch._foreach_add_(counters, 1)
        return own

    def attend(self, attention: nn.Module, rows: Tensor, cached: Any) -> Tensor:
        """The attention of one token of each sequence, [batch, 1, features of this rank's heads]; its key is appended."""
        projection = attention.qkv_proj
        qkv = self.multiply(rows, projection.weight).squeeze(1)
        keys, values = cached.keys.transpose(1, 2), cached.values.transpose(1, 2)
        table = None
        if self.padding is not None:
            table = self.padding.table
            keys, values = (t.flatten(0, 1).unsqueeze(1) for t in (keys, values))
        norms = {}
        if getattr(attention, "q_norm", None) is not None:
            norms = {"q_norm": attention.q_norm.weight, "k_norm": attention.k_norm.weight, "epsilon": _epsilon(attention.q_norm)}
        q = _ops.rope_append(qkv, self.rotary.untax_rotations, self.position, keys, values, bias=projection.bias,
                             page_table=table, **norms)
        return _ops.decode_attention(q, keys, values, self.lengths, table, scale=attention.scaling).view(rows.shape[0], 1, -1)

    def prepare(self, cache: Any, batch: int, length: int, dtype: torch.dtype, device: torch.device) -> None:
        """Lets the keys of a static cache that is about to get a prompt lie as untax's operators read them, heads of a key side by
        side, and makes the table of rotations. Shapes stay as transformers has them."""
        if length == 1 and all(cached.is_initialized for cached in getattr(cache, "layers", ())):
            return  # a step; beams have copied its keys, and would do so again
        if (self.refusal or self._why_no_layer() or torch.compiler.is_compiling() or torch.is_grad_enabled() or self.norm.training
                or torch.is_autocast_enabled(device.type) or getattr(cache, "offloading", False)):
            return
        longest = 0
        for layer, cached in zip(self.layers, getattr(cache, "layers", ()), strict=False):
            if type(cached).__name__ != "StaticLayer" or not hasattr(cached, "cumulative_length"):
                continue
            if not cached.is_initialized:
                attention = layer.self_attn
                heads = attention.v_proj.count // attention.head_dim
                nothing = torch.empty(batch, heads, 0, attention.head_dim, dtype=dtype, device=device)
                cached.lazy_initialization(nothing, nothing)
            for name in ("keys", "values"):
                if not _has_keys_first(t := getattr(cached, name)):
                    t = t.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2)
                    torch._dynamo.mark_static_address(t)  # as transformers has marked the other
                    setattr(cached, name, t)
            longest = max(longest, cached.keys.shape[2])
        if longest > 0:
            self._require_rotations(longest, dtype, device)

    def read_prompt(self, cache: Any, mask: Tensor | None, positions: Tensor | None, x: Tensor) -> None:
        """Prepares a cache for a prompt, x of [batch, length, ...], and remembers at the cache whether the tokens are where steps
        expect them: at the positions of their keys, behind padding at the left. It waits for the GPU, once for a prompt."""
        batch, length = x.shape[:2]
        self.prepare(cache, batch, length, x.dtype, x.device)
        cached = int(cache.get_seq_length())
        cache.untax_is_read, cache.untax_padding = False, None
        slots = torch.arange(cached + length, device=x.device)
        if mask is None:
            cache.untax_is_read = positions is None or bool((positions == slots[cached:]).all())
            return
        keys = getattr(cache.layers[0], "keys", None)
        if keys is None or positions is None or mask.shape != (batch, cached + length):
            return
        starts = (mask == 0).sum(1, keepdim=True)
        is_right = (positions == (slots - starts).clamp(min=0)[:, cached:]).all() & ((mask != 0) == (slots >= starts)).all()
        is_right, is_padded = torch.stack([is_right & (starts <= cached + length - 1).all(), starts.any()]).tolist()
        cache.untax_is_read = is_right
        if not is_right or not is_padded:
            return
        places = (torch.arange(keys.shape[2], device=x.device) + starts).clamp(max=keys.shape[2] - 1)
        table = places + torch.arange(batch, device=x.device).unsqueeze(1) * keys.shape[2]
        cache.untax_padding = Padding(starts.squeeze(1).to(torch.int32), table.to(torch.int32))
        for t in cache.untax_padding:
            torch._dynamo.mark_static_address(t)

    def _require_rotations(self, positions: int, dtype: torch.dtype, device: torch.device) -> None:
        """Makes the table of rope_append, [positions, dim], with the values of transformers, unless there is one."""
        known = getattr(self.rotary, "untax_rotations", None)
        if known is not None and known.dtype == torch.float32 and known.device == device and known.shape[0] >= positions:
            return
        count = 1 << (positions - 1).bit_length()
        cos, sin = self.rotary(torch.empty(0, dtype=dtype, device=device), torch.arange(count, device=device).unsqueeze(0))
        half = cos.shape[-1] // 2
        table = torch.cat([cos[0, :, :half], sin[0, :, :half]], -1).float()
        self.rotary.register_buffer("untax_rotations", table, persistent=False)


def _run_layer(layer: nn.Module, chain: Chain, otherwise: Any, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A layer of a model of transformers: as part of a chain, or as transformers has it."""
    if args or not chain.takes(layer, hidden_states):
        return otherwise(hidden_states, *args, **kwargs)
    attention, mlp = layer.self_attn, layer.mlp
    cache = kwargs.get("cache", kwargs.get("past_key_values"))
    if chain.own is None:
        chain.own = chain.choose(cache, hidden_states)
    index = attention.layer_idx
    rows = chain.normed(hidden_states)
    if rows is None:
        rows = layer.input_layernorm(hidden_states)
    chain.partial = True
    if chain.own[index]:
        part = attention.o_proj(chain.attend(attention, rows, cache.layers[index]))
    else:
        part = attention(hidden_states=rows, **kwargs)[0]
    rows, total = chain.sum_and_norm(part, hidden_states, layer.post_attention_layernorm)
    gate = chain.gates[index]
    if gate is not None and mlp.gate_up_proj.interleaved:
        joint = mlp.gate_up_proj
        part = chain.part_of_sum(mlp.down_proj, chain.multiply(rows, joint.weight, joint.bias, gate))
    else:
        part = mlp(rows)
    chain.partial = False
    last = index + 1 == len(chain.layers)
    chain.rows, chain.total = chain.sum_and_norm(part, total, chain.norm if last else chain.layers[index + 1].input_layernorm)
    return chain.total


def _run_norm(chain: Chain, otherwise: Any, x: Tensor) -> Tensor:
    rows = chain.normed(x)
    chain.begin(False)  # lets go of the tensors of this call
    return otherwise(x) if rows is None else rows


def _before_call(chain: Chain, base: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    cache = kwargs.get("cache", kwargs.get("past_key_values"))
    if chain.is_read:
        chain.begin(len(args) < 2, chain.padding_of(cache))
    else:
        chain.begin(len(args) < 2 and kwargs.get("attention_mask") is None and kwargs.get("position_ids") is None)
    tokens = next((t for t in (kwargs.get("input_ids"), kwargs.get("inputs_embeds"), *args) if t is not None), None)
    if cache is not None and tokens is not None:
        weight = chain.layers[0].self_attn.qkv_proj.weight
        chain.prepare(cache, *tokens.shape[:2], weight.dtype, weight.device)


def _masks_for_generate(chain: Chain, otherwise: Any, **kwargs: Any) -> Any:
    """In place of transformers' function that makes masks of `generate` for static caches: reads prompts, and makes no mask for
    a step without padding."""
    cache, x, mask = kwargs.get("cache", kwargs.get("past_key_values")), kwargs["inputs_embeds"], kwargs.get("attention_mask")
    if cache is None or mask is not None and mask.dim() != 2:
        return otherwise(**kwargs)
    if kwargs.get("is_first_iteration") or not hasattr(cache, "untax_is_read"):
        chain.read_prompt(cache, mask, kwargs.get("position_ids"), x)
    chain.is_read = cache.untax_is_read
    if chain.is_read and x.shape[1] == 1 and (mask is None or chain.graphs.serves(chain, cache, x.shape[:2], x.device)):
        return None
    return otherwise(**kwargs)


def _run_model(chain: Chain, otherwise: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a model for language: a step may be a replay of a CUDA graph."""
    if torch.compiler.is_compiling():
        return otherwise(*args, **kwargs)
    return chain.graphs.run(chain, otherwise, args, kwargs)


def install_chain(layout: Layout, model: nn.Module, base: nn.Module, graphs: bool) -> Chain:
    """Lets the layers of a model that is split run their steps of decoding as a chain, which may be a CUDA graph."""
    chain = Chain(layout, model, base, graphs and model is not base)
    for layer in base.layers:
        layer.self_attn.o_proj.chain = layer.mlp.down_proj.chain = chain
        layer.forward = partial(_run_layer, layer, chain, layer.forward)
    base.norm.forward = partial(_run_norm, chain, base.norm.forward)
    base.register_forward_pre_hook(partial(_before_call, chain), with_kwargs=True)
    if not chain.refusal and hasattr(model, "generate"):
        from transformers import masking_utils

        otherwise = getattr(model, "create_masks_for_generate", masking_utils.create_masks_for_generate)
        model.create_masks_for_generate = partial(_masks_for_generate, chain, otherwise)
        if chain.graphs.enabled:
            forward = model.forward
            model.forward = partial(_run_model, chain, forward)
            model.forward.__wrapped__ = forward  # for its signature
    return chain
