"""Linear algebra: `astra.linalg`, the extension of the Array API and what NumPy's users look for beside it.

Takes:    matrices [..., m, n] with known m and n; what is before them is a batch. Integers become float32. Complex ones in every
          function: where the real one has a transpose, theirs has the adjoint.
Gives:    the same bits on every target; for a matrix of a batch those that it has alone.
          backend="vendor" asks a LAPACK of the host instead, whose bits are its own.
Keeps:    failure is data: a matrix that cannot be inverted or factorized gives NaNs or infinities, never an exception.
Does not: have derivatives of what a LAPACK gave (backend="vendor").
"""

from __future__ import annotations

import operator
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._building import axes_of, floating, make, make_all, op, operands
from ._creation import eye, ones, zeros
from ._errors import ArgumentError, ShapeError, UnsupportedError
from ._inspection import finfo
from ._lapack import is_vendor, lapack, register_lapack
from ._manipulation import broadcast_shapes, broadcast_to, expand_dims, matrix_transpose, moveaxis, squeeze
from ._products import matmul, tensordot, vecdot
from ._products import outer as _outer
from ._reductions import sum as _sum
from ._tensor import Tensor, asarray


def _matrix(x: Any, name: str, square: bool = False) -> Tensor:
    x = floating(x)
    if x.ndim < 2:
        raise ShapeError(f"linalg.{name} takes matrices; this tensor has {x.ndim} axes")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"linalg.{name} takes square matrices, not {x.shape[-2]} x {x.shape[-1]}")
    return x


def _several(function: Any, *args: Any) -> list[Tensor]:
    return list(make_all(function, *args))


def _checked(names: Any, *made: Tensor) -> CheckedResult:
    """Tensors under names, and the info, the last one."""
    return CheckedResult(names(*made[:-1]), made[-1])


def _of_columns(f: Callable[[Tensor, Tensor], Tensor], x1: Any, x2: Any) -> Tensor:
    """f of matrices and right sides, of which one with one axis is a vector."""
    x1, x2 = operands(x1, floating(x2))
    columns = expand_dims(x2, 1) if x2.ndim == 1 else x2
    out = _no_solution(x1, columns) if _is_empty(x1) or _is_empty(columns) else f(x1, columns)
    return squeeze(out, -1) if x2.ndim == 1 else out


def _no_solution(x1: Tensor, columns: Tensor) -> Tensor:
    """The solution of systems that have no elements."""
    if x1.shape[-1] != columns.shape[-2]:
        raise ShapeError(f"a system of {x1.shape[-1]} equations has no right side of {columns.shape[-2]} rows")
    return zeros((*broadcast_shapes(x1.shape[:-2], columns.shape[:-2]), *columns.shape[-2:]), dtype=x1.dtype)


def _is_empty(x: Tensor) -> bool:
    return x.shape[-1] == 0 or x.shape[-2] == 0


def _blank(x: Tensor, *extents: int, dtype: Any = None) -> Tensor:
    """Zeros for each matrix of a batch."""
    return zeros((*x.shape[:-2], *extents), dtype=x.dtype if dtype is None else dtype)


def _unit(x: Tensor, n: int) -> Tensor:
    """The identity for each matrix of a batch."""
    return broadcast_to(eye(n, dtype=x.dtype), (*x.shape[:-2], n, n)) if n else _blank(x, 0, 0)


def _without_elements(name: str, x: Tensor) -> list[Tensor]:
    """What a factorization of matrices without elements gives, as NumPy's and SciPy's do, the info behind it."""
    m, n = x.shape[-2:]
    real, info = finfo(x.dtype).dtype, _blank(x, dtype="int64")
    values = _blank(x, 0, dtype=real)
    if name == "lu":
        return [_unit(x, m), _blank(x, m, 0), _blank(x, 0, n), info]
    if name == "lu_factor":
        return [x, _blank(x, 0, dtype="int64"), _blank(x, 0, dtype="int64"), info]
    if name == "qr":
        return [_blank(x, m, 0), _blank(x, 0, n)]
    if name == "qr_complete":
        return [_unit(x, m), x]
    if name == "eigh":
        return [values, x, info]
    if name == "eig":
        t = "complex64" if real.name == "float32" else "complex128"
        return [_blank(x, 0, dtype=t), _blank(x, 0, 0, dtype=t), info]
    if name == "svd":
        return [_blank(x, m, 0), values, _blank(x, 0, n), info]
    if name == "svd_full":
        return [_unit(x, m), values, _unit(x, n), info]
    if name == "log_determinant":
        return [ones(x.shape[:-2], dtype=x.dtype), _blank(x, dtype=real)]
    return [x, info]  # cholesky, inverse


