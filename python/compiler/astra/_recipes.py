"""Functions made of the tables of lib/NN: losses, optimizers, schedules, initializers, metrics have one definition, in C++.

Takes:    a table's name.
Gives:    for each row its text, "adamw(lr=0.001)", from keyword arguments, with a signature and a docstring.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable

from . import _core
from ._errors import ArgumentError

_KINDS: dict[str, Any] = {"bool": bool, "int": int, "float": float}


class Row:
    """A row of a table."""

    __slots__ = ("name", "meaning", "parameters")

    def __init__(self, name: str, meaning: str, parameters: list[tuple[str, float, str, str]]) -> None:
        self.name, self.meaning, self.parameters = name, meaning, parameters

    def signature(self, *before: str) -> inspect.Signature:
        """Positional parameters `before`, then those of the row by name."""
        made = [inspect.Parameter(b, inspect.Parameter.POSITIONAL_ONLY) for b in before]
        for name, value, kind, _ in self.parameters:
            made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_KINDS[kind](value)))
        return inspect.Signature(made)

    def doc(self, what: str) -> str:
        """A docstring."""
        lines = [f"{what}: {self.meaning}."]
        if self.parameters:
            lines += ["", *(f"{name}: {meaning}." for name, _, _, meaning in self.parameters)]
        return "\n".join(lines)

    def text(self, given: dict[str, Any]) -> str:
        """The recipe with these parameters."""
        known = [p[0] for p in self.parameters]
        for name, value in given.items():
            if name not in known:
                raise TypeError(f"{self.name} has no parameter '{name}'; it has {', '.join(known) or 'none'}")
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                if not isinstance(value, bool):
                    raise ArgumentError(f"{self.name}: {name} is a number, not {value!r}")
        parts = [f"{name}={float(value)!r}" if not isinstance(value, (bool, int)) else f"{name}={int(value)}" for name, value in given.items()]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def table(name: str) -> dict[str, Row]:
    """The rows of a table by their names."""
    return {row[0]: Row(*row) for row in _core.table(name)}


def functions(name: str, make: Callable[[Row], Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """One function for each row."""
    return {row: make(found) for row, found in table(name).items()}
