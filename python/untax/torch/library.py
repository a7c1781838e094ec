"""The operators as torch knows them: `torch.ops.untax`, with fake implementations and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument
from ..operators import kinds, own_kinds
from . import attention, derivatives, shapes, tensors
from .groups import rank_of, ranks_of
from .named import calls_of

_library = torch.library.Library("untax", "DEF")
_fakes: dict[str, Callable[..., Any]] = {}


def _define(schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> None:
    name = schema.partition("(")[0]
    _library.define(schema)
    for device in ("CPU", "CUDA"):
        _library.impl(name, run, device)
    torch.library.register_fake(f"untax::{name}", fake, lib=_library)
    _fakes[name] = fake


def _with_dim(shape: Any, dim: int, extent: Any) -> list[Any]:
    changed = list(shape)
    changed[dim] = extent
    return changed


def _placed(x: Tensor, shape: list[Any], dim: int) -> Tensor:
    """An empty tensor whose dimension `dim` is the outermost in memory, as results that were moved there are."""
    dim %= len(shape)
    front = [shape[dim], *shape[:dim], *shape[dim + 1:]]
    return x.new_empty(front).movedim(0, dim)


def _fake_gather(x: Tensor, dim: int, group_name: str) -> Tensor:
    dim = shapes.dimension("dim", dim, x, "x")
    return _placed(x, _with_dim(x.shape, dim, x.shape[dim] * ranks_of(group_name)), dim)


def _fake_scatter(x: Tensor, reduce_op: str, dim: int, group_name: str) -> Tensor:
    dim = shapes.dimension("dim", dim, x, "x")
    return _placed(x, _with_dim(x.shape, dim, shapes.share_of(x.shape[dim], dim, ranks_of(group_name))), dim)


def _fake_exchange(x: Tensor, group_name: str) -> Tensor:
    shapes.dimension("dim", 0, x, "x")
    shapes.share_of(x.shape[0], 0, ranks_of(group_name))
    return _like(x)


def _fake_gather_matmul(a: Tensor, b: Tensor, gather_dim: int, group_name: str, partials: str | None = None,
                        invariant: bool = False) -> Tensor:
    shapes.partials_of(a, partials)
    gather_dim, ranks = shapes.dimension("gather_dim", gather_dim, a), ranks_of(group_name)
    last = gather_dim == a.dim() - 1
    shape = [*a.shape[:-1], shapes.columns_of(a, b, a.shape[-1] * (ranks if last else 1))]
    return a.new_empty(shape) if last else _placed(a, _with_dim(shape, gather_dim, shape[gather_dim] * ranks), gather_dim)


def _fake_matmul_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str,
                         partials: str | None = None, invariant: bool = False) -> Tensor:
    shapes.partials_of(a, partials)
    shapes.require_sum(reduce_op)
    scatter_dim = shapes.dimension("scatter_dim", scatter_dim, a)
    shape = [*a.shape[:-1], shapes.columns_of(a, b, a.shape[-1])]
    shape[scatter_dim] = shapes.share_of(shape[scatter_dim], scatter_dim, ranks_of(group_name))
    if scatter_dim == a.dim() - 1:
        rows = a.shape[:-1].numel()
        return a.new_empty((shape[-1], rows)).t().reshape(shape)
    return _placed(a, shape, scatter_dim)


def _fake_all_reduced(a: Tensor, b: Tensor, reduce_op: str, group_name: str, partials: str | None = None,
                      invariant: bool = False) -> Tensor:
    shapes.partials_of(a, partials)
    return a.new_empty((*a.shape[:-1], shapes.columns_of(a, b, shapes.last_of("a", a))))


def _fake_all_scattered(a: Tensor, b: Tensor, group_name: str, invariant: bool = False) -> Tensor:
    return a.new_empty((*a.shape[:-1], shapes.columns_of(a, b, shapes.last_of("a", a)) * ranks_of(group_name)))


def _fake_attention(q: Tensor, keys: Tensor, values: Tensor, causal: bool = False,
                    scale: float = 0.0) -> tuple[Tensor, Tensor]:
    return _like(q), q.new_empty(q.shape[:3], dtype=torch.float32)


def _fake_merged(partial_o: Tensor, partial_lse: Tensor, group_name: str, own_heads: bool = False) -> tuple[Tensor, Tensor]:
    shape = attention.merged_shape(partial_lse, own_heads, ranks_of(group_name), rank_of(group_name))
    return partial_o.new_empty((*shape, partial_o.shape[-1])), partial_lse.new_empty(shape, dtype=torch.float32)


def _like(x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _define_out(schema: str, run: Callable[..., Any], *outs: str) -> None:
    """The variant that writes into what is given for `outs`, which is not allocated where it lies as the result does.

    It returns nothing: torch.compile takes no operator, but its own, whose result is an argument."""
    name, _, inputs = schema.removesuffix(")").partition("(")
    names = [given.split("=")[0].split()[-1] for given in inputs.split(", ")]
    given = ", ".join(f"Tensor({letter}!) {out}" for letter, out in zip("ab", outs, strict=False))
    _library.define(f"{name}.out({inputs}, *, {given}) -> ()")

    def refuse_gradients(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not torch.is_grad_enabled():
            return
        for t in (*named.values(), *arguments):
            if isinstance(t, Tensor) and t.requires_grad:
                given = next(name for name, other in (*named.items(), *zip(names, arguments, strict=False)) if other is t)
                raise InvalidArgument(f"{given} requires a gradient, and what is written into a given tensor has no "
                                      "derivative; give one that requires none, or call this within torch.no_grad()")

    def write(*arguments: Any, **named: Any) -> None:
        refuse_gradients(arguments, named)
        run(*arguments, **named)
        for out in outs:  # torch counts versions, to refuse derivatives that need what was overwritten
            if not named[out].is_inference():  # which has no version
                torch.autograd.graph.increment_version(named[out])

    def fake(*arguments: Any, **named: Any) -> None:
        refuse_gradients(arguments, named)
        made = _fakes[name](*arguments, **{key: value for key, value in named.items() if key not in outs})
        for one, out in zip([made] if len(outs) == 1 else made, outs, strict=True):
            shapes.fits(one, tuple(one.shape), named[out])

    for device in ("CPU", "CUDA"):
        _library.impl(f"{name}.out", write, device)
    torch.library.register_fake(f"untax::{name}.out", fake, lib=_library)


# Schema and results, the implementation, the fake one, and the names of what `out` variants are given.
_operators: tuple[tuple[str, Callable[..., Any], Callable[..., Any], tuple[str, ...]], ...] = (
    ("all_gather(Tensor x, int dim, str group_name)", tensors.all_gather, _fake_gather, ("out",)),
    ("reduce_scatter(Tensor x, str reduce_op, int dim, str group_name)", tensors.reduce_scatter, _fake_scatter, ("out",)),
    ("all_reduce(Tensor x, str reduce_op, str group_name)", tensors.all_reduce, _like, ("out",)),
    ("all_to_all(Tensor x, str group_name)", tensors.all_to_all, _fake_exchange, ("out",)),
    ("broadcast(Tensor x, int root, str group_name)", tensors.broadcast, _like, ("out",)),
    ("all_gather_matmul(Tensor a, Tensor b, int gather_dim, str group_name, str? partials=None, bool invariant=False)",
     tensors.all_gather_matmul, _fake_gather_matmul, ("out",)),
    ("matmul_reduce_scatter(Tensor a, Tensor b, str reduce_op, int scatter_dim, str group_name, str? partials=None, "
     "bool invariant=False)", tensors.matmul_reduce_scatter, _fake_matmul_scatter, ("out",)),
    ("matmul_all_reduce(Tensor a, Tensor b, str reduce_op, str group_name, str? partials=None, bool invariant=False)",
     tensors.matmul_all_reduce, _fake_all_reduced, ("out",)),
    ("matmul_all_scatter(Tensor a, Tensor b, str group_name, bool invariant=False)", tensors.matmul_all_scatter,
     _fake_all_scattered, ("out",)),
    ("all_reduce_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps, str group_name)",
     tensors.all_reduce_rms_norm, lambda x, residual, weight, eps, group_name: (_like(x), _like(x)), ("normed", "total")),
    ("flash_decode(Tensor q, Tensor keys, Tensor values, Tensor lengths, str group_name, float scale=0.0)",
     attention.flash_decode, _like, ("out",)),
    ("flash_attention(Tensor q, Tensor keys, Tensor values, bool causal=False, float scale=0.0)", attention.flash_attention,
     _fake_attention, ("out", "log_sums")),
    ("merge_partial_attention(Tensor partial_o, Tensor partial_lse, str group_name, bool own_heads=False)",
     attention.merge_partial_attention, _fake_merged, ("o", "lse")),
)

for _schema, _run, _fake, _outs in (*_operators, *calls_of([name for name in kinds if name not in own_kinds])):
    _define(f"{_schema} -> {'Tensor' if len(_outs) == 1 else '(Tensor, Tensor)'}", _run, _fake)
    _define_out(_schema, _run, *_outs)
derivatives.register(_library)
