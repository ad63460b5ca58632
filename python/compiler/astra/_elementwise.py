"""Functions of each element.

Takes:    tensors, arrays, numbers, which broadcast.
Gives:    tensors.
Keeps:    names and meanings of the Array API 2025.12. Functions with fractions as results make float32 of integers and bools.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _core, _dtypes
from ._building import BOOL, cast, floating, make, op, operands
from ._errors import DTypeError
from ._graph import current
from ._tensor import Tensor, asarray, call, of_node


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# ---- of one operand


def _unary(name: str, node: str, doc: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return op(node, x if type(x) is Tensor else asarray(x))

    return _named(function, name, doc)


def _function(name: str, doc: str, node: str | None = None) -> Callable[[Any], Tensor]:
    """Of floats an op, of complex numbers a composite."""

    def function(x: Any, /) -> Tensor:
        x = floating(x)
        return make(_core.complex_function, name, x) if x.dtype.kind == "c" else op(node or name, x)

    return _named(function, name, doc)


def _real_function(name: str, doc: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return op(name, floating(x))

    return _named(function, name, doc)


negative = _unary("negative", "neg", "-x; of unsigned integers modulo 2^bits.")
stop_gradient = _unary("stop_gradient", "detach", "x, through which no gradient goes.")

sqrt = _function("sqrt", "The square root, correctly rounded for real numbers.")
exp = _function("exp", "e^x.")
expm1 = _function("expm1", "e^x - 1.")
log = _function("log", "The natural logarithm.")
log2 = _function("log2", "The logarithm to base 2.")
log1p = _function("log1p", "log(1 + x).")
sin = _function("sin", "The sine.")
cos = _function("cos", "The cosine.")
tan = _function("tan", "The tangent.")
sinh = _function("sinh", "The hyperbolic sine.")
cosh = _function("cosh", "The hyperbolic cosine.")
tanh = _function("tanh", "The hyperbolic tangent.")
asin = _function("asin", "The arc sine.")
acos = _function("acos", "The arc cosine.")
atan = _function("atan", "The arc tangent.")
asinh = _function("asinh", "The inverse of sinh.")
acosh = _function("acosh", "The inverse of cosh.")
atanh = _function("atanh", "The inverse of tanh.")
exp2 = _real_function("exp2", "2^x.")
erf = _real_function("erf", "The error function.")
rsqrt = _function("rsqrt", "1 / sqrt(x).")


def abs(x: Any, /) -> Tensor:
    """The magnitude; of complex numbers a real one."""
    x = asarray(x)
    return x if x.dtype.kind in "ub" else op("abs", x)


def log10(x: Any, /) -> Tensor:
    """The logarithm to base 10."""
    x = floating(x)
    return make(_core.complex_function, "log10", x) if x.dtype.kind == "c" else make(_core.log10, x)


def _rounding(name: str, node: str, doc: str, of_complex: bool = False) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        x = asarray(x)
        if x.dtype.kind in "iub":
            return x
        if of_complex and x.dtype.kind == "c":
            return op("complex", op(node, op("real", x)), op(node, op("imag", x)))
        return op(node, x)

    return _named(function, name, doc)


floor = _rounding("floor", "floor", "The greatest integer not above x.")
ceil = _rounding("ceil", "ceil", "The least integer not below x.")
trunc = _rounding("trunc", "trunc", "x without its fraction.")
round = _rounding("round", "roundeven", "The nearest integer, ties to even; of complex numbers part by part.", True)


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1, a NaN stays; of complex numbers z / |z|."""
    x = asarray(x)
    if x.dtype.kind == "f":
        return add(make(_core.sign, x), 0.0)  # of -0 it is 0
    return make(_core.complex_sign if x.dtype.kind == "c" else _core.sign, x)


def signbit(x: Any, /) -> Tensor:
    """Whether the sign bit is set. A NaN has none: NaNs are canonical (N6 of docs/numerics.md)."""
    x = asarray(x)
    if x.dtype.kind in "iub":
        return less(x, 0)
    return make(_core.signbit, x)


def positive(x: Any, /) -> Tensor:
    """x."""
    return asarray(x)


def square(x: Any, /) -> Tensor:
    """x * x."""
    x = asarray(x)
    return _node("mul", x, x)


