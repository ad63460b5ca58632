"""Reading and writing by indices that are data.

Keeps:    negative indices count from the end where PyTorch counts so. An index outside, an error in PyTorch, reads 0 and is not written.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

from ... import _core, _dims, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._manipulation import broadcast_arrays
from ..._tensor import Tensor
from .derivatives import derivative
from .elementwise import node, truth
from .registry import refuse, row
from .shapes import axis, narrow
from .types import BOOL, I64, as_type, own_type, result_type


@row("aten.index_select")
def _index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    index = _ops.reshape(index, (-1,))
    if not x.ndim:
        return _ops.reshape(_ops.make(_core.gather, _ops.reshape(x, (1,)), index, 0), (index.shape[0],)) if index.shape[0] != 1 else x
    return _ops.make(_core.gather, x, index, axis(dim, x))


@row("aten.embedding")
def _embedding(weight: Tensor, index: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    return _ops.make(_core.gather, weight, index, 0)


@row("aten.gather")
def _gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if isinstance(index.size, int) and not index.size:
        return _ops.zeros(index.shape, dtype=x.dtype)
    if not x.ndim or not index.ndim:
        flat = _ops.make(_core.gather_elements, _ops.reshape(x, (-1,)), _ops.reshape(index, (-1,)), 0)
        return _ops.reshape(flat, index.shape)
    return _ops.make(_core.gather_elements, x, index, axis(dim, x))


@row("aten.take_along_dim")
def _take_along_dim(x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    return _gather(_ops.reshape(x, (-1,)), 0, _ops.reshape(index, (-1,))) if dim is None else _gather(x, dim, index)


@row("aten.take")
def _take(x: Tensor, index: Tensor) -> Tensor:
    return _ops.make(_core.gather, _ops.reshape(x, (-1,)), index, 0)


def nonzero(x: Tensor) -> Tensor:
    """The coordinates of the elements that are not 0, a row each."""
    if not x.ndim:
        raise UnsupportedError("an index that is a bool without axes")
    return _ops.transpose(_ops.make(_core.non_zero, truth(x)))


@row("aten.nonzero")
def _nonzero(x: Tensor) -> Tensor:
    if not x.ndim:  # a row without coordinates where it is not 0
        return _ops.make(_core.compress, _ops.zeros((1, 0), dtype=I64), _ops.reshape(truth(x), (1,)), 0)
    return nonzero(x)


@row("aten.masked_select")
def _masked_select(x: Tensor, mask: Tensor) -> Tensor:
    x, mask = broadcast_arrays(x, mask)
    return _ops.make(_core.compress, _ops.reshape(x, (-1,)), _ops.reshape(mask, (-1,)), 0)


def _positions(x: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[int], list[Tensor]]:
    """The axes that are indexed, and their indices of one shape. A mask is the coordinates at which it is true."""
    at: list[int] = []
    found: list[Tensor] = []
    d = 0
    for index in indices:
        if index is None:
            d += 1
        elif index.dtype.kind == "b" or index.dtype.code == "u8":
            coordinates = nonzero(index)
            for k in range(index.ndim):
                at.append(d)
                found.append(_ops.squeeze(narrow(coordinates, 1, k, 1), 1))
                d += 1
        else:
            at.append(d)
            found.append(as_type(index, I64))
            d += 1
    return at, list(broadcast_arrays(*found)) if len(found) > 1 else found


def _together(at: list[int]) -> bool:
    return at == list(range(at[0], at[0] + len(at)))


@row("aten.index", "aten._unsafe_index")
def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if all(i is None for i in indices):
        return x
    at, found = _positions(x, indices)
    n = found[0].ndim
    if len(at) == 1:
        return _ops.make(_core.gather, x, found[0], at[0])
    rest = [d for d in range(x.ndim) if d not in at]
    picked = _ops.make(_core.gather_tuples, _ops.permute_dims(x, at + rest), _ops.stack(found, axis=-1), 0)
    if _together(at) and at[0]:
        order = [*range(n, n + at[0]), *range(n), *range(n + at[0], picked.ndim)]
        picked = _ops.permute_dims(picked, order)
    return picked


@row("aten.index_put", "aten._unsafe_index_put")
def _index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    masks = [i for i in indices if i is not None]
    if len(masks) == 1 and masks[0].dtype.kind == "b" and values.size == 1 and not accumulate:
        first = next(d for d, i in enumerate(indices) if i is not None)
        mask = _ops.reshape(masks[0], (*masks[0].shape, *(1,) * (x.ndim - first - masks[0].ndim)))
        return _ops.where(mask, as_type(_ops.reshape(values, ()), x.dtype), x)
    at, found = _positions(x, indices)
    rest = [d for d in range(x.ndim) if d not in at]
    n = found[0].ndim
    if _together(at):
        shape = [x.shape[d] for d in range(at[0])] + list(found[0].shape) + [x.shape[d] for d in rest if d > at[0]]
        first = at[0]
    else:
        shape, first = list(found[0].shape) + [x.shape[d] for d in rest], 0
    update = _ops.broadcast_to(as_type(values, x.dtype), shape)
    update = _ops.permute_dims(update, [*range(first, first + n), *range(first), *range(first + n, update.ndim)])
    moved, how = _ops.permute_dims(x, at + rest), "add" if accumulate else "set"
    if accumulate and x.dtype.kind == "b":  # a sum of bools: whether one is true
        moved, update, how = as_type(moved, own_type("uint8")), as_type(update, own_type("uint8")), "max"
    made = as_type(_ops.make(_core.scatter_tuples, how, moved, _ops.stack(found, axis=-1), update), x.dtype)
    back = sorted(range(x.ndim), key=(at + rest).__getitem__)
    return _ops.permute_dims(made, back)


# ---- scatter


def scattered(how: str, x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """x with elements put, added ... where the index says; a source that is larger than the index is cut."""
    if isinstance(index.size, int) and not index.size:
        return x
    if not isinstance(source, Tensor):
        source = _ops.broadcast_to(as_type(source, x.dtype), index.shape)
    if not x.ndim:
        flat = [_ops.reshape(v, (-1,)) for v in (x, index, source)]
        return _ops.reshape(scattered(how, flat[0], 0, flat[1], flat[2]), ())
    source = as_type(source, x.dtype)
    if not index.ndim:
        index = _ops.reshape(index, (1,) * x.ndim)
    if not source.ndim:
        source = _ops.reshape(source, (1,) * x.ndim)
    d = axis(dim, x)
    for a in range(x.ndim):
        source = narrow(source, a, 0, index.shape[a])
    if x.dtype.kind == "b" and how != "set":
        how = {"add": "max", "mul": "min", "max": "max", "min": "min"}[how]
        wide = [as_type(v, own_type("uint8")) for v in (x, source)]
        return as_type(_ops.make(_core.scatter_elements, how, wide[0], as_type(index, I64), wide[1], d), BOOL)
    return _ops.make(_core.scatter_elements, how, x, as_type(index, I64), source, d)


_HOW = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


@row("aten.scatter")
def _scatter(x: Tensor, dim: int, index: Tensor, source: Any = None, *, reduce: str | None = None, value: Any = None) -> Tensor:
    return scattered(_HOW[reduce] if reduce else "set", x, dim, index, value if source is None else source)


@row("aten.scatter_add")
def _scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return scattered("add", x, dim, index, source)


def _neutral(how: str, t: Any) -> Any:
    from .types import torch_type

    if how in ("add", "mean"):
        return 0
    if how == "mul":
        return 1
    limits: Any = torch.finfo(torch_type(t)) if t.kind == "f" else torch.iinfo(torch_type(t)) if t.kind in "iu" else None
    least = how == "max"
    if limits is None:
        return not least
    return (-float("inf") if least else float("inf")) if t.kind == "f" else (limits.min if least else limits.max)


@row("aten.scatter_reduce")
def _scatter_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    how = _HOW.get(reduce, "add")
    base = x
    if not include_self:
        base = scattered("set", x, dim, index, _neutral(how, x.dtype))
    made = scattered(how, base, dim, index, source)
    if reduce == "mean":
        ones = _ops.ones(index.shape, dtype=x.dtype)
        counted = _ops.ones_like(x) if include_self else scattered("set", _ops.ones_like(x), dim, index, 0)
        count = scattered("add", counted, dim, index, ones)
        made = node("floordiv", made, count) if x.dtype.kind in "iu" else node("div", made, count)
    return made


@row("aten.index_add")
def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    if not x.ndim:
        return _ops.reshape(_index_add(_ops.reshape(x, (1,)), 0, index, _ops.reshape(source, (-1,)), alpha=alpha), ())
    d = axis(dim, x)
    source = as_type(source, x.dtype)
    if alpha != 1:
        source = _ops.multiply(source, as_type(alpha, x.dtype))
    return _along("add", x, d, index, source)


def _along(how: str, x: Tensor, d: int, index: Tensor, source: Tensor) -> Tensor:
    index = _ops.reshape(index, (-1,))
    column = _ops.reshape(index, (1,) * d + (index.shape[0],) + (1,) * (x.ndim - d - 1))
    shape = (*x.shape[:d], index.shape[0], *x.shape[d + 1 :])
    return scattered(how, x, d, _ops.broadcast_to(column, shape), _ops.broadcast_to(source, shape))


@row("aten.index_copy")
def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if not x.ndim:
        return _ops.reshape(source, ())
    return _along("set", x, axis(dim, x), index, source)


@row("aten.index_fill")
def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if not x.ndim:
        return as_type(value, x.dtype)
    return _along("set", x, axis(dim, x), index, as_type(value, x.dtype))


@row("aten.index_reduce")
def _index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    if not x.ndim:
        made = _index_reduce(_ops.reshape(x, (1,)), 0, index, _ops.reshape(source, (-1,)), reduce, include_self=include_self)
        return _ops.reshape(made, ())
    d = axis(dim, x)
    index = _ops.reshape(index, (-1,))
    column = _ops.reshape(index, (1,) * d + (index.shape[0],) + (1,) * (x.ndim - d - 1))
    full = _ops.broadcast_to(column, (*x.shape[:d], index.shape[0], *x.shape[d + 1 :]))
    return _scatter_reduce(x, d, full, source, reduce, include_self=include_self)


@row("aten.masked_scatter")
def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    x, mask = broadcast_arrays(x, mask)
    flat = _ops.reshape(mask, (-1,))
    # The number of trues before an element says which element of the source it takes.
    before = _ops.make(_core.cumulate, "sum", as_type(flat, I64), 0, True, False)
    taken = _ops.make(_core.gather, _ops.reshape(as_type(source, x.dtype), (-1,)), before, 0)
    return _ops.where(mask, _ops.reshape(taken, x.shape), x)


@row("aten.masked_scatter_backward")
def _masked_scatter_backward(grad: Tensor, mask: Tensor, sizes: Sequence[Any]) -> Tensor:
    """By the source: its elements have the gradients of the places that they went to, one after the other."""
    nothing = _ops.zeros(grad.shape, dtype=grad.dtype)
    return derivative(lambda source: _masked_scatter(nothing, mask, source), _ops.zeros(sizes, dtype=grad.dtype), grad)


@row("aten.put")
def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = _ops.reshape(x, (-1,))
    made = scattered("add" if accumulate else "set", flat, 0, _ops.reshape(index, (-1,)), _ops.reshape(source, (-1,)))
    return _ops.reshape(made, x.shape)


def _places(values: Any, boundaries: Tensor, right: bool, small: bool) -> Tensor:
    """How many boundaries each value lies behind; a NaN lies behind all."""
    t = result_type(values, boundaries)
    places = _ops.make(_core.searchsorted, as_type(boundaries, t), as_type(values, t), right)
    return as_type(places, own_type("int32" if small else "int64"))


@row("aten.bucketize")
def _bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _places(x, boundaries, right, out_int32)


@row("aten.searchsorted")
def _searchsorted(sequence: Tensor, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                  sorter: Tensor | None = None) -> Tensor:  # fmt: skip
    if sorter is not None:
        sequence = _ops.make(_core.gather_elements, sequence, sorter, sequence.ndim - 1)
    return _places(x, sequence, right or side == "right", out_int32)


@row("aten.embedding_dense_backward")
def embedding_backward(grad: Tensor, index: Tensor, num_weights: Any, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    if scale_grad_by_freq and grad.dtype.kind != "f":
        raise UnsupportedError(f"gradients of type {grad.dtype.name} by how often an index is there")
    flat, rows_ = _ops.reshape(index, (-1,)), _ops.reshape(grad, (-1, grad.shape[-1]))
    count = _dims.size_node(current().core, num_weights)
    return _ops.make(_core.embedding_gradient, rows_, flat, count, padding_idx, scale_grad_by_freq)


@row("aten.one_hot")
def _one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    if num_classes < 0:
        raise UnsupportedError("one_hot without a number of classes: it depends on data")
    return as_type(_ops.equal(_ops.expand_dims(x, -1), _ops.iota(num_classes)), I64)


refuse("a number of Python's that data decide cannot be part of a compiled graph: return the tensor, or use torch.cond",
       "aten._local_scalar_dense", "aten.item")  # fmt: skip
refuse("the size of its result depends on data: select by torch.where with a mask, or call it outside", "aten._unique2", "aten._unique",
       "aten.unique_dim", "aten.unique_consecutive", "aten.bincount")  # fmt: skip
refuse("counting of values has no row: torch.zeros(bins).index_add_ counts whole numbers", "aten.histc", "aten.histogram")
refuse("it is a sparse or quantized tensor's", "aten.sparse_coo_tensor", "aten._sparse_mm", "aten.quantize_per_tensor")
