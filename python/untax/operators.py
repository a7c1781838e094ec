"""The operators and collectives, as objects that are planned once and run many times.

Planning, running and closing are collective: all ranks do the same in the same order. On GPUs runs take place in the
order of the calls, also on several streams and in graphs (docs/design.md, "The order of runs"). Arrays are anything with
`__dlpack__`, a buffer or `__array_interface__`: numpy, torch, cupy. In a world of the host they lie in host memory, and
a run returns when its result is complete; in a world of GPUs they lie on the rank's GPU, and with `stream` (an address,
or a stream of torch or cupy) a run only launches. With `varying_rows=True` (of GEMM operators and AllReduceNorm) or
`varying_count=True` (of collectives) the plan is for a capacity: a run has any number of rows, or elements, up to it, the
same at all ranks, and its arrays have that many. All of them raise `InvalidArgument` before anything moves, and
`Timeout`, `PeerLost` or `Aborted` when a wait fails.
"""

from __future__ import annotations

from typing import Any

from . import _core, attention, layers
from .attention import *
from .errors import InvalidArgument
from .layers import *
from .named import class_of
from .planned import Field, Operator, fields, kinds
from .types import address_of, as_operand, empty_like, number_of, stream_number, type_name, type_names
from .world import Memory, World

__all__ = ["AllGather", "AllGatherGemm", "AllReduce", "AllReduceNorm", "AllToAll", "Broadcast", "GemmAllReduce", "GemmAllScatter",
           "GemmReduceScatter", "Operator", "ReduceScatter"]
__all__ += attention.__all__
__all__ += layers.__all__


class _Gemm(Operator):
    operands = ("a", "weights", "c")

    def run(self, a: Any, weights: Any, out: Any = None, *, stream: Any = None) -> Any:
        """One run. Returns `out`, which is made like `a` if it is not given."""
        if out is None:
            out = empty_like(a, self._result_shape(a) if self._varies else self.operand("c")[0])
        self._core.run_gemm(as_operand(a), as_operand(weights), _symmetric(out), stream_number(stream))
        return out

    def _result_shape(self, a: Any) -> tuple[int, int]:
        """The shape of c for this a, if the number of rows varies."""
        return a.shape[0], self.operand("c")[0][1]


class _OwnResult(_Gemm):
    """An operator with a C of its own."""

    own_result: Any = None  #: a tensor of torch on `result`, which untax.torch keeps here

    @property
    def result(self) -> Memory:
        """The operator's own C."""
        address, rows, cols, number = self._core.result()
        return Memory(self, address, (rows, cols), type_names[number])


class AllGatherGemm(_Gemm):
    """C_r [m, n] = gather(A) [m, k] x B_r [n, k]^T.

    A is sharded: shards have ceil(m / W) rows or, with `gather="k"`, of ceil(k / W) columns rounded up to a multiple of
    8; the last ones are shorter. `a` is this rank's shard, `weights` its own [n, k], `c` is [m, n].
    """

    name = "all_gather_gemm"

    def __init__(self, world: World, m: int, n: int, k: int, dtype: Any = "bf16", *, gather: str = "rows",
                 **options: Any) -> None:
        super().__init__(world, m=m, n=n, k=k, type=type_name(dtype),
                         gather_k=number_of("gather", gather, ("rows", "k")), **options)

    def _result_shape(self, a: Any) -> tuple[int, int]:
        raise InvalidArgument("all_gather_gemm with varying_rows needs out, whose rows are the number of rows of the run")


class GemmAllScatter(_OwnResult):
    """C [m, n] = A [m, k] x B [n, k]^T, complete at every rank.

    A is the same everywhere; B is sharded: shards have ceil(n / W) rows rounded up to a multiple of 8. C lies in
    symmetric memory: the operator's own, `result`, or memory of `World.allocate`. Peers write into it from the call of
    `run` to its return.
    """

    name = "gemm_all_scatter"

    def __init__(self, world: World, m: int, n: int, k: int, dtype: Any = "bf16", **options: Any) -> None:
        super().__init__(world, m=m, n=n, k=k, type=type_name(dtype), **options)

    def run(self, a: Any, weights: Any, out: Any = None, *, stream: Any = None) -> Any:
        """One run. Returns `out`, or `result` if it is not given, of which a run with fewer rows fills the first."""
        if out is not None:
            return super().run(a, weights, out, stream=stream)
        self._core.run_gemm(as_operand(a), as_operand(weights), None, stream_number(stream))
        return self.result


