"""A .safetensors file, read and written by the letter of its format.

Takes:    a path.
Gives:    arrays by name, and the metadata; or a file of any header, right or wrong.
Does not: use the safetensors package, which the tests then need not have.
"""

import json

import numpy as np

DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
          "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"}  # fmt: skip
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


def read(path):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.pop("__metadata__", {})
    arrays, places = {}, []
    for name, row in header.items():
        begin, end = row["data_offsets"]
        arrays[name] = np.frombuffer(body[begin:end], DTYPES[row["dtype"]]).reshape(row["shape"])
        places.append((begin, end))
    places.sort()
    assert [b for b, _ in places] == [0] + [e for _, e in places[:-1]] and places[-1][1] == len(body), "holes or overlaps"
    return arrays, metadata


def write(path, arrays, change=lambda header: None):
    """`change` may do harm to the header."""
    header, body = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = change(header)
    text = (text if isinstance(text, str) else json.dumps(header)).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + body)
