"""Models that are trained by what astra-compile --train makes of them.

Takes:    a build folder; expected.npz, which make_expected.py writes with PyTorch.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    losses and weights within 1e-5 of PyTorch's over the largest magnitude, a bias whose gradients nearly cancel
          within 1e-4; equal bytes on every level of this machine, with any number of threads, and after a stop.

    build/venv/bin/python test/training/run.py
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "test/onnx"))
import safetensors_file  # noqa: E402
from backend import BUILD, Failed  # noqa: E402
import verdicts  # noqa: E402, of test/common, which backend makes known
from harness import run  # noqa: E402

DIGITS = ROOT / "examples/digits/digits.onnx"
EXPECTED = np.load(HERE / "expected.npz")
WEIGHTS = [n for n in EXPECTED.files if n not in ("losses", "images", "labels")]
RECIPE = ["--dim=batch=1..64", "--train", "--predict=linear", "--loss=cross_entropy", "--clip-norm=1",
          "--optimizer=adamw(lr=1e-2, weight_decay=0.05)", "--schedule=cosine(steps=10, warmup=3)"]  # fmt: skip
FLAGS = next(line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("flags")).split()
LEVELS = ["x86-64-v3"] + ["x86-64-v4"] * ("avx512vl" in FLAGS)


def tool(name, *words):
    words = [*words, *(verdicts.compile_flags() if name == "astra-compile" else ())]
    return subprocess.run([str(BUILD / "bin" / name), *map(str, words)], capture_output=True, text=True)


def expect(condition, text):
    if not condition:
        raise Failed(text)


def done(name, *words):
    """A tool that must end with 0."""
    result = tool(name, *words)
    expect(result.returncode == 0, f"{name}: exit {result.returncode}: {result.stderr}")
    return result


known = verdicts.Verdicts()


def emulated(command, made, wanted, what):
    """A command that runs in an emulator and must write these bytes into the files `made`; what has done so before is not run again."""
    command = [str(word) for word in command]
    verdict = verdicts.key(command, also=wanted, written=made)
    if known.find(verdict) is None:
        result = subprocess.run(command, capture_output=True, text=True)
        expect(result.returncode == 0, f"{what}: exit {result.returncode}: {result.stderr}")
        expect([Path(name).read_bytes() for name in made] == wanted, f"{what}: other bytes")
        known.passed(verdict)


def compiled(model, *flags):
    done("astra-compile", model, "-o", "m.astra", "--target=" + ",".join("cpu:" + v for v in LEVELS), *flags)


def call(entry, inputs, outputs, states=(), start=None, repeat=1, flags=()):
    """Outputs and states after `repeat` calls of an entry; `start` gives states their values."""
    words = ["m.astra", f"--entry={entry}", f"--repeat={repeat}", *flags]
    for k, (name, value) in enumerate({**inputs, **(start or {})}.items()):
        np.save(f"in{k}.npy", value)
        words.append(f"--{'input' if name in inputs else 'set-state'}={name}=in{k}.npy")
    words += [f"--output={n}=out{k}.npy" for k, n in enumerate(outputs)]
    words += [f"--get-state={n}=state{k}.npy" for k, n in enumerate(states)]
    done = tool("astra-run", *words)
    if done.returncode:
        raise Failed(done.stderr)
    return [np.load(f"out{k}.npy") for k in range(len(outputs))], {n: np.load(f"state{k}.npy") for k, n in enumerate(states)}


BATCH = {"image": EXPECTED["images"], "target": EXPECTED["labels"]}


def near(found, expected, tolerance, what):
    error = np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max()
    if not error <= tolerance:
        raise Failed(f"{what} differs by {error} of the largest magnitude")


def same(a, b, what):
    if a.tobytes() != b.tobytes():
        raise Failed(f"{what} has other bytes")


def digits_like_pytorch():
    compiled(DIGITS, *RECIPE)
    steps = len(EXPECTED["losses"])
    for k in range(1, steps + 1):
        (loss,), after = call("train_step", BATCH, ["loss"], WEIGHTS if k == steps else [], repeat=k)
        near(loss, EXPECTED["losses"][k - 1], 1e-5, f"the loss of step {k}")
    for name in WEIGHTS:
        near(after[name], EXPECTED[name], 1e-4 if name == "classify.bias" else 1e-5, name)


def state_names():
    text = tool("astra-inspect", "m.astra").stdout
    return [line.split()[1] for line in text.split("\n") if line.startswith("state ")]


def digits_equal_bits():
    compiled(DIGITS, *RECIPE)
    names = state_names()
    _, first = call("train_step", BATCH, [], names, repeat=5)
    for level in LEVELS:
        for threads in (1, 2, 3):
            _, other = call("train_step", BATCH, [], names, repeat=5, flags=[f"--level={level}", f"--threads={threads}"])
            for name in names:
                same(other[name], first[name], f"{name} on {level} with {threads} threads")


def digits_stopped_and_resumed():
    compiled(DIGITS, *RECIPE)
    names = state_names()
    _, whole = call("train_step", BATCH, [], names, repeat=7)
    _, part = call("train_step", BATCH, [], names, repeat=3)
    _, rest = call("train_step", BATCH, [], names, start=part, repeat=4)
    for name in names:
        same(rest[name], whole[name], name)
    (loss,), _ = call("eval", BATCH, ["loss"], start=whole)
    (linear,), _ = call("main", {"image": BATCH["image"]}, ["linear"], start=whole)
    odds = np.exp(linear.astype(np.float64) - linear.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    near(loss, -np.log(odds[np.arange(len(odds)), BATCH["target"]]).mean(), 1e-5, "the loss of eval")


def frozen_stays():
    compiled(DIGITS, *RECIPE, "--freeze=features.0.*,classify.bias")
    names = state_names()
    if any(n.startswith(("features.0.", "classify.bias")) for n in names):
        raise Failed(f"a frozen parameter is a state: {names}")
    (first,), _ = call("train_step", BATCH, ["loss"])
    (last,), _ = call("train_step", BATCH, ["loss"], repeat=8)
    if not last < first / 2:
        raise Failed(f"the loss went from {first} to {last}")


def dropout():
    """Numbers of its own in each step, none in eval."""
    rng = np.random.default_rng(0)
    w = numpy_helper.from_array(rng.standard_normal((6, 4)).astype(np.float32), "w")
    nodes = [helper.make_node("Dropout", ["x", "half"], ["d"]), helper.make_node("MatMul", ["d", "w"], ["y"])]
    half = numpy_helper.from_array(np.array(0.5, np.float32), "half")
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    graph = helper.make_graph(nodes, "g", [value("x", 8, 6)], [value("y", 8, 4)], [w, half])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), "m.onnx")
    compiled("m.onnx", "--train", "--loss=mse", "--optimizer=sgd(lr=1e-12)")
    inputs = {"x": rng.standard_normal((8, 6)).astype(np.float32), "target": np.zeros((8, 4), np.float32)}
    losses = [call("train_step", inputs, ["loss"], repeat=k)[0][0] for k in (1, 2, 3, 3)]
    if len({v.tobytes() for v in losses}) != 3:
        raise Failed(f"losses of steps 1, 2, 3 and 3 again: {losses}")
    (other,), _ = call("train_step", inputs, ["loss"], start={"random.key": np.array(7, np.uint32)})
    if other.tobytes() == losses[0].tobytes():
        raise Failed("another key gives the same numbers")
    plain = np.mean((inputs["x"].astype(np.float64) @ numpy_helper.to_array(w)) ** 2)
    near(call("eval", inputs, ["loss"])[0][0], plain, 1e-6, "the loss of eval")


def softplus_at_zero():
    """Its gradient is the logistic function, at 0 too."""
    w = np.array([[-2, -0.0, 0, 1e-3, 30]], np.float32)
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Softplus", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, 5)], [value("y", 1, 5)], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), "m.onnx")
    compiled("m.onnx", "--train", "--loss=mse(sum=1)", "--optimizer=sgd(momentum=0.5)")
    x = np.zeros((1, 5), np.float32)
    _, after = call("train_step", {"x": x, "target": x}, [], ["w.mean"])
    y, slope = np.logaddexp(0, w.astype(np.float64)), 1 / (1 + np.exp(-w.astype(np.float64)))
    near(after["w.mean"], 2 * y * slope, 1e-6, "the gradient")


# An ONNX op, its attributes, points, and the gradients of PyTorch 2.15 there.
NONSMOOTH = [
    ("Relu", {}, [-1, -0.0, 0, 2], [0, 0, 0, 1]),
    ("Clip", {"inputs": (-1, 2)}, [-2, -1, 0, 2, 3], [0, 0, 1, 0, 0]),
    ("LeakyRelu", {"alpha": 0.25}, [-1, -0.0, 0, 2], [0.25, 0.25, 0.25, 1]),
    ("PRelu", {"inputs": (0.25,)}, [-1, -0.0, 0, 2], [0.25, 0.25, 0.25, 1]),
    ("Elu", {"alpha": 0.5}, [-0.0, 0, 2], [0.5, 0.5, 1]),
    ("Celu", {"alpha": 0.5}, [-0.0, 0, 2], [1, 1, 1]),
    ("Selu", {}, [-0.0, 0, 2], [1.7580993, 1.7580993, 1.0507010]),
    ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, [-4, -3, 0, 3, 4], [0, 0, 1 / 6, 0, 0]),
    ("HardSwish", {}, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1]),
    ("Sign", {}, [-1, -0.0, 0, 2], [0, 0, 0, 0]),
    ("Mod", {"inputs": (3,), "fmod": 1}, [0, -0.0, 3, -4, 1], [1, 1, 1, 1, 1]),
    ("Abs", {}, [-1, -0.0, 0, 2], [-1, 0, 0, 1]),
    ("Round", {}, [0.5, 1], [0, 0]),
    ("ThresholdedRelu", {"alpha": 1.0}, [0, 1, 2], [0, 0, 1]),
    ("Shrink", {"lambd": 0.5, "bias": 0.5}, [-0.5, 0, 0.5, 1], [0, 0, 0, 1]),
    ("Softsign", {}, [-1, -0.0, 0, 2], [1 / 4, 1, 1, 1 / 9]),
    ("Pow", {"inputs": (1.5,)}, [0, 1], [0, 1.5]),
    ("Pow", {"inputs": (0,)}, [0, 1], [0, 0]),
    ("ReduceL1", {"keepdims": 1, "axes": (1,)}, [0, -1], [0, -1]),
    ("ReduceProd", {"keepdims": 1, "axes": (1,)}, [0, 2, 3], [6, 0, 0]),
    ("LpPool", {"kernel_shape": [2], "strides": [2]}, [[0, 0, 3, 4]], [[0, 0, 0.6, 0.8]]),
    ("GlobalLpPool", {}, [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]]),
    # Not as in PyTorch: docs/autograd.md.
    ("LpNormalization", {"axis": 1}, [0, 0], [0, 0]),
    ("LpNormalization", {"axis": 1, "p": 1}, [0, 0], [0, 0]),
    ("MeanVarianceNormalization", {"axes": [1]}, [1, 1], [0, 0]),
    ("MaxPool", {"kernel_shape": [2], "strides": [2]}, [[1, 1, 0, 2]], [[0.5, 0.5, 0, 1]]),
    ("Det", {}, [[0, 0], [0, 4]], [[4, 0], [0, 0]]),
    ("ReduceL2", {"keepdims": 1, "axes": (1,)}, [0, 0], [0, 0]),
    ("ReduceL2", {"keepdims": 1, "axes": (1,)}, [3, 4], [0.6, 0.8]),
]


def gradient_of(op, attributes, points, loss, target):
    """d loss(op(w), target) / dw, from the momentum of one step."""
    w = np.array([points], np.float32)
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    constants = [helper.make_node("Constant", [], [f"c{i}"], value_float=float(c))
                 for i, c in enumerate(attributes.get("inputs", ()))]  # fmt: skip
    if isinstance(attributes.get("axes"), tuple):
        constants = [helper.make_node("Constant", [], ["c0"], value_ints=attributes["axes"])]
    plain = {k: v for k, v in attributes.items() if k != "inputs" and not isinstance(v, tuple)}
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), *constants,
             helper.make_node(op, ["a", *(c.output[0] for c in constants)], ["y"], **plain)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [value("x", *w.shape)], [value("y", 1, None)], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), "m.onnx")
    compiled("m.onnx", "--train", f"--loss={loss}", "--optimizer=sgd(momentum=0.5)")
    _, after = call("train_step", {"x": np.zeros_like(w), "target": np.array(target)}, ["loss"], ["w.mean"])
    return after["w.mean"]


def nonsmooth_points():
    """At points where a model's op or a loss has several slopes, PyTorch's is taken; none is a NaN."""
    for op, attributes, points, slopes in NONSMOOTH:
        shape = {"LpPool": (1, 1, 2), "MaxPool": (1, 1, 2), "GlobalLpPool": (1, 2, 1), "Det": (1,)}.get(op)
        shape = shape or (1, 1 if isinstance(attributes.get("axes"), tuple) else len(points))
        below = np.full(shape, -100, np.float32)  # l1 has the slope 1
        found = gradient_of(op, attributes, points, "l1(sum=1)", below)
        expect((found[np.array([slopes]) == 0] == 0).all(), f"{op} {attributes}: {found}, expected {slopes}")
        if any(slopes):
            near(found, np.array([slopes]), 1e-6, f"{op} {attributes}")
    f32 = lambda *v: np.array([v], np.float32)
    for loss, points, target, slopes in [
        ("bce(sum=1)", [1, 1, 0, 0], f32(0, 1, 0, 1), [1e12, 0, 0, -1e12]),
        ("bce(sum=1)", [0.5, 0.25], f32(1, 0), [-2, 4 / 3]),
        ("hinge_embedding(sum=1)", [1, 0.5, 3], f32(-1, -1, 1), [0, -1, 1]),
        ("multi_margin(sum=1)", [1, 0, 0.5], np.array([0]), [-1 / 3, 0, 1 / 3]),
    ]:
        near(gradient_of("Identity", {}, points, loss, target), np.array([slopes]), 1e-6, f"{loss} {points}")


# Of grid_sample in PyTorch 2.15, f64: the gradient by x of the grid, where the image is PICTURE and y stands at row 1.
PICTURE = [[1, 2, 4, 7, 11], [3, 9, 5, 6, 2], [8, 1, 0, 4, 3], [2, 2, 9, 1, 5], [6, 3, 7, 8, 4]]
COLUMNS = [-6, -5, -4, -2, -1, -0.5, 0, 1, 3, 4, 4.5, 5, 7, 9]
GRIDS = {
    ("linear", "zeros", 1): [0.0, 0.0, 0.0, 0.0, 6.0, 6.0, 12.0, -8.0, -8.0, -4.0, -4.0, 0.0, 0.0, 0.0],
    ("linear", "zeros", 0): [0.0, 0.0, 0.0, 0.0, 7.5, 7.5, 7.5, -10.0, -10.0, -5.0, -5.0, 0.0, 0.0, 0.0],
    ("linear", "border", 1): [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -8.0, -8.0, -0.0, -0.0, -0.0, -0.0, -0.0],
    ("linear", "border", 0): [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -10.0, -10.0, -0.0, -0.0, -0.0, -0.0, -0.0],
    ("linear", "reflection", 1): [2.0, -8.0, -0.0, -2.0, 8.0, -12.0, 0.0, -8.0, -8.0, -0.0, 8.0, 8.0, 8.0, -8.0],
    ("linear", "reflection", 0): [-0.0, -0.0, 10.0, 10.0, 0.0, 0.0, 0.0, -10.0, -10.0, -0.0, -0.0, -0.0, -2.5, 0.0],
    ("cubic", "zeros", 1): [0.0, 0.0, 0.0, 0.0, 4.5, 4.5, 13.5, 3.0, -4.5, -9.0, -3.0, -3.0, 0.0, 0.0],
    ("cubic", "zeros", 0): [0.0, 0.0, 0.0, 0.0, 5.625, 5.625, 16.875, 3.75, -5.625, -11.25, -3.75, -3.75, 0.0, 0.0],
}


def grids_at_pixels():
    """The gradient by a grid where it stands on pixels, at borders and beyond, and by the offsets of DeformConv."""
    picture = np.array(PICTURE, np.float64).reshape(1, 1, 5, 5)
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.DOUBLE, s)
    for (mode, padding, align), slopes in GRIDS.items():
        at = [(2 * c / 4 - 1, -0.5) if align else ((2 * c + 1) / 5 - 1, 3 / 5 - 1) for c in COLUMNS]
        grid = numpy_helper.from_array(np.array(at).reshape(1, 1, -1, 2), "grid")
        node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=align)
        graph = helper.make_graph([node], "g", [value("x", 1, 1, 5, 5)], [value("y", 1, 1, 1, None)], [grid])
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]), "m.onnx")
        compiled("m.onnx", "--train", "--loss=l1(sum=1)", "--optimizer=sgd(momentum=0.5)")
        below = np.full((1, 1, 1, len(at)), -1e3)
        _, after = call("train_step", {"x": picture, "target": below}, [], ["grid.mean"])
        near(after["grid.mean"][0, 0, :, 0], np.array(slopes), 1e-9, f"{mode} {padding} {align}")
    ramp = np.tile(np.arange(5, dtype=np.float32), (1, 1, 5, 1))
    w, offsets = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 18, 5, 5), np.float32)
    w[0, 0, 1, 1] = 1
    node = helper.make_node("DeformConv", ["x", "w", "o"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    inputs = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(offsets, "o")]
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    graph = helper.make_graph([node], "g", [value("x", 1, 1, 5, 5)], [value("y", 1, 1, 5, 5)], inputs)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 19)]), "m.onnx")
    compiled("m.onnx", "--train", "--loss=l1(sum=1)", "--optimizer=sgd(momentum=0.5)", "--freeze=w")
    below = np.full((1, 1, 5, 5), -1e3, np.float32)
    _, after = call("train_step", {"x": ramp, "target": below}, [], ["o.mean"])
    near(after["o.mean"][0, 9], np.tile([1, 1, 1, 1, -4], (5, 1)), 1e-6, "the offsets of DeformConv")


def made(nodes, inputs, outputs, initializers, opset=20, values=()):
    """Writes m.onnx; inputs and outputs are pairs of a name and a shape, of f32."""
    info = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    stored = [numpy_helper.from_array(np.asarray(v), n) for n, v in initializers.items()]
    graph = helper.make_graph(nodes, "g", [info(*i) for i in inputs], [info(*o) for o in outputs], stored, value_info=list(values))
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)]), "m.onnx")


N = helper.make_node
CONSTANTS = [  # an operator that the importer computes something for: nodes, input, output, other initializers, opset
    ([N("Resize", ["a", "", "s"], ["y"], mode="linear")], [1, 2, 6, 6], [1, 2, 12, 12], {"s": np.float32([1, 1, 2, 2])}, 20),
    ([N("Resize", ["a", "", "s"], ["y"], mode="cubic", antialias=1)], [1, 2, 6, 6], [1, 2, 3, 3], {"s": np.float32([1, 1, 0.5, 0.5])}, 20),
    ([N("Unsqueeze", ["a", "last"], ["u"]), N("DFT", ["u", "", "axis"], ["y"])], [2, 8], [2, 8, 2], {"last": [2], "axis": np.int64(1)}, 20),
    ([N("MelWeightMatrix", ["n", "l", "r", "f", "t"], ["m"]), N("MatMul", ["a", "m"], ["y"])], [2, 9], [2, 4],
     {"n": np.int64(4), "l": np.int64(16), "r": np.int64(8000), "f": np.float32(0), "t": np.float32(4000)}, 17),
    ([N("Constant", [], ["mean"], value=numpy_helper.from_array(np.float32([0.4, 0.5, 0.6]))), N("Sub", ["a", "mean"], ["y"])], [2, 3], [2, 3], {}, 20),
]  # fmt: skip


def constants_stay():
    """What is computed for an operator, and what a node Constant holds, is no parameter: a step leaves it, and the weights
    go back into the model."""
    rng = np.random.default_rng(0)
    for nodes, given, result, others, opset in CONSTANTS:
        made([N("Mul", ["x", "w"], ["a"]), *nodes], [("x", given)], [("y", result)], {"w": np.ones(1, np.float32), **others}, opset)
        compiled("m.onnx", "--train", "--loss=mse", "--optimizer=sgd(lr=0.5)")
        expect(state_names() == ["w", "step"], f"{nodes[0].op_type}: the states are {state_names()}")
        x = rng.standard_normal(given).astype(np.float32)
        inputs = {"x": x, "target": np.zeros(result, np.float32)}
        _, after = call("train_step", inputs, [], ["w"])
        expect((after["w"] != 1).all(), "w was not trained")
        (loss,), _ = call("train_step", inputs, ["loss"], repeat=2)
        (same_loss,), _ = call("eval", inputs, ["loss"], start=after)
        same(loss, same_loss, f"{nodes[0].op_type}: the loss of eval")
        (trained,), _ = call("main", {"x": x}, ["y"], start=after)
        safetensors_file.write("w.safetensors", {"w": after["w"]})
        compiled("m.onnx", "--weights=w.safetensors")
        (again,), _ = call("main", {"x": x}, ["y"])
        same(again, trained, f"{nodes[0].op_type}: the model with the trained weight")
    made([N("Constant", [], ["w"], value=numpy_helper.from_array(np.eye(2, dtype=np.float32))), N("MatMul", ["x", "w"], ["y"])],
         [("x", [1, 2])], [("y", [1, 2])], {})  # fmt: skip
    done = tool("astra-compile", "m.onnx", "-o", "m.astra", "--train", "--loss=mse")
    expect("no parameter to train: 'w' are constants or buffers" in done.stderr, done.stderr)


def scalars():
    """Initializers of rank 0 are trained where they are named, and said to be or not to be."""
    f32 = np.float32
    rng = np.random.default_rng(0)
    nodes = [N("MatMul", ["x", "w"], ["a"]), N("Exp", ["logit_scale"], ["e"]), N("Mul", ["a", "e"], ["b"]),
             N("Clip", ["b", "low", "high"], ["c"]), N("Pow", ["c", "two"], ["d"]), N("ReduceMean", ["d", "axes"], ["m"]),
             N("Add", ["m", "epsilon"], ["n"]), N("Sqrt", ["n"], ["r"]), N("Div", ["c", "r"], ["z"]),
             N("Greater", ["z", "threshold"], ["g"]), N("Where", ["g", "z", "c"], ["y"])]  # fmt: skip
    stored = {"w": rng.standard_normal((5, 4)).astype(f32), "logit_scale": f32(0.5), "low": f32(-30), "high": f32(30),
              "two": f32(2), "epsilon": f32(1e-5), "threshold": f32(0), "axes": np.array([1])}  # fmt: skip
    made(nodes, [("x", [6, 5])], [("y", [6, 4])], stored)
    plain = ["m.onnx", "-o", "m.astra", "--train", "--loss=cross_entropy", "--optimizer=sgd(lr=0.1)"]
    told = done("astra-compile", *plain).stderr
    expect("not trained: 'logit_scale', 'low', 'high', 'two', 'epsilon', 'threshold', scalars that the file does not call "
           "parameters; --train-scalars=NAME trains one" in told, f"found {told}")  # fmt: skip
    expect(set(state_names()) == {"w", "step"}, f"the states are {state_names()}")
    recipe = plain[:-1] + ["--train-scalars=logit_scale", plain[-1]]
    told = done("astra-compile", *recipe).stderr
    for text in ("trained too: the scalars 'logit_scale'; --freeze=NAME keeps one as it is",
                 "not trained: 'low', 'high', 'two', 'epsilon', 'threshold', scalars that"):  # fmt: skip
        expect(text in told, f"expected {text}, found {told}")
    expect(set(state_names()) == {"logit_scale", "w", "step"}, f"the states are {state_names()}")
    inputs = {"x": rng.standard_normal((6, 5)).astype(f32), "target": np.arange(6) % 4}
    _, after = call("train_step", inputs, [], ["logit_scale", "w"], repeat=3)
    expect(after["logit_scale"].shape == () and after["logit_scale"] != 0.5, f"logit_scale is {after['logit_scale']}")
    (trained,), _ = call("main", {"x": inputs["x"]}, ["y"], start=after)
    safetensors_file.write("w.safetensors", after)
    for more in ([], recipe[3:]):  # to run it, and to train it further
        done("astra-compile", "m.onnx", "-o", "m.astra", "--weights=w.safetensors", *more)
        (again,), _ = call("main", {"x": inputs["x"]}, ["y"])
        same(again, trained, "the model with the trained scalar")
    done("astra-compile", *recipe, "--freeze=logit_scale")
    expect(set(state_names()) == {"w", "step"}, f"the states are {state_names()}")
    for optimizer in ("adam", "adamw", "rmsprop(momentum=0.5)", "adagrad", "lion", "lamb", "muon"):
        done("astra-compile", *recipe[:-1], f"--optimizer={optimizer}", "--clip-norm=1", "--init=*=normal")
        _, after = call("train_step", inputs, [], ["logit_scale"])
        expect(np.isfinite(after["logit_scale"]), f"{optimizer} makes {after['logit_scale']} of a scalar")


def buffers():
    """Where PyTorch's exporter says which initializers are parameters, buffers and other scalars stay."""
    def kind(name, shape, text):
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        value.metadata_props.add(key="pkg.torch.export.graph_signature.InputSpec.kind", value=text)
        return value
    nodes = [N("Sub", ["x", "mean"], ["a"]), N("MatMul", ["a", "w"], ["b"]), N("Mul", ["b", "t"], ["c"]), N("Pow", ["c", "p"], ["d"]),
             N("Mul", ["d", "val_1"], ["e"]), N("MatMul", ["e", "val_2"], ["y"])]  # fmt: skip
    stored = {"mean": np.ones(3, np.float32), "w": np.eye(3, dtype=np.float32), "t": np.float32(2), "p": np.float32(2),
              "val_1": np.float32(0.5), "val_2": np.eye(3, dtype=np.float32)}  # fmt: skip
    kinds = [kind("mean", [3], "BUFFER"), kind("w", [3, 3], "PARAMETER"), kind("t", [], "PARAMETER"), kind("p", [], "PARAMETER")]
    made(nodes, [("x", [2, 3])], [("y", [2, 3])], stored, values=kinds)
    told = done("astra-compile", "m.onnx", "-o", "m.astra", "--train", "--loss=mse").stderr
    names = [n for n in state_names() if "." not in n]
    expect(set(names) == {"w", "t", "p", "val_2", "step"}, f"the states are {names}")
    for text in ("not trained: 'mean', which the model has as buffers", "not trained: 'val_1', scalars that the file does not call"):
        expect(text in told, f"expected {text}, found {told}")


