#!/usr/bin/env python3
"""Holds cond, while and scan of the reference evaluator: per dtype, modules whose results Python's integers give.

Usage: control.py ASTRA_OPT        prints "N passed, N failed"; exit code 1 if any differs
Takes: nothing of Astra but the program that evaluates. Numbers are small, so that they are exact in every dtype; integers wrap.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

INTEGERS = {f"{k}{b}": (k, b) for k in "iu" for b in (8, 16, 32, 64)}
FLOATS = ["f16", "bf16", "f32", "f64"]
X, Y, ROWS = [3, -2, 0, 7], [2, 5, -1, 1], [[1, 2, 3, 4], [-1, 0, 2, -3], [5, 5, -5, 1]]

MODULE = """module @control {{
  func @double(%x : {t}[4], _) {{
    %r = {add} %x, %x
    return %r
  }}
  func @product(%x : {t}[4], %y : {t}[4]) {{
    %r = {mul} %x, %y
    return %r
  }}
  func @go(%i : i64, %n : i64, _, _) {{
    %r = lt %i, %n
    return %r
  }}
  func @turn(%i : i64, %n : i64, %x : {t}[4], %y : {t}[4]) {{
    %one = const 1 : i64
    %next = add %i, %one
    %r = {add} %x, %y
    return %next, %n, %r, %x
  }}
  func @step(%h : {t}[4], %x : {t}[4], %w : {t}[4]) {{
    %p = {mul} %h, %w
    %r = {add} %p, %x
    return %r, %p
  }}
  entry @main(%which : bool, %n : i64, %x : {t}[4], %y : {t}[4], %rows : {t}[3, 4])
      -> (%c : {t}[4], %count : i64, %w0 : {t}[4], %w1 : {t}[4], %last : {t}[4], %all : {t}[3, 4]) {{
    %cond = cond(@double, @product) %which, %x, %y
    %c = proj %cond [4] index=0 : {t}[4]
    %zero = const 0 : i64
    %while = while(@go, @turn) %zero, %n, %x, %y [] names=""
    %count = proj %while [] index=0 : i64
    %w0 = proj %while [4] index=2 : {t}[4]
    %w1 = proj %while [4] index=3 : {t}[4]
    %scan = scan(@step) %x, %rows, %y [3] ncarry=1 nxs=1
    %last = proj %scan [4] index=0 : {t}[4]
    %all = proj %scan [3, 4] index=1 : {t}[3, 4]
  }}
}}
"""


def wrapped(t, v):
    if t == "bool":
        return v
    if t in FLOATS:
        return float(v)  # so that zeros have signs
    kind, bits = INTEGERS[t]
    v %= 2 ** bits
    return v - 2 ** bits if kind == "i" and v >= 2 ** (bits - 1) else v


def array(t, values):
    if t == "bool":
        return np.array(values, np.bool_)
    if t == "bf16":
        return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    names = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    return np.array(values, names.get(t) or f"{'u' if t[0] == 'u' else ''}int{t[1:]}")


def expected(t, which, n):
    def add(a, b): return [wrapped(t, (p | q) if t == "bool" else p + q) for p, q in zip(a, b)]
    def mul(a, b): return [wrapped(t, (p & q) if t == "bool" else p * q) for p, q in zip(a, b)]
    x, y, rows = ([[wrapped(t, v % 2 if t == "bool" else v) for v in r] for r in (X, Y, *ROWS)][i] for i in (0, 1, slice(2, 5)))
    out = {"c": add(x, x) if which else mul(x, y), "count": max(n, 0)}
    a, b = x, y
    for _ in range(n):
        a, b = add(a, b), a
    out |= {"w0": a, "w1": b}
    h, stacked = x, []
    for r in rows:
        p = mul(h, y)
        h = add(p, r)
        stacked.append(p)
    return {"x": x, "y": y, "rows": rows}, out | {"last": h, "all": stacked}


def main(program):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for t in ["bool", *INTEGERS, *FLOATS]:
            words = {"add": "or", "mul": "and"} if t == "bool" else {"add": "add", "mul": "mul"}
            (folder / "m.uop").write_text(MODULE.format(t=t, **words))
            for which, n in ((True, 0), (False, 1), (True, 5), (False, -3)):
                inputs, out = expected(t, which, n)
                np.save(folder / "which.npy", np.array(which))
                np.save(folder / "n.npy", np.array(n, np.int64))
                for name, v in inputs.items():
                    np.save(folder / f"{name}.npy", array(t, v))
                line = [program, folder / "m.uop", "--eval"]
                line += [f"--input={n}={folder / n}.npy" for n in ("which", "n", *inputs)]
                line += [f"--output={n}={folder / n}.out.npy" for n in out]
                done = subprocess.run([str(a) for a in line], capture_output=True, text=True)
                wrong = [done.stderr] if done.returncode else []
                for name, v in out.items() if not wrong else ():
                    want = np.array(v, np.int64) if name == "count" else array(t, v)
                    got = np.load(folder / f"{name}.out.npy")
                    if got.tobytes() != want.tobytes() or got.shape != want.shape:
                        wrong.append(f"{name}: {got.tolist()}, expected {want.tolist()}")
                passed, failed = passed + (not wrong), failed + bool(wrong)
                for sentence in wrong:
                    print(f"{t}, which {which}, n {n}: {sentence}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
