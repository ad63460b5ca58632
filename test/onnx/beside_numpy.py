"""Sizes that data decide, Einstein sums, Fourier transforms, running folds and random numbers, beside NumPy.

Takes:    a build folder; NumPy, and ONNX Runtime for NonMaxSuppression, for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; integers exact, floats within the
          tolerance of their case relative to the largest element.
Does not: repeat what the backend suite holds (run.py).

    build/venv/bin/python test/onnx/beside_numpy.py [--all | PART]     PART: of the names of the cases; one case in eight if
                                                                       nothing is given
"""

import os
import re
import sys
import zlib

os.environ["ASTRA_EVAL"] = "1"
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from backend import AstraBackend, Failed  # noqa: E402
from harness import run  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(7)
OPSET = 26


def f32(*shape):
    return np.asarray(RNG.standard_normal(shape), np.float32)


def case(op, inputs, wanted, weights=None, dims=None, opset=OPSET, tolerance=2e-6, **attributes):
    """One node: inputs given at run time and weights, by name in the node's order; wanted: arrays, or a check of them."""
    return op, inputs, weights or {}, wanted, dims or {}, opset, tolerance, attributes


def scalar(v, t=np.int64):
    return np.asarray(v, t)


# ---- functions near their ends


def functions():
    wide = np.concatenate([np.float32(10.0) ** np.arange(-30, 30, 3, dtype=np.float32), np.float32([0.5, 0.999999, 1, 0])])
    x = np.concatenate([wide, -wide, np.float32([np.inf, -np.inf, np.nan])])
    with np.errstate(all="ignore"):
        for op, f in {"Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh,
                      "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh}.items():  # fmt: skip
            for t in (np.float16, np.float32, np.float64):
                a = x.astype(t)
                exact = f(a.astype(np.float64)).astype(t)
                yield f"{op}-{np.dtype(t).name}", case(op, {"x": a}, close(exact), opset=22)


def close(exact):
    """Each element within two units of the last place."""

    def check(found):
        with np.errstate(all="ignore"):
            off = np.abs(found.astype(np.float64) - exact) > 2 * np.spacing(np.abs(exact)).astype(np.float64)
        bad = off & ~(np.isnan(found) & np.isnan(exact)) & (found != exact)
        return "" if not bad.any() and np.array_equal(np.isnan(found), np.isnan(exact)) else f"{found[bad]} {exact[bad]}"

    return [check]


# ---- selection


def unique(x, axis, ordered):
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    if not ordered:
        perm = np.argsort(first, kind="stable")
        rank = np.argsort(perm)
        first, counts, inverse = first[perm], counts[perm], rank[inverse]
        y = x.reshape(-1)[first] if axis is None else np.take(x, first, axis)
    return [y, first, inverse.reshape(-1), counts]


def selections():
    for t in (np.float32, np.int8, np.uint64, np.bool_, np.float16):
        kind, x = np.dtype(t).name, RNG.integers(0, 3, (4, 3, 5)).astype(t)
        yield f"nonzero-{kind}", case("NonZero", {"x": x}, [np.array(np.nonzero(x))])
        yield f"unique-{kind}", case("Unique", {"x": x}, unique(x, None, True))
        yield f"unique-unsorted-{kind}", case("Unique", {"x": x}, unique(x, None, False), sorted=0)
    x = RNG.integers(0, 2, (6, 7, 2)).astype(np.float32)
    for axis in (0, 1, -1):
        yield f"unique-axis-{axis}", case("Unique", {"x": x}, unique(x, axis, True), axis=axis)
        yield f"unique-axis-unsorted-{axis}", case("Unique", {"x": x}, unique(x, axis, False), axis=axis, sorted=0)
    yield "unique-dynamic", case("Unique", {"x": x}, unique(x, None, True), dims={"x": ["n", 7, 2]})
    long = RNG.integers(0, 50, 300).astype(np.int64)
    yield "unique-long", case("Unique", {"x": long}, unique(long, None, False), sorted=0)
    odd = np.float32([0.0, np.nan, -0.0, 1, np.nan, -1])
    yield "unique-zeros-and-nans", case("Unique", {"x": odd}, [np.float32([-1, 0, 1, np.nan]), np.int64([5, 0, 3, 1]),
                                                               np.int64([1, 3, 1, 2, 3, 0]), np.int64([1, 2, 1, 2])])  # fmt: skip
    yield "unique-empty", case("Unique", {"x": f32(0)}, unique(f32(0), None, True))
    yield "nonzero-empty", case("NonZero", {"x": f32(3, 0)}, [np.zeros((2, 0), np.int64)])
    yield "nonzero-scalar", case("NonZero", {"x": np.float32(3)}, [np.zeros((1, 1), np.int64)])
    yield "nonzero-dynamic", case("NonZero", {"x": x}, [np.array(np.nonzero(x))], dims={"x": ["n", "m", 2]})
    mask = np.array([True, False, True, True])
    for axis in (0, 1, -1, None):
        given = {} if axis is None else {"axis": axis}
        wanted = [np.compress(mask, x, axis)] if axis != -1 else [np.compress(mask[:2], x, -1)]
        m = mask[:2] if axis == -1 else mask
        yield f"compress-{axis}", case("Compress", {"x": x, "m": m}, wanted, **given)
        yield f"compress-known-{axis}", case("Compress", {"x": x}, wanted, {"m": m}, **given)
    yield "compress-none", case("Compress", {"x": x, "m": np.zeros(6, bool)}, [x[:0]], axis=0, dims={"x": ["n", 7, 2], "m": ["n"]})


def boxes():
    for seed, (batches, classes, n) in enumerate([(1, 1, 40), (2, 3, 70), (1, 2, 1), (1, 1, 0)]):
        r = np.random.default_rng(seed)
        b, s = r.random((batches, n, 4)).astype(np.float32), np.round(r.random((batches, classes, n)), 2).astype(np.float32)
        for centred in (0, 1):
            for most, overlap, least in ((5, 0.4, 0.2), (1000, 0.1, None), (3, None, 0.9), (0, 0.5, 0.5)):
                given = {"b": b, "s": s, "m": scalar([most])}
                if overlap is not None or least is not None:
                    given["o"] = scalar([overlap or 0], np.float32)
                if least is not None:
                    given["l"] = scalar([least], np.float32)
                yield (f"nms-{seed}-{centred}-{most}", case("NonMaxSuppression", given, None, opset=11, center_point_box=centred,
                                                            dims={"b": [batches, "n", 4], "s": [batches, classes, "n"]} if n else {}))


# ---- orders and running folds


def orders():
    x = f32(3, 70)
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    for t in (np.float32, np.int16, np.uint8, np.float64):
        y = (x * 50).astype(t) if t != np.uint8 else np.abs(x * 50).astype(t)
        at = np.argsort(-y.astype(np.float64), axis=1, kind="stable")[:, :4]
        yield f"topk-{np.dtype(t).name}", case("TopK", {"x": y, "k": scalar([4])}, [np.take_along_axis(y, at, 1), at])
    yield "topk-old", case("TopK", {"x": x}, [np.take_along_axis(x, order, 1), order], opset=9, k=4)
    ints = RNG.integers(-3, 4, (2, 40, 3))
    for kind, t, least in (("f32", np.float32, 1e-5), ("i32", np.int32, 0), ("u8", np.uint64, 0), ("f64", np.float64, 1e-12)):
        for axis in (0, 1, -1):
            y = (np.abs(ints) if np.dtype(t).kind == "u" else ints).astype(t)
            yield f"cumsum-{kind}-{axis}", case("CumSum", {"x": y}, [np.cumsum(y, axis, dtype=t)], {"a": scalar(axis)}, tolerance=least)
            yield f"cumprod-{kind}-{axis}", case("CumProd", {"x": y}, [np.cumprod(y, axis, dtype=t)], {"a": scalar(axis)}, tolerance=least)
    y = np.float32([1, 2, 3, 4])
    yield "cumprod-exclusive-reverse", case("CumProd", {"x": y}, [np.float32([24, 12, 4, 1])], {"a": scalar(0)}, exclusive=1, reverse=1)
    for upper in (0, 1):
        for k in (-2, 1, np.iinfo(np.int64).max, np.iinfo(np.int64).min):
            bounded = int(np.clip(k, -99, 99))
            wanted = np.triu(x, bounded) if upper else np.tril(x, bounded)
            yield f"trilu-{upper}-{k}", case("Trilu", {"x": x, "k": scalar(k)}, [wanted], upper=upper)
    hot = np.float32([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]])
    yield "onehot-u64", case("OneHot", {"i": np.uint64([0, 2, 2**64 - 1, 1])}, [hot], {"d": scalar(3), "v": np.float32([0, 1])}, opset=11)
    yield "onehot-bool", case("OneHot", {"i": np.int8([0, -1, 7, 1])}, [hot > 0], {"d": scalar(3), "v": np.array([False, True])}, opset=11)


