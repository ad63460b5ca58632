"""Element by element: arithmetic, comparisons, functions, activations, conversions.

Keeps:    PyTorch's promotion (types.py), its division, remainders and powers at their edges.
"""

from __future__ import annotations

import math
from typing import Any, Callable

from ... import _core, _dims, _ops
from ..._tensor import Tensor
from .registry import refuse, row
from .types import BOOL, F32, F64, I32, I64, as_type, category, computed, float_of, opmath, own_type, result_type  # noqa: F401



def node(name: str, x: Tensor, y: Tensor) -> Tensor:
    """A primitive op of two operands of one type, which broadcast."""
    return _ops.make(_core.binary, name, x, y)


def _primitive(name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: _ops.op(name, x)


def _unary(name: str, f: Callable[[Tensor], Tensor], floats: bool = True) -> None:
    row("aten." + name)(lambda x: computed(f, x, floats=floats))


# Functions that give floats: PyTorch's name, ours.
for _name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "rsqrt", "sqrt",
              "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"):  # fmt: skip
    _unary(_name, _primitive(_name))


_unary("log10", lambda x: _ops.make(_core.log10, x))
_unary("erfc", lambda x: _ops.make(_core.erfc, x))
_unary("reciprocal", lambda x: node("div", _ops.literal(1, x.dtype), x))
_unary("neg", _ops.negative, floats=False)
_unary("square", _ops.square, floats=False)
_unary("sinc", lambda x: _ops.where(_ops.equal(x, 0), 1.0, _ops.divide(_ops.sin(x * math.pi), x * math.pi)))


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


def _sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; PyTorch's is 0 of a NaN."""
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind == "c":  # on the unit circle
        size = _ops.abs(x)
        nothing = _ops.equal(size, 0)
        size = as_type(_ops.where(nothing, 1.0, size), x.dtype)
        return _ops.where(nothing, as_type(0, x.dtype), node("div", x, size))
    zero = _ops.literal(0, x.dtype)
    above, below = as_type(node("lt", zero, x), x.dtype), as_type(node("lt", x, zero), x.dtype)
    return node("sub", above, below)


row("aten.sign", "aten.sgn")(_sign)


@row("aten.signbit")
def _signbit(x: Tensor) -> Tensor:
    if x.dtype.kind == "f":
        return node("lt", _ops.copysign(_ops.ones_like(x), x), _ops.literal(0, x.dtype))
    return _ops.less(x, 0) if x.dtype.kind == "i" else _ops.zeros_like(x, dtype=BOOL)


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


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    return _ops.fmod(x, y)


def _floor_quotient(x: Tensor, y: Tensor) -> Tensor:
    """The quotient rounded down: what the remainder leaves, divided, then the nearest integer to it (as CPython has it)."""
    if x.dtype.kind in "iu":
        return node("floordiv", x, y)
    zero = _ops.literal(0, x.dtype)
    left = _fmod(x, y)
    quotient = node("div", node("sub", x, left), y)
    other_sign = _ops.logical_xor(node("lt", y, zero), node("lt", left, zero))
    quotient = _ops.where(_ops.logical_and(node("ne", left, zero), other_sign), node("sub", quotient, _ops.literal(1, x.dtype)), quotient)
    low = _ops.floor(quotient)
    low = _ops.where(_ops.greater(node("sub", quotient, low), 0.5), node("add", low, _ops.literal(1, x.dtype)), low)
    low = _ops.where(node("ne", quotient, zero), low, _ops.copysign(_ops.broadcast_to(zero, quotient.shape), node("div", x, y)))
    return _ops.where(node("eq", y, zero), node("div", x, y), low)


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


@row("aten.fmod")
def _fmod_row(x: Any, y: Any) -> Tensor:
    return computed(lambda x, y: node("rem", x, y) if x.dtype.kind in "iu" else _fmod(x, y), x, y)