def _factors(name: str, x: Tensor, *args: Any, kind: str = "") -> list[Tensor]:
    """What the function of the core of this name gives."""
    return _without_elements(kind or name, x) if _is_empty(x) else _several(getattr(_core, name), x, *args)


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """x = Q R."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Sign of a determinant and logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """x = U diag(S) Vh, S descending."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class CheckedResult(NamedTuple):
    """A result, that of the function without _ex, and for each matrix 0 or where it failed, as LAPACK's info: of Cholesky the first leading
    matrix that is not positive definite, of LU, inv and solve the first pivot that is 0, both counted from 1; of eigh, eig, svd and lstsq 1
    where the matrix is not finite or the rounds were not enough."""

    result: Any
    info: Tensor


class LUFactorResult(NamedTuple):
    """L (below the diagonal, without its ones) and U of x with exchanged rows: step i exchanged rows i and pivots[i]."""

    LU: Tensor
    pivots: Tensor


class LstsqResult(NamedTuple):
    """The solution, squares of the lengths that are left (of each right side), the rank, singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class LUResult(NamedTuple):
    """x = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor


def cholesky(x: Any, /, *, upper: bool = False, backend: str | None = None) -> Tensor:
    """L with x = L L^H of the lower triangle, or, upper, U with x = U^H U; NaNs where x is not positive definite."""
    x = _matrix(x, "cholesky", True)
    if is_vendor(backend, x, "cholesky"):
        turned = (lambda y: matrix_transpose(y)) if upper else (lambda y: y)
        return turned(lapack("cholesky", turned(x), out=[x.shape[-2:], ("i64",)])[0])
    return _factors("cholesky", x, upper)[0]


def cholesky_ex(x: Any, /, *, upper: bool = False) -> CheckedResult:
    """cholesky, and where it failed."""
    return CheckedResult(*_factors("cholesky", _matrix(x, "cholesky_ex", True), upper))


def inv_ex(x: Any, /) -> CheckedResult:
    """inv, and where it failed."""
    return CheckedResult(*_factors("inverse", _matrix(x, "inv_ex", True)))


def solve_ex(x1: Any, x2: Any, /) -> CheckedResult:
    """solve, and where it failed; x2 with one axis is a vector."""
    x1, x2 = operands(_matrix(x1, "solve_ex", True), floating(x2))
    columns = expand_dims(x2, 1) if x2.ndim == 1 else x2
    if _is_empty(x1) or _is_empty(columns):
        out = _no_solution(x1, columns)
        info = _blank(out, dtype="int64")
    else:
        out, info = _several(_core.solve, x1, columns)[:2]
    return CheckedResult(squeeze(out, -1) if x2.ndim == 1 else out, info)


def lu(x: Any, /) -> LUResult:
    """x = P L U with partial pivoting."""
    return LUResult(*_factors("lu", _matrix(x, "lu"))[:3])


def lu_ex(x: Any, /) -> CheckedResult:
    """lu, and where it failed."""
    return _checked(LUResult, *_factors("lu", _matrix(x, "lu_ex")))


def lu_factor(x: Any, /, *, backend: str | None = None) -> LUFactorResult:
    """L and U in one matrix, and the exchanges of rows, counted from 0."""
    x = _matrix(x, "lu_factor")
    if is_vendor(backend, x, "lu_factor"):
        return LUFactorResult(*lapack("lu_factor", x, out=[x.shape[-2:], (min(x.shape[-2:]), "i64"), ("i64",)])[:2])
    return lu_factor_ex(x).result


