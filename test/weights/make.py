#!/usr/bin/env python3
"""Random blocks of every format of WeightFormats.def and their values by gguf-py, into a .safetensors file.

usage: test/weights/make.py OUT.safetensors [--blocks N] [--seed N] [--quantized]
The file has FORMAT.blocks, u8 [rows, bytes], and FORMAT.values, f32 [rows, elements]. blocks.safetensors beside this
program is its output as it stands, for unit-weights; a night makes a larger one. With --quantized the file has `floats`,
f32 [rows, elements], and what gguf-py makes of them in each format that it writes: quantized.safetensors, for unit-quantize.
Needs the packages gguf and numpy.
"""
import argparse
import json
import struct

import numpy as np
from gguf import GGMLQuantizationType, quants
from gguf.constants import GGML_QUANT_SIZES

FORMATS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4"]
QUANTIZED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, array) in sorted(tensors.items(), key=lambda t: (t[1][0] != "F32", t[0])):
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in header:
            file.write(tensors[name][1].tobytes())


def floats(random, blocks):
    """Rows as weights are, and rows with what is special: zeros, equal numbers, ties, one large element, all of one sign."""
    x = random.standard_normal((12, blocks * 32)).astype(np.float32)
    x[1] *= np.float32(1e-3)
    x[2] = random.integers(-8, 8, x[2].shape) / np.float32(8)
    x[3] = random.integers(-127, 128, x[3].shape) / np.float32(2)
    x[4, :32], x[4, 32:64] = 0, -0.5
    x[5] = np.abs(x[5])
    x[6] = -np.abs(x[6]) - 1
    x[7, ::32] *= 100
    x[8] *= np.float32(2) ** random.integers(-20, 8, x[8].shape).astype(np.float32)
    return x


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--blocks", type=int, default=2, help="of a row; there are three")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quantized", action="store_true", help="floats, and blocks of them")
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    if args.quantized:
        x = floats(random, args.blocks)
        return write(args.out, {"floats": ("F32", x)} | {f: ("U8", quants.quantize(x, GGMLQuantizationType[f])) for f in QUANTIZED})
    tensors = {}
    for name in FORMATS:
        _, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
        blocks = random.integers(0, 256, (3, args.blocks * size), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = quants.dequantize(blocks, GGMLQuantizationType[name])
        values = np.where(np.isnan(values), np.float32(np.nan), values).astype(np.float32)
        tensors[name + ".blocks"], tensors[name + ".values"] = ("U8", blocks), ("F32", values)
    write(args.out, tensors)


main()
