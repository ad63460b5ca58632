"""Linear algebra: `astra.linalg`, the extension of the Array API and what NumPy's users look for beside it.

Takes:    matrices [..., m, n] with known m and n; what is before them is a batch. Integers become float32. Complex ones as real ones of
          twice the size, but in det, which takes them as they are; lu, qr, eigh, svd and solve_triangular refuse them.
Gives:    the same bits on every target; for a matrix of a batch those that it has alone.
Keeps:    failure is data: a matrix that cannot be inverted or factorized gives NaNs or infinities, never an exception.
Does not: have other functions of complex matrices, nor eigenvalues of matrices that are not symmetric (eig, eigvals).
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from . import _core
from ._building import axes_of, floating, make, make_all, operands
from ._creation import zeros
from ._elementwise import abs, floor_divide
from ._errors import ArgumentError, ShapeError, UnsupportedError
from ._inspection import finfo
from ._manipulation import broadcast_shapes, broadcast_to, expand_dims, matrix_transpose, moveaxis, squeeze
from ._products import matmul, tensordot, vecdot
from ._products import outer as _outer
from ._reductions import sum as _sum
from ._tensor import Tensor, asarray


def _matrix(x: Any, name: str, square: bool = False, complex: bool = False) -> Tensor:
    x = floating(x)
    if x.dtype.kind == "c" and not complex:
        raise UnsupportedError(f"linalg.{name} of complex matrices is not supported")
    if x.ndim < 2:
        raise ShapeError(f"linalg.{name} takes matrices; this tensor has {x.ndim} axes")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"linalg.{name} takes square matrices, not {x.shape[-2]} x {x.shape[-1]}")
    return x


def _several(function: Any, *args: Any) -> list[Tensor]:
    return list(make_all(function, *args))


def _by_real(f: Callable[..., Tensor], *xs: Tensor) -> Tensor:
    """f of matrices; of complex ones by real ones of twice the size."""
    if xs[0].dtype.kind != "c":
        return f(*xs)
    return make(_core.complex_of_real_matrix, f(*(make(_core.real_of_complex_matrix, x) for x in xs)))


def _every_other(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Values of matrices; of complex ones those of the real ones, of which each comes twice."""
    return f(x) if x.dtype.kind != "c" else f(make(_core.real_of_complex_matrix, x))[..., ::2]


def _is_empty(x: Tensor) -> bool:
    return x.shape[-1] == 0 or x.shape[-2] == 0


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

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


class LUResult(NamedTuple):
    """x = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """L with x = L L^T of the lower triangle, or, upper, U with x = U^T U; NaNs where x is not positive definite."""
    x = _matrix(x, "cholesky", True, complex=True)
    return x if _is_empty(x) else _by_real(lambda m: _several(_core.cholesky, m, upper)[0], x)


def lu(x: Any, /) -> LUResult:
    """x = P L U with partial pivoting."""
    return LUResult(*_several(_core.lu, _matrix(x, "lu"))[:3])


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """x = Q R by reflections; mode: "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode is 'reduced' or 'complete', not {mode!r}")
    return QRResult(*_several(_core.qr, _matrix(x, "qr"), mode == "complete"))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """y of x1 y = x2, by LU; x2 with one axis is a vector."""
    x1, x2 = operands(_matrix(x1, "solve", True, complex=True), floating(x2))
    columns = expand_dims(x2, 1) if x2.ndim == 1 else x2
    if _is_empty(x1) or _is_empty(columns):
        if x1.shape[-1] != columns.shape[-2]:
            raise ShapeError(f"a system of {x1.shape[-1]} equations has no right side of {columns.shape[-2]} rows")
        stack = broadcast_shapes(x1.shape[:-2], columns.shape[:-2])
        out = zeros((*stack, *columns.shape[-2:]), dtype=x1.dtype)
    else:
        out = _by_real(lambda m, y: _several(_core.solve, m, y)[0], x1, columns)
    return squeeze(out, -1) if x2.ndim == 1 else out


def solve_triangular(x1: Any, x2: Any, /, *, upper: bool = False, transposed: bool = False, unit: bool = False) -> Tensor:
    """y of x1 y = x2 by substitution, of one triangle of x1."""
    x1, x2 = operands(_matrix(x1, "solve_triangular", True), floating(x2))
    if x2.ndim == 1:
        return squeeze(make(_core.triangular_solve, x1, expand_dims(x2, 1), False, upper, transposed, unit), -1)
    return make(_core.triangular_solve, x1, x2, False, upper, transposed, unit)


