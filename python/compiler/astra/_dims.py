"""Dims: sizes that are not known yet, with bounds.

Takes:    names and bounds, integers, other dims.
Gives:    arithmetic, comparisons that hold for all values within the bounds, nodes of graphs.
Keeps:    a comparison that some values decide one way and some the other is refused: a trace may not branch on it.
"""

from __future__ import annotations

from typing import Any, Union

from . import _core
from ._errors import ArgumentError, TraceError
from ._graph import Graph

Size = Union[int, "Dim"]
_scratch = _core.Graph()  # for what is asked of dims outside of all graphs


class Dim:
    """A symbolic integer: a named dim, or arithmetic on dims. Made by `astra.dim` and by shapes of traced tensors."""

    __slots__ = ("_parts", "_made")
    # ("dim", name, lo, hi), ("node", graph, node) or (operation, x, y)

    def __init__(self, *parts: Any) -> None:
        self._parts = parts
        self._made: dict[int, Any] = {}

    def node(self, core: Any) -> Any:
        """The node of a graph that stands for this."""
        found = self._made.get(id(core))
        if found is not None and found[0] is core:
            return found[1]
        kind = self._parts[0]
        try:
            if kind == "dim":
                node = core.dim(*self._parts[1:])
            elif kind == "node":
                if self._parts[1] is not core:
                    raise TraceError("a size of one traced function is used in another")
                node = self._parts[2]
            else:
                node = core.index_op(kind, size_node(core, self._parts[1]), size_node(core, self._parts[2]))
        except ValueError as error:
            raise ArgumentError(str(error)) from None
        self._made = {id(core): (core, node)}
        return node

    def _core(self) -> Any:
        for part in self._parts[1:]:
            if isinstance(part, _core.Graph):
                return part
            if isinstance(part, Dim):
                found = part._core()
                if found is not _scratch:
                    return found
        return _scratch

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value."""
        return _asked((self,), lambda core: (self.node(core).lo, self.node(core).hi))  # type: ignore[no-any-return]

    def _op(self, name: str, x: Any, y: Any) -> Any:
        if not isinstance(x, (int, Dim)) or not isinstance(y, (int, Dim)):
            return NotImplemented
        return _asked((x, y), lambda core: size_of_node(core, Dim(name, x, y).node(core)))

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

    def __mod__(self, other: Any) -> Any:
        return self._op("mod", self, other)

    def __neg__(self) -> Any:
        return self._op("sub", 0, self)

    def _difference(self, other: Any) -> tuple[int, int] | None:
        if not isinstance(other, (int, Dim)):
            return None

        def bounds(core: Any) -> tuple[int, int]:
            node = core.index_op("sub", self.node(core), size_node(core, other))
            return node.lo, node.hi

        return _asked((self, other), bounds)  # type: ignore[no-any-return]

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
        return str(_asked((self,), lambda core: self.node(core).index_text()))

    def __repr__(self) -> str:
        lo, hi = self.bounds
        return f"Dim({self}, {lo}..{hi})"


def _joined(*sizes: Any) -> Any:
    """The graph that one of the sizes belongs to."""
    cores = [d._core() for d in sizes if isinstance(d, Dim)]
    return next((c for c in cores if c is not _scratch), _scratch)


def _asked(sizes: Any, question: Any) -> Any:
    """The answer of a graph that all sizes belong to. Outside of all graphs a new one is taken where a dim of the same name has had
    other bounds: what was asked then does not matter now."""
    global _scratch
    core = _joined(*sizes)
    try:
        return question(core)
    except ArgumentError:
        if core is not _scratch:
            raise
    _scratch = _core.Graph()
    return question(_scratch)


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