def reciprocal(x: Any, /) -> Tensor:
    """1 / x."""
    return divide(1, x)


def isnan(x: Any, /) -> Tensor:
    """Whether x, or a part of it, is not a number."""
    x = asarray(x)
    return _node("ne", x, x)


def isfinite(x: Any, /) -> Tensor:
    """Whether x, or both parts of it, are neither infinite nor NaN."""
    x = asarray(x)
    if x.dtype.kind == "c":
        return bitwise_and(isfinite(real(x)), isfinite(imag(x)))
    return equal(x, x) if x.dtype.kind in "iub" else make(_core.isfinite, x)


def isinf(x: Any, /) -> Tensor:
    """Whether x, or a part of it, is infinite."""
    x = asarray(x)
    if x.dtype.kind == "c":
        return bitwise_or(isinf(real(x)), isinf(imag(x)))
    return not_equal(x, x) if x.dtype.kind in "iub" else make(_core.isinf, x)


def real(x: Any, /) -> Tensor:
    """The real part."""
    x = asarray(x)
    return op("real", x) if x.dtype.kind == "c" else x


def imag(x: Any, /) -> Tensor:
    """The imaginary part; 0 of real numbers."""
    x = asarray(x)
    if x.dtype.kind == "c":
        return op("imag", x)
    from ._creation import zeros_like

    return zeros_like(x)


def conj(x: Any, /) -> Tensor:
    """The complex conjugate."""
    x = asarray(x)
    return make(_core.conjugate, x) if x.dtype.kind == "c" else x


def angle(x: Any, /) -> Tensor:
    """The angle of complex numbers, in -pi .. pi."""
    x = floating(x)
    return atan2(imag(x), real(x))


def logical_not(x: Any, /) -> Tensor:
    """Whether x is 0 or false."""
    return op("not", cast(asarray(x), BOOL))


def bitwise_invert(x: Any, /) -> Tensor:
    """The complement of the bits; of bools `not`."""
    return op("not", asarray(x))


def bitwise_count(x: Any, /) -> Tensor:
    """The number of bits that are set in the magnitude."""
    return op("popcount", abs(x))


# ---- of two operands


def _node(name: str, x: Tensor, y: Tensor) -> Tensor:
    graph = current()
    return of_node(graph, call(_core.binary, graph.core, name, x._in(graph), y._in(graph)))


def _binary(name: str, node: str, doc: str, swapped: bool = False) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        x1, x2 = operands(x1, x2)
        return _node(node, x2, x1) if swapped else _node(node, x1, x2)

    return _named(function, name, doc)