def inv(x: Any, /) -> Tensor:
    """The inverse; not finite where there is none."""
    x = _matrix(x, "inv", True, complex=True)
    return x if _is_empty(x) else _by_real(lambda m: _several(_core.inverse, m)[0], x)


def det(x: Any, /) -> Tensor:
    """The determinant, by elimination."""
    return make(_core.determinant, _matrix(x, "det", True, complex=True))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign of the determinant and logarithm of its magnitude."""
    return SlogdetResult(*_several(_core.log_determinant, _matrix(x, "slogdet", True, complex=True)))


def matrix_power(x: Any, n: int, /) -> Tensor:
    """x to an integer power by squaring; a negative one of the inverse."""
    x = _matrix(x, "matrix_power", True, complex=True)
    return x if _is_empty(x) else _by_real(lambda m: make(_core.matrix_power, m, int(n)), x)


def expm(x: Any, /) -> Tensor:
    """e^x of matrices."""
    x = _matrix(x, "expm", True, complex=True)
    return x if _is_empty(x) else _by_real(lambda m: make(_core.matrix_exp, m), x)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices, by their lower triangle."""
    return EighResult(*_several(_core.eigh, _matrix(x, "eigh", True), False)[:2])


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues, ascending, of symmetric (complex: Hermitian) matrices."""
    x = _matrix(x, "eigvalsh", True, complex=True)
    return _every_other(lambda m: make(_core.eigvalsh, m, False), x)


def eig(x: Any, /) -> Any:
    """Not supported: eigenvalues of matrices that are not symmetric."""
    raise UnsupportedError("linalg.eig is not supported: eigenvalues are of symmetric matrices (linalg.eigh)")


def eigvals(x: Any, /) -> Any:
    """Not supported: eigenvalues of matrices that are not symmetric."""
    raise UnsupportedError("linalg.eigvals is not supported: eigenvalues are of symmetric matrices (linalg.eigvalsh)")


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values, descending, with their vectors."""
    return SVDResult(*_several(_core.svd, _matrix(x, "svd"), full_matrices)[:3])


def svdvals(x: Any, /) -> Tensor:
    """Singular values, descending."""
    return _every_other(lambda m: make(_core.svdvals, m), _matrix(x, "svdvals", complex=True))


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse: singular values not above rtol times the greatest count as 0."""
    x = _matrix(x, "pinv", complex=True)
    if _is_empty(x):
        return matrix_transpose(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    if isinstance(rtol, (int, float)):
        return _by_real(lambda m: make(_core.pinv, m, float(rtol)), x)
    x, tolerance = _with_tolerance(x, rtol)
    return _by_real(lambda m: make(_core.pinv_within, m, tolerance), x)


def _with_tolerance(x: Tensor, rtol: Any) -> tuple[Tensor, Tensor]:
    """Matrices and a tolerance for each, of which either may be repeated."""
    tolerance = asarray(rtol)
    return broadcast_to(x, (*broadcast_shapes(x.shape[:-2], tolerance.shape), *x.shape[-2:])), tolerance


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above rtol times the greatest."""
    x = _matrix(x, "matrix_rank", complex=True)
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    composite: Any = _core.matrix_rank
    tolerance: Any = float(rtol) if isinstance(rtol, (int, float)) else None
    if tolerance is None:
        composite = _core.matrix_rank_within
        x, tolerance = _with_tolerance(x, rtol)
    if x.dtype.kind == "c":  # each singular value of the real one comes twice
        return floor_divide(make(composite, make(_core.real_of_complex_matrix, x), tolerance), 2)
    return make(composite, x, tolerance)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    x = floating(x)
    if x.dtype.kind == "c" and ord in ("nuc", 2, -2):
        values = svdvals(x)
        out = values[..., 0] if ord == 2 else values[..., -1] if ord == -2 else _sum(values, axis=-1)
        return expand_dims(out, (-2, -1)) if keepdims else out
    x = abs(x) if x.dtype.kind == "c" else x
    return make(_core.matrix_norm, _matrix(x, "matrix_norm"), ord if isinstance(ord, str) else f"{ord:g}", keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """(sum |x|^ord)^(1 / ord) along axes (None: all); ord inf: the greatest magnitude, -inf: the least, 0: how many are not 0."""
    x = floating(x)
    x = abs(x) if x.dtype.kind == "c" else x
    return make(_core.vector_norm, x, axes_of(axis, x.ndim), float(ord), keepdims)


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
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "kron", "lu", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
    "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
