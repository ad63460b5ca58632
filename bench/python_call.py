#!/usr/bin/env python3
"""What one call costs from Python on an array of one element: astra_rt beside ONNX Runtime, astra.jit beside jax.jit, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/python_call.py [--turns N]
Takes:    build/bin/astra-compile, the modules astra_rt and astra, onnxruntime; jax where it is installed.
Gives:    nanoseconds of the calling thread for a call, the least of all turns of 1,000 calls; one line a way of calling.
Keeps:    both give the same bytes, or nothing is measured.
Does not: measure work: the model adds an element to itself.
"""
import argparse
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
        }
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(options.turns):
            for name, call in ways.items():
                call()
                begin = time.thread_time_ns()
                for _ in range(1000):
                    call()
                best[name] = min(best[name], (time.thread_time_ns() - begin) / 1000)
        for name, nanoseconds in best.items():
            print(f"{name:44} {nanoseconds:7.0f} ns")


main()
