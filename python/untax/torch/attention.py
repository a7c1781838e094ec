"""The operators of attention on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import aligned, engine_for, has_run, operand_of, rows_of, stream_of
from .define import operator
from .groups import Engine, engine_alone, name_of
from .shapes import allocate_result, deliver, require_alike, require_dims, require_shape

__all__ = ["decode_attention", "flash_attention", "flash_decode", "merge_partial_attention"]
_ops = torch.ops.untax


def _require_keys(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, page_table: Tensor | None) -> None:
    require_dims(3, q=q)
    require_dims(4, keys=keys, values=values)
    batch, _, dim = q.shape
    require_alike(q, keys=keys, values=values)
    places, capacity, kv_heads, _ = keys.shape
    if page_table is None:
        places = batch
    else:
        require_dims(2, page_table=page_table)
        require_shape("page_table", page_table, batch, page_table.shape[1])
    for name, t in (("keys", keys), ("values", values)):
        require_shape(name, t, places, capacity, kv_heads, dim)
    require_shape("lengths", lengths, batch)


def _decode(engine: Engine, q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, page_table: Tensor | None, scale: float,
            logit_cap: float, result: Tensor) -> None:
    """Attention of one token of each sequence to the keys that all ranks of `engine` have."""
    batch, heads, dim = q.shape
    places, capacity, kv_heads, _ = keys.shape
    pages, paging = 0, {}
    lengths = lengths.to(q.device, torch.int32).contiguous()
    if page_table is not None:
        page_table = page_table.to(q.device, torch.int32).contiguous()
        pages, paging = page_table.shape[1], {"page_size": capacity, "pages": places}
        capacity *= pages
    op = engine.planned("flash_decode", batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim, keys=capacity, dtype=q.dtype,
                        scale=scale, logit_cap=logit_cap, **paging)
    rows = rows_of(q.reshape(-1, dim), dense=True)
    k, v = (rows_of(t.reshape(-1, kv_heads * dim)) for t in (keys, values))
    op._core.run_decode(operand_of(rows), operand_of(k), operand_of(v), lengths.data_ptr(),
                        None if page_table is None else page_table.data_ptr(), operand_of(result.view(-1, dim)), (batch, pages),
                        stream_of(q, op.world))


def run_flash_decode(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, group_name: str, scale: float = 0.0,
                     page_table: Tensor | None = None, logit_cap: float = 0.0, *, out: Tensor | None = None) -> Tensor:
    _require_keys(q, keys, values, lengths, page_table)
    engine, result = engine_for(q, group_name), allocate_result(q, tuple(q.shape), 0, out)
    if has_run(engine, q, q.numel(), False):
        _decode(engine, q, keys, values, lengths, page_table, scale, logit_cap, result)
    return deliver(result, out)


@operator(run_flash_decode)
def flash_decode(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, group: Any = None, *, scale: float = 0.0,
                 page_table: Tensor | None = None, logit_cap: float = 0.0) -> Tensor:
    """Attention of q, [batch, heads, dim], the same at all ranks, to the keys and values that all ranks have together. A rank
    has [batch, keys, kv_heads, dim], or pages as `decode_attention` has them, of which the first `lengths` of a sequence count.
    All ranks have room for equally many keys of a sequence. scale 0 is 1 / sqrt(dim); `logit_cap` is that of `decode_attention`."""
    return _ops.flash_decode(q, keys, values, lengths, name_of(group), scale, page_table, logit_cap)


def run_decode_attention(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, page_table: Tensor | None = None,
                         scale: float = 0.0, logit_cap: float = 0.0, *, out: Tensor | None = None) -> Tensor:
    _require_keys(q, keys, values, lengths, page_table)
    result = allocate_result(q, tuple(q.shape), 0, out)
    if result.numel() > 0:
        _decode(engine_alone(q.device), q, keys, values, lengths, page_table, scale, logit_cap, result)
    return deliver(result, out)


def _fake_decode_attention(q: Tensor, *_: Any) -> Tensor:
    return q.new_empty(q.shape)


@operator(run_decode_attention, fake=_fake_decode_attention)
def decode_attention(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, page_table: Tensor | None = None, *,
                     scale: float = 0.0, logit_cap: float = 0.0) -> Tensor:
    """Attention of one token of each sequence, q of [batch, heads, dim], to the first `lengths` keys of the sequence, each
    process for itself: with the heads of this rank. Keys and values are [batch, keys, kv_heads, dim] or, with `page_table`,
    [batch, pages of a sequence] of int32, pages [pages, page_size, kv_heads, dim]. scale 0 is 1 / sqrt(dim); a logit becomes
    logit_cap * tanh(logit / logit_cap), unless that is 0."""
    return _ops.decode_attention(q, keys, values, lengths, page_table, scale, logit_cap)


def run_flash_attention(q: Tensor, keys: Tensor, values: Tensor, causal: bool = False, scale: float = 0.0, *,
                        out: Tensor | None = None, log_sums: Tensor | None = None) -> tuple[Tensor, Tensor]:
    require_dims(4, q=q, keys=keys, values=values)
    batch, queries, heads, dim = q.shape
    capacity, kv_heads = keys.shape[1], keys.shape[2]
    require_alike(q, keys=keys, values=values)
    for name, t in (("keys", keys), ("values", values)):
        require_shape(name, t, batch, capacity, kv_heads, dim)
    result = allocate_result(q, (batch, queries, heads, dim), 0, out)
    sums = allocate_result(q.new_empty(0, dtype=torch.float32), (batch, queries, heads), 0, log_sums)
    if result.numel() > 0:
        op = engine_alone(q.device).planned("flash_attention", batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim,
                                            queries=queries, keys=capacity, causal=causal, dtype=q.dtype, scale=scale)
        operands = (t.reshape(-1, t.shape[2] * dim) for t in (q, keys, values))
        q, keys, values = (rows_of(t) for t in operands)
        op._core.run_attention(operand_of(q), operand_of(keys), operand_of(values), operand_of(result.view(-1, heads * dim)),
                               (None, None, 0), sums.data_ptr(), stream_of(q, op.world))
    return deliver(result, out), deliver(sums, log_sums)


def _fake_flash_attention(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)


@operator(run_flash_attention, fake=_fake_flash_attention, results=("out", "log_sums"))
def flash_attention(q: Tensor, keys: Tensor, values: Tensor, *, causal: bool = False,
                    scale: float = 0.0) -> tuple[Tensor, Tensor]:
    """(o, lse) of the attention of q, [batch, queries, heads, dim], to keys and values, [batch, keys, kv_heads, dim]. Each
    process computes its own, and sends nothing; lse is the natural logarithm of the sum of exponentials, in fp32, [batch,
    queries, heads]."""
    return _ops.flash_attention(q, keys, values, causal, scale)


def _merged_shape(partial_lse: Tensor, own_heads: bool, ranks: int, rank: int) -> tuple[int, ...]:
    """The shape of the logarithms that a rank gets: with `own_heads` the last dimension is the rank's share."""
    if not own_heads:
        return tuple(partial_lse.shape)
    if partial_lse.dim() == 0:
        raise InvalidArgument("partial_lse has no dimension; with own_heads the last one has to be that of heads")
    heads = partial_lse.shape[-1]
    each = -(-heads // ranks)
    return (*partial_lse.shape[:-1], max(min(each, heads - rank * each), 0))


def run_merge_partial_attention(partial_o: Tensor, partial_lse: Tensor, group_name: str, own_heads: bool = False, *,
                                o: Tensor | None = None, lse: Tensor | None = None) -> tuple[Tensor, Tensor]:
    require_shape("partial_lse", partial_lse, *partial_o.shape[:-1])
    if partial_o.dim() == 0:
        raise InvalidArgument("partial_o has no dimension; the last one has to be that of elements of a head")
    if partial_lse.device != partial_o.device:
        raise InvalidArgument(f"partial_lse is on {partial_lse.device}; it has to be on {partial_o.device}, like partial_o")
    engine = engine_for(partial_o, group_name)
    ranks, dim = engine.world.size, partial_o.shape[-1]
    shape = _merged_shape(partial_lse, own_heads, ranks, engine.world.rank)
    result = allocate_result(partial_o, (*shape, dim), 0, o)
    sums = allocate_result(partial_o.new_empty(0, dtype=torch.float32), shape, 0, lse)
    heads = partial_lse.shape[-1] if partial_lse.dim() > 0 else 1
    if has_run(engine, partial_o, partial_o.numel(), dim * heads > 0):
        _merge(engine, partial_o, partial_lse, own_heads, result, sums)
    return deliver(result, o), deliver(sums, lse)


def _merge(engine: Engine, partial_o: Tensor, partial_lse: Tensor, own_heads: bool, result: Tensor, sums: Tensor) -> None:
    ranks, dim = engine.world.size, partial_o.shape[-1]
    chunk = 16 // partial_o.element_size() if partial_o.is_cuda else 1  # elements that a kernel moves at a time
    width = -(-dim // chunk) * chunk
    heads = partial_lse.shape[-1] if partial_lse.dim() > 0 else 1
    own = sums.shape[-1] if sums.dim() > 0 else 1
    rooms = (1 << 25 if partial_o.is_cuda else 1 << 21) // (ranks * (width + 8))  # rows; these are small beside the heap
    if not own_heads and (partial_o.is_cuda or 64 * heads > rooms):
        heads = own = 1  # rows of all heads are merged in the same way
    tokens = partial_lse.numel() // heads
    capacity = -(-heads // ranks) if own_heads else heads
    at_once = 1 << max(rooms // capacity, 1).bit_length() - 1
    op = engine.planned("merge_partial_attention", at_once, tokens=tokens, heads=heads, head_dim=width,
                        dtype=partial_o.dtype, own_heads=own_heads)
    rows = partial_o.reshape(tokens * heads, dim)
    if width != dim:
        rows = torch.nn.functional.pad(rows, (0, width - dim))
    rows, logarithms = aligned(rows.contiguous()), partial_lse.reshape(tokens, heads).float().contiguous()
    merged = result.view(tokens * own, dim) if width == dim else result.new_empty(tokens * own, width)
    merged_sums = sums.view(tokens, own)
    for begin in range(0, max(tokens, 1), at_once):
        end = min(begin + at_once, tokens)
        op._core.run({"partial_o": operand_of(rows[begin * heads:end * heads]),
                      "partial_lse": operand_of(logarithms[begin:end])},
                     {"out": operand_of(merged[begin * own:end * own]), "lse": operand_of(merged_sums[begin:end])},
                     stream_of(rows, op.world))
    if width != dim:
        result.view(tokens * own, dim).copy_(merged[:, :dim])


@operator(run_merge_partial_attention, results=("o", "lse"))
def merge_partial_attention(partial_o: Tensor, partial_lse: Tensor, group: Any = None, *,
                            own_heads: bool = False) -> tuple[Tensor, Tensor]:
    """Merges partial results that any attention kernel computed from the keys of each rank.

    `partial_o`: [..., heads, head_dim], `partial_lse`: [..., heads], the logarithm of the sum of exponentials, base e,
    -inf or inf where a rank has no key, and then its row of `partial_o` may hold anything. Returns the attention to the
    keys of all ranks, and its lse in fp32; zeros and -inf where no rank has a key. Every rank gets all heads, or with
    `own_heads` its ceil(heads / W) heads, the last ranks fewer or none.
    """
    return _ops.merge_partial_attention(partial_o, partial_lse, name_of(group), own_heads)
