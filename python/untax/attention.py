"""Attention: of one token of each sequence, over all ranks, and of all queries of some sequences; and the step before
it, RoPE and append."""

from __future__ import annotations

from typing import Any

from .planned import Operator
from .types import address_of, as_operand, empty_like, stream_number, type_name
from .world import World

__all__ = ["FlashAttention", "FlashDecode", "MergePartialAttention", "RopeAppend"]


class FlashDecode(Operator):
    """Attention of one token of each sequence to keys and values that are sharded over the ranks by position.

    `q`, `out`: [batch * heads, head_dim], the same at every rank. `keys_`, `values`: [batch * keys, kv_heads *
    head_dim], or [pages * page_size, ...]. `lengths`: [batch] of int32, the number of keys that this rank holds of each
    sequence. `page_table`: [batch, ceil(keys / page_size)] of int32, where there are pages.
    """

    name = "flash_decode"
    operands = ("q", "keys", "values", "out")

    def __init__(self, world: World, *, batch: int, heads: int, kv_heads: int, head_dim: int, keys: int,
                 page_size: int = 0, pages: int = 0, dtype: Any = "bf16", partials: Any = "fp32", scale: float = 0,
                 logit_cap: float = 0, **options: Any) -> None:
        super().__init__(world, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=head_dim, keys=keys,
                         page_size=page_size, pages=pages, type=type_name(dtype), partials=type_name(partials), scale=float(scale),
                         logit_cap=float(logit_cap), **options)
        pages_of_one = -(-keys // page_size) if page_size else 0
        self._numbers = (batch, pages_of_one)

    def run(self, q: Any, keys: Any, values: Any, lengths: Any, out: Any = None, *, page_table: Any = None,
            stream: Any = None) -> Any:
        """One run. Returns `out`, which is made like `q` if it is not given."""
        if out is None:
            out = empty_like(q, self.operand("out")[0])
        self._core.run_decode(as_operand(q), as_operand(keys), as_operand(values), as_operand(lengths),
                              as_operand(page_table), as_operand(out), self._numbers, stream_number(stream))
        return out


class MergePartialAttention(Operator):
    """Exchange and merge of partial results, which any attention kernel computed from the keys of each rank.

    `partial_o`: [tokens * heads, head_dim]. `partial_lse`: [tokens, heads] of fp32, natural logarithms of the sums of
    exponentials, or with `log2` those to base 2; -inf for an empty part, whose row may then hold any values. Every rank
    gets all heads, or with `own_heads` its ceil(heads / W), the last ones fewer: `out` of [tokens * own, head_dim] and
    `lse` of [tokens, own], zeros and -inf where all parts are empty. With `varying_tokens` a run has any number of
    tokens up to that, the same at all ranks. On GPUs `head_dim` has to be a multiple of 8, of 4 in fp32.
    """

    name = "merge_partial_attention"
    operands = ("partial_o", "partial_lse", "out", "lse")

    def __init__(self, world: World, *, tokens: int, heads: int, head_dim: int, dtype: Any = "bf16",
                 own_heads: bool = False, log2: bool = False, **options: Any) -> None:
        super().__init__(world, tokens=tokens, heads=heads, head_dim=head_dim, type=type_name(dtype),
                         own_heads=bool(own_heads), log2=bool(log2), **options)

    def run(self, partial_o: Any, partial_lse: Any, out: Any = None, lse: Any = None, *,
            stream: Any = None) -> tuple[Any, Any]:
        """One run. Returns (out, lse), which are made like the parts if they are not given."""
        tokens, (own, dim) = partial_lse.shape[0], (self.operand("lse")[0][1], self.operand("out")[0][1])
        if out is None:
            out = empty_like(partial_o, (tokens * own, dim))
        if lse is None:
            lse = empty_like(partial_lse, (tokens, own))
        self._core.run({"partial_o": as_operand(partial_o), "partial_lse": as_operand(partial_lse)},
                       {"out": as_operand(out), "lse": as_operand(lse)}, stream_number(stream))
        return out, lse


class FlashAttention(Operator):
    """Attention of all queries of some sequences to the keys of theirs (prefill, forward): nothing is sent.

    `q`, `out`: [rows of queries, heads * head_dim], `keys`, `values`: [rows of keys, kv_heads * head_dim]; a row holds
    all heads of a token. Sequences have `queries` and `keys` rows each, one behind the other, or rows begins[b] to
    begins[b + 1] - 1 of `query_begins` and `key_begins`, [batch + 1] of int32. Causal: the last query sees all keys. A
    query that sees none gets zeros, and -inf as its logarithm. `order` is that of blocks on GPUs: "automatic",
    "head_first", "block_first", "group_first" or "sections". Neither planning nor running is collective.
    """

    name = "flash_attention"
    operands = ("q", "keys", "values", "out")

    def __init__(self, world: World, *, batch: int, heads: int, kv_heads: int, head_dim: int, queries: int, keys: int,
                 causal: bool = False, dtype: Any = "bf16", scale: float = 0, order: str = "automatic") -> None:
        super().__init__(world, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=head_dim, queries=queries, keys=keys,
                         type=type_name(dtype), causal=bool(causal), scale=float(scale), order=order)
        self._begins, self._heads = batch + 1, heads

    def run(self, q: Any, keys: Any, values: Any, out: Any = None, *, log_sums: Any = None, query_begins: Any = None,
            key_begins: Any = None, stream: Any = None) -> Any:
        """One run. Returns `out`, which is made like `q` if it is not given.

        With `log_sums`, [rows of queries, heads] of fp32, or True for a new one, it returns (out, log_sums): the natural
        logarithms of the sums of exponentials, with which results over parts of the keys are merged.
        """
        if out is None:
            out = empty_like(q, tuple(q.shape))
        shape = (q.shape[0], self._heads)
        if log_sums is True:
            log_sums = empty_like(q, shape, "float32")
        address = 0
        if log_sums is not None:
            address = address_of("log_sums", log_sums, shape, ("fp32",), self.world.device >= 0)
        begins = as_operand(query_begins), as_operand(key_begins), self._begins
        self._core.run_attention(as_operand(q), as_operand(keys), as_operand(values), as_operand(out), begins, address,
                                 stream_number(stream))
        return out if log_sums is None else (out, log_sums)


class RopeAppend(Operator):
    """The step after the projection to queries, keys and values: bias, norm of heads, RoPE, append to a cache. Nothing
    is sent.

    `qkv`: [tokens, (heads + 2 * kv_heads) * head_dim]; a row has the heads of q, of k, of v. `rotations`: [positions,
    rotated] of fp32, the cosines of the rotated / 2 angles of a position, then the sines. `position`: [tokens] of int32.
    `keys_`, `values`: the cache, [batch * keys, kv_heads * head_dim], or [pages * page_size, ...]; rows of the tokens are
    written. `sequence`: [tokens] of int32; without it token t belongs to sequence t. `page_table`: [batch, ceil(keys /
    page_size)] of int32, where there are pages. With `varying_tokens` a run has any number of tokens up to that. Neither
    planning nor running is collective. A token that is out of range is an error on hosts; on GPUs it gets zeros as its q.
    """

    name = "rope_append"
    operands = ("qkv", "rotations", "position", "keys", "values", "q")

    def __init__(self, world: World, *, tokens: int, heads: int, kv_heads: int, head_dim: int, batch: int, keys: int,
                 positions: int, rotated: int = 0, page_size: int = 0, pages: int = 0, dtype: Any = "bf16",
                 interleaved: bool = False, bias: bool = False, norm: bool = False, norm_offset: float = 0,
                 epsilon: float = 0, **options: Any) -> None:
        super().__init__(world, tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=head_dim, rotated=rotated,
                         batch=batch, keys=keys, page_size=page_size, pages=pages, positions=positions,
                         type=type_name(dtype), interleaved=bool(interleaved), bias=bool(bias), norm=bool(norm),
                         norm_offset=float(norm_offset), epsilon=float(epsilon), **options)

    def run(self, qkv: Any, rotations: Any, position: Any, keys: Any, values: Any, q: Any = None, *, bias: Any = None,
            q_norm: Any = None, k_norm: Any = None, sequence: Any = None, page_table: Any = None, stream: Any = None) -> Any:
        """One run. Returns `q`, which is made like `qkv` if it is not given."""
        if q is None:
            q = empty_like(qkv, (qkv.shape[0], self.operand("q")[0][1]))
        read = {"qkv": qkv, "rotations": rotations, "position": position, "bias": bias, "q_norm": q_norm, "k_norm": k_norm,
                "sequence": sequence, "page_table": page_table}
        self._core.run({name: as_operand(operand) for name, operand in read.items() if operand is not None},
                       {"keys": as_operand(keys), "values": as_operand(values), "q": as_operand(q)}, stream_number(stream))
        return q
