"""Write the seeds of the fuzzer of weight files.

Takes:    a folder.
Gives:    FOLDER/gguf, FOLDER/safetensors, FOLDER/pt: small files of each kind and every format, and pickles of torch.save's with
          all opcodes that it writes.
Keeps:    names and bytes: nothing is random.

    build/venv/bin/python test/fuzz/weights/seeds.py build/fuzz-seeds
"""

import json
import struct
import sys
from pathlib import Path

# ggml's number of a format, elements and bytes of a block
FORMATS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
           12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 30: (1, 2), 39: (32, 17)}  # fmt: skip


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf(formats, version=3):
    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama"),
            text("general.alignment") + struct.pack("<II", 4, 32),
            text("a.list") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yz"),
            text("a.numbers") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3)]  # fmt: skip
    keys += [text(f"t{t}") + struct.pack("<I" + c, t, 1) for t, c in enumerate("BbHhIif?")]
    keys += [text(f"t{t}") + struct.pack("<I" + c, t, 1) for t, c in ((10, "Q"), (11, "q"), (12, "d"))]
    infos, data = b"", b""
    for i, f in enumerate(formats):
        elements, size = FORMATS[f]
        infos += text(f"w{i}") + struct.pack("<IQQIQ", 2, elements, 2, f, len(data))
        data += bytes(range(i, i + 8)) * (2 * size // 8 + 1)
        data = data[: len(data) - len(data) % 32] if len(data) % 32 == 0 else data + bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", version, len(formats), len(keys)) + b"".join(keys) + infos
    return head + bytes(-len(head) % 32) + data


def safetensors():
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
              "b\u00e9": {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]}}  # fmt: skip
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + bytes(10)


def short(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def tensor(storage, dims, strides):
    size = {"FloatStorage": 16, "HalfStorage": 32, "ByteStorage": 64}[storage]
    ints = lambda v: b"(" + b"".join(b"K" + bytes([x]) for x in v) + b"t"  # noqa: E731
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((" + short("storage") + b"ctorch\n" + storage.encode() + b"\n" + short("0") + short("cpu")
            + b"K" + bytes([size]) + b"tQK\0" + ints(dims) + ints(strides) + b"\x89ccollections\nOrderedDict\n)RtR")  # fmt: skip


def pickles():
    weights = (b"ccollections\nOrderedDict\nq\0)Rq\1(" + short("w") + tensor("FloatStorage", [4, 2], [2, 1]) + short("t")
               + tensor("HalfStorage", [2, 3], [1, 2]) + b"u}" + short("_metadata") + b"Nsb.")  # fmt: skip
    nested = (b"\x80\2}q\0(" + short("model") + b"}" + short("w") + tensor("ByteStorage", [64], [1]) + b"s" + short("epoch") + b"K\7"
              + short("rate") + b"G" + struct.pack(">d", 0.5) + short("list") + b"](K\1M\2\1J\3\0\0\0\x8a\2\xff\x7f\x88Neu.")  # fmt: skip
    frames = b"\x80\4\x95" + struct.pack("<Q", 30) + b"}\x94(\x8c\1a\x94\x8c\1b\x94u."
    return [b"\x80\2" + weights, nested, frames]


def main():
    folder = Path(sys.argv[1])
    files = {"gguf/all": gguf(list(FORMATS)), "gguf/two": gguf([0, 3], 2), "gguf/none": gguf([]), "safetensors/x": safetensors()}
    files |= {f"gguf/one{f}": gguf([f]) for f in FORMATS} | {f"pt/{i}": p for i, p in enumerate(pickles())}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


main()
