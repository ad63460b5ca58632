"""Element by element: arithmetic, comparisons, functions, activations, conversions.

Keeps:    PyTorch's promotion (types.py), its division, remainders and powers at their edges. Formulas are composites of lib/Compose.
"""

from __future__ import annotations

import math
from typing import Any, Callable

from ... import _core, _dims, _ops
from ..._dtypes import DType
from ..._tensor import Tensor
from .registry import refuse, row
from .types import BOOL, as_type, category, computed, opmath, own_type, result_type


def node(name: str, x: Tensor, y: Tensor) -> Tensor:
    """A primitive op of two operands of one type, which broadcast."""
    return _ops.make(_core.binary, name, x, y)


def _unary(name: str, f: Callable[[Tensor], Tensor], floats: bool = True) -> None:
    row("aten." + name)(lambda x: computed(f, x, floats=floats))


# Functions that give floats, of complex numbers too.
for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "rsqrt", "sqrt",
              "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "reciprocal"):  # fmt: skip
    _unary(_name, getattr(_ops, _name))


_unary("erfc", lambda x: _ops.make(_core.erfc, x))
_unary("neg", _ops.negative, floats=False)
_unary("square", _ops.square, floats=False)
_unary("sinc", lambda x: _ops.make(_core.sinc, x))


@row("aten.abs")
def _abs(x: Tensor) -> Tensor:
    return x if x.dtype.kind in "bu" else _ops.abs(x)


def _whole(name: str, op: str) -> None:
    row("aten." + name)(lambda x: x if category(x.dtype) < 2 else as_type(_ops.op(op, as_type(x, opmath(x.dtype))), x.dtype))


_whole("floor", "floor")
_whole("ceil", "ceil")
_whole("trunc", "trunc")


@row("aten.round")
def _round(x: Tensor, *, decimals: int = 0) -> Tensor:
    if category(x.dtype) < 2:
        return x
    wide = as_type(x, opmath(x.dtype))
    if decimals == 0:
        return as_type(_ops.round(wide), x.dtype)
    ten = _ops.literal(10.0 ** abs(decimals), wide.dtype)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return as_type(node(back, _ops.round(node(there, wide, ten)), ten), x.dtype)


@row("aten.frac")
def _frac(x: Tensor) -> Tensor:
    return computed(lambda x: node("sub", x, _ops.trunc(x)), x)


@row("aten.sign", "aten.sgn")
def _sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; PyTorch's is 0 of a NaN. Of complex numbers on the unit circle."""
    if x.dtype.kind == "b":
        return x
    return _ops.make(_core.complex_sign if x.dtype.kind == "c" else _core.sign_or_zero, x)


row("aten.signbit")(_ops.signbit)


# ---- arithmetic


def _sum_or_difference(op: str, logical: str) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, alpha: Any = 1) -> Tensor:
        def f(x: Tensor, y: Tensor) -> Tensor:
            if not (isinstance(alpha, (int, float)) and alpha == 1):
                y = node("and" if y.dtype.kind == "b" else "mul", y, as_type(alpha, y.dtype))
            return node(logical if x.dtype.kind == "b" else op, x, y)

        return computed(f, x, y)

    return function


row("aten.add")(_sum_or_difference("add", "or"))
row("aten.sub")(_sum_or_difference("sub", "xor"))
row("aten.rsub")(lambda x, y, alpha=1: _sum_or_difference("sub", "xor")(y, x, alpha))


@row("aten.mul")
def _mul(x: Any, y: Any) -> Tensor:
    return computed(lambda x, y: node("and" if x.dtype.kind == "b" else "mul", x, y), x, y)


def _floor_quotient(x: Tensor, y: Tensor) -> Tensor:
    """The exact quotient rounded down. As Python has it, that of an infinity is no number, unless y is 0."""
    quotient = _ops.floor_divide(x, y)
    if x.dtype.kind in "iu":
        return quotient
    return _ops.where(_ops.logical_and(_ops.isinf(x), _ops.not_equal(y, 0)), _ops.literal(math.nan, x.dtype), quotient)


