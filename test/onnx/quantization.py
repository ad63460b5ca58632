"""Quantization beyond ONNX's cases: ranks, axes, blocks, types, dynamic dims, whole models with quantized weights.

Takes:    a build folder; ONNX Runtime, or the reference evaluator of the package onnx, for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; integers that differ by one at most
          where a float product is rounded to them, exact ones exactly; floats within 1e-5.
Does not: repeat what the backend suite holds (run.py).

    build/venv/bin/python test/onnx/quantization.py
"""

import os
import sys

os.environ["ASTRA_EVAL"] = "1"
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from backend import AstraBackend, Failed  # noqa: E402
from harness import run  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RNG = np.random.default_rng(5)
F = TensorProto.FLOAT
TYPES = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8, np.int16: TensorProto.INT16,
         np.uint16: TensorProto.UINT16}  # fmt: skip


def f32(*shape):
    return np.asarray(RNG.standard_normal(shape), np.float32)


def scale(*shape):
    return np.asarray(np.abs(RNG.standard_normal(shape)) * 0.01 + 0.005, np.float32)


def ints(t, *shape):
    return RNG.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape).astype(t)


def narrow(t, low, high, *shape):
    return RNG.integers(low, high, shape).astype(np.int8).astype(t)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def one(op, opset, outputs, *inputs, off=0, dims=None, runtime=True, **attributes):
    """One op: names of its inputs are a, b, ...; None is an input that is left out; floats and integers 0-d."""
    names = ["" if x is None else "abcdefghi"[k] for k, x in enumerate(inputs)]
    given = {n: np.asarray(x) for n, x in zip(names, inputs) if n}
    results = ["u", "v", "w"][: len(outputs)]
    nodes = [helper.make_node(op, names, results, **attributes)]
    return nodes, {"a": given.pop("a")}, given, dict(zip(results, outputs)), opset, off, dims or {}, runtime


def quantize(t, x, s, zero, opset=21, **rest):
    return one("QuantizeLinear", opset, [TYPES[t]], x, s, zero, **rest)


def dequantize(x, s, zero, to=F, opset=21, **rest):
    return one("DequantizeLinear", opset, [to], x, s, zero, **rest)


