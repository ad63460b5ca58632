"""x[key], by NumPy's rules.

Takes:    a tensor and a key: integers, slices, None, `...`, tensors of integers or bools.
Gives:    what is selected.
Keeps:    an index that is known and lies outside raises IndexError; one that is data and lies outside reads 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _dims, _ops
from ._graph import current
from ._tensor import Tensor, asarray, call, of_node


def _full_key(key: Any, rank: int) -> list[Any]:
    """The key as a list in which every axis of x has its item, and None ones are beside them."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [_array(k) for k in items]
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


def _array(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (slice, int, np.integer, _dims.Dim)) and not isinstance(k, bool):
        return k
    t = asarray(k) if not (isinstance(k, list) and not k) else asarray(np.zeros(0, np.int64))
    if t.dtype.kind not in "biu":
        raise IndexError(f"an index is of integers or bools, not of {t.dtype.name}")
    return t


def _is_mask(k: Any) -> bool:
    return isinstance(k, Tensor) and k.dtype.kind == "b"


def _sliced(x: Tensor, axis: int, s: slice) -> Tensor:
    graph, core = current(), current().core
    extent = x.shape[axis]
    step = 1 if s.step is None else s.step.__index__()
    if step == 0:
        raise ValueError("the step of a slice is not 0")
    if s.start is None and s.stop is None and step == 1:
        return x
    bound = lambda b: b if isinstance(b, _dims.Dim) else b.__index__()  # noqa: E731
    if isinstance(extent, int) and not any(isinstance(b, _dims.Dim) for b in (s.start, s.stop)):
        begin, end, step = s.indices(extent)
        count = len(range(begin, end, step))
        if step < 0:
            end = begin + step * count if count else begin
            x = _ops.flip(x, axis=axis)
            begin, end, step = extent - 1 - begin, extent - 1 - end, -step
        if count == 0:
            begin = end = 0
        nodes = [core.index(begin), core.index(begin + (count - 1) * step + 1 if count else begin)]
        return of_node(graph, call(_core.slice, core, x._in(graph), axis, *nodes, step))
    if step < 0 and (s.start is not None or s.stop is not None):
        raise IndexError("a slice with a negative step and bounds needs an axis whose extent is known")
    if step < 0:
        return _sliced(_ops.flip(x, axis=axis), axis, slice(None, None, -step))
    begin_node = _dims.size_node(core, 0 if s.start is None else bound(s.start))
    end_node = _dims.size_node(core, extent if s.stop is None else bound(s.stop))
    return of_node(graph, call(_core.slice, core, x._in(graph), axis, begin_node, end_node, step))


def _element(x: Tensor, axis: int, i: Any) -> Tensor:
    graph, core = current(), current().core
    extent = x.shape[axis]
    if isinstance(extent, int) and isinstance(i, (int, np.integer)):
        if not -extent <= i < extent:
            raise IndexError(f"index {i} is outside of axis {axis} of extent {extent}")
        i = int(i) % extent
    elif isinstance(i, (int, np.integer)) and i < 0:
        i = extent + int(i)
    out = of_node(graph, call(_core.part, core, x._in(graph), axis, _dims.size_node(core, i), core.index(1)))
    return _ops.squeeze(out, axis)


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    items = _full_key(key, x.ndim)
    if any(isinstance(k, Tensor) for k in items):
        return _advanced(x, items)
    axis = 0
    for k in items:
        if k is None:
            x = _ops.expand_dims(x, axis)
            axis += 1
        elif isinstance(k, slice):
            x = _sliced(x, axis, k)
            axis += 1
        else:
            x = _element(x, axis, k)
    return x


def _advanced(x: Tensor, items: list[Any]) -> Tensor:
    """Masks and tensors of integers among the items."""
    if sum(1 for k in items if _is_mask(k)) == 1 and not any(isinstance(k, Tensor) and not _is_mask(k) for k in items):
        return _masked(x, items)
    # Integers become tensors: they broadcast with the others.
    out, axis, indices, places = x, 0, [], []
    for k in items:
        if k is None:
            out = _ops.expand_dims(out, axis)
            axis += 1
        elif isinstance(k, slice):
            out = _sliced(out, axis, k)
            axis += 1
        else:
            if _is_mask(k):
                raise IndexError("a mask beside other tensors in an index is not supported; use astra.nonzero")
            indices.append(_checked(k, out.shape[axis], axis) if isinstance(k, Tensor) else _ops.asarray(_known(k, out.shape[axis], axis)))
            places.append(axis)
            axis += 1
    together = places == list(range(places[0], places[0] + len(places)))
    order = places + [a for a in range(out.ndim) if a not in places]
    out = _ops.permute_dims(out, order)
    from ._manipulation import broadcast_arrays

    common = broadcast_arrays(*indices) if len(indices) > 1 else indices
    if len(indices) == 1:
        picked = _ops.make(_core.gather, out, common[0], 0)
    else:
        tuples = _ops.stack([_ops.astype(i, "int64") for i in common], axis=-1)
        picked = _ops.make(_core.gather_tuples, out, tuples, 0)
    if together and places[0]:
        n = common[0].ndim
        moved = list(range(n, n + places[0])) + list(range(n)) + list(range(n + places[0], picked.ndim))
        picked = _ops.permute_dims(picked, moved)
    return picked


def _known(i: Any, extent: Any, axis: int) -> int:
    if isinstance(extent, int) and not -extent <= i < extent:
        raise IndexError(f"index {i} is outside of axis {axis} of extent {extent}")
    return int(i)


def _checked(k: Tensor, extent: Any, axis: int) -> Tensor:
    """An index whose values are known must lie inside."""
    if k._value is not None and isinstance(extent, int) and k.size:
        values = k.numpy()
        if values.min() < -extent or values.max() >= extent:
            wrong = values.max() if values.max() >= extent else values.min()
            raise IndexError(f"index {wrong} is outside of axis {axis} of extent {extent}")
    return k


def _masked(x: Tensor, items: list[Any]) -> Tensor:
    at = next(i for i, k in enumerate(items) if _is_mask(k))
    mask = items[at]
    before = items[:at]
    axis = sum(1 for k in before if k is None or isinstance(k, slice))
    # The other items first: None and slices keep the mask's axes where they are.
    rest = before + [slice(None)] * mask.ndim + items[at + 1 :]
    x = getitem(x, tuple(rest))
    shape = x.shape
    if tuple(shape[axis : axis + mask.ndim]) != tuple(mask.shape):
        raise IndexError(f"a mask of shape {tuple(mask.shape)} does not fit axes of extents {tuple(shape[axis : axis + mask.ndim])}")
    if mask.ndim == 0:
        x, mask = _ops.expand_dims(x, axis), _ops.reshape(mask, (1,))
    elif mask.ndim > 1:
        x = _ops.reshape(x, (*shape[:axis], mask.size, *shape[axis + mask.ndim :]))
        mask = _ops.reshape(mask, (-1,))
    return _ops.make(_core.compress, x, mask, axis)
