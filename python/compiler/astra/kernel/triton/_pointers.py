"""Pointers of Triton's, and the blocks of memory that they mean.

Takes:    an argument's elements in a row, as they lie in memory; an offset as an expression of program ids, counters and a tile's axes; a mask.
Gives:    a block of a view: the elements in a row cut into axes, where the block begins on each, and its domain, which is the mask or a part of
          it. None where an access is no block: then its elements are read or written one by one.
Keeps:    an element of the block is inside of its axes exactly where the mask lets it be, so the block and the pointers name the same elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any, Callable

from ..._kernel import _forms
from ..._kernel._forms import Expr, Space, Terms
from ..._kernel._values import Index, Tile, View
from ..._tensor import Tensor


class Argument:
    """A tensor that a kernel has a pointer to."""

    def __init__(self, name: str, dtype: Any, size: int, before: Tensor | None) -> None:
        self.name, self.dtype, self.size = name, dtype, size
        self.before = before  # its elements in a row; None of a spec, which has zeros
        self.view: View | None = None  # what the kernel reads
        self.loads: list[tuple[Any, ...]] = []  # what was read, before anything was stored
        self.stored = ""  # how: "set", "add", ...


class Pointer:
    """An argument and an offset in elements: a number, an index, or a tile of offsets."""

    __slots__ = ("argument", "offset")

    def __init__(self, argument: Argument, offset: Any) -> None:
        self.argument, self.offset = argument, offset

    @property
    def shape(self) -> tuple[int, ...]:
        return self.offset.shape if isinstance(self.offset, Tile) else ()


@dataclass
class BlockPointer:
    """tl.make_block_ptr and tl.make_tensor_descriptor: a tensor in memory, and a block of it."""

    base: Pointer
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    offsets: tuple[Any, ...]
    block: tuple[int, ...]


@dataclass
class Items:
    """A tuple that stands for a pointer: of tensors or of numbers, and the number of the one that is meant."""

    items: tuple[Any, ...]
    at: int


@dataclass
class Block:
    """A part of an argument's elements, in axes of these strides."""

    strides: list[int]  # descending; the last one is 1
    factors: list[int]  # the extents of the axes
    domain: list[int]  # how much of each the mask lets in
    starts: list[Expr]
    spans: list[int]
    axes: list[int | None]  # the axis of the tile, counted from its end
    masked: bool  # whether a part of the block may be outside of the domain
    exact: bool  # whether the domain is all that the mask says
    guards: list[Expr] = field(default_factory=list)  # what the mask says of the program alone


def linear(e: Expr) -> Terms:
    """An expression as a sum of numbers times atoms, and a number. c * (t mod n) + c * n * (t div n) is c * t."""
    found = _forms.linear(e)
    terms, rest = dict(found[0]), found[1]
    for atom in list(terms):
        if isinstance(atom, tuple) and atom[0] == "mod" and isinstance(atom[2], int):
            other: Expr = ("floordiv", atom[1], atom[2])
            if atom in terms and terms.get(other) == terms[atom] * atom[2]:
                c = terms.pop(atom)
                del terms[other]
                more, number = linear(atom[1])
                for a, n in more.items():
                    terms[a] = terms.get(a, 0) + c * n
                rest += c * number
    return {a: n for a, n in terms.items() if n}, rest


def less(a: Terms, b: Terms, times: int = 1) -> Terms:
    """a - times * b."""
    terms = dict(a[0])
    for atom, n in b[0].items():
        terms[atom] = terms.get(atom, 0) - times * n
    return {atom: n for atom, n in terms.items() if n}, a[1] - times * b[1]


