"""What is known of types: promotion, kinds, limits; and of the namespace itself.

Source:   the Array API 2025.12; the table of include/astra/IR/DType.def.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _dtypes
from ._building import NUMBERS
from ._errors import ArgumentError


def result_type(*arrays_and_dtypes: Any) -> _dtypes.DType:
    """The dtype that tensors, dtypes and numbers have together."""
    t: _dtypes.DType | None = None
    kinds = []
    for x in arrays_and_dtypes:
        if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
            kinds.append(_dtypes.kind_of_number(x))
        else:
            own = _dtypes.dtype(x)
            t = own if t is None else _dtypes.promote(t, own)
    if t is None:
        if not kinds:
            raise ArgumentError("result_type needs a tensor, a dtype or a number")
        return _dtypes.default_of(kinds)
    for kind in kinds:
        t = _dtypes.with_number(t, kind)
    return t


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or a tensor's, promotes to another one: no value changes."""
    source, target = _dtypes.dtype(from_), _dtypes.dtype(to)
    try:
        return _dtypes.promote(source, target) is target
    except TypeError:
        return False


_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c",
          "numeric": "iufc"}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: another dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", or a tuple of them."""
    t = _dtypes.dtype(dtype)
    if isinstance(kind, tuple):
        return builtins.any(isdtype(t, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return t.kind in _KINDS[kind]
    if isinstance(kind, str) and kind not in _dtypes._BY_NAME:
        raise ArgumentError(f"there is no kind '{kind}' of dtypes; there are {', '.join(_KINDS)}")
    return _dtypes.dtype(kind) is t


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a float type; of a complex one those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _dtypes.DType


@dataclass(frozen=True)
class IntegerInfo:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: _dtypes.DType


# Bits of the exponent and of the mantissa without its leading one.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


def finfo(type: Any, /) -> FloatInfo:
    """Limits of a float or complex dtype, or of a tensor's."""
    t = _dtypes.dtype(type)
    if t.kind == "c":
        t = _dtypes.DTYPES["float32" if t.bits == 64 else "float64"]
    if t.name not in _FLOATS:
        raise ArgumentError(f"finfo is of floats; {t.name} is none")
    exponent, mantissa = _FLOATS[t.name]
    most = (1 << exponent - 1) - 1
    greatest = (2 - 2.0**-mantissa) * 2.0**most
    return FloatInfo(t.bits, 2.0**-mantissa, greatest, -greatest, 2.0 ** (1 - most), t)


def iinfo(type: Any, /) -> IntegerInfo:
    """Limits of an integer dtype, or of a tensor's."""
    t = _dtypes.dtype(type)
    if t.kind not in "iu":
        raise ArgumentError(f"iinfo is of integers; {t.name} is none")
    half = 1 << t.bits - 1
    return IntegerInfo(t.bits, half - 1, -half, t) if t.kind == "i" else IntegerInfo(t.bits, 2 * half - 1, 0, t)


class NamespaceInfo:
    """What the namespace can do, as the Array API asks it."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional, and is there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where tensors are made."""
        return "cpu"

    def devices(self) -> tuple[Any, ...]:
        """Where tensors may be."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, _dtypes.DType]:
        """What numbers become by themselves."""
        d = _dtypes.DEFAULT
        return {"real floating": d["f"], "complex floating": d["c"], "integral": d["i"], "indexing": d["i"]}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _dtypes.DType]:
        """The dtypes of the standard, of a kind or a tuple of kinds."""
        standard = {n: t for n, t in _dtypes.DTYPES.items() if t.kind in "biufc" and n not in ("float16", "bfloat16")}
        return standard if kind is None else {n: t for n, t in standard.items() if isdtype(t, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """What the namespace can do, as the Array API asks it."""
    return NamespaceInfo()


__all__ = ["__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
