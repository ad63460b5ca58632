"""Arithmetic on sizes, and what an exported graph asserts of them.

Keeps:    a dim's bounds were declared: what is asserted within them holds, or the call is refused before it runs.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..._errors import TraceError
from .registry import ROWS, row


def _plain(function: Any, name: str | None = None) -> None:
    ROWS[name or function.__name__] = function


for _f in (operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.pow):
    _plain(_f)


def _decided(function: Any) -> Any:
    def compare(*args: Any) -> Any:
        try:
            return function(*args)
        except TraceError:
            return True

    return compare


for _f in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    _plain(_decided(_f), _f.__name__)
for _f in (operator.and_, operator.or_):
    _plain(_f)


@row("sym_max")
def _sym_max(x: Any, y: Any) -> Any:
    return x._op("max", x, y) if hasattr(x, "_op") else y._op("max", x, y) if hasattr(y, "_op") else max(x, y)


@row("sym_min")
def _sym_min(x: Any, y: Any) -> Any:
    return x._op("min", x, y) if hasattr(x, "_op") else y._op("min", x, y) if hasattr(y, "_op") else min(x, y)


row("sym_not")(lambda x: not x)
row("sym_float")(float)


@row("aten._assert_scalar", "aten._assert_async", "aten.sym_constrain_range", "aten.sym_constrain_range_for_size",
     "aten._assert_tensor_metadata", "aten._functional_assert_async", "aten._functional_assert_scalar")  # fmt: skip
def _assertion(*_: Any, **__: Any) -> None:
    return None


_ = torch