def lu_factor_ex(x: Any, /) -> CheckedResult:
    """lu_factor, and where it failed."""
    packed, pivots, _, info = _factors("lu_factor", _matrix(x, "lu_factor_ex"))
    return CheckedResult(LUFactorResult(packed, pivots), info)


def lu_solve(factors: Any, x2: Any, /) -> Tensor:
    """y of x1 y = x2 with what lu_factor gave of x1; x2 with one axis is a vector. NaN where a pivot names no row."""
    packed, pivots = factors
    packed = _matrix(packed, "lu_solve", True)
    pivots, n = asarray(pivots), packed.shape[-1]
    if pivots.ndim == 0 or pivots.shape[-1] != n:
        raise ShapeError(f"linalg.lu_solve of {n} x {n} matrices takes {n} pivots each, not a tensor of shape {pivots.shape}")
    return _of_columns(lambda m, y: make(_core.lu_solve, m, make(_core.order_of_pivots, pivots, n), y), packed, x2)


def cholesky_solve(factor: Any, x2: Any, /, *, upper: bool = False) -> Tensor:
    """y of x1 y = x2 with the factor that cholesky gave of x1; x2 with one axis is a vector."""
    return _of_columns(lambda m, y: make(_core.cholesky_solve, m, y, upper), _matrix(factor, "cholesky_solve", True), x2)


def lstsq(x1: Any, x2: Any, /, *, rtol: float | None = None) -> LstsqResult:
    """The shortest y for which x1 y - x2 is shortest, by singular values, of which those not above rtol times the greatest count as 0."""
    return lstsq_ex(x1, x2, rtol=rtol).result


def lstsq_ex(x1: Any, x2: Any, /, *, rtol: float | None = None) -> CheckedResult:
    """lstsq, and where it failed."""
    x1, x2 = operands(_matrix(x1, "lstsq"), floating(x2))
    columns = expand_dims(x2, 1) if x2.ndim == 1 else x2
    if _is_empty(x1) or _is_empty(columns):
        if x1.shape[-2] != columns.shape[-2]:
            raise ShapeError(f"{x1.shape[-2]} equations have no right side of {columns.shape[-2]} rows")
        raise UnsupportedError("linalg.lstsq of matrices without elements is not supported")
    y, left, rank, values, info = _several(_core.least_squares, x1, columns, None if rtol is None else float(rtol))
    if x2.ndim == 1:
        y, left = squeeze(y, -1), squeeze(left, -1)
    return CheckedResult(LstsqResult(y, left, rank, values), info)


def qr(x: Any, /, *, mode: str = "reduced", backend: str | None = None) -> QRResult:
    """x = Q R by reflections; mode: "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode is 'reduced' or 'complete', not {mode!r}")
    x = _matrix(x, "qr")
    if is_vendor(backend, x, "qr"):
        if mode == "complete":
            raise UnsupportedError("a complete QR by a LAPACK is not supported")
        m, n = x.shape[-2:]
        return QRResult(*lapack("qr", x, out=[(m, min(m, n)), (min(m, n), n)]))
    return QRResult(*_factors("qr", x, mode == "complete", kind="qr_complete" if mode == "complete" else "qr"))


def solve(x1: Any, x2: Any, /, *, backend: str | None = None) -> Tensor:
    """y of x1 y = x2, by LU; x2 with one axis is a vector."""
    x1, x2 = operands(_matrix(x1, "solve", True), floating(x2))
    columns = expand_dims(x2, 1) if x2.ndim == 1 else x2
    if _is_empty(x1) or _is_empty(columns):
        out = _no_solution(x1, columns)
    elif is_vendor(backend, x1, "solve"):
        stack = broadcast_shapes(x1.shape[:-2], columns.shape[:-2])
        x1, columns = (broadcast_to(x, (*stack, *x.shape[-2:])) for x in (x1, columns))
        out = lapack("solve", x1, columns, out=[columns.shape[-2:], ("i64",)])[0]
    else:
        out = _several(_core.solve, x1, columns)[0]
    return squeeze(out, -1) if x2.ndim == 1 else out


def solve_triangular(x1: Any, x2: Any, /, *, upper: bool = False, transposed: bool = False, unit: bool = False) -> Tensor:
    """y of x1 y = x2 by substitution, of one triangle of x1."""
    x1 = _matrix(x1, "solve_triangular", True)
    return _of_columns(lambda m, y: make(_core.triangular_solve, m, y, False, upper, transposed, unit), x1, x2)


def inv(x: Any, /, *, backend: str | None = None) -> Tensor:
    """The inverse; not finite where there is none."""
    x = _matrix(x, "inv", True)
    if is_vendor(backend, x, "inv"):
        return lapack("inverse", x, out=[x.shape[-2:], ("i64",)])[0]
    return _factors("inverse", x)[0]


def det(x: Any, /) -> Tensor:
    """The determinant, by elimination."""
    return make(_core.determinant, _matrix(x, "det", True))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign of the determinant and logarithm of its magnitude."""
    return SlogdetResult(*_factors("log_determinant", _matrix(x, "slogdet", True)))


