"""Metrics: what is said of a model beside its loss. The table is that of `astra-compile --train --metric`.

    part = astra.metrics.accuracy(scores, classes)
"""

from __future__ import annotations

from typing import Any, Callable

from . import _core, _ops
from ._boundary import guard
from ._errors import ShapeError
from ._recipes import Row, functions
from ._tensor import Tensor, asarray

_OF_CLASSES = ("accuracy", "top")


def _make(row: Row) -> Callable[..., Any]:
    def metric(prediction: Any, target: Any, /, **parameters: Any) -> Tensor:
        x, y = _ops.floating(prediction), asarray(target)
        if x.dtype.code in ("f16", "bf16"):
            x = _ops.astype(x, "float32")
        if y.dtype.kind == "f":
            y = _ops.astype(y, x.dtype)
        if row.name in _OF_CLASSES and x.ndim < 2:
            raise ShapeError(f"{row.name} takes a prediction [N, C, ...]; this one has shape {tuple(x.shape)}")
        return _ops.make(_core.metric, row.text(parameters), "cross_entropy" if row.name in _OF_CLASSES else "mse", x, y)

    metric.__name__ = metric.__qualname__ = row.name
    metric.__doc__ = row.doc("A scalar: the mean over the elements of")
    metric.__signature__ = row.signature("prediction", "target")  # type: ignore[attr-defined]
    return metric


_functions = functions("metrics", _make)
globals().update(_functions)
__all__ = list(_functions)
guard(globals(), __all__, __name__)