def softmax_rows():
    """The gradients of a softmax and of what is like it, also where the greatest occurs twice; one kernel each way."""
    points = np.array([[0.5, 2, 2, -1]])
    p = np.exp(points - 2) / np.exp(points - 2).sum()
    logs = np.log(p)
    for op, attributes, slopes in [
        ("Softmax", {}, 2 * p * (p - (p * p).sum())),
        ("LogSoftmax", {}, 2 * (logs - p * logs.sum())),
        ("ReduceLogSumExp", {"keepdims": 1, "axes": (1,)}, 2 * (points - logs)[0, 0] * p),
    ]:
        wide = 1 if op.startswith("Reduce") else points.size
        found = gradient_of(op, attributes, points[0], "mse(sum=1)", np.zeros((1, wide), np.float32))
        near(found, slopes, 1e-6, op)
    gradient_of("Softmax", {}, [0.5] * 300, "mse", np.zeros((1, 300), np.float32))
    flags = ["--train", "--loss=mse", "--optimizer=sgd", "--emit=schedule"]
    text = done("astra-compile", "m.onnx", *flags).stdout
    kernels = dict(re.findall(r"^kernel (\S+) (.*)", text, re.M))
    step = re.findall(r"launch (\S+)", text.split("entry train_step")[1].split("\nentry")[0])
    rows = [k for k in step if kernels[k].endswith("-> f32[1, 300]") and "reduce" in k]
    expect(len(rows) == 2, f"kernels of rows in a step: {rows}")


