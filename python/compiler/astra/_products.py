"""Products of matrices and vectors: one contraction each, its order fixed (N4 of docs/numerics.md)."""

from __future__ import annotations

import math
from typing import Any, Sequence

from . import _core
from ._building import axis_of, make, nodes_of, operands
from ._elementwise import conj, multiply
from ._errors import ArgumentError, ShapeError
from ._graph import current
from ._manipulation import expand_dims, moveaxis, permute_dims, ravel, reshape, squeeze
from ._tensor import Tensor, call, of_node


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices; leading axes broadcast, a vector is a row or a column."""
    x1, x2 = operands(x1, x2)
    return make(_core.product, x1, x2)


def einsum(equation: str, *xs: Any) -> Tensor:
    """NumPy's einsum: "ij,jk->ik"."""
    made, graph = operands(*xs), current()
    return of_node(graph, call(_core.einsum, graph.core, equation.replace(" ", ""), nodes_of(graph, made)))


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
    left, right = [axis_of(a, x1.ndim) for a in first], [axis_of(a, x2.ndim) for a in second]
    if len(left) != len(right):
        raise ArgumentError(f"tensordot pairs {len(left)} axes with {len(right)}")
    for a, b in zip(left, right):
        if x1.shape[a] != x2.shape[b]:
            raise ShapeError(f"axes of {x1.shape[a]} and {x2.shape[b]} elements have no sum of products")
    kept1, kept2 = [a for a in range(x1.ndim) if a not in left], [a for a in range(x2.ndim) if a not in right]
    inner = math.prod(x1.shape[a] for a in left)
    shape1, shape2 = [x1.shape[a] for a in kept1], [x2.shape[a] for a in kept2]
    rows = reshape(permute_dims(x1, kept1 + left), (math.prod(shape1), inner))
    columns = reshape(permute_dims(x2, right + kept2), (inner, math.prod(shape2)))
    return reshape(matmul(rows, columns), (*shape1, *shape2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum along an axis of the products of conj(x1) and x2; the other axes broadcast."""
    x1, x2 = operands(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim):
        raise ArgumentError(f"axis {axis} is outside of tensors of {x1.ndim} and {x2.ndim} axes")
    x1, x2 = moveaxis(conj(x1), axis, -1), moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"vectors of {x1.shape[-1]} and {x2.shape[-1]} elements have no product")
    return squeeze(matmul(expand_dims(x1, -2), expand_dims(x2, -1)), (-2, -1))


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
    return multiply(expand_dims(ravel(x1), 1), expand_dims(ravel(x2), 0))


__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]
