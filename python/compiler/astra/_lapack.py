"""Linear algebra by a LAPACK of the host: what `backend="vendor"` of `astra.linalg` calls.

Takes:    float32 and float64 matrices; libastra_lapack.so.1 beside this package, which opens a LAPACK (docs/linalg.md).
Gives:    calls of functions of the program named lapack.cholesky ..., which are registered when the first one is made.
Keeps:    nothing is opened until somebody asks. No call is declared deterministic: strict bundles have none.
Does not: know devices: a call on a GPU copies to the host and back.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from . import _core
from ._errors import ArgumentError, UnsupportedError
from ._external import external, register
from ._tensor import Tensor

_NAMES = ("cholesky", "lu_factor", "solve", "inverse", "qr", "eigh", "svd", "eig")
_library: Any = None


class _Diag(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int32), ("text", ctypes.c_char * 500)]


def register_lapack(library: str | None = None) -> None:
    """Opens a LAPACK with Fortran's names and 32-bit integers, and registers the functions lapack.cholesky ... that bundles call by these names.

    library   its file; None: what the environment variable ASTRA_LAPACK names, or libopenblas.so.0, or liblapack.so.3. The first one stays"""
    global _library
    if _library is not None:
        return
    beside = Path(_core.__file__).parent / "libastra_lapack.so.1"
    try:
        functions = ctypes.CDLL(str(beside if beside.exists() else beside.name))
    except OSError as error:
        raise UnsupportedError(f"backend='vendor' needs libastra_lapack.so.1: {error}") from None
    diag = _Diag(ctypes.sizeof(_Diag))
    if functions.astra_lapack_open(library.encode() if library else None, ctypes.byref(diag)):
        raise UnsupportedError(diag.text.decode(errors="replace"))
    for name in _NAMES:
        register(f"lapack.{name}", getattr(functions, f"astra_lapack_{name}"))
    _library = functions


def is_vendor(backend: str | None, x: Tensor, name: str) -> bool:
    """Whether a LAPACK is asked for."""
    if backend is None:
        return False
    if backend in ("cusolver", "hipsolver"):
        raise UnsupportedError(f"backend='{backend}' is not supported: backend='vendor' calls the LAPACK of the host, on a GPU too")
    if backend != "vendor":
        raise ArgumentError(f"backend is None or 'vendor', not {backend!r}")
    if x.dtype.name not in ("float32", "float64"):
        raise UnsupportedError(f"linalg.{name} by a LAPACK takes float32 and float64, not {x.dtype.name}")
    return True


def lapack(name: str, *args: Tensor, out: list[tuple[Any, ...]]) -> list[Tensor]:
    """The results of a function: `out` has for each the axes behind the batch, and "i64" behind them where it is no float."""
    register_lapack()
    x, batch = args[0], args[0].shape[:-2]
    specs = [_spec((*batch, *(e for e in axes if e != "i64")), "int64" if "i64" in axes else x.dtype.name) for axes in out]
    return list(external(f"lapack.{name}", specs, batched=True)(*args))


def _spec(shape: tuple[Any, ...], name: str) -> Any:
    from ._trace import spec

    return spec(shape, name)
