"""How an operation adds to the graph at hand: operands become tensors of one dtype, tensors become nodes.

Takes:    tensors, arrays, numbers.
Gives:    tensors of nodes.
Keeps:    promotion by the lattice of docs/ops.md; a number of Python's takes the type of the tensor beside it.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import _core, _dims, _dtypes
from ._errors import ArgumentError, AxisError, DTypeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node

F32 = _dtypes.DTYPES["float32"]
I64 = _dtypes.DTYPES["int64"]
BOOL = _dtypes.DTYPES["bool"]
NUMBERS = (bool, int, float, complex, _dims.Dim)


def make(function: Callable[..., Any], *args: Any) -> Tensor:
    """A tensor of a function of the core that gives a node: tensors among the arguments become nodes of the graph at hand."""
    graph = current()
    given = [a._in(graph) if isinstance(a, Tensor) else a for a in args]
    return of_node(graph, call(function, graph.core, *given))


def make_several(function: Callable[..., Any], *args: Any) -> tuple[Tensor | None, ...]:
    """The same of a function that gives several nodes."""
    graph = current()
    given = [a._in(graph) if isinstance(a, Tensor) else a for a in args]
    return tuple(None if n is None else of_node(graph, n) for n in call(function, graph.core, *given))


def make_all(function: Callable[..., Any], *args: Any) -> tuple[Tensor, ...]:
    """The same where none of the nodes is missing."""
    return tuple(x for x in make_several(function, *args) if x is not None)


def op(name: str, *tensors: Tensor, ints: Sequence[int] = (), dtype: str = "") -> Tensor:
    """A node of a primitive op."""
    graph = current()
    return of_node(graph, call(graph.core.make, name, [t._in(graph) for t in tensors], list(ints), dtype))


def sizes(graph: Graph, shape: Any) -> list[Any]:
    """A shape as nodes."""
    if isinstance(shape, (int, _dims.Dim, np.integer)):
        shape = (shape,)
    return [_dims.size_node(graph.core, n) for n in shape]


def literal(value: Any, t: _dtypes.DType) -> Tensor:
    """A scalar as part of the program."""
    graph = current()
    if isinstance(value, _dims.Dim):
        return cast(of_node(graph, call(graph.core.scalar, _dims.size_node(graph.core, value), "i64")), t)
    if t.kind in "iub":
        array = np.asarray(value).astype(t.numpy) if not isinstance(value, int) else value
        number = int(array)
        if isinstance(value, int) and t.kind in "iu":
            lo, hi = (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)
            if not lo <= number <= hi:
                raise OverflowError(f"{value} is outside of {t.name}, {lo}..{hi}")
        return of_node(graph, graph.core.literal_int(t.code, number if number < 1 << 63 else number - (1 << 64)))
    if t.kind == "c":
        part = _dtypes.DTYPES["float32" if t.bits == 64 else "float64"]
        both = complex(value)
        return op("complex", literal(both.real, part), literal(both.imag, part))
    return _of_literal(graph, graph.core.literal(t.code, float(value)))


def _of_literal(graph: Graph, node: Any) -> Tensor:
    """The same as of_node, but a literal needs no line of the user's."""
    x = object.__new__(Tensor)
    x._value, x._graph, x._node = None, graph, node
    return x


def operands(*xs: Any) -> list[Tensor]:
    """Tensors of one dtype from tensors, arrays and numbers."""
    if len(xs) == 2 and type(xs[0]) is Tensor is type(xs[1]) and xs[0].dtype is xs[1].dtype:
        return list(xs)
    if len(xs) == 2 and type(xs[0]) is Tensor and type(xs[1]) is float and xs[0].dtype.kind == "f":
        return [xs[0], literal(xs[1], xs[0].dtype)]
    t: _dtypes.DType | None = None
    made: list[Any] = []
    kinds = []
    for x in xs:
        if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
            kinds.append(_dtypes.kind_of_number(x))
        else:
            x = x if type(x) is Tensor else asarray(x)
            t = x.dtype if t is None else _dtypes.promote(t, x.dtype)
        made.append(x)
    if t is None:
        t = _dtypes.default_of(kinds)
    for kind in kinds:
        t = _dtypes.with_number(t, kind)
    return [cast(x, t) if type(x) is Tensor else literal(x, t) for x in made]


def cast(x: Tensor, t: _dtypes.DType) -> Tensor:
    """x as another type; see `astra.astype`."""
    if x.dtype is t:
        return x
    if x.dtype.kind == "c" and t.kind not in "cb":
        raise DTypeError(f"a complex tensor cannot become {t.name}: take its real or imaginary part first")
    return make(_core.cast, x, t.code)


def floating(x: Any) -> Tensor:
    """x, an integer or bool one as float32."""
    x = x if type(x) is Tensor else asarray(x)
    return x if x.dtype.kind in "fc" else cast(x, F32)


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front."""
    n = int(axis)
    if not -rank <= n < rank:
        raise AxisError(f"axis {n} is outside of a tensor of {rank} axes")
    return n % rank


def axes_of(axis: Any, rank: int) -> list[int]:
    """Axes, ascending; None is all."""
    if axis is None:
        return list(range(rank))
    found = [axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(found)) != len(found):
        raise ArgumentError(f"an axis is named twice in {axis}")
    return sorted(found)


def nodes_of(graph: Graph, tensors: Sequence[Tensor]) -> list[Any]:
    """The nodes that stand for tensors."""
    return [t._in(graph) for t in tensors]


def on_cpu(device: Any) -> None:
    """Refuses another device than the host's."""
    if device is not None and device != "cpu":
        raise ArgumentError(f"there is no device '{device}'; tensors are in host memory: 'cpu'")


__all__ = ["BOOL", "F32", "I64", "NUMBERS", "axes_of", "axis_of", "cast", "floating", "literal", "make", "make_all", "make_several", "nodes_of",
           "on_cpu", "op", "operands", "sizes"]  # fmt: skip
