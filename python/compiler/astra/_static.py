"""Which leaves of arguments are part of a program's structure, and no tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dims, _dtypes


def is_static(x: Any) -> bool:
    """Whether a leaf is given to a traced function as it is: numbers and strings of Python's, dtypes, dims, functions."""
    if isinstance(x, np.generic):  # np.float64 is a float of Python's too
        return False
    return x is None or isinstance(x, (bool, int, float, complex, str, bytes, _dtypes.DType, _dims.Dim)) or callable(x)


def static_key(x: Any) -> tuple[Any, ...]:
    """What tells such a leaf from others in a dict's key: -0.0 from 0.0, and a NaN is itself."""
    return (type(x), repr(x) if isinstance(x, (float, complex)) else x)