def matrix_power(x: Any, n: int, /) -> Tensor:
    """x to an integer power by squaring; a negative one of the inverse."""
    x = _matrix(x, "matrix_power", True)
    try:
        exponent = operator.index(n)
    except TypeError:
        raise ArgumentError(f"the exponent of linalg.matrix_power is an integer, not {n!r}") from None
    if not -(2**63) < exponent < 2**63:
        raise ArgumentError("the exponent of linalg.matrix_power has more than 64 bits")
    return x if _is_empty(x) else make(_core.matrix_power, x, exponent)


def expm(x: Any, /) -> Tensor:
    """e^x of matrices, also as matrix_exp."""
    x = _matrix(x, "expm", True)
    return x if _is_empty(x) else make(_core.matrix_exp, x)


matrix_exp = expm  # as PyTorch calls it


def eigh(x: Any, /, *, backend: str | None = None) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of symmetric (complex: Hermitian) matrices, by their lower triangle."""
    x = _matrix(x, "eigh", True)
    if is_vendor(backend, x, "eigh"):
        return EighResult(*lapack("eigh", x, out=[x.shape[-1:], x.shape[-2:], ("i64",)])[:2])
    return eigh_ex(x).result


def eigh_ex(x: Any, /) -> CheckedResult:
    """eigh, and where it failed."""
    return _checked(EighResult, *_factors("eigh", _matrix(x, "eigh_ex", True), False))


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues, ascending, of symmetric (complex: Hermitian) matrices."""
    x = _matrix(x, "eigvalsh", True)
    return _without_elements("eigh", x)[0] if _is_empty(x) else make(_core.eigvalsh, x, False)


def eig(x: Any, /, *, backend: str | None = None) -> EigResult:
    """Eigenvalues, in no promised order, and eigenvectors of length 1, whose greatest component is real and positive; both complex."""
    x = _matrix(x, "eig", True)
    if is_vendor(backend, x, "eig"):
        re, im, v, w = lapack("eig", x, out=[x.shape[-1:], x.shape[-1:], x.shape[-2:], x.shape[-2:], ("i64",)])[:4]
        return EigResult(op("complex", re, im), op("complex", v, w))
    return eig_ex(x).result


def eig_ex(x: Any, /) -> CheckedResult:
    """eig, and where it failed."""
    return _checked(EigResult, *_factors("eig", _matrix(x, "eig_ex", True)))


def eigvals(x: Any, /) -> Tensor:
    """Eigenvalues, complex, in no promised order."""
    return _factors("eigvals", _matrix(x, "eigvals", True), kind="eig")[0]


def svd(x: Any, /, *, full_matrices: bool = True, backend: str | None = None) -> SVDResult:
    """Singular values, descending, with their vectors."""
    x = _matrix(x, "svd")
    if is_vendor(backend, x, "svd"):
        m, n = x.shape[-2:]
        k = min(m, n)
        return SVDResult(*lapack("svd", x, out=[(m, m if full_matrices else k), (k,), (n if full_matrices else k, n), ("i64",)])[:3])
    return svd_ex(x, full_matrices=full_matrices).result


