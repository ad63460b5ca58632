"""Integers as expressions of what is not known while a kernel is compiled, and what can be shown of them.

Takes:    expressions: a number, the name of a symbol, or (operation, operand, ...); for each symbol its range, whose ends may be expressions of
          symbols that come before it; conditions that hold.
Gives:    a proof that a condition holds at all points, or a point at which it does not, or neither ("unknown").
Keeps:    a symbol in which everything is monotone is tried at the ends of its range alone; the others at every value, up to so many points.
          So a proof is one: nothing is sampled but to find a counterexample where there are too many points.
"""

from __future__ import annotations

from typing import Any, Iterator, Union

import numpy as np

Expr = Union[int, str, tuple[Any, ...]]
MOST_POINTS = 1 << 22
FAR = 1 << 40  # an integer that data decide lies within +-FAR; indices and sizes are far below it

_OPS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "select": np.where,
}  # fmt: skip
_PLAIN: dict[str, Any] = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max}


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


def rename(e: Expr, names: dict[str, str]) -> Expr:
    """The expression with other names of symbols."""
    if isinstance(e, str):
        return names.get(e, e)
    return (e[0], *(rename(x, names) for x in e[1:])) if isinstance(e, tuple) else e


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
        self.ranges: dict[str, list[tuple[Expr, Expr]]] = {}  # first and last value, both included; of several ranges the common part
        self.shown: dict[str, str] = {}  # how a symbol is called in a sentence
        self.conditions: list[Expr] = []

    def copy(self) -> Space:
        out = Space()
        out.ranges = {k: list(v) for k, v in self.ranges.items()}
        out.shown, out.conditions = self.shown, list(self.conditions)
        return out

    def symbol(self, name: str, first: Expr, last: Expr, shown: str = "") -> str:
        """A symbol; one that is there already stays."""
        if name not in self.ranges:
            self.ranges[name] = [(first, last)]
            self.shown[name] = shown
        return name

    def assume(self, e: Expr) -> None:
        """Says that a condition holds."""
        if isinstance(e, tuple) and e[0] == "and":
            for part in e[1:]:
                self.assume(part)
            return
        if isinstance(e, tuple) and e[0] == "not" and isinstance(e[1], tuple) and e[1][0] in ("lt", "le"):
            return self.assume(("le" if e[1][0] == "lt" else "lt", e[1][2], e[1][1]))
        if isinstance(e, tuple) and e[0] in ("lt", "le"):
            less, more = e[1], e[2]
            order = list(self.ranges)
            for s, other, low in ((less, more, False), (more, less, True)):
                if isinstance(s, str) and all(order.index(x) < order.index(s) for x in symbols(other) if x in self.ranges) and s not in symbols(other):
                    edge = other if e[0] == "le" else make("add", other, 1 if low else -1)
                    self.ranges[s].append((edge, FAR) if low else (-FAR, edge))
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
        parts = list(e[1:]) if isinstance(e, tuple) and e[0] in ("lt", "le") else [e]
        tried: list[Expr] = [("sub", parts[1], parts[0])] if len(parts) == 2 else [e]
        for sampled in (False, True):
            points = self._points(tried, sampled)
            if points is None:
                continue
            for at in points:
                holds = np.broadcast_to(evaluate(e, at), at[""].shape)
                if not holds.all():
                    first = int(np.argmin(holds))
                    return "refuted", self.completed({k: int(v[first]) for k, v in at.items() if k})
            if not sampled:
                return "shown", {}
        return "unknown", {}

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

    def sentence(self, at: dict[str, int]) -> str:
        """A point in words: program ids, then sizes and the rest."""
        programs = [v for k, v in at.items() if k.startswith("program")]
        rest = [f"{self.shown[k]} = {v}" for k, v in at.items() if not k.startswith(("program", "@")) and self.shown.get(k)]
        words = f"program ({', '.join(map(str, programs))}{',' if len(programs) == 1 else ''})"
        return words + (f" where {', '.join(rest)}" if rest else "")
