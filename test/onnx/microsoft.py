"""Ops of the domain com.microsoft, which ONNX Runtime's optimizer, quantizer and exporters of language models write.

Takes:    a build folder; ONNX Runtime's kernels for CPUs, or NumPy where it has none, for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; floats within 1e-4 of the largest
          magnitude (f16: 2e-3); quantized integers as the case says: equal, or within one step where ONNX Runtime
          rounds a float product otherwise. By default one case in eight of each family; all with --all, and
          at night.
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
                 opset=1, kind=None, tolerance=None, **attributes):  # fmt: skip
        self.op, self.inputs, self.outputs, self.weights = op, inputs, outputs, set(weights)
        self.dims, self.reference, self.look, self.step, self.flags = dims or {}, reference, look, step, list(flags)
        if "opset_" in attributes:  # an attribute of this name
            attributes["opset"] = attributes.pop("opset_")
        self.tolerance = tolerance
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
            off = self.tolerance or (2e-3 if np.asarray(wanted[k]).dtype == np.float16 else 1e-4)
            off = self.step if integer else off * max(1, np.abs(b[np.isfinite(b)]).max(initial=0))
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
            known=True, norms=False, **rest):
    """lengths: keys of each sequence with the new ones. rows: of the caches given; None: there are none."""
    batch, total = len(lengths), total or max(lengths)
    q, k, v = kind(batch, s, heads * size), kind(batch, s, kv * size), kind(batch, s, kv * size)
    if packed:
        q, k, v = np.concatenate([q, k, v], -1), None, None
    cache = [None, None] if rows is None else [kind(batch, kv, rows, size) for _ in range(2)]
    tables = rotary_tables(64, rotary // 2, kind) if rotary else (None, None)
    inputs = [q, k, v, *cache, i32(*[n - 1 for n in lengths]), i32(total)[0], *tables, positions, bias, sink]
    plain = None
    if norms:  # which ONNX Runtime has on GPUs alone: the same op of operands that are normalized
        parts = np.split(q, [heads * size, (heads + kv) * size], -1) if packed else [q, k, v]
        scales, epsilon = (kind(size), kind(size)), rest.get("qk_norm_epsilon", 1e-6)
        for i, scale in enumerate(scales):
            x = parts[i].reshape(batch, s, -1, size)
            parts[i] = (x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * scale).reshape(parts[i].shape)
        plain = [*([np.concatenate(parts, -1), None, None] if packed else parts), *inputs[3:]]
        inputs += [None, None, *scales]
    valid = [min(s, n) if total == s else s for n in lengths]

    def look(k, a):
        parts = [a[b, : valid[b]] if k == 0 else a[b, :, : lengths[b]] for b in range(batch)]
        return np.concatenate([p.ravel() for p in parts])

    weights = {7, 8} | ({6} if known else set())
    return Case("GroupQueryAttention", inputs, 3, weights=weights, look=look, dims=dims, stand_in=plain, num_heads=heads, kv_num_heads=kv, do_rotary=int(rotary > 0), **rest)


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
    yield grouped(4, 2, 6, [6, 4], norms=True)
    yield grouped(4, 2, 1, [9, 6], rows=16, rotary=16, norms=True, qk_norm_epsilon=1e-3)
    yield grouped(4, 2, 1, [9, 6], rows=16, rotary=16, packed=True, norms=True, local_window_size=4, softcap=2.0)
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


# ---- quantized layers


def scale(*shape):
    return np.asarray(np.abs(RNG.standard_normal(shape)) * 0.01 + 0.005, np.float32)


def quantized():
    for t in (np.uint8, np.int8):
        for op in ("QLinearAdd", "QLinearMul"):
            s = (scale(), scale(), scale() * 2) if op == "QLinearAdd" else (scale(), scale(), scale() / 2)
            yield Case(op, [ints(t, 3, 40), s[0], ints(t), ints(t, 3, 40), s[1], ints(t), s[2], ints(t)], step=1)
            open_zeros = Case(op, [ints(t, 3, 4, 5), s[0], None, ints(t, 4, 1), s[1], None, s[2], None], step=1, dims={0: ["n", 4, 5]})
            open_zeros.stand_in = [np.zeros((), t) if x is None else x for x in open_zeros.inputs]  # ONNX Runtime infers no type
            yield open_zeros
        yield Case("QLinearSigmoid", [ints(t, 3, 40), scale(), ints(t), np.float32(1 / 256), ints(t)], step=1)
        yield Case("QLinearLeakyRelu", [ints(t, 3, 40), scale(), ints(t), scale(), ints(t)], step=1, alpha=0.3)
        for opset, axis in ((13, 1), (12, 1), (13, -1)):
            yield Case("QLinearSoftmax", [ints(t, 3, 8, 5), scale() * 8, ints(t), np.float32(1 / 256), np.array(0 if t == np.uint8 else -128, t)], step=1, opset_=opset, axis=axis)
        for rest in (dict(kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]), dict(kernel_shape=[2, 2], count_include_pad=1, pads=[1, 1, 0, 0])):
            yield Case("QLinearAveragePool", [ints(t, 2, 3, 9, 8), scale(), ints(t), scale(), ints(t)], step=1, **rest)
            yield Case("QLinearAveragePool", [ints(t, 2, 9, 8, 3), scale(), ints(t), scale(), ints(t)], step=1, channels_last=1, **rest)
        yield Case("QLinearGlobalAveragePool", [ints(t, 2, 3, 9, 8), scale(), ints(t), scale(), ints(t)], step=1)
        yield Case("QLinearGlobalAveragePool", [ints(t, 2, 9, 8, 3), scale(), ints(t), scale(), ints(t)], step=1, channels_last=1)
        yield Case("QLinearConcat", [scale(), ints(t), ints(t, 2, 3), scale(), ints(t), ints(t, 2, 5), scale(), ints(t)], step=1, axis=1)
        yield Case("QLinearWhere", [RNG.random((3, 1)) < 0.5, ints(t, 3, 5), scale(), ints(t), ints(t, 5), scale(), ints(t), scale(), ints(t)], step=1)
        s = (scale(), scale())
        zeros = (ints(t), ints(t))
        yield Case("QLinearReduceMean", [ints(t, 2, 3, 9), s[0], zeros[0], s[1], zeros[1]], step=1, axes=[-1], keepdims=0,
                   reference=lambda x, a, za, c, zc: requantize((x.astype(np.float32) - za).mean(-1) * a, c, zc))  # fmt: skip
        yield Case("ReduceSumInteger", [ints(t, 2, 3, 9)], axes=[0, 2], keepdims=1,
                   reference=lambda x: x.astype(np.int32 if x.dtype == np.int8 else np.uint32).sum((0, 2), keepdims=True, dtype=np.int32 if x.dtype == np.int8 else np.uint32))  # fmt: skip
        yield Case("MulInteger", [ints(t, 3, 5), ints(t), ints(t, 5), None], reference=lambda x, z, y, _: (x.astype(np.int32) - z) * y.astype(np.int32))
        yield Case("NhwcMaxPool", [ints(t, 2, 9, 8, 3)], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        for b in (np.uint8, np.int8):
            if t == np.int8 and b == np.uint8:
                continue
            for extra in ({}, dict(transA=1, alpha=0.5), dict(transB=1)):
                x, y = ints(t, *((37, 5) if extra.get("transA") else (5, 37))), ints(b, *((19, 37) if extra.get("transB") else (37, 19)), low=-60 if b == np.int8 else 0, high=60)
                yield Case("QGemm", [x, scale(), ints(t), y, scale(), ints(b), ints(np.int16, 19).astype(np.int32), scale() * 20, ints(t)], step=1, weights=(3, 4, 5), **extra)
            yield Case("QGemm", [ints(t, 5, 37), scale(), ints(t), ints(b, 37, 19, low=-60 if b == np.int8 else 0, high=60), scale(19), ints(b, 19), None], weights=(3, 4, 5))
            y = ints(b, 37, 19, low=-60 if b == np.int8 else 0, high=60)
            yield Case("MatMulIntegerToFloat", [ints(t, 2, 5, 37), y, scale(), scale(19), ints(t), ints(b, 19), f32(19)], weights=(1, 3, 5, 6))
            yield Case("MatMulIntegerToFloat", [ints(t, 5, 37), y, scale(), scale()], weights=(1, 3))
            yield Case("QLinearConv", [ints(t, 2, 9, 8, 4), scale(), ints(t), ints(b, 6, 4, 3, 3, low=-60 if b == np.int8 else 0, high=60), scale(6), np.zeros(6, b), scale() * 20, ints(t),
                                       ints(np.int16, 6).astype(np.int32)], step=1, weights=(3, 4, 5), channels_last=1, pads=[1, 1, 0, 2], strides=[2, 1])  # fmt: skip
    for b in (np.uint8, np.int8):
        y = ints(b, 37, 19, low=-60 if b == np.int8 else 0, high=60)
        yield Case("DynamicQuantizeMatMul", [f32(5, 37), y, scale(19), np.zeros(19, b), f32(19)], weights=(1, 2, 3, 4), dims={0: ["n", 37]})
        yield Case("DynamicQuantizeMatMul", [f32(2, 5, 37), y, scale(), ints(b)], weights=(1, 2, 3))
        w = ints(b, 12, 48, low=-60 if b == np.int8 else 0, high=60)
        yield Case("QAttention", [ints(np.uint8, 2, 4, 12), w, f32(48), scale(), scale(), ints(np.int32, 2, 4, high=2), ints(np.uint8), ints(b)], weights=(1, 2, 4, 7), num_heads=2)
        yield Case("QAttention", [ints(np.uint8, 2, 4, 12), w, f32(48), scale(), scale(), None, ints(np.uint8), ints(b), f32(2, 2, 2, 3, 8)], 2, weights=(1, 2, 4, 7), num_heads=2, unidirectional=1)
        for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            def matrix(rows, b=b, d=d):
                return ints(b, d, rows, 24, low=-60 if b == np.int8 else 0, high=60)

            yield Case("DynamicQuantizeLSTM", [f32(5, 1, 7), matrix(7), matrix(6), f32(d, 48), None, f32(d, 1, 6), None, None, scale(d), np.zeros(d, b), scale(d), np.zeros(d, b)], 3,
                       weights=range(1, 12), hidden_size=6, direction=direction, kind=onnx.TensorProto.FLOAT, tolerance=2e-2)  # fmt: skip
    yield Case("MatMulInteger16", [ints(np.int16, 5, 37, low=-900, high=900), ints(np.int16, 37, 9, low=-900, high=900)])
    for t in (np.uint8, np.int8, np.int16, np.uint16):
        yield Case("QuantizeLinear", [f32(3, 4, 5) * 100, np.float32(0.7), ints(t)])
        yield Case("QuantizeLinear", [f32(3, 4, 5) * 100, scale(4) * 50, ints(t, 4)], axis=1)
        yield Case("DequantizeLinear", [ints(t, 3, 4, 5), scale(4), ints(t, 4)], axis=1)
        yield Case("DequantizeLinear", [ints(t, 3, 4, 5), scale(), ints(t)])


def requantize(x, s, zero):
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / s) + zero, info.min, info.max).astype(zero.dtype)


# ---- products, convolutions and the rest


def fused():
    for op in ("FusedMatMul", "TransposeMatMul"):
        for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
            x, y = f32(2, 3, *((7, 5) if a else (5, 7))), f32(3, *((4, 7) if b else (7, 4)))
            yield Case(op, [x, y], transA=a, transB=b, alpha=0.3)
    yield Case("FusedMatMul", [f32(5, 2, 3, 7), f32(7, 2, 3, 4)], transBatchA=1, transBatchB=1)
    yield Case("FusedMatMul", [f32(7, 2, 3, 5), f32(2, 3, 4, 7)], transBatchA=1, transA=1, transB=1)
    for name, numbers in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        rest = {"activation_params": numbers} if numbers else {}
        yield Case("FusedConv", [f32(2, 4, 9, 8), f32(6, 4, 3, 3), f32(6)], activation=name, pads=[1, 1, 1, 1], weights=(1, 2), **rest)
        rest = dict(zip(("activation_alpha", "activation_beta"), numbers))
        if name != "Clip":  # which ONNX Runtime's kernel does not take
            yield Case("FusedGemm", [f32(5, 7), f32(7, 4), f32(4)], activation=name, alpha=0.5, **rest)
    yield Case("FusedConv", [f32(2, 4, 9, 8), f32(6, 2, 3, 3), f32(6), f32(2, 6, 7, 6)], activation="Relu", group=2, weights=(1, 2))
    x, w, b, z = f32(2, 9, 8, 4), f32(6, 4, 3, 3), f32(6), f32(2, 7, 6, 6)
    for op, inputs, rest in (("NhwcConv", [x, w, b], {}), ("NhwcFusedConv", [x, w, b, z], dict(activation="Relu"))):
        plain = Case("FusedConv", [np.moveaxis(a, -1, 1) if a.ndim == 4 and a is not w else a for a in inputs], activation=rest.get("activation", ""), weights=(1, 2))
        yield Case(op, inputs, weights=(1, 2), reference=lambda *_, p=plain, r=rest: np.moveaxis(p.wanted(p.model())[0], 1, -1) if r else conv_alone(p), **rest)
    yield Case("GemmFastGelu", [f32(3, 5, 7), f32(7, 4), f32(4)], weights=(1, 2), reference=lambda x, w, b: tanh_gelu(x @ w + b))
    yield Case("FusedMatMulActivation", [f32(3, 5, 7), f32(7, 4)], activation="Relu", transA=0, reference=lambda x, w: np.maximum(x @ w, 0))
    yield Case("BiasAdd", [f32(2, 5, 8), f32(8), f32(2, 5, 8)], reference=lambda x, b, y: x + b + y)
    yield Case("BiasSoftmax", [f32(2, 3, 4, 5), f32(2, 1, 1, 5)], axis=3, is_inner_broadcast=1, reference=lambda x, b: softmax(x + b))
    yield Case("BiasDropout", [f32(2, 5, 8), f32(8), f32(2, 5, 8)], reference=lambda x, b, y: x + b + y)
    yield Case("CDist", [f32(5, 7), f32(6, 7)], metric="euclidean")
    yield Case("CDist", [f32(5, 7), f32(6, 7)])
    yield Case("Unique", [ints(np.int64, 20, high=6).astype(np.float32)], 3)
    yield Case("ExpandDims", [f32(2, 3), np.array([-1], np.int32)], weights=(1,))
    yield Case("GatherND", [f32(3, 4, 5), ints(np.int64, 2, 2, high=3)])
    yield Case("Inverse", [f32(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)], reference=np.linalg.inv)
    yield Case("TorchEmbedding", [f32(9, 4), ints(np.int64, 2, 3, high=9)], reference=lambda t, i: t[i])
    yield Case("Trilu", [f32(2, 4, 5), np.array(1)], upper=0)
    yield Case("Trilu", [f32(2, 4, 5)])
    yield Case("Range", [np.int64(2), np.int64(11), np.int64(3)], weights=(0, 1, 2))
    yield Case("Pad", [f32(2, 3), np.array([0, 1, 2, 0]), np.array([0.5], np.float32)], weights=(1, 2))
    for mode in ("bilinear", "nearest", "bicubic"):
        for outside in ("zeros", "border", "reflection"):
            yield Case("GridSample", [f32(2, 3, 6, 5), f32(2, 4, 3, 2)], mode=mode, padding_mode=outside, align_corners=int(mode == "nearest"))
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0.5, -0.2, 1.3, 0.6], [0.9, 0.8, 0.1, 0.1]], np.float32)
    for size in ([3, 4], [1, 5]):
        yield Case("CropAndResize", [f32(2, 3, 9, 8), boxes, i32(1, 0, 1), np.array(size, np.int32)], weights=(3,), extrapolation_value=0.5)
    yield Case("CropAndResize", [f32(2, 3, 9, 8), boxes, i32(1, 0, 1), np.array([3, 4], np.int32)], weights=(3,), mode="nearest")


def conv_alone(case):
    relu = copy.copy(case)
    relu.op, relu.domain, relu.attributes = "Conv", "", {}
    return np.moveaxis(relu.wanted(relu.model())[0], 1, -1)


def tanh_gelu(x):
    return (x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def chosen(families):
    """The cases that the command line asks for, as names and functions."""
    everything = "--all" in sys.argv or bool(os.environ.get("ASTRA_NIGHTLY"))
    pattern = next((a.removeprefix("--filter=") for a in sys.argv if a.startswith("--filter=")), "")
    seen = {}
    for family in families:
        for number, case in enumerate(family()):
            k = seen[case.op] = seen.get(case.op, -1) + 1
            name = f"{case.op}-{k}"
            if re.search(pattern, name) and (everything or pattern or number % 8 == 0):
                yield name, case.check


# ---- mixtures of experts


def experts_in_numpy(x, scores, layers, k=1, normalized=0, activation="relu", halves=0, alpha=1.0, beta=0.0, limit=np.inf, shares=None):
    """layers: weights and bias (or None) of the first, the second and, beside the first, the third."""
    rows, (first, second, third) = x.reshape(-1, x.shape[-1]).astype(np.float64), layers
    parts, y = softmax(scores.astype(np.float64)), np.zeros(x.reshape(-1, x.shape[-1]).shape)
    through = lambda v, layer, e: v @ layer[0][e].astype(np.float64).T + (0 if layer[1] is None else layer[1][e])
    for i, row in enumerate(rows):
        top = np.argsort(-parts[i], kind="stable")[:k]
        weights = (parts if shares is None else shares)[i, top]
        for e, weight in zip(top, weights / weights.sum() if normalized else weights):
            h, other = through(row, first, e), third and through(row, third, e)
            if activation == "swiglu":
                h, other = [(h, other), (h[0::2], h[1::2]), tuple(np.split(h, 2))][halves]
                h, other = np.minimum(h, limit), np.clip(other, -limit, limit) + beta
            h = {"relu": np.maximum(h, 0), "gelu": h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))), "identity": h}.get(activation, h / (1 + np.exp(-alpha * h)))
            y[i] += weight * through(h if other is None else h * other, second, e)
    return y.reshape(x.shape).astype(x.dtype)


def expert_bytes(bits, block, zeros, out, width, experts=5):
    """Bytes, scales, zero points or None, and the numbers that they are."""
    unpack = lambda a: np.stack([a >> (bits * j) & ((1 << bits) - 1) for j in range(8 // bits)], -1).reshape(*a.shape[:-1], -1).astype(np.float32)
    w, blocks = ints(np.uint8, experts, out, width * bits // 8), width // block if block else 1
    scale = np.abs(f32(experts, out, blocks)) / (1 << bits)
    zero = ints(np.uint8, *((experts, out, -(-blocks * bits // 8)) if block else (experts, -(-out * bits // 8)))) if zeros else None
    point = np.full((experts, out, blocks), 1 << (bits - 1), np.float32)
    if zeros:
        point = unpack(zero)[..., :blocks] if block else unpack(zero)[:, :out, None]
    each = lambda a: np.repeat(a, width // blocks, -1)
    return w, scale if block else scale[..., 0], zero, (unpack(w) - each(point)) * each(scale)


def mixtures():
    gpt = dict(activation_type="swiglu", activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    for name in ("relu", "gelu", "silu", "identity", "swiglu"):
        for normalized in (0, 1):
            n = 2 if name == "swiglu" else 1
            rest = dict(gpt, swiglu_fusion=1) if n == 2 else dict(activation_type=name)
            x, first = (f32(2, 3, 32), f32(6, 5)) if normalized else (f32(6, 32), f32(6, 5)), (f32(5, n * 64, 32), f32(5, n * 64))
            yield Case("MoE", [*x, *first, f32(5, 32, 64), f32(5, 32) if normalized else None], k=2, normalize_routing_weights=normalized, weights=(2, 3, 4, 5),
                       dims={0: ["n", 32], 1: ["n", 5]} if not normalized else None, **rest)  # fmt: skip
    for halves in (0, 2):
        layers = [(f32(5, 64 * (1 + halves // 2), 32), None), (f32(5, 32, 64), None), None if halves else (f32(5, 64, 32), f32(5, 64))]
        yield Case("MoE", [f32(6, 32), f32(6, 5), *layers[0], *layers[1], *(layers[2] or (None, None))], k=3, weights=range(2, 8), swiglu_fusion=halves, **gpt,
                   reference=lambda x, s, *_, a=layers, h=halves: experts_in_numpy(x, s, a, 3, 0, "swiglu", h, 1.702, 1.0, 7.0))  # fmt: skip
    layers = [(f32(5, 64, 32), None), (f32(5, 32, 64), None), (f32(5, 64, 32), None)]
    yield Case("MoE", [f32(6, 32), f32(6, 5), layers[0][0], None, layers[1][0], None, layers[2][0]], k=2, weights=range(2, 8), activation_type="silu", normalize_routing_weights=1,
               reference=lambda x, s, *_, a=layers: experts_in_numpy(x, s, a, 2, 1, "silu"))  # fmt: skip
    for bits in (4, 8, 2):
        for block in (0, 16, 32):
            for zeros in (False, True):
                (w1, s1, z1, v1), (w2, s2, z2, v2) = expert_bytes(bits, block, zeros, 128, 32), expert_bytes(bits, block, zeros, 32, 64)
                for shares in (None, np.abs(f32(6, 5))):
                    for normalized in (0, 1):
                        right = lambda x, scores, *_, a=[(v1, None), (v2, None), None], n=normalized, s=shares: experts_in_numpy(x, scores, a, 2, n, "swiglu", 1, 1.702, 1.0, 7.0, s)
                        # ONNX Runtime normalizes whatever the attribute says where it has no shares, and rounds activations to 8 bits beside blocks of these forms.
                        other = right if (shares is None and not normalized) or (bits, block) == (2, 32) or (bits == 8 and block) else None
                        rest = dict(block_size=block) if block else {}
                        inputs = [f32(2, 3, 32), f32(6, 5), w1, s1, None, w2, s2, None, None, None, None, z1, z2, None, shares]
                        yield Case("QMoE", inputs[: 15 if shares is not None else 13 if zeros else 7], k=2, expert_weight_bits=bits, normalize_routing_weights=normalized, swiglu_fusion=1,
                                   weights=(2, 3, 5, 6, 11, 12), reference=other, **gpt, **rest)  # fmt: skip


# ---- linear attention and what is beside it, steps of decoding


def recurrences():
    for t in (np.float32, np.float16):
        x, gate = f32(2, 5, 32).astype(t), f32(2, 5, 32).astype(t)
        yield Case("GatedRMSNorm", [x, f32(8).astype(t), gate], epsilon=1e-4)
        yield Case("GatedRMSNorm", [x, f32(32).astype(t), gate], activation="sigmoid", dims={0: ["n", 5, 32], 2: ["n", 5, 32]})
        yield Case("ScaledSiLU", [x], alpha=1.7)
        yield Case("ScaledSiLU", [x, np.float32(0.6)])
        yield Case("GatedAdd", [x, gate, f32(2, 5, 1).astype(t)])
    yield Case("SimplifiedLayerNormalization", [f32(2, 5, 8), f32(8)], 2, epsilon=1e-4, domain="", kind=onnx.TensorProto.FLOAT)
    for past in (None, f32(2, 4, 2)):
        yield Case("CausalConvWithState", [f32(2, 4, 7), f32(4, 1, 3), f32(4) if past is None else None, past], 2, activation="silu" if past is None else "none")
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    q, k, v = f32(2, 5, 32), f32(2, 5, 16) / 4, f32(2, 5, 24)
    for past in (None, f32(2, 2, 8, 12)):
        for rule, decay, beta in (("linear", None, None), ("gated", -np.abs(f32(2, 5, 16)), None), ("gated", -np.abs(f32(2, 5, 2)), None), ("delta", None, sigmoid(f32(2, 5, 2))),
                                  ("gated_delta", -np.abs(f32(2, 5, 2)), sigmoid(f32(2, 5, 1)))):  # fmt: skip
            yield Case("LinearAttention", [q, k, v, past, decay, beta], 2, q_num_heads=4, kv_num_heads=2, update_rule=rule, **({"scale": 0.3} if past is None else {}))
    source = np.array([3, 4, 5, 6, 4, 5, 7, 8])
    for current, previous, predicted in (([1, 4, 5], 0, None), ([9, 3, 4], 2, [5, 6, 4, 5, 7, 8, 2]), ([2], 3, [6, 4, 9, 9, 9, 1]), ([7, 8], 8, [3]), ([1, 6], 4, [4, 5, 7, 8, 1]),
                                         ([1, 1], 5, [8, 8, 8, 8])):  # fmt: skip
        for least, most in ((1, 3), (2, 2), (1, 1)):
            rest = [] if predicted is None else [np.array(predicted)]
            yield Case("BifurcationDetector", [source, np.array(current), np.array([previous]), *rest], 2, min_ngram_size=least, max_ngram_size=most)


FAMILIES = [few_bits, rotary, attentions, grouped_attentions, norms, quantized, fused, mixtures, recurrences]


def decoder():
    """A layer as exporters of language models write it: its cache's extent follows from the mask's."""
    cos, sin = rotary_tables(64, 8)
    weights = {"w": f32(32, 64) / 5, "cos": cos, "sin": sin, "g": f32(32), "one": np.array([1]), "axis": np.array(1)}

    def node(op, inputs, outputs, domain="", **attributes):
        return helper.make_node(op, inputs.split(","), outputs.split(","), domain=domain, **attributes)

    nodes = [node("SkipSimplifiedLayerNormalization", "x,x,g", "n", DOMAIN), node("MatMul", "n,w", "qkv"), node("ReduceSum", "mask,one", "count", keepdims=0),
             node("Sub", "count,one", "last64"), node("Cast", "last64", "last", to=6), node("Shape", "mask", "shape"), node("Gather", "shape,axis", "total64"),
             node("Cast", "total64", "total", to=6),
             node("GroupQueryAttention", "qkv,,,k,v,last,total,cos,sin", "y,keys,values", DOMAIN, num_heads=2, kv_num_heads=1, do_rotary=1)]  # fmt: skip
    shapes = {"x": (1, ["b", "s", 32]), "mask": (7, ["b", "t"]), "k": (1, ["b", 1, "p", 16]), "v": (1, ["b", 1, "p", 16])}
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in shapes.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "keys", "values")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(w, name) for name, w in weights.items()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    compiled = AstraBackend.prepare(model, flags=["--dim=b=1..4", "--dim=s=1..16", "--dim=p=0..32", "--dim=t=p + s"])
    for batch, new, past in ((2, 5, 0), (2, 1, 7), (1, 3, 4)):  # a prompt, a step, a second prompt
        given = [f32(batch, new, 32), np.ones((batch, past + new), np.int64), f32(batch, 1, past, 16), f32(batch, 1, past, 16)]
        for found, right in zip(compiled.run(given), session.run(None, dict(zip(shapes, given))), strict=True):
            if found.shape != right.shape or not np.allclose(found, right, 0, 1e-5):
                raise Failed(f"found {found}, expected {right}")


def main():
    cases = list(chosen(FAMILIES))
    return run(cases + [("decoder", decoder)])


if __name__ == "__main__":
    sys.exit(main())
