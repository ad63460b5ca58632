"""Recurrent ops and attention with what ONNX's own cases leave out: all attributes together, dynamic dims, lengths, types.

Takes:    a build folder; ONNX Runtime and ONNX's reference evaluator for what the result should be.
Gives:    a line for each case and "N passed, N failed"; exit code 1 if one fails.
Keeps:    seeded: the same cases in every run. Bytes equal on every level of this machine and in the reference evaluator;
          values within 1e-4 of the largest (f16: 1e-2). NaN where, and only where, the reference has one.
Does not: repeat ONNX's cases (run.py).

    build/venv/bin/python test/onnx/sequences.py [CASES]     CASES: how many of each group, 6 if not given
"""

import os
import sys

os.environ["ASTRA_EVAL"] = "1"
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from backend import AstraBackend, Failed, Refused  # noqa: E402
from harness import run  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F16, F32, F64 = np.float16, np.float32, np.float64

# The activations of the recurrent ops, with the parameters that they take.
ACTIVATIONS = {
    "Relu": "", "Tanh": "", "Sigmoid": "", "Affine": "ab", "LeakyRelu": "a", "ThresholdedRelu": "a", "ScaledTanh": "ab",
    "HardSigmoid": "ab", "Elu": "a", "Softsign": "",
}  # fmt: skip
# Per op: gates, activations, the attribute that changes the step.
RECURRENT = {"RNN": (1, 1, None), "GRU": (3, 2, "linear_before_reset"), "LSTM": (4, 3, "input_forget")}


def node_model(op, names, inputs, outputs, opset, attributes, constants=(), shapes=None):
    """A model of one node: inputs are its arrays by name, outputs their names ("" for one left out), of rank free."""
    value = lambda name, a: helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(a.dtype), (shapes or {}).get(name, a.shape))  # fmt: skip
    node = helper.make_node(op, names, [name for name, _ in outputs], **attributes)
    graph = helper.make_graph(
        [node], op, [value(name, a) for name, a in inputs.items()],
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None)
         for name, t in outputs if name],
        [numpy_helper.from_array(a, name) for name, a in dict(constants).items()])  # fmt: skip
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def recurrent(rng):
    """Against ONNX Runtime, which has these ops in f32. It does not clip the cell state and overflows in Softplus, so
    neither is here."""
    op = str(rng.choice(list(RECURRENT)))
    gates, count, variant = RECURRENT[op]
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions = 1 + (direction == "bidirectional")
    length, batch, width, hidden = (int(rng.integers(1, most)) for most in (8, 5, 20, 20))
    draw = lambda *shape: rng.standard_normal(shape).astype(F32) * F32(0.5)
    constants = {"W": draw(directions, gates * hidden, width), "R": draw(directions, gates * hidden, hidden)}
    inputs, names = {"X": draw(length, batch, width)}, ["X", "W", "R", "", "", "", "", ""]

    def maybe(place, name, make, among):
        if rng.random() < 0.6:
            among[name], names[place] = make(), name

    maybe(3, "B", lambda: draw(directions, 2 * gates * hidden), constants)
    maybe(4, "lengths", lambda: rng.integers(1, length + 1, batch).astype(np.int32), inputs)
    maybe(5, "h0", lambda: draw(directions, batch, hidden), inputs)
    if op == "LSTM":
        maybe(6, "c0", lambda: draw(directions, batch, hidden), inputs)
        maybe(7, "P", lambda: draw(directions, 3 * hidden), constants)
    while not names[-1]:
        names.pop()
    attributes = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.6:
        chosen = [str(rng.choice(list(ACTIVATIONS))) for _ in range(count * directions)]
        attributes["activations"] = chosen
        for letter, name in (("a", "activation_alpha"), ("b", "activation_beta")):
            values = [float(rng.uniform(0.1, 0.9)) for f in chosen if letter in ACTIVATIONS[f]]
            attributes |= {name: values} if values else {}
    if op != "LSTM" and rng.random() < 0.4:
        attributes["clip"] = 0.5
    if variant:
        attributes[variant] = int(rng.integers(0, 2))
    outputs = [("Y", F32), ("Y_h", F32)] + [("Y_c", F32)] * (op == "LSTM")
    state = [directions, "batch", hidden]
    shapes = {"X": ["length", "batch", width], "lengths": ["batch"], "h0": state, "c0": state}
    model = node_model(op, names, inputs, outputs, int(rng.choice([7, 14, 22])), attributes, constants, shapes)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return model, inputs, session.run(None, inputs), ["--dim=length=1..8", "--dim=batch=1..8"]


