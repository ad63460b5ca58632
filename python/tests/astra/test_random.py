"""astra.random: the contract's generator, distributions, keys."""

import math

import numpy as np
import pytest

import astra
from astra import random


def threefry(seed, stream, i):
    """Element i of the stream: docs/numerics.md, N13."""
    word = 0xFFFFFFFF
    keys = [seed, stream, seed ^ stream ^ 0x1BD11BDA]
    x, y = ((i >> 1 & word) + keys[0]) & word, ((i >> 33 & word) + keys[1]) & word
    for turn in range(20):
        by = (13, 15, 26, 6, 17, 29, 16, 24)[turn % 8]
        x = (x + y) & word
        y = (y << by & word | y >> (32 - by)) ^ x
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = (x + keys[group % 3]) & word
            y = (y + keys[(group + 1) % 3] + group) & word
    return y if i & 1 else x


def words(key, n):
    return [threefry(*key.tolist(), i) for i in range(n)]


def test_the_stream_is_the_contracts():
    key = random.key((7 << 32) + 5)
    assert key.tolist() == [7, 5] and key.dtype is astra.uint32
    assert random.key(2**64 - 1).tolist() == [0xFFFFFFFF] * 2
    assert random.key(astra.asarray(-2)).tolist() == [0xFFFFFFFF, 0xFFFFFFFE]
    w = words(key, 12)
    assert random.bits(key, (3, 4)).reshape((-1,)).tolist() == w
    assert random.bits(key, (6,), "uint64").tolist() == [a << 32 | b for a, b in zip(w[::2], w[1::2])]
    assert random.bits(key, (5,), "uint8").tolist() == [v >> 24 for v in w[:5]]
    assert random.split(key, 3).tolist() == [w[0:2], w[2:4], w[4:6]]
    assert random.split(key, (2, 3)).shape == (2, 3, 2)
    assert random.uniform(key, (4,)).tolist() == [(v >> 8) * 2.0**-24 for v in w[:4]]
    assert random.randint(key, (6,), -5, 9).tolist() == [(a << 32 | b) % 14 - 5 for a, b in zip(w[::2], w[1::2])]
    assert random.randint(key, (6,), astra.asarray(-5), 9).tolist() == random.randint(key, (6,), -5, 9).tolist()
    first = w[:2]
    for data in (0, 3, astra.asarray(3), 2**32 - 1):
        number = int(data) & 0xFFFFFFFF
        assert random.fold_in(key, data).tolist() == [threefry(first[0] ^ 0x666F6C64, first[1] ^ number, i) for i in (0, 1)]


def test_keys_in_programs():
    key = random.key(3)
    draw = lambda k: random.normal(k, (2, 3))  # noqa: E731
    keys = random.split(key, 4)
    one_by_one = [draw(k).tobytes() for k in keys]
    assert [t.tobytes() for t in astra.vmap(draw)(keys)] == one_by_one
    assert [t.tobytes() for t in astra.jit(astra.vmap(draw))(keys)] == one_by_one
    _, scanned = astra.scan(lambda k, i: (random.fold_in(k, i), random.uniform(k)), key, np.arange(5))
    assert len(set(scanned.tolist())) == 5
    n = astra.dim("n", 1, 9)
    model = astra.trace(lambda k, x: random.normal(k, x.shape), astra.spec((2,), "uint32"), astra.spec((n,))).lower().compile("native")
    assert model(key, np.zeros(5, np.float32)).tobytes() == random.normal(key, (5,)).tobytes()
    assert random.uniform(key, (3,)).tobytes() == random.uniform(key, (9,))[:3].tobytes()


