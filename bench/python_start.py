#!/usr/bin/env python3
"""From nothing to a first result: a fresh Python process that imports, loads a model and calls it once.

usage: PYTHONPATH=build/python build/venv/bin/python bench/python_start.py [--turns N] [--models digits,minilm] [--ways astra_rt,onnx,eager]
Takes:    build/bin/astra-compile, the module astra_rt, onnxruntime; torch if it is installed. minilm: build/sentence/minilm.onnx, which
          examples/sentence/run.sh exports.
Gives:    a table: milliseconds from the start of the process to the result, by the wall and of the processor, and the most memory that it
          had; the median of the turns of each.
Keeps:    processes run turn and turn about, one at a time, after a turn that is not counted: files are in memory, torch.compile's cache is
          full. All use one thread. Results agree to 1e-4, or nothing is measured.
Does not: measure the compilation that goes before: astra-compile's, and that of torch.compile's first process.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import astra_rt
import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parent.parent
MODELS = {
    "digits": (ROOT / "examples/digits/digits.onnx", {"batch": "1..64"}),
    "minilm": (ROOT / "build/sentence/minilm.onnx", {"batch": "1..64", "length": "2..256"}),
}
# Programs end with y, the first output. The time of the result goes out before Python begins to end.
END = "\nimport time; print(time.monotonic()); import sys, numpy; numpy.save('y.npy', numpy.asarray(y)); sys.stdout.flush()"
INPUTS = "import numpy; x = dict(numpy.load('x.npz'))\n"
TORCH = """
import torch
torch.set_num_threads(1)
from torch import nn
class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.ReLU(), nn.BatchNorm2d(16), nn.MaxPool2d(2),
                                      nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classify = nn.Linear(128, 10)
    def forward(self, x):
        return torch.softmax(self.classify(self.features(x)), dim=1)
model = Digits().eval()
model.load_state_dict({k: torch.from_numpy(v) for k, v in numpy.load('weights.npz').items()}, strict=False)
image = torch.from_numpy(x['image'])
"""
WAYS = {
    "Python and NumPy alone": INPUTS + "y = list(x.values())[0]",
    "astra_rt": INPUTS + "import astra_rt; y = astra_rt.load('model.astra')(**x); y = y if isinstance(y, astra_rt.Tensor) else y[0]",
    "onnxruntime": INPUTS + "import onnxruntime as o; s = o.SessionOptions(); s.intra_op_num_threads = 1\n"
                   "y = o.InferenceSession(MODEL, s, providers=['CPUExecutionProvider']).run(None, x)[0]",
    "torch, eager": INPUTS + TORCH + "with torch.no_grad(): y = model(image)",
    "torch.compile, from its cache": INPUTS + TORCH + "with torch.no_grad(): y = torch.compile(model)(image)",
    "torch, AOTInductor's package": INPUTS + "import torch, torch._inductor\ntorch.set_num_threads(1)\n"
                                    "with torch.no_grad(): y = torch._inductor.aoti_load_package('model.pt2')(torch.from_numpy(x['image']))",
}  # fmt: skip
PACKAGE = INPUTS + TORCH + """
with torch.no_grad():
    batch = torch.export.Dim('batch', min=1, max=64)
    exported = torch.export.export(model, (torch.from_numpy(numpy.repeat(x['image'], 2, 0)),), dynamic_shapes=({0: batch},))
torch._inductor.aoti_compile_and_package(exported, package_path='model.pt2')
"""


def process(program, folder):
    """Wall and processor milliseconds, MiB; the result is in y.npy."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                   "PYTHONPATH": str(Path(astra_rt.__file__).parents[1])}  # fmt: skip
    begin = time.monotonic()
    child = subprocess.Popen([sys.executable, "-c", program], cwd=folder, env=environment, stdout=subprocess.PIPE)
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"bench/python_start.py: a process ended with status {status}")
    return (float(said.split()[-1]) - begin) * 1e3, (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss / 1024


def prepare(name, folder, ways):
    """Files for the processes, and a call of each that is not counted; refuses if results differ."""
    source, dims = MODELS[name]
    words = [f"--dim={dim}={bounds}" for dim, bounds in dims.items()]
    subprocess.run([ROOT / "build/bin/astra-compile", source, "-o", folder / "model.astra", *words], check=True)
    graph, random = onnx.load(source, load_external_data=False).graph, np.random.default_rng(1)
    inputs = {}
    for i in graph.input:
        shape = [1, *(d.dim_value or 16 for d in i.type.tensor_type.shape.dim[1:])]
        if i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            inputs[i.name] = random.standard_normal(shape, np.float32)
        else:
            inputs[i.name] = np.ones(shape, np.int64) if "mask" in i.name else random.integers(1000, 20000, shape)
    np.savez(folder / "x.npz", **inputs)
    if name == "digits":
        np.savez(folder / "weights.npz", **{t.name: numpy_helper.to_array(t) for t in graph.initializer if "." in t.name})
        if "torch, AOTInductor's package" in ways:
            process(PACKAGE + "y = 0" + END, folder)
    wanted = None
    for way, program in ways.items():
        process(program, folder)
        found = np.load(folder / "y.npy")
        if way.startswith("Python"):
            continue
        wanted = found if wanted is None else wanted
        if not np.allclose(found, wanted, rtol=1e-4, atol=1e-4):
            sys.exit(f"bench/python_start.py: {name}: {way} gives another result than astra_rt")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--models", default="digits,minilm", type=lambda text: text.split(","))
    parser.add_argument("--ways", default="astra_rt,onnx,torch,Python", type=lambda text: text.split(","), help="parts of the names of processes")
    options = parser.parse_args()
    print(f"{options.turns} turns, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    print("| model | process | wall ms | CPU ms | MiB |\n|---|---|---|---|---|")
    for name in options.models:
        if name not in MODELS or not MODELS[name][0].exists():
            print(f"bench/python_start.py: there is no model '{name}' here", file=sys.stderr)
            continue
        has_torch = name == "digits" and importlib.util.find_spec("torch")  # the network of digits alone is written in torch here
        ways = {w: p.replace("MODEL", repr(str(MODELS[name][0]))) + END for w, p in WAYS.items() if has_torch or "torch" not in w}
        ways = {w: p for w, p in ways.items() if any(part in w for part in options.ways)}
        with tempfile.TemporaryDirectory() as folder:
            prepare(name, Path(folder), ways)
            figures = {w: [] for w in ways}
            for _ in range(options.turns):
                for way, program in ways.items():
                    figures[way].append(process(program, Path(folder)))
        for way, rows in figures.items():
            print(f"| {name} | {way} | {' | '.join(f'{statistics.median(column):.0f}' for column in zip(*rows))} |", flush=True)


main()
