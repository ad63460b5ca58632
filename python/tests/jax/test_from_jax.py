"""Functions of JAX as models: trees, dims with bounds, gradients across the border, a training step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import astra

jax.config.update("jax_platforms", "cpu")


def weights():
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((4, 3)).astype(np.float32), "b": np.zeros(3, np.float32)}


def network(p, x):
    return {"y": jax.nn.softmax(jnp.tanh(x @ p["w"] + p["b"])), "sum": x.sum()}


def test_trees_and_dims(tmp_path):
    model = astra.from_jax(network, weights(), astra.spec((astra.dim("n", 1, 32), 4)))
    for rows in (1, 5, 32):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        ours, theirs = model(weights(), x), network(weights(), x)
        np.testing.assert_allclose(ours["y"].numpy(), theirs["y"], atol=1e-6)
        np.testing.assert_allclose(ours["sum"].numpy(), theirs["sum"], rtol=1e-5)
    model.compile("native").save(tmp_path / "m.astra")
    assert [i.upper for i in astra.load(tmp_path / "m.astra").inputs] == [(3,), (4, 3), (32, 4)]
    with pytest.raises(astra.ArgumentError, match="structure"):
        model(x)


def test_gradients_across_the_border():
    model = astra.from_jax(network, weights(), astra.spec((2, 4)))
    x = np.ones((2, 4), np.float32)
    ours = astra.grad(lambda p: (model(p, x)["y"][:, 0] * 2.0).sum())(astra.tree.map(astra.asarray, weights()))
    theirs = jax.grad(lambda p: (network(p, x)["y"][:, 0] * 2.0).sum())(weights())
    np.testing.assert_allclose(ours["w"].numpy(), theirs["w"], atol=1e-6)


def test_a_training_step():
    """A step of gradient descent that JAX differentiated is one program of ours."""

    def loss(p, x, y):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(jnp.tanh(x @ p["w"] + p["b"])) * y, axis=1))

    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree_util.tree_map(lambda w, d: w - 0.5 * d, p, g), value

    p, x = weights(), np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[np.arange(8) % 3]
    model = astra.from_jax(step, p, x, y)
    ours, theirs = p, p
    for _ in range(5):
        ours, a = model(ours, x, y)
        theirs, b = step(theirs, x, y)
    np.testing.assert_allclose(ours["w"].numpy(), theirs["w"], atol=1e-5)
    np.testing.assert_allclose(float(a), float(b), rtol=1e-5)


def test_what_cannot_be_exported_is_refused():
    with pytest.raises(astra.Error, match="callback"):
        astra.from_jax(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((2,), np.float32), x), np.ones(2, np.float32))
