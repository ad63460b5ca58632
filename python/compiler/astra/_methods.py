"""Operators and methods of Tensor, from the functions of the package: one table, which `install` and type checkers read.

Takes:    the functions of _ops, which need Tensor.
Gives:    the class Methods, whose attributes `install` copies to Tensor. To a type checker Methods is Tensor's base class.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _dims, _indexing, _ops
from ._boundary import guarded
from ._tensor import Tensor


def _taken(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, complex, _dims.Dim, np.ndarray, np.generic)) or hasattr(x, "__dlpack__")


def _operator(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return function(self, other) if _taken(other) else NotImplemented

    return method


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return function(other, self) if _taken(other) else NotImplemented

    return method


def _plain(x: Any) -> Any:
    """A tree of arguments of NumPy's, arrays in place of tensors."""
    if isinstance(x, Tensor):
        return np.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x
    return {k: _plain(v) for k, v in x.items()} if isinstance(x, dict) else x


def _divided(x: Any, y: Any) -> Any:
    """Python's divmod."""
    return _ops.floor_divide(x, y), _ops.remainder(x, y)


class Methods:
    """What a tensor has of the functions of the package."""

    __slots__ = ()

    __add__, __radd__ = _operator(_ops.add), _swapped(_ops.add)
    __sub__, __rsub__ = _operator(_ops.subtract), _swapped(_ops.subtract)
    __mul__, __rmul__ = _operator(_ops.multiply), _swapped(_ops.multiply)
    __truediv__, __rtruediv__ = _operator(_ops.divide), _swapped(_ops.divide)
    __floordiv__, __rfloordiv__ = _operator(_ops.floor_divide), _swapped(_ops.floor_divide)
    __mod__, __rmod__ = _operator(_ops.remainder), _swapped(_ops.remainder)
    __divmod__, __rdivmod__ = _operator(_divided), _swapped(_divided)
    __pow__, __rpow__ = _operator(_ops.pow), _swapped(_ops.pow)
    __matmul__, __rmatmul__ = _operator(_ops.matmul), _swapped(_ops.matmul)
    __and__, __rand__ = _operator(_ops.bitwise_and), _swapped(_ops.bitwise_and)
    __or__, __ror__ = _operator(_ops.bitwise_or), _swapped(_ops.bitwise_or)
    __xor__, __rxor__ = _operator(_ops.bitwise_xor), _swapped(_ops.bitwise_xor)
    __lshift__, __rlshift__ = _operator(_ops.bitwise_left_shift), _swapped(_ops.bitwise_left_shift)
    __rshift__, __rrshift__ = _operator(_ops.bitwise_right_shift), _swapped(_ops.bitwise_right_shift)
    __lt__ = _operator(_ops.less)
    __le__ = _operator(_ops.less_equal)
    __gt__ = _operator(_ops.greater)
    __ge__ = _operator(_ops.greater_equal)
    __eq__ = _operator(_ops.equal)  # type: ignore[assignment]
    __ne__ = _operator(_ops.not_equal)  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __array_function__(self, f: Any, types: Any, args: Any, named: Any) -> Any:
        """NumPy's functions take the values, as of any array."""
        return f(*_plain(args), **_plain(named))

    def __round__(self, ndigits: int | None = None) -> Any:
        """Python's round: to so many decimals, halves to even."""
        if not ndigits:
            return _ops.round(self)
        scale = 10.0 ** abs(ndigits)
        return _ops.round(self * scale) / scale if ndigits > 0 else _ops.round(self / scale) * scale

    __neg__, __abs__, __invert__ = _ops.negative, _ops.abs, _ops.bitwise_invert
    __getitem__ = _indexing.getitem

    def __pos__(self) -> Any:
        return self

    @property
    def at(self: Any) -> _indexing.At:
        """x.at[key].set(v), .add(v), .multiply(v), .max(v), .min(v): x with other values there."""
        return _indexing.At(self)

    @property
    def T(self) -> Tensor:
        """The axes reversed."""
        return _ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return _ops.matrix_transpose(self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return _ops.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return _ops.imag(self)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements under another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
        return _ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        """The axes reversed, or in the order given: x.transpose(1, 0) or x.transpose((1, 0))."""
        return _ops.transpose(self, None if not axes else axes[0] if len(axes) == 1 else axes)

    abs = _ops.abs
    all = _ops.all
    allclose = _ops.allclose
    any = _ops.any
    argmax = _ops.argmax
    argmin = _ops.argmin
    argsort = _ops.argsort
    astype = _ops.astype
    bitcast = _ops.bitcast
    broadcast_to = _ops.broadcast_to
    ceil = _ops.ceil
    clip = _ops.clip
    conj = _ops.conj
    cos = _ops.cos
    count_nonzero = _ops.count_nonzero
    cumprod = _ops.cumprod
    cumsum = _ops.cumsum
    cumulative_prod = _ops.cumulative_prod
    cumulative_sum = _ops.cumulative_sum
    diff = _ops.diff
    dot = _ops.dot
    erf = _ops.erf
    exp = _ops.exp
    expand_dims = _ops.expand_dims
    flatten = _ops.flatten
    flip = _ops.flip
    floor = _ops.floor
    gelu = _ops.gelu
    isfinite = _ops.isfinite
    isinf = _ops.isinf
    isnan = _ops.isnan
    leaky_relu = _ops.leaky_relu
    log = _ops.log
    log1p = _ops.log1p
    log2 = _ops.log2
    log_softmax = _ops.log_softmax
    logsumexp = _ops.logsumexp
    matmul = _ops.matmul
    max = _ops.max
    mean = _ops.mean
    median = _ops.median
    min = _ops.min
    moveaxis = _ops.moveaxis
    nonzero = _ops.nonzero
    outer = _ops.outer
    permute_dims = _ops.permute_dims
    prod = _ops.prod
    ravel = _ops.ravel
    reciprocal = _ops.reciprocal
    relu = _ops.relu
    repeat = _ops.repeat
    roll = _ops.roll
    round = _ops.round
    rsqrt = _ops.rsqrt
    sigmoid = _ops.sigmoid
    sign = _ops.sign
    silu = _ops.silu
    sin = _ops.sin
    softmax = _ops.softmax
    softplus = _ops.softplus
    sort = _ops.sort
    split = _ops.split
    sqrt = _ops.sqrt
    square = _ops.square
    squeeze = _ops.squeeze
    std = _ops.std
    sum = _ops.sum
    swapaxes = _ops.swapaxes
    take = _ops.take
    take_along_axis = _ops.take_along_axis
    tan = _ops.tan
    tanh = _ops.tanh
    tile = _ops.tile
    topk = _ops.topk
    tril = _ops.tril
    triu = _ops.triu
    trunc = _ops.trunc
    unstack = _ops.unstack
    var = _ops.var


_OF_THE_CLASS = ("__module__", "__qualname__", "__doc__", "__slots__", "__firstlineno__", "__static_attributes__")


def install() -> None:
    """Gives Tensor its operators and methods."""
    for name, value in vars(Methods).items():
        if name not in _OF_THE_CLASS:
            setattr(Tensor, name, value if name.startswith("_") or isinstance(value, property) else guarded(value, Tensor.__module__))
