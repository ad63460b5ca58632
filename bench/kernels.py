"""Kernels in the kernel language beside the compiler's own of the same work, on this CPU.

Takes:    the kernels of python/tests/astra/tutorial_kernels.py at sizes of a millisecond or so.
Gives:    a line for each: the least microseconds of both, by astra-run on one thread, turn and turn about, and how many times as
          fast the kernel is as the compiler's own (1.00: as fast); its statements, and those of the kernel in Triton's tutorial;
          seconds of CPU time that it takes to compile for this CPU, to a cubin and to an HSACO.
Keeps:    both compute the same function; their values are compared by tolerance, since a kernel may add in another order.
          --check ends with 1 where a kernel, in each of three tries, is less than 0.95 times as fast, or takes more than 0.3 s for a target,
          or has more than 10 statements more than the tutorial's; --recorded where it falls below 0.8 of what docs/kernels.md records.
Does not: measure a GPU.

    PYTHONPATH=build/python build/venv/bin/python bench/kernels.py [--rounds 9] [--only NAME] [--check | --recorded]
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
GOAL, MOST_SECONDS, MOST_STATEMENTS = 0.95, 0.3, 10  # as fast; to compile for a target; beyond the tutorial's
LEAST = 0.8  # of what is recorded
TRIES = 3  # measurements of a kernel before it has fallen below
TARGETS = ("native", "cuda:sm_90", "hip:gfx942")
# Statements of the kernels in Triton's tutorials 01, 02, 03, 05 and 06 (forward; of attention with the loop that it calls); a signature is one.
TUTORIALS = {"vector add": 9, "softmax": 14, "product": 29, "layer norm": 18, "attention": 58}
os.environ["ASTRA_CACHE_DIR"] = ""  # nothing is compiled before
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


def statements(kernel):
    """Of its source; what it says of itself is none."""
    found = [n for n in ast.walk(kernel.source.tree) if isinstance(n, ast.stmt)]
    return len([n for n in found if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))])


def seconds(f, inputs, target):
    """CPU time of a compilation, its child processes included."""
    lowered = astra.trace(f, *[astra.spec(x.shape, str(x.dtype)) for x in inputs]).lower()
    before = os.times()
    lowered.compile(target)
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def run(path, names, files, repeat):
    """The least microseconds: what else the machine does only adds to them."""
    words = [ROOT / "build/bin/astra-run", path, "--threads=1", f"--repeat={repeat}", "--json"]
    words += [f"--input={n}={f}" for n, f in zip(names, files)]
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["microseconds"]["least"]


def recorded():
    """Of each kernel how many times as fast it is as the compiler's own, by the page."""
    table = (ROOT / "docs/kernels.md").read_text().split("| kernel | yours |")[1].split("\n\n")[0]
    return {name: float(ratio) for name, ratio in re.findall(r"^\| ([^|,]+)[^|]* \| [\d,]+ \| [\d,]+ \| ([\d.]+) \|$", table, re.M)}


def measured(paths, names, files, rounds):
    """The least microseconds of both."""
    times = [[], []]
    for _ in range(rounds):
        for which in (0, 1):
            times[which].append(run(paths[which], names[which], files, 20))
    return [min(t) for t in times]


def compared(name, f, own, inputs, folder, rounds):
    """Microseconds of a kernel and of the compiler's own, which compute the same."""
    files = []
    for i, x in enumerate(inputs):
        np.save(folder / f"{i}.npy", x)
        files.append(folder / f"{i}.npy")
    both = [f, own]
    np.testing.assert_allclose(*(np.asarray(astra.jit(g)(*inputs)) for g in both), rtol=1e-4, atol=1e-4)
    paths = [folder / "kernel.astra", folder / "own.astra"]
    names = [bundle(path, g, inputs) for path, g in zip(paths, both)]
    return lambda: measured(paths, names, files, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only")
    parser.add_argument("--check", action="store_true", help=f"fail below {GOAL} times as fast, above {MOST_SECONDS} s, or {MOST_STATEMENTS} statements beyond Triton's")
    parser.add_argument("--recorded", action="store_true", help=f"fail below {LEAST} of what docs/kernels.md records")
    options = parser.parse_args()
    known, failed = recorded(), []
    tries = TRIES if options.check or options.recorded else 1
    print(f"{'kernel':20s} {'us':>10s} {'own us':>10s} {'ratio':>6s}  statements (Triton)" + "".join(f" {t + ' s':>13s}" for t in TARGETS), flush=True)
    with tempfile.TemporaryDirectory() as there:
        for name, kernel, inputs, given, own in rows():
            if options.only and options.only not in name:
                continue

            def call(*xs, kernel=kernel, given=given):
                return kernel(*xs, **given)

            measure = compared(name, call, own, inputs, Path(there), options.rounds)
            wanted = LEAST * known[name] if options.recorded else GOAL
            best = [0.0, 0.0, 0.0]
            for _ in range(tries):
                mine, theirs = measure()
                if theirs / mine > best[0]:
                    best = [theirs / mine, mine, theirs]
                if best[0] >= wanted:
                    break
            compiling = [seconds(call, inputs, t) for t in TARGETS]
            for k, t in enumerate(TARGETS):
                for _ in range(tries - 1):
                    if compiling[k] > MOST_SECONDS:
                        compiling[k] = min(compiling[k], seconds(call, inputs, t))
            lines, theirs = statements(kernel), TUTORIALS.get(name)
            print(f"{name:20s} {best[1]:10.1f} {best[2]:10.1f} {best[0]:6.2f}  {lines:10d} {f'({theirs})' if theirs else '':8s}"
                  + "".join(f" {s:13.2f}" for s in compiling), flush=True)  # fmt: skip
            if best[0] < wanted:
                failed.append(f"{name}: {best[0]:.2f} times as fast as the compiler's own; {wanted:.2f} are wanted")
            if not options.recorded:
                failed += [f"{name}: {s:.2f} s to compile for {t}; {MOST_SECONDS} are the most" for s, t in zip(compiling, TARGETS) if s > MOST_SECONDS]
                if theirs and lines > theirs + MOST_STATEMENTS:
                    failed.append(f"{name}: {lines} statements; the tutorial has {theirs}")
    if tries > 1 and failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
