"""Initializers: what weights begin as. PyTorch's definitions; numbers are drawn by the contract's generator (N13).

    w = astra.init.kaiming_uniform((64, 32), seed=0, a=5**0.5)
"""

from __future__ import annotations

from typing import Any, Callable

from . import _core, _dtypes, _ops
from ._errors import DTypeError
from ._random import checked_seed
from ._recipes import Row, functions
from ._tensor import Tensor


def draw(recipe: str, shape: Any, dtype: Any = "float32", seed: int = 0, stream: int = 0) -> Tensor:
    """What a recipe ("normal(std=0.02)") gives for a weight of this shape. Weights of one seed differ by their stream."""
    t = _dtypes.dtype(dtype)
    if t.code in ("f16", "bf16"):  # drawn in float32 and rounded once
        return _ops.astype(draw(recipe, shape, "float32", seed, stream), t)
    if t.code not in ("f32", "f64"):
        raise DTypeError(f"weights are drawn of floats, not of {t.name}")
    like = _ops.zeros(shape, dtype=t)
    return _ops.make(_core.initial, recipe, like, _ops.literal(checked_seed(seed), _dtypes.DTYPES["uint32"]), int(stream))


def _make(row: Row) -> Callable[..., Any]:
    def initializer(shape: Any, /, *, dtype: Any = "float32", seed: int = 0, stream: int = 0, **parameters: Any) -> Tensor:
        return draw(row.text(parameters), shape, dtype, seed, stream)

    initializer.__name__ = initializer.__qualname__ = row.name
    initializer.__doc__ = row.doc("A weight") + "\n\nseed, stream: of the generator; weights of one seed differ by their stream."
    return initializer


_functions = {name: f for name, f in functions("initializers", _make).items() if name != "default"}
globals().update(_functions)
__all__ = [*_functions, "draw"]
