"""Integers as expressions of what is not known while a kernel is compiled, and what can be shown of them.

Takes:    expressions: a number, the name of a symbol, or (operation, operand, ...); for each symbol its range, whose ends may be expressions of
          symbols that come before it; conditions that hold.
Gives:    a proof that a condition holds at all points, or a point at which it does not, or neither ("unknown").
Keeps:    a symbol in which everything is monotone is tried at the ends of its range alone; the others at every value, up to so many points. Where these
          are too many, intervals and the two sides of each choice are looked at. So a proof is one: nothing is sampled but to find a counterexample.
          A counterexample is possible: one in which a value would stand that was computed, of which no more than its bounds is known, is none.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Union

import numpy as np

Expr = Union[int, str, tuple[Any, ...]]
MOST_POINTS = 1 << 22
FAR = 1 << 40  # an integer that data decide lies within +-FAR; indices and sizes are far below it

# What a symbol stands for: an axis of a tile, a program id, the counter of a loop, an integer that was read, one that was computed from what is no
# expression (argmax, what a loop carries); a size has no kind.
AXIS, PROGRAM, COUNTER, READ, COMPUTED = "@", "program", "loop", "read", "some"
MOST_CHOICES = 6  # choices, minima and maxima of which both sides are looked at

_OPS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "select": np.where, "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor, "abs": np.abs,
}  # fmt: skip
_PLAIN: dict[str, Any] = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max}


class Symbol(str):
    """The name of a symbol, which knows what it stands for."""

    kind = ""

    @staticmethod
    def of(kind: str, number: int) -> Symbol:
        s = Symbol(f"{kind}{number}")
        s.kind = kind
        return s


def axis(number: int) -> Symbol:
    """An axis of a tile; the last one has number 0."""
    return Symbol.of(AXIS, number)


def program(number: int) -> Symbol:
    """The id of a program along an axis of the grid."""
    return Symbol.of(PROGRAM, number)


def is_a(s: str, *kinds: str) -> bool:
    """Whether a symbol stands for one of these."""
    return isinstance(s, Symbol) and s.kind in kinds


def has(e: Expr, *kinds: str) -> bool:
    """Whether one of these stands in an expression."""
    return any(is_a(s, *kinds) for s in symbols(e))


def make(op: str, *parts: Expr) -> Expr:
    """An expression, computed where its operands are numbers."""
    if all(isinstance(p, int) for p in parts):
        if op in _PLAIN:
            return int(_PLAIN[op](*parts))
        if op in ("floordiv", "mod") and isinstance(parts[1], int) and parts[1] > 0:
            return parts[0] // parts[1] if op == "floordiv" else parts[0] % parts[1]  # type: ignore[operator]
    if op == "add" and 0 in parts:
        return parts[0] if parts[1] == 0 else parts[1]
    if op == "mul" and (1 in parts) and len(parts) == 2:
        return parts[0] if parts[1] == 1 else parts[1]
    return (op, *parts)


def symbols(e: Expr) -> set[str]:
    """The symbols of an expression."""
    out: set[str] = set()
    stack = [e]
    while stack:
        x = stack.pop()
        if isinstance(x, str):
            out.add(x)
        elif isinstance(x, tuple):
            stack.extend(x[1:])
    return out


def substituted(e: Expr, names: dict[str, Any]) -> Expr:
    """The expression with others in place of symbols."""
    if isinstance(e, str):
        return names.get(e, e)
    return make(e[0], *(substituted(x, names) for x in e[1:])) if isinstance(e, tuple) else e


def rename(e: Expr, names: dict[str, str]) -> Expr:
    """The expression with other names of symbols."""
    return substituted(e, names)


def replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with another part in place of one."""
    if e == old:
        return new
    return make(e[0], *(replaced(x, old, new) for x in e[1:])) if isinstance(e, tuple) else e


Terms = tuple[dict[Expr, int], int]


def linear(e: Expr) -> Terms:
    """An expression as a sum of numbers times atoms, and a number."""
    if isinstance(e, int):
        return {}, e
    if isinstance(e, tuple) and e[0] in ("add", "sub"):
        a, b = linear(e[1]), linear(e[2])
        sign = 1 if e[0] == "add" else -1
        terms = dict(a[0])
        for atom, c in b[0].items():
            terms[atom] = terms.get(atom, 0) + sign * c
        return {k: c for k, c in terms.items() if c}, a[1] + sign * b[1]
    if isinstance(e, tuple) and e[0] == "mul":
        for x, y in ((e[1], e[2]), (e[2], e[1])):
            if isinstance(y, int):
                a = linear(x)
                return {k: c * y for k, c in a[0].items() if c * y}, a[1] * y
    return {e: 1}, 0


