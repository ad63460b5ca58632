"""Element types.

Takes:    names ("f32", "float32"), NumPy's dtypes, types of Python.
Gives:    DType objects, the lattice of promotion, limits.
Source:   the table of include/astra/IR/DType.def; names of the Array API 2025.12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from astra_rt._convert import NARROW, NUMPY, ml_dtypes, name_of

from . import _core


class DType:
    """An element type. It equals its names ("f32", "float32") and NumPy's dtype."""

    __slots__ = ("name", "code", "kind", "bits")

    def __init__(self, name: str, code: str, kind: str, bits: int) -> None:
        self.name, self.code, self.kind, self.bits = name, code, kind, bits

    def __repr__(self) -> str:
        return f"astra.{self.name}"

    def __str__(self) -> str:
        return self.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if not isinstance(other, (str, type, np.dtype)) and type(other).__name__ != "dtype":
            return False
        try:
            return dtype(other) is self
        except (TypeError, ValueError):
            return False

    def __reduce__(self) -> Any:
        return (dtype, (self.code,))

    @property
    def itemsize(self) -> int:
        """Bytes of an element; 0 where several share a byte."""
        return self.bits // 8

    @property
    def numpy(self) -> Any:
        """NumPy's dtype; that of ml_dtypes where NumPy has none."""
        if self.code in NUMPY:
            return np.dtype(NUMPY[self.code])
        package = ml_dtypes()
        if package is None or not hasattr(package, NARROW[self.code][0]):
            raise TypeError(f"NumPy has no {self.name}; install ml_dtypes")
        return np.dtype(getattr(package, NARROW[self.code][0]))


# name, code, kind, bits; of the kinds: b bool, i and u integers, f floats, c complex, s storage (load, store, cast only).
_ROWS = (
    ("bool", "bool", "b", 8),
    ("int8", "i8", "i", 8), ("int16", "i16", "i", 16), ("int32", "i32", "i", 32), ("int64", "i64", "i", 64),
    ("uint8", "u8", "u", 8), ("uint16", "u16", "u", 16), ("uint32", "u32", "u", 32), ("uint64", "u64", "u", 64),
    ("float16", "f16", "f", 16), ("bfloat16", "bf16", "f", 16), ("float32", "f32", "f", 32), ("float64", "f64", "f", 64),
    ("complex64", "complex64", "c", 64), ("complex128", "complex128", "c", 128),
    ("int2", "i2", "s", 2), ("uint2", "u2", "s", 2), ("int4", "i4", "s", 4), ("uint4", "u4", "s", 4),
    ("float4_e2m1fn", "f4e2m1", "s", 4), ("float8_e4m3fn", "f8e4m3fn", "s", 8), ("float8_e5m2", "f8e5m2", "s", 8),
    ("float8_e4m3fnuz", "f8e4m3fnuz", "s", 8), ("float8_e5m2fnuz", "f8e5m2fnuz", "s", 8), ("float8_e8m0fnu", "f8e8m0", "s", 8),
)  # fmt: skip

DTYPES: dict[str, DType] = {row[0]: DType(*row) for row in _ROWS}
_BY_NAME: dict[str, DType] = {**DTYPES, **{t.code: t for t in DTYPES.values()}, "e8m0": DTYPES["float8_e8m0fnu"]}
_OF_PYTHON = {bool: DTYPES["bool"], int: DTYPES["int64"], float: DTYPES["float32"], complex: DTYPES["complex64"]}
DEFAULT = {"b": DTYPES["bool"], "i": DTYPES["int64"], "u": DTYPES["uint64"], "f": DTYPES["float32"], "c": DTYPES["complex64"]}
"""What numbers of Python become by themselves, by kind."""


def dtype(of: Any) -> DType:
    """The element type of a name, of a dtype of NumPy, PyTorch or JAX, of a type of Python (int: int64, float: float32), of a tensor."""
    if isinstance(of, DType):
        return of
    if isinstance(of, str) and of in _BY_NAME:
        return _BY_NAME[of]
    if isinstance(of, type) and of in _OF_PYTHON:
        return _OF_PYTHON[of]
    if of is None:
        raise TypeError(f"there is no dtype None; there are {', '.join(DTYPES)}")
    text = str(of)
    if text.startswith("torch.") and text[6:] in _BY_NAME:
        return _BY_NAME[text[6:]]
    if hasattr(of, "dtype") and not isinstance(of, type):
        return dtype(of.dtype)
    try:
        found = name_of(np.dtype(of))
    except TypeError:
        found = None
    if found is None:
        raise TypeError(f"there is no dtype {of!r}; there are {', '.join(DTYPES)}")
    return _BY_NAME[found]


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def kind_of_number(value: Any) -> str:
    """b, i, f or c."""
    if isinstance(value, (bool, np.bool_)):
        return "b"
    return "f" if isinstance(value, float) else "c" if isinstance(value, complex) else "i"  # a size is an integer


def default_of(kinds: Any) -> DType:
    """The type of numbers of Python's of these kinds alone."""
    return DEFAULT[max(kinds, key=lambda k: _RANK[k])]


def with_number(t: DType, kind: str) -> DType:
    """The type of t with a number of Python's of a kind: t where its kind holds such numbers."""
    if t.kind == "s" or _RANK[t.kind] >= _RANK[kind]:
        return t
    if t.kind == "f" and kind == "c":
        return DTYPES["complex128" if t.code == "f64" else "complex64"]
    return DEFAULT[kind]


_promoted: dict[tuple[str, str], DType] = {}


def promote(x: DType, y: DType) -> DType:
    """The least type that both promote to (docs/ops.md)."""
    if x is y:
        return x
    key = (x.code, y.code)
    if key not in _promoted:
        found = _core.promote(*key)
        if found is None:
            raise TypeError(f"{x.name} and {y.name} promote to no common dtype; cast one of them")
        _promoted[key] = _BY_NAME[found]
    return _promoted[key]


__all__ = ["DType", "dtype", "promote"]
