"""Loads and stores of Triton's, in the node of the graph.

Takes:    pointers, masks, tiles.
Gives:    loads and stores of blocks where an access is one, else gathers and scatters.
Keeps:    every element that a mask lets in is shown to be one of the argument; what is neither shown nor refuted is refused. What happens in a step or a
          branch that not all programs take is cut to what is inside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import _ops
from ..._dims import Dim
from ..._errors import KernelError
from ..._kernel import _forms, _races
from ..._kernel._forms import Expr, Space
from ..._kernel._graph import GraphWalker, Store
from ..._kernel._values import Index, Tile, View
from ..._kernel._expressions import NUMBERS
from ..._tensor import Tensor
from . import _pointers
from ._pointers import Argument, Block, Pointer
from ._walk import F32, I32, I64, TritonWalker


class Access(TritonWalker, GraphWalker):
    """Loads and stores. spread: of a loop over range(program_id, n, num_programs), the axis of the grid and its extent in the call: in the node the
    grid has n programs there."""

    def __init__(self, source: Any, language: Any, graph: Any, grid: Any, spread: tuple[int, int] | None) -> None:
        self.guards: list[Expr] = []
        self.spreading = False  # whether this is a step of such a loop
        self.lost: dict[str, str] = {}
        self.trying = 0  # whether a loop is looked at, for what its steps do to pointers
        self.spread = spread
        self.meant: dict[int, tuple[Argument, Block | None]] = {}  # by the identity of a view
        self.places: list[tuple[Argument, bool, int, Any, tuple[int, ...]]] = []  # argument, stored, line, offset, shape
        self.views: list[View] = []  # those of `meant`
        self.deciding = True  # whether conditions that are known become bools of Python's
        self.counters: dict[str, Index] = {}  # counters of loops that became programs, between such loops
        super().__init__(source, language, graph, grid)

    def program_id(self, axis: int) -> Any:
        if self.spread is not None and self.spread[0] == axis:
            return self.index_of(("mod", f"program{axis}", self.spread[1]))
        return super().program_id(axis)

    def num_programs(self, axis: int) -> Any:
        return self.spread[1] if self.spread is not None and self.spread[0] == axis else super().num_programs(axis)

    def sized(self, x: Dim) -> Any:
        return self.extent(x)

    def index_of(self, e: Expr) -> Any:
        """An expression as an integer of the graph; None where it is none."""
        if isinstance(e, int):
            return int(e)
        if isinstance(e, str):
            node = next((n for n, s in self.dims.items() if s == e), None)
            return None if node is None else Index(node, e) if node.constant is None else int(node.constant)
        if e[0] not in ("add", "sub", "mul", "floordiv", "mod", "min", "max"):
            return None
        x, y = self.index_of(e[1]), self.index_of(e[2])
        return None if x is None or y is None else self.index(e[0], x, y)

    def decided(self, x: Any) -> Any:
        if self.deciding and isinstance(x, Tile) and x.shape == () and x.form is not None and not _forms.has(x.form, _forms.AXIS, _forms.READ, _forms.COMPUTED):
            space = self.here(())
            if space.holds(x.form):
                return True
            if space.holds(("not", x.form)):
                return False
        return x

    def plain(self, x: Any, y: Any) -> bool:
        f, g = self.form(x), self.form(y)
        shape = next((v.shape for v in (x, y) if isinstance(v, Tile)), ())
        space = self.here(shape)
        known = f is not None and g is not None and space.holds(("le", 0, f)) and space.holds(("lt", 0, g))
        if not known and not isinstance(x, Tile) and not isinstance(y, Tile):
            raise self.error("a quotient of indices that is not shown to be of numbers that are not negative: Triton rounds it to zero")
        return known

    def here(self, shape: tuple[int, ...], mask: Expr | None = None) -> Space:
        """What is known of a tile's elements at this place."""
        space = self.within(shape)
        for g in [*self.guards, *([] if mask is None else [mask])]:
            space.assume(g)
        return space

    # ---- access

    def looked_up(self, p: Pointer, m: Any) -> tuple[Expr | None, Expr | None, Block | None]:
        """The form of an offset, that of a mask (None where there is none), and the block that both are."""
        form, mask = self.form(p.offset), None if m is True else self.form(m)
        found = None
        if form is not None:
            found = _pointers.block(self.here(p.shape), form, p.shape, mask, p.argument.size, bool(self.guards))
        return form, mask, found

    def bounded(self, what: str, p: Pointer, form: Expr | None, mask: Expr | None) -> None:
        """Refuses elements that are not shown to be inside."""
        a = p.argument
        e: Any = form if form is not None else self.computed(I64, p.shape)
        space = self.here(p.shape, mask)
        for condition in (("le", 0, e), ("lt", e, a.size)):
            found, at = space.counterexample(condition)
            if found == "refuted":
                at = {k: n for k, n in at.items() if _forms.is_a(k, _forms.PROGRAM, _forms.AXIS) or k in _forms.symbols(e)}
                raise self.error(f"{space.sentence(at)}: {what} '{a.name}' is outside: element {int(_forms.evaluate(e, at))} of {a.size}; "
                                 "give a mask if that is meant")  # fmt: skip
            if found == "unknown":
                raise self.error(f"{what} '{a.name}' is not shown to stay within its {a.size} elements: give a mask of program ids, counters and sizes, "
                                 "or say with tl.assume what holds")  # fmt: skip

    def noted(self, p: Pointer, stored: bool) -> None:
        form = self.form(p.offset)
        place = None if form is None else _pointers.linear(_pointers.simple(form, self.here(p.shape)))
        self.places.append((p.argument, stored, getattr(self.node, "lineno", 0), place, p.shape))

    def read(self, p: Pointer, mask: Any, other: Any) -> Tile:
        a, shape = p.argument, p.shape
        m = self.masked(mask, shape, "a load")
        if self.trying:
            return Tile(_ops.broadcast_to(_ops.astype(_ops.literal(0, F32 if a.dtype.kind == "s" else I32), a.dtype), shape), self.computed(a.dtype, shape))
        self.noted(p, False)
        form, condition, found = self.looked_up(p, m)
        fill = other if isinstance(other, NUMBERS) else 0
        fill = float(fill) if a.dtype.kind == "f" else bool(fill) if a.dtype.kind == "b" else 0 if a.dtype.kind == "s" else int(fill)
        x = self.read_block(a, found, shape, fill) if found is not None else None
        if x is None:
            found = None
            self.bounded("the load from", p, form, condition)
            at = self.wide(p.offset)
            at = at if isinstance(at, Tile) else Tile(_ops.astype(self.tensor(at), I64), self.form(at))
            if m is not True:
                at = Tile(_ops.where(m.tensor, at.tensor, -1))
            assert a.view is not None
            x = self.gather(a.view, (at,), fill).tensor
        if m is not True and (isinstance(other, Tile) or found is not None and (not found.exact or found.guards)):
            rest = self.typed(other if isinstance(other, Tile) else fill, a.dtype)
            x = _ops.where(m.tensor, x, rest)
        return Tile(x, self.ranged(_forms.READ, a.dtype, shape, None, "a value that was read"))

    def read_block(self, a: Argument, b: Block, shape: tuple[int, ...], fill: Any) -> Tensor | None:
        starts = [self.index_of(e) for e in b.starts]
        if any(s is None for s in starts):
            return None
        assert a.view is not None
        x, total = a.view.tensor, int(np.prod(b.factors))
        if total > a.size:
            x = self.padded(x, [0], [total - a.size], 0)
        x = _ops.reshape(x, tuple(b.factors))
        if b.domain != b.factors:
            x = x[tuple(slice(0, n) for n in b.domain)]
        view = View(a.name, a.dtype, tuple(b.domain), x)
        x = GraphWalker.load(self, view, tuple(starts), tuple(b.spans), fill if b.masked else None).tensor
        kept = [axis for axis in b.axes if axis is not None]
        x = _ops.reshape(x, tuple(n for axis, n in zip(b.axes, b.spans) if axis is not None))
        x = _ops.permute_dims(x, tuple(kept.index(axis) for axis in sorted(kept, reverse=True))) if kept != sorted(kept, reverse=True) else x
        rank = len(shape)
        x = _ops.reshape(x, tuple(n if rank - 1 - i in kept else 1 for i, n in enumerate(shape)))
        return _ops.broadcast_to(x, shape)

    def write(self, p: Pointer, t: Tile, mask: Any, mode: str) -> None:
        a, shape = p.argument, p.shape
        m = self.masked(mask, shape, "a store")
        if self.trying:
            return
        self.noted(p, True)
        if a.stored not in ("", mode):
            raise self.error(f"'{a.name}' is stored into in two ways")
        a.stored = mode
        if mode != "set" and self.spread is not None and not self.spreading:
            raise self.error(f"tl.atomic_{mode} beside a loop over range(program_id, n, num_programs), whose steps are programs of their own: give it a kernel of its own")
        form, condition, found = self.looked_up(p, m)
        if mode == "set" and found is not None and found.exact and self.write_block(a, found, shape, t):
            return
        self.bounded("the store into", p, form, condition)
        at = self.wide(p.offset)
        at = at if isinstance(at, Tile) else Tile(_ops.astype(self.tensor(at), I64), self.form(at))
        space = self.here(shape)
        moving = [*map(_forms.program, range(len(self.grid))), *map(_forms.axis, range(len(shape)))]
        guard = [condition] if condition is not None else []
        where: Expr | None = form
        for g in [*self.guards, *guard]:
            where = None if where is None else ("select", g, where, -1)
        if mode == "set" and form is not None and where != form and _races.meet(space, [form], [1], [a.size], moving)[0] == "shown":
            where = form
        inside = None if m is True else m.tensor
        for g in self.guards:
            holds = self.condition(g)
            inside = holds if inside is None else _ops.bitwise_and(inside, holds)
        x = at.tensor if inside is None else _ops.where(inside, at.tensor, -1)
        view = View(a.name, a.dtype, (a.size,), None)
        self.meant[id(view)] = a, None
        flat = Tile(_ops.reshape(x, (-1,)) if not shape else x, where)
        if not shape:
            t = Tile(_ops.reshape(t.tensor, (1,)))
        self.scatter(view, (flat,), t, mode, True)
        self.views.append(view)

    def condition(self, e: Expr) -> Tensor:
        """What is known of the program, as a bool."""
        assert isinstance(e, tuple)
        if e[0] in ("and", "or"):
            return (_ops.bitwise_and if e[0] == "and" else _ops.bitwise_or)(self.condition(e[1]), self.condition(e[2]))
        if e[0] == "not":
            return _ops.bitwise_invert(self.condition(e[1]))
        x, y = (self.typed(self.index_of(part), I64) for part in e[1:])
        return {"lt": _ops.less, "le": _ops.less_equal, "eq": _ops.equal, "ne": _ops.not_equal}[e[0]](x, y)

    def chance(self, e: Expr) -> Any:
        """What is known of the program, as an index: 1 where it holds, 0 where not; None where it cannot be one."""
        if not isinstance(e, tuple):
            return int(bool(e))
        if e[0] == "and":
            x, y = self.chance(e[1]), self.chance(e[2])
            return None if x is None or y is None else self.index("min", x, y)
        if e[0] == "not":
            x = self.chance(e[1])
            return None if x is None else self.index("sub", 1, x)
        if e[0] not in ("lt", "le", "eq", "ne"):
            return None
        x, y = self.index_of(e[1]), self.index_of(e[2])
        if x is None or y is None:
            return None
        more = self.index("sub", y, x)
        if e[0] in ("lt", "le"):
            return self.index("min", self.index("max", self.index("add", more, int(e[0] == "le")), 0), 1)
        apart = self.index("min", self.index("max", more, self.index("sub", 0, more)), 1)
        return apart if e[0] == "ne" else self.index("sub", 1, apart)

    def separate(self, found: Any, space: Space, what: str, v: View) -> None:
        """An element is named by its number in the argument."""
        a, b = self.meant.get(id(v), (None, None))
        if a is not None and b is not None and found[0] == "refuted":
            number = sum(found[1][f"index{axis}"] * stride for axis, stride in enumerate(b.strides))
            found, v = (found[0], {**found[1], "index0": number}, found[2]), View(a.name, a.dtype, (a.size,), None)
        super().separate(found, space, what, v)

    def record(self, s: Store) -> None:
        (a, b), before = self.meant[id(s.view)], None
        if not self.looping:
            before = next((i for i, other in enumerate(self.stores) if self.meant[id(other.view)][0] is a), None)
        if before is None:
            return super().record(s)
        other = self.meant[id(self.stores[before].view)][1]
        try:
            if b is None or other is None or s.mode or other != replace(b, starts=other.starts):
                raise self.error("")
            self.stores[before] = self.unrolled([self.stores[before], s])
        except KernelError:
            raise self.error(f"'{s.view.name}' is stored into twice: a kernel has one store into each argument, or several (in a loop too) whose blocks follow each "
                             "other along one axis", s.node) from None  # fmt: skip

    def write_block(self, a: Argument, b: Block, shape: tuple[int, ...], t: Tile) -> bool:
        starts = [self.index_of(e) for e in b.starts]
        kept = [axis for axis in b.axes if axis is not None]
        if any(s is None for s in starts) or any(n > 1 and len(shape) - 1 - i not in kept for i, n in enumerate(shape)):
            return False
        drop = b.masked
        for g in [*self.guards, *b.guards]:
            holds = self.chance(g)
            if holds is None:
                return False
            low = self.space.hull(self.form_of(starts[0]))[0]
            if low <= -_forms.FAR:
                return False
            starts[0] = self.index("add", starts[0], self.index("mul", self.index("sub", 1, holds), b.domain[0] - min(low, 0)))  # behind the end
            drop = True
        x, rank = t.tensor, len(shape)
        x = _ops.reshape(x, tuple(n for i, n in enumerate(shape) if rank - 1 - i in kept))
        falling = sorted(kept, reverse=True)
        if kept != falling:
            x = _ops.permute_dims(x, tuple(falling.index(axis) for axis in kept))
        x = _ops.reshape(x, tuple(b.spans))
        view = View(a.name, a.dtype, tuple(b.domain), None)
        self.views.append(view)
        self.meant[id(view)] = a, b
        self.store(view, tuple(starts), Tile(x), drop)
        return True
