#!/usr/bin/env python3
"""Random blocks of every format of WeightFormats.def and their values by gguf-py, into a .safetensors file.

usage: test/weights/make.py OUT.safetensors [--blocks N] [--seed N]
The file has FORMAT.blocks, u8 [rows, bytes], and FORMAT.values, f32 [rows, elements]. blocks.safetensors beside this
program is its output as it stands, for unit-weights; a night makes a larger one. Needs the packages gguf and numpy.
"""
import argparse
import json
import struct

import numpy as np
from gguf import GGMLQuantizationType, quants
from gguf.constants import GGML_QUANT_SIZES

FORMATS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--blocks", type=int, default=2, help="of a row; there are three")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    tensors = {}
    for name in FORMATS:
        _, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
        blocks = random.integers(0, 256, (3, args.blocks * size), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = quants.dequantize(blocks, GGMLQuantizationType[name])
        values = np.where(np.isnan(values), np.float32(np.nan), values).astype(np.float32)
        tensors[name + ".blocks"], tensors[name + ".values"] = ("U8", blocks), ("F32", values)
    header, at = {}, 0
    for name, (dtype, array) in sorted(tensors.items(), key=lambda t: (t[1][0] != "F32", t[0])):
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(args.out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in header:
            file.write(tensors[name][1].tobytes())


main()
