"""Control flow: results, derivatives, batches; the evaluator and compiled code give the same bytes."""

import numpy as np
import pytest

import astra

X = np.array([0.5, -1.25, 2.0, 0.75], np.float32)


def cases():
    yield "cond", lambda x: astra.cond(x.sum() > 0, lambda a, b: (a * b, a), lambda a, b: (a, b), x, x + 1)
    yield "cond false", lambda x: astra.cond(x.sum() < 0, lambda a: a * 2, lambda a: astra.exp(a), x)
    yield "cond of cond", lambda x: astra.cond(x[0] > 0, lambda: astra.cond(x[1] > 0, lambda: x, lambda: x * 3), lambda: x * 5)
    yield "switch", lambda x: [astra.switch(astra.asarray(i), [lambda a: a, astra.sin, lambda a: a * a], x) for i in range(-1, 4)]
    yield "while", lambda x: astra.while_loop(lambda s: s["n"] < 5, lambda s: {"n": s["n"] + 1, "v": astra.sin(s["v"])}, {"n": 0, "v": x})
    yield "while on data", lambda x: astra.while_loop(lambda s: s[1].sum() > 0.1, lambda s: (s[0] + 1, s[1] * 0.5), (astra.asarray(0), x * x))
    yield "for", lambda x: astra.fori_loop(0, 4, lambda i, v: v * 0.5 + i, x)
    yield "for of data", lambda x: astra.fori_loop(0, astra.astype(x[2], "int64"), lambda i, v: v * 0.5 + i, x)
    yield "scan", lambda x: astra.scan(lambda c, r: (c + r, {"c": c, "r": r * x}), astra.asarray(0.0), x)
    yield "scan from the end", lambda x: astra.scan(lambda c, r: (c * r, c), astra.asarray(1.0), x, reverse=True)
    yield "scan of a length", lambda x: astra.scan(lambda c, _: (astra.sin(c), c.sum()), x, None, length=5)
    yield "scan without a carry", lambda x: astra.scan(lambda c, r: (c, r + 1), (), x)[1]
    yield "scan without results", lambda x: astra.scan(lambda c, r: (c + r, None), astra.asarray(0.0), x)[0]
    yield "scan of scan", lambda x: astra.scan(lambda c, r: (astra.scan(lambda d, s: (d + s * r, None), c, x)[0], c), astra.asarray(0.0), x)
    yield "map", lambda x: astra.map(lambda t: t["a"] * t["b"], {"a": x, "b": x + 1})
    yield "associative scan", lambda x: astra.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1))
    yield "associative scan from the end", lambda x: astra.associative_scan(lambda a, b: a + b, x[None, :], reverse=True, axis=1)
    yield "vmap of cond", lambda x: astra.vmap(lambda r: astra.cond(r > 0, astra.sin, lambda a: a * 2, r))(x)
    yield "vmap of while", lambda x: astra.vmap(lambda r: astra.while_loop(lambda v: v < 10, lambda v: v * v + 1, r))(x)
    yield "vmap of scan", lambda x: astra.vmap(lambda r: astra.scan(lambda c, s: (c * r + s, c), r, x))(x)
    yield "vmap of switch", lambda x: astra.vmap(lambda i, r: astra.switch(i, [astra.sin, astra.cos, astra.exp], r))(np.array([0, 1, 2, 5]), x)
    yield "grad of vmap of scan", lambda x: astra.grad(lambda y: astra.vmap(lambda r: astra.scan(lambda c, s: (c * r + s, None), r, y)[0])(y).sum())(x)


CASES = dict(cases())


def all_bytes(tree):
    return [(str(t.dtype), t.shape, t.tobytes()) for t in astra.tree.leaves(tree)]


@pytest.mark.parametrize("name", CASES)
def test_evaluated_values_are_those_of_single_steps(name):
    assert all(np.isfinite(t.numpy()).all() for t in astra.tree.leaves(CASES[name](astra.asarray(X))))


def test_compiled_and_evaluated_bytes_are_equal():
    everything = lambda x: {name: f(x) for name, f in CASES.items()}  # noqa: E731
    x = astra.asarray(X)
    compiled = astra.jit(everything)(x)
    for name, f in CASES.items():
        assert all_bytes(compiled[name]) == all_bytes(f(x)), name


