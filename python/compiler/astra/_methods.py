"""Operators and methods of Tensor, from the functions of the package: one table."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dims, _indexing, _ops
from ._tensor import Tensor

_OPERATORS = {
    "add": _ops.add, "sub": _ops.subtract, "mul": _ops.multiply, "truediv": _ops.divide, "floordiv": _ops.floor_divide,
    "mod": _ops.remainder, "pow": _ops.pow, "matmul": _ops.matmul, "and": _ops.bitwise_and, "or": _ops.bitwise_or,
    "xor": _ops.bitwise_xor, "lshift": _ops.bitwise_left_shift, "rshift": _ops.bitwise_right_shift,
}  # fmt: skip
_COMPARISONS = {"lt": _ops.less, "le": _ops.less_equal, "gt": _ops.greater, "ge": _ops.greater_equal, "eq": _ops.equal,
                "ne": _ops.not_equal}  # fmt: skip
_METHODS = (
    "all", "allclose", "any", "argmax", "argmin", "argsort", "astype", "bitcast", "broadcast_to", "clip", "conj", "cos", "count_nonzero",
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "dot", "erf", "exp", "expand_dims", "flatten", "flip", "floor",
    "ceil", "gelu", "isfinite", "isinf", "isnan", "leaky_relu", "log", "log1p", "log2", "log_softmax", "logsumexp", "matmul", "max", "mean",
    "median", "min", "moveaxis", "nonzero", "outer", "permute_dims", "prod", "ravel", "reciprocal", "relu", "repeat", "roll", "round",
    "rsqrt", "sigmoid", "sign", "silu", "sin", "softmax", "softplus", "sort", "split", "sqrt", "square", "squeeze", "std", "sum",
    "swapaxes", "take", "take_along_axis", "tan", "tanh", "tile", "topk", "tril", "triu", "trunc", "unstack", "var",
)  # fmt: skip


def _taken(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, complex, _dims.Dim, np.ndarray, np.generic)) or hasattr(x, "__dlpack__")


def _operator(function: Any, swapped: bool) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not _taken(other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return method


def install() -> None:
    """Gives Tensor its operators and methods."""
    kind: Any = Tensor
    for name, function in _OPERATORS.items():
        setattr(kind, f"__{name}__", _operator(function, False))
        setattr(kind, f"__r{name}__", _operator(function, True))
    for name, function in _COMPARISONS.items():
        setattr(kind, f"__{name}__", _operator(function, False))
    kind.__hash__ = object.__hash__
    kind.__neg__ = lambda self: _ops.negative(self)
    kind.__pos__ = lambda self: self
    kind.__abs__ = lambda self: _ops.abs(self)
    kind.__invert__ = lambda self: _ops.bitwise_invert(self)
    kind.__getitem__ = _indexing.getitem
    kind.at = property(_indexing.At, doc="x.at[key].set(v), .add(v), .multiply(v), .max(v), .min(v): x with other values there.")
    kind.T = property(_ops.transpose, doc="The axes reversed.")
    kind.mT = property(_ops.matrix_transpose, doc="The last two axes exchanged.")
    for name in _METHODS:
        setattr(kind, name, getattr(_ops, name))
    kind.abs = _ops.abs
    kind.real = property(_ops.real, doc="The real part.")
    kind.imag = property(_ops.imag, doc="The imaginary part.")

    def reshape(self: Tensor, *shape: Any) -> Tensor:
        """The same elements under another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
        return _ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    kind.reshape = reshape

    def transpose(self: Tensor, *axes: Any) -> Tensor:
        """The axes reversed, or in the order given: x.transpose(1, 0) or x.transpose((1, 0))."""
        return _ops.transpose(self, None if not axes else axes[0] if len(axes) == 1 else axes)

    kind.transpose = transpose
