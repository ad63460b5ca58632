"""Functions of the program in graphs: at once, traced, compiled, batched, differentiated; their order."""

import astra
import astra_rt
import numpy as np
import pytest

X = np.array([3, 1, 2], np.float32)


@pytest.fixture(autouse=True)
def functions():
    calls = []

    def ranks(x):
        calls.append(("ranks", x.shape))
        return np.argsort(np.argsort(x, axis=-1), axis=-1).astype(np.int32)

    def log(x):
        calls.append(("log", x.tolist()))
        return np.int32(len(calls))

    def both(x, y):
        return x + y, (x > y)

    astra.register("t.ranks", ranks, deterministic=True)
    astra.register("t.log", log, effects=True)
    astra.register("t.both", both, deterministic=True)
    yield calls
    for name in ("t.ranks", "t.log", "t.both"):
        astra.unregister(name)


ranks = astra.external("t.ranks", out=lambda x: astra.spec(x.shape, "int32"), deterministic=True, batched=True)
log = astra.external("t.log", out=astra.spec((), "int32"), effects=True)


def model(x):
    return ranks(x + x).astype("float32") + x


def test_at_once_and_compiled_give_the_same():
    wanted = np.argsort(np.argsort(X)).astype(np.float32) + X
    assert model(astra.tensor(X)).tolist() == wanted.tolist()
    assert astra.astra(model)(X).tolist() == wanted.tolist()
    traced = astra.trace(model, astra.spec((astra.dim("n", 0, 100),)))
    assert "external" in traced.as_text()
    compiled = traced.lower().compile("native")
    assert compiled(X).tolist() == wanted.tolist()
    assert compiled(X[:0]).tolist() == []


def test_a_large_graph_of_values_is_compiled(functions):
    x = astra.tensor(np.arange(2_000_000, dtype=np.float32))
    y = ranks(x).astype("float32") * 2
    assert float(y[-1].item()) == 2 * 1_999_999
    assert functions.count(("ranks", (2_000_000,))) >= 1


def test_trees_of_results():
    both = astra.external("t.both", out={"added": astra.spec((3,)), "more": astra.spec((3,), "bool")}, deterministic=True)
    found = both(astra.tensor(X), astra.tensor(X[::-1].copy()))
    assert found["added"].tolist() == [5, 2, 5] and found["more"].tolist() == [True, False, False]
    assert astra.astra(lambda a, b: both(a, b)["added"])(X, X).tolist() == (2 * X).tolist()


def test_batches(functions):
    x = astra.tensor(np.stack([X, X[::-1], X * X]))
    wanted = [model(row).tolist() for row in x]
    functions.clear()
    assert astra.vmap(model)(x).tolist() == wanted
    assert functions == [("ranks", (3, 3))]  # one call
    one = astra.external("t.ranks", out=astra.spec((3,), "int32"), deterministic=True)
    with pytest.raises(astra.ArgumentError, match="'t.ranks' is called for one element at a time"):
        astra.vmap(one)(x)


def test_derivatives():
    f = astra.external("t.both", out=(astra.spec((3,)), astra.spec((3,), "bool")), deterministic=True)
    loss = lambda a: (f(a, a)[0] * 2.0).sum()
    with pytest.raises(astra.ArgumentError, match="has the derivative that is declared around it"):
        astra.grad(loss)(astra.tensor(X))
    double = astra.custom_vjp(lambda a: f(a, a)[0])
    double.defvjp(lambda a: (double(a), None), lambda _, c: (c * 2.0,))
    g = astra.grad(lambda a: (double(a) * 2.0).sum())
    assert g(astra.tensor(X)).tolist() == [4, 4, 4]
    assert astra.astra(g)(X).tolist() == [4, 4, 4]


def test_effects_keep_their_order_and_are_made(functions):
    def f(x):
        log(x)
        log(x + 1.0)
        log(x)
        return x * 2.0

    wanted = [("log", X.tolist()), ("log", (X + 1).tolist()), ("log", X.tolist())]
    assert f(astra.tensor(X)).tolist() == (2 * X).tolist()
    assert functions == wanted  # when they are met
    for program in (astra.astra(f), astra.trace(f, astra.spec((3,))).lower().compile("native")):
        functions.clear()
        assert program(X).tolist() == (2 * X).tolist()
        assert functions == wanted


def test_effects_are_refused_where_they_have_no_order():
    x = astra.tensor(X)
    for call in (lambda: astra.vmap(log)(x), lambda: astra.grad(lambda a: (log(a) + a).sum())(x),
                 lambda: astra.cond(x.sum() > 0, log, log, x)):  # fmt: skip
        with pytest.raises(astra.UnsupportedError, match="'t.log' has effects"):
            call()
    with pytest.raises(astra.UnsupportedError, match="calls functions with effects and gives no result"):
        astra.trace(lambda a: (log(a), None)[1:1], astra.spec((3,)))


def test_pure_calls_in_bodies():
    def total(x):
        return astra.fori_loop(0, 3, lambda i, s: s + ranks(s).astype("float32"), x)

    wanted = X.copy()
    for _ in range(3):
        wanted += np.argsort(np.argsort(wanted)).astype(np.float32)
    assert total(astra.tensor(X)).tolist() == wanted.tolist()
    assert astra.astra(total)(X).tolist() == wanted.tolist()


def test_what_is_refused():
    x = astra.tensor(X)
    with pytest.raises(astra.ArgumentError, match="the function 't.none' is not registered where this is evaluated"):
        astra.external("t.none", out=astra.spec((3,)))(x).tolist()
    with pytest.raises(astra_rt.NotFoundError, match="the bundle calls the function 't.none', which is not registered"):
        astra.astra(astra.external("t.none", out=astra.spec((3,))))(X)
    with pytest.raises(astra.ArgumentError, match="'t.log' is called as a deterministic function"):
        astra.external("t.log", out=astra.spec(()), deterministic=True, effects=True)(x)
    with pytest.raises(astra.ArgumentError, match="'t.log' is registered with effects"):
        astra.external("t.log", out=astra.spec(()))(x)
    with pytest.raises(astra.ArgumentError, match="given by astra.spec"):
        astra.external("t.ranks", out=3)(x)
    with pytest.raises(astra.ArgumentError, match="has a name"):
        astra.external("", out=astra.spec(()))
    with pytest.raises(astra.ArgumentError, match="operand 0 of 't.ranks' is of complex64"):
        astra.external("t.ranks", out=astra.spec(()))(x.astype("complex64"))
    with pytest.raises(astra.ArgumentError, match=r"function 't.ranks' failed: DTypeError: result 0 has dtype i32; it must be f32"):
        astra.external("t.ranks", out=astra.spec((3,)), deterministic=True)(x).tolist()
