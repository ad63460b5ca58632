"""Shapes: the same elements in another order or place, repeated, joined, cut.

Takes:    tensors, axes (negative ones count from the back), extents, also dims.
Gives:    tensors; bits are kept.
"""

from __future__ import annotations

import builtins
from typing import Any, Sequence

from . import _core, _dims
from ._building import axes_of, axis_of, literal, make, nodes_of, operands, sizes
from ._errors import ArgumentError, ShapeError, UnsupportedError
from ._graph import current
from ._tensor import Tensor, asarray, call, of_node


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same elements in row-major order under another shape; one extent may be -1."""
    x = asarray(x)
    if isinstance(shape, (int, _dims.Dim)):
        shape = (shape,)
    shape = list(shape)
    unknown = [i for i, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if len(unknown) > 1:
        raise ArgumentError("only one extent of a shape may be -1")
    if unknown:
        known: Any = 1
        for n in shape:
            known = known * (1 if isinstance(n, int) and n == -1 else n)
        total = x.size
        if isinstance(known, int) and isinstance(total, int) and (known == 0 or total % known):
            raise ShapeError(f"{total} elements cannot have the shape {tuple(shape)}")
        shape[unknown[0]] = total // known
    graph = current()
    return of_node(graph, call(_core.reshape, graph.core, x._in(graph), sizes(graph, shape)))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """x with its axes in another order."""
    x = asarray(x)
    perm = [axis_of(a, x.ndim) for a in axes]
    if sorted(perm) != list(range(x.ndim)):
        raise ArgumentError(f"{tuple(axes)} does not name each of {x.ndim} axes once")
    return make(_core.permute, x, perm)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes reversed, or in the order given."""
    x = asarray(x)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = asarray(x)
    perm = list(range(x.ndim))
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    perm[i], perm[j] = perm[j], perm[i]
    return permute_dims(x, perm)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other places; the others keep their order."""
    x = asarray(x)
    one = lambda a: [a] if isinstance(a, int) else list(a)  # noqa: E731
    src, dst = [axis_of(a, x.ndim) for a in one(source)], [axis_of(a, x.ndim) for a in one(destination)]
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ArgumentError("source and destination must name as many axes, each once")
    order = [a for a in range(x.ndim) if a not in src]
    for place, a in sorted(zip(dst, src)):
        order.insert(place, a)
    return permute_dims(x, order)


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """Axes of extent 1 put in at places of the result."""
    x = asarray(x)
    n = len(axis) if isinstance(axis, (tuple, list)) else 1
    return make(_core.unsqueeze, x, axes_of(axis, x.ndim + n))


def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """x without axes of extent 1."""
    x = asarray(x)
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if isinstance(n, int) and n == 1]
    return make(_core.squeeze, x, axes_of(axis, x.ndim))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """x repeated to a shape, by NumPy's rules."""
    x, graph = asarray(x), current()
    return of_node(graph, call(_core.broadcast_to, graph.core, x._in(graph), sizes(graph, shape)))


