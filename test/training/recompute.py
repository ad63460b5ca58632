"""Steps whose values must fit into a bound of memory: what does not is computed again, to the same bits.

Takes:    a build folder; examples/digits_train, examples/chargpt, the graph of a ResNet of test/models.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    equality of bytes with steps that keep everything; what astra-inspect reads in the bundle is within the bound.

    build/venv/bin/python test/training/recompute.py
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
from run import LEVELS, done, expect, tool  # noqa: E402, of this folder: it makes test/onnx known
from harness import run  # noqa: E402

TARGETS = "--target=cpu:" + LEVELS[-1]


def planned(bundle):
    """The bytes that train_step keeps its values in, at the upper bounds of the dims."""
    text = done("astra-inspect", bundle).stdout
    line = next(line for line in text.splitlines() if line.startswith("entry train_step("))
    number, unit = re.search(r"keeps values in ([\d.]+) (bytes|KB|MB)", line).groups()
    return float(number) * {"bytes": 1, "KB": 1e3, "MB": 1e6}[unit]


class Net:
    """A model, the flags of its training, the inputs of a step; the states after two steps that keep everything."""

    def __init__(self, model, flags, inputs):
        self.model, self.flags, self.inputs = model, [TARGETS, "-j2", "--train", *flags], inputs
        for name, value in inputs.items():
            np.save(f"{name}.npy", value)
        refused = tool("astra-compile", model, "-o", "no.astra", *self.flags, "--checkpoint-memory=1K")
        expect(refused.returncode == 1, f"a bound of 1K is met: exit {refused.returncode}")
        sentence = r"train_step cannot keep its values in 1K; (\d+)K is the least that can be met, (\d+)K without recomputing anything"
        expect(re.search(sentence, refused.stderr), refused.stderr)
        expect(not Path("no.astra").exists(), "a bundle was written")
        self.least, self.plain = map(int, re.search(sentence, refused.stderr).groups())
        self.compile("plain.astra")
        expect(abs(planned("plain.astra") / 1024 - self.plain) <= 0.01 * self.plain + 1, f"{planned('plain.astra')} bytes, said {self.plain}K")
        self.states = self.step("plain.astra")

    def compile(self, bundle, *flags):
        return done("astra-compile", self.model, "-o", bundle, *self.flags, *flags).stderr

    def step(self, bundle, *flags):
        words = [f"--input={name}={name}.npy" for name in self.inputs]
        done("astra-run", bundle, "--entry=train_step", *words, "--repeat=2", "--save-states=states.safetensors", *flags)
        return Path("states.safetensors").read_bytes()

    def bounded(self, size):
        said = self.compile("bounded.astra", f"--checkpoint-memory={size}K")
        expect(planned("bounded.astra") <= 1.001 * size * 1024, f"{planned('bounded.astra')} bytes, the bound is {size}K")
        for threads in (1, 2):
            expect(self.step("bounded.astra", f"--threads={threads}") == self.states, f"{size}K: other bytes with {threads} threads")
        return said


def digits():
    recipe = ["--dim=batch=1..64", "--loss=cross_entropy", "--optimizer=adamw(lr=1e-2)", "--clip-norm=1"]
    data = ROOT / "examples/digits_train"
    inputs = {"image": np.load(data / "train_images.npy")[:64], "target": np.load(data / "train_labels.npy")[:64].astype(np.int64)}
    net = Net(data / "digits.onnx", recipe, inputs)
    expect("nothing is computed again" in net.bounded(net.plain), "a bound that is met is not said to be")
    expect(net.least < net.plain, f"{net.least}K at least, {net.plain}K for everything")
    said = net.bounded(net.least)
    expect(re.search(rf"in {net.least}K instead of {net.plain}K: \d+ of \d+ segments of the model are computed again", said), said)
    print(f"  digits, batch 64: {net.plain}K, {net.least}K")


def chargpt():
    shutil.copy(ROOT / "examples/chargpt/chargpt.onnx", "chargpt.onnx")
    subprocess.run([sys.executable, ROOT / "examples/chargpt/begin.py", "chargpt.weights"], check=True)
    text = np.random.RandomState(0).randint(0, 96, (16, 129))
    inputs = {"token": text[:, :-1].astype(np.uint8), "target": text[:, 1:].astype(np.int64)}
    net = Net("chargpt.onnx", ["--dim=batch=1..16", "--loss=cross_entropy", "--clip-norm=1"], inputs)
    expect(net.least < 0.5 * net.plain, f"{net.least}K at least, {net.plain}K for everything")
    net.bounded(net.least)
    net.bounded((net.least + net.plain) // 2)
    print(f"  chargpt, batch 16: {net.plain}K, {net.least}K")


def resnet():
    """The graph of a ResNet-50 with seeded weights, images of 64 x 64, a batch of 64."""
    subprocess.run([sys.executable, ROOT / "test/models/make.py", ".", "resnet50-raw"], check=True, stdout=subprocess.DEVNULL)
    images = np.random.RandomState(0).standard_normal((64, 3, 64, 64)).astype(np.float32)
    model = onnx.load("resnet50-raw.onnx", load_external_data=False)
    del model.graph.value_info[:]
    image = model.graph.input[0]
    for axis in (2, 3):
        image.type.tensor_type.shape.dim[axis].dim_value = 64
    onnx.save(model, "resnet.onnx")
    net = Net("resnet.onnx", ["--dim=batch=64", "--loss=cross_entropy", "--optimizer=sgd(lr=1e-3)"],
              {image.name: images, "target": np.arange(64) * 15})  # fmt: skip
    expect(net.least < 0.6 * net.plain, f"{net.least}K at least, {net.plain}K for everything")
    net.bounded(net.least)
    print(f"  resnet50, batch 64 at 64: {net.plain}K, {net.least}K")


def dropout():
    """The numbers that are drawn again are those that were drawn."""
    layers, nodes, weights = 8, [], []
    value = "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array((np.random.RandomState(i).standard_normal((32, 32)) / 5).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], [f"t{i}"]),
                  helper.make_node("Dropout", [f"t{i}", "ratio"], [f"d{i}"])]  # fmt: skip
        value = f"d{i}"
    nodes.append(helper.make_node("Identity", [value], ["y"]))
    weights.append(numpy_helper.from_array(np.float32(0.3), "ratio"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 32])], weights)  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), "dropout.onnx")
    inputs = {"x": np.random.RandomState(9).standard_normal((64, 32)).astype(np.float32), "target": np.zeros((64, 32), np.float32)}
    net = Net("dropout.onnx", ["--dim=batch=1..64", "--loss=mse", "--optimizer=sgd(lr=0.1)"], inputs)
    expect(net.least < net.plain, f"{net.least}K at least, {net.plain}K for everything")
    net.bounded(net.least)
    uop = done("astra-compile", net.model, *net.flags, f"--checkpoint-memory={net.least}K", "--print-after=train", "-o", "again.astra").stderr
    plain = done("astra-compile", net.model, *net.flags, "--print-after=train", "-o", "again.astra").stderr
    expect(len(re.findall(r"= random ", uop)) > len(re.findall(r"= random ", plain)), "no mask is drawn again")


def options():
    for flags, sentence in {
        ("--checkpoint-memory=3X", "--train", "--loss=mse"): "--checkpoint-memory: '3X' is no number of bytes above 0, as 512M",
        ("--checkpoint-memory=0", "--train", "--loss=mse"): "--checkpoint-memory: '0' is no number of bytes above 0, as 512M",
        ("--checkpoint-memory=1M",): "a loss, an optimizer and what goes with them need --train",
    }.items():
        refused = tool("astra-compile", ROOT / "examples/affine/affine.uop", "-o", "m.astra", *flags)
        expect(refused.returncode == 2 and sentence in refused.stderr, f"exit {refused.returncode}: {refused.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return run([(t.__name__, t) for t in (digits, chargpt, resnet, dropout, options)])


if __name__ == "__main__":
    sys.exit(main())