def merged_parameters():
    """What an exporter stored once is told; running statistics that are a bias too are refused."""
    value = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    stored = [numpy_helper.from_array(np.full(4, v, np.float32), n) for n, v in (("zeros", 0), ("ones", 1), ("var", 1))]
    shared = [numpy_helper.from_array(np.arange(4, dtype=np.float32), "shared")]
    adds = [helper.make_node("Add", ["x", "zeros"], ["a"], "first"), helper.make_node("Mul", ["a", "shared"], ["b"], "times"),
            helper.make_node("Add", ["b", "shared"], ["c"], "plus")]  # fmt: skip
    for last, told in ((helper.make_node("Add", ["c", "zeros"], ["y"], "second"), "note: parameter 'zeros' is one tensor for 2 nodes ('first', 'second'"),
                       (helper.make_node("BatchNormalization", ["c", "ones", "ones", "zeros", "var"], ["y"], "norm"),
                        "the running statistics 'zeros' are something else too, for nodes 'first' and 'norm'"),
                       (helper.make_node("BatchNormalization", ["c", "ones", "var", "var", "ones"], ["y"], "norm"),
                        "are something else too, for node 'norm'")):  # fmt: skip
        graph = helper.make_graph([*adds, last], "g", [value("x", 8, 4)], [value("y", 8, 4)], stored + shared)
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), "m.onnx")
        done = tool("astra-compile", "m.onnx", "-o", "m.astra", "--train", "--loss=mse")
        if told not in done.stderr or "parameter 'shared'" in done.stderr or bool(done.returncode) == ("note" in told):
            raise Failed(f"exit {done.returncode}: {done.stderr}")


