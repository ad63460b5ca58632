"""Every elementwise function of floats has a derivative: beside differences, or it is named here as one that has none."""

import inspect

import numpy as np
import pytest

import astra
from astra import _activations, _elementwise

POINTS = [np.array([0.35, 0.46, 0.42, 0.38]), np.array([1.45, 1.56, 1.52, 1.7]), np.array([-0.35, -1.6, 0.75, 2.2])]
OTHERS = [np.array([0.6, 1.3, 0.7, 1.9]), np.array([0.9, 1.1, 0.4, 0.8])]
# Functions whose results are other than real floats, or that take no floats.
NO_FLOATS = {"bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "equal",
             "greater", "greater_equal", "isclose", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or",
             "logical_xor", "not_equal", "signbit"}  # fmt: skip
NONE = {"bitcast": "no derivative", "stop_gradient": 0, "nextafter": 0}
EXTRA = {"astype": ("float64",), "bitcast": ("float64",), "clip": (-1.0, 1.0), "where": ()}
NAMES = [n for n in (*_elementwise.__all__, *_activations.__all__) if n not in NO_FLOATS]


def called(name, tensors):
    f = getattr(astra, name)
    return f(tensors[0] > 0.4, *tensors) if name == "where" else f(*tensors, *EXTRA.get(name, ()))


def count(name):
    """How many tensors a function takes."""
    parameters = list(inspect.signature(getattr(astra, name)).parameters.values())
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(wanted) - len(EXTRA.get(name, ())) * (name in ("astype", "bitcast")) - (name == "where")


@pytest.mark.parametrize("name", NAMES)
def test_beside_differences(name):
    compared = 0
    for point in POINTS:
        given = [point, *OTHERS[: count(name) - 1]]
        for k in range(len(given)):
            def f(v, k=k, given=given):  # fmt: skip
                y = called(name, [astra.asarray(v) if i == k else astra.asarray(x) for i, x in enumerate(given)])
                return (y * np.arange(1.0, 1.0 + y.size)).sum()

            if NONE.get(name):
                with pytest.raises(astra.ArgumentError, match=NONE[name]):
                    astra.grad(f)(given[k])
                compared += 1
                continue
            found = astra.grad(f)(given[k]).numpy()
            if name in NONE:
                assert not found.any()
                compared += 1
                continue
            h = 1e-6
            steps = np.eye(4) * h
            want = np.array([(f(given[k] + s).item() - f(given[k] - s).item()) / (2 * h) for s in steps])
            inside = np.isfinite(want)
            np.testing.assert_allclose(found[inside], want[inside], rtol=1e-6, atol=1e-7)
            along = astra.jvp(f, (given[k],), (np.ones(4),))[1].item()
            if inside.all():
                np.testing.assert_allclose(along, want.sum(), rtol=1e-6, atol=1e-7)
            compared += inside.any()
    assert compared


def test_hypot():
    x, y = np.array([3.0, -3e200, 0.0]), np.array([4.0, 4e200, 2.0])
    gx, gy = astra.grad(lambda x, y: astra.hypot(x, y).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gx.numpy(), [0.6, -0.6, 0], rtol=1e-15)
    np.testing.assert_allclose(gy.numpy(), [0.8, 0.8, 1], rtol=1e-15)
    second = astra.hessian(lambda x: astra.hypot(x, 4.0))(np.array(3.0)).item()
    assert abs(second - 16 / 125) < 1e-15
    f = astra.vmap(astra.grad(astra.hypot))
    assert astra.jit(f)(x, y).tobytes() == f(x, y).tobytes()
