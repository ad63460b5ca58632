"""Every version of every op of ONNX: a row that understands it, or a reason why not; and the forms that ops had before.

Takes:    a build folder; the schemas of the installed ONNX package, its reference evaluator and NumPy for what results
          should be.
Gives:    a line for what is wrong, and "N passed, N failed"; exit code 1 if something is.
Keeps:    a version of an op that is neither in a row (astra-docs onnx) nor in REFUSED fails, as one that is in both does.
          Bytes equal on every level of this machine and in the reference evaluator; values within 1e-5.
Does not: repeat ONNX's cases (run.py), which have forms of opset 6 and later only, and few of those.

    build/venv/bin/python test/onnx/opsets.py
"""

import os
import re
import sys
import traceback

os.environ["ASTRA_EVAL"] = "1"
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from backend import BUILD, AstraBackend, Failed, Refused, command  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F16, F32, I32, I64 = np.float16, np.float32, np.int32, np.int64
RNG = np.random.default_rng(11)

# Ops without a row, by reason; all of their versions, in a domain all of its ops.
STRING = "strings"
REFUSED = {
    "RegexFullMatch": STRING, "StringConcat": STRING, "StringNormalizer": STRING, "StringSplit": STRING,
    "ImageDecoder": "files of images",
    "ai.onnx.ml::CastMap": "maps", "ai.onnx.ml::DictVectorizer": "maps", "ai.onnx.ml::CategoryMapper": STRING,
    "ai.onnx.preview.training::Gradient": "names of values around the node",
}  # fmt: skip


def rows():
    """Op to the ranges of opsets of its rows."""
    text = command(BUILD / "bin/astra-docs", "onnx").stdout
    result = {}
    for op, ranges in re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", text, re.M):
        numbers = [re.findall(r"\d+", part) for part in ranges.split(",")]
        # Of other domains the page has the first opset alone: each row holds for all later ones.
        result[op] = [(int(part[0]), 1000 if "::" in op else int(part[-1])) for part in numbers]
    return result


def coverage():
    known, wrong, count = rows(), [], 0
    for schema in onnx.defs.get_all_schemas_with_history():
        version, domain = schema.since_version, schema.domain
        name = f"{domain}::{schema.name}" if domain else schema.name
        has = any(since <= version <= until for since, until in known.get(name, []))
        excused = name in REFUSED or (name == "ai.onnx.ml::LabelEncoder" and version == 1)
        count += 1
        if schema.deprecated:  # other ops took their place; two of them are understood all the same
            continue
        if has == excused:
            wrong.append(f"{name} of opset {version}: " + ("is refused, and has a row" if has else "no row and no reason"))
    return count, wrong


def model(op, inputs, outputs, opset, attributes, constants=()):
    """One node; inputs are its arrays by name, those in `constants` initializers; "" for one that is absent."""
    tensor = lambda name, a: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)  # noqa: E731
    present = {name: a for name, a in inputs.items() if name}
    node = helper.make_node(op, list(inputs), [f"y{k}" for k in range(len(outputs))])
    for key, value in attributes.items():
        attribute = node.attribute.add()
        attribute.CopyFrom(value if value is EMPTY else helper.make_attribute(key, value))
        attribute.name = key
    graph = helper.make_graph(
        [node], op, [tensor(name, a) for name, a in present.items() if name not in constants],
        [tensor(f"y{k}", a) for k, a in enumerate(outputs)],
        [onnx.numpy_helper.from_array(present[name], name) for name in constants])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def f32(*shape):
    return RNG.standard_normal(shape).astype(F32)


def positive(*shape):
    return np.abs(f32(*shape)) + F32(0.1)


X, Y, V = f32(2, 3, 4), f32(2, 3, 4), f32(3)
IMAGE, PLACES = f32(2, 3, 4, 5), f32(3, 4, 5)
LEGACY = {"consumed_inputs": [0, 0]}
EMPTY = helper.make_attribute("", [], attr_type=onnx.AttributeProto.INTS)  # make_node finds no type in []


def along(v, axis, rank):
    return v.reshape(v.shape + (1,) * (rank - axis - v.ndim))


def normalized(x, scale, bias, mean, variance, axes):
    place = lambda v: v.reshape([1] + list(v.shape) + [1] * (x.ndim - 1 - v.ndim))  # noqa: E731
    return place(scale) * (x - place(mean)) / np.sqrt(place(variance) + 1e-5) + place(bias)


