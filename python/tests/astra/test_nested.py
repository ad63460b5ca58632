"""Transforms and control nested in random orders: each turns a scalar function of three doubles into another one."""

import os
import random

import numpy as np
import pytest

import astra

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
POINT = np.array([0.4, -0.7, 1.1])

STEPS = {
    "grad": lambda f: lambda x: (astra.grad(f)(x) * np.array([1.0, -0.5, 0.25])).sum(),
    "jvp": lambda f: lambda x: astra.jvp(f, (x,), (astra.sin(x),))[1],
    "vjp": lambda f: lambda x: (astra.vjp(f, x)[1](f(x))[0] * x).sum(),
    "vmap": lambda f: lambda x: astra.vmap(lambda r: f(x * r))(x).sum(),
    "vmap, axis last": lambda f: lambda x: astra.vmap(f, in_axes=1)(astra.stack([x, x * x], axis=1)).prod(),
    "jit": lambda f: astra.jit(f),
    "checkpoint": lambda f: astra.checkpoint(f),
    "cond": lambda f: lambda x: astra.cond(x.sum() > 0, f, lambda y: astra.sin(y).sum(), x),
    "cond in vmap": lambda f: lambda x: astra.vmap(lambda r: astra.cond(r > 0, lambda s: f(x * s), lambda s: s, r))(x).sum(),
    "scan": lambda f: lambda x: astra.scan(lambda c, r: (0.5 * c + f(x * r), None), x[0], x)[0],
    "while": lambda f: lambda x: astra.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, astra.tanh(s[1] * f(x))), (0, x[1]))[1],
    "map": lambda f: lambda x: (astra.map(lambda r: f(x + r), x) * x).sum(),
    "switch": lambda f: lambda x: astra.switch(astra.asarray(1), [lambda y: y.sum(), f, lambda y: y.prod()], x),
    "custom": lambda f: _own(f),
    "jacrev": lambda f: lambda x: astra.jacrev(lambda y: y * f(y))(x).sum(),
}


def _own(f):
    g = astra.custom_vjp(lambda x: f(x))
    g.defvjp(lambda x: (g(x), x), lambda x, c: (astra.grad(f)(x) * c,))
    return lambda x: g(x)


def base(x):
    return (astra.sin(x) * x + 0.3 * x * x).sum()


def chains():
    names = sorted(STEPS)
    for seed in range(150 if NIGHTLY else 24):
        choose = random.Random(seed)
        chain = []
        while len(chain) < 3:
            name = choose.choice(names)
            if name not in chain:
                chain.append(name)
        yield seed, tuple(chain)


def built(chain):
    f = base
    for name in chain:
        f = STEPS[name](f)
    return f


@pytest.mark.parametrize("seed,chain", list(chains()), ids=lambda v: " of ".join(reversed(v)) if isinstance(v, tuple) else str(v))
def test_a_chain(seed, chain):
    f, x = built(chain), astra.asarray(POINT)
    value, gradient = astra.value_and_grad(f)(x)
    assert value.shape == () and np.isfinite(value.item())
    h = 1e-5
    steps = np.concatenate([np.eye(3), -np.eye(3)]) * h
    y = np.array([f(astra.asarray(p)).item() for p in POINT + steps])
    np.testing.assert_allclose(gradient.numpy(), (y[:3] - y[3:]) / (2 * h), rtol=1e-5, atol=1e-6 * (1 + abs(value.item())))
    if NIGHTLY or seed % 12 == 0:
        compiled = astra.jit(lambda x: astra.value_and_grad(f)(x))(x)
        assert [t.tobytes() for t in compiled] == [value.tobytes(), gradient.tobytes()]
