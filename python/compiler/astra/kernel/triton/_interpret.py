"""Kernels of Triton's, run program by program: what prints, breakpoints and wrong places are looked at with.

Takes:    a kernel's source, values of its arguments, its grid as numbers.
Gives:    the new values of what it stores into.
Keeps:    the bits are those of the compiled kernel. Every element that a mask lets in is looked at: whether it is one of the argument, whether two
          programs write it, whether it is read after it was written.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ... import _ops
from ..._dims import Dim
from ..._kernel._forms import Expr
from ..._kernel._interpret import MOST_STEPS, Interpreter, settled
from ..._kernel._values import Tile
from ..._tensor import asarray
from ._pointers import Pointer
from ._walk import TritonWalker


class TritonInterpreter(TritonWalker, Interpreter):
    """Runs program after program."""

    guards: list[Expr] = []
    lost: dict[str, str] = {}

    def sized(self, x: Dim) -> Any:
        raise self.error("the interpreter runs with numbers: sizes are known there, no dims")

    def plain(self, x: Any, y: Any) -> bool:
        return False

    def numbers(self, p: Pointer, mask: Any, what: str) -> tuple[Any, Any]:
        """The elements that pointers name, and the mask, as arrays."""
        shape, a = p.shape, p.argument
        m = self.masked(mask, shape, what.rsplit(" ", 1)[0])
        at = np.broadcast_to(self.array(p.offset) if isinstance(p.offset, Tile) else np.int64(p.offset), shape).astype(np.int64)
        inside = np.ones(shape, bool) if m is True else np.broadcast_to(self.array(m), shape).astype(bool)
        wrong = inside & ((at < 0) | (at >= a.size))
        if wrong.any():
            raise self.wrong(f"{what} '{a.name}' is outside: element {int(at[wrong].reshape(-1)[0])} of {a.size}; give a mask if that is meant")
        return np.where(inside, at, -1), inside

    def read(self, p: Pointer, mask: Any, other: Any) -> Tile:
        a = p.argument
        at, inside = self.numbers(p, mask, "the load from")
        if a.name in self.outputs and (self.outputs[a.name].owner[at[inside]] >= 0).any():
            raise self.wrong(f"the load from '{a.name}' reads what was stored by this launch: keep it in a name, or launch a second kernel")
        assert a.view is not None
        x = _ops.op("gather", a.view.tensor, asarray(at), ints=[0])
        if not inside.all() and (isinstance(other, Tile) or other):
            x = _ops.where(asarray(inside), x, self.typed(other, a.dtype))
        return Tile(settled(x))

    def write(self, p: Pointer, t: Tile, mask: Any, mode: str) -> None:
        a = p.argument
        at, _ = self.numbers(p, mask, "the store into")
        if a.name not in self.outputs:
            self.outputs[a.name] = self.output_of(a)
        self.scatter(self.outputs[a.name].view, (Tile(asarray(at)),), t, mode, True)

    output_of: Any

    def for_range(self, s: ast.For, first: Any, last: Any, step: int) -> None:
        assert isinstance(s.target, ast.Name)
        for i in range(first, last, step):
            self.names[s.target.id] = i
            self.block(s.body)
            self.names = {n: Tile(settled(x.tensor)) if isinstance(x, Tile) else x for n, x in self.names.items()}

    def branch(self, s: ast.If, condition: Tile) -> None:
        self.block(s.body if bool(settled(condition.tensor)) else s.orelse)

    def while_(self, s: ast.While) -> None:
        for _ in range(MOST_STEPS):
            found = self.truth(self.value(s.test), "the condition of `while`")
            if not (found if isinstance(found, bool) else bool(settled(found.tensor))):
                return
            self.block(s.body)
        raise self.wrong(f"this `while` has not ended after {MOST_STEPS} steps")