def trained(spatial):
    """Batch normalization by the statistics of the batch: the five outputs."""
    shape = (3,) if spatial else (3, 4, 5)
    p = {"x": IMAGE, "s": f32(*shape), "b": f32(*shape), "m": f32(*shape), "v": positive(*shape)}
    axes = (0, 2, 3) if spatial else (0,)
    mean, variance = IMAGE.mean(axis=axes), IMAGE.var(axis=axes)
    y = normalized(IMAGE, p["s"], p["b"], mean, variance, axes)
    move = lambda old, new: 0.8 * old + 0.2 * new  # noqa: E731
    return p, [y, move(p["m"], mean), move(p["v"], variance), mean, variance]


def cases():
    """Op, inputs, outputs, opset, attributes, names of constants."""
    unary = {
        "Abs": np.abs, "Ceil": np.ceil, "Exp": np.exp, "Floor": np.floor, "Neg": np.negative, "Tanh": np.tanh,
        "Reciprocal": lambda x: 1 / x, "Relu": lambda x: np.maximum(x, 0), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    }  # fmt: skip
    for op, f in unary.items():
        yield op, {"x": X}, [f(X)], 1, LEGACY, ()
    far = np.array([np.inf, -np.inf, 1, -3], F32)
    yield "Log", {"x": positive(5)}, [None], 1, LEGACY, ()
    yield "Sqrt", {"x": positive(5)}, [None], 1, LEGACY, ()
    yield "Elu", {"x": X}, [np.where(X < 0, 0.5 * np.expm1(X), X)], 1, {"alpha": 0.5, **LEGACY}, ()
    yield "LeakyRelu", {"x": X}, [np.where(X < 0, F32(0.01) * X, X)], 1, LEGACY, ()
    yield "HardSigmoid", {"x": X}, [np.clip(0.2 * X + 0.5, 0, 1)], 1, LEGACY, ()
    yield "Selu", {"x": X}, [1.0507 * np.where(X < 0, 1.6732 * np.expm1(X), X)], 1, LEGACY, ()
    yield "Clip", {"x": X}, [np.clip(X, -0.5, 0.25)], 1, {"min": -0.5, "max": 0.25, **LEGACY}, ()
    yield "Clip", {"x": far}, [far], 1, {}, ()
    yield "Clip", {"x": far}, [np.clip(far, *[np.finfo(F32).min, np.finfo(F32).max])], 6, {}, ()
    yield "Max", {"x": X, "y": Y}, [np.maximum(X, Y)], 1, LEGACY, ()
    yield "Min", {"x": X, "y": Y}, [np.minimum(X, Y)], 1, LEGACY, ()
    yield "Sum", {"x": X, "y": Y}, [X + Y], 1, LEGACY, ()
    yield "Mean", {"x": X, "y": Y}, [(X + Y) / 2], 1, LEGACY, ()
    mean, variance = IMAGE.mean(axis=(2, 3), keepdims=True), IMAGE.var(axis=(2, 3), keepdims=True)
    yield ("InstanceNormalization", {"x": IMAGE, "s": V, "b": 2 * V},
           [along(V, 1, 4) * (IMAGE - mean) / np.sqrt(variance + 1e-5) + along(2 * V, 1, 4)], 1, LEGACY, ())  # fmt: skip

    binary = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Less": np.less, "Greater": np.greater,
    }  # fmt: skip
    for op, f in binary.items():
        legacy = LEGACY if op in ("Add", "Sub", "Mul", "Div") else {}
        yield op, {"x": X, "y": Y}, [f(X, Y)], 1, legacy, ()
        yield op, {"x": X, "y": V}, [f(X, along(V, 1, 3))], 3, {"broadcast": 1, "axis": 1, **legacy}, ()
    small = positive(2, 3, 4)
    yield "Pow", {"x": small, "y": V}, [small ** along(V, 1, 3)], 1, {"broadcast": 1, "axis": 1}, ()
    for op, f in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
        yield op, {"x": X > 0, "y": V > 0}, [f(X > 0, along(V > 0, 1, 3))], 1, {"broadcast": 1, "axis": 1}, ()
    whole = np.arange(24, dtype=I64).reshape(2, 3, 4) % 5
    yield "Equal", {"x": whole, "y": whole[1, :, :]}, [whole == whole[1]], 1, {"broadcast": 1}, ()
    yield "PRelu", {"x": IMAGE, "y": V}, [np.where(IMAGE < 0, along(V, 1, 4) * IMAGE, IMAGE)], 1, LEGACY, ()
    a, b, c = f32(3, 2), f32(4, 3), f32(4)
    yield ("Gemm", {"a": a, "b": b, "c": c}, [0.5 * a.T @ b.T + 2 * c], 1,
           {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0, "broadcast": 1}, ())  # fmt: skip

    for name, t in {"FLOAT": F32, "INT32": I32, "FLOAT16": F16, "BOOL": np.bool_}.items():
        yield "Cast", {"x": 3 * X}, [(3 * X).astype(t)], 1, {"to": name}, ()
    yield "Concat", {"x": X, "y": Y}, [np.concatenate([X, Y], 1)], 1, {}, ()
    yield "Concat", {"x": X, "y": Y}, [np.concatenate([X, Y], 2)], 1, {"axis": 2}, ()
    yield "Reshape", {"x": X}, [X.reshape(2, 12)], 1, {"shape": [0, -1], **LEGACY}, ()
    yield "Reshape", {"x": X[:1, :1, 0]}, [X[0, 0, 0]], 4, {"shape": EMPTY}, ()
    yield "Tile", {"x": X, "n": np.array(3, F32), "a": np.array(1, F32)}, [np.tile(X, (1, 3, 1))], 1, {}, ("n", "a")
    yield "Pad", {"x": X}, [np.pad(X, [(0, 1), (2, 0), (1, 1)], constant_values=7)], 1, {"paddings": [0, 2, 1, 1, 0, 1], "value": 7.0}, ()
    yield "Pad", {"x": X}, [np.pad(X, [(0, 0), (1, 2), (0, 0)], mode="edge")], 1, {"paddings": [0, 1, 0, 0, 2, 0], "mode": "edge"}, ()
    yield "Split", {"x": X}, [X[:, :, :1], X[:, :, 1:]], 1, {"axis": 2, "split": [1, 3]}, ()
    yield "Split", {"x": X, "s": np.array([1, 2], F32)}, [X[:, :1], X[:, 1:]], 1, {"axis": 1}, ("s",)
    yield "Split", {"x": X}, [X[:1], X[1:]], 1, {}, ()
    windows = np.lib.stride_tricks.sliding_window_view(IMAGE, (2, 3), (2, 3))
    yield "LpPool", {"x": IMAGE}, [(np.abs(windows) ** 2.5).sum((4, 5)) ** 0.4], 1, {"kernel_shape": [2, 3], "p": 2.5}, ()
    yield "LpPool", {"x": IMAGE}, [np.sqrt((windows**2).sum((4, 5)))], 1, {"kernel_shape": [2, 3]}, ()
    yield "GlobalLpPool", {"x": IMAGE}, [(np.abs(IMAGE) ** 1.5).sum((2, 3), keepdims=True) ** (1 / 1.5)], 1, {"p": 1.5}, ()
    yield "AveragePool", {"x": IMAGE}, [windows.mean((4, 5))], 1, {"kernel_shape": [2, 3]}, ()
    yield "Upsample", {"x": IMAGE}, [IMAGE.repeat(2, 2).repeat(3, 3)], 1, {"height_scale": 2.0, "width_scale": 3.0}, ()

    for spatial in (1, 0):
        p, outputs = trained(spatial)
        still = normalized(*p.values(), None)
        yield "BatchNormalization", p, [still], 1, {"is_test": 1, "spatial": spatial, **LEGACY}, ()
        yield "BatchNormalization", p, outputs[:1], 6, {"spatial": spatial}, ()
        for opset in (1, 6, 7, 8):
            old = LEGACY if opset < 6 else {}
            yield "BatchNormalization", p, outputs, opset, {"momentum": 0.8, "spatial": spatial, **old}, ()
        yield "BatchNormalization", p, [still], 7, {"spatial": spatial}, ()
    p, outputs = trained(1)
    yield "BatchNormalization", p, outputs, 9, {"momentum": 0.8}, ()
    yield "BatchNormalization", p, outputs[:3], 14, {"momentum": 0.8, "training_mode": 1}, ()
    yield "Dropout", {"x": X}, [X, np.ones_like(X)], 1, {"is_test": 1, **LEGACY}, ()

    sequence, w, r = f32(4, 2, 3), 0.3 * f32(1, 5, 3), 0.3 * f32(1, 5, 5)
    states, h = [], np.zeros((2, 5), F32)
    for step in sequence:
        h = np.tanh(step @ w[0].T + h @ r[0].T)
        states.append(h)
    surplus = {"hidden_size": 5, "activation_alpha": [0.5, 0.25], "activation_beta": [1.0]}
    yield "RNN", {"x": sequence, "w": w, "r": r}, [np.stack(states)[:, None], h[None]], 1, {"output_sequence": 1, **surplus}, ()
    yield "RNN", {"x": sequence, "w": w, "r": r}, [np.stack(states)[:, None], h[None]], 7, surplus, ()
    for op, gates in {"GRU": 3, "LSTM": 4}.items():
        w, r = 0.3 * f32(1, 5 * gates, 3), 0.3 * f32(1, 5 * gates, 5)
        like = model(op, {"x": sequence, "w": w, "r": r}, [sequence, sequence], 7, {"hidden_size": 5})
        wanted = ReferenceEvaluator(like).run(["y0", "y1"], {"x": sequence, "w": w, "r": r})
        for opset in (1, 3):
            yield op, {"x": sequence, "w": w, "r": r}, wanted, opset, {"hidden_size": 5, "output_sequence": 1}, ()

    yield from n_grams()


