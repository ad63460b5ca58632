"""Activations: functions of each element as networks have them, with PyTorch's definitions and gradients; softmax."""

from __future__ import annotations

from typing import Any

from . import _core
from ._building import axis_of, floating, make, op, operands
from ._elementwise import where
from ._elementwise import greater as _greater
from ._tensor import Tensor, asarray


def _activation(name: str, x: Any, alpha: float | None = None, beta: float | None = None) -> Tensor:
    return make(_core.activation, name, floating(x), alpha, beta)


def sigmoid(x: Any, /) -> Tensor:
    """1 / (1 + e^-x)."""
    x = floating(x)
    return make(_core.complex_function, "sigmoid", x) if x.dtype.kind == "c" else op("sigmoid", x)


def relu(x: Any, /) -> Tensor:
    """max(x, 0)."""
    x = asarray(x)
    return _activation("relu", x) if x.dtype.kind == "f" else where(_greater(x, 0), x, 0)


def relu6(x: Any, /) -> Tensor:
    """x between 0 and 6."""
    return hard_tanh(x, 0.0, 6.0)


def leaky_relu(x: Any, /, negative_slope: float = 0.01) -> Tensor:
    """x, below 0 times negative_slope."""
    return _activation("leakyrelu", x, negative_slope)


def prelu(x: Any, weight: Any, /) -> Tensor:
    """x, below 0 times weight, which broadcasts to x."""
    x, weight = operands(floating(x), weight)
    return make(_core.prelu, x, weight)


def elu(x: Any, /, alpha: float = 1.0) -> Tensor:
    """x, below 0 alpha (e^x - 1)."""
    return _activation("elu", x, alpha)


def celu(x: Any, /, alpha: float = 1.0) -> Tensor:
    """x, below 0 alpha (e^(x / alpha) - 1)."""
    return make(_core.celu, floating(x), alpha)


def selu(x: Any, /) -> Tensor:
    """elu with the scales of self-normalizing networks."""
    return make(_core.selu, floating(x), 1.6732632423543772848, 1.0507009873554804934)


def gelu(x: Any, /, approximate: Any = False) -> Tensor:
    """x times the normal distribution's share below x; approximate=True or "tanh": by a tanh."""
    return make(_core.gelu, floating(x), approximate not in (False, "none"))


def silu(x: Any, /) -> Tensor:
    """x sigmoid(x)."""
    return make(_core.swish, floating(x), 1.0)


def mish(x: Any, /) -> Tensor:
    """x tanh(softplus(x))."""
    return make(_core.mish, floating(x))


def softplus(x: Any, /) -> Tensor:
    """log(1 + e^x) without overflow."""
    return _activation("softplus", x)


def softsign(x: Any, /) -> Tensor:
    """x / (1 + |x|)."""
    return _activation("softsign", x)


def log_sigmoid(x: Any, /) -> Tensor:
    """log(sigmoid(x)) without overflow."""
    return make(_core.log_sigmoid, floating(x))


def hard_sigmoid(x: Any, /) -> Tensor:
    """x / 6 + 1/2 between 0 and 1."""
    return _activation("hardsigmoid", x, 1 / 6, 0.5)


def hard_swish(x: Any, /) -> Tensor:
    """x hard_sigmoid(x)."""
    return make(_core.hard_swish, floating(x))


def hard_tanh(x: Any, /, min: float = -1.0, max: float = 1.0) -> Tensor:
    """x between min and max; no gradient at the bounds."""
    x = floating(x)
    lo, hi = operands(x, min)[1], operands(x, max)[1]
    return make(_core.clip, x, lo, hi)


def soft_shrink(x: Any, /, bound: float = 0.5) -> Tensor:
    """x moved toward 0 by the bound, 0 within it."""
    return make(_core.shrinkage, floating(x), bound, bound)


def hard_shrink(x: Any, /, bound: float = 0.5) -> Tensor:
    """x, 0 within the bound."""
    return make(_core.shrinkage, floating(x), 0.0, bound)


def tanh_shrink(x: Any, /) -> Tensor:
    """x - tanh(x)."""
    return make(_core.tanh_shrink, floating(x))


def glu(x: Any, /, axis: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second."""
    return make(_core.glu, floating(x), axis)


def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """exp(x) over its sum along an axis."""
    x = floating(x)
    return make(_core.softmax, x, [axis_of(axis, x.ndim)])


def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """log(softmax(x)), without overflow."""
    x = floating(x)
    return make(_core.log_softmax, x, [axis_of(axis, x.ndim)])


__all__ = [
    "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_swish", "hard_tanh", "leaky_relu", "log_sigmoid", "log_softmax",
    "mish", "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "tanh_shrink",
]  # fmt: skip
