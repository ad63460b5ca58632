"""Tensors made of nothing but a shape and numbers.

Takes:    shapes (also of dims), numbers, dtypes.
Keeps:    ranges of floats are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import astra_rt

from . import _core, _dims, _dtypes
from ._building import F32, I64, cast, literal, make, on_cpu, op, sizes
from ._elementwise import add, equal, multiply, where
from ._errors import ArgumentError
from ._graph import current
from ._inspection import result_type
from ._tensor import Tensor, asarray, call, of_node, of_value

F64 = _dtypes.DTYPES["float64"]


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value."""
    on_cpu(device)
    t = _dtypes.dtype(dtype) if dtype is not None else result_type(fill_value)
    value = cast(fill_value, t) if isinstance(fill_value, Tensor) else literal(fill_value, t)
    graph = current()
    return of_node(graph, call(_core.broadcast_to, graph.core, value._in(graph), sizes(graph, shape)))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, of float32 unless dtype says otherwise."""
    return full(shape, 0, dtype=F32 if dtype is None else dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, of float32 unless dtype says otherwise."""
    return full(shape, 1, dtype=F32 if dtype is None else dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros: memory is never handed out unwritten."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value, of the shape and type of x."""
    x = asarray(x)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and type of x."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of the shape and type of x."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and type of x."""
    return zeros_like(x, dtype=dtype, device=device)


def iota(n: Any, dtype: Any = I64) -> Tensor:
    """0, 1, ... n - 1; of a shape along its first axis."""
    graph, t = current(), _dtypes.dtype(dtype)
    made = t if t.kind in "iuf" else I64
    return cast(of_node(graph, call(_core.iota, graph.core, made.code, sizes(graph, n), 0)), t)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """start, start + step, ... below stop (above it where step is negative); arange(n) begins with 0."""
    on_cpu(device)
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, _dims.Dim) and start == 0 and step == 1:
        return iota(stop, I64 if dtype is None else dtype)
    start, stop, step = (v.item() if isinstance(v, Tensor) else v for v in (start, stop, step))
    if step == 0:
        raise ArgumentError("the step of arange is not 0")
    integers = all(isinstance(v, int) or hasattr(v, "__index__") for v in (start, stop, step))
    t = _dtypes.dtype(dtype) if dtype is not None else I64 if integers else F32
    count = -((start - stop) // step) if integers else math.ceil((stop - start) / step)
    count = max(int(count), 0)
    if t.kind == "u" or (t.kind == "i" and integers):
        wide = _dtypes.DTYPES["uint64"] if t.code == "u64" else I64
        return cast(add(multiply(iota(count, wide), int(step)) if step > 0 or wide is I64 else _down(count, wide, step), int(start)), t)
    return cast(add(multiply(iota(count, F64), float(step)), float(start)), t)


def _down(count: int, t: _dtypes.DType, step: int) -> Tensor:
    """0, step, 2 step, ... modulo 2^64, of a negative step."""
    return multiply(iota(count, t), literal((1 << 64) + int(step), t))


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """num numbers at equal distances from start to stop, which is the last one, or, endpoint=False, the one after the last."""
    on_cpu(device)
    start, stop = (v.item() if isinstance(v, Tensor) else v for v in (start, stop))
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    t = _dtypes.dtype(dtype) if dtype is not None else _dtypes.DEFAULT["c" if is_complex else "f"]
    if num < 0:
        raise ArgumentError(f"linspace gives {num} numbers: a count is not negative")
    if t.kind == "c":
        a, b = complex(start), complex(stop)
        part = F32 if t.bits == 64 else F64
        return op("complex", *(linspace(x, y, num, dtype=part, endpoint=endpoint) for x, y in ((a.real, b.real), (a.imag, b.imag))))
    steps = num - 1 if endpoint else num
    i = iota(num, F64)
    start, stop = float(start), float(stop)
    distance = stop - start
    if math.isinf(distance) and math.isfinite(start) and math.isfinite(stop):  # halves do not overflow
        y = multiply(add(multiply(i, (stop / 2 - start / 2) / builtin_max(steps, 1)), start / 2), 2.0)
    else:
        y = add(multiply(i, distance / builtin_max(steps, 1)), start)
    if endpoint and num > 1:
        y = where(equal(i, float(steps)), stop, y)
    return cast(y, t)


builtin_max = max


def _diagonal(k: Any) -> int:
    """The number of a diagonal; one that is further off than any matrix is large stands for all of those."""
    return max(-(1 << 62), min(int(k), 1 << 62))


def eye(n_rows: Any, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal number k, zeros elsewhere."""
    on_cpu(device)
    core = current().core
    dims = [_dims.size_node(core, n) for n in (n_rows, n_rows if n_cols is None else n_cols)]
    return make(_core.eye, dims, _diagonal(k), (F32 if dtype is None else _dtypes.dtype(dtype)).code)


def identity(n: Any, /, *, dtype: Any = None) -> Tensor:
    """The n by n matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


def _triangle(x: Any, k: int, upper: bool) -> Tensor:
    x = asarray(x)
    if x.ndim < 2:
        raise ArgumentError(f"a triangle is of matrices; this tensor has {x.ndim} axes")
    return make(_core.triangle, x, literal(_diagonal(k), I64), upper)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """x with zeros above diagonal number k."""
    return _triangle(x, k, False)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """x with zeros below diagonal number k."""
    return _triangle(x, k, True)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors: one for each, of all their extents ("xy": the first two exchanged)."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    from ._manipulation import broadcast_arrays, reshape, swapaxes

    made = [asarray(x) for x in arrays]
    n = len(made)
    grids = [reshape(x, (1,) * i + (x.size,) + (1,) * (n - 1 - i)) for i, x in enumerate(made)]
    wide = broadcast_arrays(*grids)
    return tuple(swapaxes(g, 0, 1) for g in wide) if indexing == "xy" and n > 1 else wide


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an array with `__dlpack__`: NumPy's, PyTorch's, JAX's, TensorFlow's. copy=True: in memory of its own."""
    if isinstance(x, Tensor):
        return x
    if device not in (None, "cpu") and tuple(device if isinstance(device, tuple) else ()) != (1, 0):
        on_cpu(device)
    return of_value(astra_rt.tensor(x) if copy else astra_rt.from_dlpack(x))


__all__ = [
    "arange", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "identity", "iota", "linspace", "meshgrid", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
