"""Products of matrices.

Keeps:    halves accumulate in f32; sums in the order of the numeric contract.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from ... import _core, _ops
from ..._errors import ArgumentError, UnsupportedError
from ..._manipulation import broadcast_shapes
from ..._tensor import Tensor
from .derivatives import gradients
from .elementwise import _sign, node
from .reductions import fold
from .registry import refuse, row
from .shapes import axis_of
from .types import as_type, computed, opmath, own_type, result_type


def product(x: Tensor, y: Tensor) -> Tensor:
    """The product of matrices, of their common type."""
    t = result_type(x, y)
    if t.kind == "b":
        raise UnsupportedError("a product of bools")
    return _ops.make(_core.product, as_type(x, t), as_type(y, t))


_NAMES = {"f16": "Half", "bf16": "BFloat16", "f32": "Float", "f64": "Double", "i8": "Char", "i16": "Short", "i32": "Int", "i64": "Long", "u8": "Byte",
          "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip


def _alike(what: str, x: Tensor, y: Tensor) -> None:
    """Refuses factors of two types, as PyTorch does."""
    if x.dtype is not y.dtype:
        raise ArgumentError(f"{what} must have the same dtype, but got {_NAMES.get(x.dtype.code, x.dtype.name)} and {_NAMES.get(y.dtype.code, y.dtype.name)}")


@row("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", "aten.linalg_matmul")
def _mm(x: Tensor, y: Tensor) -> Tensor:
    _alike("mat1 and mat2", x, y)
    return product(x, y)


@row("aten.mm.dtype", "aten.bmm.dtype")
def _mm_dtype(x: Tensor, y: Tensor, out_dtype: Any) -> Tensor:
    t = own_type(out_dtype)
    return product(as_type(x, t), as_type(y, t))


@row("aten.vdot")
def _vdot(x: Tensor, y: Tensor) -> Tensor:
    return product(_ops.conj(x), y)


def _affine(x: Tensor, y: Tensor, z: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta x + alpha y z, rounded once."""
    wide = opmath(x.dtype)
    if wide.kind == "b":
        raise UnsupportedError("a product of bools")
    bias = None if beta == 0 else as_type(x, wide)
    factors = [None if n == 1 else as_type(n, wide) for n in (alpha, beta)]
    return as_type(_ops.make(_core.affine_product, as_type(y, wide), as_type(z, wide), bias, *factors), x.dtype)