HALVES = """module @m {{
  param @w : {w}[3, 2] = [1, 2, 3, 4, 5, 6]
  param @h : f16[2] = [1, 1]
  entry @main(%x : f32[4, 3]) -> (%y : f32[4, 2]) {{
    %a = cast @w : f32[3, 2]
    %b = contract %x[i, k], %a[k, j] -> [i, j] sum [k]
    %c = cast @h : f32[2]
    %d = reshape %c [1, 2]
    %e = expand %d [4, 2]
    %y = mul %b, %e
  }}
}}"""


def halves_stay():
    """Parameters of narrow types are not trained, and one is told so; nor is an input called target taken."""
    for w, told, code in (("f32", "note: parameters of f32 and f64 are trained; as they are stay 'h'", 0),
                          ("bf16", "there is no parameter to train: 'w', 'h' are of types that are not; f32 and f64 are", 1)):  # fmt: skip
        Path("halves.uop").write_text(HALVES.format(w=w))
        done = tool("astra-compile", "halves.uop", "-o", "m.astra", "--train", "--loss=mse")
        if told not in done.stderr or done.returncode != code:
            raise Failed(f"exit {done.returncode}: {done.stderr}")
    Path("target.uop").write_text(HALVES.format(w="f32").replace("%x", "%target"))
    done = tool("astra-compile", "target.uop", "-o", "m.astra", "--train", "--loss=mse")
    if "the model has an input 'target'" not in done.stderr or done.returncode != 1:
        raise Failed(f"exit {done.returncode}: {done.stderr}")


REFUSALS = [
    (["--loss=mse"], "need --train"),
    (["--train"], "--train needs a loss: --loss=NAME, of mse"),
    (["--train", "--loss=mes"], "there is no loss 'mes'; there are: mse"),
    (["--train", "--loss=mse", "--optimizer=adam(rate=1)"], "'rate' is no parameter of adam; there are: lr, beta1"),
    (["--train", "--loss=mse", "--clip-norm=-1"], "--clip-norm: '-1' is not a number above 0"),
    (["--train", "--loss=mse", "--clip-norm=1e400"], "--clip-norm: '1e400' is not a number above 0"),
    (["--metric=accuracy"], "need --train"),
    (["--train", "--loss=mse", "--metric=recall"], "there is no metric 'recall'; there are: accuracy, top"),
    (["--train", "--loss=mse", "--metric=top(k=2)", "--metric=top(k=2)"], "top2 is given twice"),
    (["--dim=batch=1..64", "--train", "--loss=mse", "--metric=top"], "metric top: is of classes, the loss mse is not"),
    (["--dim=batch=1..64", "--train", "--loss=mse", "--freeze=nothing.*"], "no parameter matches 'nothing.*'"),
    (["--dim=batch=1..64", "--train", "--loss=mse", "--freeze=*"], "there is no parameter to train"),
    (["--dim=batch=1..64", "--train", "--loss=mse", "--predict=nobody"], "the model has no value 'nobody' to predict"),
    (["--dim=batch=1..64", "--train", "--loss=ctc"], "loss ctc: expected a prediction [T, N, C], found f32[batch, 10]"),
]


def refused(flags, sentence):
    done = tool("astra-compile", DIGITS, "-o", "m.astra", *flags)
    if done.returncode == 0 or sentence not in done.stderr:
        raise Failed(f"exit {done.returncode}: {done.stderr}")


def main():
    tests = [digits_like_pytorch, digits_equal_bits, digits_stopped_and_resumed, frozen_stays, dropout, softplus_at_zero,
             nonsmooth_points, grids_at_pixels, constants_stay, scalars, buffers, softmax_rows, merged_parameters, halves_stay]  # fmt: skip
    all_of = [(t.__name__, t) for t in tests] + [(" ".join(f), lambda f=f, s=s: refused(f, s)) for f, s in REFUSALS]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return run(all_of)


if __name__ == "__main__":
    sys.exit(main())