def svd_ex(x: Any, /, *, full_matrices: bool = True) -> CheckedResult:
    """svd, and where it failed."""
    return _checked(SVDResult, *_factors("svd", _matrix(x, "svd_ex"), full_matrices, kind="svd_full" if full_matrices else "svd"))


def svdvals(x: Any, /) -> Tensor:
    """Singular values, descending."""
    x = _matrix(x, "svdvals")
    return _without_elements("svd", x)[1] if _is_empty(x) else make(_core.svdvals, x)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse: singular values not above rtol times the greatest count as 0."""
    x = _matrix(x, "pinv")
    if _is_empty(x):
        return matrix_transpose(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    if isinstance(rtol, (int, float)):
        return make(_core.pinv, x, float(rtol))
    return make(_core.pinv_within, *_with_tolerance(x, rtol))


def _with_tolerance(x: Tensor, rtol: Any) -> tuple[Tensor, Tensor]:
    """Matrices and a tolerance for each, of which either may be repeated."""
    tolerance = asarray(rtol)
    return broadcast_to(x, (*broadcast_shapes(x.shape[:-2], tolerance.shape), *x.shape[-2:])), tolerance


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above rtol times the greatest."""
    x = _matrix(x, "matrix_rank")
    if _is_empty(x):
        return _blank(x, dtype="int64")
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    if isinstance(rtol, (int, float)):
        return make(_core.matrix_rank, x, float(rtol))
    return make(_core.matrix_rank_within, *_with_tolerance(x, rtol))


def _order(ord: Any) -> float:
    """The order of a norm, which was to be a number."""
    if not isinstance(ord, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"the order of a norm is a number, or of matrices also 'fro' or 'nuc', not {ord!r}")
    return float(ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return make(_core.matrix_norm, _matrix(x, "matrix_norm"), ord if isinstance(ord, str) else f"{_order(ord):g}", keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """(sum |x|^ord)^(1 / ord) along axes (None: all); ord inf: the greatest magnitude, -inf: the least, 0: how many are not 0."""
    x = floating(x)
    return make(_core.vector_norm, x, axes_of(axis, x.ndim), _order(ord), keepdims)


def norm(x: Any, /, *, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """NumPy's: of two axes a norm of matrices where ord is given, else a norm of vectors."""
    x = floating(x)
    axes = axes_of(axis, x.ndim)
    if ord is None or len(axes) == 1:
        return vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentError("a norm of matrices goes along two axes")
    out = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return expand_dims(out, tuple(axes)) if keepdims else out


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    x1, x2 = operands(x1, x2)
    n = min(x1.ndim, x2.ndim)
    if not -n <= axis < n:
        raise ArgumentError(f"axis {axis} is outside of tensors of {x1.ndim} and {x2.ndim} axes")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ShapeError(f"cross is of vectors of three elements, not {x1.shape[axis]} and {x2.shape[axis]}")
    return make(_core.cross, x1, x2, axis)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The products of each element of a vector and each of another one."""
    x1, x2 = asarray(x1), asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"linalg.outer takes vectors, not tensors of {x1.ndim} and {x2.ndim} axes")
    return _outer(x1, x2)


def kron(x1: Any, x2: Any, /) -> Tensor:
    """The Kronecker product of matrices."""
    return make(_core.kron, *operands(x1, x2))


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements [..., i, i + offset]."""
    x = asarray(x)
    if x.ndim < 2:
        raise ShapeError(f"a diagonal is of matrices; this tensor has {x.ndim} axes")
    return make(_core.diagonal, x, int(offset))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal; of small integers in 64 bits."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


__all__ = [
    "cholesky", "cholesky_ex", "cholesky_solve", "cross", "det", "diagonal", "eig", "eig_ex", "eigh", "eigh_ex", "eigvals", "eigvalsh", "expm", "inv", "inv_ex", "kron",
    "lstsq", "lstsq_ex", "lu", "lu_ex", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "norm",
    "outer", "pinv", "qr", "register_lapack", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svd_ex", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
