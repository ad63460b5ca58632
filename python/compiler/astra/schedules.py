"""Schedules: what the learning rate of a step is multiplied by. The table is that of `astra-compile --train --schedule`.

    optimizer = astra.optim.adamw(lr=1e-3, schedule=astra.schedules.cosine(steps=1000, warmup=100))
"""

from __future__ import annotations

from typing import Any, Callable

from ._recipes import Row, functions


class Schedule:
    """A schedule; give it to an optimizer."""

    __slots__ = ("recipe",)

    def __init__(self, recipe: str) -> None:
        self.recipe = recipe

    def __call__(self, step: Any, lr: float = 1.0) -> Any:
        """The learning rate at a step, the first being 1: a float64 scalar."""
        from . import _core, _ops

        count = _ops.astype(step, "float64")
        return _ops.make(_core.rate_at, f"sgd(lr={float(lr)!r})", self.recipe, count)

    def __repr__(self) -> str:
        return f"astra.schedules.{self.recipe}"


def _make(row: Row) -> Callable[..., Any]:
    def schedule(**parameters: Any) -> Schedule:
        return Schedule(row.text(parameters))

    schedule.__name__ = schedule.__qualname__ = row.name
    schedule.__doc__ = row.doc("The factor of the learning rate")
    schedule.__signature__ = row.signature()  # type: ignore[attr-defined]
    return schedule


_functions = functions("schedules", _make)
globals().update(_functions)
__all__ = [*_functions, "Schedule"]
