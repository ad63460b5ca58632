"""Ops of the domain com.microsoft, which ONNX Runtime's optimizer, quantizer and exporters of language models write.

Takes:    a build folder; ONNX Runtime's kernels for CPUs, or NumPy where it has none, for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; floats within 1e-4 of the largest
          magnitude (f16: 2e-3); quantized integers as the case says: equal, or within one step where ONNX Runtime
          rounds a float product otherwise. By default the first case of each op and one in five of the others; --all.
Does not: test what must be refused (test/Import/microsoft.test).

    build/venv/bin/python test/onnx/microsoft.py [--all] [--filter=REGEX]
"""

import copy
import os
import re
import sys

os.environ["ASTRA_EVAL"] = "1"
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from backend import AstraBackend, Failed  # noqa: E402
from harness import run  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(11)
DOMAIN = "com.microsoft"
NAMES = [f"i{k:02}" for k in range(20)]


def f32(*shape):
    return np.asarray(RNG.standard_normal(shape), np.float32)


def f16(*shape):
    return f32(*shape).astype(np.float16)


def ints(t, *shape, low=None, high=None):
    low, high = (np.iinfo(t).min, np.iinfo(t).max + 1) if high is None else (low or 0, high)
    return RNG.integers(low, high, shape).astype(t)


def i32(*values):
    return np.array(values, np.int32)


class Case:
    """One node. Inputs are arrays, or None for one that is left out; those whose numbers are in `weights` are
    initializers. `reference` gives the outputs where ONNX Runtime has no kernel, `stand_in` what its kernel is given in
    place of inputs that it cannot take, `look` picks what is compared. `kind` is the type of the outputs, where ONNX
    Runtime must be told."""

    def __init__(self, op, inputs, outputs=1, weights=(), dims=None, reference=None, stand_in=None, look=None, step=0, flags=(), domain=DOMAIN,
                 opset=1, kind=None, **attributes):  # fmt: skip
        self.op, self.inputs, self.outputs, self.weights = op, inputs, outputs, set(weights)
        self.dims, self.reference, self.look, self.step, self.flags = dims or {}, reference, look, step, list(flags)
        self.domain, self.opset, self.attributes, self.kind, self.stand_in = domain, opset, attributes, kind, stand_in

    def model(self):
        names = ["" if x is None else n for n, x in zip(NAMES, self.inputs)]
        results = [f"o{k}" for k in range(self.outputs)] if isinstance(self.outputs, int) else self.outputs
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        inputs, initializers = [], []
        for k, (name, x) in enumerate(zip(names, self.inputs)):
            if not name:
                continue
            x = np.asarray(x)
            if k in self.weights:
                initializers.append(numpy_helper.from_array(x, name))
            else:
                inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), self.dims.get(k, x.shape)))
        outputs = [onnx.ValueInfoProto(name=r) for r in results if r]
        if self.kind:
            outputs = [helper.make_tensor_value_info(r, self.kind, None) for r in results if r]
        graph = helper.make_graph([node], "g", inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", 21)] + ([helper.make_opsetid(self.domain, self.opset)] if self.domain else [])
        return helper.make_model(graph, ir_version=10, opset_imports=opsets)

    def given(self):
        return {n: np.asarray(x) for k, (n, x) in enumerate(zip(NAMES, self.inputs)) if x is not None and k not in self.weights}

    def wanted(self, model):
        if self.reference:
            results = self.reference(*self.inputs)
            return results if isinstance(results, list) else [results]
        if self.stand_in:
            other = copy.copy(self)
            other.inputs, other.stand_in = self.stand_in, None
            return other.wanted(other.model())
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, self.given())

    def check(self):
        model = self.model()
        wanted = self.wanted(model)
        names = {d for shape in self.dims.values() for d in shape if isinstance(d, str)}
        flags = self.flags + [f"--dim={d}=1..64" for d in sorted(names) if not any(f.startswith(f"--dim={d}=") for f in self.flags)]
        found = AstraBackend.prepare(model, flags=flags).run(list(self.given().values()))
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            b = np.asarray(b)
            if a.dtype != b.dtype or a.shape != b.shape:
                raise Failed(f"output {k}: found {a.dtype}{a.shape}, expected {b.dtype}{b.shape}")
            if self.look:
                a, b = self.look(k, a), self.look(k, b)
            a, b = a.astype(np.float64), b.astype(np.float64)
            integer = np.issubdtype(np.asarray(wanted[k]).dtype, np.integer)
            off = self.step if integer else (2e-3 if np.asarray(wanted[k]).dtype == np.float16 else 1e-4) * max(1, np.abs(b[np.isfinite(b)]).max(initial=0))
            if not np.allclose(a, b, 0, off, equal_nan=True):
                at = np.unravel_index(np.nanargmax(np.abs(a - b)), a.shape)
                raise Failed(f"output {k} at {at}: found {a[at]}, expected {b[at]}")