def expression(t: Terms) -> Expr:
    """The sum again."""
    out: Expr = 0
    for atom, n in t[0].items():
        out = make("add", out, make("mul", atom, n))
    return make("add", out, t[1])


def choice(e: Expr) -> tuple[Any, ...] | None:
    """A `select` in an expression, an inner one first."""
    if not isinstance(e, tuple):
        return None
    return next((found for x in e[1:] if (found := choice(x)) is not None), e if e[0] == "select" else None)


def evaluate(e: Expr, at: dict[str, Any]) -> Any:
    """The value of an expression where the symbols have these values, numbers or arrays."""
    if isinstance(e, str):
        return at[e]
    if not isinstance(e, tuple):
        return e
    parts = [evaluate(x, at) for x in e[1:]]
    if e[0] in ("floordiv", "mod"):
        parts[1] = np.maximum(parts[1], 1)
    return _OPS[e[0]](*parts)


def direction(e: Expr, s: str) -> int | None:
    """How an expression goes with a symbol: 0 not at all, 1 up, -1 down, None either way."""
    if isinstance(e, str):
        return int(e == s)
    if not isinstance(e, tuple):
        return 0
    op, parts = e[0], [direction(x, s) for x in e[1:]]
    if not any(p != 0 for p in parts):
        return 0
    if None in parts:
        return None
    if op in ("add", "min", "max", "and", "or"):
        signs = {p for p in parts if p}
        return signs.pop() if len(signs) == 1 else None
    if op in ("sub", "le", "lt"):
        a, b = parts[0], -parts[1]  # type: ignore[operator]
        both = {x for x in (a, b) if x}
        up = both.pop() if len(both) == 1 else None
        return up if op == "sub" or up is None else -up
    if op == "not":
        return -parts[0]  # type: ignore[operator]
    if op == "mul":
        for i in (0, 1):
            if parts[1 - i] == 0 and isinstance(e[2 - i], int):
                return parts[i] * ((e[2 - i] > 0) - (e[2 - i] < 0))
    if op == "floordiv" and parts[1] == 0 and isinstance(e[2], int) and e[2] > 0:
        return parts[0]
    return None


