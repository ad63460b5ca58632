"""x[key] and x.at[key], by NumPy's rules; elements by their numbers.

Takes:    a tensor and a key: integers, slices, None, `...`, tensors of integers or bools, lists of them.
Gives:    what is selected; x with what is selected changed.
Keeps:    an index that is known and lies outside raises IndexError; one that is data and lies outside reads 0, and is not written.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from . import _core, _dims
from ._building import I64, axis_of, cast, literal, make
from ._elementwise import add, equal, maximum, minimum, multiply, subtract, where
from ._errors import DTypeError, ShapeError
from ._graph import current
from ._manipulation import broadcast_arrays, broadcast_to, expand_dims, flip, permute_dims, reshape, squeeze, stack
from ._tensor import Tensor, asarray, call, of_node


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Elements along an axis (None: of x flattened) by their numbers; negative ones count from the end, those outside read 0."""
    x, indices = asarray(x), _integers(asarray(indices))
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return make(_core.gather, x, indices, axis_of(axis, x.ndim))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Along one axis, element by element; the other axes broadcast."""
    x, indices = asarray(x), _integers(asarray(indices))
    a = axis_of(axis, x.ndim)
    if x.ndim != indices.ndim:
        raise ShapeError(f"take_along_axis takes as many axes of indices as of elements: {indices.ndim} and {x.ndim}")
    common = [m if isinstance(n, int) and n == 1 else n for n, m in zip(x.shape, indices.shape)]
    x = broadcast_to(x, [n if i != a else x.shape[a] for i, n in enumerate(common)])
    indices = broadcast_to(indices, [n if i != a else indices.shape[a] for i, n in enumerate(common)])
    return make(_core.gather_elements, x, indices, a)


def _integers(t: Tensor) -> Tensor:
    if t.dtype.kind not in "iu":
        raise DTypeError(f"indices are integers, not {t.dtype.name}")
    return cast(t, I64) if t.dtype.kind == "u" or t.dtype.bits < 32 else t


# ---- keys


def _full_key(key: Any, rank: int) -> list[Any]:
    """The key as a list in which every axis of x has its item, and None ones are beside them."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [_item(k) for k in items]
    used = sum(k.ndim if _is_mask(k) else 1 for k in items if k is not None and k is not Ellipsis)
    if sum(1 for k in items if k is Ellipsis) > 1:
        raise IndexError("an index may have one '...'")
    if used > rank:
        raise IndexError(f"too many indices: {used} for a tensor of {rank} axes")
    rest = [slice(None)] * (rank - used)
    for i, k in enumerate(items):
        if k is Ellipsis:
            return items[:i] + rest + items[i + 1 :]
    return items + rest


def _item(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (slice, int, np.integer, _dims.Dim)) and not isinstance(k, bool):
        return k
    if isinstance(k, (str, bytes, float, complex)):
        raise IndexError(f"an index is an integer, a slice, None, ... or a tensor of integers or bools, not {k!r}")
    t = asarray(k) if not (isinstance(k, list) and not k) else asarray(np.zeros(0, np.int64))
    if t.dtype.kind not in "biu":
        raise IndexError(f"an index is of integers or bools, not of {t.dtype.name}")
    return _integers(t) if t.dtype.kind != "b" else t


def _is_mask(k: Any) -> bool:
    return isinstance(k, Tensor) and k.dtype.kind == "b"


def _bound(b: Any) -> Any:
    return b if isinstance(b, _dims.Dim) else b.__index__()


def _sliced(x: Tensor, axis: int, s: slice) -> Tensor:
    graph, core = current(), current().core
    extent = x.shape[axis]
    step = 1 if s.step is None else s.step.__index__()
    if step == 0:
        raise ValueError("the step of a slice is not 0")
    if s.start is None and s.stop is None and step == 1:
        return x
    if isinstance(extent, int) and not any(isinstance(b, _dims.Dim) for b in (s.start, s.stop)):
        first, last = (None if b is None else _bound(b) for b in (s.start, s.stop))
        begin, end, step = slice(first, last, step).indices(extent)
        count = len(range(begin, end, step))
        if step < 0:
            x = flip(x, axis=axis)
            begin, step = extent - 1 - begin, -step
        if count == 0:
            begin = 0
        nodes = [core.index(begin), core.index(begin + (count - 1) * step + 1 if count else begin)]
        return of_node(graph, call(_core.slice, core, x._in(graph), axis, *nodes, step))
    if step < 0 and (s.start is not None or s.stop is not None):
        raise IndexError("a slice with a negative step and bounds needs an axis whose extent is known")
    if step < 0:
        return _sliced(flip(x, axis=axis), axis, slice(None, None, -step))
    begin_node = _dims.size_node(core, 0 if s.start is None else _bound(s.start))
    end_node = _dims.size_node(core, extent if s.stop is None else _bound(s.stop))
    return of_node(graph, call(_core.slice, core, x._in(graph), axis, begin_node, end_node, step))