# ---- weights of few bits


def nbits(bits, k, n, block, batch=(3,), zero=None, groups=False, bias=False, kind=f32, weights=(1, 2, 3, 4, 5), **rest):
    blocks = -(-k // block)
    zeros = {None: None, "packed": lambda: ints(np.uint8, n, -(-blocks * bits // 8)), "flat": lambda: ints(np.uint8, n * -(-blocks * bits // 8)),
             "float": lambda: kind(n, blocks)}[zero]  # fmt: skip
    scale = kind(n, blocks) if zero != "flat" else kind(n * blocks)
    order = RNG.permutation(np.arange(k) // block).astype(np.int32) if groups else None
    return Case("MatMulNBits", [kind(*batch, k), ints(np.uint8, n, blocks, block * bits // 8), scale, zeros and zeros(), order, kind(n) if bias else None],
                weights=weights, K=k, N=n, bits=bits, block_size=block, **rest)  # fmt: skip


def columns_in_groups(x, w, scale, zero, groups, _):
    q, z = (np.stack([a & 15, a >> 4], -1).reshape(len(a), -1).astype(np.float32) for a in (w, zero))
    return x @ ((q - z[:, groups]) * scale[:, groups]).T


def few_bits():
    for bits in (4, 8, 2):
        yield nbits(bits, 64, 24, 32)
        yield nbits(bits, 96, 17, 32, (2, 3), "packed", bias=True)
        yield nbits(bits, 100, 8, 16, (4,), "packed")
        yield nbits(bits, 64, 24, 64, (5,), dims={0: ["n", 64]})
    yield nbits(4, 128, 32, 32, zero="flat")
    yield nbits(4, 128, 32, 128, zero="float")
    yield nbits(4, 128, 32, 16, groups=True)
    yield nbits(4, 128, 32, 16, zero="packed", groups=True, reference=columns_in_groups)  # where ONNX Runtime reads other zero points
    yield nbits(4, 64, 24, 32, zero="packed", weights=())
    yield nbits(4, 64, 16, 32, kind=f16, zero="packed")
    yield nbits(4, 256, 64, 128, (1, 7), accuracy_level=1)
    for indices in (ints(np.int64, 3, 2, high=20), ints(np.int32, 5, high=20), np.int64(7)):
        yield gather_blocks(ints(np.uint8, 20, 32), indices, f32(20, 4), None, bits=4, block_size=16, gather_axis=0, quantize_axis=1)
        yield gather_blocks(ints(np.uint8, 20, 32), indices, f32(20, 4), ints(np.uint8, 20, 2), bits=4, block_size=16, gather_axis=0, quantize_axis=1)
    yield gather_blocks(ints(np.uint8, 20, 64), ints(np.int64, 3, high=20), f32(20, 4), ints(np.uint8, 20, 4), bits=8, block_size=16, gather_axis=0, quantize_axis=1)
    yield gather_blocks(ints(np.uint8, 20, 64), ints(np.int64, 3, low=-20, high=0), f16(20, 4), None, bits=4, block_size=32, gather_axis=0, quantize_axis=1)


def gather_blocks(data, indices, scales, zeros, **attributes):
    return Case("GatherBlockQuantized", [data, indices, scales, zeros], weights=(0, 2, 3), **attributes)


# ---- attention


def rotary_tables(positions, half, kind=f32):
    angles = np.arange(positions)[:, None] / 100 ** (np.arange(half) / half)
    return np.cos(angles).astype(kind(0).dtype), np.sin(angles).astype(kind(0).dtype)


def rotary():
    for interleaved in (0, 1):
        cos, sin = rotary_tables(20, 8)
        ids = ints(np.int64, 2, 5, high=20)
        yield Case("RotaryEmbedding", [f32(2, 5, 48), ids, cos, sin], weights=(2, 3), interleaved=interleaved)
        yield Case("RotaryEmbedding", [f32(2, 5, 48), np.array([3]), cos, sin], weights=(2, 3), interleaved=interleaved, dims={0: ["b", "s", 48]})
        yield Case("RotaryEmbedding", [f32(2, 3, 5, 16), ids, cos, sin], weights=(2, 3), interleaved=interleaved)
        yield Case("RotaryEmbedding", [f32(2, 5, 96), ids, cos, sin], interleaved=interleaved, num_heads=4, rotary_embedding_dim=16)
    yield Case("RotaryEmbedding", [f16(2, 5, 48), ids, *rotary_tables(20, 8, f16)], weights=(2, 3))


def multi_head(heads, s, keys, size, vsize=None, bias=False, mask=None, score_bias=None, past=0, outputs=1, batch=2, **rest):
    vsize = vsize or size
    q, k, v = f32(batch, s, heads * size), f32(batch, keys, heads * size), f32(batch, keys, heads * vsize)
    b = f32(heads * (2 * size + vsize)) if bias else None
    cache = [f32(batch, heads, past, size), f32(batch, heads, past, vsize)] if past else [None, None]
    return Case("MultiHeadAttention", [q, k, v, b, mask, score_bias, *cache], outputs, num_heads=heads, **rest)


def attentions():
    yield multi_head(3, 4, 4, 8)
    yield multi_head(2, 4, 6, 8, vsize=4, bias=True)
    yield multi_head(2, 4, 4, 8, bias=True, unidirectional=1)
    yield multi_head(2, 4, 6, 8, mask=i32(6, 3))
    yield multi_head(2, 4, 6, 8, mask=ints(np.int32, 2, 6, high=2))
    yield multi_head(2, 4, 6, 8, mask=ints(np.int32, 2, 4, 6, high=2), scale=0.3)
    yield multi_head(2, 4, 6, 8, score_bias=f32(1, 2, 4, 6))
    yield multi_head(2, 4, 6, 8, score_bias=f32(2, 1, 4, 6), mask=ints(np.int32, 2, 6, high=2), mask_filter_value=-50.0)
    yield multi_head(2, 3, 3, 8, past=5, outputs=3)
    yield multi_head(2, 1, 1, 8, past=5, outputs=3, bias=True, mask=ints(np.int32, 2, 6, high=2))
    yield multi_head(2, 3, 3, 8, past=5, outputs=3, unidirectional=1)
    yield multi_head(2, 3, 3, 8, outputs=3, dims={0: ["b", "s", 16], 1: ["b", "s", 16], 2: ["b", "s", 16]})
    yield multi_head(2, 3, 5, 8, outputs=4, kind=onnx.TensorProto.FLOAT, scale=0.7)
    yield multi_head(2, 3, 5, 8, outputs=4, kind=onnx.TensorProto.FLOAT, mask=ints(np.int32, 2, 5, high=2), score_bias=f32(1, 1, 3, 5))
    yield Case("MultiHeadAttention", [f32(2, 3, 16), f32(2, 2, 7, 8), f32(2, 2, 7, 8)], num_heads=2)
    for packed in ([f32(2, 4, 3, 3, 8)], [f32(2, 4, 24), f32(2, 5, 3, 2, 8)]):
        yield Case("MultiHeadAttention", packed, num_heads=3, reference=plain_attention)

    def joined(inputs, hidden, heads, *rest, outputs=1, **attributes):
        return Case("Attention", [inputs, f32(inputs.shape[-1], sum(hidden)), *rest], outputs, weights=(1, 2), num_heads=heads, **attributes)

    x = f32(2, 4, 10)
    yield joined(x, [16] * 3, 2, f32(48))
    yield joined(x, [16] * 3, 2, f32(48), i32(4, 2))
    unbiased = joined(x, [16] * 3, 2, None, i32(4, 2))  # ONNX Runtime 1.31 crashes there
    unbiased.stand_in = [x, unbiased.inputs[1], np.zeros(48, np.float32), unbiased.inputs[3]]
    yield unbiased
    yield joined(x, [16] * 3, 2, f32(48), i32(4, 3, 0, 1))
    yield joined(x, [16] * 3, 2, f32(48), ints(np.int32, 2, 4, high=2), unidirectional=1)
    yield joined(x, [16] * 3, 2, f32(48), ints(np.int32, 2, 4, 4, high=2))
    yield joined(x, [16, 16, 24], 2, f32(56), qkv_hidden_sizes=[16, 16, 24], scale=0.2)
    yield joined(x, [16] * 3, 2, f32(48), None, f32(2, 2, 2, 5, 8), outputs=2, unidirectional=1)
    yield joined(x, [16] * 3, 2, f32(48), ints(np.int32, 2, 9, high=2), f32(2, 2, 2, 5, 8), outputs=2)
    yield joined(x, [16] * 3, 2, f32(48), ints(np.int32, 2, 4, high=2), None, f32(1, 2, 4, 4))
    yield joined(x, [16] * 3, 2, f32(48), dims={0: ["b", "s", 10]})

    def step(heads, size, past, rows, *, mask=None, shared=True, bias=None, batch=2):
        cache = [f32(batch, heads, rows if shared else past, size) for _ in range(2)]
        x = [f32(batch, 1, heads * size) for _ in range(3)]
        if not shared:  # for which ONNX Runtime has another op
            same = Case("MultiHeadAttention", [*x, None, mask, None, *cache], 3, num_heads=heads)
            return Case("DecoderMaskedMultiHeadAttention", [*x, mask, None, *cache], 3, num_heads=heads, reference=lambda *_: same.wanted(same.model()))
        return Case("DecoderMaskedMultiHeadAttention", [*x, mask, None, *cache, i32(past) if shared else None, None, None, bias], 3,
                    num_heads=heads, past_present_share_buffer=int(shared),
                    look=(lambda k, a: a if k == 0 else a[:, :, : past + 1]))  # fmt: skip

    yield step(2, 8, 4, 9)
    yield step(2, 8, 0, 9, bias=f32(48))
    yield step(2, 8, 4, 9, mask=ints(np.int32, 2, 5, high=2))
    yield step(2, 8, 4, 9, shared=False)


def plain_attention(q, kv=None):
    """Packed operands: [batch, sequence, heads, parts, size]."""
    q, k, v = (q[:, :, :, i] for i in range(3)) if kv is None else (q.reshape(*q.shape[:2], 3, 8), kv[:, :, :, 0], kv[:, :, :, 1])
    s = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    y = np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v)
    return y.reshape(*y.shape[:2], -1).astype(np.float32)


def grouped(heads, kv, s, lengths, size=16, rows=None, total=None, packed=False, rotary=0, bias=None, sink=None, positions=None, dims=None, kind=f32,
            known=True, **rest):
    """lengths: keys of each sequence with the new ones. rows: of the caches given; None: there are none."""
    batch, total = len(lengths), total or max(lengths)
    q, k, v = kind(batch, s, heads * size), kind(batch, s, kv * size), kind(batch, s, kv * size)
    if packed:
        q, k, v = np.concatenate([q, k, v], -1), None, None
    cache = [None, None] if rows is None else [kind(batch, kv, rows, size) for _ in range(2)]
    tables = rotary_tables(64, rotary // 2, kind) if rotary else (None, None)
    inputs = [q, k, v, *cache, i32(*[n - 1 for n in lengths]), i32(total)[0], *tables, positions, bias, sink]
    valid = [min(s, n) if total == s else s for n in lengths]

    def look(k, a):
        parts = [a[b, : valid[b]] if k == 0 else a[b, :, : lengths[b]] for b in range(batch)]
        return np.concatenate([p.ravel() for p in parts])

    weights = {7, 8} | ({6} if known else set())
    return Case("GroupQueryAttention", inputs, 3, weights=weights, look=look, dims=dims, num_heads=heads, kv_num_heads=kv, do_rotary=int(rotary > 0), **rest)


def grouped_attentions():
    yield grouped(4, 2, 6, [6, 6])
    yield grouped(4, 2, 6, [6, 4])
    yield grouped(4, 2, 6, [6, 4], rows=0, packed=True, rotary=16)
    yield grouped(4, 1, 1, [9, 6], rows=8)
    yield grouped(4, 2, 1, [9, 6], rows=16, rotary=16, packed=True)
    yield grouped(4, 2, 1, [9, 6], rows=16, rotary=16, known=False)
    yield grouped(4, 2, 3, [9], rows=6, rotary=16, rotary_interleaved=1)
    yield grouped(2, 2, 3, [9], rows=6, size=32, rotary=16, scale=0.2)
    yield grouped(4, 2, 6, [6, 5], rows=10, softcap=3.0)
    yield grouped(4, 2, 8, [8, 8], local_window_size=3)
    yield grouped(4, 2, 1, [9, 3], rows=8, local_window_size=4)
    yield grouped(4, 2, 6, [6, 6], smooth_softmax=1)
    yield grouped(4, 2, 1, [9, 5], rows=12, sink=f32(4))
    yield grouped(4, 2, 6, [6, 6], bias=f32(1, 4, 6, 6))
    yield grouped(4, 2, 1, [7, 7], rows=6, bias=f32(2, 1, 1, 7))
    yield grouped(4, 2, 2, [8], rows=6, rotary=16, positions=np.array([[3, 9]]))
    yield grouped(4, 2, 6, [6, 6], causal=0)
    yield grouped(4, 2, 1, [9, 6], rows=16, kind=f16, rotary=16)
    yield grouped(4, 2, 2, [8], rows=6, total=8, dims={0: [1, "s", 64], 1: [1, "s", 32], 2: [1, "s", 32], 3: [1, 2, "p", 16], 4: [1, 2, "p", 16]},
                  flags=["--dim=p=0..8"])  # fmt: skip


# ---- norms and activations


def norms():
    for op, extra in (("SkipLayerNormalization", True), ("SkipSimplifiedLayerNormalization", False)):
        more = [f32(12)] if extra else []
        yield Case(op, [f32(2, 5, 12), f32(2, 5, 12), f32(12), *more, f32(12)], ["o0", "", "", "o3"], weights=(2, 3, 4))
        yield Case(op, [f32(2, 5, 12), f32(1, 5, 12), f32(12), *more], epsilon=1e-3)
        yield Case(op, [f32(2, 5, 12), f32(5, 12), f32(12), *more], dims={0: ["b", 5, 12]})
        yield Case(op, [f16(2, 5, 12), f16(2, 5, 12), f16(12), *([f16(12)] if extra else []), f16(12)], ["o0", "", "", "o3"])
    for domain in ("", DOMAIN):
        if domain == "":
            yield Case("SimplifiedLayerNormalization", [f32(2, 5, 12), f32(12)], domain=domain, axis=-1, epsilon=1e-4, stash_type=1)
            yield Case("SimplifiedLayerNormalization", [f32(2, 5, 12), f32(5, 12)], domain=domain, axis=1)
    words, table = ints(np.int32, 2, 5, high=9), [f32(9, 12), f32(7, 12)]
    yield Case("EmbedLayerNormalization", [words, ints(np.int32, 2, 5, high=2), *table, f32(2, 12), f32(12), f32(12), ints(np.int32, 2, 5, high=2)], 3, weights=range(2, 7))
    yield Case("EmbedLayerNormalization", [words, None, *table, None, f32(12), f32(12)], 2, weights=range(2, 7))
    yield Case("EmbedLayerNormalization", [words, None, *table, None, f32(12), f32(12), None, ints(np.int32, 2, 5, high=7)], ["o0", "", "o2"], weights=range(2, 7))
    for last in (0, 1):
        for activation in (0, 1):
            x = f32(2, 5, 3, 12) if last else f32(2, 12, 5, 3)
            rest = dict(groups=4, activation=activation, channels_last=last, epsilon=1e-4)
            yield Case("GroupNorm", [x, f32(12), f32(12)], reference=lambda *a, r=rest: group_norm(*a, **r)[0], **rest)
            yield Case("SkipGroupNorm", [x, f32(12), f32(12), f32(*x.shape) if activation else f32(2, 12), f32(12)], 2, reference=lambda *a, r=rest: group_norm(*a, **r), **rest)
    for t in (np.float32, np.float16):
        yield Case("BiasGelu", [f32(3, 4, 8).astype(t) * 2, f32(8).astype(t)], reference=None if t == np.float32 else lambda x, b: gelu_of(x, b))
        yield Case("FastGelu", [f32(3, 4, 8).astype(t) * 2, f32(8).astype(t)])
        yield Case("FastGelu", [f32(3, 4, 8).astype(t) * 2])
        yield Case("QuickGelu", [f32(3, 4, 8).astype(t)], alpha=1.3)
    yield Case("QuickGelu", [f32(3, 4, 8)])
    yield Case("Gelu", [f32(3, 4, 8) * 2])
    yield Case("BiasSplitGelu", [f32(2, 4, 16), f32(16)], reference=lambda x, b: (x + b)[..., :8] * gelu_of((x + b)[..., 8:], 0))


def gelu_of(x, bias):
    from math import erf

    y = x.astype(np.float64) + np.asarray(bias, np.float64)
    return (y / 2 * (1 + np.vectorize(erf)(y / np.sqrt(2)))).astype(x.dtype)


def group_norm(x, scale, shift, skip=None, bias=None, *, groups, activation, channels_last, epsilon):
    x = x if channels_last else np.moveaxis(x, 1, -1)
    if skip is not None:
        x = x + (skip[:, None, None] if skip.ndim == 2 else skip if channels_last else np.moveaxis(skip, 1, -1)) + bias
    y = x.reshape(*x.shape[:-1], groups, -1).astype(np.float64)
    axes = (*range(1, x.ndim - 1), x.ndim)
    y = (y - y.mean(axes, keepdims=True)) / np.sqrt(y.var(axes, keepdims=True) + epsilon)
    y = y.reshape(x.shape) * scale + shift
    y = (y / (1 + np.exp(-y)) if activation else y).astype(np.float32)
    return [z if channels_last else np.moveaxis(z, -1, 1) for z in (y, x)]


FAMILIES = [few_bits, rotary, attentions, grouped_attentions, norms]


def cases(everything):
    seen, number = {}, 0
    for family in FAMILIES:
        for case in family():
            k = seen[case.op] = seen.get(case.op, -1) + 1
            number += 1
            if everything or k == 0 or number % 5 == 0:
                yield f"{case.op}-{k}", case


def main():
    everything = "--all" in sys.argv
    pattern = next((a.removeprefix("--filter=") for a in sys.argv if a.startswith("--filter=")), "")
    return run((name, case.check) for name, case in cases(everything or bool(pattern)) if re.search(pattern, name))


if __name__ == "__main__":
    sys.exit(main())
