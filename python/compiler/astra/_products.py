"""Products of matrices and vectors: one contraction each, its order fixed (N4 of docs/numerics.md)."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Sequence

import numpy as np

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


def einsum(equation: Any, *xs: Any, path: Any = None, memory_limit: int | None = None) -> Tensor:
    """NumPy's einsum: einsum("ij,jk->ik", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2]). Of bools sums are any and products all.

    Operands are contracted two by two, in the order that takes the fewest products: of up to 16 operands the very fewest.
    `path` is another order, as NumPy and opt_einsum have it: pairs of places among the operands that are left; what they give
    comes last. `memory_limit` bounds the elements of each intermediate. The order decides how sums are rounded: the same
    equation, shapes and limit have the same one everywhere; `einsum_path` tells it, and its text may stand for the equation."""
    if not isinstance(equation, str):
        equation, xs = _written(equation, *xs)
    _some(xs)
    made, graph = operands(*xs), current()
    text = _text(equation, path, memory_limit)
    if len(made) > 8 and path is None:  # a path that takes a while to find is kept
        text = _planned(text, tuple(_known(t.shape) for t in made)) or text
    return of_node(graph, call(_core.einsum, graph.core, text, nodes_of(graph, made)))


def _some(xs: Sequence[Any]) -> None:
    if not xs:
        raise ArgumentError("an einsum takes one operand or more behind its equation")


@dataclass(frozen=True)
class EinsumPath:
    """An order of contraction, and what it costs. `str` of it is a table."""

    text: str  # the equation with its path and slices: einsum takes it
    path: list[tuple[int, ...]]
    slices: list[str]  # labels whose indices are contracted one after another
    naive: int  # products of two elements without intermediates
    flops: int  # with them; a fused multiply-add is one
    largest: int  # elements of the largest intermediate or result
    steps: list[tuple[str, int, int]]  # an equation, its products, the elements of what it gives; of one slice

    def __str__(self) -> str:
        head = [self.text, f"products {self.flops} (at once {self.naive}), largest intermediate or result {self.largest}"]
        return "\n".join(head + [f"  {step}  products {flops}, gives {size}" for step, flops, size in self.steps])


def einsum_path(equation: Any, *xs: Any, path: Any = None, memory_limit: int | None = None) -> EinsumPath:
    """The order in which `einsum` of these operands, or of operands of these shapes, contracts them."""
    if not isinstance(equation, str):
        equation, xs = _written(equation, *xs)
    _some(xs)
    shapes = [_known(x if isinstance(x, tuple) else x.shape if hasattr(x, "shape") else operands(x)[0].shape) for x in xs]
    if None in shapes:
        raise ArgumentError("einsum_path takes tensors of known shapes, or shapes, tuples of integers")
    text, steps, slices, naive, flops, largest, parts = call(_core.einsum_plan, _text(equation, path, memory_limit), shapes)
    return EinsumPath(text, [tuple(step) for step in steps], slices, _count(naive), _count(flops), _count(largest),
                      [(step, _count(f), _count(n)) for step, f, n in parts])  # fmt: skip


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 2**120


def _known(shape: Any) -> tuple[int, ...] | None:
    return tuple(int(n) for n in shape) if all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape) else None


@lru_cache(maxsize=256)
def _planned(text: str, shapes: tuple[Any, ...]) -> str | None:
    return None if None in shapes else str(call(_core.einsum_plan, text, shapes)[0])


def _text(equation: str, path: Any, memory_limit: int | None) -> str:
    """The text of docs/python.md: the equation, and what is asked for beside it."""
    if path is not None:
        steps = list(path)
        steps = steps[1:] if steps[:1] == ["einsum_path"] else steps  # numpy.einsum_path begins so
        try:
            written = ", ".join("(" + "".join(f"{operator.index(at)}, " for at in step) + ")" for step in steps)
        except TypeError:
            raise ArgumentError("a path is a list of tuples of places: [(0, 1), (0, 2)]") from None
        equation += f" path=[{written}]"
    if memory_limit is not None:
        equation += f" memory={operator.index(memory_limit)}"
    return equation


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


__all__ = ["EinsumPath", "dot", "einsum", "einsum_path", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]
