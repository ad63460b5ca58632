"""Embedding bags: sums, means and maxima of rows of a table, and their gradients."""

from __future__ import annotations

import math
from typing import Any

from ... import _core, _ops
from ..._tensor import Tensor
from .elementwise import node
from .indexing import embedding_backward, scattered
from .reductions import fold
from .registry import row
from .shapes import narrow
from .types import BOOL, I64, as_type, opmath


@row("aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                   per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Tensor, ...]:  # fmt: skip
    n = indices.shape[0]
    indices, offsets = as_type(indices, I64), as_type(offsets, I64)
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    bag = _bag_of(offsets, bags, n)
    picked = _ops.make(_core.gather, weight, indices, 0)
    counted = _ops.ones((n,), dtype=BOOL) if padding_idx < 0 else _ops.not_equal(indices, padding_idx)
    if per_sample_weights is not None:
        picked = _ops.multiply(picked, _ops.expand_dims(per_sample_weights, 1))
    size = weight.shape[1]
    place = _ops.expand_dims(_ops.where(counted, bag, bags), 1)  # outside: not written
    sizes = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags,), dtype=I64), place, _ops.ones((n,), dtype=I64))
    empty = _ops.expand_dims(_ops.equal(sizes, 0), 1)
    if mode == 2:
        low = _ops.broadcast_to(as_type(-math.inf, weight.dtype), (bags, size))
        made = _ops.make(_core.scatter_tuples, "max", low, place, picked)
        made = _ops.where(empty, 0, made)
        # Where the maximum comes from: the first element of the bag that reaches it.
        reached = node("eq", picked, _ops.make(_core.gather, made, bag, 0))
        places = _ops.where(reached, _ops.expand_dims(_ops.iota(n), 1), n)
        first = _ops.make(_core.scatter_tuples, "min", _ops.broadcast_to(as_type(n, I64), (bags, size)), place, places)
        rows_of = _ops.make(_core.gather, indices, first, 0)  # of an empty bag: outside, 0
        return made, bag, sizes, rows_of
    else:
        made = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags, size), dtype=opmath(weight.dtype)), place, as_type(picked, opmath(weight.dtype)))
        if mode == 1:
            made = _ops.divide(made, _ops.astype(_ops.expand_dims(_ops.maximum(sizes, 1), 1), made.dtype))
        made = as_type(made, weight.dtype)
    return made, bag, sizes, _ops.zeros((bags,), dtype=I64)


def _bag_of(offsets: Tensor, bags: Any, n: Any) -> Tensor:
    """The bag of each of n elements: how many begin at it or before, less one."""
    begun = _ops.less_equal(_ops.expand_dims(narrow(as_type(offsets, I64), 0, 0, bags), 1), _ops.expand_dims(_ops.iota(n), 0))
    return _ops.subtract(fold("sum", as_type(begun, I64), [0], False), 1)


@row("aten._embedding_bag_backward")
def _embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                            num_weights: Any, by_frequency: bool, mode: int, sparse: bool, weights: Tensor | None,
                            padding: int = -1) -> Tensor:  # fmt: skip
    wide, bags, n = opmath(grad.dtype), grad.shape[0], indices.shape[0]
    if mode == 2:
        filled = _ops.expand_dims(_ops.greater(bag_size, 0), 1)
        given = _ops.where(filled, as_type(grad, wide), as_type(0, wide))
        return as_type(scattered("add", _ops.zeros((num_weights, grad.shape[1]), dtype=wide), 0, maximum_indices, given), grad.dtype)
    bag = _bag_of(offsets, bags, n)
    rows_ = _ops.make(_core.gather, as_type(grad, wide), bag, 0)
    if mode == 1:
        counted = as_type(_ops.not_equal(indices, padding), I64)
        sizes = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags,), dtype=I64), _ops.expand_dims(bag, 1), counted)
        rows_ = _ops.divide(rows_, _ops.expand_dims(as_type(_ops.maximum(_ops.make(_core.gather, sizes, bag, 0), 1), wide), 1))
    if weights is not None:
        rows_ = _ops.multiply(rows_, _ops.expand_dims(as_type(weights, wide), 1))
    return as_type(embedding_backward(rows_, indices, num_weights, padding, by_frequency), grad.dtype)


@row("aten._embedding_bag_per_sample_weights_backward")
def _embedding_bag_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
                                    padding: int = -1) -> Tensor:  # fmt: skip
    bag = _bag_of(offsets, grad.shape[0], indices.shape[0])
    product = _ops.multiply(_ops.make(_core.gather, grad, bag, 0), _ops.make(_core.gather, weight, indices, 0))
    made = fold("sum", as_type(product, opmath(grad.dtype)), [1], False)
    if padding >= 0:
        made = _ops.where(_ops.equal(indices, padding), 0, made)
    return as_type(made, grad.dtype)
