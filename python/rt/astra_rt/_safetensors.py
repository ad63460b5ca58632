"""Files of named tensors (.safetensors).

Takes:    Tensors by name; a path. To read, also an index of several files (NAME.safetensors.index.json).
Gives:    a file, byte for byte what `astra-run --save-states` writes; Tensors by name.
Keeps:    a file is written beside its place and renamed: whoever reads sees the old one or the new one, whole.
Does not: read more than the format allows: offsets and sizes are checked before any memory is made; no byte is of two
          tensors, or of none.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _rt
from ._convert import NARROW, NUMPY
from ._errors import ArgumentError, BundleError, DTypeError, refusal

if TYPE_CHECKING:
    from ._tensor import Tensor

NAMES = {"bool": "BOOL", "u8": "U8", "i8": "I8", "u16": "U16", "i16": "I16", "u32": "U32", "i32": "I32", "u64": "U64",
         "i64": "I64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "complex64": "C64", "f8e4m3fn": "F8_E4M3",
         "f8e5m2": "F8_E5M2", "f8e8m0": "F8_E8M0"}  # fmt: skip
DTYPES = {theirs: ours for ours, theirs in NAMES.items()}
LONGEST_HEADER = 100_000_000
INDEX = ".safetensors.index.json"


def _codes(dtype: str) -> Any:
    return np.dtype(NARROW[dtype][2] if dtype in NARROW else NUMPY[dtype])


def write(path: str, tensors: dict[str, Tensor]) -> None:
    """Writes the tensors: the widest elements first, then by name."""
    if path.endswith(INDEX):
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{path} is the name of an index of several files; this writes one: NAME.safetensors")
    for name, t in tensors.items():
        if t.dtype not in NAMES:
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"'{name}' is of {t.dtype}, which .safetensors files do not have")
    order = sorted(tensors, key=lambda name: (-_codes(tensors[name].dtype).itemsize, name.encode()))
    header: dict[str, Any] = {}
    at = 0
    for name in order:
        t = tensors[name]
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for name in order:
                file.write(tensors[name]._array() if tensors[name].nbytes else b"")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def _broken(path: str, why: str) -> Exception:
    return refusal(BundleError, "ASTRA_MALFORMED", f"{path} is no .safetensors file that can be read: {why}")


def _tensor(path: str, name: str, row: Any, room: int) -> tuple[str, tuple[int, ...], int, int]:
    """dtype, shape, and where the bytes are, checked."""
    try:
        dtype, shape, (begin, end) = DTYPES[row["dtype"]], tuple(row["shape"]), row["data_offsets"]
        if set(row) != {"dtype", "shape", "data_offsets"}:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise _broken(path, f"the header's row of '{name}' has no dtype, shape or offsets that are known") from None
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in (*shape, begin, end)):
        raise _broken(path, f"the header's row of '{name}' has a number that is none")
    size = _codes(dtype).itemsize
    for extent in shape:
        size *= extent
    if not begin <= end <= room or size != end - begin:
        raise _broken(path, f"'{name}' has {end - begin} bytes of {room}, and its shape wants {size}")
    return dtype, shape, begin, end


def _covered(path: str, places: list[tuple[int, int, str]], room: int) -> None:
    """Refuses data that two tensors have, or that none has."""
    at = 0
    for begin, end, name in sorted(places):
        if begin != at:
            raise _broken(path, f"the data of '{name}' begins at {begin}, and what is before it ends at {at}")
        at = end
    if at != room:
        raise _broken(path, f"it holds {room} bytes of data, and its tensors need {at}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name is there twice")
    return out


def _read_index(path: str) -> dict[str, Tensor]:
    """The tensors of the files that an index names, which lie beside it."""
    try:
        with open(path, "rb") as file:
            places = json.loads(file.read(), object_pairs_hook=_once)["weight_map"]
        files = sorted(set(places.values()))
        if any(f != os.path.basename(f) or f in ("", ".", "..") for f in files):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _broken(path, "it is no index that says in which file of its folder each tensor is") from None
    out: dict[str, Tensor] = {}
    for name in files:
        for tensor, value in read(os.path.join(os.path.dirname(path), name)).items():
            if places.get(tensor) != name:
                raise _broken(path, f"it does not say that '{tensor}' is in {name}")
            out[tensor] = value
    missing = next((n for n in places if n not in out), None)
    if missing is not None:
        raise _broken(path, f"it says that '{missing}' is in {places[missing]}, which does not have it")
    return out


def read(path: str) -> dict[str, Tensor]:
    """The tensors of a file by name, in the file's order; of an index those of its files."""
    if path.endswith(INDEX):
        return _read_index(path)
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 0 <= length <= min(len(data) - 8, LONGEST_HEADER):
        raise _broken(path, "its header leaves the file")
    try:
        header = json.loads(data[8 : 8 + length], object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _broken(path, "its header is no JSON, or has a name twice") from None
    if not isinstance(header, dict):
        raise _broken(path, "its header is no object")
    rows = {name: _tensor(path, name, row, len(data) - 8 - length) for name, row in header.items() if name != "__metadata__"}
    _covered(path, [(begin, end, name) for name, (_, _, begin, end) in rows.items()], len(data) - 8 - length)
    out: dict[str, Tensor] = {}
    for name, (dtype, shape, begin, end) in rows.items():
        array = np.frombuffer(data[8 + length + begin : 8 + length + end], np.uint8).copy()
        out[name] = _rt.wrap(array.view(_codes(dtype)), dtype, shape)
    return out
