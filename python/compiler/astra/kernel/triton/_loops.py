"""Loops and branches of Triton's, in the node of the graph.

Takes:    statements; names of pointers, counters and tiles.
Gives:    loops of the kernel language, whose steps know where pointers are: what each step adds to one is found by walking a step of which nothing is kept.
Keeps:    where programs take different numbers of steps, all take the greatest, and what is too much is dropped. The steps of a loop over
          range(program_id, n, num_programs) become programs.
"""

from __future__ import annotations

import ast
from typing import Any, Callable

import numpy as np

from ... import _ops
from ..._kernel import _forms
from ..._kernel._forms import Expr
from ..._kernel._values import Index, Tile
from ..._kernel._expressions import NUMBERS, TESTED
from ..._tensor import call
from . import _pointers
from ._access import Access
from ._pointers import BlockPointer, Items, Pointer
from ._walk import I64


# Why a name is not known.
APART = "the steps of a loop over range(program_id, n, num_programs) are programs of their own, which hand nothing on"


class Spread(Exception):
    """A loop over range(program_id, n, num_programs) was found: each of its steps is to be a program."""

    def __init__(self, axis: int, total: int) -> None:
        super().__init__()
        self.axis, self.total = axis, total


class Callback(ast.stmt):
    """A statement that is a function of this module's."""

    def __init__(self, f: Callable[[], None]) -> None:
        super().__init__()
        self.f = f


def conjuncts_of(condition: Any) -> list[tuple[Any, int]]:
    """The parts of a condition as sums of terms and a number that are below 0."""
    parts = _pointers.conjuncts(condition.form) if isinstance(condition, Tile) and condition.form is not None else []
    found = []
    for c in parts:
        if isinstance(c, tuple) and c[0] in ("lt", "le"):
            terms, number = _pointers.less(_pointers.linear(c[1]), _pointers.linear(c[2]))
            found.append((terms, number - (c[0] == "le")))
    return found