# ---- Einstein sums


def einsums():
    shapes = {"i": 3, "j": 4, "k": 5, "l": 2, "m": 6}
    for equation in ("ij,jk->ik", "ij,jk", "ii->i", "ii", "ijj->i", "ij->ji", "ij,ij->", "i,j->ij", "ij,jk,kl->il", "ij,jk,kl,lm->im",
                     "ijk,jk->k", "ii,ij->j", "ij,jk,kl,lm,mi->", "ij,jk,kl,lm->im path=[(1, 2), (0, 2), (0, 1)]",
                     "ij,jk,kl->il path=[(0, 1), (0, 1)] slices=jl", "ijk,klm,mij->jl memory=12", "ij->", "k,ij,i->jk", "ij , jk -> ki", "ba", "ij,k->i", "iji->j"):  # fmt: skip
        shapes.update(a=2, b=3)
        plain = re.split(" path=| memory=", equation)[0].replace(" ", "")
        terms = plain.split("->")[0].split(",")
        given = {f"x{i}": f32(*[shapes[c] for c in term]) for i, term in enumerate(terms)}
        yield f"einsum-{equation}", case("Einsum", given, [np.asarray(np.einsum(plain, *given.values(), dtype=np.float64))], opset=12, equation=equation)
    for equation, *given in (("...ij,...jk->...ik", f32(2, 1, 3, 4), f32(5, 4, 6)), ("...ii->...i", f32(2, 3, 3)), ("i...->...i", f32(3, 4, 5)),
                             ("...i,i", f32(2, 3, 4), f32(4)), ("...,...", f32(2, 3), f32(3)), ("i...j,...->ij...", f32(2, 5, 3), f32(1))):
        named = {f"x{i}": x for i, x in enumerate(given)}
        yield f"einsum-{equation}", case("Einsum", named, [np.asarray(np.einsum(equation, *given))], opset=12, equation=equation)
    ints = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
    yield "einsum-i32", case("Einsum", {"x": ints, "y": ints}, [np.einsum("ij,kj->ik", ints, ints)], opset=12, equation="ij,kj->ik")
    x, y = f32(5, 4), f32(4, 6)
    yield "einsum-dynamic", case("Einsum", {"x": x, "y": y}, [x @ y], opset=12, equation="ij,jk", dims={"x": ["n", 4]})


