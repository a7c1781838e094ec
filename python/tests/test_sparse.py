"""Products of sparse matrices, given as arrays or as matrices of scipy and torch."""

import numpy as np
import pytest

import untax


def compressed(dense, offset=np.int32, column=np.int32):
    rows, columns = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=dense.shape[0]))])
    return offsets.astype(offset), columns.astype(column), dense[rows, columns], dense.shape


@pytest.fixture
def dense(seed):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(1, 80, 2)
    return np.where(rng.random((rows, cols)) < rng.random(), rng.standard_normal((rows, cols)), 0)


@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("offset, column", [(np.int32, np.int32), (np.int64, np.int64), (np.int64, np.int32)])
def test_products_in_all_ways(dense, value, offset, column):
    dense = dense.astype(value)
    x = np.linspace(-1, 1, dense.shape[1]).astype(value)
    limit = (1e-5 if value is np.float32 else 1e-13) * (np.abs(dense) @ np.abs(x) + 1)
    ways = 0
    for way in untax.spmv_ways():
        if way.startswith("cusparse"):
            with pytest.raises(untax.Unsupported, match=way):
                untax.Spmv(compressed(dense, offset, column), way=way)
            continue
        product = untax.Spmv(compressed(dense, offset, column), way=way, threads=3)
        assert (np.abs(product(x) - dense @ x) <= limit).all(), way
        y = np.ones(dense.shape[0], value)
        assert product.run(x, y, alpha=2, beta=-1) is y
        assert (np.abs(y - (2 * dense @ x - 1)) <= 4 * limit).all(), way
        ways += 1
    assert ways >= 10 and product.setup_seconds >= 0


@pytest.mark.parametrize("wrong, text", [
    (lambda o, c, v, s: (o[:-1], c, v, s), "3 offsets for 3 rows"),
    (lambda o, c, v, s: (o, c[:-1], v, s), "3 columns and 4 values"),
    (lambda o, c, v, s: (o, c[:-1], v[:-1], s), "count 4 elements"),
    (lambda o, c, v, s: (o, c, v, (3, 2)), "column 2"),
    (lambda o, c, v, s: (o, c.astype(np.int64) + 2**32, v, s), f"column {2**32}"),
    (lambda o, c, v, s: (o, c.astype(np.int16), v, s), "columns have to be int32 or int64"),
    (lambda o, c, v, s: (o.astype(np.uint32), c, v, s), "offsets have to be int32 or int64"),
    (lambda o, c, v, s: (o, c, v.astype(np.float16), s), "values have to be float32 or float64"),
    (lambda o, c, v, s: (o, c, v.reshape(2, 2), s), "values has 2 dimensions"),
    (lambda o, c, v, s: (o, c, v, (3, 3, 1)), "3 dimensions"),
    (lambda o, c, v, s: np.eye(3), "the matrix is a ndarray"),
])
def test_invalid_matrices_are_refused(wrong, text):
    right = compressed(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 4]]))
    with pytest.raises(untax.InvalidArgument) as caught:
        untax.Spmv(wrong(*right))
    assert text in str(caught.value)
    product = untax.Spmv(right, way="ell")
    for call, text in ((lambda: product(np.ones(2)), "2"), (lambda: product(np.ones(3, np.float32)), "type"),
                       (lambda: product(np.ones(3), beta=1), "pass out="),
                       (lambda: product(np.ones(3), np.ones(4)), "4"),
                       (lambda: product(np.ones(6)[::2]), "elements of x lie 2 apart; they have to lie side by side"),
                       (lambda: product(np.ones((3, 1))), "x has 2 dimensions; it has to have 1"),
                       (lambda: untax.Spmv(right, way="magic"), "there is no way 'magic'")):
        with pytest.raises(untax.InvalidArgument, match=text):
            call()


def test_matrices_that_convert_themselves(dense):
    class Like:  # what scipy's matrices have
        def tocsr(self):
            self.indptr, self.indices, self.data, self.shape = compressed(dense)
            return self

    x = np.ones(dense.shape[1])
    assert np.allclose(untax.Spmv(Like())(x), dense @ x)


@pytest.mark.parametrize("form", ["csr_array", "coo_array", "csc_matrix", "lil_array"])
def test_matrices_of_scipy(dense, form):
    sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed; ./test.sh --with-torch installs it")
    x = np.ones(dense.shape[1])
    assert np.allclose(untax.Spmv(getattr(sparse, form)(dense))(x), dense @ x)


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse", "to_sparse_csc"])
def test_matrices_of_torch(dense, layout):
    torch = pytest.importorskip("torch", reason="torch is not installed; ./test.sh --with-torch installs it")
    whole = torch.from_numpy(dense).requires_grad_()
    x = torch.ones(dense.shape[1], dtype=whole.dtype)
    y = untax.Spmv(getattr(whole, layout)())(x)
    assert isinstance(y, torch.Tensor) and torch.allclose(y, whole.detach() @ x)
    with pytest.raises(untax.InvalidArgument, match="to_sparse_csr"):
        untax.Spmv(whole)