def simple(e: Expr, space: Space) -> Expr:
    """The expression without remainders, choices, minima and maxima that change nothing."""
    if not isinstance(e, tuple):
        return e
    parts = [simple(x, space) for x in e[1:]]
    e = _forms.make(e[0], *parts)
    if not isinstance(e, tuple):
        return e
    if e[0] in ("mod", "floordiv") and isinstance(parts[1], int) and space.holds(("le", 0, parts[0])) and space.holds(("lt", parts[0], parts[1])):
        return parts[0] if e[0] == "mod" else 0
    if e[0] == "select":
        return parts[1] if space.holds(parts[0]) else parts[2] if space.holds(("not", parts[0])) else e
    if e[0] in ("min", "max"):
        for x, y in (parts, parts[::-1]):
            if space.holds(("le", x, y) if e[0] == "min" else ("le", y, x)):
                return x
        return e
    return _forms.expression(linear(e)) if e[0] in ("add", "sub", "mul") else e


Shares = Callable[[Space, int, list[int], list[Expr], int], list[int]]


def digits(space: Space, number: int, strides: list[int], firsts: list[Expr], unit: int) -> list[int]:
    """How many steps along each axis a number in an offset is, so that places begin inside of the axes: the digits of a number whose places are the
    strides. firsts: where places begin without it; unit: the stride of the axis in front of all, or 0."""
    out = [0] * len(strides)
    for i in reversed(range(len(strides))):
        steps, wider = number // strides[i], strides[i - 1] if i else unit
        low = space.hull(firsts[i])[0]
        low = 0 if low <= -_forms.FAR else low
        out[i] = (low + steps) % max(wider // strides[i], 1) - low if wider else steps
        number -= out[i] * strides[i]
    return out


def last(space: Space, number: int, strides: list[int], firsts: list[Expr], unit: int) -> list[int]:
    """The same, all along the last axis: what is before it or behind it, a mask leaves out."""
    return [0] * (len(strides) - 1) + [number if strides[-1] == 1 else 0]


def axes_in(e: Expr) -> set[str]:
    return {s for s in _forms.symbols(e) if _forms.is_a(s, _forms.AXIS)}


def conjuncts(e: Expr) -> list[Expr]:
    """The parts of a condition that all hold."""
    if isinstance(e, tuple) and e[0] == "and":
        return [c for part in e[1:] for c in conjuncts(part)]
    return [e]


def block(space: Space, form: Expr, shape: tuple[int, ...], mask: Expr | None, size: int, guarded: bool) -> Block | None:
    """The block that an access is. space has the axes of the tile, and what is known where the access happens."""
    form, mask = simple(form, space), None if mask is None else simple(mask, space)
    return _block(space, form, shape, mask, size, guarded, digits) or _block(space, form, shape, mask, size, guarded, last)


def _block(space: Space, form: Expr, shape: tuple[int, ...], mask: Expr | None, size: int, guarded: bool, shares: Shares) -> Block | None:
    """The same, where `shares` says which axes a number in the offset belongs to."""
    rest = linear(form)
    if any(not isinstance(a, str) and axes_in(a) or _forms.has(a, _forms.READ, _forms.COMPUTED) for a in rest[0]):
        return None
    extents = {_forms.axis(i): n for i, n in enumerate(reversed(shape)) if n > 1}
    coefficient = {a: rest[0].get(a, 0) for a in extents}
    rest = {a: n for a, n in rest[0].items() if not _forms.is_a(a, _forms.AXIS) or a in extents}, rest[1]  # axes of extent 1 are 0
    if any(c < 0 for c in coefficient.values()):
        return None
    order = sorted((a for a in extents if coefficient[a]), key=lambda a: -coefficient[a])
    # The mask: upper bounds of sums with one axis, lower ones, what is said of the program, what is no domain.
    upper: dict[str, tuple[dict[Expr, int], int]] = {}
    lower: list[Terms] = []
    guards: list[Expr] = []
    needed: set[str] = set()  # axes that the mask cuts
    exact = True
    for c in conjuncts(True if mask is None else mask):
        if isinstance(c, int):
            if not c:
                return None
            continue
        held = space.holds(c)  # it says nothing, but what the axes are
        if _forms.has(c, _forms.READ, _forms.COMPUTED):
            exact = exact and held
            continue
        assert isinstance(c, tuple)
        found = less(linear(c[1]), linear(c[2])) if c[0] in ("lt", "le") else None
        if not axes_in(c):
            if not held:
                guards.append(c)
            continue
        inside = [a for a in found[0] if axes_in(a)] if found is not None else []
        if found is None or len(inside) != 1 or inside[0] not in order or abs(found[0][inside[0]]) != 1:
            exact = exact and held
            continue
        axis = inside[0]
        assert isinstance(axis, str)
        terms, number = found[0], found[1] - (c[0] == "le")  # terms + number < 0
        if terms[axis] < 0:
            if not held:
                lower.append((terms, number))
        elif axis not in upper or upper[axis][0] == terms:
            upper[axis] = terms, min(-number, upper[axis][1]) if axis in upper else -number
            needed |= set() if held else {axis}
        else:
            exact = exact and held
    index: dict[str, Terms] = {}
    for axis in order:
        if axis in upper:
            index[axis] = upper[axis][0], 0
            rest = less(rest, index[axis], coefficient[axis])
    for axis in order:
        if axis not in index:
            c = coefficient[axis]
            terms = {a: n // c for a, n in rest[0].items() if n % c == 0 and not (axes_in(a) and a != axis)}
            index[axis] = terms, 0
            rest = less(rest, index[axis], c)
    if any(axes_in(a) for a in rest[0]):
        return None
    strides, starts, axes = [coefficient[a] for a in order], [index[a] for a in order], list[Any](order)
    if not order:
        strides, starts, axes, rest = [1], [rest], [None], ({}, 0)
    most = strides[0]
    unit = gcd(*(n for n in rest[0].values() if n % most == 0))
    left = rest[1]
    firsts = [_forms.expression(({a: c for a, c in terms.items() if a != axis}, number)) for axis, (terms, number) in zip(order, starts)]
    for i, (axis, by) in enumerate(zip(order, shares(space, left, strides, firsts, unit) if order else [])):
        starts[i] = starts[i][0], starts[i][1] + by
        if axis in upper:
            upper[axis] = upper[axis][0], upper[axis][1] + by
        left -= by * coefficient[axis]
    number, rest = left // unit * unit if unit else 0, (rest[0], left)
    outer = {a: n for a, n in rest[0].items() if n % most == 0}, number
    inner = less(rest, outer)
    if outer[0] or outer[1]:
        unit = gcd(*outer[0].values(), outer[1])
        strides, axes = [unit, *strides], [None, *axes]
        starts = [({a: n // unit for a, n in outer[0].items()}, outer[1] // unit), *starts]
    if strides[-1] != 1:
        strides, axes, starts = [*strides, 1], [*axes, None], [*starts, inner]
    elif inner[0] or inner[1]:
        return None
    if any(a % b or a == b for a, b in zip(strides, strides[1:])):
        return None
    factors = [-(-size // strides[0]), *(a // b for a, b in zip(strides, strides[1:]))]
    domain, places, spans, masked = [], [], [], False
    for axis, terms_, n in zip(axes, starts, factors):
        first = _forms.expression(({a: c for a, c in terms_[0].items() if a != axis}, terms_[1]))
        span = extents[axis] if axis is not None else 1
        if axis in needed:
            if n < upper[axis][1] or upper[axis][1] < 1:
                return None
            n, masked = upper[axis][1], True
        elif not space.holds(("le", _forms.make("add", first, span), n)):
            return None
        bounded = False  # from below, by the mask
        for t in lower:
            if axis in t[0]:
                both = less(terms_, (t[0], 0), -1)
                if both[0] or both[1] + t[1] + 1:
                    exact = False
                else:
                    bounded = True
        if not space.holds(("le", 0, first)):
            if not bounded:
                return None
            masked = True
        domain.append(n)
        places.append(first)
        spans.append(span)
    if sum((n - 1) * s for n, s in zip(domain, strides)) >= size:
        return None
    numbered = [None if a is None else int(a[1:]) for a in axes]
    return Block(strides, factors, domain, places, spans, numbered, masked or guarded, exact, guards)


def offsets(x: Any) -> bool:
    """Whether a value can be added to a pointer."""
    return isinstance(x, (int, Index)) and not isinstance(x, bool) or isinstance(x, Tile) and x.dtype.kind in "iu"
