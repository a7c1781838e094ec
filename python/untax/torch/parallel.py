"""Models of Hugging Face transformers, made tensor-parallel in place.

Attention heads, the features within the MLP and the vocabulary are split over the ranks. Between these layers a call of
many tokens has a share of them at each rank, [tokens / W, hidden]: column-parallel layers gather them while they multiply,
row-parallel layers scatter their sums. A call of few tokens has all of them at each rank, [batch, length, hidden].

Outside of the decoder's layers, tensors are the same at all ranks, and so are the gradients that arrive for them. Inside, the
gradient of a tensor is the sum of those that the ranks have, as untax's operators take it; `_Entrance` and `_Exit` lie between.
Parameters inside that every rank has whole, the norms', get the sum by a hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument, Unsupported
from .chain import Chain, install_chain
from .generation import Generation, install_generation
from .groups import name_of, rank_of, ranks_of
from .layers import interleave_gate_up, interleaved_rows
from .modules import ColumnParallelLinear, RowParallelLinear, _Replicated, in_autocast
from .shards import Layout, Plan, Shard, plan_of

_ops = torch.ops.untax
_Model = TypeVar("_Model", bound=nn.Module)

families = ("gemma", "gemma2", "gemma3_text", "llama", "mistral", "qwen2", "qwen3")  #: `model_type` of the configurations
_head_rows = 512  # rows of logits that are in symmetric memory at once


def _padded(x: Tensor, ranks: int) -> Tensor:
    """Tokens, padded with zeros so that ranks share them equally."""
    rest = -x.shape[0] % ranks
    return nn.functional.pad(x, (0, 0, 0, rest)) if rest else x


def _own_tokens(x: Tensor, layout: Layout) -> Tensor:
    flat = _padded(x.flatten(0, 1), layout.ranks)
    return flat.chunk(layout.ranks)[layout.rank].contiguous()


def _every_token(x: Tensor, shape: Sequence[int], layout: Layout) -> Tensor:
    return _ops.all_gather(x, 0, layout.group_name)[: shape[0] * shape[1]].view(*shape[:2], -1)


class _Entrance(torch.autograd.Function):
    """Turns a tensor that is the same at all ranks into the input of the decoder's layers: this rank's tokens, or all tokens."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layout: Layout) -> Tensor:
        ctx.layout, ctx.shape = layout, x.shape
        ctx.split = layout.splits(x)
        return _own_tokens(x, layout) if ctx.split else x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if ctx.split:
            return _every_token(grad, ctx.shape, ctx.layout), None
        return _ops.all_reduce(grad, "sum", ctx.layout.group_name), None


