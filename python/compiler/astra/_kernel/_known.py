"""What is known of the integers and bools of a kernel, and that accesses stay inside of their views.

Takes:    tiles as the walker makes them, with their forms; what is assumed.
Gives:    forms of what is read and of what is computed; bounds; a refusal of an access with a witness, or one that says that nothing could be shown.
Keeps:    a symbol is one value for each element of its tile: elements that go to other places are other values, of which the same is known.
"""

from __future__ import annotations

from typing import Any, Sequence

from .._dtypes import DType
from .._graph import Graph
from .._tensor import Tensor
from . import _forms
from ._forms import Expr, Space
from ._source import Source
from ._values import Index, Tile, View
from ._walker import Walker


def _limits(t: DType) -> tuple[int, int]:
    """The least and the greatest value of a type of integers, or of bools."""
    return (0, 1) if t.kind == "b" else (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)


class Known(Walker):
    """A walker whose program ids, sizes and counters are symbols."""

    def __init__(self, source: Source, language: Any, graph: Graph) -> None:
        super().__init__(source, language)
        self.graph, self.core = graph, graph.core
        self.space = Space()
        self.single: set[str] = set()  # symbols of what is one value for a tile
        self.seen: dict[Any, Any] = {}  # what was read

    def form_of(self, x: Any) -> Expr:
        return x if isinstance(x, int) else x.form

    def node_of(self, x: Any) -> Any:
        return self.core.index(x) if isinstance(x, int) else x.node

    # ---- what is known of elements

    def ranged(self, kind: str, dtype: DType, shape: tuple[Any, ...], bounds: tuple[int, int] | None, shown: str) -> Expr | None:
        """A new symbol for the elements of a tile of integers or bools."""
        if dtype.kind not in "iub":
            return None
        self.fresh += 1
        low, high = _limits(dtype) if bounds is None else bounds
        name = self.space.symbol(_forms.Symbol.of(kind, self.fresh), max(low, -_forms.FAR), min(high, _forms.FAR), shown)
        if all(isinstance(n, int) and n == 1 for n in shape):
            self.single.add(name)
        return name

    def elements(self, v: View, place: Sequence[Any], shape: tuple[Any, ...], fill: Any) -> Expr | None:
        """The form of elements that are read, which may be anything; those that are read a second time are the same."""
        if v.dtype.kind not in "iub":
            return None
        at = (p.tensor._in(self.graph) if isinstance(p, Tile) else self.node_of(p) for p in place)
        key = (v.tensor._in(self.graph), tuple(shape), fill, *at)
        found = self.seen.get(key)
        if found is None or found not in self.space.ranges:
            found = self.seen[key] = self.ranged(_forms.READ, v.dtype, shape, None, "a value that was read")
        return found

    def computed(self, dtype: DType, shape: tuple[Any, ...], bounds: tuple[int, int] | None = None) -> Expr | None:
        return self.ranged(_forms.COMPUTED, dtype, shape, bounds, "")

    def opaque(self, tensor: Tensor) -> Tile:
        """A tile of which nothing is known but its type."""
        return Tile(tensor, self.computed(tensor.dtype, tensor.shape))

    def form(self, x: Any) -> Expr | None:
        found = super().form(x)
        return self.computed(x.dtype, x.shape) if found is None and isinstance(x, Tile) else found

    def bounds(self, x: Any) -> tuple[int, int] | None:
        form = self.form(x)
        return None if form is None else self.within(x.shape if isinstance(x, Tile) else ()).hull(form)

    def means(self, t: Tile, holds: Expr) -> Tile:
        if isinstance(t.form, str) and not _forms.has(holds, _forms.AXIS):
            self.space.means[t.form] = holds
        return t

    def made(self, tensor: Tensor, form: Expr | None = None, bounds: tuple[int, int] | None = None) -> Tile:
        t = super().made(tensor, form)
        if t.dtype.kind not in "iub" or form is not None and t.dtype.kind == "b":
            return t
        least, most = _limits(t.dtype)
        if form is not None:
            low, high = self.within(t.shape).hull(form)
        elif bounds is not None:
            low, high = bounds
        else:
            return self.opaque(tensor)
        if low < least or high > most:  # it might wrap
            return self.opaque(tensor)
        return t if form is not None else Tile(tensor, self.computed(t.dtype, t.shape, bounds))

    def renewed(self, form: Expr) -> Expr:
        """An expression whose elements are at other places: what was read and computed are other elements, of which the same is known."""
        space = self.space
        wanted = {s for s in _forms.symbols(form) if self.varies(s)}
        if not wanted:
            return form
        known = {s for s in space.needed([], wanted) if self.varies(s)}
        names: dict[str, str] = {}
        for s in sorted(known, key=list(space.ranges).index):
            self.fresh += 1
            names[s] = _forms.Symbol.of(_forms.READ if _forms.is_a(s, _forms.READ) else _forms.COMPUTED, self.fresh)
        for s, new in names.items():
            space.ranges[new] = tuple((_forms.rename(a, names), _forms.rename(b, names)) for a, b in space.ranges[s])
            space.shown[new] = space.shown[s]
            if s in space.means:
                space.means[new] = _forms.rename(space.means[s], names)
            if s in space.unheard:
                space.unheard.add(new)
        space.conditions += [_forms.rename(c, names) for c in space.conditions if _forms.symbols(c) & known]
        return _forms.rename(form, names)

    def varies(self, s: str) -> bool:
        """Whether a symbol is another value for each element of its tile."""
        return _forms.is_a(s, _forms.READ, _forms.COMPUTED) and s not in self.single

    def placed(self, form: Expr | None, names: dict[str, Expr]) -> Expr | None:
        return None if form is None else self.renewed(_forms.substituted(form, names))

    def within(self, shape: Sequence[Any]) -> Space:
        """The space with the indices of a tile's axes."""
        space = self.space.copy()
        for i, n in enumerate(reversed(shape)):
            space.symbol(_forms.axis(i), 0, _forms.make("sub", self.form_of(self.extent(n)), 1))
        return space

    # ---- bounds

    def refused(self, what: str, v: View, axis: int, at: dict[str, int], space: Space, first: int, last: int) -> Exception:
        n = _forms.evaluate(self.form_of(v.shape[axis]), at)
        span = f"element {first}" if first == last else f"elements {first} .. {last}"
        cut = "fill=" if not v.is_output else "drop=True"
        return self.error(f"{space.sentence(at)}: {what} '{v.name}' is outside: {span} along axis {axis}, whose extent is {n}; give {cut} if that is meant")

    def inside(self, what: str, v: View, axis: int, start: Any, span: Any) -> None:
        """Refuses a block that is not shown to stay inside."""
        first, last, n = self.form_of(start), self.form_of(self.index("add", start, span)), self.form_of(v.shape[axis])
        for condition in (("le", 0, first), ("le", last, n)):
            found, at = self.space.counterexample(condition)
            if found == "refuted":
                begin = int(_forms.evaluate(first, at))
                raise self.refused(what, v, axis, at, self.space, begin, begin + int(_forms.evaluate(self.form_of(span), at)) - 1)
            if found == "unknown":
                raise self.error(f"{what} '{v.name}' is not shown to stay inside along axis {axis}: give {'drop=True' if v.is_output else 'fill='}, "
                                 "or say with kernel.assume what holds")  # fmt: skip

    def inside_elements(self, what: str, v: View, place: Sequence[Tile], shape: tuple[int, ...]) -> None:
        for axis, t in enumerate(place):
            form: Any = self.form(t)
            space = self.within(shape)
            for condition in (("le", 0, form), ("lt", form, self.form_of(v.shape[axis]))):
                found, at = space.counterexample(condition)
                if found == "refuted":
                    index = int(_forms.evaluate(form, at))
                    raise self.refused(what, v, axis, at, space, index, index)
                if found == "unknown":
                    raise self.error(f"{what} '{v.name}' is not shown to stay inside along axis {axis}: give {'drop=True' if v.is_output else 'fill='}, "
                                     "or say with kernel.assume what holds")  # fmt: skip

    def holds(self, form: Expr) -> None:
        """What holds of every element from here on."""
        if _forms.has(form, _forms.AXIS):
            self.space.unheard |= _forms.symbols(form)
        else:
            self.space.assume(form)