def _shard(extent: int, world: World) -> int:
    """The size of this rank's shard of `extent`."""
    full = -(-extent // world.size)
    return max(0, min(full, extent - world.rank * full))


def _count(a: Any) -> int:
    count = 1
    for extent in a.shape:
        count *= extent
    return count


def _symmetric(out: Any) -> Any:
    return out._rows() if isinstance(out, Memory) else as_operand(out)


class GemmReduceScatter(_Gemm):
    """Rows of C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T, summed in fp32 in rank order.

    k, of all ranks together, is sharded: shards have ceil(k / W) rounded up to a multiple of 8; a rank ends with its
    ceil(m / W) rows. Partial results are rounded to elements of `partials`, sent, and added in fp32: None is the type of
    the problem; "fp32" sends twice the bytes and rounds nothing on the way. On GPUs the problem is not of fp32, and n and
    k are multiples of 8.
    """

    name = "gemm_reduce_scatter"

    def __init__(self, world: World, m: int, n: int, k: int, dtype: Any = "bf16", *, partials: Any = None,
                 **options: Any) -> None:
        super().__init__(world, m=m, n=n, k=k, type=type_name(dtype), partials=partials and type_name(partials), **options)

    def _result_shape(self, a: Any) -> tuple[int, int]:
        return _shard(a.shape[0], self.world), self.operand("c")[0][1]


class GemmAllReduce(_OwnResult):
    """C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T, complete at every rank, summed in fp32 in rank order.

    k, of all ranks together, is sharded: shards have ceil(k / W) rounded up to a multiple of 8. `partials`
    is as of `GemmReduceScatter`. With `phases=1` every rank adds all rows; with `phases=2` owners add their rows and send
    the sum to the other ranks; 0 chooses. C lies anywhere; in the operator's own, `result`, two phases save a copy. On GPUs the problem is not of fp32, and n and k are multiples of 8.
    """

    name = "gemm_all_reduce"

    def __init__(self, world: World, m: int, n: int, k: int, dtype: Any = "bf16", *, partials: Any = None,
                 **options: Any) -> None:
        super().__init__(world, m=m, n=n, k=k, type=type_name(dtype), partials=partials and type_name(partials), **options)


class AllReduceNorm(Operator):
    """x = sum over ranks of `a` + residual, out = x / sqrt(mean of squares of a row + epsilon) * weight.

    Both are [tokens, hidden], complete at every rank, with the same bits. `output` says what `out` is: "same", elements
    of the problem's type; "e4m3", bytes of fp8 that were divided by `scale`; or "e4m3_per_token", with a scale for each
    row that comes out, too. With `phases=1` every rank adds and normalises all rows; with `phases=2` owners add and
    normalise their rows, and send both results to the other ranks; 0 chooses. On GPUs there is no fp32, hidden is a
    multiple of 8, and everything lies at multiples of 16 bytes.
    """

    name = "all_reduce_norm"
    operands = ("in", "residual", "weight", "x")

    def __init__(self, world: World, tokens: int, hidden: int, dtype: Any = "bf16", *, output: str = "same",
                 epsilon: float = 1e-5, **options: Any) -> None:
        number = number_of("output", output, ("same", "e4m3", "e4m3_per_token"))
        super().__init__(world, tokens=tokens, hidden=hidden, type=type_name(dtype), output=number, epsilon=float(epsilon), **options)
        self._shape, self._output = (tokens, hidden), number

    def run(self, a: Any, residual: Any, weight: Any, x: Any = None, out: Any = None, *, scales: Any = None,
            scale: float = 1.0, stream: Any = None) -> Any:
        """One run. Returns (out, x), or (out, x, scales) if the output has scales. Results that are not passed are allocated
        like `a`. `x` may be `residual`."""
        shape = (a.shape[0], self._shape[1]) if self._varies else self._shape
        x = empty_like(a, shape) if x is None else x
        fp8 = "float8_e4m3fn" if hasattr(a, "data_ptr") else "uint8"
        if out is None:
            out = empty_like(a, shape, fp8 if self._output else None)
        kinds = ("uint8", "float8_e4m3fn") if self._output else (self.operand("x")[1],)
        on_gpu = self.world.device >= 0
        addresses = [address_of("out", out, shape, kinds, on_gpu), 0]
        if self._output == 2:
            scales = empty_like(a, shape[:1], "float32") if scales is None else scales
            addresses[1] = address_of("scales", scales, shape[:1], ("fp32",), on_gpu)
        self._core.run_norm(as_operand(a), as_operand(residual), as_operand(weight), as_operand(x),
                            (*addresses, float(scale)), stream_number(stream))
        return (out, x, scales) if self._output == 2 else (out, x)


class _Collective(Operator):
    operands = ("in", "out")

    def run(self, a: Any, out: Any = None, *, stream: Any = None) -> Any:
        """One run. Elements lie side by side; any shape will do. Returns `out`, which is made like `a` if it is not
        given."""
        if out is None:
            out = empty_like(a, (self._result_count(a) if self._varies else self.operand("out")[0][1],))
        self._core.run_collective(as_operand(a), as_operand(out), stream_number(stream))
        return out

    def _result_count(self, a: Any) -> int:
        """The number of elements of the result for this a, if the count varies."""
        return _count(a)


class AllGather(_Collective):
    """Every rank ends with the shards of all: `count` elements, of which a rank has ceil(count / W)."""

    name = "all_gather"

    def __init__(self, world: World, count: int, dtype: Any = "bf16", **options: Any) -> None:
        super().__init__(world, count=count, type=type_name(dtype), **options)

    def _result_count(self, a: Any) -> int:
        raise InvalidArgument("all_gather with varying_count needs out, whose elements are the count of the run")


class ReduceScatter(_Collective):
    """Rank r ends with shard r of the sum, "max" or "min" of all inputs of `count` elements."""

    name = "reduce_scatter"

    def __init__(self, world: World, count: int, dtype: Any = "bf16", *, reduction: str = "sum",
                 **options: Any) -> None:
        super().__init__(world, count=count, type=type_name(dtype), reduction=reduction, **options)

    def _result_count(self, a: Any) -> int:
        return _shard(_count(a), self.world)


class AllReduce(_Collective):
    """Every rank ends with the sum, "max" or "min" of all inputs of `count` elements: the same bits everywhere."""

    name = "all_reduce"

    def __init__(self, world: World, count: int, dtype: Any = "bf16", *, reduction: str = "sum",
                 **options: Any) -> None:
        super().__init__(world, count=count, type=type_name(dtype), reduction=reduction, **options)


class AllToAll(_Collective):
    """Every rank has a part for every rank, in rank order, and ends with those that the ranks have for it.

    Parts have `count` elements each or, with `counts`, part (from, to) has counts[from * W + to]; the numbers are the
    same at all ranks.
    """

    name = "all_to_all"

    def __init__(self, world: World, count: int = 0, dtype: Any = "bf16", *, counts: list[int] | None = None,
                 **options: Any) -> None:
        super().__init__(world, count=count, type=type_name(dtype), counts=counts and [int(c) for c in counts], **options)


class Broadcast(_Collective):
    """Every rank ends with the `count` elements of rank `root`; only rank `root` reads `a`."""

    name = "broadcast"

    def __init__(self, world: World, count: int, dtype: Any = "bf16", *, root: int = 0, **options: Any) -> None:
        super().__init__(world, count=count, type=type_name(dtype), root=root, **options)


own_kinds = tuple(kinds)  #: those with a class in this module
for _name in _core.operator_names():
    if _name not in kinds:
        class_of(_name)  # planned and run by the names that the library describes
