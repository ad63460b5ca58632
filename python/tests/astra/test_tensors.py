"""What a tensor is: types, promotion, indexing beside NumPy, tensors with other values, refusals, digests."""

import itertools

import numpy as np
import pytest

import astra

A = np.arange(60).reshape(3, 4, 5)
KEYS = [
    0, -1, slice(None, None, -1), slice(3, 0, -2), slice(-2, None), slice(2, 2), slice(5, 1), (1, 2, 3), (..., 0), (None, 0), (0, None, ..., 1),
    (slice(None), [0, 2]), ([0, 2], [1, 1]), ([[0], [2]], [1, 3]), (0, slice(None), [1, 2]), ([0, 1], slice(None), [1, 2]), (slice(None), 1, [1, 2]),
    (slice(None), [1, 2], 1), A > 30, A[:, 0, 0] > 10, (slice(None), A[0, :, 0] > 7), (0, A[0] > 7), (A[:, 0, 0] > 10, [1, 2]), ([0], None, [1, 2]), np.zeros((3, 0), bool), np.zeros(0, bool),
    (..., None), (), np.int64(1), True, False, [], (slice(None), [-1, 0], slice(None, None, 2)), (None, None, [1], ..., slice(1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_keys_select_what_numpy_selects(number):
    key = KEYS[number]
    mine = tuple(astra.asarray(k) if isinstance(k, np.ndarray) else k for k in key) if isinstance(key, tuple) else key
    x = astra.asarray(A)
    numpy_key = np.zeros(0, int) if isinstance(key, list) and not key else key
    got, expected = x[mine], A[numpy_key]
    assert got.shape == expected.shape and got.tolist() == expected.tolist()
    for name, change in (("set", lambda old, v: v), ("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        changed = A.copy()
        changed[numpy_key] = change(changed[numpy_key], 31)
        assert getattr(x.at[mine], name)(31).tolist() == changed.tolist(), name


def test_values_broadcast_where_they_are_put():
    x = astra.zeros((2, 3))
    assert x.at[:, 1].set(astra.tensor([1.0, 2.0])).tolist() == [[0, 1, 0], [0, 2, 0]]
    assert x.at[0].set([1.0, 2.0, 3.0]).tolist() == [[1, 2, 3], [0, 0, 0]]
    assert astra.zeros(3).at[[0, 0, 2]].add(1).tolist() == [2, 0, 1]
    outside = astra.tensor([1, 7]) * 1
    assert astra.zeros(3).at[outside].set(5).tolist() == [0, 5, 0]  # what is computed and outside is dropped
    assert x.at[0, 0].get().item() == 0
    with pytest.raises(astra.DTypeError):
        astra.zeros(3, dtype="int8").at[0].set(np.float32(1.5))


@pytest.mark.parametrize("key, error", [
    (3, IndexError), (-4, IndexError), ((0, 0, 0, 0), IndexError), ([5], IndexError), ("a", IndexError), (1.5, IndexError),
    ((..., ...), IndexError), (np.zeros(2, bool), IndexError), (slice(None, None, 0), ValueError),
])  # fmt: skip
def test_keys_that_are_refused(key, error):
    with pytest.raises(error):
        astra.asarray(A)[key].numpy()


def test_axes_that_are_not_there_diagonals_far_off_and_too_many_axes():
    for wrong in (lambda x: astra.expand_dims(x, 3), lambda x: astra.sum(x, axis=-3)):
        with pytest.raises(IndexError) as caught:
            wrong(astra.ones((2, 2)))
        assert isinstance(caught.value, astra.AxisError) and isinstance(caught.value, ValueError)
    assert astra.eye(2, k=1 << 70).tolist() == astra.triu(astra.ones((2, 2)), k=1 << 63).tolist() == [[0, 0], [0, 0]]
    assert astra.tril(astra.ones((1, 2)), k=1 << 63).tolist() == [[1, 1]]
    deep = astra.ones(1).reshape((1,) * 17)
    assert deep.sum().item() == 1
    with pytest.raises(astra.ShapeError, match="at most 16 axes; this one would have 17"):
        deep.numpy()


def test_nothing_is_done_in_place():
    x = y = astra.tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="at"):
        x[0] = 5
    x += 1
    assert x.tolist() == [2, 3] and y.tolist() == [1, 2]


def test_promotion_is_symmetric_and_numbers_are_weak():
    names = ["bool", "int8", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    for a, b in itertools.combinations(names, 2):
        assert astra.result_type(astra.dtype(a), astra.dtype(b)) is astra.result_type(astra.dtype(b), astra.dtype(a))
    for name in names[1:]:
        x = astra.ones(2, dtype=name)
        assert (x + 1).dtype == name == (1 + x).dtype
        assert (x * 2.0).dtype == (name if x.dtype.kind in "fc" else "float32")
    with pytest.raises(OverflowError):
        astra.ones(2, dtype="int8") + 1000


def test_dtypes_equal_their_names():
    for other in ("f32", "float32", np.float32, np.dtype("float32"), astra.float32):
        assert astra.float32 == other
    for other in ("f64", float, None, 3, [], object()):
        assert astra.float64 != other or other == "f64"
    assert {astra.int8: 1}[astra.int8] == 1
    with pytest.raises(TypeError, match="there is no dtype"):
        astra.zeros(2, dtype="float31")


def test_limits_of_types():
    for name in ("float16", "float32", "float64"):
        mine, theirs = astra.finfo(name), np.finfo(name)
        assert (mine.bits, mine.eps, mine.max, mine.min, mine.smallest_normal) == (
            theirs.bits, float(theirs.eps), float(theirs.max), float(theirs.min), float(theirs.smallest_normal))  # fmt: skip
    for name in ("int8", "uint64"):
        assert (astra.iinfo(name).min, astra.iinfo(name).max) == (np.iinfo(name).min, np.iinfo(name).max)
    assert astra.can_cast("int8", "float16") and not astra.can_cast("float32", "int8")
    assert astra.isdtype("uint8", ("unsigned integer", "bool")) and astra.broadcast_shapes((3, 1), (4,)) == (3, 4)


def test_division_rounds_down_exactly():
    x, y = np.float64([1.0, -1.0, 7.5, -7.5, 1e300, 5.0]), np.float64([0.1, 0.1, 2.5, 2.5, 3.0, -np.inf])
    assert astra.floor_divide(x, y).tolist() == [9.0, -10.0, 3.0, -3.0, 1e300 / 3.0, -1.0]
    assert astra.floor_divide(astra.tensor([7, -7, 5]), astra.tensor([2, 2, 0])).tolist() == [3, -4, 0]


def test_functions_of_sizes_that_are_not_known_yet():
    def f(x, i):
        y = x @ x.mT
        return (
            astra.mean(x, axis=0), astra.var(x), astra.max(x, axis=0), astra.sort(x, axis=0), astra.argmax(x, axis=0), astra.softmax(y),
            astra.take_along_axis(x, i, axis=1), astra.take(x, i[:, 0], axis=0), x[::-1], x[1:], x[:, [0, 2]], astra.concat([x, x], axis=0),
            astra.flip(x), x.reshape((-1, 1)), astra.ravel(x), astra.cumulative_sum(x, axis=0), astra.diff(x, axis=0), astra.eye(x.shape[0]),
            x.at[:, 0].set(7), x.at[0].add(1), astra.repeat(x, 2, axis=0), astra.tile(x, (2, 1)), astra.tril(y), astra.zeros_like(x),
            astra.arange(x.shape[0]), astra.searchsorted(astra.sort(x[:, 0]), x), astra.isin(x, x[0]), astra.unique_values(x), x[x > 0],
            astra.vecdot(x, x), astra.tensordot(x, x, axes=2), astra.linalg.vector_norm(x, axis=0), astra.fft.rfft(x, axis=1).real,
        )  # fmt: skip

    n = astra.dim("n", 2, 9)
    program = astra.trace(f, astra.spec((n, 5)), astra.spec((n, 2), "i64")).lower().compile("native")
    for rows in (2, 9):
        rng = np.random.default_rng(rows)
        x, i = astra.asarray(rng.standard_normal((rows, 5)).astype(np.float32)), astra.asarray(rng.integers(0, 2, (rows, 2)))
        for number, (mine, eager) in enumerate(zip(program(x, i), f(x, i))):
            assert np.asarray(mine).tobytes() == np.asarray(eager).tobytes(), number


def test_digests():
    x = astra.tensor([[1.0, 2.0]])
    assert astra.hash(x) == astra.hash(x.numpy()) == astra.hash(astra.tensor([[0.5, 1.0]]) * 2)
    assert astra.hash({"a": x, "b": [x]}) != astra.hash({"a": x, "b": [x + 1]})
    assert astra.hash(x, x) == astra.hash((x, x)) != astra.hash(x)
    assert len(astra.hash(x)) == 64


def test_linear_algebra_and_transforms():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 4, 4))
    s = a @ a.swapaxes(-1, -2) + 4 * np.eye(4)
    close = lambda x, y: np.testing.assert_allclose(np.asarray(x), y, rtol=1e-9, atol=1e-9)  # noqa: E731
    close(astra.linalg.inv(s), np.linalg.inv(s))
    close(astra.linalg.solve(s, a), np.linalg.solve(s, a))
    close(astra.linalg.cholesky(s), np.linalg.cholesky(s))
    close(astra.linalg.det(a), np.linalg.det(a))
    close(astra.linalg.eigvalsh(s), np.linalg.eigvalsh(s))
    close(astra.linalg.svdvals(a), np.linalg.svdvals(a))
    q, r = astra.linalg.qr(a)
    close(q @ r, a)
    close(astra.linalg.norm(a[0]), np.linalg.norm(a[0]))
    close(astra.linalg.trace(a), np.linalg.trace(a))
    close(astra.fft.fft(a), np.fft.fft(a))
    close(astra.fft.irfft(astra.fft.rfft(a)), a)
    close(astra.fft.fftn(a, axes=(0, 2)), np.fft.fftn(a, axes=(0, 2)))
    z = a + 1j * rng.standard_normal((2, 4, 4))
    h = z @ z.conj().swapaxes(-1, -2) + 4 * np.eye(4)
    close(astra.linalg.inv(z), np.linalg.inv(z))
    close(astra.linalg.solve(z, z[:, :, :2]), np.linalg.solve(z, z[:, :, :2]))
    close(astra.linalg.cholesky(h), np.linalg.cholesky(h))
    close(astra.linalg.pinv(z[:, :3]), np.linalg.pinv(z[:, :3]))
    close(astra.linalg.svdvals(z), np.linalg.svdvals(z))
    close(astra.linalg.eigvalsh(h), np.linalg.eigvalsh(h))
    close(astra.linalg.matrix_power(z, 3), np.linalg.matrix_power(z, 3))
    close(astra.linalg.matrix_norm(z, ord="nuc"), np.linalg.matrix_norm(z, ord="nuc"))
    close(astra.linalg.det(z), np.linalg.det(z))
    for mine, theirs in zip(astra.linalg.slogdet(z * 1e200), np.linalg.slogdet(z * 1e200)):
        close(mine, theirs)
    for rtol in (1e-3, np.array([0.5, 1e-3])):
        close(astra.linalg.pinv(a, rtol=rtol), np.linalg.pinv(a, rtol=rtol))
        assert astra.linalg.matrix_rank(a, rtol=rtol).tolist() == np.linalg.matrix_rank(a, rtol=rtol).tolist()
    assert astra.linalg.matrix_rank(z).tolist() == [4, 4]
    assert astra.linalg.inv(astra.zeros((2, 0, 0))).shape == (2, 0, 0)
    for x in (a, z):
        w, v = astra.linalg.eig(x)
        close(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None])
        close(np.sort_complex(np.round(astra.linalg.eigvals(x), 9)), np.sort_complex(np.round(np.linalg.eigvals(x), 9)))
        u, s, vh = (np.asarray(y) for y in astra.linalg.svd(x[:, :3]))
        close(u @ (s[:, :, None] * vh[:, :3]), x[:, :3])
        q, r = (np.asarray(y) for y in astra.linalg.qr(x))
        close(q @ r, x)
        close(q.conj().swapaxes(1, 2) @ q, np.broadcast_to(np.eye(4), (2, 4, 4)))
        p, l, u = astra.linalg.lu(x)
        close(p @ l @ u if x is a else np.asarray(p) @ np.asarray(l) @ np.asarray(u), x)
        close(astra.linalg.lu_solve(astra.linalg.lu_factor(x), x[:, :, 0, None]), np.linalg.solve(x, x[:, :, 0, None]))
        close(astra.linalg.lstsq(x[0, :, :3], x[0, :, 3]).solution, np.linalg.lstsq(x[0, :, :3], x[0, :, 3])[0])
        w, v = (np.asarray(y) for y in astra.linalg.eigh(x + x.conj().swapaxes(1, 2)))
        close(v @ (w[:, :, None] * v.conj().swapaxes(1, 2)), x + x.conj().swapaxes(1, 2))
    close(astra.linalg.cholesky_solve(np.linalg.cholesky(h), z), np.linalg.solve(h, z))
    assert astra.linalg.cholesky_ex(np.stack([np.eye(2), np.diag([1.0, -1])])).info.tolist() == [0, 2]
    assert astra.linalg.solve_ex(np.diag([1.0, 0, 2]), np.ones((3, 1))).info.item() == 2 and astra.linalg.inv_ex(np.eye(2)).info.item() == 0


@pytest.mark.parametrize("call, error", [
    (lambda: astra.concat([]), ValueError), (lambda: astra.reshape(astra.ones(6), (4, -1)), astra.ShapeError),
    (lambda: astra.sort(astra.tensor([1j])), TypeError), (lambda: astra.sum(astra.ones(3), axis=1), ValueError),
    (lambda: astra.ones(3) @ astra.ones(4), ValueError), (lambda: astra.max(astra.zeros((0,))), ValueError),
    (lambda: astra.ones(2) + "a", TypeError), (lambda: astra.zeros(2, device="tpu"), ValueError),
    (lambda: astra.astype(astra.tensor([1j]), "float32"), TypeError), (lambda: len(astra.tensor(1.0)), TypeError),
    (lambda: bool(astra.ones(2)), (TypeError, ValueError)), (lambda: astra.cumulative_sum(astra.ones((2, 2))), ValueError),
    (lambda: astra.take(astra.ones(2), astra.ones(2)), TypeError), (lambda: astra.einsum("ij,jk", astra.ones((2, 3)), astra.ones((2, 3))), ValueError),
])  # fmt: skip
def test_what_is_wrong_is_refused(call, error):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value)


def test_python_s_and_numpy_s_functions():
    x = astra.tensor([1.0, 2.55, -3.0])
    assert [t.tolist() for t in divmod(x, 2.0)] == [[0, 1, -2], [1, np.float32(2.55) - 2, 1]]
    assert round(x).tolist() == [1, 3, -3] and round(astra.tensor([1.25, 2.5]), 1).tolist() == np.round(np.array([1.25, 2.5], "f"), 1).tolist()
    assert np.sum(x) == np.sum(x.numpy()) and np.mean(x) == np.mean(x.numpy()) and np.concatenate([x, x]).shape == (6,)
    assert astra.einsum(x, [0], x, [0], []).tolist() == astra.einsum("a,a->", x, x).tolist()
    assert astra.einsum(astra.ones((2, 3)), [0, 1]).shape == (2, 3)
    with pytest.raises(astra.ArgumentError, match="numbers of its axes"):
        astra.einsum(x, ["i"])
