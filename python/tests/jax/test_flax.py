"""A transformer of flax, its forward pass and its training step by optax, as one program each: beside JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import astra

linen = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")
jax.config.update("jax_platforms", "cpu")
VALUES = 1e-5  # of the greatest output


class Block(linen.Module):
    heads: int = 2

    @linen.compact
    def __call__(self, x, mask):
        y = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(num_heads=self.heads)(y, y, mask=mask)
        y = linen.LayerNorm()(x)
        return x + linen.Dense(x.shape[-1])(linen.gelu(linen.Dense(4 * x.shape[-1])(y)))


class Transformer(linen.Module):
    vocabulary: int = 17
    width: int = 16
    layers: int = 2

    @linen.compact
    def __call__(self, tokens):
        table = linen.Embed(self.vocabulary, self.width)
        x = table(tokens) + linen.Embed(12, self.width)(jnp.arange(tokens.shape[1]))
        mask = linen.make_causal_mask(tokens)
        for _ in range(self.layers):
            x = Block()(x, mask)
        return table.attend(linen.LayerNorm()(x))


def tokens(batch, seed=0):
    return np.random.default_rng(seed).integers(0, 17, (batch, 9)).astype(np.int32)


@pytest.fixture(scope="module")
def model():
    net = Transformer()
    return net, jax.tree.map(np.asarray, net.init(jax.random.key(0), tokens(2)))


def close(mine, theirs, tolerance=VALUES):
    theirs = np.asarray(theirs)
    assert np.abs(np.asarray(mine) - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-3)


def test_forward_in_any_batch(model, tmp_path):
    net, weights = model
    compiled = astra.from_jax(net.apply, weights, astra.spec((astra.dim("n", 1, 8), 9), "int32"))
    for batch in (1, 3, 8):
        close(compiled(weights, tokens(batch, batch)), net.apply(weights, tokens(batch, batch)))


def test_a_training_step_by_optax(model):
    net, weights = model
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.3, momentum=0.9))  # Adam would make a step of a key's bias, whose gradient is rounding

    def loss(w, x):
        logits = net.apply(w, x[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, x[:, 1:]).mean()

    def step(w, slots, x):
        value, gradients = jax.value_and_grad(loss)(w, x)
        updates, slots = optimizer.update(gradients, slots, w)
        return optax.apply_updates(w, updates), slots, value

    slots = jax.tree.map(np.asarray, optimizer.init(weights))
    x = tokens(4)
    compiled = astra.from_jax(step, weights, slots, x)
    reference = jax.jit(step)
    ours, theirs = (weights, slots), (weights, slots)
    values = []
    for _ in range(3):
        *ours, a = compiled(*ours, x)
        *theirs, b = reference(*theirs, x)
        np.testing.assert_allclose(float(a), float(b), rtol=1e-4)
        values.append(float(a))
    assert values[-1] < values[0]
    for mine, wanted in zip(jax.tree.leaves(ours[0], is_leaf=lambda t: isinstance(t, astra.Tensor)), jax.tree.leaves(theirs[0])):
        close(mine, wanted, 1e-4)


def test_gradients(model):
    net, weights = model
    x = tokens(2)
    f = jax.grad(lambda w: (net.apply(w, x) ** 2).mean())
    for mine, wanted in zip(jax.tree.leaves(astra.from_jax(f, weights)(weights), is_leaf=lambda t: isinstance(t, astra.Tensor)), jax.tree.leaves(f(weights))):
        close(mine, wanted, 1e-4)
