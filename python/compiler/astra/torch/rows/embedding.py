"""Embedding bags: sums, means and maxima of rows of a table, and their gradients."""

from __future__ import annotations

from typing import Any

from ... import _core, _dims, _ops
from ..._building import make_several
from ..._graph import current
from ..._tensor import Tensor
from .registry import row
from .shapes import narrow
from .types import I64

_MODES = ("sum", "mean", "max")


@row("aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                   per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Tensor, ...]:  # fmt: skip
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    begins = narrow(offsets, 0, 0, bags)
    made, bag, sizes, rows_ = make_several(_core.embedding_bag, weight, indices, begins, per_sample_weights, _MODES[mode], padding_idx)
    assert made is not None and bag is not None and sizes is not None
    return made, bag, sizes, _ops.zeros((bags,), dtype=I64) if rows_ is None else rows_


@row("aten._embedding_bag_backward")
def _embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                            num_weights: Any, by_frequency: bool, mode: int, sparse: bool, weights: Tensor | None,
                            padding: int = -1) -> Tensor:  # fmt: skip
    count = _dims.size_node(current().core, num_weights)
    if mode == 2:
        return _ops.make(_core.embedding_maxima_gradient, grad, maximum_indices, bag_size, count)
    begins = narrow(offsets, 0, 0, grad.shape[0])
    return _ops.make(_core.embedding_bag_gradient, grad, indices, begins, weights, _MODES[mode], padding, count, by_frequency)


@row("aten._embedding_bag_per_sample_weights_backward")
def _embedding_bag_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
                                    padding: int = -1) -> Tensor:  # fmt: skip
    begins = narrow(offsets, 0, 0, grad.shape[0])
    return _ops.make(_core.embedding_weights_gradient, grad, weight, indices, begins, padding)