def _known(i: Any, extent: Any, axis: int) -> int:
    if isinstance(extent, int) and not -extent <= i < extent:
        raise IndexError(f"index {i} is outside of axis {axis} of extent {extent}")
    return int(i)


def _element(x: Tensor, axis: int, i: Any) -> Tensor:
    graph, core = current(), current().core
    extent = x.shape[axis]
    if isinstance(i, (int, np.integer)):
        i = _known(i, extent, axis)
        i = i + extent if i < 0 else i
    return squeeze(of_node(graph, call(_core.part, core, x._in(graph), axis, _dims.size_node(core, i), core.index(1))), axis)


def _checked(k: Tensor, extent: Any, axis: int) -> Tensor:
    """An index whose values are known must lie inside."""
    if k._value is not None and isinstance(extent, int) and k.size:
        values = k.numpy()
        if values.min() < -extent or values.max() >= extent:
            wrong = values.max() if values.max() >= extent else values.min()
            raise IndexError(f"index {wrong} is outside of axis {axis} of extent {extent}")
    return k


# ---- reading


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    items = _full_key(key, x.ndim)
    if any(isinstance(k, Tensor) for k in items):
        masks = sum(1 for k in items if _is_mask(k))
        if masks == 1 and not any(isinstance(k, Tensor) and not _is_mask(k) for k in items):
            return _masked(x, items)
        return _advanced(x, _without_masks(x, items) if masks else items)
    axis = 0
    for k in items:
        if k is None:
            x = expand_dims(x, axis)
            axis += 1
        elif isinstance(k, slice):
            x = _sliced(x, axis, k)
            axis += 1
        else:
            x = _element(x, axis, k)
    return x


def _without_masks(x: Tensor, items: list[Any]) -> list[Any]:
    """Masks beside other tensors: each becomes the numbers of its true elements."""
    from ._sorting import nonzero

    out: list[Any] = []
    for k in items:
        if not _is_mask(k):
            out.append(k)
        elif not k.ndim:
            raise IndexError("a mask without axes beside other tensors in an index is not supported")
        else:
            axis = sum(1 for item in out if item is not None)
            if tuple(k.shape) != tuple(x.shape[axis : axis + k.ndim]):
                raise IndexError(f"a mask of shape {tuple(k.shape)} does not fit axes of extents {tuple(x.shape[axis : axis + k.ndim])}")
            found = nonzero(k)
            out += [asarray(t.numpy()) for t in found] if not found[0]._graph.tracing else found
    return out


def _advanced(x: Tensor, items: list[Any]) -> Tensor:
    """Tensors of integers among the items; integers broadcast with them."""
    out, axis, indices, places = x, 0, [], []
    for k in items:
        if k is None:
            out = expand_dims(out, axis)
        elif isinstance(k, slice):
            out = _sliced(out, axis, k)
        else:
            indices.append(_checked(k, out.shape[axis], axis) if isinstance(k, Tensor) else asarray(_known(k, out.shape[axis], axis)))
            places.append(axis)
        axis += 1
    # Where the items stand apart in the key the broadcast axes come first, else in their place.
    at = [i for i, k in enumerate(items) if k is not None and not isinstance(k, slice)]
    together = at == list(range(at[0], at[0] + len(at)))
    out = permute_dims(out, places + [a for a in range(out.ndim) if a not in places])
    common = broadcast_arrays(*indices) if len(indices) > 1 else indices
    if len(indices) == 1:
        picked = make(_core.gather, out, common[0], 0)
    else:
        picked = make(_core.gather_tuples, out, stack([cast(i, I64) for i in common], axis=-1), 0)
    if together and places[0]:
        n = common[0].ndim
        moved = list(range(n, n + places[0])) + list(range(n)) + list(range(n + places[0], picked.ndim))
        picked = permute_dims(picked, moved)
    return picked


