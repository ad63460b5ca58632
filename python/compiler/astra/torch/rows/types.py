"""PyTorch's types: which type an op computes in and gives.

Takes:    tensors, numbers, sizes.
Gives:    operands of one type, by PyTorch's three ranks: tensors with axes, tensors without, numbers of Python's.
Keeps:    f16 and bf16 compute in f32 and are rounded once, a number beside them is not rounded first: as PyTorch's CPU kernels do.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from ... import _dims, _dtypes, _ops
from ..._dtypes import DType
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node

F32, F64, I64, BOOL, I32 = (_dtypes.DTYPES[n] for n in ("float32", "float64", "int64", "bool", "int32"))
NUMBERS = (bool, int, float, complex, _dims.Dim)
_TORCH: dict[str, torch.dtype] = {
    "bool": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
    "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "f16": torch.float16, "bf16": torch.bfloat16,
    "f32": torch.float32, "f64": torch.float64, "complex64": torch.complex64, "complex128": torch.complex128,
    "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
}  # fmt: skip
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3, "s": 2}


def torch_type(t: DType) -> torch.dtype:
    """PyTorch's dtype."""
    return _TORCH[t.code]


def own_type(t: Any) -> DType:
    """This package's dtype."""
    try:
        return _dtypes.dtype(t)
    except TypeError:
        raise UnsupportedError(f"the type {t} is not supported") from None


def category(t: DType) -> int:
    """0 bool, 1 integers, 2 floats, 3 complex."""
    return _CATEGORY[t.kind]


def promote(x: DType | None, y: DType | None) -> DType | None:
    """PyTorch's promotion of two types."""
    if x is None or y is None:
        return x or y
    return x if x is y else own_type(torch.promote_types(torch_type(x), torch_type(y)))


def _number_type(x: Any) -> DType:
    if isinstance(x, bool):
        return BOOL
    if isinstance(x, (int, _dims.Dim)):
        return I64
    return own_type(torch.get_default_dtype()) if isinstance(x, float) else own_type(torch.promote_types(torch.get_default_dtype(), torch.complex32))


def _combined(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is None or lower is None:
        return higher or lower
    if category(higher) == 3:
        return higher
    if category(higher) == 2:
        return own_type(torch_type(higher).to_complex()) if category(lower) == 3 else higher
    if category(higher) == 0 or category(lower) >= 2:
        return promote(higher, lower)
    return higher


def result_type(*xs: Any) -> DType:
    """The type that operands have together."""
    ranks: list[DType | None] = [None, None, None]
    for x in xs:
        if x is None:
            continue
        rank = (0 if x.ndim else 1) if isinstance(x, Tensor) else 2
        ranks[rank] = promote(ranks[rank], x.dtype if isinstance(x, Tensor) else _number_type(x))
    found = _combined(_combined(ranks[0], ranks[1]), ranks[2])
    assert found is not None
    return found


def opmath(t: DType) -> DType:
    """What values of a type are computed in."""
    return F32 if t.code in ("f16", "bf16") else t


def as_type(x: Any, t: DType) -> Tensor:
    """A tensor, a number or a size as a tensor of a type: PyTorch's conversion."""
    if isinstance(x, _dims.Dim):
        graph = current()
        return as_type(of_node(graph, call(graph.core.scalar, x.node(graph.core), "i64")), t)
    if not isinstance(x, Tensor):
        if t.kind == "b":
            return _ops.literal(bool(x), t)
        if t.kind in "iu" and not isinstance(x, bool):
            bits = int(x) & ((1 << t.bits) - 1)
            x = bits - (1 << t.bits) if t.kind == "i" and bits >> (t.bits - 1) else bits
        return _ops.literal(x, t)
    if x.dtype is t:
        return x
    if x.dtype.kind == "c" and t.kind not in "cb":
        x = _ops.op("real", x)
    return _ops.astype(x, t)


def float_of(t: DType) -> DType:
    """The type of a function that gives floats."""
    return t if category(t) >= 2 else own_type(torch.get_default_dtype())


def computed(f: Callable[..., Tensor], *xs: Any, floats: bool = False, bools: bool = False) -> Tensor:
    """f of operands of one type. floats: integers become the default float; bools: the result is as f gives it."""
    t = result_type(*xs)
    if floats:
        t = float_of(t)
    made = f(*(as_type(x, opmath(t)) for x in xs))
    return made if bools else as_type(made, t)
