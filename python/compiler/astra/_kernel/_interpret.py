"""A kernel run program by program, its statements one by one: what prints, breakpoints and wrong places are looked at with.

Takes:    a kernel's source, values of its arguments, its grid as numbers.
Gives:    the values of the outputs.
Keeps:    tiles are computed by the reference evaluator, so their bits are those of the kernel compiled under strict numerics. Every access is checked where it happens: outside
          of a view, an element that two programs write, what is assumed and asserted; the sentence names the program and the index.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Sequence

import numpy as np

import astra_rt

from .. import _evaluate, _ops
from .._errors import KernelError
from .._graph import current
from .._tensor import Tensor, call, of_node, of_value
from ._source import Source
from ._values import Index, Tile, View
from ._walker import MOST_STEPS, Walker



def settled(t: Tensor) -> Tensor:
    """The tensor with its value, by the evaluator."""
    if t._value is None:
        t = of_value(_evaluate.evaluate(t._graph, [t._node], "evaluator")[0])
    return t


class Output:
    """An output while programs write it: its bytes, and who wrote each element."""

    def __init__(self, v: View) -> None:
        self.view, self.mode = v, ""
        n = max(v.dtype.itemsize, 1)
        self.bytes = np.zeros((*v.shape, n), np.uint8)
        self.owner = np.full(v.shape, -1, np.int64)
        self.scattered: list[tuple[Any, Tensor]] = []  # indices and updates: together they are one scatter, which rounds narrow floats once

    def value(self) -> Tensor:
        t = of_value(_evaluate.of_bytes(self.view.dtype.code, self.view.shape, self.bytes.tobytes()))
        if not self.scattered:
            return t
        at = np.concatenate([a for a, _ in self.scattered])
        updates = of_value(_evaluate.of_bytes(t.dtype.code, at.shape, b"".join(u.tobytes() for _, u in self.scattered)))
        kind = ("set", "add", "mul", "max", "min").index(self.mode)
        return settled(_ops.reshape(_ops.op("scatter", _ops.reshape(t, (-1,)), of_value(astra_rt.tensor(at)), updates, ints=[0, kind]), self.view.shape))


class Interpreter(Walker):
    """Runs one program after another."""

    concrete = True

    def __init__(self, source: Source, language: Any, grid: Sequence[int], outputs: Sequence[View], stop: Callable[[dict[str, Any]], Any] | None) -> None:
        super().__init__(source, language)
        self.grid = grid
        self.outputs = {v.name: Output(v) for v in outputs}
        self.program: tuple[int, ...] = (0,) * len(grid)
        self.number = 0
        self.on_breakpoint = stop

    def run_all(self, arguments: dict[str, Any]) -> None:
        """All programs, row-major."""
        for self.number, self.program in enumerate(np.ndindex(*self.grid)):
            self.names, self.node = dict(arguments), self.source.tree
            self.run()

    def where(self) -> str:
        return f"program ({', '.join(map(str, self.program))}{',' if len(self.program) == 1 else ''})"

    def wrong(self, sentence: str) -> KernelError:
        return self.error(f"{self.where()}: {sentence}")

    def program_id(self, axis: int) -> int:
        return self.program[axis] if axis < len(self.program) else 0

    def num_programs(self, axis: int) -> int:
        return self.grid[axis] if axis < len(self.grid) else 1

    def index(self, op: str, x: Any, y: Any) -> Any:
        if isinstance(x, Index) or isinstance(y, Index) or op in ("floordiv", "mod") and y <= 0:
            raise self.error("a divisor of sizes is greater than 0")
        return {"add": x + y, "sub": x - y, "mul": x * y, "min": min(x, y), "max": max(x, y)}.get(op) if op not in ("floordiv", "mod") else (
            x // y if op == "floordiv" else x % y)  # fmt: skip

    def diagonal(self, x: Any) -> Any:
        return current().core.index(x)

    def made(self, tensor: Tensor, form: Any = None, bounds: Any = None) -> Tile:
        return super().made(tensor, None)

    def array(self, t: Tile) -> Any:
        """A tile of integers or bools as an array."""
        t.tensor = settled(t.tensor)
        return np.asarray(t.tensor)

    def one(self, x: Any) -> int:
        return int(self.array(x)) if isinstance(x, Tile) else int(x)

    # ---- access


    def outside(self, what: str, v: View, axis: int, first: int, last: int) -> KernelError:
        span = f"element {first}" if first == last else f"elements {first} .. {last}"
        return self.wrong(f"{what} '{v.name}' is outside: {span} along axis {axis}, whose extent is {v.shape[axis]}")

    def parts(self, v: View, place: tuple[Any, ...], shape: Sequence[int], cut: bool, what: str) -> tuple[list[slice], list[slice]]:
        """The part of a view, and that of a block, which are the same."""
        inside, tile = [], []
        for axis, (p, span, n) in enumerate(zip(place, shape, v.shape)):
            s = self.one(p)
            if not cut and (s < 0 or s + span > n):
                raise self.outside(what, v, axis, s, s + span - 1)
            first, last = min(max(s, 0), n), min(max(s + span, 0), n)
            inside.append(slice(first, last))
            tile.append(slice(first - s, last - s) if last > first else slice(0, 0))
        return inside, tile

    def load(self, v: View, place: tuple[Any, ...], shape: tuple[int, ...], fill: Any) -> Tile:
        inside, tile = self.parts(v, place, shape, fill is not None, "the load from")
        x = v.tensor[tuple(inside)]
        if all(t.stop - t.start == n for t, n in zip(tile, shape)):
            return Tile(x)
        if any(t.stop == t.start for t in tile):
            return Tile(_ops.broadcast_to(_ops.astype(_ops.literal(fill, _ops.F32 if v.dtype.kind == "s" else v.dtype), v.dtype), shape))
        widths = [(t.start, n - t.stop) for t, n in zip(tile, shape)]
        graph = current()
        bits = 0 if v.dtype.kind == "s" else int(_ops.literal(fill, v.dtype)._in(graph).ints[0])
        sources = [x._in(graph), *(graph.core.index(w[0]) for w in widths), *(graph.core.index(w[1]) for w in widths)]
        return Tile(of_node(graph, call(graph.core.make, "pad", sources, [bits], "")))

    def claimed(self, out: Output, place: Any, shape: Sequence[int], mode: str) -> None:
        if out.mode not in ("", mode or "block"):
            raise self.wrong(f"'{out.view.name}' is stored into in two ways")
        out.mode = mode or "block"

    def store(self, v: View, place: tuple[Any, ...], t: Tile, drop: bool) -> None:
        out = self.outputs[v.base.name]
        inside, tile = self.parts(v, place, t.shape, drop, "the store into")
        if any(isinstance(p, Tile) for p in place):
            raise self.error("a block is stored at a place of program ids, counters and sizes; kernel.scatter writes at indices that are computed")
        self.claimed(out, place, t.shape, "")
        key = tuple(slice(a.begin, a.begin + 1) if a.axis is None else slice(a.begin + a.step * inside[a.axis].start, a.begin + a.step * inside[a.axis].stop, a.step)
                    for a in v.along)  # fmt: skip
        taken = (out.owner[key] >= 0) & (out.owner[key] != self.number)
        if taken.any():
            at = tuple(int(i[0]) * k.step + k.start if k.step else int(i[0]) + k.start for i, k in zip(np.nonzero(taken), key))
            other = np.unravel_index(int(out.owner[at]), tuple(self.grid))
            raise self.wrong(f"element ({', '.join(map(str, at))}) of '{v.name}' is written a second time; the first was "
                             f"program ({', '.join(map(str, map(int, other)))}{',' if len(other) == 1 else ''}): a race")  # fmt: skip
        value = np.frombuffer(settled(t.tensor).tobytes(), np.uint8).reshape(*t.shape, -1)
        along = [a.axis for a in v.along if a.axis is not None]
        value = value[tuple(tile)].transpose(*along, *(a for a in range(len(tile)) if a not in along), len(tile))
        out.bytes[key] = value.reshape(*taken.shape, value.shape[-1])
        out.owner[key] = self.number

    def indices(self, v: View, place: Sequence[Tile], shape: Sequence[int], cut: bool, what: str) -> tuple[Any, Any]:
        """Row-major numbers of elements, and which of them are inside."""
        flat, inside = np.zeros(shape, np.int64), np.ones(shape, bool)
        for axis, (t, n) in enumerate(zip(place, v.shape)):
            index = np.broadcast_to(self.array(t), shape).astype(np.int64)
            here = (index >= 0) & (index < n)
            if not cut and not here.all():
                wrong = int(index[~here].reshape(-1)[0])
                raise self.outside(what, v, axis, wrong, wrong)
            inside &= here
            flat = flat * n + index
        return np.where(inside, flat, -1), inside

    def gather(self, v: View, place: tuple[Tile, ...], fill: Any) -> Tile:
        shape: tuple[int, ...] = ()
        for t in place:
            shape = self.broadcast(shape, t.shape, "the indices of gather")
        if v.dtype.kind == "s":
            raise self.error(f"gather from '{v.name}', which is of {v.dtype.name}, is not there yet: load a block of it, and cast that")
        flat, inside = self.indices(v, place, shape, fill is not None, "the gather from")
        x = _ops.op("gather", _ops.reshape(v.tensor, (-1,)), of_value(astra_rt.tensor(flat)), ints=[0])
        return Tile(x if not fill else _ops.where(of_value(astra_rt.tensor(inside)), x, self.tensor(fill, v.dtype)))

    def scatter(self, v: View, place: tuple[Tile, ...], t: Tile, mode: str, drop: bool) -> None:
        out = self.outputs[v.name]
        self.claimed(out, place, t.shape, mode)
        flat, inside = self.indices(v, place, t.shape, drop, "the scatter into")
        flat, inside = flat.reshape(-1), inside.reshape(-1)
        owner = out.owner.reshape(-1)
        if mode == "set":
            numbers = flat[inside]
            unique, count = np.unique(numbers, return_counts=True)
            twice = unique[(count > 1) | (owner[unique] >= 0)]
            if len(twice):
                at = tuple(int(i) for i in np.unravel_index(int(twice[0]), v.shape))
                raise self.wrong(f"element ({', '.join(map(str, at))}) of '{v.name}' is written a second time: a race")
            owner[numbers] = self.number
        out.scattered.append((flat, settled(_ops.reshape(t.tensor, (-1,)))))

    # ---- control

    def for_range(self, s: ast.For, first: Any, last: Any, step: int) -> None:
        assert isinstance(s.target, ast.Name)
        if not len(range(first, last, step)):
            return self.skip(s.body)
        names = dict(self.names)
        changed = [n for n in self.changed(s.body) if n != s.target.id]
        before = {n: self.carried(n, s) for n in changed}
        self.names.update(before)
        for i in range(first, last, step):
            self.names[s.target.id] = i
            self.block(s.body)
            after = {n: self.handed(n, before[n], s, "the loop") for n in changed}
            self.names = {**names, **{n: Tile(settled(t.tensor)) for n, t in after.items()}}

    def branch(self, s: ast.If, condition: Tile) -> None:
        taken, other = (s.body, s.orelse) if bool(settled(condition.tensor)) else (s.orelse, s.body)
        names = dict(self.names)
        assigned = [{n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} for body in (taken, other)]
        self.block(taken)
        kept = [n for n in assigned[0] | assigned[1] if n in names or n in assigned[0] and n in assigned[1]]
        self.names = {**names, **{n: self.carried(n, s) for n in kept}}

    def while_data(self, s: ast.While) -> None:
        names = dict(self.names)
        changed = self.changed(s.body)
        before = {n: self.carried(n, s) for n in changed}
        self.names.update(before)
        for _ in range(MOST_STEPS):
            found = self.truth(self.value(s.test), "the condition of `while`")
            if not (found if isinstance(found, bool) else bool(settled(found.tensor))):
                return
            self.block(s.body)
            after = {n: self.handed(n, before[n], s, "the loop") for n in changed}
            self.names = {**names, **{n: Tile(settled(t.tensor)) for n, t in after.items()}}
        self.node = s
        raise self.wrong(f"this `while` has not ended after {MOST_STEPS} steps")

    def assumed(self, condition: Any) -> None:
        holds: Any = condition if isinstance(condition, bool) else self.array(condition)
        if not np.all(holds):
            at = f" at {tuple(int(i[0]) for i in np.nonzero(~holds))}" if np.ndim(holds) else ""
            raise self.wrong(f"what is assumed does not hold{at}")

    def asserted(self, condition: Any, message: str) -> None:
        if not (condition if isinstance(condition, bool) else bool(self.array(condition))):
            raise self.wrong("the assertion does not hold" + (f": {message}" if message else ""))

    def printed(self, values: list[Any]) -> None:
        print(*(settled(v.tensor) if isinstance(v, Tile) else v for v in values))

    def stopped(self) -> None:
        names = {k: settled(v.tensor) if isinstance(v, Tile) else v.tensor if isinstance(v, View) else v for k, v in self.names.items()}
        if self.on_breakpoint is not None:
            self.on_breakpoint({"program": self.program, "line": getattr(self.node, "lineno", 0), **names})
            return
        import code

        code.interact(banner=f"{self.where()}, line {getattr(self.node, 'lineno', 0)}; Ctrl-D goes on", local=names, exitmsg="")