def cases():
    x = f32(3, 4, 5) * 100
    for t in TYPES:
        kind = np.dtype(t).name
        yield f"quantize-{kind}", quantize(t, x, np.float32(0.7), ints(t))
        yield f"quantize-{kind}-last-axis-dynamic", quantize(t, x, scale(5) * 50, ints(t, 5), axis=-1, dims={"a": ["n", 4, 5]})
        yield f"quantize-{kind}-block", quantize(t, x, scale(3, 2, 5) * 50, ints(t, 3, 2, 5), axis=1, block_size=3, runtime=False)
        yield f"quantize-{kind}-one-element", quantize(t, x, np.float32([0.3]), ints(t, 1), axis=1)
        yield f"quantize-{kind}-rank-1", quantize(t, f32(6), scale(6), ints(t, 6), axis=0)
        yield f"quantize-{kind}-f16", quantize(t, f32(2, 6).astype(np.float16), np.float16(0.02), ints(t), runtime=False)
        yield f"dequantize-{kind}-axis-dynamic", dequantize(ints(t, 3, 4, 5), f32(4), ints(t, 4), dims={"a": ["n", 4, 5]})
        yield f"dequantize-{kind}-block", dequantize(ints(t, 3, 4, 5), f32(3, 4, 3), ints(t, 3, 4, 3), axis=2, block_size=2)
        yield f"dequantize-{kind}-to-f16", dequantize(ints(t, 3, 4), np.float32(0.3), ints(t), TensorProto.FLOAT16, 23,
                                                      output_dtype=TensorProto.FLOAT16, runtime=False)
    yield "quantize-precision", one("QuantizeLinear", 23, [TensorProto.INT16], x, np.float32(0.7), runtime=False,
                                    output_dtype=TensorProto.INT16, precision=TensorProto.FLOAT16)
    yield "quantize-by-10", one("QuantizeLinear", 10, [TensorProto.UINT8], x, np.float32(0.7))
    yield "dynamic-rank-0", one("DynamicQuantizeLinear", 11, [TensorProto.UINT8, F, TensorProto.UINT8], np.float32(3))
    yield "dynamic-all-zero", one("DynamicQuantizeLinear", 11, [TensorProto.UINT8, F, TensorProto.UINT8],
                                  np.zeros((3, 2), np.float32), runtime=False)
    i32 = [TensorProto.INT32]
    for ta in (np.int8, np.uint8):
        for tb in (np.int8, np.uint8):
            kind, out = f"{np.dtype(ta).name}-{np.dtype(tb).name}", [TYPES[ta]]
            a, b = ints(ta, 5, 37), ints(tb, 37, 19)
            w = ints(tb, 6, 4, 3, 3)
            yield f"matmul-integer-{kind}", one("MatMulInteger", 10, i32, a, b, ints(ta), ints(tb), runtime=False, dims={"a": ["n", 37]})
            yield f"matmul-integer-{kind}-columns", one("MatMulInteger", 10, i32, a, b, None, ints(tb, 19), runtime=False)
            yield f"matmul-integer-{kind}-batch", one("MatMulInteger", 10, i32, ints(ta, 2, 3, 5, 37), ints(tb, 3, 37, 9),
                                                      ints(ta, 2, 3, 5, 1), ints(tb, 3, 1, 9), runtime=False)
            yield f"matmul-integer-{kind}-vector", one("MatMulInteger", 10, i32, a[0], b, runtime=False)
            yield f"qlinear-matmul-{kind}", one("QLinearMatMul", 10, out, a, scale(), ints(ta), b, scale(), ints(tb),
                                                np.float32(0.3), ints(ta), off=1, runtime=False)
            yield f"conv-integer-{kind}", one("ConvInteger", 10, i32, ints(ta, 2, 4, 9, 8), w, ints(ta), ints(tb),
                                              pads=[1, 1, 0, 2], strides=[2, 1], runtime=False)
            yield f"conv-integer-{kind}-groups", one("ConvInteger", 10, i32, ints(ta, 2, 4, 9, 8), w[:, :2], ints(ta), ints(tb),
                                                     pads=[1, 1, 1, 1], group=2, runtime=False)
            point = w[:, :, :1, :1]  # padded behind alone
            yield f"conv-integer-{kind}-point", one("ConvInteger", 10, i32, ints(ta, 2, 4, 5, 1), point, ints(ta), ints(tb), pads=[0, 0, 1, 2], runtime=False)
            if ta == np.uint8 or tb == np.int8:
                # ONNX Runtime adds two products of u8 and i8 in 16 bits, saturating, on CPUs without VNNI: 7 bits are exact.
                exact = w // 2 if ta != tb and tb == np.int8 else w
                yield f"qlinear-conv-{kind}", one("QLinearConv", 10, out, ints(ta, 2, 4, 9, 8), scale(), ints(ta), exact, scale(6),
                                                  ints(tb, 6), np.float32(0.3), ints(ta), ints(np.int16, 6).astype(np.int32),
                                                  pads=[1, 1, 0, 2], dilations=[1, 2], off=1)
    yield "qdq-conv", qdq_conv()
    for t in (np.int8, np.uint8):
        yield f"qdq-block-{np.dtype(t).name}", qdq_block(t)
    yield "qdq-matmul-zero-points", qdq_matmul()
    yield "int4-blocks", ([node("DequantizeLinear", "w s", "d", axis=0, block_size=32), node("MatMul", "a d", "u")],
                          {"a": f32(3, 256)}, {"w": narrow(ml_dtypes.int4, -8, 8, 256, 96), "s": f32(8, 96)}, {"u": F}, 21, 0,
                          {"a": ["n", 256]}, True)  # fmt: skip
    yield "uint4-rows-transposed", ([node("DequantizeLinear", "w s z", "d", axis=0), node("Transpose", "d", "t", perm=[1, 0]),
                                     node("MatMul", "a t", "u")], {"a": f32(2, 250)},
                                    {"w": narrow(ml_dtypes.uint4, 0, 16, 96, 250), "s": f32(96),
                                     "z": narrow(ml_dtypes.uint4, 0, 16, 96)}, {"u": F}, 21, 0, {}, True)  # fmt: skip
    for t in (np.int8, np.uint8):  # a scale and a zero point for each row of the one, each column of the other
        yield f"qlinear-matmul-{np.dtype(t).name}-lines", one(
            "QLinearMatMul", 21, [TYPES[t]], ints(t, 2, 5, 37), scale(2, 5, 1), ints(t, 2, 5, 1), ints(t, 2, 37, 19), scale(2, 1, 19),
            ints(t, 2, 1, 19), np.float32(0.3), ints(t), off=1, runtime=False)


