"""The operators on tensors: shapes of torch become problems of untax, and its results tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from .calls import Call, aligned, is_aligned, operand_of, rows_of, run_collective, run_gemm, stream_of
from .groups import Engine, engine_alone, engine_of


def as_matrix(t: Tensor) -> Tensor:
    """As a matrix, of all dimensions but the last in one."""
    return t if t.dim() == 2 else t.reshape(-1, t.shape[-1])


def _to_front(t: Tensor, dim: int) -> Tensor:
    return t if dim == 0 else t.movedim(dim, 0)


def _from_front(t: Tensor, dim: int) -> Tensor:
    return t if dim == 0 else t.movedim(0, dim)


def _require_alike(first: Tensor, **others: Tensor) -> None:
    """Refuses operands of other devices, whose addresses say nothing, and of other types."""
    for name, t in others.items():
        if t.device != first.device or t.dtype != first.dtype:
            raise InvalidArgument(f"{name} is of {t.dtype} on {t.device}; it has to be of {first.dtype} on {first.device}, "
                                  "like the first operand")


def _require_shape(name: str, t: Tensor, *shape: int) -> None:
    if tuple(t.shape) != shape:
        raise InvalidArgument(f"{name} is {tuple(t.shape)}; it has to be {shape}")


def share_of(extent: int, dim: int, ranks: int) -> int:
    """What each rank has of a dimension. All ranks find the same, so that nobody waits for one that was refused."""
    if extent % ranks != 0:
        raise InvalidArgument(f"dimension {dim} has an extent of {extent}, which {ranks} ranks cannot share equally")
    return extent // ranks


def dimension(name: str, dim: int, t: Tensor) -> int:
    """`dim` as counted from the first. One that `t` has not is refused: a remainder would be another dimension."""
    if not -t.dim() <= dim < t.dim():
        right = f"it has to be from {-t.dim()} to {t.dim() - 1}" if t.dim() > 0 else "there is none"
        raise InvalidArgument(f"{name} is {dim}; {right}, since a has {t.dim()} dimensions")
    return dim % t.dim()


def require_sum(reduce_op: str) -> None:
    """Refuses what the kernels that multiply and scatter do not reduce by."""
    if reduce_op not in ("sum", "avg"):
        raise InvalidArgument(f"reduce_op is {reduce_op!r}; it can be sum, avg")


def columns_of(a: Tensor, b: Tensor, k: int) -> int:
    """How many columns b of [k, n] has."""
    _require_alike(a, b=b)
    if b.dim() != 2 or b.shape[0] != k:
        raise InvalidArgument(f"b is {tuple(b.shape)}; it has to be a matrix with {k} rows")
    return b.shape[1]


def kernels_lack(t: Tensor, *extents: int) -> str:
    """Why kernels that multiply, add or normalise cannot take a tensor of a GPU; empty if they can, and on hosts. The
    extents are those that have to be multiples of 8."""
    if not t.is_cuda:
        return ""
    if t.dtype == torch.float32:
        return "kernels have no torch.float32"
    odd = [extent for extent in extents if extent % 8 != 0]
    return f"kernels need multiples of 8, and there is {odd[0]}" if odd else ""


def _engine(t: Tensor, group_name: str) -> Engine:
    return engine_of(group_name, "cuda", t.get_device()) if t.is_cuda else engine_of(group_name, t.device.type)


def _room(like: Tensor, shape: tuple[int, ...], dim: int, out: Tensor | None) -> Tensor:
    """Where a result with `dim` outermost in memory is made: in `out` if that lies so, else anew."""
    if out is not None:
        lying = out.movedim(dim, 0) if out.dim() == len(shape) > 0 else out
        fits(like, shape, lying)
        if lying.is_contiguous() and is_aligned(lying):
            return lying
    return like.new_empty(shape)


def fits(like: Tensor, shape: tuple[int, ...], out: Tensor) -> None:
    if tuple(out.shape) != shape or out.dtype != like.dtype or out.device != like.device:
        raise InvalidArgument(f"out is {tuple(out.shape)} of {out.dtype} on {out.device}, in the order of memory; it has "
                              f"to be {tuple(shape)} of {like.dtype} on {like.device}")


def _handed(made: Tensor, out: Tensor | None) -> Tensor:
    """The result, in `out` if there is one."""
    if out is None:
        return made
    return out if made.data_ptr() == out.data_ptr() else out.copy_(made)


def all_gather(x: Tensor, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(x, group_name)
    what = "all_gather", dim
    if out is None and (made := engine.known.again(what, x)) is not None:
        return made
    front = _to_front(x, dim).contiguous()
    made = _room(x, (front.shape[0] * engine.world.size, *front.shape[1:]), dim, out)
    if made.numel() > 0:
        call = Call(engine, what, (x,)) if dim == 0 and out is None else None
        run_collective(engine.planned("all_gather", count=made.numel(), dtype=x.dtype), front, made, call)
    return _handed(_from_front(made, dim), out)


def reduce_scatter(x: Tensor, reduce_op: str, dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(x, group_name)
    ranks = engine.world.size
    what = "reduce_scatter", reduce_op, dim
    if out is None and (made := engine.known.again(what, x)) is not None:
        return made
    front = _to_front(x, dim).contiguous()
    made = _room(x, (share_of(front.shape[0], dim, ranks), *front.shape[1:]), dim, out)
    if made.numel() > 0:
        call = Call(engine, what, (x,)) if dim == 0 and out is None and reduce_op != "avg" else None
        op = engine.planned("reduce_scatter", count=front.numel(), dtype=x.dtype, reduction=_reduction(reduce_op))
        run_collective(op, front, made, call)
    return _handed(_from_front(_averaged(made, reduce_op, ranks), dim), out)


def all_reduce(x: Tensor, reduce_op: str, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(x, group_name)
    what = "all_reduce", reduce_op
    if out is None and (made := engine.known.again(what, x)) is not None:
        return made
    made = _room(x, tuple(x.shape), 0, out)
    if made.numel() > 0:
        call = Call(engine, what, (x,)) if out is None and reduce_op != "avg" else None
        op = engine.planned("all_reduce", count=x.numel(), dtype=x.dtype, reduction=_reduction(reduce_op))
        run_collective(op, x.contiguous(), made, call)
    return _handed(_averaged(made, reduce_op, engine.world.size), out)


def all_to_all(x: Tensor, group_name: str, *, out: Tensor | None = None) -> Tensor:
    """The parts of the first dimension, equally many rows for each rank."""
    engine = _engine(x, group_name)
    rows = share_of(x.shape[0], 0, engine.world.size)
    made = _room(x, tuple(x.shape), 0, out)
    if made.numel() > 0:
        run_collective(engine.planned("all_to_all", count=rows * x[0].numel(), dtype=x.dtype), x.contiguous(), made)
    return _handed(made, out)


def broadcast(x: Tensor, root: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(x, group_name)
    made = _room(x, tuple(x.shape), 0, out)
    if made.numel() > 0:
        op = engine.planned("broadcast", count=x.numel(), dtype=x.dtype, root=root)
        run_collective(op, x.contiguous() if engine.world.rank == root else None, made)
    return _handed(made, out)


def all_gather_matmul(a: Tensor, b: Tensor, gather_dim: int, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(a, group_name)
    what = "all_gather_matmul", gather_dim
    if out is None and (made := engine.known.again(what, a, b)) is not None:
        return made
    ranks, gather_dim = engine.world.size, dimension("gather_dim", gather_dim, a)
    n = columns_of(a, b, a.shape[-1] * (ranks if gather_dim == a.dim() - 1 else 1))
    if gather_dim == a.dim() - 1:
        if out is not None:
            fits(a, (*a.shape[:-1], n), out)
        if a.shape[-1] % 8 != 0 and ranks > 1:  # shards of k begin at multiples of 8
            return _handed(torch.matmul(all_gather(a, gather_dim, group_name), b), out)
        made = _room(a, (*a.shape[:-1], n), 0, out)
        flat = as_matrix(a)
        m, k, gather = flat.shape[0], flat.shape[1] * ranks, "k"
    else:
        front = _to_front(a, gather_dim)
        made = _room(a, (front.shape[0] * ranks, *front.shape[1:-1], n), gather_dim, out)
        flat = as_matrix(front)
        m, k, gather = flat.shape[0] * ranks, flat.shape[1], "rows"
    if k == 0:
        made.zero_()
    elif made.numel() > 0:
        call = Call(engine, what, (a, b)) if gather_dim == 0 and gather == "rows" and out is None else None
        op = engine.planned("all_gather_gemm", m=m, n=n, k=k, dtype=a.dtype, gather=gather)
        run_gemm(op, flat, b.t(), made, call)
    return _handed(made if gather == "k" else _from_front(made, gather_dim), out)


def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str, *,
                          out: Tensor | None = None, partials: Any = "fp32") -> Tensor:
    engine = _engine(a, group_name)
    what = "matmul_reduce_scatter", reduce_op, scatter_dim, partials
    if out is None and (made := engine.known.again(what, a, b)) is not None:
        return made
    require_sum(reduce_op)
    ranks, scatter_dim = engine.world.size, dimension("scatter_dim", scatter_dim, a)
    columns = columns_of(a, b, a.shape[-1])
    # Rows of the product are scattered; columns are rows of the transposed product.
    last = scatter_dim == a.dim() - 1
    share = share_of(columns if last else a.shape[scatter_dim], scatter_dim, ranks)
    front = a if last else _to_front(a, scatter_dim)
    flat = as_matrix(front)
    left, right = (b.t(), flat) if last else (flat, b.t())
    m, n, k = left.shape[0], right.shape[0], left.shape[1]
    left, right = _of_sharded_k(left, right, ranks)
    if last:
        if out is not None:
            fits(a, (*a.shape[:-1], share), out)
        made = a.new_empty((share, n))
    else:
        made = _room(a, (share, *front.shape[1:-1], n), scatter_dim, out)
    if k == 0:
        made.zero_()
    elif m * n > 0:
        plain = scatter_dim == 0 and not last and out is None and reduce_op == "sum"
        call = Call(engine, what, (a, b)) if plain else None
        op = engine.planned("gemm_reduce_scatter", m=m, n=n, k=left.shape[1] * ranks, dtype=a.dtype,
                            partials=partials)
        run_gemm(op, left, right, made, call)
    _averaged(made, reduce_op, ranks)
    if last:
        return _handed(made.t().reshape(*a.shape[:-1], share), out)
    return _handed(_from_front(made, scatter_dim), out)


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str, *, out: Tensor | None = None) -> Tensor:
    engine = _engine(a, group_name)
    what = "matmul_all_reduce", reduce_op
    if out is None and (made := engine.known.again(what, a, b)) is not None:
        return made
    n = columns_of(a, b, a.shape[-1])
    if reduce_op not in ("sum", "avg") or kernels_lack(a, *b.shape):  # for which gemm_all_reduce is not there
        return all_reduce(torch.matmul(a, b), reduce_op, group_name, out=out)
    ranks = engine.world.size
    flat, right = _of_sharded_k(as_matrix(a), b.t(), ranks)
    made = _room(a, (*a.shape[:-1], n), 0, out)
    if a.shape[-1] == 0:
        made.zero_()
    elif made.numel() > 0:
        call = Call(engine, what, (a, b)) if out is None and reduce_op == "sum" else None
        op = engine.planned("gemm_all_reduce", m=flat.shape[0], n=n, k=flat.shape[1] * ranks, dtype=a.dtype)
        run_gemm(op, flat, right, made, call)
    return _handed(_averaged(made, reduce_op, ranks), out)


def matmul_all_scatter(a: Tensor, b: Tensor, group_name: str, *, out: Tensor | None = None) -> Tensor:
    n, engine = columns_of(a, b, a.shape[-1]), _engine(a, group_name)
    made = _room(a, (*a.shape[:-1], n * engine.world.size), 0, out)
    # A torch tensor on the symmetric C of a GPU nobody has tried; shards begin at multiples of 8.
    if a.is_cuda or n % 8 != 0:
        made.copy_(all_gather(torch.matmul(a, b), a.dim() - 1, group_name))
    elif a.shape[-1] == 0:
        made.zero_()
    elif made.numel() > 0:
        flat, result = as_matrix(a), made.view(-1, made.shape[-1])
        op = engine.planned("gemm_all_scatter", m=flat.shape[0], n=result.shape[1], k=flat.shape[1], dtype=a.dtype)
        flat, weights = rows_of(flat), rows_of(b.t())
        op._core.run_gemm(operand_of(flat), operand_of(weights), None, stream_of(a, op.world))
        result.copy_(op.result.torch()[: result.shape[0]])
    return _handed(made, out)


def all_reduce_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, group_name: str, *,
                        normed: Tensor | None = None, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
    hidden, shape = x.shape[-1], tuple(x.shape)
    _require_alike(x, residual=residual, weight=weight)
    _require_shape("residual", residual, *shape)
    _require_shape("weight", weight, hidden)
    made = _room(x, shape, 0, normed), _room(x, shape, 0, total)
    if hidden > 16384 or kernels_lack(x, hidden):  # for which all_reduce_norm is not there
        torch.add(all_reduce(x, "sum", group_name), residual, out=made[1])
        made[0].copy_(torch.nn.functional.rms_norm(made[1], (hidden,), weight, eps))
    elif x.numel() > 0:
        # The library takes an epsilon of 0 for none given, and puts its own there; so the least normal number stands for 0.
        least = torch.finfo(torch.float32).tiny
        op = _engine(x, group_name).planned("all_reduce_norm", tokens=x.numel() // hidden, hidden=hidden, dtype=x.dtype,
                                            epsilon=least if 0 <= eps < least else eps)
        parts, residual = (aligned(t.reshape(-1, hidden).contiguous()) for t in (x, residual))
        weight = aligned(weight.contiguous())
        op._core.run_norm(operand_of(parts), operand_of(residual), operand_of(weight), operand_of(made[1].view(-1, hidden)),
                          (made[0].data_ptr(), 0, 1.0), stream_of(x, op.world))
    return _handed(made[0], normed), _handed(made[1], total)


def _of_sharded_k(left: Tensor, right: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """Operands of which each rank has a shard of k, which begins at a multiple of 8."""
    k = left.shape[1]
    rounded = -(-k // 8) * 8 if ranks > 1 else k
    if rounded == k:
        return left, right
    return (torch.nn.functional.pad(left, (0, rounded - k)), torch.nn.functional.pad(right, (0, rounded - k)))


def flash_decode(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, group_name: str, scale: float = 0.0, *,
                 out: Tensor | None = None) -> Tensor:
    batch, heads, dim = q.shape
    held, kv_heads = keys.shape[1], keys.shape[2]
    _require_alike(q, keys=keys, values=values)
    for name, t in (("keys", keys), ("values", values)):
        _require_shape(name, t, batch, held, kv_heads, dim)
    _require_shape("lengths", lengths, batch)
    op = _engine(q, group_name).planned("flash_decode", batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim,
                                        keys=held, dtype=q.dtype, scale=scale)
    made = _room(q, (batch, heads, dim), 0, out)
    rows = q.reshape(-1, dim).contiguous()
    k, v = (t.reshape(-1, kv_heads * dim).contiguous() for t in (keys, values))
    lengths = lengths.to(q.device, torch.int32).contiguous()
    op._core.run_decode(operand_of(rows), operand_of(k), operand_of(v), lengths.data_ptr(), None, operand_of(made.view(-1, dim)),
                        (batch, 0), stream_of(q, op.world))
    return _handed(made, out)


def flash_attention(q: Tensor, keys: Tensor, values: Tensor, causal: bool = False, scale: float = 0.0, *,
                    out: Tensor | None = None, log_sums: Tensor | None = None) -> tuple[Tensor, Tensor]:
    batch, queries, heads, dim = q.shape
    held, kv_heads = keys.shape[1], keys.shape[2]
    _require_alike(q, keys=keys, values=values)
    for name, t in (("keys", keys), ("values", values)):
        _require_shape(name, t, batch, held, kv_heads, dim)
    made = _room(q, (batch, queries, heads, dim), 0, out)
    sums = _room(q.new_empty(0, dtype=torch.float32), (batch, queries, heads), 0, log_sums)
    if made.numel() > 0:
        op = engine_alone(q.device).planned("flash_attention", batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim,
                                            queries=queries, keys=held, causal=causal, dtype=q.dtype, scale=scale)
        operands = (t.reshape(-1, t.shape[2] * dim) for t in (q, keys, values))
        q, keys, values = (rows_of(t) for t in operands)
        op._core.run_attention(operand_of(q), operand_of(keys), operand_of(values), operand_of(made.view(-1, heads * dim)),
                               (None, None, 0), sums.data_ptr(), stream_of(q, op.world))
    return _handed(made, out), _handed(sums, log_sums)


def merged_shape(partial_lse: Tensor, own_heads: bool, ranks: int, rank: int) -> tuple[int, ...]:
    """Of the logarithms that a rank gets: with `own_heads` of its share of the last dimension."""
    if not own_heads:
        return tuple(partial_lse.shape)
    if partial_lse.dim() == 0:
        raise InvalidArgument("partial_lse has no dimension; with own_heads the last one has to be that of heads")
    heads = partial_lse.shape[-1]
    each = -(-heads // ranks)
    return (*partial_lse.shape[:-1], max(min(each, heads - rank * each), 0))


def merge_partial_attention(partial_o: Tensor, partial_lse: Tensor, group_name: str, own_heads: bool = False, *,
                            o: Tensor | None = None, lse: Tensor | None = None) -> tuple[Tensor, Tensor]:
    _require_shape("partial_lse", partial_lse, *partial_o.shape[:-1])
    if partial_lse.device != partial_o.device:
        raise InvalidArgument(f"partial_lse is on {partial_lse.device}; it has to be on {partial_o.device}, like partial_o")
    engine = _engine(partial_o, group_name)
    ranks, dim = engine.world.size, partial_o.shape[-1]
    shape = merged_shape(partial_lse, own_heads, ranks, engine.world.rank)
    made, sums = _room(partial_o, (*shape, dim), 0, o), _room(partial_o.new_empty(0, dtype=torch.float32), shape, 0, lse)
    if partial_o.numel() > 0:
        _merge(engine, partial_o, partial_lse, own_heads, made, sums)
    return _handed(made, o), _handed(sums, lse)


def _merge(engine: Engine, partial_o: Tensor, partial_lse: Tensor, own_heads: bool, made: Tensor, sums: Tensor) -> None:
    ranks, dim = engine.world.size, partial_o.shape[-1]
    chunk = 16 // partial_o.element_size() if partial_o.is_cuda else 1  # which kernels move at a time
    width = -(-dim // chunk) * chunk
    heads = partial_lse.shape[-1] if partial_lse.dim() > 0 else 1
    rooms = (1 << 25 if partial_o.is_cuda else 1 << 21) // (ranks * (width + 8))  # rows, which are small beside the heap
    if not own_heads and (partial_o.is_cuda or 64 * heads > rooms):
        heads = 1  # all rows are alike
    tokens = partial_lse.numel() // heads
    own, held = sums.numel() // tokens, -(-heads // ranks) if own_heads else heads
    at_once = 1 << max(rooms // held, 1).bit_length() - 1
    op = engine.planned("merge_partial_attention", at_once, tokens=tokens, heads=heads, head_dim=width,
                        dtype=partial_o.dtype, own_heads=own_heads)
    rows = partial_o.reshape(-1, dim)
    if width != dim:
        rows = torch.nn.functional.pad(rows, (0, width - dim))
    rows, logarithms = aligned(rows.contiguous()), partial_lse.reshape(tokens, heads).float().contiguous()
    to = made.view(-1, dim) if width == dim else made.new_empty(tokens * own, width)
    sums_to = sums.view(tokens, own)
    for begin in range(0, tokens, at_once):
        end = min(begin + at_once, tokens)
        op._core.run_merge(operand_of(rows[begin * heads:end * heads]), operand_of(logarithms[begin:end]),
                           operand_of(to[begin * own:end * own]), operand_of(sums_to[begin:end]), stream_of(rows, op.world))
    if width != dim:
        made.view(-1, dim).copy_(to[:, :dim])


def _reduction(reduce_op: str) -> str:
    return "sum" if reduce_op == "avg" else reduce_op


def _averaged(out: Tensor, reduce_op: str, ranks: int) -> Tensor:
    return out.div_(ranks) if reduce_op == "avg" else out