# name, draw, mean, deviation
DISTRIBUTIONS = [
    ("uniform", lambda k, s, t: random.uniform(k, s, t, -1.0, 3.0), 1, 4 / 12**0.5),
    ("uniform of tensors", lambda k, s, t: random.uniform(k, s, t, astra.asarray(-1.0).astype(t), 3.0), 1, 4 / 12**0.5),
    ("normal", random.normal, 0, 1),
    ("exponential", random.exponential, 1, 1),
    ("gumbel", random.gumbel, 0.5772, np.pi / 6**0.5),
    ("logistic", random.logistic, 0, np.pi / 3**0.5),
    ("laplace", random.laplace, 0, 2**0.5),
    ("rademacher", lambda k, s, t: random.rademacher(k, s, t), 0, 1),
    ("bernoulli", lambda k, s, t: random.bernoulli(k, 0.25, s).astype(t), 0.25, 0.1875**0.5),
    ("randint", lambda k, s, t: random.randint(k, s, 0, 10).astype(t), 4.5, 8.25**0.5),
    ("truncated normal", lambda k, s, t: random.truncated_normal(k, -1.0, 2.0, s, t), 0.22964, 0.72098),
    ("truncated normal above", lambda k, s, t: random.truncated_normal(k, 3.0, 5.0, s, t), 3.28267, 0.26540),
    ("gamma of 0.5", lambda k, s, t: random.gamma(k, 0.5, s, t), 0.5, 0.5**0.5),
    ("gamma of 3", lambda k, s, t: random.gamma(k, 3.0, s, t), 3, 3**0.5),
    ("beta", lambda k, s, t: random.beta(k, 2.0, 3.0, s, t), 0.4, 0.2),
    ("poisson of 3", lambda k, s, t: random.poisson(k, 3.0, s).astype(t), 3, 3**0.5),
    ("poisson of 40", lambda k, s, t: random.poisson(k, 40.0, s).astype(t), 40, 40**0.5),
    ("categorical", lambda k, s, t: random.categorical(k, astra.log(astra.asarray([0.5, 0.25, 0.25])), shape=s).astype(t), 0.75, 0.6875**0.5),
    ("choice", lambda k, s, t: random.choice(k, astra.asarray([1.0, 3.0]), s, p=astra.asarray([0.25, 0.75])).astype(t), 2.5, 0.75**0.5),
]


@pytest.mark.parametrize("name,draw,mean,deviation", DISTRIBUTIONS, ids=[d[0] for d in DISTRIBUTIONS])
def test_moments(name, draw, mean, deviation):
    for t in ("float32", "float64"):
        x = draw(random.key(11), (20000,), t)
        assert x.dtype == t and x.shape == (20000,)
        values = x.numpy().astype(np.float64)
        assert np.isfinite(values).all()
        assert abs(values.mean() - mean) < 5 * deviation / 20000**0.5
        assert abs(values.std() / deviation - 1) < 0.05


def test_narrow_types_and_cauchy():
    for t in ("float16", "bfloat16"):
        assert random.normal(random.key(0), (8,), t).dtype == t
    assert abs(np.median(random.cauchy(random.key(1), (20000,)).numpy())) < 0.05


def test_orders_and_choices():
    key = random.key(5)
    assert sorted(random.permutation(key, 50).tolist()) == list(range(50)) != random.permutation(key, 50).tolist()
    x = np.arange(24).reshape(4, 6)
    rows = random.permutation(key, x).numpy()
    assert sorted(map(tuple, rows)) == sorted(map(tuple, x)) and rows.tolist() != x.tolist()
    mixed = random.permutation(key, x, axis=1, independent=True).numpy()
    assert np.sort(mixed, axis=1).tolist() == x.tolist() and len({tuple(np.argsort(r)) for r in mixed}) > 1
    assert sorted(random.choice(key, 9, (3, 3), replace=False).reshape((-1,)).tolist()) == list(range(9))
    p = astra.asarray([0.0, 0.5, 0.0, 0.5])
    assert set(random.choice(key, 4, (100,), p=p).tolist()) == {1, 3}
    assert sorted(random.choice(key, 4, (2,), replace=False, p=p).tolist()) == [1, 3]
    assert random.choice(key, x, (5,), axis=1).shape == (4, 5)
    assert random.categorical(key, astra.zeros((7, 3)), axis=0).shape == (3,)
    sample = random.multivariate_normal(key, astra.asarray([1.0, 2.0]), astra.asarray([[1.0, 0.0], [0.5, 2.0]]), (5000,)).numpy()
    np.testing.assert_allclose(sample.mean(axis=0), [1, 2], atol=0.15)
    np.testing.assert_allclose(np.cov(sample.T), [[1, 0.5], [0.5, 4.25]], atol=0.3)