def concat(xs: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Tensors one after another along an axis; None: each flattened."""
    xs = list(xs)
    if not xs:
        raise ArgumentError("there is nothing to concatenate")
    made = operands(*xs)
    if axis is None:
        made, axis = [reshape(x, (-1,)) for x in made], 0
    graph = current()
    return of_node(graph, call(_core.concat, graph.core, nodes_of(graph, made), axis_of(axis, made[0].ndim)))


def stack(xs: Sequence[Any], /, axis: int = 0) -> Tensor:
    """Tensors of one shape one beside another along a new axis."""
    xs = list(xs)
    if not xs:
        raise ArgumentError("there is nothing to stack")
    made = operands(*xs)
    return concat([expand_dims(x, axis) for x in made], axis=axis_of(axis, made[0].ndim + 1))


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """Axes reversed; None: all."""
    x = asarray(x)
    return make(_core.flip, x, axes_of(axis, x.ndim))


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that all of these broadcast to."""
    core = current().core
    nodes = call(_core.broadcast_shape, core, [[_dims.size_node(core, n) for n in s] for s in shapes])
    return tuple(_dims.size_of_node(core, n) for n in nodes)


def broadcast_arrays(*xs: Any) -> tuple[Tensor, ...]:
    """Tensors repeated to their common shape."""
    made = [asarray(x) for x in xs]
    shape = broadcast_shapes(*(x.shape for x in made))
    return tuple(broadcast_to(x, shape) for x in made)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element along an axis (None: of all, flattened) so many times: a number for all, or one for each."""
    x = asarray(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = axis_of(axis, x.ndim)
    if isinstance(repeats, (int, _dims.Dim)):
        if isinstance(repeats, int) and repeats < 0:
            raise ArgumentError(f"a number of repetitions is not negative; {repeats} is")
        shape = list(x.shape)
        inner = expand_dims(x, axis + 1)
        inner = broadcast_to(inner, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        shape[axis] = shape[axis] * repeats
        return reshape(inner, shape)
    from ._creation import iota
    from ._reductions import cumulative_sum
    from ._sorting import searchsorted

    repeats = broadcast_to(asarray(repeats), (x.shape[axis],))
    if repeats._value is None and repeats._graph.tracing:
        raise UnsupportedError("repeat with numbers that are data gives a size that is not known while a function is traced")
    if x.shape[axis] == 0:
        return x
    ends = cumulative_sum(repeats)
    return make(_core.gather, x, searchsorted(ends, iota(int(ends[-1]), ends.dtype), side="right"), axis)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along axes (None: of x flattened); those that leave come in at the other end."""
    x = asarray(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        shifts = [builtins.sum(shifts)]
    if len(axes) != len(shifts):
        raise ArgumentError(f"roll has {len(shifts)} shifts for {len(axes)} axes")
    for a, s in zip(axes, shifts):
        a = axis_of(a, x.ndim)
        n = x.shape[a]
        if not isinstance(n, int):  # a size that is known when it runs: elements by their numbers
            from ._creation import iota
            from ._elementwise import remainder
            from ._indexing import take

            x = take(x, remainder(iota(n) - int(s), asarray(n)), axis=a)
            continue
        s = int(s) % n if n else 0
        if s:
            before: tuple[Any, ...] = (slice(None),) * a
            x = concat([x[(*before, slice(n - s, None))], x[(*before, slice(None, n - s))]], axis=a)
    return x


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """x so many times along each axis."""
    x, graph = asarray(x), current()
    counts = list(repetitions) if isinstance(repetitions, (tuple, list)) else [repetitions]
    counts = [1] * (x.ndim - len(counts)) + counts
    x = reshape(x, (1,) * (len(counts) - x.ndim) + tuple(x.shape))
    return of_node(graph, call(_core.tile, graph.core, x._in(graph), sizes(graph, counts)))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which goes."""
    x = asarray(x)
    if not x.ndim:
        raise ArgumentError("a tensor without axes cannot be unstacked")
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(int(x.shape[0])))


def split(x: Any, indices_or_sections: Any, /, *, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many equal ones, or cut before these indices."""
    x = asarray(x)
    a = axis_of(axis, x.ndim)
    n = x.shape[a]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or n % indices_or_sections != 0:
            raise ShapeError(f"{n} elements cannot be split into {indices_or_sections} equal parts")
        part = n // indices_or_sections
        cuts = [part * i for i in range(1, indices_or_sections)]
    else:
        cuts = list(indices_or_sections)
    before: tuple[Any, ...] = (slice(None),) * a
    return [x[(*before, slice(b, e))] for b, e in zip([0, *cuts], [*cuts, n])]


def array_split(x: Any, indices_or_sections: Any, /, *, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many of about one size, the longer ones first, or cut before these indices."""
    x = asarray(x)
    n = x.shape[axis_of(axis, x.ndim)]
    if isinstance(indices_or_sections, int):
        part, longer = divmod(int(n), indices_or_sections)
        lengths = [part + 1] * longer + [part] * (indices_or_sections - longer)
        indices_or_sections = [builtins.sum(lengths[: i + 1]) for i in range(len(lengths) - 1)]
    return split(x, indices_or_sections, axis=axis)


def ravel(x: Any, /) -> Tensor:
    """x with one axis, row-major."""
    return reshape(x, (-1,))


def flatten(x: Any, /, start: int = 0, end: int = -1) -> Tensor:
    """Axes from start to end as one."""
    x = asarray(x)
    if not x.ndim:
        return reshape(x, (1,))
    a, b = axis_of(start, x.ndim), axis_of(end, x.ndim)
    if a > b:
        raise ArgumentError(f"flatten goes from axis {a} to axis {b}, which is before it")
    n: Any = 1
    for extent in x.shape[a : b + 1]:
        n = n * extent
    return reshape(x, (*x.shape[:a], n, *x.shape[b + 1 :]))


def pad(x: Any, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """x with elements around it: pad_width is a number, a pair for all axes, or a pair for each. mode: "constant", "edge", "reflect" or "wrap"."""
    x = asarray(x)
    if isinstance(pad_width, (int, _dims.Dim)):
        pairs = [(pad_width, pad_width)] * x.ndim
    else:
        pairs = [tuple(p) if isinstance(p, (tuple, list)) else (p,) for p in pad_width]
        if builtins.all(len(p) == 1 for p in pairs) and len(pairs) in (1, 2):
            pairs = [(pairs[0][0], pairs[-1][0])]
        pairs = pairs * x.ndim if len(pairs) == 1 else pairs
    if len(pairs) != x.ndim or builtins.any(len(p) != 2 for p in pairs):
        raise ArgumentError(f"pad has {len(pairs)} pairs for {x.ndim} axes")
    graph = current()
    value = literal(constant_values, x.dtype) if not isinstance(constant_values, Tensor) else constant_values
    nodes = [sizes(graph, [p[i] for p in pairs]) for i in range(2)]
    return of_node(graph, call(_core.pad, graph.core, x._in(graph), *nodes, mode, value._in(graph) if mode == "constant" else None))


def atleast_1d(x: Any, /) -> Tensor:
    """x, a scalar as a vector."""
    x = asarray(x)
    return x if x.ndim else reshape(x, (1,))


def atleast_2d(x: Any, /) -> Tensor:
    """x with axes put in at the front so that there are two."""
    x = asarray(x)
    return x if x.ndim > 1 else reshape(x, (1, x.size))


def hstack(xs: Sequence[Any], /) -> Tensor:
    """Tensors side by side: along axis 1, vectors along axis 0."""
    made = [atleast_1d(x) for x in xs]
    return concat(made, axis=0 if made and made[0].ndim == 1 else 1)


def vstack(xs: Sequence[Any], /) -> Tensor:
    """Tensors one below another; vectors are rows."""
    return concat([atleast_2d(x) for x in xs], axis=0)


def column_stack(xs: Sequence[Any], /) -> Tensor:
    """Vectors as the columns of a matrix; matrices side by side."""
    made = [asarray(x) for x in xs]
    return concat([reshape(x, (x.size, 1)) if x.ndim < 2 else x for x in made], axis=1)


__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "column_stack", "concat",
    "expand_dims", "flatten", "flip", "hstack", "matrix_transpose", "moveaxis", "pad", "permute_dims", "ravel", "repeat", "reshape",
    "roll", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vstack",
]  # fmt: skip