@row("aten.addmm.dtype", "aten.baddbmm.dtype")
def _addmm_dtype(x: Tensor, y: Tensor, z: Tensor, out_dtype: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    t = own_type(out_dtype)
    return _affine(as_type(x, t), as_type(y, t), as_type(z, t), beta, alpha)


@row("aten.addmm", "aten.baddbmm", "aten.addmv")
def _addmm(x: Tensor, y: Tensor, z: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    _alike("mat1 and mat2", y, z)
    _alike("self and mat2", x, z)
    return _affine(x, y, z, beta, alpha)


@row("aten.addbmm")
def _addbmm(x: Tensor, y: Tensor, z: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    batch, rows_, inner = y.shape
    flat = _ops.reshape(_ops.permute_dims(y, (1, 0, 2)), (rows_, batch * inner))
    return _affine(x, flat, _ops.reshape(z, (batch * inner, z.shape[-1])), beta, alpha)


@row("aten.addr")
def _addr(x: Tensor, y: Tensor, z: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _affine(x, _ops.expand_dims(y, 1), _ops.expand_dims(z, 0), beta, alpha)


@row("aten.linear")
def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    _alike("mat1 and mat2", x, weight)
    made = product(x, _ops.transpose(weight))
    return made if bias is None else node("add", made, bias)


@row("aten.outer", "aten.ger")
def _outer(x: Tensor, y: Tensor) -> Tensor:
    return computed(lambda x, y: _ops.make(_core.outer, x, y), x, y)


@row("aten.einsum")
def _einsum(equation: str, xs: Sequence[Tensor], *, path: Any = None) -> Tensor:
    return _ops.einsum(equation, *xs)


@row("aten._trilinear")
def _trilinear(x: Tensor, y: Tensor, z: Tensor, of_x: Sequence[int], of_y: Sequence[int], of_z: Sequence[int], dims: Sequence[int],
               unroll_dim: int = 1) -> Tensor:  # fmt: skip
    """The sum over axes of the product of three tensors, each with axes of extent 1 put in."""
    rank = x.ndim + len(of_x)
    letters = "abcdefghijklmnopqrstuvwxyz"[:rank]
    parts = ["".join(c for i, c in enumerate(letters) if i not in {axis_of(d, rank) for d in expanded}) for expanded in (of_x, of_y, of_z)]
    left = "".join(c for i, c in enumerate(letters) if i not in {axis_of(d, rank) for d in dims})
    return _ops.einsum(f"{','.join(parts)}->{left}", x, y, z)


@row("aten.cross", "aten.linalg_cross")
def _cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    return computed(lambda x, y: _ops.make(_core.cross, x, y, dim), x, y)


# ---- distances


def _distance(gap: Tensor, p: float) -> Tensor:
    """The p-norm along the last axis."""
    return _ops.make(_core.vector_norm, gap, [gap.ndim - 1], float(p), False)


def _distance_backward(gap: Tensor, grad: Tensor, distance: Tensor, p: float) -> Tensor:
    """The derivative of distances by gaps, as PyTorch defines it: 0 where a gap is 0, and each of several greatest gaps has the whole one."""
    if p == math.inf:
        greatest = _ops.equal(_ops.abs(gap), _ops.expand_dims(distance, -1))
        return _ops.where(greatest, _ops.multiply(_sign(gap), _ops.expand_dims(grad, -1)), 0.0)
    found = gradients(lambda gap: _distance(gap, p), [gap], grad)[0]
    assert found is not None
    return _ops.where(_ops.equal(gap, 0), 0.0, found)


def _gaps(x: Tensor, y: Tensor) -> Tensor:
    """Differences of each point of x and each of y."""
    return _ops.subtract(_ops.expand_dims(x, -2), _ops.expand_dims(y, -3))


@row("aten._cdist_forward")
def _cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    if not (isinstance(x.shape[-1], int) and x.shape[-1]):
        batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
        return _ops.zeros((*batch, x.shape[-2], y.shape[-2]), dtype=x.dtype)
    return _distance(_gaps(x, y), p)


@row("aten._cdist_backward")
def _cdist_backward(grad: Tensor, x: Tensor, y: Tensor, p: float, distance: Tensor) -> Tensor:
    each = _distance_backward(_gaps(x, y), grad, distance, p)
    return fold("sum", each, [each.ndim - 2], False)


def _pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the first and of the second point of each pair."""
    import numpy as np

    n = x.shape[0]
    if not isinstance(n, int):
        raise UnsupportedError("pdist of a number of points that is not known")
    first, second = np.triu_indices(n, 1)
    return _ops.asarray(first.astype(np.int64)), _ops.asarray(second.astype(np.int64))


def _gaps_of_pairs(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return _ops.subtract(*(_ops.make(_core.gather, x, at, 0) for at in (first, second)))


@row("aten._pdist_forward")
def _pdist(x: Tensor, p: float = 2) -> Tensor:
    first, second = _pairs(x)
    if not first.size or not x.shape[1]:
        return _ops.zeros((first.size,), dtype=x.dtype)
    return _distance(_gaps_of_pairs(x, first, second), p)


@row("aten._pdist_backward")
def _pdist_backward(grad: Tensor, x: Tensor, p: float, distance: Tensor) -> Tensor:
    first, second = _pairs(x)
    each = _distance_backward(_gaps_of_pairs(x, first, second), grad, distance, p)
    made = _ops.zeros_like(x)
    for at, part in ((first, each), (second, _ops.negative(each))):
        made = _ops.make(_core.scatter_tuples, "add", made, _ops.expand_dims(at, 1), part)
    return made


refuse("this factorization of matrices has no row", "aten.linalg_eig", "aten._linalg_eigvals", "aten.linalg_lu", "aten.linalg_lu_solve", "aten.linalg_pinv",
       "aten.linalg_lstsq", "aten.linalg_ldl_factor_ex", "aten.linalg_householder_product", "aten.lu_unpack", "aten.triangular_solve")  # fmt: skip
