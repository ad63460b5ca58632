"""Kernels in the kernel language beside the compiler's own of the same work, on this CPU.

Takes:    the kernels of python/tests/astra/tutorial_kernels.py at sizes of a millisecond or so.
Gives:    a line for each: median microseconds of both, by astra-run on one thread, turn and turn about, and how many times as
          fast the kernel is as the compiler's own (1.00: as fast).
Keeps:    both compute the same function; their values are compared by tolerance, since a kernel may add in another order.
          --check ends with 1 where a kernel falls below 0.8 of what docs/kernels.md records of it, three times in a row.
Does not: count lines, or measure a GPU.

    PYTHONPATH=build/python build/venv/bin/python bench/kernels.py [--rounds 9] [--only NAME] [--check]
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LEAST, TRIES = 0.8, 3  # of what is recorded; measurements of a kernel before it has fallen below that
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "python/tests/astra")]
import astra  # noqa: E402
import tutorial_kernels as tutorial  # noqa: E402

RNG = np.random.default_rng(1)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def attention(q, k, v):
    s = astra.matmul(q, k.T) * 0.125
    e = astra.exp(s - astra.max(s, axis=1, keepdims=True))
    return astra.matmul(e / astra.sum(e, axis=1, keepdims=True), v)


def layer_norm(x, w, b):
    d = x - astra.mean(x, axis=1, keepdims=True)
    return d / astra.sqrt(astra.mean(d * d, axis=1, keepdims=True) + 1e-5) * w + b


def convolution(x, w):
    layer = astra.nn.Conv2d(w.shape[1], w.shape[0], w.shape[2], padding=1, bias=False)
    layer.weight = w
    return layer(x)


def softmax(x):
    e = astra.exp(x - astra.max(x, axis=1, keepdims=True))
    return e / astra.sum(e, axis=1, keepdims=True)


def histogram(x):
    return astra.sum(astra.astype(x[:, None] == astra.arange(16, dtype="int32")[None, :], "int32"), axis=0, dtype="int32")


def rows():
    """Name: kernel, inputs, what the call says, the same in the array API."""
    n = 1 << 20
    yield "vector add", tutorial.add, (normal(n), normal(n)), dict(out=astra.spec((n,)), grid=n // 4096, BLOCK=4096), lambda x, y: x + y
    yield "softmax", tutorial.softmax, (normal(1024, 1024),), dict(out=astra.spec((1024, 1024)), grid=1024, WIDTH=1024), softmax
    given = dict(out=astra.spec((1024, 1024)), grid=1024, BLOCK=128)
    yield "layer norm", tutorial.layer_norm, (normal(1024, 1024), normal(1024), normal(1024)), given, layer_norm
    given = dict(out=astra.spec((512, 512)), grid=(8, 8), M=64, N=64, K=64)
    yield "product", tutorial.matmul, (normal(512, 512), normal(512, 512)), given, astra.matmul
    codes, scales = RNG.integers(-8, 8, (512, 512)).astype(np.int8), normal(16, 512)
    given = dict(out=astra.spec((64, 512)), grid=(4, 8), M=16, N=64, GROUP=32)
    yield ("dequantised product", tutorial.dequantised_matmul, (normal(64, 512), codes, scales), given,
           lambda a, q, s: astra.matmul(a, astra.astype(q, "float32") * astra.repeat(s, 32, axis=0)))  # fmt: skip
    given = dict(out=astra.spec((512, 64)), grid=32, M=16, N=64, SCALE=0.125)
    yield "attention", tutorial.attention, (normal(512, 64), normal(512, 64), normal(512, 64)), given, attention
    given = dict(out=astra.spec((1024,)), grid=128, ROWS=8, BLOCK=64)
    yield "row sums", tutorial.row_sums, (normal(1024, 1024),), given, lambda x: astra.sum(x, axis=1)
    given = dict(out=astra.spec((256, 2048)), grid=256, BLOCK=128)
    yield "running sums", tutorial.running_sums, (normal(256, 2048),), given, lambda x: astra.cumulative_sum(x, axis=1)
    x = RNG.integers(0, 16, 1 << 16).astype(np.int32)
    yield "histogram", tutorial.histogram, (x,), dict(out=astra.spec((16,), "int32"), grid=64, BLOCK=1024, BINS=16), histogram
    image, filters = normal(16, 64, 64), normal(16, 16, 3, 3)
    given = dict(out=astra.spec((16, 64, 64)), grid=(16, 8, 1), ROWS=8, COLUMNS=64)
    yield "convolution", tutorial.convolution, (image, filters), given, convolution


def bundle(path, f, inputs):
    """Writes it; the names of its inputs."""
    lowered = astra.trace(f, *[astra.spec(x.shape, str(x.dtype)) for x in inputs]).lower()
    lowered.compile("native").save(path)
    return re.findall(r"%(\w+) :", re.search(r"entry @main\((.*?)\) ->", lowered.as_text())[1])


def run(path, names, files, repeat):
    """Median microseconds."""
    words = [ROOT / "build/bin/astra-run", path, "--threads=1", f"--repeat={repeat}", "--json"]
    words += [f"--input={n}={f}" for n, f in zip(names, files)]
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["microseconds"]["median"]


def recorded():
    """Of each kernel how many times as fast it is as the compiler's own, by the page."""
    table = (ROOT / "docs/kernels.md").read_text().split("| kernel | yours |")[1].split("\n\n")[0]
    return {name: float(ratio) for name, ratio in re.findall(r"^\| ([^|,]+)[^|]* \| [\d,]+ \| [\d,]+ \| ([\d.]+) \|$", table, re.M)}


def measured(paths, names, files, rounds):
    """Median microseconds of both."""
    times = [[], []]
    for _ in range(rounds):
        for which in (0, 1):
            times[which].append(run(paths[which], names[which], files, 20))
    return [statistics.median(t) for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only")
    parser.add_argument("--check", action="store_true", help="compare with what docs/kernels.md records")
    options = parser.parse_args()
    known, slow = recorded(), []
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        for name, kernel, inputs, given, own in rows():
            if options.only and options.only not in name:
                continue
            files = []
            for i, x in enumerate(inputs):
                np.save(folder / f"{i}.npy", x)
                files.append(folder / f"{i}.npy")
            both = [lambda *xs: kernel(*xs, **given), own]
            values = [np.asarray(astra.jit(f)(*inputs)) for f in both]
            np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)
            paths = [folder / "kernel.astra", folder / "own.astra"]
            names = [bundle(path, f, inputs) for path, f in zip(paths, both)]
            for left in reversed(range(TRIES if options.check else 1)):
                mine, theirs = measured(paths, names, files, options.rounds)
                print(f"{name:20s} {mine:10.1f} {theirs:10.1f}  {theirs / mine:5.2f}", flush=True)
                if theirs / mine >= LEAST * known[name]:
                    break
                if not left:
                    slow.append(f"{name}: {theirs / mine:.2f}, {known[name]:.2f} is recorded")
    if options.check and slow:
        sys.exit("\n".join(slow))


if __name__ == "__main__":
    main()
