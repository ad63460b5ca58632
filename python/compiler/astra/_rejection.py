"""astra.random: distributions that need more than one formula: truncated_normal, gamma, beta, poisson.

Takes:    keys, parameters that broadcast to the shape.
Gives:    tensors; JAX's names. No gradient goes to the parameters.
Keeps:    element i depends on the key, i and its own parameters alone. A draw by rejection tries again with other keys until all elements are
          accepted, 32 times at most: attempt n has the keys of fold_in(key, n). What is left then, of probability below 1e-17 an
          element, takes the middle of its distribution.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from . import _control, _dims, _dtypes, _ops
from ._dtypes import DTYPES
from ._errors import ArgumentError, DTypeError
from ._tensor import Tensor, asarray

F32, F64, I64 = (DTYPES[n] for n in ("float32", "float64", "int64"))
_ATTEMPTS = 32

# Wichura's AS 241 (PPND16): the quantile of the normal distribution to 16 digits, as quotients of polynomials of r, the highest power first.
_MIDDLE = ((2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
            1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
           (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
            687.1870074920579083, 42.313330701600911252, 1.0))  # fmt: skip
_SIDE = ((7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258, 3.64784832476320460504,
          5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
         (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459, 0.68976733498510000455,
          1.6763848301838038494, 2.05319162663775882187, 1.0))  # fmt: skip
_TAIL = ((2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093, 0.29656057182850489123,
          1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
         (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4, 0.0148753612908506148525,
          0.13692988092273580531, 0.59983220655588793769, 1.0))  # fmt: skip


def _quotient(r: Tensor, parts: Any) -> Tensor:
    above, below = (_polynomial(r, p) for p in parts)
    return above / below


def _polynomial(r: Tensor, coefficients: Sequence[float]) -> Tensor:
    out = _ops.full_like(r, coefficients[0])
    for c in coefficients[1:]:
        out = out * r + c
    return out


def normal_quantile(p: Tensor) -> Tensor:
    """x with the normal distribution's P(X <= x) = p; p is of float64, in (0, 1)."""
    q = p - 0.5
    middle = q * _quotient(0.180625 - q * q, _MIDDLE)
    r = _ops.sqrt(-_ops.log(_ops.minimum(p, 1 - p)))
    far = _ops.where(r <= 5.0, _quotient(r - 1.6, _SIDE), _quotient(r - 5.0, _TAIL))
    return _ops.where(_ops.abs(q) <= 0.425, middle, _ops.copysign(far, q))


def _float(dtype: Any) -> tuple[Any, Any]:
    """The type asked for, and the one that numbers are drawn in."""
    t = _dtypes.dtype(dtype)
    if t.kind != "f":
        raise DTypeError(f"the numbers are of a float type, not {t.name}")
    return t, F64 if t is F64 else F32


def _parameters(shape: Any, t: Any, **given: Any) -> tuple[Any, list[Tensor]]:
    """Parameters as tensors of a type and of the shape; None: the one that they broadcast to."""
    made = []
    for name, x in given.items():
        if isinstance(x, bool) or not isinstance(x, (int, float, Tensor)) and not hasattr(x, "shape") and not isinstance(x, (list, tuple)):
            raise ArgumentError(f"{name} is a {type(x).__name__}; it must be a number or a tensor")
        made.append(_ops.stop_gradient(_ops.astype(_ops.floating(x), t)))
    if shape is None:
        shape = _ops.broadcast_arrays(*made)[0].shape if made else ()
    shape = (shape,) if isinstance(shape, (int, _dims.Dim)) else tuple(shape)
    return shape, [_ops.broadcast_to(x, shape) for x in made]


def _positive(**given: Any) -> None:
    for name, x in given.items():
        if isinstance(x, (int, float)) and not x > 0:
            raise ArgumentError(f"{name} is {x}; it must be above 0")


