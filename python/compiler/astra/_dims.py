"""Dims: sizes that are not known yet, with bounds.

Takes:    names and bounds, integers, other dims.
Gives:    arithmetic, comparisons that hold for all values within the bounds, nodes of graphs.
Keeps:    a comparison that some values decide one way and some the other is refused: a trace may not branch on it.
"""

from __future__ import annotations

from typing import Any, Union

from . import _core
from ._errors import ArgumentError, ShapeError, TraceError
from ._graph import current

Size = Union[int, "Dim"]


class Dim:
    """A symbolic integer: a named dim, or arithmetic on dims. Made by `astra.dim` and by shapes of traced tensors."""

    __slots__ = ("_parts", "_made", "_text")
    # ("dim", name, lo, hi), ("node", graph, node) or (operation, x, y)

    def __init__(self, *parts: Any) -> None:
        self._parts = parts
        self._made: tuple[Any, Any] | None = None  # a graph and its node
        self._text: str | None = None

    def __reduce__(self) -> Any:
        if self._parts[0] == "node":
            raise TypeError(f"the size {self} belongs to a traced function: it cannot be pickled")
        return (Dim, self._parts)

    def node(self, core: Any) -> Any:
        """The node of a graph that stands for this."""
        if self._made is not None and self._made[0] is core:
            return self._made[1]
        kind = self._parts[0]
        try:
            if kind == "dim":
                node = core.dim(*self._parts[1:])
            elif kind == "node":
                if self._parts[1] is not core:
                    raise TraceError(f"the size {self} of one traced function is used in another")
                return self._parts[2]
            else:
                node = core.index_op(kind, size_node(core, self._parts[1]), size_node(core, self._parts[2]))
        except ValueError as error:
            raise ArgumentError(str(error)) from None
        self._made = (core, node)
        return node

    def _graph(self) -> Any:
        """The graph of the trace that this belongs to, if it does."""
        if self._parts[0] == "node":
            return self._parts[1]
        return _joined(*self._parts[1:]) if self._parts[0] != "dim" else None

    def _alone(self) -> Any:
        """The node, in a graph of its own where this belongs to no trace."""
        if self._made is not None:
            return self._made[1]
        return self.node(self._graph() or _core.Graph())

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value."""
        node = self._alone()
        return node.lo, node.hi

    def _bounds_in(self, core: Any) -> tuple[int, int]:
        node = self.node(core)
        return node.lo, node.hi

    def _op(self, name: str, x: Any, y: Any) -> Any:
        if not isinstance(x, (int, Dim)) or not isinstance(y, (int, Dim)):
            return NotImplemented
        graph, made = _joined(x, y), Dim(name, x, y)
        if graph is not None:
            return size_of_node(graph, made.node(graph))
        constant = made._alone().constant
        return made if constant is None else int(constant)

    def __add__(self, other: Any) -> Any:
        return self._op("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._op("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._op("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._op("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._op("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._op("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._op("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._op("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._op("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._op("mod", other, self)

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        raise TypeError(f"sizes are integers: {self} is divided by // (or make a tensor of it: astra.asarray(size))")

    def at_least(self, other: Size) -> Size:
        """The greater of both."""
        return self._op("max", self, other)

    def at_most(self, other: Size) -> Size:
        """The lesser of both."""
        return self._op("min", self, other)

    def __neg__(self) -> Any:
        return self._op("sub", 0, self)

    def _difference(self, other: Any) -> tuple[int, int] | None:
        if not isinstance(other, (int, Dim)):
            return None
        core = _joined(self, other) or _core.Graph()
        node = core.index_op("sub", self.node(core), size_node(core, other))
        return node.lo, node.hi

    def _decided(self, other: Any, yes: Any, no: Any, sign: str) -> Any:
        difference = self._difference(other)
        if difference is None:
            return NotImplemented
        if yes(*difference):
            return True
        if no(*difference):
            return False
        raise TraceError(f"whether {self} {sign} {other} depends on sizes that are not known yet: give astra.dim other bounds, "
                         "or make the size constant")  # fmt: skip

    def __eq__(self, other: object) -> Any:
        return self._decided(other, lambda lo, hi: lo == hi == 0, lambda lo, hi: lo > 0 or hi < 0, "==")

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: Any) -> Any:
        return self._decided(other, lambda lo, hi: hi < 0, lambda lo, hi: lo >= 0, "<")

    def __le__(self, other: Any) -> Any:
        return self._decided(other, lambda lo, hi: hi <= 0, lambda lo, hi: lo > 0, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._decided(other, lambda lo, hi: lo > 0, lambda lo, hi: hi <= 0, ">")

    def __ge__(self, other: Any) -> Any:
        return self._decided(other, lambda lo, hi: lo >= 0, lambda lo, hi: hi < 0, ">=")

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(str(self))

    def __index__(self) -> int:
        raise TraceError(f"the size {self} is not known yet, it is within {self.bounds[0]}..{self.bounds[1]}; "
                         "a number is needed here")  # fmt: skip

    def __str__(self) -> str:
        if self._text is None:
            self._text = str(self._alone().index_text())
        return self._text

    def __repr__(self) -> str:
        lo, hi = self.bounds
        return f"Dim({self}, {lo}..{hi})"


def _joined(*sizes: Any) -> Any:
    """The graph that a size made of these belongs to, if it belongs to one."""
    return next((g for g in (d._graph() for d in sizes if isinstance(d, Dim)) if g is not None), None)


def size_node(core: Any, size: Size) -> Any:
    """A size as a node."""
    return size.node(core) if isinstance(size, Dim) else core.index(int(size))


def size_of_node(core: Any, node: Any) -> Size:
    """A node as a size: an int where it is constant."""
    if node.constant is not None:
        return int(node.constant)
    if node.op == "dim":
        return Dim("dim", node.name, node.lo, node.hi)
    return Dim("node", core, node)


def dim(name: str, least: int, most: int) -> Dim:
    """A size that is given when a compiled function is called: between `least` and `most`, both included. Tensors whose
    shapes have dims of one name agree in it."""
    if not isinstance(name, str) or not name:
        raise ArgumentError("the name of a dim is a string with something in it")
    if not 0 <= least <= most:
        raise ArgumentError(f"the bounds of dim '{name}' are {least}..{most}; 0 <= least <= most is needed")
    return Dim("dim", name, int(least), int(most))


def ceildiv(x: Size, y: Size) -> Size:
    """x / y rounded up: how many blocks of y cover x. y is greater than 0."""
    if isinstance(y, int) and y < 1:
        raise ArgumentError(f"ceildiv divides by {y}; what it divides by is greater than 0")
    return (x + y - 1) // y


def require_equal(x: Size, y: Size) -> None:
    """Says, while a function is traced, that two sizes are equal: a call in which they are not is refused. From then on they are taken as
    equal: n = x.shape[0]; astra.require_equal(n, 2 * y.shape[0])."""
    graph = current()
    if not graph.tracing or isinstance(x, int) and isinstance(y, int):
        if x != y:
            raise ShapeError(f"the sizes {x} and {y} are not equal")
        return
    left, right = size_node(graph.core, x), size_node(graph.core, y)
    low, high = Dim("sub", x, y)._bounds_in(graph.core)
    if low > 0 or high < 0:
        raise ShapeError(f"the sizes {x} and {y} are equal for no values of the dims")
    if not left == right:
        graph.core.equation(left, right)


def named(size: Size) -> dict[str, Dim]:
    """The dims that a size is made of, by name."""
    if not isinstance(size, Dim):
        return {}
    if size._parts[0] == "dim":
        return {size._parts[1]: size}
    return {k: v for part in size._parts[1:] for k, v in named(part).items()} if size._parts[0] != "node" else {}


__all__ = ["Dim", "ceildiv", "dim", "require_equal"]
