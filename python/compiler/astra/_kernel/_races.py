"""Whether two programs of a kernel write one element.

Takes:    where programs write: blocks that begin at expressions of program ids, or elements at expressions of program ids and of the axes of a tile.
Gives:    "shown" that no two meet; "refuted" with two points that do; "unknown".
Keeps:    a proof is one of two: the places determine the program ids (each index c * id + ... with |c| not below the block, quotients with
          remainders, digits); or all programs for all sizes were looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _forms
from ._forms import Expr, Space

MOST_PROGRAMS = 1 << 21
_SAMPLED = 4096
_NEIGHBOURS = 64  # of regions in one cell that are compared
_WHICH = "which"

Found = tuple[str, dict[str, int], dict[str, int]]


def _determined(space: Space, starts: list[Expr], extents: list[Expr], wanted: set[str]) -> bool:
    """Whether blocks that meet are those of the same values of the symbols."""
    sums = [_forms.linear(s) for s in starts]
    known: set[Expr] = set()

    def fixed(e: Expr) -> bool:
        return e in known or not isinstance(e, (str, tuple)) or e not in wanted and isinstance(e, str) or isinstance(e, tuple) and all(map(fixed, e[1:]))

    while True:
        before = len(known)
        for found, extent in zip(sums, extents):
            if found is None or not isinstance(extent, int):
                continue
            open_ = sorted(((abs(c), atom) for atom, c in found[0].items() if not fixed(atom)), key=lambda p: p[0])
            spread = extent
            for c, atom in open_:
                if c < spread:
                    break
                low, high = space.hull(atom)
                spread += c * (high - low)
            else:
                known.update(atom for _, atom in open_)
        quotients = {(e[1], e[2]) for e in known if isinstance(e, tuple) and e[0] == "floordiv"}
        remainders = {(e[1], e[2]) for e in known if isinstance(e, tuple) and e[0] == "mod"}
        for x, width in quotients & remainders:
            inside = _forms.linear(x)
            if fixed(width) and inside is not None:
                known.add(x)
                left = [atom for atom in inside[0] if not fixed(atom)]
                if len(left) == 1:
                    known.add(left[0])
        if all(fixed(s) for s in wanted):
            return True
        if len(known) == before:
            return False


def _columns(space: Space, names: list[str], sampled: bool) -> dict[str, Any] | None:
    """All values of symbols together that fulfil the conditions, or some."""
    columns: dict[str, Any] = {}
    count = 1
    for s in names:
        low, high = np.full(count, -_forms.FAR, np.int64), np.full(count, _forms.FAR, np.int64)
        for first, last in space.ranges[s]:
            low, high = np.maximum(low, _forms.evaluate(first, columns)), np.minimum(high, _forms.evaluate(last, columns))
        lengths = np.maximum(high - low + 1, 0)
        if sampled:
            lengths = np.minimum(lengths, max(3, _SAMPLED // count))
        total = int(lengths.sum())
        if total > MOST_PROGRAMS:
            return None
        owner = np.repeat(np.arange(count), lengths)
        values = low[owner] + np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = {k: v[owner] for k, v in columns.items()}
        columns[s], count = values, total
    valid = np.ones(count, bool)
    for c in space.conditions:
        if _forms.symbols(c) <= set(names):
            valid &= _forms.evaluate(c, columns)
    return {k: v[valid] for k, v in columns.items()} | {"": np.zeros(int(valid.sum()), np.int64)}


def _meeting(sizes: list[Any], writers: list[Any], low: list[Any], high: list[Any], widths: list[int]) -> tuple[int, int] | None:
    """Two of the regions low .. high - 1 of equal sizes (of the dims) and of different writers that meet. Each is entered into the cells, of the
    greatest width, that it touches; those of one cell are compared."""
    count = len(low[0]) if low else 0
    if count == 0:
        return None
    keys, owners = [], []
    for corner in range(1 << len(low)):
        parts = list(sizes)
        for a, width in enumerate(widths):
            first, last = low[a] // width, (high[a] - 1) // width
            parts.append(last if corner >> a & 1 else first)
        keys.append(np.stack(parts, axis=1))
        owners.append(np.arange(count))
    cells, owner = np.concatenate(keys), np.concatenate(owners)
    _, number = np.unique(cells, axis=0, return_inverse=True)
    order = np.lexsort((owner, number.reshape(-1)))
    number, owner = number.reshape(-1)[order], owner[order]
    for step in range(1, min(_NEIGHBOURS, len(owner))):
        same = (number[step:] == number[:-step]) & (owner[step:] != owner[:-step])
        if not (number[step:] == number[:-step]).any():
            return None
        p, q = owner[:-step][same], owner[step:][same]
        meets = np.zeros(len(p), bool)
        for w in writers:
            meets |= w[p] != w[q]
        for a in range(len(low)):
            meets &= (low[a][p] < high[a][q]) & (low[a][q] < high[a][p])
        if meets.any():
            i = int(np.argmax(meets))
            return int(p[i]), int(q[i])
    return None


def pair(space: Space, places: list[list[Expr]], extents: list[list[Expr]], view: list[Expr], moving: list[str]) -> Found:
    """Whether a block that one program writes and another block that another program writes meet."""
    distances = [_forms.linear(("sub", q, p)) for p, q in zip(*places)]
    starts: list[Expr] = []
    spans: list[Expr] = []
    for p, distance, m, n in zip(places[0], distances, *extents):
        if distance is None or distance[0] or not isinstance(m, int) or not isinstance(n, int):
            break
        starts.append(_forms.make("add", p, min(0, distance[1])))
        spans.append(max(m, distance[1] + n) - min(0, distance[1]))
    wanted = {s for s in moving if not space.single(s)}
    if not wanted or len(starts) == len(distances) and _determined(space, starts, spans, wanted):
        return "shown", {}, {}
    both = space.copy()
    both.symbol(_WHICH, 0, 1)
    chosen: list[list[Expr]] = [[("select", ("eq", _WHICH, 0), a, b) for a, b in zip(*parts)] for parts in (places, extents)]
    return meet(both, chosen[0], chosen[1], view, [*moving, _WHICH])


def apart(places: list[list[Expr]], extents: list[list[Expr]]) -> bool:
    """Whether the two blocks of any one program are apart by a known distance."""
    for p, q, m, n in zip(*places, *extents):
        distance = _forms.linear(("sub", q, p))
        if distance is not None and not distance[0] and isinstance(m, int) and isinstance(n, int) and (distance[1] >= m or -distance[1] >= n):
            return True
    return False


def meet(space: Space, starts: list[Expr], extents: list[Expr], view: list[Expr], moving: list[str]) -> Found:
    """Blocks of the view of these extents, cut where the view ends. moving: the symbols whose values tell writers apart: program ids, and the axes
    of a tile whose elements are written one by one; beside them which of two blocks it is, which alone tells nobody apart."""
    wanted = {s for s in moving if not space.single(s)}
    if not wanted or _WHICH not in moving and _determined(space, starts, extents, wanted):
        return "shown", {}, {}
    names = space.needed([*starts, *extents, *view], wanted)
    if any(_forms.is_a(n, _forms.READ, _forms.COMPUTED, _forms.COUNTER) for n in names):
        return "unknown", {}, {}
    fixed = [n for n in names if n not in moving]
    for sampled in (True, False):
        columns = _columns(space, names, sampled)
        if columns is None:
            return "unknown", {}, {}
        shape = columns[""].shape
        at = [np.broadcast_to(_forms.evaluate(s, columns), shape) for s in starts]
        ends = [np.broadcast_to(_forms.evaluate(n, columns), shape) for n in view]
        spans = [np.broadcast_to(_forms.evaluate(n, columns), shape) for n in extents]
        low = [np.maximum(s, 0) for s in at]
        high = [np.minimum(s + e, n) for s, e, n in zip(at, spans, ends)]
        there = np.ones(shape, bool)
        for a, b in zip(low, high):
            there &= a < b
        kept = np.flatnonzero(there)
        widths = [max(1, int(s.max(initial=1))) for s in spans]
        writers = [columns[n][kept] for n in moving if n in columns and n != _WHICH]
        found = _meeting([columns[n][kept] for n in fixed], writers, [x[kept] for x in low], [x[kept] for x in high], widths)
        if found is not None:
            p, q = (int(kept[i]) for i in found)
            points = [space.completed({n: int(columns[n][i]) for n in names}) for i in (p, q)]
            for a in range(len(starts)):
                points[0][f"index{a}"] = int(max(low[a][p], low[a][q]))
            return "refuted", points[0], points[1]
    return "shown", {}, {}
