"""Losses: scalars that a training makes small. PyTorch's definitions; the table is that of `astra-compile --train --loss`.

    loss = astra.losses.cross_entropy(scores, classes, label_smoothing=0.1)
"""

from __future__ import annotations

from typing import Any, Callable

from . import _core, _ops
from ._boundary import guard
from ._recipes import Row, functions
from ._tensor import Tensor, asarray


_OF_CLASSES = ("cross_entropy", "nll", "multi_margin")


def _make(row: Row) -> Callable[..., Any]:
    def loss(prediction: Any, target: Any, /, **parameters: Any) -> Tensor:
        x, y = _ops.floating(prediction), asarray(target)
        if x.dtype.code in ("f16", "bf16"):
            x = _ops.astype(x, "float32")
        if y.dtype.kind == "f":
            y = _ops.astype(y, x.dtype)
        return _ops.make(_core.loss, row.text(parameters), x, y)

    loss.of_classes = row.name in _OF_CLASSES  # type: ignore[attr-defined]
    loss.__name__ = loss.__qualname__ = row.name
    loss.__doc__ = row.doc("A scalar: the mean (or the sum) over the elements of")
    if row.name in _OF_CLASSES:
        loss.__doc__ += "\n\nA class that there is not is not refused: its score reads 0. `astra.train` looks at all targets first."
    loss.__signature__ = row.signature("prediction", "target")  # type: ignore[attr-defined]
    return loss


_functions = functions("losses", _make)
globals().update(_functions)
__all__ = list(_functions)
guard(globals(), __all__, __name__)
