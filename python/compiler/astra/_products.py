"""Products of matrices and vectors: one contraction each, its order fixed (N4 of docs/numerics.md)."""

from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._building import axis_of, make, nodes_of, operands
from ._elementwise import multiply
from ._errors import ArgumentError
from ._graph import current
from ._manipulation import ravel
from ._tensor import Tensor, call, of_node


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices; leading axes broadcast, a vector is a row or a column."""
    x1, x2 = operands(x1, x2)
    return make(_core.product, x1, x2)


def einsum(equation: Any, *xs: Any) -> Tensor:
    """NumPy's einsum: einsum("ij,jk->ik", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    if not isinstance(equation, str):
        equation, xs = _written(equation, *xs)
    made, graph = operands(*xs), current()
    return of_node(graph, call(_core.einsum, graph.core, equation.replace(" ", ""), nodes_of(graph, made)))


def _written(*parts: Any) -> tuple[str, tuple[Any, ...]]:
    """The equation of tensors that are each followed by the numbers of their axes, and maybe those of the result."""
    lists = [_labels(axes) for axes in parts[1::2]]
    out = f"->{_labels(parts[-1])}" if len(parts) % 2 else ""
    return ",".join(lists) + out, parts[: len(parts) // 2 * 2 : 2]


def _labels(axes: Any) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if not isinstance(axes, (list, tuple)) or not all(k is Ellipsis or (isinstance(k, int) and 0 <= k < len(letters)) for k in axes):
        raise ArgumentError("einsum takes an equation, or after each tensor the numbers of its axes, a list of 0 to 51 or ...")
    return "".join("..." if k is Ellipsis else letters[k] for k in axes)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """Sums over pairs of axes: so many last ones of x1 and first ones of x2, or a pair of lists."""
    x1, x2 = operands(x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ArgumentError(f"tensordot over {axes} axes of tensors of {x1.ndim} and {x2.ndim}")
        first: Sequence[int] = range(x1.ndim - axes, x1.ndim)
        second: Sequence[int] = range(axes)
    else:
        first, second = ([a] if isinstance(a, int) else list(a) for a in axes)
    return make(_core.tensordot, x1, x2, [axis_of(a, x1.ndim) for a in first], [axis_of(a, x2.ndim) for a in second])


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum along an axis of the products of conj(x1) and x2; the other axes broadcast."""
    x1, x2 = operands(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim):
        raise ArgumentError(f"axis {axis} is outside of tensors of {x1.ndim} and {x2.ndim} axes")
    return make(_core.vecdot, x1, x2, axis)


def dot(x1: Any, x2: Any, /) -> Tensor:
    """NumPy's: of vectors and matrices their product, of more axes the sum over the last of x1 and the last but one of x2."""
    x1, x2 = operands(x1, x2)
    if not x1.ndim or not x2.ndim:
        return multiply(x1, x2)
    if x2.ndim <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, axes=([-1], [-2]))


def vdot(x1: Any, x2: Any, /) -> Tensor:
    """The product of conj(x1) and x2, flattened."""
    return vecdot(ravel(x1), ravel(x2))


def inner(x1: Any, x2: Any, /) -> Tensor:
    """Sums over the last axes of both."""
    x1, x2 = operands(x1, x2)
    return tensordot(x1, x2, axes=([-1], [-1])) if x1.ndim and x2.ndim else multiply(x1, x2)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The products of each element of x1 and each of x2, flattened."""
    x1, x2 = operands(x1, x2)
    return make(_core.outer, ravel(x1), ravel(x2))


__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]