class _Exit(torch.autograd.Function):
    """Turns the output of the decoder's layers into a tensor of `shape` that is the same at all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Sequence[int], layout: Layout) -> Tensor:
        ctx.layout, ctx.split = layout, x.dim() == 2
        return _every_token(x, shape, layout) if ctx.split else x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _own_tokens(grad, ctx.layout) if ctx.split else grad / ctx.layout.ranks, None, None


class _Sum(torch.autograd.Function):
    """The sum of x over the ranks. The gradient is the same at all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group_name: str) -> Tensor:
        return _ops.all_reduce(x, "sum", group_name)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _Product(torch.autograd.Function):
    """x, which is the same at all ranks, times the weights of all ranks, side by side. The gradient is the same at all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, layout: Layout) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.layout = layout
        if x.shape[:-1].numel() <= _head_rows:
            return _ops.matmul_all_scatter(x, weight.t(), layout.group_name)
        product = x.new_empty(*x.shape[:-1], weight.shape[0] * layout.ranks)
        for rows, into in zip(x.flatten(0, -2).split(_head_rows), product.flatten(0, -2).split(_head_rows), strict=True):
            _ops.matmul_all_scatter.out(rows, weight.t(), layout.group_name, out=into)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        grad = grad.narrow(-1, ctx.layout.rank * weight.shape[0], weight.shape[0])
        grad_x = _ops.matmul_all_reduce(grad, weight, "sum", ctx.layout.group_name) if ctx.needs_input_grad[0] else None
        grad_weight = grad.flatten(0, -2).t() @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, None


class SplitColumnLinear(ColumnParallelLinear):
    """Several linear layers of the same input, as one layer. An input of this rank's share of the tokens, [tokens / W, features],
    has an output of all tokens; an input of all tokens, [batch, length, features], too. The rows of two layers may be interleaved
    as `interleave_gate_up` does it."""

    interleaved = False

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            return super().forward(x)
        if x.is_cuda and not torch.is_grad_enabled():  # a step of decoding, in which untax's kernels read weights the fastest
            x, weight = in_autocast(x, self.weight)
            return _ops.linear(x, weight, None if self.bias is None else self.bias.to(x.dtype))
        return nn.functional.linear(x, self.weight, self.bias)


class SplitRowLinear(RowParallelLinear):
    """A linear layer with an input of all tokens. The output has this rank's share of the tokens, [tokens / W, features], or
    all tokens if the call has few; within a chain it is what this rank adds to the sum."""

    layout: Layout
    chain: Chain

    def forward(self, x: Tensor) -> Tensor:
        if self.chain.partial:
            return self.chain.part_of_sum(self, x)
        if x.dim() == 2 or self.layout.splits(x):
            return super().forward(x if x.dim() == 2 else _padded(x.flatten(0, 1), self.layout.ranks))
        x, weight = in_autocast(x, self.weight)
        y = _ops.matmul_all_reduce(x, weight.t(), "sum", self.group_name, self.partials)
        return y if self.bias is None else y + _Replicated.apply(self.bias, self.group_name).to(y.dtype)


class Features(nn.Module):
    """Takes the place of a linear layer that is part of a joint layer: selects its features of the joint output."""

    def __init__(self, first: int, count: int) -> None:
        super().__init__()
        self.first, self.count = first, count

    def forward(self, x: Tensor) -> Tensor:
        return x.narrow(-1, self.first, self.count)

    def extra_repr(self) -> str:
        return f"{self.first} to {self.first + self.count - 1}"


class InterleavedFeatures(nn.Module):
    """Takes the place of gate or up, which are interleaved in a joint layer: selects its features of the joint output, as
    [..., features / 8, 8], without a copy."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, 2, interleaved_rows)).select(-2, self.index)

    def extra_repr(self) -> str:
        return "up" if self.index else "gate"


class VocabularyEmbedding(nn.Module):
    """An embedding of which each rank has some of the vocabulary. Token ids and the
    embedded tokens are the same at all ranks."""

    def __init__(self, embedding: nn.Embedding, weight: nn.Parameter, layout: Layout) -> None:
        super().__init__()
        self.weight, self.layout = weight, layout
        self.num_embeddings, self.embedding_dim = embedding.num_embeddings, embedding.embedding_dim
        self.first = layout.rank * weight.shape[0]
        pad = embedding.padding_idx
        self.padding_idx = None if pad is None or not 0 <= pad - self.first < weight.shape[0] else pad - self.first
        scale = getattr(embedding, "embed_scale", None)  # Gemma
        self.register_buffer("embed_scale", None if scale is None else scale.detach().clone(), persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        rows = input_ids - self.first
        own = (rows >= 0) & (rows < self.weight.shape[0])
        known = (input_ids >= 0) & (input_ids < self.num_embeddings)
        rows = rows.masked_fill(known & ~own, 0)  # ids outside of the vocabulary stay, so torch refuses them
        x = nn.functional.embedding(rows, self.weight, self.padding_idx) * own.unsqueeze(-1)
        x = _Sum.apply(x, self.layout.group_name)
        return x if self.embed_scale is None else x * self.embed_scale.to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} of {self.num_embeddings}, {self.embedding_dim}"


class VocabularyHead(nn.Module):
    """A linear layer of which each rank has some of the output features. Input and output are the same at all ranks."""

    def __init__(self, out_features: int, weight: nn.Parameter, layout: Layout) -> None:
        super().__init__()
        self.weight, self.layout = weight, layout
        self.in_features, self.out_features = weight.shape[1], out_features

    def forward(self, x: Tensor) -> Tensor:
        return _Product.apply(*in_autocast(x, self.weight), self.layout).narrow(-1, 0, self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features} -> {self.weight.shape[0]} of {self.out_features}"


def _parameter(values: Tensor, like: Tensor) -> nn.Parameter:
    return nn.Parameter(values, requires_grad=like.requires_grad)


def _equal(name: str, extent: int, layout: Layout, dim: int = 0) -> Shard:
    """Divides `extent` into equal parts, in rank order."""
    width = extent // layout.ranks
    return Shard(name, dim, extent, width, tuple(rank * width for rank in range(layout.ranks)))


