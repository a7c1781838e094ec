"""The operator between the projection to queries, keys and values and attention, on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import aligned, operand_of, rows_of, stream_of
from .define import operator
from .groups import engine_alone
from .shapes import allocate_result, deliver, last_extent, require_alike, require_dims, require_shape

__all__ = ["rope_append"]
_ops = torch.ops.untax
_INT32 = 16  # the number of int32 in the C ABI


def _integers(t: Tensor, like: Tensor) -> tuple[Tensor, tuple[int, int, int, int, int]]:
    t = t.to(like.device, torch.int32).contiguous()
    return t, (t.data_ptr(), 1, t.numel(), 0, _INT32) if t.dim() < 2 else (t.data_ptr(), *t.shape, 0, _INT32)


def _cache_rows(name: str, cache: Tensor) -> Tensor:
    """A cache as a matrix with a row for each key. A cache that cannot be viewed so is refused: a copy would lose the
    written rows."""
    try:
        return cache.view(-1, cache.shape[2] * cache.shape[3])
    except RuntimeError:
        raise InvalidArgument(f"{name} has strides {cache.stride()}; heads of a key have to lie side by side, and keys at equal "
                              "distances") from None


def _result_shape(qkv: Tensor, keys: Tensor) -> tuple[int, ...]:
    require_dims(4, keys=keys)
    kv_heads, dim = keys.shape[2:]
    columns = last_extent("qkv", qkv)
    heads = columns // max(dim, 1) - 2 * kv_heads
    if heads < 1 or (heads + 2 * kv_heads) * dim != columns:
        raise InvalidArgument(f"qkv has rows of {columns}; heads have {dim} elements, and of keys and of values there are "
                              f"{kv_heads}, so it has to be a multiple of {dim} above {2 * kv_heads * dim}")
    return (*qkv.shape[:-1], heads, dim)


def run_rope_append(qkv: Tensor, rotations: Tensor, position: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None = None,
                    q_norm: Tensor | None = None, k_norm: Tensor | None = None, sequence: Tensor | None = None,
                    page_table: Tensor | None = None, interleaved: bool = False, norm_offset: float = 0.0,
                    epsilon: float = 1e-6, *, out: Tensor | None = None) -> Tensor:
    shape = _result_shape(qkv, keys)
    heads, dim = shape[-2:]
    kv_heads = keys.shape[2]
    require_shape("values", values, *keys.shape)
    require_shape("position", position, *qkv.shape[:-1])
    require_dims(2, rotations=rotations)
    if rotations.dtype != torch.float32 or rotations.device != qkv.device:
        raise InvalidArgument(f"rotations is of {rotations.dtype} on {rotations.device}; it has to be of torch.float32 on "
                              f"{qkv.device}")
    if (q_norm is None) != (k_norm is None):
        raise InvalidArgument("one of q_norm and k_norm is None; pass both or none")
    if sequence is not None:
        require_shape("sequence", sequence, *position.shape)
    if page_table is not None:
        require_dims(2, page_table=page_table)
    weights = {name: t for name, t in (("bias", bias), ("q_norm", q_norm), ("k_norm", k_norm)) if t is not None}
    for name, t in weights.items():
        require_shape(name, t, qkv.shape[-1] if name == "bias" else dim)
    require_alike(qkv, keys=keys, values=values, **weights)
    result = allocate_result(qkv, shape, 0, out)
    rows = rows_of(qkv.reshape(-1, qkv.shape[-1]))
    if rows.shape[0] == 0:
        return deliver(result, out)
    paged = page_table is not None
    batch, width = (page_table.shape[0], page_table.shape[1] * keys.shape[1]) if paged else keys.shape[:2]
    op = engine_alone(qkv.device).planned(
        "rope_append", tokens=rows.shape[0], heads=heads, kv_heads=kv_heads, head_dim=dim, rotated=rotations.shape[1],
        batch=batch, keys=width, page_size=keys.shape[1] if paged else 0, pages=keys.shape[0] if paged else 0,
        positions=rotations.shape[0], dtype=qkv.dtype, interleaved=interleaved, bias=bias is not None,
        norm=q_norm is not None, norm_offset=norm_offset, epsilon=epsilon)
    tensors = {name: aligned(t.contiguous()) for name, t in (*weights.items(), ("rotations", rotations))}
    integers = {name: _integers(t.reshape(-1) if name != "page_table" else t, qkv) for name, t in
                (("position", position), ("sequence", sequence), ("page_table", page_table)) if t is not None}
    reads = {"qkv": operand_of(rows), **{name: operand_of(t) for name, t in tensors.items()},
             **{name: operand for name, (_, operand) in integers.items()}}
    written = {"keys": _cache_rows("keys", keys), "values": _cache_rows("values", values),
               "q": result.view(-1, heads * dim)}
    op._core.run(reads, {name: operand_of(t) for name, t in written.items()}, stream_of(qkv, op.world))
    return deliver(result, out)


def _fake_rope_append(qkv: Tensor, rotations: Tensor, position: Tensor, keys: Tensor, *_: Any, **_named: Any) -> Tensor:
    return qkv.new_empty(_result_shape(qkv, keys))


@operator(run_rope_append, fake=_fake_rope_append, updated=("keys", "values"))
def rope_append(qkv: Tensor, rotations: Tensor, position: Tensor, keys: Tensor, values: Tensor, *, bias: Tensor | None = None,
                q_norm: Tensor | None = None, k_norm: Tensor | None = None, sequence: Tensor | None = None,
                page_table: Tensor | None = None, interleaved: bool = False, norm_offset: float = 0.0,
                epsilon: float = 1e-06) -> Tensor:
    """The q of attention, [..., heads, dim], from qkv, [..., (heads + 2 kv_heads) dim]; keys and values are appended to a cache,
    [batch, keys, kv_heads, dim], or [pages, page_size, kv_heads, dim] with `page_table`. Each process computes its own, and sends
    nothing. Bias is added first; with `q_norm` and `k_norm`, [dim], heads of q and k are divided by their root mean square
    and multiplied by weight + norm_offset; then the first elements of these heads are rotated. `rotations`: [positions, rotated]
    of fp32, the cosines of the rotated / 2 angles of a position, then the sines. `position` and `sequence`: [...], of each
    token; without `sequence` token t belongs to sequence t."""
    return _ops.rope_append(qkv, rotations, position, keys, values, bias, q_norm, k_norm, sequence, page_table, interleaved,
                            norm_offset, epsilon)