def lstm_in_numpy(x, w, r, b, lengths, clip, dtype):
    """One direction, forward, in f64; the cell state is clipped before its activation, as ONNX's text says."""
    x, w, r, b = (a.astype(F64) for a in (x, w, r, b))
    gate, bound = lambda v: 1 / (1 + np.exp(-np.clip(v, -clip, clip))), lambda v: np.clip(v, -clip, clip)
    h = c = np.zeros((x.shape[1], r.shape[1]))
    rows = []
    for t, row in enumerate(x):
        i, o, f, g = np.split(row @ w.T + h @ r.T + b, 4, 1)
        inside = (t < lengths)[:, None]
        c = np.where(inside, gate(f) * c + gate(i) * np.tanh(bound(g)), c)
        h = np.where(inside, gate(o) * np.tanh(bound(c)), h)
        rows.append(np.where(inside, h, 0))
    return [np.stack(rows)[:, None].astype(dtype), h[None].astype(dtype), c[None].astype(dtype)]


def lstm_types(rng):
    """f16 and f64, a clipped cell state, sequences of length 0, lengths that are constants, NaN, layout 1."""
    dtype = [F16, F64, F32][int(rng.integers(0, 3))]
    length, batch, width, hidden = (int(rng.integers(1, most)) for most in (6, 4, 9, 9))
    draw = lambda *shape: rng.standard_normal(shape).astype(dtype)
    x, w, r, b = draw(length, batch, width), draw(1, 4 * hidden, width), draw(1, 4 * hidden, hidden), draw(1, 8 * hidden)
    lengths, clip = rng.integers(0, length + 1, batch).astype(np.int32), float(rng.choice([0.25, 1, 1e6]))
    layout = int(rng.integers(0, 2))
    if rng.random() < 0.5:
        lengths[0] = length  # beside shorter ones
    if rng.random() < 0.3:
        x.flat[0] = np.nan
    bias = b[0, : 4 * hidden].astype(F64) + b[0, 4 * hidden :]
    y, y_h, y_c = lstm_in_numpy(x, w[0], r[0], bias, lengths, clip, dtype)
    if layout:
        x, y, y_h, y_c = x.swapaxes(0, 1), y.transpose(2, 0, 1, 3), y_h.swapaxes(0, 1), y_c.swapaxes(0, 1)
    inputs, constants = {"X": np.ascontiguousarray(x)}, {"W": w, "R": r, "B": b}
    (constants if rng.random() < 0.5 else inputs)["lengths"] = lengths
    model = node_model("LSTM", ["X", "W", "R", "B", "lengths"], inputs, [("Y", dtype), ("Y_h", dtype), ("Y_c", dtype)], 22,
                       {"hidden_size": hidden, "clip": clip, "layout": layout}, constants)  # fmt: skip
    return model, inputs, [y, y_h, y_c], []