def n_grams():
    """TfIdfVectorizer beside ONNX's reference."""
    pool = {"ngram_counts": [0, 4, 10], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 2, 2, 2], "max_gram_length": 3}
    for mode in ("TF", "IDF", "TFIDF"):
        for least, skips, shape in ((1, 0, (12,)), (1, 3, (2, 9)), (2, 5, (3, 4)), (3, 1, (1, 40)), (2, 2, (2,))):
            x = RNG.integers(1, 9, shape).astype(I32 if skips else I64)
            attributes = {"mode": mode, "min_gram_length": least, "max_skip_count": skips, **pool,
                          "ngram_indexes": list(range(9)), "weights": [0.5, 1, 2, 3, 1, 0.25, 7, 8, 9]}  # fmt: skip
            if mode == "TF":
                attributes["ngram_indexes"] = [3, 1, 0, 2, 6, 5, 4, 11, 8]
            size = (*shape[:-1], max(attributes["ngram_indexes"]) + 1)
            m = model("TfIdfVectorizer", {"x": x}, [np.zeros(size, F32)], 9, attributes)
            yield "TfIdfVectorizer", {"x": x}, ReferenceEvaluator(m).run(None, {"x": x}), 9, attributes, ()


def check(op, inputs, outputs, opset, attributes, constants):
    given = {name: a for name, a in inputs.items() if name and name not in constants}
    if outputs[0] is None:
        outputs = [getattr(np, op.lower())(inputs["x"])]
    outputs = [np.asarray(a) for a in outputs]
    m = model(op, inputs, outputs, opset, attributes, constants)
    found = AstraBackend.prepare(m).run(list(given.values()))
    for k, (wanted, y) in enumerate(zip(outputs, found, strict=True)):
        if y.shape != wanted.shape or not np.allclose(y.astype(float), wanted.astype(float), 1e-5, 1e-5, True):
            raise Failed(f"output {k} is {y}, expected {wanted}")


