#!/usr/bin/env python3
"""A Llama in a GGUF file as ONNX Runtime's generator has it: grouped attention over caches, products in f32 or in blocks of 4 bits.

usage: build/venv/bin/python bench/language_onnx.py FILE.gguf OUT.onnx [--bits 4]
Takes:    the packages gguf, onnx.
Gives:    OUT.onnx (weights beside it) with tokens i64 [1, n], last i32 [1] (all tokens less one), total i32 (all tokens), past.N.key and .value
          in, logits f32 [1, 1, vocabulary] of the last token and present.N.key and .value out.
Keeps:    weights are the values of the file's blocks. With --bits 4 they are rounded to MatMulNBits' blocks of 32 with a zero point of 4 bits, with
          activations of 8 bits (accuracy_level 4): of Q4_1, m becomes the nearest multiple of d. The head then has 8 bits.
Does not: know other architectures.
"""

import argparse
import sys
from pathlib import Path

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test/language"))
from gguf_model import in_halves

BLOCK = 32
MICROSOFT = "com.microsoft"


def in_blocks(w, bits):
    """w [n, k] as MatMulNBits has it: codes, scales, zero points."""
    n, k = w.shape
    blocks = w.reshape(n, k // BLOCK, BLOCK)
    most = 2**bits - 1
    low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
    scale = ((high - low) / most).astype(np.float32)
    safe = np.where(scale > 0, scale, 1)
    zero = np.clip(np.rint(-low / safe), 0, most)
    codes = np.clip(np.rint(blocks / safe[..., None]) + zero[..., None], 0, most).astype(np.uint8)

    def packed(x):
        if bits == 8:
            return x
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros((*x.shape[:-1], 1), np.uint8)], -1)
        return x[..., ::2] | x[..., 1::2] << 4

    return packed(codes), scale.reshape(-1), packed(zero.astype(np.uint8)).reshape(-1)


class Graph:
    def __init__(self, bits):
        self.bits, self.nodes, self.values, self.number = bits, [], [], 0

    def value(self, name, array):
        self.values.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, domain="", outputs=1, **attributes):
        self.number += 1
        names = [f"v{self.number}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, name=f"n{self.number}", **attributes))
        return names if outputs > 1 else names[0]

    def product(self, x, name, w, bits=None):
        bits = bits or self.bits
        if bits == 32:
            return self.node("MatMul", [x, self.value(name, w.T)])
        codes, scale, zero = in_blocks(w, bits)
        parts = [self.value(f"{name}.{what}", v) for what, v in (("q", codes), ("scale", scale), ("zero", zero))]
        return self.node("MatMulNBits", [x, *parts], MICROSOFT, K=w.shape[1], N=w.shape[0], bits=bits, block_size=BLOCK, accuracy_level=4)


def build(path, bits):
    file = gguf.GGUFReader(path)

    def value(key):
        field = file.fields["llama." + key]
        return field.parts[field.data[0]].tolist()[0]

    tensors = {t.name: t for t in file.tensors}

    def weight(name):
        t = tensors[f"{name}.weight"]
        return gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32).reshape([int(n) for n in reversed(t.shape)])

    heads, key_heads, layers = value("attention.head_count"), value("attention.head_count_kv"), value("block_count")
    epsilon, width, positions = value("attention.layer_norm_rms_epsilon"), value("embedding_length"), value("context_length")
    size = width // heads
    g = Graph(bits)
    table = weight("token_embd")
    angles = np.outer(np.arange(positions), value("rope.freq_base") ** (-np.arange(0, size, 2) / size))
    cosines, sines = g.value("cosines", np.cos(angles).astype(np.float32)), g.value("sines", np.sin(angles).astype(np.float32))
    x = g.node("Gather", [g.value("embedding", table), "tokens"])
    y = g.node("SimplifiedLayerNormalization", [x, g.value("norm.0", weight("blk.0.attn_norm"))], axis=-1, epsilon=epsilon)
    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "n"]), helper.make_tensor_value_info("last", TensorProto.INT32, [1]),
              helper.make_tensor_value_info("total", TensorProto.INT32, [])]  # fmt: skip
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, table.shape[0]])]

    def added(x, y, name):
        """x + y, and its norm."""
        parts = g.node("SkipSimplifiedLayerNormalization", [x, y, g.value(f"{name}.norm", weight(name))], MICROSOFT, 4, epsilon=epsilon)
        return parts[3], parts[0]

    for layer in range(layers):
        at = f"blk.{layer}."
        q = g.product(y, at + "q", in_halves(weight(at + "attn_q"), heads))
        k = g.product(y, at + "k", in_halves(weight(at + "attn_k"), key_heads))
        v = g.product(y, at + "v", weight(at + "attn_v"))
        pasts = [f"past.{layer}.key", f"past.{layer}.value"]
        for name in pasts:
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, key_heads, "before", size]))
            outputs.append(helper.make_tensor_value_info(name.replace("past", "present"), TensorProto.FLOAT, [1, key_heads, "after", size]))
        y, *present = g.node("GroupQueryAttention", [q, k, v, *pasts, "last", "total", cosines, sines], MICROSOFT, 3, num_heads=heads,
                             kv_num_heads=key_heads, do_rotary=1, rotary_interleaved=0)  # fmt: skip
        for name, made in zip(pasts, present):
            node = g.nodes[-1]
            node.output[list(node.output).index(made)] = name.replace("past", "present")
        x, y = added(x, g.product(y, at + "o", weight(at + "attn_output")), at + "ffn_norm")
        gate = g.product(y, at + "gate", weight(at + "ffn_gate"))
        gate = g.node("Mul", [gate, g.node("Sigmoid", [gate])])
        y = g.product(g.node("Mul", [gate, g.product(y, at + "up", weight(at + "ffn_up"))]), at + "down", weight(at + "ffn_down"))
        x, y = added(x, y, f"blk.{layer + 1}.attn_norm" if layer + 1 < layers else "output_norm")
    y = g.node("Gather", [y, g.value("end", np.array([-1]))], axis=1)
    head = weight("output") if "output.weight" in tensors else table
    logits = g.product(y, "head", head, 8 if bits == 4 else None)
    g.nodes[-1].output[0] = "logits"
    assert logits
    graph = helper.make_graph(g.nodes, "llama", inputs, outputs, g.values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)], ir_version=9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bits", type=int, choices=(4, 32), default=32)
    a = parser.parse_args()
    a.out.unlink(missing_ok=True)
    weights = a.out.with_suffix(".data")
    weights.unlink(missing_ok=True)
    onnx.save(build(a.model, a.bits), a.out, save_as_external_data=True, location=weights.name)


if __name__ == "__main__":
    main()
