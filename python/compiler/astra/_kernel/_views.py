"""Views of arguments: with other axes, strides and bounds, without a copy.

Takes:    an argument of a kernel or a view of one; a key of slices, numbers and None, axes, or a shape.
Gives:    a view of the same argument. Of an input it has the tensor moved, which the compiler reads in place; of an output it says, for each axis of
          the argument, which axis of the view goes along it, from where and in what steps.
Keeps:    the domain of a view is its own box: what is outside of it is outside, though the argument may go on there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import _ops
from ._values import Along, View, described
from ._walker import Walker


def moved(w: Walker, v: View, name: str, f: Any) -> View:
    """A view of an input whose tensor is f of it."""
    t = w.attempt(f, v.tensor)
    return View(name, v.dtype, w.extents_of(t), t, v.base)


def indexed(w: Walker, v: View, key: list[Any], name: str) -> View:
    """The view behind an index: slices with numbers, numbers, None."""
    if sum(k is not None for k in key) > len(v.shape):
        raise w.error(f"{sum(k is not None for k in key)} indices of {described(v)}, which has {len(v.shape)} axes")
    if not v.is_output:
        return moved(w, v, name, lambda t: t[tuple(key)])
    key = key + [slice(None)] * (len(v.shape) - sum(k is not None for k in key))
    shape: list[Any] = []
    now: list[Along] = []  # of the axes of v
    axis = 0
    for k in key:
        if k is None:
            shape.append(1)
            continue
        n = v.shape[axis]
        axis += 1
        if isinstance(k, int):
            if not isinstance(n, int) and k < 0 or not w.within_extent(k, n):
                raise w.error(f"index {k} along axis {axis - 1} of {described(v)}, whose extent is {w.shown_extent(n)}")
            now.append(Along(None, k % n if isinstance(n, int) else k, 1))
            continue
        begin, length, step = _part(w, v, k, n)
        now.append(Along(len(shape), begin, step))
        shape.append(length)
    along = tuple(a if a.axis is None else replace(now[a.axis], begin=a.begin + a.step * now[a.axis].begin, step=a.step * now[a.axis].step) for a in v.along)
    return View(name, v.dtype, tuple(shape), None, v.base, along)


def _part(w: Walker, v: View, k: slice, n: Any) -> tuple[int, Any, int]:
    """Where a slice begins, how long it is, its step."""
    step = 1 if k.step is None else k.step
    if step < 1:
        raise w.error(f"a view of an output goes forward: a step of {step}")
    if isinstance(n, int):
        part = range(n)[k]
        if not part:
            raise w.error(f"this view of '{v.name}' has no elements")
        return part.start, len(part), step
    begin, end = k.start or 0, k.stop or 0
    if begin < 0 or end > 0 or not w.within_extent(begin - end, n):
        raise w.error(f"of an axis whose extent is {w.shown_extent(n)} a view takes [begin:], [:-end] or both, with no more than its least extent")
    length = w.index("sub", n, begin - end)
    return begin, length if step == 1 else w.index("floordiv", w.index("add", length, step - 1), step), step


def permuted(w: Walker, v: View, axes: tuple[int, ...], name: str) -> View:
    """Axis i of the result is axis axes[i] of the view."""
    if not v.is_output:
        return moved(w, v, name, lambda t: _ops.permute_dims(t, axes))
    along = tuple(a if a.axis is None else replace(a, axis=axes.index(a.axis)) for a in v.along)
    return View(name, v.dtype, tuple(v.shape[a] for a in axes), None, v.base, along)


def broadcast(w: Walker, v: View, shape: tuple[int, ...], name: str) -> View:
    """An input repeated along axes of extent 1 and along new ones in front."""
    if v.is_output:
        raise w.error(f"'{v.name}' is an output: in a broadcast view of it several indices would be one element")
    return moved(w, v, name, lambda t: _ops.broadcast_to(t, shape))