def _of_two_floats(name: str, composite: Any, doc: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        x1, x2 = operands(x1, x2)
        return make(composite, floating(x1), floating(x2))

    return _named(function, name, doc)


add = _binary("add", "add", "x1 + x2.")
subtract = _binary("subtract", "sub", "x1 - x2.")
multiply = _binary("multiply", "mul", "x1 * x2.")
maximum = _binary("maximum", "max", "The greater; a NaN wins, -0 < +0.")
minimum = _binary("minimum", "min", "The lesser; a NaN wins, -0 < +0.")
equal = _binary("equal", "eq", "x1 == x2.")
not_equal = _binary("not_equal", "ne", "x1 != x2.")
less = _binary("less", "lt", "x1 < x2.")
less_equal = _binary("less_equal", "le", "x1 <= x2.")
greater = _binary("greater", "lt", "x1 > x2.", swapped=True)
greater_equal = _binary("greater_equal", "le", "x1 >= x2.", swapped=True)
bitwise_and = _binary("bitwise_and", "and", "Bits that both have.")
bitwise_or = _binary("bitwise_or", "or", "Bits that one has.")
bitwise_xor = _binary("bitwise_xor", "xor", "Bits that one alone has.")
bitwise_left_shift = _binary("bitwise_left_shift", "shl", "x1 shifted left by x2; by its width or more: 0.")
bitwise_right_shift = _binary("bitwise_right_shift", "shr", "x1 shifted right by x2, the sign kept.")
atan2 = _of_two_floats("atan2", _core.atan2, "The angle of the point (x2, x1), in -pi .. pi.")
hypot = _of_two_floats("hypot", _core.hypot, "sqrt(x1^2 + x2^2) without overflow on the way.")
logaddexp = _of_two_floats("logaddexp", _core.logaddexp, "log(e^x1 + e^x2) without overflow.")
nextafter = _of_two_floats("nextafter", _core.nextafter, "The next number of the type from x1 toward x2.")


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """x1 with the sign of x2."""
    x1, x2 = operands(x1, x2)
    return _node("copysign", floating(x1), floating(x2))


def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2, of integers a float."""
    x1, x2 = operands(x1, x2)
    return _node("div", floating(x1), floating(x2))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient rounded down; of integers 0 where x2 is 0."""
    x1, x2 = operands(x1, x2)
    return _node("floordiv", x1, x2) if x1.dtype.kind in "iu" else make(_core.floor_quotient, x1, x2)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2, exact, of the sign of x2; of integers x1 where x2 is 0."""
    x1, x2 = operands(x1, x2)
    return make(_core.remainder, x1, x2, False)


def fmod(x1: Any, x2: Any, /) -> Tensor:
    """x1 - trunc(x1 / x2) * x2, exact, of the sign of x1."""
    x1, x2 = operands(x1, x2)
    return make(_core.remainder, x1, x2, True)


def pow(x1: Any, x2: Any, /) -> Tensor:
    """x1^x2; integers wrap, and a negative exponent of integers truncates."""
    x1, x2 = operands(x1, x2)
    return make(_core.complex_power if x1.dtype.kind == "c" else _core.power, x1, x2)


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true."""
    return _node("and", cast(asarray(x1), BOOL), cast(asarray(x2), BOOL))


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one is true."""
    return _node("or", cast(asarray(x1), BOOL), cast(asarray(x2), BOOL))


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether one alone is true."""
    return _node("xor", cast(asarray(x1), BOOL), cast(asarray(x2), BOOL))


# ---- of three


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, else x2."""
    x1, x2 = operands(x1, x2)
    return make(_core.select, cast(asarray(condition), BOOL), x1, x2)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x brought between min and max, each a number, a tensor, or None. The greater of x and min, then the lesser of that and max."""
    x = asarray(x)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def lerp(start: Any, end: Any, weight: Any, /) -> Tensor:
    """start + weight * (end - start), exact at both ends."""
    start, end, weight = operands(start, end, weight)
    return make(_core.interpolated, floating(start), floating(end), floating(weight))


def nan_to_num(x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """x with numbers in place of NaNs and infinities, of which the greatest finite ones are the default."""
    from ._inspection import finfo

    x = asarray(x)
    if x.dtype.kind in "iub":
        return x
    if x.dtype.kind == "c":
        raise DTypeError("nan_to_num is of real numbers: take the real and the imaginary part")
    limits = finfo(x.dtype)
    y = where(isnan(x), nan, x)
    y = where(equal(x, float("inf")), limits.max if posinf is None else posinf, y)
    return where(equal(x, float("-inf")), limits.min if neginf is None else neginf, y)


def isclose(x1: Any, x2: Any, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |x1 - x2| <= atol + rtol |x2|; equal infinities are close, NaNs where equal_nan."""
    x1, x2 = operands(x1, x2)
    x1, x2 = floating(x1), floating(x2)
    near = bitwise_and(less_equal(abs(subtract(x1, x2)), add(multiply(abs(x2), rtol), atol)), isfinite(x2))
    near = bitwise_or(near, equal(x1, x2))
    return bitwise_or(near, bitwise_and(isnan(x1), isnan(x2))) if equal_nan else near


# ---- types


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another element type: floats to integers truncate and saturate, a NaN gives 0; integers wrap."""
    from ._building import on_cpu

    on_cpu(device)
    return cast(asarray(x), _dtypes.dtype(dtype))


def bitcast(x: Any, dtype: Any) -> Tensor:
    """The same bits as another type of the same width."""
    return op("bitcast", asarray(x), dtype=_dtypes.dtype(dtype).code)


__all__ = [
    "abs", "acos", "acosh", "add", "angle", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitcast", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "erf", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod", "greater", "greater_equal", "hypot", "imag",
    "isclose", "isfinite", "isinf", "isnan", "lerp", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nan_to_num", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "stop_gradient", "subtract", "tan", "tanh", "trunc", "where",
]  # fmt: skip
