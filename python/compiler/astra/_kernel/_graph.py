"""A kernel as one node of the graph: its body is built once, of symbolic program ids.

Takes:    a kernel's source, its arguments, its grid.
Gives:    a tensor for each output, results of one op `custom`.
Keeps:    every access is shown to stay inside of its view, or cut where the call says so (fill, drop); no two programs write one element. What is
          neither shown nor refuted is refused too.
          Short loops are unrolled. A counter of another is an int64 scalar of the loop's body; in expressions it is a symbol.
"""

from __future__ import annotations

import ast
import math
import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Sequence

from .. import _control, _dims, _ops
from .._dtypes import DTYPES, DType
from .._errors import KernelError
from .._graph import Graph
from .._tensor import Tensor, call, of_node
from . import _forms, _races
from ._forms import Expr, Space
from ._known import Known
from ._source import Source
from ._values import Along, Index, Tile, View
from ._expressions import TESTED
from ._walker import MOST_STEPS

# Loops of a known number of steps are unrolled while no statement stands in the body more often than this; with a store in them, whose blocks are joined,
# while it is not more often than that.
MOST_COPIES, MOST_COPIES_OF_STORES = 3, 256
MOST_TRIPS = 1 << 40  # of a loop: what a dim of the graph counts
MOST_STORES = 16  # into one output, that are not one block together


@dataclass
class Store:
    """What a kernel writes into an output: a block, or (mode) elements one by one."""

    view: View
    place: tuple[Any, ...]
    tensor: Tensor
    extents: tuple[Any, ...]  # of the block; numbers, but of a loop whose length is a dim
    drop: bool
    node: ast.AST
    source: Source
    mode: str = ""
    looped: bool = False  # whether its blocks are written in turn with those of other stores


@dataclass
class Result:
    """A result of the body: elements of an output, which of them it stores (None: it is the first, the others are 0), and the steps along each axis."""

    value: Tensor
    stored: Tensor | None
    steps: tuple[int, ...]


def last_index(v: View, a: Along) -> int | None:
    """The last index of an output's axis that a view of it has; None where a dim of the graph decides."""
    n = 1 if a.axis is None else v.shape[a.axis]
    return a.begin + a.step * (n - 1) if isinstance(n, int) else None


def never_meet(a: Along, b: Along, last_a: int | None, last_b: int | None) -> bool:
    """Whether two views of one axis have no index in common: one ends before the other begins, or their steps pass each other by."""
    if (last_a is not None and last_a < b.begin) or (last_b is not None and last_b < a.begin):
        return True
    if a.axis is None and b.axis is None:
        return False  # one index, the same
    if a.axis is None or b.axis is None:
        one, other = (a, b) if a.axis is None else (b, a)
        return (one.begin - other.begin) % other.step != 0
    return (a.begin - b.begin) % math.gcd(a.step, b.step) != 0


