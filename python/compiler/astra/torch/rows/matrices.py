"""Factorizations of real matrices: composites of linear algebra (docs/linalg.md).

Keeps:    `info` and pivots as LAPACK counts them, from 1. Failure is data: nothing is raised. Vectors of eigenvalues and singular values have the
          signs of the composites, which need not be PyTorch's.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from ... import _core, _ops
from ..._errors import UnsupportedError
from ..._tensor import Tensor
from .registry import row
from .types import I32, as_type


def _real(x: Tensor) -> Tensor:
    if x.dtype.kind != "f":
        raise UnsupportedError(f"a factorization of {x.dtype.name} matrices")
    return x


def _several(function: Any, *args: Any) -> list[Tensor]:
    return [t for t in _ops.make_several(function, *args) if t is not None]


def _factored(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and U in one matrix, pivots and info as LAPACK has them."""
    packed, pivots, _, info = _several(_core.lu_factor, _real(x))
    return packed, as_type(_ops.add(pivots, 1), I32), as_type(info, I32)


@row("aten.linalg_cholesky_ex")
def _cholesky(x: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factor, info = _several(_core.cholesky, _real(x), upper)
    return factor, as_type(info, I32)


@row("aten.linalg_lu_factor_ex")
def _lu_factor(x: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    if not pivot:
        raise UnsupportedError("LU without pivots")
    return _factored(x)


@row("aten.linalg_inv_ex")
def _inverse(x: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    value, info = _several(_core.inverse, _real(x))
    return value, as_type(info, I32)


@row("aten._linalg_solve_ex")
def _solve(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and tuple(map(str, b.shape)) == tuple(map(str, a.shape[:-1])))
    y = _ops.expand_dims(b, -1) if vector else b
    a_, y = (a, y) if left else (_ops.matrix_transpose(a), _ops.matrix_transpose(y))
    value = _several(_core.solve, _real(a_), y)[0]
    value = value if left else _ops.matrix_transpose(value)
    return _ops.squeeze(value, -1) if vector else value, *_factored(a)


@row("aten.linalg_solve_triangular")
def _solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    return _ops.make(_core.triangular_solve, _real(a), b, not left, upper, False, unitriangular)


@row("aten._linalg_det")
def _det(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _ops.make(_core.determinant, _real(x)), *_factored(x)[:2]


@row("aten._linalg_slogdet")
def _slogdet(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sign, logarithm = _several(_core.log_determinant, _real(x))
    return sign, logarithm, *_factored(x)[:2]


@row("aten.linalg_qr")
def _qr(x: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    if mode == "r":
        raise UnsupportedError("QR without Q")
    q, r = _several(_core.qr, _real(x), mode == "complete")
    return q, r


@row("aten._linalg_eigh")
def _eigh(x: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    values, vectors = _several(_core.eigh, _real(x), UPLO.upper() == "U")[:2]
    return values, vectors if compute_v else _ops.zeros((0,), dtype=x.dtype)


@row("aten._linalg_svd")
def _svd(x: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    u, s, vh = _several(_core.svd, _real(x), full_matrices)[:3]
    nothing = _ops.zeros((0,), dtype=x.dtype)
    return (u, s, vh) if compute_uv else (nothing, s, nothing)


@row("aten.linalg_matrix_exp")
def _matrix_exp(x: Tensor) -> Tensor:
    return _ops.make(_core.matrix_exp, _real(x))


@row("aten._linalg_check_errors")
def _check(info: Tensor, name: str, *, is_matrix: bool) -> None:
    """Nothing: failure is data."""


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Captures without the tokens that put PyTorch's checks of factorizations in an order: there are no checks here."""
    effect = torch._library.simple_registry.singleton.find("aten::_linalg_check_errors").effect
    kept = effect._effect
    effect._effect = None
    try:
        yield
    finally:
        effect._effect = kept
