"""Latency of compiled networks beside ONNX Runtime's, measured in turns on one machine.

Takes:    the folder that test/models/make.py wrote, the folder of the programs, names of models (all by default).
Gives:    one line per case: the least and the median time of a call, of Astra (best CPU level) and of ONNX Runtime, and
          their ratio; both with the same number of threads.
Keeps:    turns: both are measured in short rounds, one after the other, so that a machine that slows down slows both.
Does not: check the outputs (test/models/run.py does).

    build/venv/bin/python bench/networks.py build/models build/bin [--threads=N] [--rounds=N] [resnet50] [bert]
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

DIMS = {"resnet50": ["batch=1..8"], "bert": ["batch=1..8", "seq=1..128"]}
CASES = {"resnet50": ["b1"], "bert": ["b1s32", "b3s128"]}
CALLS = {"resnet50": 5, "bert": 50}


def inputs(folder, model, case):
    prefix = f"{model}.{case}.input."
    return {path.name[len(prefix) : -len(".npy")]: path for path in sorted(folder.glob(prefix + "*.npy"))}


def astra_round(programs, bundle, files, threads, calls):
    """Median and least of one run of astra-run, in microseconds."""
    command = [str(programs / "astra-run"), str(bundle), f"--threads={threads}", f"--repeat={calls}"]
    command += [f"--input={name}={path}" for name, path in files.items()]
    text = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"median ([\d.]+) us, least ([\d.]+) us", text.stdout + text.stderr)
    return float(found[1]), float(found[2])


def peer_round(session, feed, calls):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        session.run(None, feed)
        times.append((time.perf_counter() - start) * 1e6)
    return float(np.median(times)), min(times)


def measure(model, folder, programs, threads, rounds):
    bundle = folder / f"{model}.bench.astra"
    command = [str(programs / "astra-compile"), str(folder / f"{model}.onnx"), "-o", str(bundle)]
    command += ["--target=cpu:x86-64-v3,cpu:x86-64-v4", *(f"--dim={dim}" for dim in DIMS[model])]
    subprocess.run(command, check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(folder / f"{model}.onnx", options, providers=["CPUExecutionProvider"])
    for case in CASES[model]:
        files = inputs(folder, model, case)
        feed = {name: np.load(path) for name, path in files.items()}
        session.run(None, feed)
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(astra_round(programs, bundle, files, threads, CALLS[model]))
            theirs.append(peer_round(session, feed, CALLS[model]))
        median = [np.median([m for m, _ in side]) / 1000 for side in (ours, theirs)]
        least = [min(x for _, x in side) / 1000 for side in (ours, theirs)]
        print(
            f"{model} {case}, {threads} thread{'s' if threads > 1 else ''}: "
            f"astra {least[0]:.2f} ms (median {median[0]:.2f}), onnxruntime {least[1]:.2f} ms (median {median[1]:.2f}), "
            f"ratio {least[0] / least[1]:.2f} (median {median[0] / median[1]:.2f})"
        )


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    option = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    folder, programs = map(Path, words[:2])
    for model in words[2:] or CASES:
        measure(model, folder, programs, int(option.get("threads", 1)), int(option.get("rounds", 5)))


if __name__ == "__main__":
    main()