class TritonGraph(Access):
    """Builds the node."""

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, Callback):
            return s.f()
        super().statement(s)

    def trips_of(self, first: Any, last: Any, step: int) -> tuple[Any, int | None]:
        """How many steps a range has; and, where programs differ in that, the greatest number."""
        span = self.index("sub", last, first) if step > 0 else self.index("sub", first, last)
        trips = self.index("floordiv", self.index("add", span, abs(step) - 1), abs(step))
        if isinstance(trips, int):
            return max(trips, 0), None
        form = _pointers.simple(trips.form, self.here(()))
        if any(not _forms.is_a(s, _forms.PROGRAM, _forms.COUNTER) for s in _forms.symbols(form)):
            return trips, None
        points = self.here(())._points([form], False)
        if points is None:
            return trips, None
        values = np.concatenate([np.atleast_1d(np.broadcast_to(_forms.evaluate(form, at), at[""].shape)) for at in points])
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        if low == high:
            return max(low, 0), None
        return trips, max(high, 0)

    def for_range(self, s: ast.For, first: Any, last: Any, step: int) -> None:
        assert isinstance(s.target, ast.Name)
        counter = s.target.id
        if isinstance(first, int) and isinstance(last, int) and any(isinstance(n, ast.Name) and isinstance(self.names.get(n.id), Items) for n in ast.walk(s)):
            for i in range(first, last, step):  # tuples are indexed by numbers
                self.names[counter] = i
                self.block(s.body)
            return
        spread = self.spread_of(first, last, step)
        trips, most = self.trips_of(first, last, step)
        count = trips if most is None else most
        if isinstance(count, int) and count == 0:
            return
        names = dict(self.names)
        changed = [n for n in self.changed(s.body) if n != counter]
        steps = self.stepped(s, first, last, step, changed, count)
        if self.trying:
            for n in changed:
                self.names[n] = self.advanced(names[n], count, steps[n]) if n in steps else self.forgotten(names[n])
            return
        gone = [n for n in changed if n in steps or not isinstance(names[n], (Tile, Index, *NUMBERS))]
        for n in gone:
            del self.names[n]
            self.lost[n] = "the steps of a loop do not all add the same to it"
        if spread is not None:
            program = Index(self.programs[spread].node, f"program{spread}")
            return self.spread_steps(s, program, [n for n in changed if n not in steps], {n: (names[n], d) for n, d in steps.items()})
        before: dict[str, Any] = {}
        guard: Expr | None = None
        limit = last.form if isinstance(last, Index) else last

        def enter() -> None:
            nonlocal guard
            at = self.names[counter]
            k = self.step_number(at, first, step)
            for n, d in steps.items():
                self.names[n] = self.advanced(names[n], k, d)
            if most is not None:
                guard = ("lt", self.form_of(at), limit) if step > 0 else ("lt", limit, self.form_of(at))
                before.clear()
                before.update({n: self.names[n] for n in changed if n not in gone})
                self.guards.append(guard)

        def leave() -> None:
            if most is not None and guard is not None:
                self.guards.pop()
                holds = self.condition(guard)
                for n, x in before.items():
                    new = self.names[n]
                    self.names[n] = x
                    old = self.carried(n, s)
                    self.names[n] = new
                    new = self.handed(n, old, s, "the loop")
                    self.names[n] = Tile(_ops.where(holds, new.tensor, old.tensor))
            for n in gone:
                self.names.pop(n, None)

        end = self.index("add", first, step * count) if isinstance(count, int) else last
        plain = ast.copy_location(ast.For(s.target, s.iter, [Callback(enter), *s.body, Callback(leave)], []), s)
        super().for_range(plain, first, end, step)
        for n, d in steps.items():
            self.names[n] = self.advanced(names[n], trips, d)

    def step_number(self, at: Any, first: Any, step: int) -> Any:
        terms, number = _pointers.less(_pointers.linear(self.form_of(at)), _pointers.linear(self.form_of(first)))
        return self.index_of(_forms.expression(({a: n // step for a, n in terms.items()}, number // step)))

    def spread_of(self, first: Any, last: Any, step: int) -> int | None:
        """The axis of the grid whose programs the steps of a loop become."""
        if self.looping or self.depth or self.trying or not isinstance(first, Index):
            return None
        for axis in range(len(self.grid)):
            if self.spread is None and first.form == f"program{axis}" and step == self.grid[axis] and isinstance(last, int) and last > step:
                raise Spread(axis, last)
            if self.spread == (axis, step) and first.form == ("mod", f"program{axis}", step):
                if last != self.grid[axis]:
                    raise self.error("a second loop over range(program_id, n, num_programs) has the n of the first one")
                return axis
        return None

    def spread_steps(self, s: ast.For, program: Index, forgotten: list[str], steps: dict[str, Any]) -> None:
        """A loop whose steps are programs of their own."""
        assert isinstance(s.target, ast.Name) and self.spread is not None
        forgotten = [n for n in forgotten if n != TESTED]
        for n in forgotten:
            self.names.pop(n, None)
        for n in (*forgotten, *steps, s.target.id):
            self.lost[n] = APART
        k = self.index_of(("floordiv", program.form, self.spread[1]))
        for n, (x, d) in steps.items():
            self.names[n] = self.advanced(x, k, d)
        self.names[s.target.id] = program
        names = dict(self.names)
        self.spreading = True
        self.block(s.body)
        self.spreading = False
        self.names = {**{n: x for n, x in names.items() if n not in steps and n != s.target.id}, TESTED: self.names[TESTED]}

    def while_(self, s: ast.While) -> None:
        """`while tile < n: ...; tile += num_programs` is such a loop too, and several of them, one behind the other."""
        axis, name = self.spread_while(s)
        if axis is None:
            return super().while_(s)
        self.names[name] = Index(self.programs[axis].node, f"program{axis}")
        condition = self.undecided(s.test)
        names = dict(self.names)
        if condition is not False:
            forgotten = [n for n in self.changed(s.body) if n not in (name, TESTED)]
            for n in forgotten:
                del self.names[n]
                self.lost[n] = APART
            guards = [condition.form] if isinstance(condition, Tile) and condition.form is not None else []
            self.guards += guards
            self.spreading = True
            try:
                self.block(s.body)
            finally:
                self.spreading = False
                del self.guards[len(self.guards) - len(guards) :]
            names = {**{n: x for n, x in names.items() if n not in forgotten}, TESTED: self.names[TESTED]}
        self.counters[name], self.lost[name] = names.pop(name), APART
        self.names = names

    def undecided(self, test: ast.expr) -> Any:
        """A condition with its form, known or not."""
        self.deciding = False
        try:
            return self.value(test)
        finally:
            self.deciding = True

    def spread_while(self, s: ast.While) -> tuple[int | None, str]:
        """The axis of the grid whose programs the steps of a loop become, and the name that counts them."""
        if self.looping or self.depth or self.trying or self.guards:
            return None, ""
        used = {n.id for n in ast.walk(s.test) if isinstance(n, ast.Name)}
        for last in s.body:
            if isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add) and isinstance(last.target, ast.Name) and last.target.id in used:
                break
        else:
            return None, ""
        name = last.target.id
        if sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for part in s.body for n in ast.walk(part)) != 1:
            return None, ""
        saved = dict(self.names)
        if name not in self.names and name in self.counters:
            self.names[name] = self.counters[name]
        at = self.names.get(name)
        try:
            for axis in range(len(self.grid)):
                width = self.grid[axis] if self.spread is None else self.spread[1]
                forms = [f"program{axis}"] if self.spread is None or name in self.counters else [("mod", f"program{axis}", width)]
                if not isinstance(at, Index) or at.form not in forms or self.spread is not None and self.spread[0] != axis:
                    continue
                if self.value(last.value) != width:
                    continue
                program = Index(self.programs[axis].node, f"program{axis}")
                self.names[name] = program
                condition = self.undecided(s.test)
                if isinstance(condition, Tile) and condition.form is not None and _forms.has(condition.form, _forms.READ, _forms.COMPUTED):
                    continue
                ends = [-number for c in conjuncts_of(condition) for terms, number in [c] if terms == {f"program{axis}": 1}]
                if not ends:
                    continue
                if not isinstance(width, int):
                    continue
                if self.spread is None or min(ends) > self.form_of(self.grid[axis]):  # type: ignore[operator]
                    raise Spread(axis, max(min(ends), width, 2))  # no program is lost, and the axis of the grid is there
                return axis, name
            return None, ""
        finally:
            self.names = saved

    # What the steps of a loop add to pointers and counters.

    def stepped(self, s: ast.For, first: Any, last: Any, step: int, changed: list[str], count: Any) -> dict[str, Any]:
        """The names to which each step of a loop adds the same: what it adds."""
        names, guards, stores, space = dict(self.names), list(self.guards), list(self.stores), self.space
        found: dict[str, Any] = {n: None for n in changed if self.steps_by(names[n], names[n]) is not None}
        if not found:
            return {}
        assert isinstance(s.target, ast.Name)
        self.fresh += 1
        symbol = _forms.Symbol.of(_forms.COUNTER, self.fresh)
        top = count if isinstance(count, int) else count.node.hi
        node = call(self.core.dim, f"{symbol}_{top}", 0, max(top - 1, 0))
        self.dims[node] = symbol
        self.loops[symbol] = _ops.literal(0, I64)
        self.trying += 1
        try:
            while True:
                self.space = space.copy()
                self.space.symbol(symbol, 0, max(top - 1, 0))
                k = Index(node, symbol) if node.constant is None else 0
                self.names = {**names, s.target.id: self.index("add", first, self.index("mul", step, k))}
                counter, limit = self.form_of(self.names[s.target.id]), self.form_of(last)
                self.space.assume(("lt", counter, limit) if step > 0 else ("lt", limit, counter))
                for n in changed:
                    self.names[n] = names[n] if found.get(n, 0) is None else self.advanced(names[n], k, found[n]) if n in found else self.forgotten(names[n])
                before = dict(self.names)
                self.block(s.body)
                after = {n: self.steps_by(before[n], self.names.get(n)) for n in found}
                kept = {n: d for n, d in after.items() if d is not None and not any(symbol in _forms.symbols(x) for x in d)}
                if kept == found:
                    return found
                found = {n: d for n, d in kept.items() if found[n] is None or found[n] == d}
                if not found:
                    return {}
        finally:
            self.trying -= 1
            self.loops.pop(symbol, None)
            self.names, self.guards, self.stores, self.space = names, guards, stores, space

    def forgotten(self, x: Any) -> Any:
        """A value of which nothing is known but its type."""
        if isinstance(x, Tile):
            return self.opaque(x.tensor)
        if isinstance(x, Index) or isinstance(x, int) and not isinstance(x, bool):
            return self.opaque(_ops.astype(self.tensor(x), I64))
        return x

    def steps_by(self, before: Any, after: Any) -> tuple[Expr, ...] | None:
        """What was added, as expressions without axes of a tile; None where that is not known."""
        if isinstance(before, Pointer) and isinstance(after, Pointer):
            return self.steps_by(before.offset, after.offset) if before.argument is after.argument else None
        if isinstance(before, BlockPointer) and isinstance(after, BlockPointer):
            each = [self.steps_by(x, y) for x, y in zip(before.offsets, after.offsets)]
            return None if any(d is None for d in each) else tuple(d[0] for d in each if d is not None)
        if isinstance(before, Tile) and (not isinstance(after, Tile) or before.shape != after.shape or before.dtype is not after.dtype):
            return None
        if isinstance(before, bool) or isinstance(before, Tile) and before.dtype.kind not in "iu":
            return None
        f, g = self.form(before), self.form(after)
        if f is None or g is None:
            return None
        space = self.here(before.shape if isinstance(before, Tile) else ())
        d = _forms.expression(_pointers.less(_pointers.linear(_pointers.simple(g, space)), _pointers.linear(_pointers.simple(f, space))))
        return None if _forms.has(d, _forms.AXIS, _forms.READ, _forms.COMPUTED) else (d,)

    def advanced(self, x: Any, k: Any, d: tuple[Expr, ...]) -> Any:
        """A pointer or an integer after k steps."""
        if isinstance(x, Pointer):
            return Pointer(x.argument, self.advanced(self.wide(x.offset), k, d))
        if isinstance(x, BlockPointer):
            return BlockPointer(x.base, x.shape, x.strides, tuple(self.advanced(o, k, (e,)) for o, e in zip(x.offsets, d)), x.block)
        by = self.index("mul", k, self.index_of(d[0]))
        if isinstance(x, Tile):
            return self.binary(ast.Add, x, by) if by != 0 else x
        total = _pointers.simple(("add", self.form_of(x), self.form_of(by)), self.here(()))
        return self.index_of(total)

    def branch(self, s: ast.If, condition: Tile) -> None:
        """An `if` on program ids, counters and sizes: both sides are walked, each where it holds."""
        form = condition.form
        if form is None or _forms.has(form, _forms.AXIS, _forms.READ, _forms.COMPUTED):
            return super().branch(s, condition)
        names = dict(self.names)
        sides = []
        for body, holds in ((s.body, form), (s.orelse, ("not", form))):
            self.names = dict(names)
            self.guards.append(holds)
            try:
                self.block(body)
            finally:
                self.guards.pop()
            sides.append(self.names)
        self.names = names
        for n in sorted(sides[0].keys() & sides[1].keys()):
            x, y = sides[0][n], sides[1][n]
            if x is y:
                continue
            if not isinstance(x, (Tile, Index, *NUMBERS)) or not isinstance(y, (Tile, Index, *NUMBERS)):
                self.names.pop(n, None)
                self.lost[n] = "a branch on program ids or sizes changes it, and it is no tile and no number"
                continue
            a, b = self.pair(x, y, "`if`")
            if a.shape != b.shape:
                raise self.error(f"'{n}' has the shape {a.shape} in one branch and {b.shape} in the other", s)
            self.names[n] = Tile(_ops.where(condition.tensor, a, b))
