"""Dims: arithmetic, bounds, equations, tensors made of sizes."""

import pickle

import numpy as np
import pytest

import astra

N, M = astra.dim("n", 1, 64), astra.dim("m", 1, 8)


def model(f, *specs):
    return astra.trace(f, *specs).lower().compile("native")


def ones(*shape):
    return np.ones(shape, np.float32)


def test_arithmetic():
    assert str(2 * N + M - 1) == "n*2 + m - 1" and (2 * N + M).bounds == (3, 136)
    assert (N % 3).bounds == (0, 2) and (N // 2).bounds == (0, 32) and (-N).bounds == (-64, -1) and (100 // N).bounds == (1, 100)
    assert N - N == 0 and isinstance(N - N, int) and N == astra.dim("n", 1, 64) and N + 1 != N and N > 0 and 65 > N and not N >= 65
    assert N.at_least(5).bounds == (5, 64) and N.at_most(5).bounds == (1, 5) and (N * 4) // 4 == N
    assert {N: 1}[astra.dim("n", 1, 64)] == 1 and pickle.loads(pickle.dumps(2 * N)) == 2 * N
    for undecided in (lambda: N > 3, lambda: N == M, lambda: bool(N - 3), lambda: max(N, 5)):
        with pytest.raises(astra.TraceError, match="depends on sizes that are not known yet"):
            undecided()
    with pytest.raises(astra.TraceError, match="within 1..64"):
        range(N)
    with pytest.raises(TypeError, match="//"):
        N / 2
    with pytest.raises(astra.ArgumentError, match="bounds"):
        astra.dim("n", 3, 2)
    with pytest.raises(astra.ArgumentError, match="'n' has bounds 1..64 elsewhere, here 1..5"):
        astra.trace(lambda x, y: x.sum() + y.sum(), astra.spec((N,)), astra.spec((astra.dim("n", 1, 5),)))


def test_sizes_in_a_function():
    def f(x):
        k = x.shape[0] // 2
        return x[:k], x[k:], x.shape[0] * 2, x.sum() / x.shape[0], x * x.shape[0], astra.asarray(k)

    first, rest, twice, mean, scaled, k = model(f, astra.spec((N,)))(np.arange(5, dtype=np.float32))
    assert first.tolist() == [0, 1] and rest.tolist() == [2, 3, 4] and twice.item() == 10 and mean.item() == 2
    assert scaled.tolist() == [0, 5, 10, 15, 20] and k.item() == 2


def test_bounds_and_dims_of_several_inputs():
    f = model(lambda x, y: x + y, astra.spec((N, M)), astra.spec((N, M)))
    assert f(ones(64, 8), ones(64, 8)).shape == (64, 8)
    with pytest.raises(astra.ShapeError, match="dim n is 65; it must be in 1 .. 64"):
        f(ones(65, 1), ones(65, 1))
    with pytest.raises(astra.ShapeError, match="axis 0 of input y has 4 elements; it must have 3"):
        f(ones(3, 2), ones(4, 2))
    with pytest.raises(astra.UnsupportedError, match="n and m"):
        model(lambda x, y: x + y, astra.spec((N,)), astra.spec((M,)))


def test_extents_that_are_made_of_dims():
    f = model(lambda x: x.reshape((N, 2)).sum(axis=1), astra.spec((2 * N,)))
    assert f(np.arange(6, dtype=np.float32)).tolist() == [1, 5, 9]
    with pytest.raises(astra.ShapeError, match="multiple of 2"):
        f(ones(7))
    g = model(lambda x, y: astra.concat([x, y]), astra.spec((N,)), astra.spec((M,)))
    assert g(ones(3), ones(2)).shape == (5,)
    h = model(lambda x, y: x[1:] * y, astra.spec((N + 1,)), astra.spec((N,)))
    assert h(ones(4), ones(3)).shape == (3,)
    with pytest.raises(astra.ShapeError):
        h(ones(4), ones(4))


def test_equations():
    def f(x, y):
        astra.require_equal(x.shape[0], 2 * y.shape[0])
        return x.reshape((y.shape[0], 2)) * y[:, None]

    g = model(f, astra.spec((N,)), astra.spec((M,)))
    assert g(np.arange(6, dtype=np.float32), np.array([1, 2, 3], np.float32)).tolist() == [[0, 1], [4, 6], [12, 15]]
    with pytest.raises(astra.Error, match="m"):
        g(ones(5), ones(3))
    with pytest.raises(astra.ShapeError, match="not equal"):
        astra.require_equal(3, 4)


def test_transforms_over_dims():
    x = np.array([1, 2, 3], np.float32)
    assert model(astra.vmap(lambda r: (r * r).sum()), astra.spec((N, 3)))(np.stack([x, x])).tolist() == [14, 14]
    assert model(astra.jacrev(lambda r: r * r), astra.spec((N,)))(x).tolist() == np.diag(2 * x).tolist()
    assert model(astra.hessian(lambda r: (r * r * r).sum()), astra.spec((N,)))(x).tolist() == np.diag(6 * x).tolist()
    assert model(astra.grad(lambda r: astra.scan(lambda c, s: (c * s, None), 1.0, r)[0]), astra.spec((N,)))(x).tolist() == [6, 3, 2]
    assert model(lambda r: astra.fori_loop(0, r.shape[0], lambda i, v: v + i, astra.asarray(0)), astra.spec((N,)))(x).item() == 3


def test_jit_with_dims_compiles_once():
    @astra.jit(dims={"x": N, "p.w": {1: M}})
    def f(x, p):
        return (x[:, None] * p["w"][0]).sum(axis=0)

    for rows, columns in ((1, 1), (5, 3), (64, 8), (5, 3), (2, 8)):
        w = np.full((2, columns), 2, np.float32)
        assert f(ones(rows), {"w": w}).tolist() == [2 * rows] * columns
    assert f.traces == 1
    g = astra.jit(lambda x: x * 2, dims={"x": N})
    assert [g(astra.ones(n)).shape for n in (3, 4, 3, 5)] == [(3,), (4,), (3,), (5,)] and g.traces == 1
    with pytest.raises(astra.ShapeError, match="dim n is 65"):
        g(ones(65))
    with pytest.raises(astra.ShapeError, match="axis 0 of argument 'x'"):
        g(1.0 * np.float32(2))
    with pytest.raises(astra.ArgumentError, match="dims names 'y'"):
        astra.jit(lambda x: x, dims={"y": N})(ones(2))


GRADIENTS = {
    "mean": lambda x: (x * x).mean(),
    "softmax": lambda x: (astra.softmax(x, axis=0)[:, 0] * 2).sum(),
    "sort": lambda x: (astra.sort(x, axis=0) * astra.iota(x.shape[0])[:, None]).sum(),
    "concat": lambda x: astra.concat([x, x * 2]).std(),
    "einsum": lambda x: astra.einsum("ij,kj->", x, x),
    "roll": lambda x: (astra.roll(x, 2, axis=0) * x).sum(),
    "roll back": lambda x: (astra.roll(x, -1, axis=0) * x * x).sum(),
    "half": lambda x: (x[: x.shape[0] // 2] ** 2).sum(),
    "associative scan": lambda x: astra.associative_scan(lambda a, b: a * b, x).sum(),
    "size": lambda x: (x * x.shape[0]).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_functions_of_sizes(name):
    gradient = astra.grad(GRADIENTS[name])
    model = astra.trace(gradient, astra.spec((N, 3))).lower().compile("native")
    for rows in (1, 2, 5, 64):
        x = np.random.default_rng(rows).standard_normal((rows, 3), dtype=np.float32)
        assert model(x).tobytes() == gradient(x).tobytes()
