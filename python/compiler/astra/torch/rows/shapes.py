"""Shapes: views, slices, joining, padding, creation.

Keeps:    a view is a value of its own: graphs are without mutation when they come here. Strides are not part of a value; what asks for
          them counts row-major ones.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np
import torch

from ... import _core, _dims, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from .derivatives import derivative
from .registry import refuse, row
from .types import I64, as_type, opmath, own_type, result_type

axis_of = _ops.axis_of


def axis(dim: int, x: Tensor) -> int:
    """An axis counted from the front; a scalar has one in PyTorch."""
    return axis_of(dim, max(x.ndim, 1))


def axes(dims: Any, x: Tensor) -> list[int]:
    """Axes, ascending; None and [] are all."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(x.ndim))
    found = {axis(d, x) for d in (dims if isinstance(dims, (list, tuple)) else (dims,))}
    return sorted(d for d in found if d < x.ndim)


def narrow(x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """Elements start ... start + length - 1 of an axis."""
    graph, core = current(), current().core
    node = call(_core.part, core, x._in(graph), axis(dim, x), _dims.size_node(core, start), _dims.size_node(core, length))
    return of_node(graph, node)


# ---- views


@row("aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_alias", "aten.view_copy", "aten._reshape_copy")
def view(x: Tensor, shape: Any, *_: Any) -> Tensor:
    if isinstance(shape, torch.dtype):
        return _viewed_as(x, own_type(shape))
    shape = list(shape)
    if -1 in [n for n in shape if isinstance(n, int)] and 0 in [n for n in x.shape if isinstance(n, int)]:
        known = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = 0 if not known else x.size // known
    return _ops.reshape(x, shape)


def _viewed_as(x: Tensor, t: Any) -> Tensor:
    if t is x.dtype:
        return x
    if t.bits != x.dtype.bits or "c" in (t.kind, x.dtype.kind):
        raise UnsupportedError(f"a view of {x.dtype.name} as {t.name}, of another width")
    return _ops.bitcast(x, t)


@row("aten.permute", "aten.permute_copy")
def _permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return _ops.permute_dims(x, dims)


@row("aten.transpose", "aten.transpose_copy", "aten.swapaxes")
def _transpose(x: Tensor, a: int, b: int) -> Tensor:
    return _ops.swapaxes(x, a, b) if x.ndim else x


@row("aten.t", "aten.t_copy", "aten.numpy_T")
def _t(x: Tensor) -> Tensor:
    return _ops.transpose(x)


@row("aten.mT")
def _mt(x: Tensor) -> Tensor:
    return _ops.matrix_transpose(x)


@row("aten.expand", "aten.expand_copy", "aten.broadcast_to")
def _expand(x: Tensor, shape: Sequence[Any], *, implicit: bool = False) -> Tensor:
    lead = len(shape) - x.ndim
    full = [x.shape[i - lead] if isinstance(n, int) and n == -1 else n for i, n in enumerate(shape)]
    return _ops.broadcast_to(x, full)


row("aten.expand_as")(lambda x, y: _ops.broadcast_to(x, y.shape))


@row("aten.unsqueeze", "aten.unsqueeze_copy")
def _unsqueeze(x: Tensor, dim: int) -> Tensor:
    return _ops.expand_dims(x, dim)


@row("aten.squeeze", "aten.squeeze_copy")
def _squeeze(x: Tensor, dim: Any = None) -> Tensor:
    wanted = range(x.ndim) if dim is None else axes([dim] if isinstance(dim, int) else list(dim), x) if dim != [] else []
    ones = [d for d in wanted if isinstance(x.shape[d], int) and x.shape[d] == 1]
    return _ops.squeeze(x, ones) if ones else x


@row("aten.select", "aten.select_copy")
def _select(x: Tensor, dim: int, index: Any) -> Tensor:
    d = axis(dim, x)
    extent = x.shape[d]
    if isinstance(index, int) and index < 0:
        index = extent + index
    return _ops.squeeze(narrow(x, d, index, 1), d)


def bounds(extent: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Bounds of a slice, cut to the axis; the end is not before the start."""
    most = (1 << 63) - 1

    def inside(b: Any, default: Any) -> Any:
        if b is None or (isinstance(b, int) and b == most):
            return default
        if isinstance(b, int) and b < 0:
            b = extent + b
        if isinstance(b, int) and isinstance(extent, int):
            return min(max(b, 0), extent)
        return b

    start, end = inside(start, 0), inside(end, extent)
    if isinstance(start, int) and isinstance(end, int):
        end = max(start, end)
    return start, end


@row("aten.slice", "aten.slice_copy")
def _slice(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    d = axis(dim, x)
    extent = x.shape[d]
    if all(b is None or isinstance(b, int) for b in (start, end)) and isinstance(extent, int):
        begin, stop = bounds(extent, start, end)
        if step == 1:
            return x if (begin, stop) == (0, extent) else narrow(x, d, begin, stop - begin)
        count = -(-(stop - begin) // step)
        if not count:
            return narrow(x, d, 0, 0)
        begin_, stop_ = begin, begin + (count - 1) * step + 1
        graph, core = current(), current().core
        return of_node(graph, call(_core.slice, core, x._in(graph), d, core.index(begin_), core.index(stop_), step))
    graph, core = current(), current().core
    most = (1 << 62) if isinstance(end, int) and end > (1 << 62) else end
    node = call(_core.slice, core, x._in(graph), d, _dims.size_node(core, start or 0),
                _dims.size_node(core, extent if most is None or most == (1 << 62) else most), step)  # fmt: skip
    return of_node(graph, node)


row("aten.narrow", "aten.narrow_copy")(narrow)


@row("aten.diagonal", "aten.diagonal_copy")
def _diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    a, b = axis(dim1, x), axis(dim2, x)
    return _ops.make(_core.diagonal, _ops.moveaxis(x, (a, b), (-2, -1)), offset)


@row("aten.diag_embed")
def _diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    n = x.shape[-1] + abs(offset)
    a, b = axis_of(dim1, x.ndim + 1), axis_of(dim2, x.ndim + 1)
    row_of = _ops.expand_dims(_padded(x, [max(-offset, 0), max(offset, 0)], 0), -1)
    made = _ops.where(_ops.eye(n, n, k=offset, dtype="bool"), row_of, _ops.literal(0, x.dtype))
    return _ops.moveaxis(made, (-2, -1), (a, b))


def _is_row_major(size: Sequence[Any], stride: Sequence[Any]) -> bool:
    """Whether elements lie one behind the other; axes of extent 1 may have any stride."""
    inner: Any = 1
    for n, s in reversed([(n, s) for n, s in zip(size, stride) if not (isinstance(n, int) and n == 1)]):
        if str(s) != str(inner):
            return False
        inner = n * inner
    return True


@row("aten.as_strided", "aten.as_strided_copy")
def _as_strided(x: Tensor, size: Sequence[Any], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    if not storage_offset and str(math.prod(size)) == str(math.prod(x.shape)) and _is_row_major(size, stride):
        return _ops.reshape(x, tuple(size))
    offset, flat = storage_offset or 0, _ops.reshape(x, (-1,))
    if any(not isinstance(n, int) for n in (*size, *x.shape)):
        raise UnsupportedError("as_strided of sizes that are not known")
    place: Any = _ops.literal(offset, I64)
    for d, (n, s) in enumerate(zip(size, stride)):
        along = _ops.multiply(_ops.iota(n), s)
        place = _ops.add(_ops.reshape(along, (n,) + (1,) * (len(size) - 1 - d)), place)
    place = _ops.broadcast_to(place, size)
    return _ops.make(_core.gather, flat, place, 0)


@row("aten.unfold", "aten.unfold_copy")
def _unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    if not x.ndim:
        return _ops.reshape(x, (1,)) if size else _ops.zeros((0,), dtype=x.dtype)
    return _ops.op("window", x, ints=[axis(dim, x), size, step, 1])


@row("aten.flip")
def _flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    found = axes(list(dims), x) if dims else []
    return _ops.flip(x, tuple(found)) if found else x


@row("aten.roll")
def _roll(x: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    return _ops.roll(x, shifts, axis=dims if dims else None)


# ---- joining and splitting


def joined(xs: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after another; an empty one of rank 1 is left out, as PyTorch does."""
    t = result_type(*xs)
    parts = [x for x in xs if not (x.ndim == 1 and x.shape[0] == 0 and builtins_any(y.ndim != 1 for y in xs))]
    if not parts:
        return as_type(xs[0], t)
    return _ops.concat([as_type(x, t) for x in parts], axis(dim, parts[0]))


def builtins_any(xs: Any) -> bool:
    return next((True for x in xs if x), False)


row("aten.cat", "aten.concat")(joined)


@row("aten.stack")
def _stack(xs: Sequence[Tensor], dim: int = 0) -> Tensor:
    d = axis_of(dim, xs[0].ndim + 1)
    return joined([_ops.expand_dims(x, d) for x in xs], d)


@row("aten.split_with_sizes", "aten.split_with_sizes_copy")
def _split_with_sizes(x: Tensor, sizes: Sequence[Any], dim: int = 0) -> list[Tensor]:
    out, start = [], 0
    for n in sizes:
        out.append(narrow(x, dim, start, n))
        start = start + n
    return out


@row("aten.split", "aten.split_copy")
def _split(x: Tensor, size: Any, dim: int = 0) -> list[Tensor]:
    if isinstance(size, (list, tuple)):
        return _split_with_sizes(x, size, dim)
    n = x.shape[axis(dim, x)]
    if not n:
        return [x]
    return _split_with_sizes(x, [min(size, n - i) for i in range(0, n, size)], dim)


@row("aten.unbind", "aten.unbind_copy")
def _unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [_select(x, dim, i) for i in range(x.shape[axis(dim, x)])]


@row("aten.chunk")
def _chunk(x: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    return _split(x, -(-x.shape[axis(dim, x)] // chunks), dim)


@row("aten.repeat")
def _repeat(x: Tensor, repeats: Sequence[Any]) -> Tensor:
    return _ops.tile(x, tuple(repeats))


@row("aten.repeat_interleave")
def _repeat_interleave(x: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    if repeats is None and isinstance(output_size, int):  # x is how often each index comes
        from .indexing import _places

        ends = _ops.make(_core.cumulate, "sum", as_type(x, I64), 0, False, False)
        return as_type(_places(_ops.iota(output_size), ends, True, False), x.dtype)
    if not isinstance(repeats, int):
        raise UnsupportedError("repeat_interleave by a tensor: the size of the result depends on data")
    return _ops.repeat(x, repeats, axis=dim)


# ---- writing into a part


def written(x: Tensor, source: Tensor, dim: int, start: Any, end: Any, step: int = 1) -> Tensor:
    """x with `source` where a slice is: elements before, the source, elements behind."""
    d, source = axis(dim, x), as_type(source, x.dtype)
    extent = x.shape[d]
    start, end = bounds(extent, start, end)
    if step != 1:
        places = _ops.iota(extent)
        here = _ops.logical_and(_ops.greater_equal(places, start), _ops.less(places, end))
        here = _ops.logical_and(here, _ops.equal(_ops.remainder(_ops.subtract(places, start), step), 0))
        column = (1,) * d + (extent,) + (1,) * (x.ndim - d - 1)
        count = -(-(end - start) // step)
        source = _ops.broadcast_to(source, (*x.shape[:d], count, *x.shape[d + 1 :]))
        spread = _ops.make(_core.gather, source, _ops.clip(_ops.floor_divide(_ops.subtract(places, start), step), 0, max(count - 1, 0)), d)
        return _ops.where(_ops.reshape(here, column), spread, x) if count else x
    source = _ops.broadcast_to(source, (*x.shape[:d], end - start, *x.shape[d + 1 :]))
    parts = [narrow(x, d, 0, start)] if not (isinstance(start, int) and start == 0) else []
    parts.append(source)
    rest = extent - end
    if not (isinstance(rest, int) and rest == 0):
        parts.append(narrow(x, d, end, rest))
    return _ops.concat(parts, d) if len(parts) > 1 else source


@row("aten.slice_scatter")
def _slice_scatter(x: Tensor, source: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return written(x, source, dim, start, end, step)


@row("aten.select_scatter")
def _select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    d = axis(dim, x)
    i = index + x.shape[d] if index < 0 else index
    return written(x, _ops.expand_dims(source, d), d, i, i + 1)


@row("aten.diagonal_scatter")
def _diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    a, b = axis(dim1, x), axis(dim2, x)
    moved = _ops.moveaxis(x, (a, b), (-2, -1))
    rows_, columns = moved.shape[-2:]
    along = _ops.expand_dims(_padded(as_type(source, x.dtype), [max(offset, 0), columns - source.shape[-1] - max(offset, 0)], 0), -2)
    made = _ops.where(_ops.eye(rows_, columns, k=offset, dtype="bool"), along, moved)
    return _ops.moveaxis(made, (-2, -1), (a, b))


@row("aten.as_strided_scatter")
def _as_strided_scatter(x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    flat = _ops.reshape(x, (-1,))
    places = _as_strided(_ops.iota(flat.shape[0]), size, stride, storage_offset)
    update = _ops.reshape(_ops.broadcast_to(as_type(source, x.dtype), size), (-1,))
    made = _ops.make(_scatter_set, flat, _ops.reshape(places, (-1,)), update)
    return _ops.reshape(made, x.shape)


def _scatter_set(graph: Any, x: Any, index: Any, update: Any) -> Any:
    return _core.scatter_elements(graph, "set", x, index, update, 0)


# ---- padding


def _padded(x: Tensor, pad: Sequence[Any], value: Any, mode: str = "constant") -> Tensor:
    graph, core = current(), current().core
    before, after = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        before[x.ndim - 1 - i], after[x.ndim - 1 - i] = pad[2 * i], pad[2 * i + 1]
    nodes = lambda ns: [_dims.size_node(core, n) for n in ns]  # noqa: E731
    fill = as_type(value, x.dtype)._in(graph) if mode == "constant" else None
    return of_node(graph, call(_core.pad, core, x._in(graph), nodes(before), nodes(after), mode, fill))


@row("aten.constant_pad_nd")
def _constant_pad(x: Tensor, pad: Sequence[Any], value: Any = 0) -> Tensor:
    return _padded(x, pad, value)


def _reflected(x: Tensor, pad: Sequence[Any]) -> Tensor:
    return _padded(x, pad, None, "reflect")


def _repeated_border(x: Tensor, pad: Sequence[Any]) -> Tensor:
    """Padded by the border, axis by axis; where an amount cuts, what is left over reads the border of all of x."""
    if builtins_any(isinstance(p, int) and p < 0 for p in pad):
        for i in range(len(pad) // 2):
            d = x.ndim - 1 - i
            places = _ops.subtract(_ops.iota(x.shape[d] + pad[2 * i] + pad[2 * i + 1]), pad[2 * i])
            x = _ops.make(_core.gather, x, _ops.clip(places, 0, x.shape[d] - 1), d)
        return x
    return _padded(x, pad, None, "edge")


for _n in ("1d", "2d", "3d"):
    row(f"aten.reflection_pad{_n}")(_reflected)
    row(f"aten.replication_pad{_n}")(_repeated_border)
    row(f"aten.reflection_pad{_n}_backward")(lambda grad, x, pad: derivative(lambda x: _reflected(x, pad), x, grad))
    row(f"aten.replication_pad{_n}_backward")(lambda grad, x, pad: derivative(lambda x: _repeated_border(x, pad), x, grad))


@row("aten.pad")
def _pad(x: Tensor, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Tensor:
    return _padded(x, pad, value or 0, {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


# ---- creation


def _default(dtype: Any) -> Any:
    return own_type(dtype or torch.get_default_dtype())


@row("aten.full")
def _full(size: Sequence[Any], value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    t = own_type(dtype) if dtype else result_type(value) if not isinstance(value, bool) else own_type("bool")
    return _ops.broadcast_to(as_type(value, t), size)


@row("aten.full_like")
def _full_like(x: Tensor, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.broadcast_to(as_type(value, own_type(dtype) if dtype else x.dtype), x.shape)


@row("aten.zeros", "aten.empty")
def _zeros(size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.zeros(size, dtype=_default(dtype))


row("aten.ones")(lambda size, dtype=None, **_: _ops.ones(size, dtype=_default(dtype)))
row("aten.empty_strided")(lambda size, stride, dtype=None, **_: _ops.zeros(size, dtype=_default(dtype)))
row("aten.new_empty_strided")(lambda x, size, stride, dtype=None, **_: _ops.zeros(size, dtype=own_type(dtype) if dtype else x.dtype))
row("aten.empty_permuted")(lambda size, order, dtype=None, **_: _ops.zeros(size, dtype=_default(dtype)))


@row("aten.zeros_like", "aten.empty_like")
def _zeros_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.zeros_like(x, dtype=own_type(dtype) if dtype else None)


@row("aten.ones_like")
def _ones_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.ones_like(x, dtype=own_type(dtype) if dtype else None)


@row("aten.new_zeros", "aten.new_empty")
def _new_zeros(x: Tensor, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.zeros(size, dtype=own_type(dtype) if dtype else x.dtype)


@row("aten.new_ones")
def _new_ones(x: Tensor, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.ones(size, dtype=own_type(dtype) if dtype else x.dtype)


@row("aten.new_full")
def _new_full(x: Tensor, size: Sequence[Any], value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.broadcast_to(as_type(value, own_type(dtype) if dtype else x.dtype), size)


@row("aten.scalar_tensor")
def _scalar_tensor(value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return as_type(value, _default(dtype))


@row("aten.arange")
def _arange(*bounds_: Any, dtype: Any = None, **_: Any) -> Tensor:
    start, end, step = (0, bounds_[0], 1) if len(bounds_) == 1 else (*bounds_, 1) if len(bounds_) == 2 else bounds_
    whole = all(not isinstance(b, float) for b in (start, end, step))
    t = own_type(dtype) if dtype else I64 if whole else _default(None)
    if any(isinstance(b, _dims.Dim) for b in (start, end, step)):
        count = end - start if step == 1 else (end - start + step - 1) // step
    else:
        count = max(0, -(-(end - start) // step) if whole else math.ceil((end - start) / step))
    if t.kind in "iu":
        start, step = (int(b) if isinstance(b, float) else b for b in (start, step))
        made = _ops.iota(count, I64)
        made = made if step == 1 else _ops.multiply(made, step)
        made = made if isinstance(start, int) and start == 0 else _ops.add(made, as_type(start, I64))
        return as_type(made, t)
    wide = own_type("float64")  # PyTorch's accumulator
    made = _ops.add(as_type(start, wide), _ops.multiply(_ops.iota(count, wide), as_type(step, wide)))
    return as_type(made, t)


@row("aten.linspace")
def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **_: Any) -> Tensor:
    t = _default(dtype)
    wide = opmath(t) if t.kind == "f" else own_type("float64")
    a, b = (as_type(as_type(v, t) if t.kind in "iu" else v, wide) for v in (start, end))
    if steps == 1:
        return as_type(_ops.reshape(a, (1,)), t)
    step = _ops.divide(_ops.subtract(b, a), as_type(steps - 1, wide))
    i = _ops.iota(steps, wide)
    up = _ops.add(a, _ops.multiply(step, i))
    down = _ops.subtract(b, _ops.multiply(step, _ops.subtract(as_type(steps - 1, wide), i)))
    return as_type(_ops.where(_ops.less(_ops.iota(steps), steps // 2), up, down), t)


@row("aten.eye")
def _eye(n: int, m: int | None = None, *, dtype: Any = None, **_: Any) -> Tensor:
    return _ops.eye(n, m, dtype=_default(dtype))


def _triangle(places: Any) -> Any:
    def made(rows: int, columns: int, offset: int = 0, *, dtype: Any = None, **_: Any) -> Tensor:
        return as_type(_ops.asarray(np.stack(places(rows, offset, columns)).astype(np.int64)), own_type(dtype or torch.int64))

    return made


row("aten.tril_indices")(_triangle(np.tril_indices))
row("aten.triu_indices")(_triangle(np.triu_indices))


row("aten.triu")(lambda x, diagonal=0: _ops.triu(x, k=diagonal))
row("aten.tril")(lambda x, diagonal=0: _ops.tril(x, k=diagonal))


# ---- sizes


@row("aten.sym_size")
def _sym_size(x: Tensor, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


row("aten.sym_numel", "aten.numel")(lambda x: x.size)
row("aten.sym_storage_offset", "aten.storage_offset")(lambda x: 0)


row("aten.sym_is_contiguous", "aten.is_contiguous")(lambda x, *_: True)
refuse("it changes its operand; graphs are without mutation when they come here, and have aten.resize", "aten.resize_")


@row("aten.sym_stride", "aten.stride")
def _sym_stride(x: Tensor, dim: int | None = None) -> Any:
    strides: list[Any] = [1]
    for n in x.shape[:0:-1]:
        strides.insert(0, strides[0] * n)
    strides = strides[: x.ndim]
    return strides if dim is None else strides[dim]


@row("aten.resize")
def _resize(x: Tensor, size: Sequence[Any], **_: Any) -> Tensor:
    count, wanted = x.size, math.prod(size)
    flat = _ops.reshape(x, (-1,))
    flat = narrow(flat, 0, 0, wanted) if wanted <= count else _padded(flat, [0, wanted - count], 0)
    return _ops.reshape(flat, size)