class GraphWalker(Known):
    """Builds the body."""

    def __init__(self, source: Source, language: Any, graph: Graph, grid: Sequence[Any]) -> None:
        super().__init__(source, language, graph)
        self.dims: dict[Any, str] = {}  # a node of a dim -> its symbol
        self.loops: dict[str, Tensor] = {}  # a symbol -> the counter of its loop, an int64 scalar
        self.stores: list[Store] = []
        self.looping, self.copies = 0, 1  # loops around the statement, and how often it stands in the body
        self.grid = [self.extent(n) for n in grid]
        self.names_of_grid: list[str] = []
        self.programs: list[Any] = []
        for axis, n in enumerate(self.grid):
            most = max(1, n if isinstance(n, int) else n.node.hi)
            if self.space.hull(self.form_of(n))[0] < 1:
                self.space.assume(("le", 1, self.form_of(n)))  # where no program runs, nothing is asked
            name = f"program{axis}_{most}"
            node = call(self.core.dim, name, 0, most - 1)
            self.names_of_grid.append(name)
            self.dims[node] = self.space.symbol(_forms.program(axis), 0, _forms.make("sub", self.form_of(n), 1))
            self.programs.append(0 if most == 1 else Index(node, _forms.program(axis)))

    def statement(self, s: ast.stmt) -> None:
        """What it makes comes from its line."""
        outer, self.graph.at = self.graph.at, (self.source.file, s.lineno)
        try:
            super().statement(s)
        finally:
            self.graph.at = outer

    def begin(self, names: dict[str, Any]) -> None:
        """What the arguments stand for."""
        self.names = {**names, TESTED: Tile(_ops.literal(0, _ops.I64))}

    # ---- indices

    def extent(self, n: Any) -> Any:
        """A size as a number or an Index."""
        return self.indexed_node(_dims.size_node(self.core, n))

    def size(self, x: Index, what: str) -> Any:
        inner = [s for s in _forms.symbols(self.node_form(x.node)) if _forms.is_a(s, _forms.PROGRAM, _forms.COUNTER, _forms.READ, _forms.COMPUTED)]
        if inner or x.node.lo < 1:
            why = "one that programs, counters or values decide is in it" if inner else f"{self.shown_extent(x)} may be {x.node.lo}"
            raise self.error(f"{what} is of numbers and of sizes that are 1 at least; {why}")
        return _dims.size_of_node(self.core, x.node)

    def diagonal(self, x: Any) -> Any:
        node = self.node_of(x)
        if self.moves(node):
            raise self.error("tril is of program ids and sizes; the counter of a loop that is not unrolled is in it: kernel.static_for unrolls one")
        return node

    def indexed_node(self, node: Any) -> Any:
        return int(node.constant) if node.constant is not None else Index(node, self.node_form(node))

    def node_form(self, node: Any) -> Expr:
        """A symbolic integer of the graph as an expression."""
        if node.constant is not None:
            return int(node.constant)
        if node in self.dims:
            return self.dims[node]
        if node.op in ("add", "sub", "mul", "floordiv", "mod", "min", "max") and len(node.sources) == 2:
            return _forms.make(node.op, *(self.node_form(s) for s in node.sources))
        name = node.name if node.op == "dim" else f"size{len(self.dims)}"
        self.dims[node] = self.space.symbol(f"dim {name}", node.lo, node.hi, name)
        return self.dims[node]

    def index(self, op: str, x: Any, y: Any) -> Any:
        if isinstance(x, int) and isinstance(y, int):
            return _forms.make(op, x, y)
        if op in ("floordiv", "mod") and not self.space.holds(("lt", 0, self.form_of(y))):
            raise self.error("a divisor of sizes is greater than 0 for all sizes; this one is not shown to be")
        node = self.attempt(self.core.index_op, op, self.node_of(x), self.node_of(y))
        if node.constant is not None:
            return int(node.constant)
        return Index(node, _forms.make(op, self.form_of(x), self.form_of(y)))

    def scalar(self, x: Index) -> Tensor:
        return self.realized(x.node, {})

    def realized(self, node: Any, seen: dict[Any, Tensor]) -> Tensor:
        """A symbolic integer as an int64 scalar, counters of loops in it replaced by their values."""
        if node not in seen:
            symbol = self.dims.get(node)
            if symbol in self.loops:
                seen[node] = self.loops[symbol]
            elif not self.moves(node):
                seen[node] = of_node(self.graph, call(self.core.scalar, node, "i64"))
            else:
                seen[node] = _ops.op(node.op, *(self.realized(s, seen) for s in node.sources))
        return seen[node]

    def moves(self, node: Any) -> bool:
        """Whether a counter of a loop is in an integer."""
        return any(s in self.loops for s in _forms.symbols(self.node_form(node)))

    def program_id(self, axis: int) -> Any:
        return self.programs[axis] if axis < len(self.programs) else 0

    def num_programs(self, axis: int) -> Any:
        return self.grid[axis] if axis < len(self.grid) else 1

    def extents_of(self, t: Tensor) -> tuple[Any, ...]:
        return tuple(self.indexed_node(n) for n in t._in(self.graph).dims)

    def within_extent(self, i: int, n: Any) -> bool:
        return super().within_extent(i, n) if isinstance(n, int) else i < n.node.lo

    def shown_extent(self, n: Any) -> str:
        return str(n if isinstance(n, int) else _dims.size_of_node(self.core, n.node))

    # ---- movement, of symbolic places

    def shrunk(self, x: Tensor, begin: list[Any], size: list[Any]) -> Tensor:
        return self.moved("shrink", x, [*begin, *size], [])

    def padded(self, x: Tensor, before: list[Any], after: list[Any], fill: Any) -> Tensor:
        if all(isinstance(n, int) and n == 0 for n in (*before, *after)):
            return x
        return self.moved("pad", x, [*before, *after], [self.bits(fill, x.dtype)])

    def moved(self, op: str, x: Tensor, indices: list[Any], ints: list[int]) -> Tensor:
        return of_node(self.graph, self.attempt(call, self.core.make, op, [x._in(self.graph), *map(self.node_of, indices)], ints, ""))

    def bits(self, fill: Any, t: DType) -> int:
        """A number as the bits of a dtype."""
        if t.kind == "s":
            return 0
        return int(_ops.literal(fill, t)._in(self.graph).ints[0])

    def least(self, x: Any) -> int:
        """The lower bound that the graph itself knows, which its type rules ask for."""
        return x if isinstance(x, int) else x.node.lo

    def cut(self, start: Any, span: Any, n: Any) -> tuple[Any, Any, Any, Any]:
        """Of a block along an axis: where the part inside begins, how long it is, how much of the block is before it and behind it. A minimum or a maximum
        that changes nothing stands where the graph does not see bounds that were shown here."""
        low = self.space.holds(("le", 0, self.form_of(start)))
        left = self.index("sub", n, span)
        if low and self.space.holds(("le", self.form_of(start), self.form_of(left))):
            if self.least(start) >= 0 and self.least(self.index("sub", left, start)) >= 0:
                return start, span, 0, 0
            if self.least(left) >= 0:
                begin = self.index("min", left, start)
                return begin if self.least(begin) >= 0 else self.index("max", begin, 0), span, 0, 0
        begin = start if self.least(start) >= 0 else self.index("max", start, 0)
        if self.least(self.index("sub", n, begin)) < 0:
            begin = self.index("min", n, begin)
        if low:
            size = self.index("min", span, self.index("sub", n, begin))
            return begin, size, 0, self.index("sub", span, size)
        end = self.index("max", self.index("min", n, self.index("add", start, span)), begin)
        size = self.index("min", span, self.index("sub", end, begin))
        rest = self.index("sub", span, size)
        before = self.index("min", rest, self.index("max", self.index("sub", begin, start), 0))
        return begin, size, before, self.index("sub", rest, before)

    # ---- access

    def load(self, v: View, place: tuple[Any, ...], shape: tuple[Any, ...], fill: Any) -> Tile:
        if any(isinstance(p, Tile) for p in place):
            return self.load_at_data(v, place, shape, fill)
        spans = tuple(map(self.extent, shape))
        if fill is None:
            for axis, (s, n) in enumerate(zip(place, spans)):
                self.inside("the load from", v, axis, s, n)
        begin: list[Any] = []
        size: list[Any] = []
        before: list[Any] = []
        after: list[Any] = []
        starts: list[Any] = []
        looping = False
        for s, span, n in zip(place, spans, v.shape):
            if isinstance(s, Index) and self.moves(s.node):
                looping = True
                low, high = (0, 0) if fill is None else (max(0, -s.node.lo), self.index("max", 0, self.index("sub", self.index("add", s.node.hi, span), n)))
                parts: tuple[Any, ...] = (0, n, low, high)
                if max(low, s.node.hi) >= _forms.FAR:
                    raise self.error(f"the place of this load from '{v.name}' has no bounds: say with kernel.assume what holds")
                starts.append(self.index("add", s, low))
            else:
                parts = self.cut(s, span, n)
                starts.append(0)
            for out, part in zip((begin, size, before, after), parts):
                out.append(part)
        x = self.padded(self.shrunk(v.tensor, begin, size), before, after, 0 if fill is None else fill)
        if looping:
            at = [self.tensor(s)._in(self.graph) for s in starts]
            x = of_node(self.graph, self.attempt(call, self.core.make, "slice_at", [x._in(self.graph), *at, *map(self.node_of, spans)], [], ""))
        return Tile(x, self.elements(v, place, shape, fill))

    def load_at_data(self, v: View, place: tuple[Any, ...], shape: tuple[int, ...], fill: Any) -> Tile:
        """A block whose place is computed: its elements one by one."""
        tiles = []
        for axis, (s, n) in enumerate(zip(place, shape)):
            line = Tile(_ops.reshape(_ops.iota(n), (n,) + (1,) * (len(shape) - axis - 1)), _forms.axis(len(shape) - axis - 1))
            tiles.append(self.binary(ast.Add, line, Tile(_ops.astype(self.tensor(s), "int64"), self.form(s))))
        return self.gather(v, tuple(tiles), fill)

    def gather(self, v: View, place: tuple[Tile, ...], fill: Any) -> Tile:
        shape: tuple[int, ...] = ()
        for t in place:
            shape = self.broadcast(shape, t.shape, "the indices of gather")
        if fill is None:
            self.inside_elements("the gather from", v, place, shape)
        flat, inside = self.flattened(v, place, shape)
        if v.dtype.kind == "s":
            raise self.error(f"gather from '{v.name}', which is of {v.dtype.name}, is not there yet: load a block of it, and cast that")
        x = _ops.op("gather", _ops.reshape(v.tensor, (-1,)), flat, ints=[0])
        if fill is not None and fill != 0:
            x = _ops.where(inside, x, self.tensor(fill, v.dtype))
        return Tile(x, self.elements(v, place, shape, fill))

    def flattened(self, v: View, place: Sequence[Tile], shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """The row-major number of an element, -1 of one outside; and whether it is inside."""
        flat: Tensor | None = None
        inside: Tensor | None = None
        for t, n in zip(place, v.shape):
            index, extent = _ops.astype(t.tensor, "int64"), self.tensor(n, _ops.I64)
            here = _ops.bitwise_and(_ops.greater_equal(index, 0), _ops.less(index, extent))
            inside = here if inside is None else _ops.bitwise_and(inside, here)
            flat = index if flat is None else _ops.add(_ops.multiply(flat, extent), index)
        assert flat is not None and inside is not None
        return _ops.broadcast_to(_ops.where(inside, flat, -1), shape), _ops.broadcast_to(inside, shape)

    def record(self, s: Store) -> None:
        if self.depth and self.ids_alone:
            raise self.error("a store inside of an `if` of program ids and sizes is not there yet: start as many programs as store, let store(..., drop=True) leave out "
                             "what is outside, or store kernel.where(...) after the `if`")  # fmt: skip
        if self.depth:
            raise self.error("a store inside of an `if` or a `while` on data is not there yet: store kernel.where(...) after it")
        others = [other for other in self.stores if other.view.base is s.view.base]
        name = s.view.base.name
        if any(other.mode != s.mode or s.mode == "set" for other in others):
            raise self.error(f"'{name}' is stored into in two ways: stores of blocks go together, and scatters of one mode that combines")
        if len(others) >= MOST_STORES:
            raise self.error(f"'{name}' is stored into by more than {MOST_STORES} statements: join the tiles, or scatter")
        self.stores.append(replace(s, looped=s.looped or bool(self.looping)))

    def store(self, v: View, place: tuple[Any, ...], t: Tile, drop: bool) -> None:
        if any(isinstance(p, Tile) for p in place):
            raise self.error("a block is stored at a place of program ids, counters and sizes; kernel.scatter writes at indices that are computed")
        extents = self.extents_of(t.tensor)
        for axis, (s, span) in enumerate(zip(place, extents)):
            if not drop:
                self.inside("the store into", v, axis, s, span)
        self.record(Store(v, place, t.tensor, extents, drop, self.node, self.source))

    def scatter(self, v: View, place: tuple[Tile, ...], t: Tile, mode: str, drop: bool) -> None:
        if self.looping:
            raise self.error("a scatter in a `for` is not there yet: use kernel.static_for with tiles that are joined, or more programs")
        if not drop:
            self.inside_elements("the scatter into", v, place, t.shape)
        if mode == "set":
            space = self.within(t.shape)
            forms: list[Any] = [self.form(p) for p in place]
            moving = [*map(_forms.program, range(len(self.grid))), *map(_forms.axis, range(len(t.shape)))]
            self.separate(_races.meet(space, forms, [1] * len(forms), [self.form_of(n) for n in v.shape], moving), space, "the scatter into", v)
        flat, _ = self.flattened(v, place, t.shape)
        self.record(Store(v, (flat,), t.tensor, t.shape, drop, self.node, self.source, mode))

    def separate(self, found: Any, space: Space, what: str, v: View) -> None:
        """Refuses writers that meet."""
        status, p, q = found
        if status == "refuted":
            index = ", ".join(str(p[f"index{a}"]) for a in range(len(v.shape)))
            one, other = (space.sentence({k: x for k, x in point.items() if _forms.is_a(k, _forms.PROGRAM)}) for point in (p, q))
            sizes = [f"{space.shown[k]} = {x}" for k, x in p.items() if space.shown.get(k) and not _forms.is_a(k, _forms.PROGRAM, _forms.READ, _forms.COUNTER)]
            both = f"{one} and {other} both" if one != other else f"two elements of a tile of {one} both"
            raise self.error(f"{both} write element ({index}) of '{v.name}'{' where ' + ', '.join(sizes) if sizes else ''}: {what} it is a race")
        if status == "unknown":
            raise self.error(f"{what} '{v.name}' is not shown to write each element once: let each index be c * program_id + ... with c not below the "
                             "extent of the tile" + (", or use mode='add', 'max' or 'min'" if "scatter" in what else ""))  # fmt: skip

    # ---- control

    def for_range(self, s: ast.For, first: Any, last: Any, step: int) -> None:
        span = self.index("sub", last, first) if step > 0 else self.index("sub", first, last)
        trips = self.index("floordiv", self.index("add", span, abs(step) - 1), abs(step))
        if isinstance(trips, int) and trips <= 0:
            return self.skip(s.body)
        if not isinstance(trips, int) and not self.space.holds(("le", 0, trips.form)):
            trips = self.index("max", trips, 0)
        assert isinstance(s.target, ast.Name)
        outer, names, stores = self.space, dict(self.names), self.stores
        changed = [n for n in self.changed(s.body) if n != s.target.id]
        before = {n: self.carried(n, s) for n in changed}
        counter = s.target.id

        def body(k: Any, carry: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[Store]]:
            """One step, whose number is k."""
            self.stores = []
            self.names = {**names, **{n: self.opaque(t) for n, t in carry.items()}}
            self.names[counter] = self.index("add", first, self.index("mul", step, k))
            self.block(s.body)
            return {n: self.handed(n, before[n], s, "the loop").tensor for n in changed}, self.stores

        value = {n: t.tensor for n, t in before.items()}
        self.looping += 1
        copies = self.copies
        try:
            most = MOST_COPIES_OF_STORES if self.stores_in(s.body) else MOST_COPIES
            if isinstance(trips, int) and trips * copies * self.most_unrolled(s.body) <= most:
                self.copies *= trips
                steps = []
                for k in range(trips):
                    value, found = body(k, value)
                    steps.append(found)
                rows = [s for row in zip(*steps) for s in self.one_block(list(row))]
            else:
                value, rows = self.scanned(s, body, value, trips, counter if step == 1 and first == 0 else "")
        finally:
            self.looping, self.copies = self.looping - 1, copies
            self.space, self.stores = outer, stores
        self.names = {**names, **{n: self.opaque(value[n]) for n in changed}}
        for row in rows:
            self.node = row.node
            self.record(row)

    @staticmethod
    def stores_in(body: list[ast.stmt]) -> bool:
        """Whether a store stands in statements."""
        return any(isinstance(n, ast.Attribute) and n.attr == "store" for s in body for n in ast.walk(s))

    def scanned(self, s: ast.For, body: Any, value: dict[str, Tensor], trips: Any, shown: str) -> tuple[dict[str, Tensor], list[Store]]:
        """A loop of the kernel."""
        most = trips if isinstance(trips, int) else trips.node.hi
        if most > MOST_TRIPS:
            raise self.error(f"a `for` has at most {MOST_TRIPS} steps; this one may have {most}", s)
        self.fresh += 1
        symbol = _forms.Symbol.of(_forms.COUNTER, self.fresh)
        node = call(self.core.dim, f"{symbol}_{most}", 0, most - 1)
        self.dims[node] = symbol
        self.space = self.space.copy()
        self.space.symbol(symbol, 0, _forms.make("sub", self.form_of(trips), 1), shown)
        inner: list[Store] = []

        def step(carry: Any, _: Any) -> Any:
            nonlocal inner
            self.loops[symbol] = carry[0]
            after, inner = body(Index(node, symbol), carry[1])
            return (_ops.add(carry[0], 1), after), [i.tensor for i in inner]

        if isinstance(trips, int):
            count: Any = trips
        elif self.moves(trips.node):  # as many as the counter of a loop around says: a data dim
            count = _dims.size_of_node(self.core, call(self.core.make, "extent", [self.scalar(trips)._in(self.graph)], [0, max(0, most)]))
        else:
            count = _dims.size_of_node(self.core, trips.node)
        try:
            (_, value), stacked = _control.scan(step, (_ops.literal(0, _ops.I64), value), length=count)
        finally:
            self.loops.pop(symbol, None)
        out = []
        for found, tensor in zip(inner, stacked):
            self.node = found.node
            places = [tuple(self.at_step(p, node, k) for p in found.place) for k in (0, 1)]
            a, lengths = self.followed(places, found.extents, trips)
            shape = [n if isinstance(n, int) else _dims.size_of_node(self.core, n.node) for n in lengths]
            joined = _ops.reshape(_ops.moveaxis(tensor, 0, a), tuple(shape))
            out.append(replace(found, place=places[0], tensor=joined, extents=lengths))
        return value, out

    def at_step(self, p: Any, counter: Any, k: int) -> Any:
        """A place where the counter of a loop is a number."""
        if isinstance(p, int):
            return p
        return self.indexed_node(call(self.core.substitute, [p.node], [counter], [self.core.index(k)])[0])

    def one_block(self, steps: list[Store]) -> list[Store]:
        """The blocks that the steps of a loop store as one, or, if they are few, each by itself."""
        try:
            return [self.unrolled(steps)]
        except KernelError:
            if len(steps) > MOST_STORES:
                raise
            return [replace(s, looped=True) for s in steps]

    def unrolled(self, steps: list[Store]) -> Store:
        """The blocks that the steps of a loop store, as one."""
        if len(steps) == 1:
            return steps[0]
        self.node = steps[0].node
        a, lengths = self.followed([s.place for s in steps], steps[0].extents, len(steps))
        return replace(steps[0], tensor=_ops.concat([s.tensor for s in steps], axis=a), extents=lengths)

    def followed(self, places: Sequence[tuple[Any, ...]], extents: tuple[Any, ...], trips: Any) -> tuple[int, tuple[Any, ...]]:
        """The axis along which each block of a loop follows the one before, and the extents of all together."""
        steps = [[self.index("sub", p, q) for p, q in zip(later, place)] for place, later in zip(places, places[1:])]
        moving = [a for a, n in enumerate(steps[0]) if not (isinstance(n, int) and n == 0)]
        wanted = [extents[a] if moving == [a] else 0 for a in range(len(extents))]
        if len(moving) != 1 or any(not isinstance(n, int) or n != w for step in steps for n, w in zip(step, wanted)):
            raise self.error("a store in a `for` writes blocks that follow each other along one axis: its place is ... + counter * extent of the tile")
        a = moving[0]
        return a, (*extents[:a], self.index("mul", extents[a], trips), *extents[a + 1 :])

    def branch(self, s: ast.If, condition: Tile) -> None:
        outer, names = self.space, dict(self.names)
        assigned = [{n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} for body in (s.body, s.orelse)]
        changed = sorted({*(n for n in assigned[0] | assigned[1] if n in names or n in assigned[0] and n in assigned[1]), *self.changed([*s.body, *s.orelse])})
        wanted: dict[str, Tile] = {}

        def side(body: list[ast.stmt], holds: Expr | None) -> Callable[[], dict[str, Tensor]]:
            def function() -> dict[str, Tensor]:
                self.space, self.names = outer.copy(), dict(names)
                if holds is not None:
                    self.holds(holds)
                self.block(body)
                out: dict[str, Tensor] = {}
                for n in changed:
                    if n not in self.names:
                        raise self.error(f"'{n}' is assigned in one branch alone: give it a value before the `if`", s)
                    found = self.carried(n, s)
                    if n in wanted and (found.dtype is not wanted[n].dtype or found.shape != wanted[n].shape):
                        raise self.error(f"'{n}' is {wanted[n]} in one branch and {found} in the other; both are of one type", s)
                    wanted.setdefault(n, found)
                    out[n] = found.tensor
                return out

            return function

        form = condition.form
        around, self.depth = self.ids_alone, self.depth + 1
        self.ids_alone = form is not None and not any(_forms.is_a(s, _forms.READ, _forms.COMPUTED) for s in _forms.symbols(form))
        try:
            found = _control.cond(condition.tensor, side(s.body, form), side(s.orelse, None if form is None else ("not", form)))
        finally:
            self.ids_alone, self.depth = around, self.depth - 1
            self.space = outer
        self.names = {**names, **{n: self.opaque(t) for n, t in found.items()}}

    def while_data(self, s: ast.While) -> None:
        outer, names = self.space, dict(self.names)
        changed = self.changed(s.body)
        used = {n.id for n in ast.walk(s.test) if isinstance(n, ast.Name)}
        if not used & set(changed):
            raise self.error("the body of this `while` changes nothing that its condition depends on: it never ends", s.test)
        changed = list(dict.fromkeys((*changed, TESTED)))
        before = {n: self.carried(n, s) for n in changed}
        least = {n: self.bounds(names[n]) for n in changed if before[n].dtype is _ops.I64 and before[n].shape == () and self.only_grows(n, s.body)}
        steps = "the steps of this loop"  # no name that a kernel could have
        before[steps] = Tile(_ops.literal(0, _ops.I64))

        def enter(value: dict[str, Tensor]) -> None:
            self.space = outer.copy()
            self.names = {**names, **{n: self.opaque(t) for n, t in value.items()}}
            for n, known in least.items():
                if known is not None:
                    self.space.assume(("le", known[0], self.names[n].form))

        def test(value: dict[str, Tensor]) -> Tensor:
            enter(value)
            found = self.truth(self.value(s.test), "the condition of `while`")
            return self.tensor(found)

        def body(value: dict[str, Tensor]) -> dict[str, Tensor]:
            enter(value)
            count = _ops.add(value[steps], 1)
            self.node = s
            self.holds(self.form(self.truth(self.value(s.test), "the condition of `while`")) or 0)
            self.tested(Tile(_ops.less_equal(count, MOST_STEPS)), f"this `while` has not ended after {MOST_STEPS} steps")
            self.block(s.body)
            return {**{n: self.handed(n, before[n], s, "the loop").tensor for n in changed}, steps: count}

        self.depth += 1
        try:
            found = _control.while_loop(test, body, {n: t.tensor for n, t in before.items()})
        finally:
            self.depth -= 1
            self.space = outer
        self.names = {**names, **{n: self.opaque(found[n]) for n in changed}}

    def assumed(self, condition: Any) -> None:
        if condition is False:
            raise self.error("what is assumed does not hold")
        if isinstance(condition, Tile):
            self.holds(self.form(condition) or 0)
        self.tested(condition, "what is assumed does not hold")

    def asserted(self, condition: Any, message: str) -> None:
        sentence = "the assertion does not hold" + (f": {message}" if message else "")
        if condition is False:
            raise self.error(sentence)
        self.tested(condition, sentence)

    def tested(self, condition: Any, sentence: str) -> None:
        """Has what is stored later wait for a test: of `extent`, whose integer has the sentence as its name. Builds that test nothing drop it."""
        if not isinstance(condition, Tile):
            return
        holds = condition.tensor if condition.shape == () else _ops.all(condition.tensor)
        where = f"{os.path.basename(self.source.file)}:{getattr(self.node, 'lineno', 0)}"
        failed = _ops.where(holds, _ops.literal(0, _ops.I64), _ops.literal(2, _ops.I64))
        named = call(self.core.named, "tap", failed._in(self.graph), f"{where}: {sentence}")
        test = call(self.core.scalar, call(self.core.make, "extent", [named], [0, 1]), "i64")
        self.names[TESTED] = Tile(of_node(self.graph, call(self.core.make, "after", [self.names[TESTED].tensor._in(self.graph), test])))

    def waiting(self, t: Tensor) -> Tensor:
        """A tile that is stored, which waits for the tests before."""
        tested = self.names[TESTED].tensor._in(self.graph)
        if tested.op == "const":
            return t
        if t.dtype.kind != "s":
            return of_node(self.graph, call(self.core.make, "after", [t._in(self.graph), tested]))
        x = t._in(self.graph)
        if x.op != "cast":
            raise self.error(f"a kernel that assumes or asserts stores tiles of {t.dtype.name} that it casts; this one is moved alone")
        return _ops.astype(of_node(self.graph, call(self.core.make, "after", [x.sources[0], tested])), t.dtype)

    # ---- the node

    def results(self, outputs: Sequence[View]) -> list[list[Result]]:
        """What the body gives for each output: one value, but of stores of blocks that are not one together."""
        out = []
        for v in outputs:
            stores = self.joined([s for s in self.stores if s.view.base is v])
            if not stores and v.name in self.skipped and v.dtype.kind != "s":  # by loops without a step: it stays 0
                nowhere = Tile(_ops.literal(-1, _ops.I64))
                nothing = _ops.literal(False if v.dtype.kind == "b" else 0, v.dtype)
                stores = [Store(v, (nowhere.tensor,), nothing, (), True, self.source.tree, self.source, "add" if v.dtype.kind != "b" else "set")]
            if not stores:
                raise self.error(f"nothing is stored into the output '{v.name}'", self.source.tree)
            found = []
            for k, s in enumerate(stores):
                self.node, self.source = s.node, s.source
                s = replace(s, tensor=self.waiting(s.tensor))
                if s.mode:
                    found.append(Result(self.scattered(s), None, ()))
                    continue
                self.separate_stores(stores[:k], s)
                if v.dtype.kind == "s" and len(stores) > 1:
                    raise self.error(f"several stores into '{v.name}', which is of {v.dtype.name}, are one block together, or each an output of its own")
                yes = None if not found else self.block_of(replace(s, tensor=_ops.broadcast_to(_ops.literal(True, DTYPES["bool"]), s.tensor.shape)), "b")
                found.append(Result(self.block_of(s), yes, tuple(a.step for a in s.view.along)))
            out.append(found)
        return out

    def joined(self, stores: list[Store]) -> list[Store]:
        """Stores of blocks that follow each other along an axis as one, scatters of one mode as one."""
        if len(stores) < 2:
            return stores
        first = stores[0]
        if first.mode:
            place = _ops.concat([_ops.reshape(s.place[0], (-1,)) for s in stores])
            return [replace(first, place=(place,), tensor=_ops.concat([_ops.reshape(s.tensor, (-1,)) for s in stores]))]
        if all(s.view.along == first.view.along and s.extents == first.extents and s.drop == first.drop for s in stores):
            try:
                return [self.unrolled(stores)]
            except KernelError:
                pass
        return stores

    def separate_stores(self, before: list[Store], s: Store) -> None:
        """Refuses a program that writes what another program writes; what one program writes twice has the value of the later store, but in a loop."""
        moving = [*map(_forms.program, range(len(self.grid)))]
        v = s.view
        view = [self.form_of(n) for n in v.shape]
        forms = lambda t: ([self.form_of(p) for p in t.place], [self.form_of(n) for n in t.extents])  # noqa: E731
        places, extents = forms(s)
        self.separate(_races.meet(self.space, places, extents, view, moving), self.space, "the store into", v)
        for other in before:
            if any(never_meet(a, b, last_index(v, a), last_index(other.view, b)) for a, b in zip(v.along, other.view.along)):
                continue
            if other.view.along != v.along:
                raise self.error(f"this store into '{v.base.name}' and the one of line {getattr(other.node, 'lineno', 0)} are not shown to be apart: give them one view, "
                                 "or views that have no element in common")  # fmt: skip
            first, sizes = forms(other)
            self.separate(_races.pair(self.space, [first, places], [sizes, extents], view, moving), self.space, "the store into", v)
            if (s.looped or other.looped) and not _races.apart([first, places], [sizes, extents]):
                raise self.error(f"this store into '{v.base.name}' and the one of line {getattr(other.node, 'lineno', 0)} may write one element in different steps "
                                 "of a loop: let their places differ by a number that is not below the extent of the tile")  # fmt: skip

    def block_of(self, s: Store, kind: str = "") -> Tensor:
        v = s.view
        begin, size, before = [], [], []
        for p, span, n in zip(s.place, s.extents, v.shape):
            b, length, skipped, _ = self.cut(p, span, n)
            begin.append(b)
            size.append(length)
            before.append(skipped)
        x = s.tensor if size == list(s.extents) else self.shrunk(s.tensor, before, size)
        extents: list[Any] = list(v.shape)
        if v.base is not v:
            x, begin, extents = self.onto_base(v, x, begin, size)
        return self.moved("place", x, [*begin, *extents], [0 if kind else self.bits(False if v.dtype.kind == "b" else 0, v.dtype)])

    def onto_base(self, v: View, x: Tensor, begin: list[Any], size: list[Any]) -> tuple[Tensor, list[Any], list[Any]]:
        """A tile at a place of a view as one at a place of the output, an axis of which is two where the view goes in steps: of steps, and within one."""
        first: list[Any] = []
        shape: list[Any] = []
        extents: list[Any] = []
        for a, n in zip(v.along, v.base.shape):
            p, span = (0, 1) if a.axis is None else (begin[a.axis], size[a.axis])
            shape.append(span)
            if a.step == 1:
                first.append(self.index("add", p, a.begin))
                extents.append(n)
                continue
            shape.append(1)
            first.extend((self.index("add", p, a.begin // a.step), a.begin % a.step))
            extents.extend((self.index("floordiv", self.index("add", n, a.step - 1), a.step), a.step))
        along = [a.axis for a in v.along if a.axis is not None]
        x = _ops.permute_dims(x, (*along, *(a for a in range(len(size)) if a not in along)))
        return self.moved("reshape", x, shape, []), first, extents

    def scattered(self, s: Store) -> Tensor:
        count: Any = 1
        for n in s.view.shape:
            count = self.index("mul", count, n)
        total = count if isinstance(count, int) else _dims.size_of_node(self.core, count.node)
        kind = ("set", "add", "mul", "max", "min").index(s.mode)
        zeros = _ops.broadcast_to(_ops.literal(False if s.view.dtype.kind == "b" else 0, s.view.dtype), (total,))
        return _ops.op("scatter", zeros, _ops.reshape(s.place[0], (-1,)), _ops.reshape(s.tensor, (-1,)), ints=[0, kind])