def dropped():
    """Dropout of training before opset 7: elements are 0 or scaled, as the mask says, about as many as the ratio."""
    for opset, legacy in ((1, LEGACY), (6, {})):
        x = np.ones((40, 50), F32)
        y, mask = AstraBackend.prepare(model("Dropout", {"x": x}, [x, x], opset, {"ratio": 0.25, **legacy})).run([x])
        if not np.allclose(y, mask / 0.75) or abs(mask.mean() - 0.75) > 0.05 or set(np.unique(mask)) != {0, 1}:
            raise Failed(f"Dropout of opset {opset} keeps {mask.mean()}")


def scanned():
    """Scan of opset 8 against the order of the steps."""
    body = onnx.parser.parse_graph("b (float[3] s, float[3] x) => (float[3] t, float[3] y) { t = Add(s, x) y = Identity(t) }")
    s, x = f32(2, 3), f32(2, 4, 3)
    total = s[:, None] + np.cumsum(x[:, ::-1], 1)
    node = helper.make_node("Scan", ["", "s", "x"], ["t", "y"], body=body, num_scan_inputs=1, directions=[1])
    tensor = lambda name, a: helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape)  # noqa: E731
    graph = helper.make_graph([node], "g", [tensor("s", s), tensor("x", x)], [tensor("t", s), tensor("y", x)])
    found = AstraBackend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=8)).run([s, x])
    if not np.allclose(found[0], total[:, -1], atol=1e-6) or not np.allclose(found[1], total, atol=1e-6):
        raise Failed("Scan of opset 8 with directions")


def main():
    passed, wrong = coverage()
    passed -= len(wrong)
    failures = [f"FAIL  {sentence}" for sentence in wrong]
    tests = [(f"{c[0]} of opset {c[3]} {c[4]}", lambda c=c: check(*c)) for c in cases()]
    for name, test in [*tests, ("Dropout", dropped), ("Scan", scanned)]:
        try:
            test()
            passed += 1
        except (Failed, Refused, AssertionError) as e:
            failures.append(f"FAIL  {name}: {e}")
        except Exception:
            failures.append(f"FAIL  {name}:\n{traceback.format_exc()}")
    print("\n".join([*failures, f"{passed} passed, {len(failures)} failed"]))
    return len(failures) != 0


if __name__ == "__main__":
    sys.exit(main())
