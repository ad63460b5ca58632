"""NumPy's names for functions of the Array API: one table."""

from __future__ import annotations

from . import _elementwise, _manipulation, _reductions

absolute = _elementwise.abs
arccos, arccosh = _elementwise.acos, _elementwise.acosh
arcsin, arcsinh = _elementwise.asin, _elementwise.asinh
arctan, arctan2, arctanh = _elementwise.atan, _elementwise.atan2, _elementwise.atanh
bitwise_not = invert = _elementwise.bitwise_invert
conjugate = _elementwise.conj
left_shift, right_shift = _elementwise.bitwise_left_shift, _elementwise.bitwise_right_shift
mod = _elementwise.remainder
power = _elementwise.pow
rint = _elementwise.round
true_divide = _elementwise.divide
amax, amin = _reductions.max, _reductions.min
concatenate = _manipulation.concat

__all__ = [
    "absolute", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "bitwise_not",
    "concatenate", "conjugate", "invert", "left_shift", "mod", "power", "right_shift", "rint", "true_divide",
]  # fmt: skip
