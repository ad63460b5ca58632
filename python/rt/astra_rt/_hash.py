"""One digest of what calls take and give.

Takes:    a tensor, an array, a number, None, and tuples, lists and dicts of them.
Gives:    SHA-256, in hexadecimal, of the bytes that docs/python-rt.md describes under "A digest".
Keeps:    equal digests for equal dtypes, shapes and bits, wherever the elements lie and however; all NaNs of a type are equal.
Does not: see how a tree was made: a tuple, a list and the results of a call are one thing, and so are dicts in any order.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from . import _rt
from ._convert import NARROW, pack, tensor, unpack
from ._errors import ArgumentError, refusal

_DEEPEST = 64
_STEP = 1 << 20  # elements that are looked at together
# Of floats (complex: of their parts) the unsigned type of as many bits, the mask of the magnitude, the greatest magnitude that
# is no NaN, and the canonical NaN (docs/numerics.md, N6).
_NAN: dict[str, tuple[Any, int, int, int]] = {
    "f16": (np.uint16, 0x7FFF, 0x7C00, 0x7E00),
    "bf16": (np.uint16, 0x7FFF, 0x7F80, 0x7FC0),
    "f32": (np.uint32, 0x7FFFFFFF, 0x7F800000, 0x7FC00000),
    "f64": (np.uint64, (1 << 63) - 1, 0x7FF << 52, 0x7FF8 << 48),
    "f8e4m3fn": (np.uint8, 0x7F, 0x7E, 0x7F),
    "f8e5m2": (np.uint8, 0x7F, 0x7C, 0x7E),
}
_NAN |= {"complex64": _NAN["f32"], "complex128": _NAN["f64"]}  # the other types have one NaN at most


def _canonical(t: _rt.Tensor) -> Iterator[Any]:
    """The bytes of a tensor, part by part: every NaN is canonical, bools are 0 and 1, padding of rows is zero."""
    array, dtype = t._array(), t.dtype
    if dtype in NARROW and NARROW[dtype][1] < 8:
        array = pack(unpack(array, dtype, t.shape), NARROW[dtype][1])
    data = array.reshape(-1).view(np.uint8)
    if dtype not in _NAN:
        yield data != 0 if dtype == "bool" else data
        return
    word, magnitude, greatest, nan = _NAN[dtype]
    words = data.view(word)
    for begin in range(0, len(words), _STEP):
        part = words[begin : begin + _STEP]
        is_nan = (part & word(magnitude)) > word(greatest)
        yield np.where(is_nan, word(nan), part) if is_nan.any() else part


def _encode(value: Any, depth: int) -> Iterator[Any]:
    """What is hashed of a value, as bytes and arrays."""
    if depth > _DEEPEST:
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"hash takes trees of at most {_DEEPEST} levels; perhaps this one holds itself")
    if value is None:
        yield b"none\n"
    elif isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"hash takes dicts whose keys are strings, not {type(key).__name__}")
        yield b"dict %d\n" % len(value)
        for key, name in sorted((k.encode("utf-8", "surrogatepass"), k) for k in value):
            yield b"key %d\n" % len(key) + key
            yield from _encode(value[name], depth + 1)
    elif isinstance(value, (tuple, list)):
        yield b"list %d\n" % len(value)
        for item in value:
            yield from _encode(item, depth + 1)
    elif isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"hash takes tensors, arrays, numbers, None, and tuples, lists and dicts of them, not {type(value).__name__}")
    else:
        t = value if isinstance(value, _rt.Tensor) else tensor(value)
        yield f"tensor {t.dtype} {len(t.shape)}{''.join(f' {extent}' for extent in t.shape)}\n".encode()
        yield from _canonical(t)


def hash(value: Any) -> str:
    """64 hexadecimal digits, equal for equal dtypes, shapes and bits: of a tensor, an array, a number, or a tree of tuples, lists
    and dicts of them. A list is a tree, not a tensor: hash(tensor([1, 2])) is of one. -0.0 and 0.0 differ; all NaNs are equal."""
    import hashlib

    digest = hashlib.sha256(b"astra-hash/1\n")
    for part in _encode(value, 0):
        digest.update(part)
    return digest.hexdigest()
