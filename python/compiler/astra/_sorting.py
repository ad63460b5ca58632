"""Order: sorting, searching, sets; results whose size the data decide.

Keeps:    a sort is stable, -0 below +0, a NaN greatest (N9). A size that the data decide has as bound what there is to choose from.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core, _dims, _dtypes
from ._building import BOOL, axis_of, cast, make, make_several, operands
from ._elementwise import logical_not
from ._errors import ArgumentError, DTypeError
from ._graph import current
from ._manipulation import ravel, reshape, unstack
from ._tensor import Tensor, asarray, call, of_node

U8 = _dtypes.DTYPES["uint8"]


def _ordered(x: Any, what: str) -> Tensor:
    x = asarray(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{what} needs an order; complex numbers have none")
    return x


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along an axis."""
    x = _ordered(x, "argsort")
    a = axis_of(axis, x.ndim)
    return make(_core.argsort, cast(x, U8) if x.dtype.kind == "b" else x, a, descending)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along an axis in order."""
    x = _ordered(x, "sort")
    return make(_core.gather_elements, x, argsort(x, axis=axis, descending=descending), axis_of(axis, x.ndim))


def topk(x: Any, k: Any, /, *, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k greatest (or least) elements along an axis, in order, and their indices."""
    x, graph = _ordered(x, "topk"), current()
    found = call(_core.topk, graph.core, x._in(graph), _dims.size_node(graph.core, k), axis_of(axis, x.ndim), largest)
    return of_node(graph, found[0]), of_node(graph, found[1])


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """For each element of x2 where in x1, ascending with one axis, it belongs: before the elements that equal it ("left") or
    behind them ("right"). sorter: indices that sort x1."""
    if side not in ("left", "right"):
        raise ArgumentError(f"side is 'left' or 'right', not {side!r}")
    x1, x2 = operands(_ordered(x1, "searchsorted"), x2)
    if sorter is not None:
        x1 = make(_core.gather, x1, asarray(sorter), 0)
    if x1.dtype.kind == "b":
        x1, x2 = cast(x1, U8), cast(x2, U8)
    return make(_core.searchsorted, x1, x2, side == "right")


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, row-major: a tensor for each axis."""
    x = asarray(x)
    if not x.ndim:
        raise ArgumentError("nonzero needs a tensor with an axis")
    return unstack(argwhere(x), axis=1)


def argwhere(x: Any, /) -> Tensor:
    """The indices of the elements that are not 0, row-major: a row for each element."""
    return make(_core.permute, make(_core.non_zero, cast(asarray(x), BOOL)), [1, 0])


def compress(condition: Any, x: Any, /, axis: int | None = None) -> Tensor:
    """The elements along an axis (None: of x flattened) where the condition, with one axis, is true."""
    x = asarray(x)
    return make(_core.compress, x, cast(asarray(condition), BOOL), None if axis is None else axis_of(axis, x.ndim))


# ---- sets


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The elements, each once, ascending; where each stands first; for each element of x its number among them; how often each
    stands in x. Every NaN is another one."""
    x = asarray(x)
    flat = ravel(cast(x, U8) if x.dtype.kind == "b" else x)
    values, first, group, counts = make_several(_core.unique, flat, 0, True, False)
    assert values is not None and first is not None and group is not None and counts is not None
    return UniqueAll(cast(values, x.dtype), first, reshape(group, x.shape), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The elements, each once, ascending, and how often each stands in x."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The elements, each once, ascending, and for each element of x its number among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """The elements, each once, ascending; every NaN is another one."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is in x2; invert: whether it is not."""
    x1, x2 = operands(x1, x2)
    if x1.dtype.kind == "b":
        x1, x2 = cast(x1, U8), cast(x2, U8)
    found = make(_core.isin, x1, x2)
    return logical_not(found) if invert else found


__all__ = [
    "argsort", "argwhere", "compress", "isin", "nonzero", "searchsorted", "sort", "topk", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip
