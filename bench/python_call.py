#!/usr/bin/env python3
"""What one call costs from Python on an array of one element: astra_rt beside ONNX Runtime, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/python_call.py [--turns N]
Takes:    build/bin/astra-compile, the module astra_rt, onnxruntime.
Gives:    nanoseconds of the calling thread for a call, the least of all turns of 1,000 calls; one line a way of calling.
Keeps:    both give the same bytes, or nothing is measured.
Does not: measure work: the model adds an element to itself.
"""
import argparse
import subprocess
import tempfile
import time
from pathlib import Path

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