def _vocabulary(name: str, extent: int, layout: Layout) -> Shard:
    """Divides the vocabulary into parts of a multiple of 8 rows, as matmul_all_scatter does; the last ranks may have fewer."""
    width = -(-extent // layout.ranks)
    width = -(-width // 8) * 8 if layout.ranks > 1 else width
    return Shard(name, 0, extent, width, tuple(min(rank * width, extent) for rank in range(layout.ranks)))


def _heads(name: str, extent: int, head: int, layout: Layout) -> Shard:
    """Equal numbers of heads or, if there are fewer heads than ranks, one head for each rank, which the next ranks
    share."""
    count = extent // head
    if count % layout.ranks == 0:
        return _equal(name, extent, layout)
    return Shard(name, 0, extent, head, tuple(rank * count // layout.ranks * head for rank in range(layout.ranks)))


def _column(linears: Sequence[nn.Linear], shards: Sequence[Shard], layout: Layout, interleaved: bool = False) -> SplitColumnLinear:
    width = sum(shard.width for shard in shards)
    first = linears[0]
    column = SplitColumnLinear(first.in_features, width * layout.ranks, first.bias is not None, group=layout.group_name,
                               device="meta")
    for name in ("weight", "bias"):
        if getattr(first, name) is not None:
            parts = [shard.part(getattr(linear, name).detach(), layout.rank)
                     for linear, shard in zip(linears, shards, strict=True)]
            joint = interleave_gate_up(*parts) if interleaved else torch.cat(parts)
            setattr(column, name, _parameter(joint, getattr(first, name)))
    column.interleaved = interleaved
    return column.train(first.training)


def _row(linear: nn.Linear, shard: Shard, layout: Layout) -> SplitRowLinear:
    row = SplitRowLinear(linear.in_features, linear.out_features, linear.bias is not None, group=layout.group_name,
                         device="meta")
    row.layout = layout
    row.weight = _parameter(shard.part(linear.weight.detach(), layout.rank), linear.weight)
    row.bias = linear.bias
    return row.train(linear.training)


def _before_attention(attention: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Replaces the hidden states by the joint queries, keys and values of all tokens, from which `Features` select."""
    x = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
    y = attention.qkv_proj(x)
    if x.dim() == 2:
        length = (kwargs["position_embeddings"] if "position_embeddings" in kwargs else args[1])[0].shape[-2]
        batch = y.shape[0] // length
        y = y[: batch * length].view(batch, length, -1)
    if "hidden_states" in kwargs:
        return args, {**kwargs, "hidden_states": y}
    return (y, *args[1:]), kwargs


def _before_mlp(mlp: nn.Module, args: tuple[Any, ...]) -> Tensor:
    return mlp.gate_up_proj(args[0])


def _before_down(down: nn.Module, args: tuple[Any, ...]) -> Tensor:
    return args[0].flatten(-2)


def _before_layers(layout: Layout, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    weight = layer.input_layernorm.weight
    if weight.requires_grad and torch.is_grad_enabled() and not torch.compiler.is_compiling() and not weight._backward_hooks:
        raise Unsupported(f"rank {layout.rank}: the parameters of a model that parallelize has split were replaced, as "
                          "copy.deepcopy and FSDP do; those of norms have no hooks that sum their gradients over the ranks. Split "
                          "a new model, or call this one within torch.no_grad()")
    if "hidden_states" in kwargs:
        return args, {**kwargs, "hidden_states": _Entrance.apply(kwargs["hidden_states"], layout)}
    return (_Entrance.apply(args[0], layout), *args[1:]), kwargs


def _after_layers(layout: Layout, base: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    """Hidden states that are returned have all tokens, and are the same at all ranks."""
    tokens = next(t for t in (kwargs.get("input_ids"), kwargs.get("inputs_embeds"), *args) if t is not None)
    shape = tokens.shape[:2]
    if isinstance(output, tuple):
        return (_Exit.apply(output[0], shape, layout), *output[1:])
    output.last_hidden_state = _Exit.apply(output.last_hidden_state, shape, layout)
    if getattr(output, "hidden_states", None) is not None:
        output.hidden_states = tuple(_Exit.apply(x, shape, layout) for x in output.hidden_states)
    return output


def _sum_over_ranks(group_name: str, grad: Tensor) -> Tensor:
    return _ops.all_reduce(grad, "sum", group_name)


def _sum_of_heads(layout: Layout, shards: Sequence[Shard], grad: Tensor) -> Tensor:
    """The gradient of queries, keys and values, if several ranks have the same keys and values."""
    queries, keys, values = shards
    rest = grad.shape[1:]
    total = grad.new_zeros(keys.extent + values.extent, *rest)
    places = keys.first[layout.rank], keys.extent + values.first[layout.rank]
    own = grad.split([shard.width for shard in shards])
    for place, rows in zip(places, own[1:], strict=True):
        total[place : place + rows.shape[0]] = rows
    total = _ops.all_reduce(total, "sum", layout.group_name)
    return torch.cat([own[0], *(total[place : place + rows.shape[0]] for place, rows in zip(places, own[1:], strict=True))])


def _register_hook(parameter: nn.Parameter, hook: Any) -> None:
    """Registers a hook for the gradient of `parameter`, also if the parameter requires no gradient yet."""
    needed = parameter.requires_grad
    parameter.requires_grad_(True).register_hook(hook)
    parameter.requires_grad_(needed)


def _decoder(model: nn.Module) -> nn.Module:
    """The part of a model that has the layers. Refuses models of other families."""
    config = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    named = f"{type(model).__name__} (model_type {kind!r})"
    if kind not in families:
        why = "it has experts, which parallelize does not split; " if getattr(config, "num_experts", None) or getattr(
            config, "num_local_experts", None) else ""
        raise Unsupported(f"parallelize: {named}: {why}families are {', '.join(families)}")
    if hasattr(model, "untax_plan"):
        raise InvalidArgument(f"parallelize: {named} is split already, over {plan_of(model).layout.ranks} ranks")
    if getattr(model, "_tp_size", None) not in (None, 1):
        raise InvalidArgument(f"parallelize: {named} is split already by transformers, over {model._tp_size} ranks; load it "
                              "without tp_plan")
    base = getattr(model, model.base_model_prefix, model)
    if not all(hasattr(base, part) for part in ("layers", "embed_tokens", "norm")):
        raise Unsupported(f"parallelize: {named}: {type(base).__name__} has no parts layers, embed_tokens and norm")
    return base


def _require_split(base: nn.Module, head: Any, layout: Layout) -> None:
    """Refuses extents that the ranks cannot share, before the model is changed."""

    def refuse(where: str, why: str) -> None:
        raise Unsupported(f"parallelize, rank {layout.rank} of {layout.ranks}: {where}: {why}")

    def require_linear(where: str, owner: nn.Module, names: Sequence[str]) -> None:
        for name in names:
            linear = getattr(owner, name, None)
            if type(linear) is not nn.Linear:
                refuse(f"{where}.{name}", f"it is a {type(linear).__name__}, and only torch.nn.Linear is split, neither "
                                          "quantized layers nor adapters")

    for index, layer in enumerate(base.layers):
        where = f"layer {index}"
        attention, mlp = layer.self_attn, layer.mlp
        require_linear(f"{where}, self_attn", attention, ("q_proj", "k_proj", "v_proj", "o_proj"))
        require_linear(f"{where}, mlp", mlp, ("gate_proj", "up_proj", "down_proj"))
        heads = attention.q_proj.out_features // attention.head_dim
        kv_heads = attention.k_proj.out_features // attention.head_dim
        if heads % layout.ranks != 0:
            refuse(where, f"{heads} attention heads, which {layout.ranks} ranks cannot share equally")
        if kv_heads % layout.ranks != 0 and layout.ranks % kv_heads != 0:
            refuse(where, f"{kv_heads} key/value heads, which {layout.ranks} ranks can neither share equally nor have one each")
        if mlp.down_proj.in_features % layout.ranks != 0:
            refuse(where, f"an MLP of {mlp.down_proj.in_features} features, which {layout.ranks} ranks cannot share equally")
    if head is not None and (type(head) is not nn.Linear or head.bias is not None):
        refuse("lm_head", f"it is {head}, and only a torch.nn.Linear without bias is split")
    for name, parameter in base.named_parameters():
        if parameter.is_meta:
            refuse(name, "it is on the meta device, without values; load the model first")
    if not isinstance(base.embed_tokens, nn.Embedding):
        refuse("embed_tokens", f"it is a {type(base.embed_tokens).__name__}, and only torch.nn.Embedding is split")


def _require_alike(model: nn.Module, layout: Layout) -> None:
    """Refuses ranks with different models, compared by a sum of a few elements of each parameter, or with other
    options."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    sums = torch.stack([parameter.detach().flatten()[:64].float().sum() for parameter in parameters])
    sums = torch.cat([sums, sums.new_tensor([layout.split_from])])
    gathered = _ops.all_gather(sums, 0, layout.group_name).view(layout.ranks, -1)
    different = ((gathered != gathered[0]) & ~(gathered.isnan() & gathered[0].isnan())).nonzero()
    if different.numel() > 0:
        rank, index = different[0].tolist()
        where = f"parallelize, rank {layout.rank} of {layout.ranks}"
        if index == len(names):
            split_from = [int(row[-1]) for row in (gathered[rank], gathered[0])]
            raise InvalidArgument(f"{where}: split_from is {split_from[0]} at rank {rank}, and {split_from[1]} at rank 0")
        raise InvalidArgument(f"{where}: {names[index]} has other values at rank {rank} than at rank 0; all ranks need the same "
                              "weights: load them, or set the same seed before the model is made")


def _split_attention(attention: nn.Module, where: str, layout: Layout, shards: dict[str, tuple[Shard, ...]]) -> None:
    linears = attention.q_proj, attention.k_proj, attention.v_proj
    head = attention.head_dim
    kinds = [(name, _heads(f"{where}.{name}", linear.out_features, head, layout))
             for name, linear in zip(("q_proj", "k_proj", "v_proj"), linears, strict=True)]
    attention.qkv_proj = _column(linears, [shard for _, shard in kinds], layout)
    first = 0
    for name, shard in kinds:
        setattr(attention, name, Features(first, shard.width))
        first += shard.width
    for name, parameter in attention.qkv_proj.named_parameters():
        named = tuple(shard._replace(name=f"{shard.name}.{name}") for _, shard in kinds)
        shards[f"{where}.qkv_proj.{name}"] = named
        if named[1].width * layout.ranks != named[1].extent:  # several ranks have the same keys and values
            _register_hook(parameter, partial(_sum_of_heads, layout, named))
    attention.num_key_value_groups = kinds[0][1].width // kinds[1][1].width
    _split_row(attention, "o_proj", where, layout, shards)
    attention.register_forward_pre_hook(_before_attention, with_kwargs=True)


def _split_row(owner: nn.Module, name: str, where: str, layout: Layout, shards: dict[str, tuple[Shard, ...]]) -> None:
    linear = getattr(owner, name)
    shard = _equal(f"{where}.{name}.weight", linear.in_features, layout, 1)
    setattr(owner, name, _row(linear, shard, layout))
    shards[shard.name] = (shard,)


def _split_mlp(mlp: nn.Module, where: str, layout: Layout, shards: dict[str, tuple[Shard, ...]]) -> None:
    kinds = [_equal(f"{where}.{name}", mlp.gate_proj.out_features, layout) for name in ("gate_proj", "up_proj")]
    width = kinds[0].width
    interleaved = width % interleaved_rows == 0
    mlp.gate_up_proj = _column((mlp.gate_proj, mlp.up_proj), kinds, layout, interleaved)
    if interleaved:
        mlp.gate_proj, mlp.up_proj = InterleavedFeatures(0), InterleavedFeatures(1)
    else:
        mlp.gate_proj, mlp.up_proj = Features(0, width), Features(width, width)
    for name, _ in mlp.gate_up_proj.named_parameters():
        shards[f"{where}.gate_up_proj.{name}"] = tuple(shard._replace(name=f"{shard.name}.{name}") for shard in kinds)
    _split_row(mlp, "down_proj", where, layout, shards)
    if interleaved:
        mlp.down_proj.register_forward_pre_hook(_before_down)
    mlp.register_forward_pre_hook(_before_mlp)


def parallelize(model: _Model, group: Any = None, *, split_from: int = 1024, graphs: bool = True,
                decoder: bool | None = None, invariant: bool = False) -> _Model:
    """Collective. Makes a model of transformers tensor-parallel, in place, and returns it. Every rank of `group` (a process group
    of torch, its name, a world, or None for the default group) has the whole model, with the same weights.

    The model may be a causal language model or its base, of the families Gemma (1, 2, and 3 for text), Llama, Mistral, Qwen2 and
    Qwen3. Each rank keeps its attention heads, its features of the MLPs and its part of the vocabulary; key/value heads that are
    fewer than ranks are at several of them. Norms are whole at each rank. Move the model to the GPU afterwards, or before.

    All ranks pass the same inputs, and get the same outputs: `input_ids` [batch, length], logits [batch, length, vocabulary],
    a loss. Calls of `split_from` tokens and more split the tokens over the ranks between the layers, calls of fewer, such as
    those of decoding, do not. With `decoder`, `generate` runs prompts and steps on `untax.Decoder`, which is made of the model's own
    weights by the first such call; None stands for True on GPUs. With `invariant` it computes the logits of a sequence with the same
    bits alone and in any batch, so that greedy tokens do not depend on the batch, and takes longer. Other steps of decoding are a chain of untax's operators, with
    attention for static caches, and with `graphs` on a GPU replays of a CUDA graph. The logger `untax.torch` says once what is left
    to transformers, and why.
    If all ranks call `backward` on the same loss, each parameter of a rank gets the gradient that its part has in one process;
    `clip_grad_norm_` takes the place of torch's. Attention weights that are returned are those of this rank's heads.

    `full_state_dict` and `load_full_state_dict` give and take the state dict of the model as it was.

    `Unsupported` for other families, quantized layers, and extents that the ranks cannot share; `InvalidArgument` for a model
    that is split already, and if ranks have different weights. The model is then unchanged."""
    base = _decoder(model)
    group_name = name_of(group)
    layout = Layout(group_name, ranks_of(group_name), rank_of(group_name), split_from)
    head = getattr(model, "lm_head", None)
    _require_split(base, head, layout)
    _require_alike(model, layout)
    names = tuple(model.state_dict())
    places = {module: name for name, module in model.named_modules()}
    shards: dict[str, tuple[Shard, ...]] = {}
    for layer in base.layers:
        _split_attention(layer.self_attn, places[layer.self_attn], layout, shards)
        _split_mlp(layer.mlp, places[layer.mlp], layout, shards)
    inside = [parameter for part in (base.layers, base.norm) for module in part.modules()
              if not isinstance(module, (SplitColumnLinear, SplitRowLinear)) for parameter in module.parameters(recurse=False)]
    for parameter in inside:
        _register_hook(parameter, partial(_sum_over_ranks, group_name))
    _split_vocabulary(model, base, head, places, layout, shards)
    base.layers[0].register_forward_pre_hook(partial(_before_layers, layout), with_kwargs=True)
    base.register_forward_hook(partial(_after_layers, layout), with_kwargs=True)
    if hasattr(model, "_get_static_cache_init_shape"):  # transformers calls this to make static caches for prompts in chunks
        attention = base.layers[0].self_attn
        model._get_static_cache_init_shape = partial(tuple, (attention.v_proj.count // attention.head_dim, attention.head_dim))
    interleaved = frozenset(f"{places[layer.mlp]}.gate_up_proj.{name}" for layer in base.layers
                            if layer.mlp.gate_up_proj.interleaved for name, _ in layer.mlp.gate_up_proj.named_parameters())
    model.untax_plan = Plan(layout, names, shards, interleaved)
    install_chain(layout, model, base, graphs)
    if model is not base and hasattr(type(model), "_sample"):
        install_generation(Generation(layout, model, base, decoder, invariant))
    return model


def _split_vocabulary(model: nn.Module, base: nn.Module, head: Any, places: dict[nn.Module, str], layout: Layout,
                      shards: dict[str, tuple[Shard, ...]]) -> None:
    embedding = base.embed_tokens
    shard = _vocabulary(f"{places[embedding]}.weight", embedding.num_embeddings, layout)
    weight = _parameter(shard.part(embedding.weight.detach(), layout.rank), embedding.weight)
    base.embed_tokens = VocabularyEmbedding(embedding, weight, layout).train(embedding.training)
    shards[shard.name] = (shard,)
    if head is None:
        return
    if head.weight is not embedding.weight:  # otherwise the two are tied
        shard = _vocabulary(shard.name, head.out_features, layout)
        weight = _parameter(shard.part(head.weight.detach(), layout.rank), head.weight)
    model.lm_head = VocabularyHead(head.out_features, weight, layout).train(head.training)
    shards["lm_head.weight"] = (shard._replace(name="lm_head.weight"),)