def qdq_conv():
    """What exporters write: quantized and dequantized again around a convolution."""
    nodes = [node("QuantizeLinear", "a xs xz", "xq"), node("DequantizeLinear", "xq xs xz", "xd"),
             node("DequantizeLinear", "w ws wz", "wd", axis=0), node("DequantizeLinear", "bq bs", "bd", axis=0),
             node("Conv", "xd wd bd", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
             node("QuantizeLinear", "r ys yz", "yq"), node("DequantizeLinear", "yq ys yz", "u")]  # fmt: skip
    weights = {"xs": np.float32(0.02), "xz": np.uint8(128), "w": ints(np.int8, 16, 8, 3, 3), "ws": scale(16),
               "wz": np.zeros(16, np.int8), "bq": ints(np.int16, 16).astype(np.int32), "bs": scale(16) / 100,
               "ys": np.float32(0.05), "yz": np.uint8(0)}  # fmt: skip
    return nodes, {"a": f32(2, 8, 14, 14)}, weights, {"u": F}, 13, 0.05, {"a": ["n", 8, 14, 14]}, True


def qdq_block(t):
    """A block of a network: convolutions with a scale for each channel or one, a sum, relus, pools, all bytes between; the last is a quantum off."""
    low = np.iinfo(t).min
    dq, q = lambda x, s, z: node("DequantizeLinear", f"{x} {s} {z}", f"{x}_d"), lambda x, s, z: node("QuantizeLinear", f"{x} {s} {z}", f"{x}_q")  # noqa: E731
    nodes = [q("a", "xs", "xz"), dq("a_q", "xs", "xz"), node("DequantizeLinear", "w ws wz", "wd", axis=0), node("DequantizeLinear", "bq bs", "bd", axis=0),
             node("Conv", "a_q_d wd bd", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), q("r", "ys", "yz"), dq("r_q", "ys", "yz"),
             node("MaxPool", "r_q_d", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), q("m", "ys", "yz"), dq("m_q", "ys", "yz"),
             dq("k", "ks", "kz"), node("Conv", "m_q_d k_d", "e"), q("e", "es", "ez"), dq("e_q", "es", "ez"),
             node("Add", "e_q_d m_q_d", "s"), node("Relu", "s", "p"), q("p", "ys", "yz"), node("Transpose", "p_q", "u", perm=[0, 2, 3, 1])]  # fmt: skip
    weights = {"xs": np.float32(0.02), "xz": ints(t), "w": ints(np.int8, 16, 8, 3, 3), "ws": scale(16), "wz": np.zeros(16, np.int8),
               "bq": ints(np.int16, 16).astype(np.int32), "bs": scale(16) / 100, "ys": np.float32(0.25), "yz": t(low),
               "k": ints(np.int8, 16, 16, 1, 1), "ks": np.float32(0.004), "kz": np.int8(3), "es": np.float32(0.3), "ez": ints(t)}  # fmt: skip
    return nodes, {"a": f32(2, 8, 14, 14)}, weights, {"u": TYPES[t]}, 13, 2, {"a": ["n", 8, 14, 14]}, True


def qdq_matmul():
    """A product of bytes that are inputs, with a zero point for each row."""
    nodes = [node("DequantizeLinear", "a s z", "ad", axis=0), node("DequantizeLinear", "b t y", "bd", axis=1), node("MatMul", "ad bd", "v"),
             node("QuantizeLinear", "v us uz", "vq"), node("DequantizeLinear", "vq us uz", "u")]  # fmt: skip
    weights = {"s": scale(5), "z": ints(np.uint8, 5), "b": ints(np.int8, 37, 19), "t": scale(19), "y": ints(np.int8, 19), "us": np.float32(0.25), "uz": np.uint8(100)}
    return nodes, {"a": ints(np.uint8, 5, 37)}, weights, {"u": F}, 13, 0.26, {}, True


def check(nodes, given, weights, results, opset, off, dims, runtime):
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [helper.make_tensor_value_info(n, kind(x.dtype), dims.get(n, x.shape)) for n, x in given.items()]
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in results.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(w), n) for n, w in weights.items()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])
    if runtime:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        wanted = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, given)
    else:
        wanted = ReferenceEvaluator(model).run(None, given)
    flags = [f"--dim={d}=1..8" for d in {d for s in dims.values() for d in s if isinstance(d, str)}]
    for found, right in zip(AstraBackend.prepare(model, flags=flags).run(list(given.values())), wanted, strict=True):
        right = np.asarray(right)
        if found.dtype != right.dtype or found.shape != right.shape:
            raise Failed(f"found {found.dtype}{found.shape}, expected {right.dtype}{right.shape}")
        a, b = found.astype(np.float64), right.astype(np.float64)
        if not np.allclose(a, b, 1e-5 if right.dtype.kind == "f" else 0, off or (1e-5 if right.dtype.kind == "f" else 0)):
            raise Failed(f"found {found}, expected {right}")


def main():
    return run((name, lambda c=case: check(*c)) for name, case in cases())


if __name__ == "__main__":
    sys.exit(main())