class Space:
    """Symbols with their ranges, in order, and conditions."""

    def __init__(self) -> None:
        self.ranges: dict[str, tuple[tuple[Expr, Expr], ...]] = {}  # first and last value, both included; of several ranges the common part
        self.shown: dict[str, str] = {}  # how a symbol is called in a sentence
        self.conditions: list[Expr] = []
        self.means: dict[str, Expr] = {}  # of a bool that was computed: what holds where it is true
        self.unheard: set[str] = set()  # symbols of conditions that hold and are not among the others

    def copy(self) -> Space:
        out = Space()
        out.ranges, out.shown, out.means = dict(self.ranges), dict(self.shown), dict(self.means)
        out.conditions, out.unheard = list(self.conditions), set(self.unheard)
        return out

    def symbol(self, name: str, first: Expr, last: Expr, shown: str = "") -> str:
        """A symbol; one that is there already stays."""
        if name not in self.ranges:
            self.ranges[name] = ((first, last),)
            self.shown[name] = shown
        return name

    def bound(self, s: str, first: Expr, last: Expr) -> None:
        self.ranges[s] = (*self.ranges[s], (first, last))

    def assume(self, e: Expr) -> None:
        """Says that a condition holds."""
        if isinstance(e, str):
            self.bound(e, 1, 1)
            if e in self.means:
                self.assume(self.means[e])
            return
        if not isinstance(e, tuple):
            return
        if e[0] == "and":
            for part in e[1:]:
                self.assume(part)
            return
        if e[0] == "not":
            inner = e[1]
            if isinstance(inner, str):
                return self.bound(inner, 0, 0)
            if isinstance(inner, tuple) and inner[0] in ("lt", "le"):
                return self.assume(("le" if inner[0] == "lt" else "lt", inner[2], inner[1]))
            if isinstance(inner, tuple) and inner[0] == "not":
                return self.assume(inner[1])
            if isinstance(inner, tuple) and inner[0] == "or":
                return self.assume(("and", *(("not", part) for part in inner[1:])))
        if e[0] in ("lt", "le", "eq"):
            less, more = e[1], e[2]
            order = list(self.ranges)
            for s, other, low in ((less, more, False), (more, less, True)):
                if isinstance(s, str) and all(order.index(x) < order.index(s) for x in symbols(other) if x in self.ranges) and s not in symbols(other):
                    edge = other if e[0] != "lt" else make("add", other, 1 if low else -1)
                    self.bound(s, edge if low or e[0] == "eq" else -FAR, edge if not low or e[0] == "eq" else FAR)
                    return
        self.conditions.append(e)

    def needed(self, es: list[Expr], also: set[str] | None = None) -> list[str]:
        """The symbols that expressions and conditions on them depend on, in order."""
        wanted: set[str] = set(also or ()).union(*map(symbols, es))
        while True:
            more = set(wanted)
            for c in self.conditions:
                if symbols(c) & wanted:
                    more |= symbols(c)
            for s in wanted:
                for pair in self.ranges[s]:
                    more |= symbols(pair[0]) | symbols(pair[1])
            if more == wanted:
                return [s for s in self.ranges if s in wanted]
            wanted = more

    def _points(self, es: list[Expr], sampled: bool) -> Iterator[dict[str, Any]] | None:
        """The points at which conditions must be tried, as arrays. sampled: some, where they are too many."""
        names = self.needed(es)
        conditions = [c for c in self.conditions if symbols(c) & set(names)]
        ends = [x for s in names for pair in self.ranges[s] for x in pair]
        columns: dict[str, Any] = {}
        count = 1
        valid = np.ones(1, bool)
        for s in names:
            low = np.full(count, -FAR, np.int64)
            high = np.full(count, FAR, np.int64)
            for first, last in self.ranges[s]:
                low, high = np.maximum(low, evaluate(first, columns)), np.minimum(high, evaluate(last, columns))
            monotone = all(direction(e, s) is not None for e in es) and not any(s in symbols(c) for c in conditions) and not any(s in symbols(e) for e in ends)
            if monotone:
                values, owner = np.concatenate([low, high]), np.concatenate([np.arange(count)] * 2)
                keep = np.concatenate([low <= high] * 2)
            else:
                lengths = np.maximum(high - low + 1, 0)
                if sampled:
                    lengths = np.minimum(lengths, max(8, 20_000 // max(count, 1)))
                total = int(lengths.sum())
                if total > MOST_POINTS:
                    return None
                owner = np.repeat(np.arange(count), lengths)
                values = low[owner] + np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
                if sampled and total:  # the last values too
                    tail = np.minimum(lengths, 4)
                    more = np.repeat(np.arange(count), tail)
                    offset = np.arange(int(tail.sum())) - np.repeat(np.cumsum(tail) - tail, tail)
                    owner, values = np.concatenate([owner, more]), np.concatenate([values, high[more] - offset])
                keep = np.ones(len(values), bool)
            if len(values) > MOST_POINTS:
                return None
            owner, values = owner[keep], values[keep]
            columns = {k: v[owner] for k, v in columns.items()}
            columns[s] = values
            valid, count = valid[owner], len(values)
        for c in conditions:
            valid = valid & evaluate(c, columns)
        return iter([{k: v[valid] for k, v in columns.items()} | {"": np.zeros(int(valid.sum()), bool)}])

    def counterexample(self, e: Expr) -> tuple[str, dict[str, int]]:
        """("shown", {}) where the condition holds at all points; ("refuted", a point); ("unknown", {})."""
        if not isinstance(e, (tuple, str)):
            return ("shown", {}) if e else ("refuted", self._some())
        found, at = self._tried(e, [], 0)
        wanted = set(self.needed([e]))
        if found == "refuted" and (any(is_a(s, COMPUTED) or s in self.unheard for s in wanted) or not self.possible(at)):
            return "unknown", {}
        return found, {s: n for s, n in at.items() if s in wanted or not is_a(s, READ)}

    def _tried(self, e: Expr, where: list[Expr], depth: int) -> tuple[str, dict[str, int]]:
        """where: what this space assumes beside what is known of the program; a point must fulfil that too."""
        parts = list(e[1:]) if isinstance(e, tuple) and e[0] in ("lt", "le") else [e]
        tried: list[Expr] = [("sub", parts[1], parts[0])] if len(parts) == 2 else [e]
        found = self._at_points(e, tried, False)
        if found is not None and found[0] == "refuted" and where:
            return self._at_points(e, [*tried, *where], False) or self._at_points(e, [*tried, *where], True) or ("unknown", {})
        if found is not None:
            return found
        if len(parts) == 2 and self.never_negative(("sub", tried[0], 1) if isinstance(e, tuple) and e[0] == "lt" else tried[0]):
            return "shown", {}
        which = choice(e) if depth < MOST_CHOICES else None
        if which is not None:
            both = []
            for holds, value in ((which[1], which[2]), (("not", which[1]), which[3])):
                side = self.copy()
                side.assume(holds)
                both.append(side._tried(replaced(e, which, value), [*where, which[1]], depth + 1))
            refuted = [b for b in both if b[0] == "refuted"]
            return refuted[0] if refuted else ("shown", {}) if all(b[0] == "shown" for b in both) else ("unknown", {})
        return self._at_points(e, [*tried, *where], True) or ("unknown", {})

    def _at_points(self, e: Expr, tried: list[Expr], sampled: bool) -> tuple[str, dict[str, int]] | None:
        """What is found where all points are tried, or some; None where they are too many, or some show nothing."""
        for at in self._points(tried, sampled) or ():
            holds = np.broadcast_to(evaluate(e, at), at[""].shape)
            if not holds.all():
                first = int(np.argmin(holds))
                return "refuted", self.completed({k: int(v[first]) for k, v in at.items() if k})
            return None if sampled else ("shown", {})
        return None

    def never_negative(self, e: Expr, depth: int = 0) -> bool:
        """Whether intervals show that an expression is 0 at least, with each side of a minimum or a maximum for itself."""
        terms, number = linear(e)
        if number + sum(c * self.hull(atom)[c < 0] for atom, c in terms.items()) >= 0:
            return True
        if depth and (self._at_points(("le", 0, e), [e], False) or ("",))[0] == "shown":
            return True
        for atom, c in terms.items() if depth < MOST_CHOICES else ():
            if isinstance(atom, tuple) and atom[0] in ("min", "max"):
                rest = {a: n for a, n in terms.items() if a != atom}
                sides = (self.never_negative(("add", expression((rest, number)), make("mul", x, c)), depth + 1) for x in atom[1:])
                return all(sides) if (atom[0] == "min") == (c > 0) else any(sides)
        return False

    def hull(self, e: Expr) -> tuple[int, int]:
        """Bounds of an expression, each symbol by itself."""
        if isinstance(e, str):
            lows, highs = [-FAR], [FAR]
            for first, last in self.ranges.get(e, ()):
                lows.append(self.hull(first)[0])
                highs.append(self.hull(last)[1])
            return max(lows), min(highs)
        if not isinstance(e, tuple):
            return int(e), int(e)
        op, parts = e[0], [self.hull(x) for x in e[1:]]
        if op == "select":
            return min(parts[1][0], parts[2][0]), max(parts[1][1], parts[2][1])
        if op in ("lt", "le", "eq", "ne", "and", "or", "not"):
            return 0, 1
        if op == "abs":
            (a, b), = parts
            return max(a, -b, 0), max(-a, b)
        (a, b), (c, d) = parts
        if op == "add":
            return a + c, b + d
        if op == "sub":
            return a - d, b - c
        if op == "min":
            return min(a, c), min(b, d)
        if op == "max":
            return max(a, c), max(b, d)
        if op == "mod":
            return (0, max(d, 1) - 1) if not 0 <= a <= b < c else (a, b)
        if op in ("bitand", "bitor", "bitxor"):
            signed = -1 << max(abs(x).bit_length() for x in (a, b, c, d))
            if op == "bitand":
                positive = [high for low, high in parts if low >= 0]
                return (0, min(positive)) if positive else (signed, -1 - signed)
            return (0 if op == "bitxor" else max(a, c), (1 << max(b, d).bit_length()) - 1) if a >= 0 and c >= 0 else (signed, -1 - signed)
        corners = [x * y if op == "mul" else x // max(y, 1) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)

    def single(self, s: str) -> bool:
        """Whether a symbol has one value at most."""
        low, high = self.hull(s)
        return low >= high

    def holds(self, e: Expr) -> bool:
        """Whether a condition is shown to hold everywhere."""
        return self.counterexample(e)[0] == "shown"

    def _some(self) -> dict[str, int]:
        return self.completed({})

    def completed(self, at: dict[str, int]) -> dict[str, int]:
        """A point with values of the symbols that do not matter."""
        out: dict[str, int] = {}
        for s in self.ranges:
            out[s] = at[s] if s in at else max((int(evaluate(first, out)) for first, _ in self.ranges[s]), default=0)
        return out

    def possible(self, at: dict[str, int]) -> bool:
        """Whether a point is within all ranges."""
        return all(evaluate(first, at) <= at[s] <= evaluate(last, at) for s, pairs in self.ranges.items() for first, last in pairs)

    def sentence(self, at: dict[str, int]) -> str:
        """A point in words: program ids, then sizes and the rest."""
        programs = [v for k, v in at.items() if is_a(k, PROGRAM)]
        rest = [f"{self.shown[k]} = {v}" for k, v in at.items() if not is_a(k, PROGRAM, AXIS) and self.shown.get(k)]
        words = f"program ({', '.join(map(str, programs))}{',' if len(programs) == 1 else ''})"
        return words + (f" where {', '.join(rest)}" if rest else "")