def _attempted(key: Any, first: Tensor, attempt: Callable[[Any, Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """attempt(key, value) gives (another value, whether it is accepted) until all are; first: what is taken where none is."""
    from ._random import fold_in

    def body(s: Any) -> Any:
        n, value, done = s
        new, accepted = attempt(fold_in(key, n), value)
        return n + 1, _ops.where(done, value, _ops.where(accepted, new, value)), _ops.logical_or(done, accepted)

    start = (asarray(0), first, _ops.zeros_like(first, dtype="bool"))
    return _control.while_loop(lambda s: _ops.logical_and(s[0] < _ATTEMPTS, _ops.logical_not(_ops.all(s[2]))), body, start)[1]


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = F32) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 within lower .. upper: the quantile (Wichura's AS 241, float64) of a uniform number
    between the probabilities of the bounds. Good to 1e-9 for bounds up to 5 on one side; of both beyond 6 the numbers are coarse."""
    from ._random import uniform

    t, _ = _float(dtype)
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and not lower < upper:
        raise ArgumentError(f"truncated_normal needs lower < upper; they are {lower} and {upper}")
    shape, (lo, hi) = _parameters(shape, F64, lower=lower, upper=upper)
    flip = lo > 0  # the probabilities of what is above 0 have no digits: they are those of its mirror image
    lo, hi = _ops.where(flip, -hi, lo), _ops.where(flip, -lo, hi)
    below, above = ((1 + _ops.erf(x * math.sqrt(0.5))) * 0.5 for x in (lo, hi))
    u = uniform(key, shape, F64)
    p = _ops.clip(below + u * (above - below), 2.0**-1000, 1 - 2.0**-53)
    x = _ops.clip(normal_quantile(p), lo, hi)
    x = _ops.where(flip, -x, x)
    x = _ops.where(lo < hi, x, math.nan)
    return _ops.astype(x, t)


def _log_gamma(key: Any, a: Tensor, shape: Any, t: Any) -> Tensor:
    """The logarithm of gamma numbers: Marsaglia and Tsang's rejection of a + 1 where a is below 1, scaled by u^(1/a)."""
    from ._random import exponential, fold_in, normal, split

    small = a < 1
    d = _ops.where(small, a + 1, a) - 1 / 3
    c = 1 / _ops.sqrt(9 * d)

    def attempt(k: Any, value: Tensor) -> tuple[Tensor, Tensor]:
        pair = split(k)
        x, log_u = normal(pair[0], shape, t), -exponential(pair[1], shape, t)
        v = 1 + c * x
        v = v * v * v
        inside = v > 0
        log_v = _ops.log(_ops.where(inside, v, 1.0))
        return log_v, _ops.logical_and(inside, log_u < 0.5 * x * x + d - d * v + d * log_v)

    log_v = _attempted(key, _ops.zeros_like(d), attempt)
    boost = -exponential(fold_in(key, _ATTEMPTS), shape, t) / _ops.where(small, a, 1.0)
    out = _ops.log(d) + log_v + _ops.where(small, boost, 0.0)
    return _ops.where(a > 0, out, math.nan)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = F32) -> Tensor:
    """Gamma numbers of shape a and scale 1: Marsaglia and Tsang's method (ACM Trans. Math. Softw. 26, 2000), which is exact but for the
    rounding of its numbers."""
    t, wide = _float(dtype)
    _positive(a=a)
    shape, (x,) = _parameters(shape, wide, a=a)
    return _ops.astype(_ops.exp(_log_gamma(key, x, shape, wide)), t)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = F32) -> Tensor:
    """Beta numbers: x / (x + y) of gamma numbers x of a and y of b, by their logarithms."""
    from ._random import split

    t, wide = _float(dtype)
    _positive(a=a, b=b)
    shape, (x, y) = _parameters(shape, wide, a=a, b=b)
    pair = split(key)
    p, q = _log_gamma(pair[0], x, shape, wide), _log_gamma(pair[1], y, shape, wide)
    return _ops.astype(_ops.exp(p - _ops.logaddexp(p, q)), t)


def _log_factorial(k: Tensor) -> Tensor:
    """log(k!) of float64 numbers k >= 0, by Stirling's series of k + 9: good to 1e-12."""
    x = k + 9.0
    r = 1 / x
    series = r * _polynomial(r * r, (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12))
    product = _ops.ones_like(k)
    for i in range(1, 9):
        product = product * ((k + float(i)) / x)  # below 1: no overflow
    return (x - 0.5) * _ops.log(x) - x + 0.5 * math.log(2 * math.pi) + series - _ops.log(product) - 8 * _ops.log(x)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = I64) -> Tensor:
    """Poisson numbers of mean lam. Below 10: the distribution's inverse at a uniform number of 53 bits. From 10 on: Hoermann's rejection
    PTRS (Insurance: Mathematics and Economics 12, 1993), in float64. A mean that is negative or no number gives -1."""
    from ._random import fold_in, split, uniform

    t = _dtypes.dtype(dtype)
    if t.kind not in "iu":
        raise DTypeError(f"poisson gives integers, not {t.name}")
    if isinstance(lam, (int, float)) and not 0 <= lam <= 2.0**52:
        raise ArgumentError(f"lam is {lam}; it must be in 0 .. 2^52")
    shape, (mean,) = _parameters(shape, F64, lam=lam)
    few, many = _ops.where(mean < 10, mean, 0.0), _ops.where(mean >= 10, mean, 10.0)

    u = uniform(fold_in(key, _ATTEMPTS), shape, F64)
    first = _ops.exp(-few)

    def count(s: Any) -> Any:
        k, term, total, found = s
        term = term * few / _ops.astype(k + 1, F64)
        return k + 1, term, total + term, found + _ops.astype(u >= total, F64)

    # P(X > 80) of a mean of 10 is below 1e-40: there is no number of 53 bits beyond.
    small = _control.while_loop(lambda s: _ops.logical_and(s[0] < 80, _ops.any(u >= s[2])), count, (asarray(0), first, first, _ops.zeros_like(few)))[3]

    root = 0.931 + 2.53 * _ops.sqrt(many)
    a = -0.059 + 0.02483 * root
    inverse, least = 1.1239 + 1.1328 / (root - 3.4), 0.9277 - 3.6224 / (root - 2)

    def attempt(k: Any, value: Tensor) -> tuple[Tensor, Tensor]:
        pair = split(k)
        x, v = uniform(pair[0], shape, F64) - 0.5, 1 - uniform(pair[1], shape, F64)
        s = 0.5 - _ops.abs(x)
        width = _ops.where(s > 0, s, 2.0**-54)
        n = _ops.floor((2 * a / width + root) * x + many + 0.43)
        at_once = _ops.logical_and(s >= 0.07, v <= least)
        outside = _ops.logical_or(n < 0, _ops.logical_and(s < 0.013, v > s))
        k_ = _ops.maximum(n, 0.0)
        bound = k_ * _ops.log(many) - many - _log_factorial(k_)
        below = _ops.log(v) + _ops.log(inverse) - _ops.log(a / (width * width) + root) <= bound
        return n, _ops.logical_or(at_once, _ops.logical_and(_ops.logical_not(outside), below))

    large = _attempted(key, _ops.floor(many), attempt)
    out = _ops.where(mean < 10, small, large)
    return _ops.astype(_ops.where(mean >= 0, out, -1.0), t)


__all__ = ["beta", "gamma", "poisson", "truncated_normal"]
