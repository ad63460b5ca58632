"""The compiler's own kernels in the kernel language (astra-compile --kernels) beside its code without them, on this CPU.

Takes:    norms, attention and products by weights of 4 and 8 bits, as front doors write them, at sizes of a millisecond or so.
Gives:    a line for each: median microseconds with the kernel and without it, by astra-run on one thread, turn and turn about, and how many times
          as fast the kernel is (1.00: as fast). Results of both are compared by bytes.
Does not: measure a GPU.

    PYTHONPATH=build/python build/venv/bin/python bench/own_kernels.py [--rounds 9] [--only NAME]
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import astra
from astra import _core, _ops

ROOT = Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(1)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


EIGHTS = """module @product {
  entry @main(%x : f32[M, K], %q : i8[N, K], %d : f16[N, B]) -> (%y : f32[M, N]) {
    %0 = cast %d : f32[N, B]
    %1 = reshape %0 [N, B, 1]
    %2 = expand %1 [N, B, 32]
    %3 = reshape %2 [N, K]
    %4 = cast %q : f32[N, K]
    %5 = mul %3, %4
    %y = contract %x[i, k], %5[j, k] -> [i, j] sum [k]
  }
}"""


def eights(m, n, k):
    """A product by a weight of Q8_0, as GGUF's are imported: its text, its inputs."""
    sizes = {"M": m, "N": n, "K": k, "B": k // 32}
    codes, scales = RNG.integers(-128, 128, (n, k)).astype(np.int8), np.asarray(RNG.random((n, k // 32)), np.float16)
    return re.sub(r"\b[MNKB]\b", lambda s: str(sizes[s[0]]), EIGHTS), (normal(m, k), codes, scales)


def rows():
    """Name, the kernel's, inputs, the text of a module or a function of the inputs."""
    norm = lambda x, w, b: _ops.make_all(_core.layer_norm, x, w, b, -1, 1e-5)[0]  # noqa: E731
    root = lambda x, w: _ops.make_all(_core.rms_norm, x, w, -1, 1e-5)[0]  # noqa: E731
    halves = lambda x: np.asarray(x, np.float16)  # noqa: E731
    yield "layer norm, 1024 x 1024", "layer-norm", (normal(1024, 1024), normal(1024), normal(1024)), norm
    yield "layer norm, 8 x 128 x 768", "layer-norm", (normal(8, 128, 768), normal(768), normal(768)), norm
    yield "layer norm of f16, 1024 x 1024", "layer-norm", (halves(normal(1024, 1024)), halves(normal(1024)), halves(normal(1024))), norm
    yield "RMS norm, 512 x 2048", "rms-norm", (normal(512, 2048), normal(2048)), root
    yield "attention, 8 heads, 256 x 256, 64", "attention", (normal(1, 8, 256, 64),) * 3, lambda q, k, v: astra.nn.attention(q, k, v)
    yield "attention, 12 heads, 128 x 128, 64", "attention", (normal(1, 12, 128, 64),) * 3, lambda q, k, v: astra.nn.attention(q, k, v)
    causal = lambda q, k, v: astra.nn.attention(q, k, v, causal=True)  # noqa: E731
    yield "causal attention, 8 heads, 256 x 256, 64", "attention", (normal(1, 8, 256, 64),) * 3, causal
    for shape in ((64, 512, 512), (1, 2048, 2048)):
        text, inputs = eights(*shape)
        yield "product by Q8_0, {} x {} x {}".format(*shape), "dequantized-product", inputs, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        for name, kernel, inputs, f in rows():
            if options.only and options.only not in name:
                continue
            text = f if isinstance(f, str) else astra.trace(f, *[astra.spec(x.shape, str(x.dtype)) for x in inputs]).lower().as_text()
            measure(folder, name, kernel, inputs, text, options.rounds)


def measure(folder, name, kernel, inputs, text, rounds):
    (folder / "model.uop").write_text(text)
    names = re.findall(r"%(\w+) :", re.search(r"entry @main\((.*?)\) ->", text)[1])
    given = []
    for n, x in zip(names, inputs):
        np.save(folder / f"{n}.npy", x)
        given.append(f"--input={n}={folder / n}.npy")
    bundles = [folder / "kernel.astra", folder / "own.astra"]
    said = compiled(folder / "model.uop", bundles[0], f"--kernels={kernel}")
    assert "stands for 1 part" in said, f"{name}: {said}"
    compiled(folder / "model.uop", bundles[1])
    out = [folder / "kernel.npy", folder / "own.npy"]
    result = re.search(r"\) -> \(%(\w+) :", text)[1]
    for bundle, file in zip(bundles, out):
        run(bundle, *given, f"--output={result}={file}")
    assert out[0].read_bytes() == out[1].read_bytes(), f"{name}: other bytes"
    times = [[], []]
    for _ in range(rounds):
        for which in (0, 1):
            said = run(bundles[which], "--threads=1", "--repeat=20", "--json", *given)
            times[which].append(json.loads(said)["microseconds"]["median"])
    mine, theirs = map(statistics.median, times)
    print(f"{name:40s} {mine:10.1f} {theirs:10.1f}  {theirs / mine:5.2f}", flush=True)


def compiled(model, bundle, *options):
    words = [ROOT / "build/bin/astra-compile", model, "-o", bundle, "--target=native", *options]
    return subprocess.run(words, check=True, capture_output=True, text=True).stderr


def run(*words):
    return subprocess.run([ROOT / "build/bin/astra-run", *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
