#!/usr/bin/env python3
"""What one call costs from Python on an array of one element: astra_rt, astra.jit and `@astra` on PyTorch's tensors beside ONNX Runtime's run, a
jitted call of JAX and a torch.compile'd one, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/python_call.py [--turns N]
Takes:    build/bin/astra-compile, the modules astra_rt and astra, onnxruntime; jax and torch where they are installed.
Gives:    nanoseconds of the calling thread for a call, the least of all turns of 1,000 calls and their median; one line a way of calling; then ours over the
          best of the others, where at most half is wanted.
Keeps:    both give the same bytes, or nothing is measured.
Does not: measure work: the model adds an element to itself.
"""
import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import astra
import astra_rt
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent


def model(folder):
    """The model as an ONNX file and as a bundle."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "one", [x], [y])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(file, folder / "one.onnx")
    subprocess.run([ROOT / "build/bin/astra-compile", folder / "one.onnx", "-o", folder / "one.astra"], check=True)
    return str(folder / "one.onnx"), str(folder / "one.astra")


def jitted(x):
    """Calls of compiled functions, each with an array of its own kind and with NumPy's."""
    tensor, ours = astra.tensor(x), astra.jit(lambda x: x + x)
    assert ours(tensor).tobytes() == ours(x).tobytes() == (x + x).tobytes()
    ways = {
        "astra: jit(f)(tensor)": lambda: ours(tensor),
        "astra: jit(f)(array)": lambda: ours(x),
        "astra: x + x, and its value": lambda: (tensor + tensor).numpy(),
    }
    try:
        import jax
    except ModuleNotFoundError:
        return ways
    jax.config.update("jax_platforms", "cpu")
    array, theirs = jax.numpy.asarray(x), jax.jit(lambda x: x + x)
    assert np.asarray(theirs(array)).tobytes() == (x + x).tobytes()
    ways["jax: jit(f)(array of jax)"] = lambda: theirs(array).block_until_ready()
    ways["jax: jit(f)(array)"] = lambda: theirs(x).block_until_ready()
    ways["jax: x + x, and its value"] = lambda: np.asarray(array + array)
    return ways


def of_torch(x):
    """Calls with tensors of PyTorch's, which must want no gradients."""
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    torch.set_num_threads(1)
    tensor = torch.from_numpy(x.copy())
    ours, theirs = astra.astra(lambda x: x + x), torch.compile(lambda x: x + x)
    assert ours(tensor).numpy().tobytes() == theirs(tensor).numpy().tobytes() == (x + x).tobytes()
    return {
        "astra: astra(f)(tensor of torch)": lambda: ours(tensor),
        "torch: torch.compile(f)(tensor)": lambda: theirs(tensor),
        "torch: x + x": lambda: tensor + tensor,
    }


# What is compared: a call of ours, and the best of what it is beside.
OURS = ["astra_rt: module(x)", "astra: jit(f)(tensor)", "astra: jit(f)(array)", "astra: astra(f)(tensor of torch)"]
OTHERS = ["onnxruntime: session.run(None, {'x': x})", "jax: jit(f)(array of jax)", "jax: jit(f)(array)", "torch: torch.compile(f)(tensor)"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, bundle = model(Path(folder))
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
        module = astra_rt.load(bundle)
        entry, x, y = module.main, np.ones(1, np.float32), np.empty(1, np.float32)
        assert session.run(None, {"x": x})[0].tobytes() == module(x).tobytes()
        ways = {
            "onnxruntime: session.run(None, {'x': x})": lambda: session.run(None, {"x": x}),
            "astra_rt: module(x)": lambda: module(x),
            "astra_rt: entry(x)": lambda: entry(x),
            "astra_rt: entry(x=x).numpy()": lambda: entry(x=x).numpy(),
            "astra_rt: entry(x, out=y)": lambda: entry(x, out=y),
            "numpy: np.add(x, x)": lambda: np.add(x, x),
            "numpy: np.add(x, x, out=y)": lambda: np.add(x, x, out=y),
            **jitted(x),
            **of_torch(x),
        }
        turns = {name: [] for name in ways}
        for _ in range(options.turns):
            for name, call in ways.items():
                call()
                begin = time.thread_time_ns()
                for _ in range(1000):
                    call()
                turns[name].append((time.thread_time_ns() - begin) / 1000)
        for name, nanoseconds in turns.items():
            print(f"{name:44} {min(nanoseconds):7.0f} ns, median {statistics.median(nanoseconds):7.0f}")
        best = min((name for name in OTHERS if name in turns), key=lambda name: min(turns[name]))
        for name in (name for name in OURS if name in turns):
            print(f"{name:44} {min(turns[name]) / min(turns[best]):7.2f} of {best}")

main()