@row("aten.div", "aten.true_divide", "aten.divide")
def _div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return computed(lambda x, y: node("div", x, y), x, y, floats=True)
    if rounding_mode == "floor":
        return computed(_floor_quotient, x, y)

    t = result_type(x, y)

    def f(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype.kind in "iu":
            return node("truncdiv", x, y)
        return _ops.trunc(as_type(as_type(node("div", x, y), t), x.dtype))  # of halves the rounded quotient

    return computed(f, x, y)


row("aten.floor_divide")(lambda x, y: computed(_floor_quotient, x, y))


row("aten.fmod")(lambda x, y: computed(_ops.fmod, x, y))


@row("aten.remainder")
def _remainder(x: Any, y: Any) -> Tensor:
    def f(x: Tensor, y: Tensor) -> Tensor:
        left = _ops.remainder(x, y)
        if x.dtype.kind in "iu":
            return left
        return _ops.where(_ops.equal(left, 0), node("copysign", left, x), left)  # a zero has the sign of x

    return computed(f, x, y)


@row("aten.pow")
def _pow(x: Any, y: Any) -> Tensor:
    if not isinstance(y, Tensor) and isinstance(x, Tensor) and not isinstance(y, _dims.Dim):
        t = result_type(x, y)
        wide = as_type(x, opmath(t))
        if y == 1:
            return as_type(wide, t)
        if category(t) == 2 and y in (0.5, -0.5) and t.code != "f16":  # of f16 PyTorch's is a power
            return as_type(_ops.sqrt(wide) if y > 0 else _ops.rsqrt(wide), t)
        if category(t) == 2 and y in (-1, -2):
            return as_type(node("div", _ops.literal(1, wide.dtype), wide if y == -1 else _ops.square(wide)), t)
        if category(t) == 3 and y == 2:
            return _ops.square(wide)
    return computed(_ops.pow, x, y)


row("aten.atan2")(lambda y, x: computed(lambda y, x: _ops.make(_core.atan2, y, x), y, x, floats=True))
row("aten.hypot")(lambda x, y: computed(lambda x, y: _ops.make(_core.hypot, x, y), x, y))
row("aten.maximum")(lambda x, y: computed(_max, x, y))
row("aten.minimum")(lambda x, y: computed(_min, x, y))


def _max(x: Tensor, y: Tensor) -> Tensor:
    return node("or" if x.dtype.kind == "b" else "max", x, y)


def _min(x: Tensor, y: Tensor) -> Tensor:
    return node("and" if x.dtype.kind == "b" else "min", x, y)


def _number(logical: str, composite: Any) -> Callable[..., Tensor]:
    """An extreme in which a number wins over a NaN."""
    return lambda x, y: computed(lambda x, y: node(logical, x, y) if x.dtype.kind == "b" else _ops.make(composite, x, y), x, y)


row("aten.fmax")(_number("or", _core.maximum_number))
row("aten.fmin")(_number("and", _core.minimum_number))


def _within(bound: Any, t: DType) -> Any:
    """A bound of integers that is a number, moved into their range."""
    if t.kind not in "iu" or isinstance(bound, (Tensor, _dims.Dim)) or not isinstance(bound, int):
        return bound
    least = 0 if t.kind == "u" else -(1 << (t.bits - 1))
    return max(least, min(bound, least + (1 << t.bits) - 1))


@row("aten.clamp", "aten.clip")
def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    min, max = _within(min, x.dtype), _within(max, x.dtype)

    def f(x: Tensor, *bounds: Tensor) -> Tensor:
        left = list(bounds)
        if min is not None:
            x = _max(x, left.pop(0))
        return _min(x, left.pop(0)) if max is not None else x

    return computed(f, x, *(b for b in (min, max) if b is not None))


row("aten.clamp_min")(lambda x, min: _clamp(x, min))
row("aten.clamp_max")(lambda x, max: _clamp(x, None, max))


@row("aten.copysign")
def _copysign(x: Any, y: Any) -> Tensor:
    return computed(lambda x, y: node("copysign", x, y), x, y, floats=True)


@row("aten.lerp")
def _lerp(x: Tensor, y: Tensor, weight: Any) -> Tensor:
    return computed(lambda x, y, w: _ops.make(_core.interpolated, x, y, w), x, y, weight)


@row("aten.addcmul")
def _addcmul(x: Tensor, y: Tensor, z: Tensor, *, value: Any = 1) -> Tensor:
    return computed(lambda x, y, z: node("add", x, node("mul", node("mul", as_type(value, x.dtype), y), z)), x, y, z)


@row("aten.addcdiv")
def _addcdiv(x: Tensor, y: Tensor, z: Tensor, *, value: Any = 1) -> Tensor:
    return computed(lambda x, y, z: node("add", x, node("mul", as_type(value, x.dtype), node("div", y, z))), x, y, z)


# ---- bits, comparisons, logic


def _bits(name: str, op: str) -> None:
    row("aten." + name)(lambda x, y: computed(lambda x, y: node(op, x, y), x, y))


for _name, _op in (("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor"), ("__and__", "and"), ("__or__", "or"), ("__xor__", "xor")):
    _bits(_name, _op)


def _shift(op: str) -> Callable[..., Tensor]:
    def f(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype.bits < 8 or x.dtype.kind == "b":
            raise NotImplementedError("shifts of bools")
        return node(op, x, y)

    return lambda x, y: computed(f, x, y)


row("aten.bitwise_left_shift", "aten.__lshift__")(_shift("shl"))
row("aten.bitwise_right_shift", "aten.__rshift__")(_shift("shr"))
row("aten.bitwise_not")(lambda x: _ops.op("not", x))


def _comparison(name: str, op: str, exchanged: bool = False) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        return node(op, *((y, x) if exchanged else (x, y)))

    row("aten." + name)(lambda x, y: computed(f, x, y, bools=True))


for _name, _op, _exchanged in (("eq", "eq", False), ("ne", "ne", False), ("lt", "lt", False), ("le", "le", False),
                               ("gt", "lt", True), ("ge", "le", True)):  # fmt: skip
    _comparison(_name, _op, _exchanged)


def truth(x: Any) -> Tensor:
    """x as a bool: whether it is not 0."""
    return as_type(x, BOOL)


row("aten.logical_and")(lambda x, y: _ops.bitwise_and(truth(x), truth(y)))
row("aten.logical_or")(lambda x, y: _ops.bitwise_or(truth(x), truth(y)))
row("aten.logical_xor")(lambda x, y: _ops.bitwise_xor(truth(x), truth(y)))
row("aten.logical_not")(lambda x: _ops.op("not", truth(x)))


row("aten.isnan")(_ops.isnan)
row("aten.isinf")(_ops.isinf)
row("aten.isfinite")(_ops.isfinite)


@row("aten.isposinf")
def _isposinf(x: Tensor) -> Tensor:
    return _ops.equal(x, math.inf) if x.dtype.kind == "f" else _ops.zeros_like(x, dtype=BOOL)


@row("aten.isneginf")
def _isneginf(x: Tensor) -> Tensor:
    return _ops.equal(x, -math.inf) if x.dtype.kind == "f" else _ops.zeros_like(x, dtype=BOOL)


@row("aten.nan_to_num")
def _nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    if x.dtype.kind == "c":
        return _ops.op("complex", *(_nan_to_num(part(x), nan, posinf, neginf) for part in (_ops.real, _ops.imag)))
    return _ops.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


@row("aten.where")
def _where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        from .indexing import nonzero

        return tuple(_ops.squeeze(part, 1) for part in _columns(nonzero(condition)))
    return computed(lambda x, y: _ops.where(truth(condition), x, y), x, y)


def _columns(x: Tensor) -> list[Tensor]:
    return [x[:, i : i + 1] for i in range(x.shape[1])]


@row("aten.masked_fill")
def _masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return _ops.where(mask, as_type(value, x.dtype), x)


# ---- conversions


@row("aten._to_copy", "prims.convert_element_type")
def _to_copy(x: Tensor, dtype: Any = None, **_: Any) -> Tensor:
    return x if dtype is None else as_type(x, own_type(dtype))


@row("aten.clone", "aten.alias", "aten.lift_fresh_copy", "aten.detach", "aten.contiguous", "aten.positive", "aten.lift_fresh")
def _same(x: Tensor, **_: Any) -> Tensor:
    return x


@row("aten.copy")
def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return _ops.broadcast_to(as_type(source, x.dtype), x.shape)


@row("aten.fill")
def _fill(x: Tensor, value: Any) -> Tensor:
    return _ops.broadcast_to(as_type(value, x.dtype), x.shape)


@row("aten._conj", "aten.conj_physical", "aten._conj_physical")
def _conj(x: Any) -> Tensor:
    return _ops.conj(x) if isinstance(x, Tensor) else as_type(complex(x).conjugate(), own_type("complex128"))  # a number is of the widest type
row("aten.real")(_ops.real)
row("aten.imag")(_ops.imag)
row("aten.complex")(lambda x, y: _ops.op("complex", *_ops.broadcast_arrays(x, y)))


@row("aten.polar")
def _polar(size: Tensor, angle: Tensor) -> Tensor:
    return _ops.op("complex", *_ops.broadcast_arrays(_ops.multiply(size, _ops.cos(angle)), _ops.multiply(size, _ops.sin(angle))))


row("aten.nextafter")(lambda x, y: computed(_ops.nextafter, x, y))
row("aten.ldexp")(lambda x, y: _mul(x, _pow(2.0, y)))


@row("aten.view_as_real")
def _view_as_real(x: Tensor) -> Tensor:
    return _ops.stack([_ops.op("real", x), _ops.op("imag", x)], axis=-1)


@row("aten.view_as_complex")
def _view_as_complex(x: Tensor) -> Tensor:
    return _ops.op("complex", x[..., 0], x[..., 1])


# ---- activations


row("aten.relu")(_ops.relu)
row("aten.gelu")(_ops.gelu)
row("aten.silu")(_ops.silu)
row("aten.mish")(_ops.mish)
row("aten.selu")(_ops.selu)
row("aten.celu")(_ops.celu)
row("aten.leaky_relu")(_ops.leaky_relu)
row("aten.hardsigmoid")(_ops.hard_sigmoid)
row("aten.hardswish")(_ops.hard_swish)
row("aten.log_sigmoid")(_ops.log_sigmoid)
row("aten.glu")(lambda x, dim=-1: _ops.glu(x, dim))


@row("aten.elu")
def _elu(x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    return _ops.make(_core.scaled_elu, x, float(alpha), float(scale), float(input_scale))


@row("aten.softplus")
def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    return _ops.make(_core.softplus, x, float(beta), float(threshold))


@row("aten.hardtanh")
def _hardtanh(x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    return _ops.make(_core.clip, x, as_type(_within(low, x.dtype), x.dtype), as_type(_within(high, x.dtype), x.dtype))


row("aten.relu6")(lambda x: _hardtanh(x, 0, 6))


@row("aten.threshold")
def _threshold(x: Tensor, threshold: Any, value: Any) -> Tensor:
    wide = as_type(x, opmath(x.dtype))
    return as_type(_ops.where(_ops.less_equal(wide, as_type(threshold, wide.dtype)), as_type(value, wide.dtype), wide), x.dtype)


@row("aten.log_sigmoid_forward")
def _log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    """With e^-|x|, which the backward op reads."""
    return _ops.log_sigmoid(x), computed(lambda x: _ops.exp(_ops.negative(_ops.abs(x))), x)


@row("aten.prelu", "aten._prelu_kernel")
def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return computed(lambda x, s: _ops.make(_core.prelu, x, s), x, slope)


refuse("it computes by the host's special functions, which the numeric contract does not have",
       "aten.lgamma", "aten.digamma", "aten.erfinv", "aten.polygamma", "aten.igamma", "aten.igammac", "aten.i0")  # fmt: skip
refuse("a mantissa and an exponent have no row", "aten.frexp")