@row("aten.remainder")
def _remainder(x: Any, y: Any) -> Tensor:
    def f(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype.kind in "iu":
            return node("mod", x, y)
        zero, left = _ops.literal(0, x.dtype), _fmod(x, y)
        wrong = _ops.logical_and(node("ne", left, zero), _ops.logical_xor(node("lt", y, zero), node("lt", left, zero)))
        return _ops.where(wrong, node("add", left, y), left)

    return computed(f, x, y)


@row("aten.pow")
def _pow(x: Any, y: Any) -> Tensor:
    if not isinstance(y, Tensor) and isinstance(x, Tensor) and not isinstance(y, _dims.Dim):
        t = result_type(x, y)
        wide = as_type(x, opmath(t))
        if y == 2:
            return as_type(node("mul", wide, wide), t)
        if y == 1:
            return as_type(wide, t)
        if category(t) == 2 and y in (0.5, -0.5):
            return as_type(_ops.sqrt(wide) if y > 0 else _ops.rsqrt(wide), t)
        if category(t) == 2 and y in (3, -1, -2):
            square = node("mul", wide, wide)
            made = node("mul", square, wide) if y == 3 else square if y == -2 else wide
            return as_type(made if y > 0 else node("div", _ops.literal(1, wide.dtype), made), t)

    def f(x: Tensor, y: Tensor) -> Tensor:
        return _ops.make(_core.power, x, y)

    return computed(f, x, y)


row("aten.atan2")(lambda y, x: computed(lambda y, x: _ops.make(_core.atan2, y, x), y, x, floats=True))
row("aten.hypot")(lambda x, y: computed(lambda x, y: _ops.make(_core.hypot, x, y), x, y))
row("aten.maximum")(lambda x, y: computed(_max, x, y))
row("aten.minimum")(lambda x, y: computed(_min, x, y))


def _max(x: Tensor, y: Tensor) -> Tensor:
    return node("or" if x.dtype.kind == "b" else "max", x, y)


def _min(x: Tensor, y: Tensor) -> Tensor:
    return node("and" if x.dtype.kind == "b" else "min", x, y)


def _but_nan(f: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """f, in which a number wins over a NaN."""

    def chosen(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype.kind != "f":
            return f(x, y)
        return _ops.where(_isnan(x), y, _ops.where(_isnan(y), x, f(x, y)))

    return lambda x, y: computed(chosen, x, y)


row("aten.fmax")(_but_nan(_max))
row("aten.fmin")(_but_nan(_min))


@row("aten.clamp", "aten.clip")
def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
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
    def f(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        step = node("sub", y, x)
        near = node("add", x, node("mul", w, step))
        far = node("sub", y, node("mul", step, node("sub", _ops.literal(1, x.dtype), w)))
        return _ops.where(node("lt", _ops.abs(w), _ops.literal(0.5, x.dtype)), near, far)

    return computed(f, x, y, weight)


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


def _parts(f: Callable[[Tensor], Tensor], either: bool = True) -> Callable[[Tensor], Tensor]:
    """A test of floats on complex numbers: of either part, or of both."""

    def test(x: Tensor) -> Tensor:
        if x.dtype.kind == "c":
            real, imaginary = f(_ops.op("real", x)), f(_ops.op("imag", x))
            return _ops.bitwise_or(real, imaginary) if either else _ops.bitwise_and(real, imaginary)
        return f(x)

    return test


def _isnan(x: Tensor) -> Tensor:
    return node("ne", x, x)


def _isinf(x: Tensor) -> Tensor:
    if x.dtype.kind != "f":
        return _ops.zeros_like(x, dtype=BOOL)
    return node("eq", _ops.abs(x), _ops.literal(math.inf, x.dtype))


row("aten.isnan")(_parts(_isnan))
row("aten.isinf")(_parts(_isinf))


@row("aten.isfinite")
def _isfinite(x: Tensor) -> Tensor:
    f = lambda x: _ops.less(_ops.abs(x), math.inf) if x.dtype.kind == "f" else _ops.ones_like(x, dtype=BOOL)  # noqa: E731
    return _parts(f, either=False)(x)


@row("aten.isposinf")
def _isposinf(x: Tensor) -> Tensor:
    return _ops.equal(x, math.inf) if x.dtype.kind == "f" else _ops.zeros_like(x, dtype=BOOL)


@row("aten.isneginf")
def _isneginf(x: Tensor) -> Tensor:
    return _ops.equal(x, -math.inf) if x.dtype.kind == "f" else _ops.zeros_like(x, dtype=BOOL)


@row("aten.nan_to_num")
def _nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    if category(x.dtype) != 2:
        return x
    import torch

    from .types import torch_type

    limits = torch.finfo(torch_type(x.dtype))
    out = _ops.where(_isnan(x), _ops.literal(nan or 0.0, x.dtype), x)
    out = _ops.where(_ops.equal(x, math.inf), _ops.literal(limits.max if posinf is None else posinf, x.dtype), out)
    return _ops.where(_ops.equal(x, -math.inf), _ops.literal(limits.min if neginf is None else neginf, x.dtype), out)


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
def _conj(x: Tensor) -> Tensor:
    return _ops.op("complex", _ops.op("real", x), _ops.negative(_ops.op("imag", x))) if x.dtype.kind == "c" else x


row("aten.real")(lambda x: _ops.op("real", x) if x.dtype.kind == "c" else x)
row("aten.imag")(lambda x: _ops.op("imag", x))
row("aten.complex")(lambda x, y: _ops.op("complex", *_ops_broadcast(x, y)))


def _ops_broadcast(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    from ..._manipulation import broadcast_arrays

    return broadcast_arrays(x, y)


@row("aten.view_as_real")
def _view_as_real(x: Tensor) -> Tensor:
    return _ops.stack([_ops.op("real", x), _ops.op("imag", x)], axis=-1)


@row("aten.view_as_complex")
def _view_as_complex(x: Tensor) -> Tensor:
    return _ops.op("complex", x[..., 0], x[..., 1])


# ---- activations: PyTorch's definitions, halves in f32


def _activation(name: str, f: Callable[..., Tensor]) -> None:
    def function(x: Tensor, *args: Any, **named: Any) -> Tensor:
        return as_type(f(as_type(x, opmath(x.dtype)), *args, **named), x.dtype)

    row("aten." + name)(function)


row("aten.relu")(lambda x: _max(x, _ops.literal(0, x.dtype)))


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return _ops.make(_core.gelu, x, approximate == "tanh")


def _elu(x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    negative = _ops.multiply(_ops.multiply(_ops.expm1(_ops.multiply(x, input_scale)), alpha), scale)
    return _ops.where(_ops.greater(x, 0), _ops.multiply(x, scale), negative)


def _hardtanh(x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    return _min(_max(x, as_type(low, x.dtype)), as_type(high, x.dtype))


def _leaky(x: Tensor, slope: Any = 0.01) -> Tensor:
    return _ops.where(_ops.greater(x, 0), x, _ops.multiply(x, slope))


def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    scaled = _ops.multiply(x, beta)
    return _ops.where(_ops.greater(scaled, threshold), x, _ops.divide(_ops.log1p(_ops.exp(_ops.minimum(scaled, as_type(threshold, x.dtype)))), beta))


def _log_sigmoid(x: Tensor) -> Tensor:
    return _ops.subtract(_ops.minimum(x, _ops.literal(0, x.dtype)), _ops.log1p(_ops.exp(_ops.negative(_ops.abs(x)))))


def _hardsigmoid(x: Tensor) -> Tensor:
    return _ops.divide(_hardtanh(_ops.add(x, 3.0), 0, 6), 6.0)


def _threshold(x: Tensor, threshold: Any, value: Any) -> Tensor:
    return _ops.where(_ops.less_equal(x, as_type(threshold, x.dtype)), as_type(value, x.dtype), x)


for _name, _f in (("gelu", _gelu), ("elu", _elu), ("leaky_relu", _leaky), ("hardtanh", _hardtanh), ("silu", lambda x: _ops.multiply(x, _ops.sigmoid(x))),
                  ("softplus", _softplus), ("hardsigmoid", _hardsigmoid), ("hardswish", lambda x: _ops.multiply(x, _hardsigmoid(x))),
                  ("mish", lambda x: _ops.multiply(x, _ops.tanh(_softplus(x)))), ("relu6", lambda x: _hardtanh(x, 0, 6)),
                  ("threshold", _threshold), ("log_sigmoid", _log_sigmoid), ("celu", lambda x, alpha=1: _elu(x, alpha, 1, 1 / alpha)),
                  ("selu", lambda x: _elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946))):  # fmt: skip
    _activation(_name, _f)


@row("aten.log_sigmoid_forward")
def _log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    wide = as_type(x, opmath(x.dtype))
    return as_type(_log_sigmoid(wide), x.dtype), as_type(_ops.exp(_ops.negative(_ops.abs(wide))), x.dtype)


@row("aten.prelu", "aten._prelu_kernel")
def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return computed(lambda x, s: _ops.where(_ops.greater(x, 0), x, _ops.multiply(x, s)), x, slope)


@row("aten.glu")
def _glu(x: Tensor, dim: int = -1) -> Tensor:
    from .shapes import narrow

    half = x.shape[dim] // 2
    return computed(lambda a, b: _ops.multiply(a, _ops.sigmoid(b)), narrow(x, dim, 0, half), narrow(x, dim, half, half))


refuse("it computes by the host's special functions, which the numeric contract does not have",
       "aten.lgamma", "aten.digamma", "aten.erfinv", "aten.polygamma", "aten.igamma", "aten.igammac", "aten.i0")  # fmt: skip
