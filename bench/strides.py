#!/usr/bin/env python3
"""Entries for tensors at any strides (`--strides=any`) beside the same ones with a copy in the call, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/strides.py [--turns N]
Takes:    build/bin/astra-compile, the module astra_rt.
Gives:    microseconds of a call of some functions of f32[1024, 1024], the median of all turns, for inputs that are row-major, a part of the
          columns of a wider array, every second row, and transposed: of the bundle at any strides, of the bundle that copies, and of one
          copy of the input by NumPy; then copying over at any strides, above 1 where the second routine is faster.
Keeps:    one thread; both bundles give the same bytes, or nothing is measured.
Does not: measure negative strides: both copy them.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import astra_rt
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
N = 1024
MODULE = """module @strides {
  dim m in 1..4096
  dim n in 1..4096
  entry @scale(%x : f32[m, n]) -> (%y : f32[m, n]) {
    %y = mul %x, %x
  }
  entry @functions(%x : f32[m, n]) -> (%y : f32[m, n]) {
    %0 = exp %x
    %y = tanh %0
  }
  entry @rows(%x : f32[m, n]) -> (%y : f32[m]) {
    %y = reduce %x kind=sum order=lane64 axes=[1]
  }
  entry @product(%x : f32[m, n]) -> (%y : f32[m, m]) {
    %y = contract %x[i, k], %x[j, k] -> [i, j] sum [k]
  }
}
"""


def inputs():
    random = np.random.default_rng(1)
    wide = random.standard_normal((2 * N, 2 * N), dtype=np.float32)
    square = np.ascontiguousarray(wide[:N, :N])
    return {"row-major": square, "columns of a wider array": wide[:N, 5 : N + 5], "every second row": wide[::2, :N], "transposed": square.T}


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--turns", type=int, default=15)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "m.uop"
        text.write_text(MODULE)
        bundles = []
        for kind in ("any", "row-major"):
            path = f"{folder}/{kind}.astra"
            subprocess.run([ROOT / "build/bin/astra-compile", text, "-o", path, f"--strides={kind}"], check=True)
            bundles.append(astra_rt.load(path, threads=1))
        print("| entry | input | any strides us | with a copy us | the copy alone us | faster by |\n|---|---|--:|--:|--:|--:|")
        for name in ("scale", "functions", "rows", "product"):
            for kind, x in inputs().items():
                calls = [getattr(b, name) for b in bundles] + [np.ascontiguousarray]
                found = [np.asarray(call(x)) for call in calls[:2]]
                if found[0].tobytes() != found[1].tobytes():
                    raise SystemExit(f"{name} of {kind}: bytes differ")
                times = [[], [], []]
                for _ in range(args.turns):
                    for call, to in zip(calls, times):
                        begin = time.perf_counter_ns()
                        call(x)
                        to.append((time.perf_counter_ns() - begin) / 1e3)
                a, b, c = (statistics.median(t) for t in times)
                print(f"| {name} | {kind} | {a:.0f} | {b:.0f} | {c:.0f} | {b / a:.2f} |", flush=True)


main()
