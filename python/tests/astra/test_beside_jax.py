"""The functions of functions.py in JAX: values, gradients, tangents, second derivatives, batches. Where jax is installed."""

import os
import types

import functions
import numpy as np
import pytest

import astra

pytestmark = pytest.mark.skipif(not os.environ.get("ASTRA_NIGHTLY"), reason="ASTRA_NIGHTLY is not set")
jax = pytest.importorskip("jax")


def jaxs():
    """JAX under the names that functions.py uses."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    jnp, lax = jax.numpy, jax.lax
    shim = types.SimpleNamespace(**{n: getattr(jnp, n) for n in dir(jnp) if not n.startswith("_")})
    for n in ("cond", "while_loop", "fori_loop", "scan", "map", "associative_scan"):
        setattr(shim, n, getattr(lax, n))
    for n in ("grad", "jvp", "vjp", "vmap", "hessian", "checkpoint", "custom_vjp"):
        setattr(shim, n, getattr(jax, n))
    for n in ("softmax", "log_softmax", "sigmoid"):
        setattr(shim, n, getattr(jax.nn, n))
    shim.erf, shim.logsumexp = jax.scipy.special.erf, jax.scipy.special.logsumexp
    shim.take = lambda x, i: jnp.take(x, jnp.asarray(i))
    shim.clip = lambda x, lo, hi: jnp.clip(x, lo, hi)
    shim.switch = lambda i, f, *xs: lax.switch(i, f, *xs)
    return shim


# Functions whose text uses what JAX's arrays have under other names.
REWRITTEN = {
    "mean": lambda x: ((x - x.mean()) ** 2).mean(),
    "while": lambda x: functions.astra.fori_loop(0, 4, lambda _, s: s * functions.astra.cos(x), x).sum(),  # JAX has no reverse mode of while
}


@pytest.fixture(scope="module")
def shim():
    return jaxs()


@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_values_and_derivatives(name, shim, monkeypatch):
    f, x = functions.FUNCTIONS[name], functions.POINT
    ours = [astra.asarray(x)]
    direction = np.linspace(-1, 1, 6)

    def everything(a, y):
        tangent = a.jvp(f if a is astra else theirs, (y,), (direction,))
        g = f if a is astra else theirs
        return [g(y), a.grad(g)(y), tangent[1], a.hessian(g)(y), a.vmap(a.grad(g))(rows)]

    rows = np.stack([x, x * 0.5, x[::-1]])
    mine = [t.numpy() for t in everything(astra, ours[0])]
    monkeypatch.setattr(functions, "astra", shim)
    theirs = REWRITTEN.get(name, f)
    if name == "custom":
        monkeypatch.setattr(functions, "CUSTOM", lambda y: shim.sin(y) * y)
    if name == "matmul":
        monkeypatch.setattr(functions, "W", shim.asarray(functions.W))
    there = [np.asarray(t) for t in jax.jit(lambda y: everything(shim, y))(x)]
    for a, b in zip(mine, there):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