def test_refusals():
    key = random.key(0)
    with pytest.raises(astra.ArgumentError, match="two uint32"):
        random.normal(astra.asarray([1, 2]))
    with pytest.raises(astra.ArgumentError, match="minval < maxval"):
        random.randint(key, (2,), 5, 5)
    with pytest.raises(astra.ArgumentError, match="within uint8"):
        random.randint(key, (2,), 0, 300, "uint8")
    with pytest.raises(astra.DTypeError, match="float type"):
        random.normal(key, (), "int32")
    with pytest.raises(astra.ArgumentError, match="without repeating"):
        random.choice(key, 3, (4,), replace=False)
    with pytest.raises(astra.ShapeError, match="must end with"):
        random.categorical(key, astra.zeros((4, 3)), shape=(5,))
    with pytest.raises(astra.ArgumentError, match="seed"):
        random.key(1.5)


def share(values, bins):
    return np.bincount(np.clip(values, 0, bins - 1), minlength=bins) / len(values)


@pytest.mark.parametrize("mean", [0.5, 9.9, 10.0, 25.0])
def test_poisson_has_its_probabilities(mean):
    """All probabilities within five deviations, on both sides of where the method changes."""
    n, k = 40000, np.arange(60)
    found = share(random.poisson(random.key(21), mean, (n,)).numpy(), 60)
    want = np.exp(k * np.log(mean) - mean - np.array([math.lgamma(i + 1) for i in k]))
    assert (np.abs(found - want) <= 5 * np.sqrt(want / n) + 1e-4).all()


def test_gamma_has_its_distribution():
    """P(X <= x) of integer shapes is 1 - sum of exp(-x) x^i / i!."""
    for a in (1, 4):
        values = np.sort(random.gamma(random.key(22), float(a), (20000,), "float64").numpy())
        want = 1 - sum(np.exp(-values) * values**i / math.factorial(i) for i in range(a))
        assert np.abs(want - (np.arange(20000) + 0.5) / 20000).max() < 1.63 / 20000**0.5  # Kolmogorov and Smirnov, 1 %


def test_draws_by_rejection_are_the_same_everywhere():
    from astra._rejection import normal_quantile

    key = random.key(9)
    mean, shape = np.array([0.0, 2.0, 30.0]), np.array([0.2, 1.0, 7.5])

    def draw(k):
        return random.poisson(k, mean), random.gamma(k, shape), random.beta(k, shape, 2.0), random.truncated_normal(k, -mean, 1.0)

    eager = [t.tobytes() for t in draw(key)]
    assert [t.tobytes() for t in astra.jit(draw)(key)] == eager
    keys = random.split(key, 3)
    batch = astra.vmap(draw)(keys)
    for i in range(3):
        assert [t[i].tobytes() for t in batch] == [t.tobytes() for t in draw(keys[i])]
    assert random.gamma(key, shape)[:2].tobytes() == random.gamma(key, shape[:2]).tobytes()
    assert random.poisson(key, np.array([-1.0, np.nan])).tolist() == [-1, -1]
    for p, x in ((0.5, 0.0), (0.975, 1.959963984540054), (1e-5, -4.264890793922825), (1e-300, -37.0471)):
        assert abs(normal_quantile(astra.asarray(np.array(p))).item() - x) < 1e-4 * (p < 1e-9) + 1e-14
    t = random.truncated_normal(key, np.array([1.0, 4.0]), np.array([0.5, 4.0001])).numpy()
    assert np.isnan(t[0]) and 4 <= t[1] <= 4.0001
    for call, sentence in ((lambda: random.gamma(key, -1.0), "a is -1.0; it must be above 0"), (lambda: random.poisson(key, 1e20), "lam is 1e"),
                           (lambda: random.truncated_normal(key, 2, 1), "lower < upper"), (lambda: random.beta(key, "x", 1), "a is a str")):  # fmt: skip
        with pytest.raises(astra.ArgumentError, match=sentence):
            call()