# ---- Fourier transforms


def parts(x):
    return np.stack([x.real, x.imag], -1)


def transforms():
    for n in (1, 2, 8, 37, 67, 134, 400, 512):
        x = (f32(2, n, 3) + 1j * f32(2, n, 3)).astype(np.complex128)
        for t in (np.float32, np.float64) if n in (37, 400) else (np.float32,):
            given, kind = {"x": parts(x).astype(t)}, np.dtype(t).name
            fine = 1e-6 if t == np.float32 else 1e-14
            axis = {"l": None, "axis": scalar(1)}
            yield f"dft-{n}-{kind}", case("DFT", given, [parts(np.fft.fft(x, axis=1)).astype(t)], axis, opset=20, tolerance=fine)
            yield f"idft-{n}-{kind}", case("DFT", given, [parts(np.fft.ifft(x, axis=1)).astype(t)], axis, opset=20, tolerance=fine, inverse=1)
        real = x.real.astype(np.float32)
        given = {"x": real[..., None]}
        yield f"rdft-{n}", case("DFT", given, [parts(np.fft.fft(real, axis=1)).astype(np.float32)], axis, opset=20)
        yield f"rfft-{n}", case("DFT", given, [parts(np.fft.rfft(real, axis=1)).astype(np.float32)], axis, opset=20, onesided=1)
        back = np.fft.irfft(x[:, : n // 2 + 1], n, axis=1)[..., None].astype(np.float32)
        given, length = {"x": parts(x[:, : n // 2 + 1]).astype(np.float32)}, {"l": scalar(n), "axis": scalar(1)}
        yield f"irfft-{n}", case("DFT", given, [back], length, opset=20, onesided=1, inverse=1)
    x = f32(2, 10, 1)
    for n in (6, 16):
        wanted = [parts(np.fft.fft(x[..., 0], n, axis=1)).astype(np.float32)]
        yield f"dft-length-{n}", case("DFT", {"x": x}, wanted, {"l": scalar(n)}, opset=20)
        yield f"dft-length-{n}-old", case("DFT", {"x": x}, wanted, {"l": scalar(n)}, opset=17, axis=1)
    yield "dft-dynamic", case("DFT", {"x": x}, [parts(np.fft.fft(x[..., 0], axis=1)).astype(np.float32)], opset=20, dims={"x": [2, "n", 1]})
    yield "rfft-dynamic", case("DFT", {"x": x}, [parts(np.fft.rfft(x[..., 0], axis=1)).astype(np.float32)], opset=20, onesided=1,
                               dims={"x": [2, "n", 1]})  # fmt: skip
    signal, window = f32(2, 100), np.hanning(16).astype(np.float32)
    frames = np.stack([signal[:, s : s + 16] for s in range(0, 85, 5)], 1)
    for w in (None, window):
        wanted = np.fft.rfft(frames if w is None else frames * w, axis=-1)
        yield (f"stft-{w is not None}", case("STFT", {"x": signal[..., None]}, [parts(wanted).astype(np.float32)],
                                             {"s": scalar(5), "w": w, "l": scalar(16)}, opset=17, dims={"x": [2, "n", 1]}))  # fmt: skip


# ---- random numbers: what can be said of their distribution, and that they are the same in each run


def moments(mean, deviation):
    def check(found):
        v = found.astype(np.float64)
        return "" if abs(v.mean() - mean) < 0.05 * max(1, deviation) and abs(v.std() - deviation) < 0.05 * deviation else f"{v.mean()} {v.std()}"

    return [check]


def random_numbers():
    for t, kind in ((np.float16, TensorProto.FLOAT16), (np.float32, TensorProto.FLOAT), (np.float64, TensorProto.DOUBLE)):
        name = np.dtype(t).name
        uniform = moments(3.5, 1 / np.sqrt(12) * 3)
        yield f"uniform-{name}", case("RandomUniform", {}, uniform, shape=[100, 100], dtype=kind, low=2.0, high=5.0, seed=3.0)
        yield f"normal-{name}", case("RandomNormal", {}, moments(-1, 2), shape=[100, 100], dtype=kind, mean=-1.0, scale=2.0)
        like = np.zeros((100, 100), t)
        yield f"uniform-like-{name}", case("RandomUniformLike", {"x": like}, moments(0.5, 1 / np.sqrt(12)), dims={"x": ["n", 100]})
        yield f"normal-like-{name}", case("RandomNormalLike", {"x": like}, moments(0, 1))
        yield f"bernoulli-{name}", case("Bernoulli", {"x": like + t(0.25)}, moments(0.25, np.sqrt(0.1875)), opset=22)
        ones = np.ones((100, 100), t)
        dropped = moments(1, np.sqrt(1 / 0.75 - 1))
        yield f"dropout-{name}", case("Dropout", {"x": ones, "r": scalar(0.25, t), "t": scalar(True, bool)}, dropped, opset=22)
        yield f"dropout-off-{name}", case("Dropout", {"x": ones, "r": scalar(0.25, t), "t": scalar(False, bool)}, [ones], opset=22)
    chances = np.log(np.float32([[0.5, 0.25, 0.125, 0.125]]))
    yield "multinomial", case("Multinomial", {"x": chances}, moments(0.875, 1.0533), opset=22, sample_size=10000, dtype=TensorProto.INT64)


def model_of(op, inputs, weights, wanted, dims, opset, attributes):
    kind = helper.np_dtype_to_tensor_dtype
    given = {k: v for k, v in {**inputs, **weights}.items()}
    places = [k if v is not None else "" for k, v in given.items()]
    count = len(wanted) if wanted else 1
    results = [f"out{i}" for i in range(count)]
    node = helper.make_node(op, places, results, **attributes)
    declared = [helper.make_tensor_value_info(k, kind(x.dtype), dims.get(k, x.shape)) for k, x in inputs.items()]
    constants = [numpy_helper.from_array(v, k) for k, v in weights.items() if v is not None]
    outputs = []
    for name, w in zip(results, wanted or [np.zeros(0, np.int64)]):
        info = onnx_value(name, kind(w.dtype) if isinstance(w, np.ndarray) else None)
        outputs.append(info)
    graph = helper.make_graph([node], "g", declared, outputs, constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def onnx_value(name, kind):
    value = helper.make_empty_tensor_value_info(name)
    if kind is not None:
        value.type.tensor_type.elem_type = kind
    return value


def check(op, inputs, weights, wanted, dims, opset, tolerance, attributes):
    model = model_of(op, inputs, weights, wanted, dims, opset, attributes)
    flags = [f"--dim={d}={16 if op == 'STFT' else 1}..128" for d in sorted({d for s in dims.values() for d in s if isinstance(d, str)})]
    if wanted is None:
        wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    elif isinstance(wanted[0], np.ndarray) and op == "Einsum":
        wanted = [np.asarray(w, next(iter(inputs.values())).dtype) for w in wanted]
        model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(wanted[0].dtype)
    for found, right in zip(AstraBackend.prepare(model, flags=flags).run(list(inputs.values())), wanted, strict=True):
        if callable(right):
            if text := right(found):
                raise Failed(text)
            continue
        right = np.asarray(right)
        if found.dtype != right.dtype or found.shape != right.shape:
            raise Failed(f"found {found.dtype}{found.shape}, expected {right.dtype}{right.shape}")
        exact = right.dtype.kind != "f" or not tolerance
        largest = 0 if exact or not right.size else float(np.nanmax(np.abs(right.astype(np.float64))))
        if not np.allclose(found.astype(np.float64) if not exact else found, right, 0, tolerance * max(largest, 1e-30) if not exact else 0,
                           equal_nan=right.dtype.kind == "f"):  # fmt: skip
            raise Failed(f"found {found}, expected {right}")


GROUPS = (functions, selections, boxes, orders, einsums, transforms, random_numbers)


def chosen(number, name, words):
    """The first case of each group and one in eight by a hash of its name; all, or those with a word in the name, if asked."""
    if words and words != ["--all"]:
        return words[0] in name
    return words or number == 0 or zlib.crc32(name.encode()) % 8 == 0


def main():
    words = sys.argv[1:]
    return run((name, lambda m=model: check(*m)) for group in GROUPS for number, (name, model) in enumerate(group())
               if chosen(number, name, words))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
