"""Sizes of PyTorch as dims of this package.

Takes:    symbols of an exported program with their ranges, expressions of them.
Gives:    dims, and arithmetic on them.
"""

from __future__ import annotations

from typing import Any, Mapping

import sympy
import torch

from .. import _dims
from .._errors import UnsupportedError

MOST = 1 << 20
"""The greatest extent of a size for which nobody gave one (torch.compile's dynamic shapes)."""


class Symbols:
    """The dims of a program's symbols."""

    def __init__(self, ranges: Mapping[Any, Any], names: Mapping[str, str] | None = None, unbounded: int | None = None) -> None:
        self.ranges, self.names, self.unbounded = ranges, dict(names or {}), unbounded
        self.made: dict[str, Any] = {}

    def size(self, n: Any) -> Any:
        """A size: a number, or a SymInt."""
        if isinstance(n, int):
            return n
        return self.of(n.node.expr if isinstance(n, torch.SymInt) else n)

    def of(self, e: Any) -> Any:
        """A sympy expression of sizes."""
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            return self._dim(e)
        parts = [self.of(a) for a in e.args]
        name = type(e).__name__
        if name == "Add":
            out = parts[0]
            for p in parts[1:]:
                out = out + p
            return out
        if name == "Mul":
            out = parts[0]
            for p in parts[1:]:
                out = out * p
            return out
        if name in ("FloorDiv", "CleanDiv"):
            return parts[0] // parts[1]
        if name in ("Mod", "PythonMod"):
            return parts[0] % parts[1]
        if name in ("Max", "Min"):
            out = parts[0]
            for p in parts[1:]:
                out = _dims.Dim(name.lower(), out, p)
            return out
        if name == "Pow" and e.exp.is_Integer and int(e.exp) > 0:
            out = parts[0]
            for _ in range(int(e.exp) - 1):
                out = out * parts[0]
            return out
        raise UnsupportedError(f"a size that is {e}")

    def _dim(self, symbol: sympy.Symbol) -> Any:
        name = str(symbol)
        if name not in self.made:
            found = self.ranges.get(symbol)
            low, high = (found.lower, found.upper) if found is not None else (0, sympy.oo)
            least = int(low) if isinstance(low, int) or low.is_Integer else 0
            if not high.is_Integer or int(high) > 1 << 40:
                if self.unbounded is None:
                    raise UnsupportedError(f"the size {self.names.get(name, name)} has no upper bound: give one, dims={{'x': ('batch', 1, 64)}} "
                                           "or torch.export.Dim('batch', min=1, max=64)")  # fmt: skip
                high = self.unbounded
            self.made[name] = _dims.dim(self.names.get(name, name), max(least, 0), int(high))
        return self.made[name]
