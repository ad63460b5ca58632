"""Tensors, transforms and stages together: what every part of the package stands on."""

import numpy as np
import pytest

import astra


def test_values_and_types():
    x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.dtype is astra.float32 and x.shape == (2, 2)
    y = (x @ x.T).softmax(axis=-1)
    np.testing.assert_allclose(y.numpy().sum(axis=-1), 1, rtol=1e-6)
    assert not y.numpy().flags.writeable


def test_evaluator_and_compiled_code_give_the_same_bytes():
    from astra._evaluate import evaluate

    rng = np.random.default_rng(0)
    x = astra.asarray(rng.standard_normal((7, 33), dtype=np.float32))
    y = astra.exp(x @ x.T).sum(axis=0) / astra.sqrt(astra.abs(x).max())
    by = [evaluate(y._graph, [y._node], how)[0].tobytes() for how in ("evaluator", "compiled")]
    assert by[0] == by[1]


def test_transforms_nest():
    x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert astra.grad(lambda x: (x * x).sum())(x).tolist() == [[2, 4], [6, 8]]
    assert astra.vmap(astra.grad(lambda r: (r * r * r).sum()))(x).tolist() == [[3, 12], [27, 48]]
    assert astra.grad(lambda x: astra.grad(lambda y: (y * y * y).sum())(x).sum())(x).tolist() == [[6, 12], [18, 24]]


def test_control():
    total, doubled = astra.scan(lambda c, x: (c + x, c * 2), astra.tensor(0.0), astra.tensor([1.0, 2.0, 3.0]))
    assert total.item() == 6 and doubled.tolist() == [0, 2, 6]
    n, v = astra.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (astra.tensor(0), astra.tensor(1.0)))
    assert n.item() == 3 and v.item() == 8
    outside = astra.tensor(3.0)
    assert astra.cond(astra.tensor(True), lambda a: a * outside, lambda a: a, astra.tensor(2.0)).item() == 6


def test_a_bundle_for_all_sizes_within_bounds(tmp_path):
    n = astra.dim("n", 1, 64)
    w = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    compiled = astra.trace(lambda x: x @ w, astra.spec((n, 2))).lower().compile("native")
    compiled.save(tmp_path / "m.astra")
    model = astra.load(tmp_path / "m.astra")
    for rows in (1, 2, 64):
        x = np.ones((rows, 2), np.float32)
        assert model(x).numpy().tolist() == (x @ w.numpy()).tolist()
    with pytest.raises(astra.Error, match="64"):
        model(np.ones((65, 2), np.float32))


def test_a_traced_function_may_not_look():
    with pytest.raises(astra.TraceError, match="test_core.py"):
        astra.jit(lambda x: float(x.sum()))(astra.tensor([1.0]))


def test_the_module_is_a_decorator():
    from astra import astra as decorator

    @decorator
    def double(x):
        return x + x

    assert double(astra.tensor([1.0, 2.0])).tolist() == [2, 4]


def test_dims_of_one_name_with_other_bounds():
    one, other = astra.dim("n", 1, 8), astra.dim("n", 1, 16)
    assert (one.bounds, other.bounds, one.bounds) == ((1, 8), (1, 16), (1, 8))
    assert (str(one + 1), str(other * 2)) == ("n + 1", "n*2")
    with pytest.raises(astra.ArgumentError, match="1..16"):
        one + other