def attention(rng):
    """Against ONNX's reference. Its mode 0 of the fourth output is capped where the text says it is not: left out."""
    opset, rank3 = int(rng.choice([23, 24, 25])), rng.random() < 0.4
    dtype = [F32, F32, F64, F16][int(rng.integers(0, 4))]
    batch, kv, group = (int(rng.integers(1, 4)) for _ in range(3))
    queries, keys, size, value = (int(rng.integers(1, most)) for most in (7, 9, 12, 12))
    heads, past = kv * group, 0
    draw = lambda *shape: rng.standard_normal(shape).astype(dtype)
    shape = lambda h, s, d: (batch, s, h * d) if rank3 else (batch, h, s, d)
    named = lambda h, s, d: ["batch", s, h * d] if rank3 else ["batch", h, s, d]
    inputs = {"Q": draw(*shape(heads, queries, size)), "K": draw(*shape(kv, keys, size)), "V": draw(*shape(kv, keys, value))}
    shapes = {"Q": named(heads, "queries", size), "K": named(kv, "keys", size), "V": named(kv, "keys", value)}
    names, dims = ["Q", "K", "V", "", "", "", ""], ["batch=1..4", "queries=1..8", "keys=1..10"]
    attributes = {"q_num_heads": heads, "kv_num_heads": kv} if rank3 else {}
    if rng.random() < 0.4:
        past, names[4:6] = int(rng.integers(0, 5)), ["past_k", "past_v"]
        inputs |= {"past_k": draw(batch, kv, past, size), "past_v": draw(batch, kv, past, value)}
        shapes |= {"past_k": ["batch", kv, "past", size], "past_v": ["batch", kv, "past", value]}
        dims.append("past=0..5")
    elif opset >= 24 and rng.random() < 0.5:
        inputs["valid"], names[6] = rng.integers(0, keys + 1, batch), "valid"
        shapes["valid"] = ["batch"]
    if rng.random() < 0.6:
        mask = [int(rng.choice([1, batch])), int(rng.choice([1, heads])), queries, past + keys][int(rng.integers(0, 3)) :]
        keep = rng.random(mask) < 0.7
        inputs["mask"] = keep if rng.random() < 0.5 else np.where(keep, rng.standard_normal(mask), -np.inf).astype(dtype)
        names[3], shapes, dims = "mask", {}, []
    while not names[-1]:
        names.pop()
    some = lambda p, **given: attributes.update(given) if rng.random() < p else None
    some(0.5, is_causal=1)
    some(0.3, scale=float(rng.uniform(0.1, 2)))
    some(0.3, softcap=2.0)
    some(0.3, softmax_precision=int(rng.choice([1, 11])))
    if opset >= 25:
        some(0.6, left_window_size=int(rng.integers(-1, 4)), right_window_size=int(rng.integers(-1, 4)))
    attributes["qk_matmul_output_mode"] = int(rng.integers("softcap" in attributes, 4))
    caches = ["", ""] if "valid" in names else ["present_k", "present_v"]
    outputs = [(name, dtype) for name in ["Y", *caches, "scores"]]
    model = node_model("Attention", names, inputs, outputs, opset, attributes, (), shapes)
    return model, inputs, ReferenceEvaluator(model).run(None, inputs), [f"--dim={d}" for d in dims]


def normalization(rng):
    """The types of the first stage, against NumPy."""
    op = str(rng.choice(["LayerNormalization", "RMSNormalization"]))
    dtype, code = [F16, F32, F64][int(rng.integers(0, 3))], int(rng.choice([1, 10, 11]))
    stage = {1: F32, 10: F16, 11: F64}[code]
    x, scale = rng.standard_normal((3, 4, 5)).astype(dtype), rng.standard_normal((4, 5)).astype(dtype)
    v = x.astype(stage).astype(F64)
    centred = v - v.mean((1, 2), keepdims=True) if op[0] == "L" else v
    inverse = 1 / np.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-5)
    wanted = [((centred * inverse).astype(stage).astype(F64) * scale).astype(dtype)]
    outputs = [("Y", dtype)]
    if op[0] == "L":
        wanted += [v.mean((1, 2), keepdims=True).astype(stage), inverse.astype(stage)]
        outputs += [("mean", stage), ("inverse", stage)]
    model = node_model(op, ["x", "s"], {"x": x}, outputs, 23, {"axis": 1, "stash_type": code}, {"s": scale})
    return model, {"x": x}, wanted, []


def differences(found, wanted):
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"output {i} is {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
            continue
        tolerance = 1e-2 if F16 in (a.dtype, *(w.dtype for w in wanted)) else 1e-4
        a, b = a.astype(F64), b.astype(F64)
        finite = np.isfinite(b)
        largest = np.abs(b[finite]).max(initial=0)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            yield f"output {i} differs where infinity or NaN is expected"
        elif (error := np.abs(a[finite] - b[finite]).max(initial=0)) > tolerance * max(largest, 1e-3):
            yield f"output {i} is off by {error}, the largest is {largest}"


def one(group, seed):
    """A name and a test of the seeded case of a group."""

    def test():
        model, inputs, wanted, flags = group(np.random.default_rng(seed))
        try:
            for difference in differences(AstraBackend.prepare(model, flags=flags).run(list(inputs.values())), wanted):
                raise Failed(difference)
        except (Failed, Refused, AssertionError) as e:
            raise Failed(f"{e}\n{model.graph.node[0]}") from None

    return f"{group.__name__} {seed}", test


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    return run(one(group, seed) for group in (recurrent, lstm_types, attention, normalization) for seed in range(count))


if __name__ == "__main__":
    sys.exit(main())