def _masked(x: Tensor, items: list[Any]) -> Tensor:
    at = next(i for i, k in enumerate(items) if _is_mask(k))
    mask = items[at]
    before = items[:at]
    axis = sum(1 for k in before if k is None or isinstance(k, slice))
    rest = before + [slice(None)] * mask.ndim + items[at + 1 :]
    # The other items first: None and slices keep the mask's axes where they are.
    x = getitem(x, tuple(rest))
    shape = x.shape
    if 0 in mask.shape and all(m in (0, n) for m, n in zip(mask.shape, shape[axis:])):  # selects nothing, whatever x has there
        from ._creation import zeros

        return zeros((*shape[:axis], 0, *shape[axis + mask.ndim :]), dtype=x.dtype)
    if tuple(shape[axis : axis + mask.ndim]) != tuple(mask.shape):
        raise IndexError(f"a mask of shape {tuple(mask.shape)} does not fit axes of extents {tuple(shape[axis : axis + mask.ndim])}")
    if mask.ndim == 0:
        x, mask = expand_dims(x, axis), reshape(mask, (1,))
    elif mask.ndim > 1:
        x = reshape(x, (*shape[:axis], mask.size, *shape[axis + mask.ndim :]))
        mask = reshape(mask, (-1,))
    return make(_core.compress, x, mask, axis)


# ---- writing: tensors with other values


class At:
    """x.at: `x.at[key].set(v)` and its kin give x with what the key selects changed."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Place:
        return Place(self._x, key)

    def __repr__(self) -> str:
        return "x.at: index it, then .set(value), .add(value), .multiply(value), .max(value), .min(value) or .get()"


class Place:
    """What a key selects of a tensor."""

    __slots__ = ("_x", "_key")

    def __init__(self, x: Tensor, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Tensor:
        """x[key]."""
        return getitem(self._x, self._key)

    def set(self, value: Any) -> Tensor:
        """x with x[key] = value; where an index comes twice the last one stays."""
        return self._changed("set", value, lambda old, new: new)

    def add(self, value: Any) -> Tensor:
        """x with x[key] += value; what an index that comes twice gives is added twice, in order."""
        return self._changed("add", value, add)

    def multiply(self, value: Any) -> Tensor:
        """x with x[key] *= value."""
        return self._changed("mul", value, multiply)

    def max(self, value: Any) -> Tensor:
        """x with x[key] = maximum(x[key], value)."""
        return self._changed("max", value, maximum)

    def min(self, value: Any) -> Tensor:
        """x with x[key] = minimum(x[key], value)."""
        return self._changed("min", value, minimum)

    def _changed(self, kind: str, value: Any, combine: Callable[[Any, Any], Tensor]) -> Tensor:
        x = self._x
        given = value if isinstance(value, Tensor) else literal(value, x.dtype) if isinstance(value, (bool, int, float, complex)) else asarray(value)
        if given.dtype is not x.dtype:
            from ._inspection import can_cast

            if not can_cast(given.dtype, x.dtype):
                raise DTypeError(f"{given.dtype.name} does not fit into a tensor of {x.dtype.name}; cast it")
            given = cast(given, x.dtype)
        # A mask for the leading axes, and a value that is the same everywhere: no index is needed.
        mask: Any = _item(self._key) if not isinstance(self._key, tuple) else None
        if _is_mask(mask) and given.ndim == 0 and mask.ndim and tuple(mask.shape) == tuple(x.shape[: mask.ndim]):
            wide = reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
            return where(wide, combine(x, given), x)
        # Numbers of the elements, 1 and up: an index outside reads 0, and what has no number is written nowhere.
        size = math.prod(x.shape)
        numbers = getitem(reshape(add(_iota(size), 1), x.shape), self._key)
        places = reshape(where(equal(numbers, 0), size, subtract(numbers, 1)), (-1,))
        if given.ndim > numbers.ndim:
            given = reshape(given, given.shape[given.ndim - numbers.ndim :])
        update = reshape(broadcast_to(given, numbers.shape), (-1,))
        if kind in ("max", "min") and x.dtype.kind == "c":
            raise DTypeError("complex numbers have no order")
        out = make(lambda g, *args: _core.scatter_elements(g, kind, *args), reshape(x, (-1,)), places, update, 0)
        return reshape(out, x.shape)


def _iota(n: Any) -> Tensor:
    from ._creation import iota

    return iota(n)


__all__ = ["take", "take_along_axis"]
