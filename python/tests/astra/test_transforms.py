"""Derivatives and batching: forty functions, in combinations, beside differences and beside themselves."""

import itertools
import os
import queue

import numpy as np
import pytest
from functions import FUNCTIONS, POINT

import astra

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
SAMPLE = list(FUNCTIONS) if NIGHTLY else ["softmax", "scan", "switch", "checkpoint", "custom"]


def differences(f, x, h=1e-5):
    """The Jacobian of f by central differences: all points in one batch."""
    steps = np.concatenate([np.eye(x.size), -np.eye(x.size)]) * h
    y = astra.vmap(f)(x + steps).numpy()
    return np.moveaxis((y[: x.size] - y[x.size :]) / (2 * h), 0, -1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    f = FUNCTIONS[name]
    x = astra.asarray(POINT)
    value, gradient = astra.value_and_grad(f)(x)
    assert value.dtype is astra.float64 and value.tobytes() == f(x).tobytes()
    np.testing.assert_allclose(gradient.numpy(), differences(f, POINT), rtol=2e-7, atol=2e-8)
    direction = np.linspace(-1, 1, 6)
    _, tangent = astra.jvp(f, (x,), (direction,))
    np.testing.assert_allclose(tangent.numpy(), gradient.numpy() @ direction, rtol=1e-12, atol=1e-12)
    kept = astra.grad(astra.checkpoint(f))(x)
    np.testing.assert_allclose(kept.numpy(), gradient.numpy(), rtol=1e-13, atol=1e-14)
    second = astra.hessian(f)(x).numpy()
    np.testing.assert_allclose(second, differences(astra.grad(f), POINT), rtol=3e-6, atol=3e-7)
    np.testing.assert_allclose(second, second.T, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_gives_the_bits_of_its_elements(name):
    f = FUNCTIONS[name]
    points = np.stack([POINT, POINT[::-1] * 0.9, POINT * 0.5])
    for transform in (lambda g: g, astra.grad):
        g = transform(f)
        together = astra.vmap(g)(points)
        assert [row.tobytes() for row in together] == [g(astra.asarray(p)).tobytes() for p in points]


@pytest.mark.parametrize("name", SAMPLE)
def test_compiled_and_evaluated_bytes_are_equal(name):
    f = FUNCTIONS[name]

    def everything(x, y):
        some = f(x), astra.grad(f)(x), astra.vmap(astra.grad(f))(y)
        return (*some, astra.hessian(f)(x), astra.grad(astra.checkpoint(f))(x)) if NIGHTLY else some

    x, y = astra.asarray(POINT), astra.asarray(np.stack([POINT, POINT[::-1]]))
    for a, b in zip(astra.jit(everything)(x, y), everything(x, y)):
        assert a.tobytes() == b.tobytes()


def test_trees_and_arguments():
    params = {"w": astra.asarray([1.0, 2.0]), "b": [astra.asarray(3.0)]}

    def loss(p, x, scale=1.0):
        return ((p["w"] * x).sum() + p["b"][0]) * scale, {"seen": x}

    gradient, aux = astra.grad(loss, has_aux=True)(params, astra.asarray([5.0, 7.0]), scale=2.0)
    assert gradient["w"].tolist() == [10, 14] and gradient["b"][0].item() == 2 and aux["seen"].tolist() == [5, 7]
    both = astra.grad(lambda p, x: (p["w"] * x).sum(), argnums=(0, 1))(params, astra.asarray([5.0, 7.0]))
    assert isinstance(both, tuple) and both[0]["b"][0].item() == 0 and both[1].tolist() == [1, 2]
    (value, _), _ = astra.value_and_grad(loss, has_aux=True)(params, astra.asarray([5.0, 7.0]))
    assert value.item() == 22


def test_vjp_jvp_linearize():
    f = lambda x, y: {"a": x * y, "b": (astra.sin(x), y.sum())}  # noqa: E731
    x, y = astra.asarray([1.0, 2.0]), astra.asarray([3.0, 4.0])
    out, pullback = astra.vjp(f, x, y)
    assert out["a"].tolist() == [3, 8]
    cotangent = {"a": astra.asarray([1.0, 0.0]), "b": (astra.zeros(2), astra.asarray(2.0))}
    dx, dy = pullback(cotangent)
    assert dx.tolist() == [3, 0] and dy.tolist() == [3, 2]
    assert [t.tolist() for t in astra.jit(pullback)(cotangent)] == [[3, 0], [3, 2]]
    with pytest.raises(astra.ShapeError, match="cotangent has shape"):
        pullback({**cotangent, "a": astra.zeros(3)})
    with pytest.raises(astra.ArgumentError, match="structure"):
        pullback(astra.zeros(2))
    _, push = astra.linearize(f, x, y)
    assert push(astra.ones(2), astra.zeros(2))["a"].tolist() == [3, 4]
    value, aux_pull, aux = astra.vjp(lambda x: (x * x, "seen" and x), x, has_aux=True)
    assert value.tolist() == [1, 4] and aux.tolist() == [1, 2] and aux_pull(astra.ones(2))[0].tolist() == [2, 4]


def test_jacobians():
    f = lambda p: {"u": p["x"] ** 2 * p["s"], "v": p["x"].sum()}  # noqa: E731
    p = {"x": astra.asarray([1.0, 2.0, 3.0]), "s": astra.asarray(2.0)}
    for way in (astra.jacfwd, astra.jacrev):
        j = way(f)(p)
        assert j["u"]["x"].tolist() == [[4, 0, 0], [0, 8, 0], [0, 0, 12]]
        assert j["u"]["s"].tolist() == [1, 4, 9] and j["v"]["x"].tolist() == [1, 1, 1] and j["v"]["s"].shape == ()
    h = astra.hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(astra.asarray([1.0]), astra.asarray([3.0]))
    assert [[float(t.reshape(())) for t in row] for row in h] == [[6, 2], [2, 0]]


def test_axes_of_vmap():
    x = astra.asarray(np.arange(12.0).reshape(3, 4))
    assert astra.vmap(lambda r: r * 2, in_axes=1, out_axes=1)(x).tolist() == (x * 2).tolist()
    assert astra.vmap(lambda r: r.sum(), in_axes=-1)(x).tolist() == x.sum(axis=0).tolist()
    tree = {"a": x, "b": (astra.asarray(2.0),)}
    out = astra.vmap(lambda t, s: {"k": t["a"] * t["b"][0] + s}, in_axes=({"a": 1, "b": None}, None), out_axes=1)(tree, 1.0)
    assert out["k"].tolist() == (x * 2 + 1).tolist()
    one, shared = astra.vmap(lambda r: (r, astra.asarray(5)), out_axes=(0, None))(x)
    assert one.shape == (3, 4) and shared.shape == ()
    assert astra.vmap(lambda: astra.asarray(1.0), axis_size=3)().tolist() == [1, 1, 1]
    nested = astra.vmap(astra.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))(np.arange(3), np.arange(4))
    assert nested.tolist() == np.multiply.outer(np.arange(3), np.arange(4)).tolist()
    with pytest.raises(astra.ArgumentError, match="out_axes is None"):
        astra.vmap(lambda r: r, out_axes=None)(x)
    with pytest.raises(astra.ShapeError, match="extents 3 and 4"):
        astra.vmap(lambda a, b: a, in_axes=(0, 1))(x, x)
    with pytest.raises(astra.ShapeError, match="axis 2"):
        astra.vmap(lambda a: a, in_axes=2)(x)
    with pytest.raises(astra.ArgumentError, match="one argument at least"):
        astra.vmap(lambda a: a, in_axes=None)(x)


def test_refusals_name_what_is_wrong():
    with pytest.raises(astra.ShapeError, match="gives a tensor of shape"):
        astra.grad(lambda x: x)(astra.ones(3))
    with pytest.raises(astra.DTypeError, match="argument 0, which is differentiated by, at 'n',"):
        astra.grad(lambda p: p["w"].sum())({"w": astra.ones(3), "n": astra.asarray(1)})
    with pytest.raises(astra.ArgumentError, match="argument 3"):
        astra.grad(lambda x: x, argnums=3)(1.0)
    with pytest.raises(astra.ArgumentError, match="while .test_transforms.py"):
        astra.grad(lambda x: astra.while_loop(lambda s: s.sum() < 9, lambda s: s * x, x).sum())(astra.ones(3))
    with pytest.raises(astra.TraceError, match="test_transforms.py"):
        astra.grad(lambda x: x.sum() if x[0] > 0 else x.prod())(astra.ones(3))


def test_an_exception_inside_leaves_nothing_behind():
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    x = astra.ones(3)
    ways = [astra.grad(stop), astra.vmap(stop), astra.jit(stop), astra.jacfwd(stop), astra.hessian(stop), astra.checkpoint(stop),
            lambda x: astra.scan(stop, x, x), lambda x: astra.cond(astra.asarray(True), stop, stop, x),
            lambda x: astra.while_loop(lambda _: True, stop, x), lambda x: astra.trace(astra.grad(stop), x)]  # fmt: skip
    for way in ways:
        with pytest.raises(Stop):
            way(x)
        from astra._graph import inside

        assert not inside() and not x._in(astra._graph.current()) is None
        assert astra.jit(lambda x: x + x)(x).tolist() == [2, 2, 2]


def test_what_leaks_out_of_a_function_is_refused():
    kept = queue.SimpleQueue()  # which no function is followed into: what it puts into a list is refused
    astra.jit(lambda x: kept.put(x + 1) or x)(astra.ones(2))
    with pytest.raises(astra.TraceError, match="after the function has returned"):
        kept.get() * 2
    astra.grad(lambda x: kept.put(x * x) or x.sum())(astra.ones(2))
    with pytest.raises(astra.TraceError, match="being transformed"):
        kept.get().tolist()


def test_a_function_that_calls_itself():
    def power(x, n):
        return x if n == 1 else x * astra.jit(power, static_argnums=1)(x, n - 1)

    assert astra.jit(power, static_argnums=1)(astra.asarray(2.0), 10).item() == 1024
    assert astra.grad(power)(astra.asarray(2.0), 3).item() == 12


def test_custom_vjp():
    calls = itertools.count()

    @astra.custom_vjp
    def clipped(x, limit):
        return astra.clip(x, -1.0, 1.0) * limit

    def forward(x, limit):
        next(calls)
        return clipped(x, limit), (x, limit)

    clipped.defvjp(forward, lambda r, g: (g * 10.0, None))
    x = astra.asarray([-3.0, 0.5])
    assert clipped(x, 2.0).tolist() == [-2, 1]
    assert astra.grad(lambda x: clipped(x, limit=2.0).sum())(x).tolist() == [10, 10]
    assert astra.vmap(astra.grad(lambda r: clipped(r, 2.0)))(x).tolist() == [10, 10]
    assert astra.jit(astra.grad(lambda x: clipped(x, 2.0).sum()))(x).tolist() == [10, 10]
    assert next(calls) > 0

    # Results of several types, integers among arguments and residuals, arguments that are no tensors.
    def name(kind, x, index):
        return astra.take(x, index), index + 1, astra.sum(x).astype("float64")

    picked = astra.custom_vjp(name, nondiff_argnums=(0,))

    def backward(kind, residuals, cotangent):
        x, index = residuals
        assert kind == "kind"
        return x * 0 + cotangent[0].sum() * (index.sum() + 1).astype("float32") + cotangent[2].astype("float32"), None

    picked.defvjp(lambda kind, x, index: (name(kind, x, index), (x, index)), backward)
    index = astra.asarray([1, 1, 0])

    def total(x):
        a, b, c = picked("kind", x, index)
        return a.sum() + b.sum().astype("float32") + c.astype("float32") * 2

    assert astra.grad(total)(x).tolist() == [3 * 3 + 2] * 2
    with pytest.raises(astra.ArgumentError, match="no derivative yet"):
        astra.custom_vjp(lambda x: x)(x)
    wrong = astra.custom_vjp(lambda x: x)
    wrong.defvjp(lambda x: (x, None), lambda r, g: (g.sum(),))
    with pytest.raises(astra.ShapeError, match="cotangent 0"):
        astra.grad(lambda x: wrong(x).sum())(x)


def test_checkpoint_computes_again():
    def block(x, w):
        for _ in range(3):
            x = astra.tanh(x @ w)
        return x

    def loss(f):
        return lambda w, x: f(f(x, w), w).sum()

    w, x = np.full((8, 8), 0.1, np.float32), np.ones((4, 8), np.float32)
    plain, kept = astra.grad(loss(block))(w, x), astra.grad(loss(astra.checkpoint(block)))(w, x)
    assert plain.tobytes() == kept.tobytes()
    # Of the first block three for the second one, three again; of the second, whose value nobody wants, three.
    texts = [astra.trace(astra.grad(loss(f)), w, x).as_text() for f in (block, astra.checkpoint(block))]
    assert [t.count(" tanh ") for t in texts] == [6, 9] and "after" in texts[1]


def test_checkpoint_takes_less_memory_in_a_training_step():
    """The states are updated from the last layer to the first; what a gradient needs is given up."""
    def layers(x, ws):
        for w in ws:
            x = astra.tanh(x @ w)
        return x

    def arena(f):
        def step(ws, x):
            def loss(ws):
                y = x
                for i in range(0, 12, 3):
                    y = f(y, ws[i : i + 3])
                return (y * y).sum()

            value, gradient = astra.value_and_grad(loss)(ws)
            return [w - 0.1 * g for w, g in zip(ws, gradient)], value

        ws = [np.full((16, 16), 0.1, np.float32)] * 12
        lowered = astra.export({"step": astra.entry(step, astra.spec((256, 16)), updates=True)}, states=ws).lower()
        return lowered.compile("native").memory_analysis("step").arena

    kept, again = arena(layers), arena(astra.checkpoint(layers))
    activation = 256 * 16 * 4
    assert kept < 17 * activation and again < 0.7 * kept


def test_custom_jvp():
    @astra.custom_jvp
    def f(x, n, scale):
        return {"y": astra.sin(x) * scale, "n": n + 1}

    @f.defjvp
    def rule(primals, tangents):
        (x, n, scale), (dx, dn, dscale) = primals, tangents
        assert dn.dtype == "int64"
        return f(x, n, scale), {"y": astra.cos(x) * scale * dx * 10.0 + astra.sin(x) * dscale, "n": dn}

    x, n = astra.asarray([0.5, 2.0]), astra.asarray(3)
    assert f(x, n, 2.0)["n"].item() == 4
    want = np.cos(x.numpy()) * 20
    loss = lambda x, s: f(x, n, s)["y"].sum()  # noqa: E731
    gx, gs = astra.grad(loss, argnums=(0, 1))(x, 2.0)
    np.testing.assert_allclose(gx.numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(gs.item(), np.sin(x.numpy()).sum(), rtol=1e-6)
    np.testing.assert_allclose(astra.jvp(lambda x: loss(x, 2.0), (x,), (astra.ones(2),))[1].item(), want.sum(), rtol=1e-6)
    np.testing.assert_allclose(astra.vmap(astra.grad(lambda r: f(r, n, 2.0)["y"]))(x).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(astra.hessian(lambda x: loss(x, 2.0))(x).numpy(), np.diag(-20 * np.sin(x.numpy())), rtol=1e-5)
    g = astra.grad(lambda x: loss(x, 2.0))
    assert astra.jit(g)(x).tobytes() == g(x).tobytes()
    with pytest.raises(astra.ArgumentError, match="call defjvp"):
        astra.custom_jvp(lambda x: x)(x)
    h = astra.custom_jvp(lambda x: x * 2)
    h.defjvp(lambda p, t: (p[0], t[0].sum()))
    with pytest.raises(astra.ShapeError, match="the tangent of '<lambda>' has shape"):
        astra.grad(lambda x: h(x).sum())(x)