def test_values():
    x = astra.asarray(X)
    assert CASES["cond"](x)[0].tolist() == (X * (X + 1)).tolist()
    picked = CASES["switch"](x)
    assert picked[0].tolist() == picked[1].tolist() == X.tolist() and picked[3].tolist() == picked[4].tolist() == (X * X).tolist()
    carry, ys = CASES["scan"](x)
    assert carry.item() == X.sum() and ys["c"].tolist() == [0, 0.5, -0.75, 1.25] and ys["r"].shape == (4, 4)
    assert CASES["scan from the end"](x)[1].tolist() == [-1.875, 1.5, 0.75, 1]
    n, v = CASES["while on data"](x)
    assert v.sum().item() <= 0.1 < (v * 2).sum().item() and n.item() == 6
    a, b = CASES["associative scan"](x)
    want, first = [], (X[0], X[0] + 1)
    for i in range(1, 4):
        want.append(first)
        first = first[0] * X[i], first[1] * X[i] + (X[i] + 1)
    want.append(first)
    np.testing.assert_allclose(np.stack([a.numpy(), b.numpy()], 1), want, rtol=1e-6)
    assert astra.fori_loop(3, 3, lambda i, v: v + 1, 5.0).item() == 5
    assert astra.fori_loop(astra.asarray(2), 5, lambda i, v: v + i, astra.asarray(0)).item() == 9


def test_order_of_an_associative_scan_does_not_depend_on_what_is_known():
    n = astra.dim("n", 1, 100)
    f = lambda x: astra.associative_scan(lambda a, b: a + b, x)  # noqa: E731
    model = astra.trace(f, astra.spec((n, 2))).lower().compile("native")
    for rows in (1, 2, 7, 64, 100):
        x = np.random.default_rng(rows).standard_normal((rows, 2), dtype=np.float32)
        assert model(x).tobytes() == f(astra.asarray(x)).tobytes()
        np.testing.assert_allclose(model(x).numpy(), np.cumsum(x, axis=0), rtol=1e-4, atol=1e-5)


def test_refusals():
    x = astra.asarray(X)
    with pytest.raises(astra.ShapeError, match="predicate of cond is a scalar.*astra.where"):
        astra.cond(x > 0, lambda a: a, lambda a: a, x)
    with pytest.raises(astra.DTypeError, match="what the second function of cond gives is of int64; what the first gives is of float32"):
        astra.cond(astra.asarray(True), lambda: x, lambda: x.astype("int64"))
    with pytest.raises(astra.ArgumentError, match="structure"):
        astra.cond(astra.asarray(True), lambda: x, lambda: (x, x))
    with pytest.raises(astra.ShapeError, match="body of while_loop gives, at 'v', has shape"):
        astra.while_loop(lambda s: s["n"] < 3, lambda s: {"n": s["n"] + 1, "v": s["v"][:2]}, {"n": 0, "v": x})
    with pytest.raises(astra.ArgumentError, match="pair"):
        astra.scan(lambda c, r: c + r, astra.asarray(0.0), x)
    with pytest.raises(astra.DTypeError, match="carry"):
        astra.scan(lambda c, r: (c + r, None), 0, x)
    with pytest.raises(astra.ShapeError, match="different extents.*4, 3"):
        astra.scan(lambda c, r: (c, None), 0.0, (x, x[:3]))
    with pytest.raises(astra.ArgumentError, match="xs or a length"):
        astra.scan(lambda c, r: (c, None), 0.0)
    with pytest.raises(astra.DTypeError, match="index of switch"):
        astra.switch(x[0], [lambda: x])
    with pytest.raises(astra.TraceError, match="test_control.py"):
        astra.scan(lambda c, r: (c + r if r > 0 else c, None), 0.0, x)


def test_deep_nesting_costs_no_more_than_its_size():
    def nested(depth):
        def step(c, x):
            return (c + x, c) if depth == 0 else (astra.scan(nested(depth - 1), c, astra.ones(1))[0] + x, c)

        return step

    def f(x):
        return astra.scan(nested(40), x, astra.ones(1))[0]  # 2^40 of anything would not end

    assert f(astra.asarray(0.5)).item() == 41.5
    assert astra.grad(f)(astra.asarray(0.5)).item() == 1
    with pytest.raises(astra.ArgumentError, match="control is nested more than 16 deep"):
        astra.jit(f)(astra.asarray(0.5))
