"""More about shapes: what is made of the functions of _ops."""

from __future__ import annotations

from typing import Any

from . import _core, _dims
from ._graph import current
from ._ops import broadcast_to
from ._tensor import Tensor, asarray, call


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that all of these broadcast to."""
    core = current().core
    nodes = call(_core.broadcast_shape, core, [[_dims.size_node(core, n) for n in s] for s in shapes])
    return tuple(_dims.size_of_node(core, n) for n in nodes)


def broadcast_arrays(*xs: Any) -> list[Tensor]:
    """Tensors repeated to their common shape."""
    made = [asarray(x) for x in xs]
    shape = broadcast_shapes(*(x.shape for x in made))
    return [broadcast_to(x, shape) for x in made]
