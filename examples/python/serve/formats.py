"""Arrays in and out of bodies.

Takes:    bytes of anybody; what the entry wants.
Gives:    arrays, checked: types, shapes and bounds are right; bodies of the outputs.
Keeps:    nothing is cast, nothing executed, and memory stays in proportion to the body. A number in JSON is exact: f32 and back
          gives the same bits.
Does not: read more than the three forms of FORMATS.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any, NamedTuple, NoReturn

import astra_rt
import numpy as np
from engines import dtype_of
from numpy.lib import format as npy


class Bad(Exception):
    """A body that is refused: an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def read_json(body: bytes, inputs: Any) -> list[Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        given = json.loads(body, parse_constant=refuse)
        named = given["inputs"] if isinstance(given, dict) else None
    except (ValueError, KeyError, RecursionError) as error:
        raise Bad(400, f"the body is no JSON of the form {{\"inputs\": {{...}}}}: {error}") from None
    names = [i.name for i in inputs]
    if not isinstance(named, dict) or sorted(named) != sorted(names):
        raise Bad(422, f"\"inputs\" must be an object with the keys {', '.join(names)}")
    arrays = []
    for i in inputs:
        if not isinstance(named[i.name], list):
            raise Bad(422, f"input {i.name} must be a list of rows")
        try:
            arrays.append(astra_rt.tensor(named[i.name], i.dtype).numpy())
        except (TypeError, ValueError) as error:
            raise Bad(422, f"input {i.name}: {error}") from None
    return arrays


def write_json(arrays: list[Any], outputs: Any) -> bytes:
    try:
        return json.dumps({"outputs": {o.name: a.tolist() for o, a in zip(outputs, arrays)}}, allow_nan=False).encode()
    except ValueError:
        raise Bad(406, "an output has a NaN or an infinity, which JSON lacks; ask for it with Accept: application/x-npy") from None


def read_npy(body: bytes, inputs: Any) -> list[Any]:
    stream, arrays = io.BytesIO(body), []
    for i in inputs:
        try:
            head = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
            shape, is_fortran, dtype = head(stream)
        except Exception:  # a header is text of Python, which may be wrong in many ways
            raise Bad(400, f"the body must be one .npy after the other, of {', '.join(i.name for i in inputs)}; that of {i.name} is none") from None
        if dtype.kind not in "biuf" or any(extent < 0 for extent in shape):
            raise Bad(422, f"input {i.name} must be an array of numbers")
        begin, size = stream.tell(), math.prod(shape) * dtype.itemsize
        if size > len(body) - begin:
            raise Bad(400, f"the .npy of input {i.name} ends early: {size} bytes should follow its header")
        array = np.frombuffer(memoryview(body)[begin : begin + size], dtype).reshape(shape, order="F" if is_fortran else "C")
        arrays.append(np.ascontiguousarray(array))
        stream.seek(begin + size)
    if stream.tell() != len(body):
        raise Bad(400, f"{len(body) - stream.tell()} bytes follow the last array")
    return arrays


def write_npy(arrays: list[Any], outputs: Any) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        npy.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def read_raw(body: bytes, inputs: Any) -> list[Any]:
    (i, *more) = inputs
    if more or i.lower[1:] != i.upper[1:] or 0 in i.lower:
        raise Bad(415, "raw bytes say one input whose rows are all of one shape; send application/x-npy")
    row = math.prod(i.lower[1:]) * dtype_of(i).itemsize
    if len(body) % row:
        raise Bad(422, f"the body has {len(body)} bytes; a row of input {i.name} has {row}")
    return [np.frombuffer(body, dtype_of(i)).reshape(-1, *i.lower[1:])]


def write_raw(arrays: list[Any], outputs: Any) -> bytes:
    return b"".join(a.tobytes() for a in arrays)


class Format(NamedTuple):
    read: Any
    write: Any


FORMATS = {"application/json": Format(read_json, write_json), "application/x-npy": Format(read_npy, write_npy),
           "application/octet-stream": Format(read_raw, write_raw)}  # fmt: skip


def check(arrays: list[Any], inputs: Any, batch: tuple[int, int]) -> None:
    """That the arrays are what the entry takes, and have a number of rows in common."""
    for i, array in zip(inputs, arrays):
        if array.dtype != dtype_of(i):
            raise Bad(422, f"input {i.name} has the element type {array.dtype.str}; it must be {i.dtype} ({dtype_of(i).str})")
        if array.ndim != i.ndim:
            raise Bad(422, f"input {i.name} has {array.ndim} axes; it must have {i.ndim}")
        low, high = (batch[0], *i.lower[1:]), (batch[1], *i.upper[1:])
        for axis, extent in enumerate(array.shape):
            if not low[axis] <= extent <= high[axis]:
                bounds = str(low[axis]) if low[axis] == high[axis] else f"{low[axis]} to {high[axis]}"
                raise Bad(422, f"axis {axis} of input {i.name} has {extent} elements; it must have {bounds}")
        if len(array) != len(arrays[0]):
            raise Bad(422, f"input {i.name} has {len(array)} rows and input {inputs[0].name} has {len(arrays[0])}")
