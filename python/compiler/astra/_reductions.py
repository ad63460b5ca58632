"""Folds of axes: sums, extremes, statistics, running folds.

Takes:    tensors, axes (None: all).
Keeps:    the order of sums of docs/numerics.md (N4): it depends on no size. Sums and products of integers below 64 bits are of 64.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _core, _dtypes
from ._building import BOOL, I64, axes_of, axis_of, cast, floating, make
from ._elementwise import not_equal, sqrt, subtract
from ._errors import ArgumentError
from ._tensor import Tensor, asarray

U64 = _dtypes.DTYPES["uint64"]


def _summed_type(t: _dtypes.DType, dtype: Any) -> _dtypes.DType:
    if dtype is not None:
        return _dtypes.dtype(dtype)
    return (U64 if t.kind == "u" else I64) if t.kind in "biu" and t.bits < 64 else t


def sum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes (None: all), in the order lane64 of docs/numerics.md."""
    x = asarray(x)
    return make(_core.fold, "sum", cast(x, _summed_type(x.dtype, dtype)), axes_of(axis, x.ndim), keepdims)


def prod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes (None: all)."""
    x = asarray(x)
    x = cast(x, _summed_type(x.dtype, dtype))
    if x.dtype.kind == "c":
        return make(_core.reduce, "prod", x, axes_of(axis, x.ndim), keepdims)
    return make(_core.fold, "prod", x, axes_of(axis, x.ndim), keepdims)


def _refuse_empty(x: Tensor, axes: Sequence[int], what: str) -> None:
    """Refuses axes that are known to have no element."""
    extents = x._node.extents if x._value is None and x._graph.tracing else x.shape
    if any_builtin(isinstance(extents[a], int) and extents[a] == 0 for a in axes):
        raise ArgumentError(f"an axis of extent 0 has no {what}")


def _extreme(name: str, doc: str) -> Callable[..., Tensor]:
    def function(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        x = asarray(x)
        axes = axes_of(axis, x.ndim)
        _refuse_empty(x, axes, name)
        return make(_core.reduce, name, x, axes, keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


any_builtin = any
max = _extreme("max", "The greatest element along axes (None: all); a NaN wins.")
min = _extreme("min", "The least element along axes (None: all); a NaN wins.")


def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The mean along axes (None: all)."""
    x = floating(x)
    return make(_core.fold, "mean", x, axes_of(axis, x.ndim), keepdims)


def var(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes (None: all), in two passes, divided by the number of elements less the correction."""
    x = floating(x)
    return make(_core.variance, x, axes_of(axis, x.ndim), float(correction), keepdims)


def std(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The root of the variance."""
    return sqrt(var(x, axis, correction=correction, keepdims=keepdims))


def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) without overflow."""
    x = floating(x)
    return make(_core.fold, "logsumexp", x, axes_of(axis, x.ndim), keepdims)


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true."""
    x = cast(asarray(x), BOOL)
    return make(_core.reduce, "and", x, axes_of(axis, x.ndim), keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true."""
    x = cast(asarray(x), BOOL)
    return make(_core.reduce, "or", x, axes_of(axis, x.ndim), keepdims)


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """How many elements along axes are not 0."""
    return sum(cast(cast(asarray(x), BOOL), I64), axis, keepdims=keepdims)


def allclose(x1: Any, x2: Any, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close; see `isclose`."""
    from ._elementwise import isclose

    return all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether two tensors have one shape and equal elements."""
    from ._elementwise import equal

    x1, x2 = asarray(x1), asarray(x2)
    return all(equal(x1, x2)) if x1.ndim == x2.ndim and x1.shape == x2.shape else asarray(False)


def _arg(name: str, greatest: bool, doc: str) -> Callable[..., Tensor]:
    def function(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        from ._manipulation import reshape, squeeze

        x = asarray(x)
        x = cast(x, _dtypes.DTYPES["uint8"]) if x.dtype.kind == "b" else x
        if axis is None:
            _refuse_empty(x, range(x.ndim), name)
            rank, x = x.ndim, reshape(x, (-1,))
            out = squeeze(make(_core.arg_reduce, x, 0, greatest, False), 0)
            return reshape(out, (1,) * rank) if keepdims else out
        a = axis_of(axis, x.ndim)
        _refuse_empty(x, [a], name)
        out = make(_core.arg_reduce, x, a, greatest, False)
        return out if keepdims else squeeze(out, a)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


argmax = _arg("argmax", True, "The index of the greatest element along an axis (None: of all), the first of several.")
argmin = _arg("argmin", False, "The index of the least element along an axis (None: of all), the first of several.")


# ---- running folds


def _axis_of_running(x: Tensor, axis: int | None, name: str) -> int:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"{name} of a tensor of {x.ndim} axes needs an axis")
        axis = 0
    return axis_of(axis, x.ndim)


def _running(kind: str, x: Any, axis: int | None, dtype: Any, include_initial: bool, name: str) -> Tensor:
    from ._creation import full
    from ._manipulation import concat

    x = asarray(x)
    a = _axis_of_running(x, axis, name)
    x = cast(x, _summed_type(x.dtype, dtype))
    out = make(_core.cumulate, kind, x, a, False, False)
    if include_initial:
        shape = list(x.shape)
        shape[a] = 1
        out = concat([full(shape, 0 if kind == "sum" else 1, dtype=x.dtype), out], axis=a)
    return out


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running sums along an axis; include_initial: with a 0 before them."""
    return _running("sum", x, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running products along an axis; include_initial: with a 1 before them."""
    return _running("prod", x, axis, dtype, include_initial, "cumulative_prod")


def cumulative_max(x: Any, /, *, axis: int | None = None) -> Tensor:
    """Running maxima along an axis."""
    x = asarray(x)
    return make(_core.cumulate, "max", x, _axis_of_running(x, axis, "cumulative_max"), False, False)


def cumulative_min(x: Any, /, *, axis: int | None = None) -> Tensor:
    """Running minima along an axis."""
    x = asarray(x)
    return make(_core.cumulate, "min", x, _axis_of_running(x, axis, "cumulative_min"), False, False)


def cumsum(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """NumPy's: running sums along an axis (None: of x flattened)."""
    from ._manipulation import ravel

    return cumulative_sum(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


def cumprod(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """NumPy's: running products along an axis (None: of x flattened)."""
    from ._manipulation import ravel

    return cumulative_prod(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Each element less the one before it along an axis, n times."""
    from ._manipulation import concat

    x = asarray(x)
    if not x.ndim:
        raise ArgumentError("diff needs a tensor with an axis")
    a = axis_of(axis, x.ndim)
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=a)
    before: tuple[Any, ...] = (slice(None),) * a
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = not_equal(later, earlier) if x.dtype.kind == "b" else subtract(later, earlier)
    return x


def median(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle element in order along an axis (None: of all), or the mean of the two; a NaN wins."""
    from ._manipulation import expand_dims, ravel, squeeze

    x = floating(x)
    rank = x.ndim
    if axis is None:
        x, a = ravel(x), 0
    else:
        a = axis_of(axis, rank)
    out = squeeze(make(_core.median, x, a), a)
    return expand_dims(out, tuple(range(rank)) if axis is None else a) if keepdims else out


__all__ = [
    "all", "allclose", "any", "argmax", "argmin", "array_equal", "count_nonzero", "cumprod", "cumsum", "cumulative_max", "cumulative_min",
    "cumulative_prod", "cumulative_sum", "diff", "logsumexp", "max", "mean", "median", "min", "prod", "std", "sum", "var",
]  # fmt: skip
