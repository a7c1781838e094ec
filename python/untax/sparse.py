"""Products of sparse matrices and vectors, on threads of this process."""

from __future__ import annotations

from typing import Any

from . import _core
from .errors import InvalidArgument
from .types import as_operand, empty_like


def spmv_ways() -> list[str]:
    """The algorithms of products. Those of cuSPARSE are for GPUs, and refused here."""
    return _core.spmv_ways()


def _compressed(matrix: Any) -> tuple[tuple[Any, Any, Any], tuple[int, int]]:
    """Offsets, columns and values of a matrix of scipy, cupy or torch, or of a tuple of these and a shape."""
    if isinstance(matrix, tuple) and len(matrix) == 4:
        *arrays, shape = matrix
    elif hasattr(matrix, "crow_indices"):  # of torch; dense tensors have this attribute, too
        if str(matrix.layout) == "torch.strided":
            raise InvalidArgument("the matrix is a dense tensor; its to_sparse_csr() makes a sparse one")
        rows = matrix if str(matrix.layout) == "torch.sparse_csr" else matrix.to_sparse_csr()
        arrays, shape = [rows.crow_indices(), rows.col_indices(), rows.values().detach()], rows.shape
    elif hasattr(matrix, "tocsr"):
        rows = matrix.tocsr()
        arrays, shape = [rows.indptr, rows.indices, rows.data], rows.shape
    else:
        raise InvalidArgument(f"the matrix is a {type(matrix).__name__}; it has to be a sparse one of scipy or torch, or "
                              "(offsets, columns, values, (rows, columns))")
    if len(shape) != 2:
        raise InvalidArgument(f"the matrix has {len(shape)} dimensions; it has to have 2")
    offsets, columns, values = (as_operand(array) for array in arrays)
    return (offsets, columns, values), (int(shape[0]), int(shape[1]))


class Spmv:
    """y = alpha A x + beta y for a sparse matrix A, which is made ready once and multiplied many times.

    `matrix` is one of scipy.sparse or a sparse tensor of torch, which are converted to compressed rows if they have
    another format, or (offsets, columns, values, (rows, columns)). Values are float32 or float64, offsets and columns
    int32 or int64; they are read in place, except columns of int64, and must not change. `way`, one of `spmv_ways()`,
    is the algorithm; "csr_merge_path" is not slowed down by single long rows, but its bits depend on the number of
    `threads`, which is 0 for one on each processor. Products are for host memory. Raises InvalidArgument for any other
    matrix, Unsupported if ELL would store more than ten times as many elements.
    """

    def __init__(self, matrix: Any, *, way: str = "csr_merge_path", threads: int = 0) -> None:
        arrays, self.shape = _compressed(matrix)
        self.way = way
        self._core = _core.Spmv(arrays, self.shape, way, threads)

    @property
    def setup_seconds(self) -> float:
        """Seconds that the conversion took."""
        return self._core.setup_seconds

    def run(self, x: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0) -> Any:
        """One product. `x` has as many elements as the matrix has columns, `out` as many as rows, of the type of the
        matrix. Returns `out`, which is made like `x` if it is not given; `out` is not read if beta is 0."""
        if out is None:
            if beta != 0:
                raise InvalidArgument(f"beta is {beta}, and there is no out to multiply by it; pass out=")
            out = empty_like(x, self.shape[:1])
        self._core.run(alpha, as_operand(x), beta, as_operand(out))
        return out

    __call__ = run

    def __repr__(self) -> str:
        return f"<untax.Spmv of {self.shape[0]} x {self.shape[1]}, {self.way}>"
