#!/usr/bin/env python3
"""Linear algebra beside NumPy and SciPy with OpenBLAS, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/linalg.py [--rows REGEX] [--threads 1,2] [--rounds N] [--seconds S] [--type f64] [--clock cpu|wall]
Takes:    build/bin/linalg-module and astra-compile; NumPy and SciPy, each with the OpenBLAS of its wheel.
Gives:    a table: for each function, size and number of threads the medians of a call of ours, of NumPy's and of SciPy's in ms, and the median
          over the rounds of the best other's time over ours: above 1 where ours is faster. --clock cpu counts the processor time of the process,
          for machines that others use too; it says nothing of two threads.
Keeps:    each runs in a process of its own, one at a time, pinned (bench/process.py); OpenBLAS has the core type of our level
          (bench/peers). Ours agrees with NumPy's values before anything is timed. Bundles stay in build/bench/linalg while the text is the same.
Does not: count what is compiled.
"""

import argparse
import hashlib
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
ROWS = [(f, n, 1) for f in ("cholesky", "lu_factor", "qr", "eigh", "eigvalsh", "svd", "inverse") for n in (32, 64, 128, 256, 512, 1024)]
ROWS += [(f, 16, 1000) for f in ("cholesky", "lu_factor", "solve", "qr", "inverse", "eigh", "svd", "determinant")]
ROWS += [("eig", 64, 1), ("eig", 16, 1000)]


def matrices(function, n, batch, dtype):
    r = np.random.default_rng(n + batch)
    a = r.standard_normal((batch, n, n))
    if function in ("cholesky", "eigh", "eigvalsh"):
        a = a @ a.swapaxes(1, 2) / n + np.eye(n) if function == "cholesky" else a + a.swapaxes(1, 2)
    out = [a.astype(dtype)]
    return out + [r.standard_normal((batch, n, 1)).astype(dtype)] if function == "solve" else out


def calls(function, peer, x):
    """The call of a library, on a batch; SciPy's on one matrix. None where it has none."""
    a = x[0]
    if peer == "numpy":
        t = np.linalg
        return {"cholesky": lambda: t.cholesky(a), "lu_factor": lambda: t.slogdet(a), "qr": lambda: t.qr(a), "eigh": lambda: t.eigh(a),
                "eigvalsh": lambda: t.eigvalsh(a), "svd": lambda: t.svd(a, full_matrices=False), "inverse": lambda: t.inv(a),
                "solve": lambda: t.solve(a, x[-1]), "determinant": lambda: t.det(a), "eig": lambda: t.eig(a)}[function]  # fmt: skip
    import scipy.linalg as s

    one = a[0]
    fast = dict(check_finite=False)
    return {"cholesky": lambda: s.cholesky(one, lower=True, **fast), "lu_factor": lambda: s.lu_factor(one, **fast),
            "qr": lambda: s.qr(one, mode="economic", **fast), "eigh": lambda: s.eigh(one, driver="evr", **fast),
            "svd": lambda: s.svd(one, full_matrices=False, **fast), "inverse": lambda: s.inv(one, **fast),
            "eig": lambda: s.eig(one, **fast)}.get(function) if len(a) == 1 else None  # fmt: skip


def worker(peer, threads, clock):
    """Answers lines "load FUNCTION N BATCH TYPE BUNDLE" and "run SECONDS"."""
    now = time.process_time if clock == "cpu" else time.perf_counter
    call = None
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "load":
            function, n, batch, dtype, bundle = rest
            x = matrices(function, int(n), int(batch), dtype)
            if peer == "ours":
                import astra_rt

                module = astra_rt.load(bundle, threads=threads)
                call = lambda: module(*x)  # noqa: E731
            else:
                call = calls(function, peer, x)
            if call:
                first = call()
                values = np.asarray(first[1] if function == "svd" else first[0] if isinstance(first, tuple) else first)
                call()
                print("%.17g" % float(abs(values.astype(np.complex128)).sum()) if function != "lu_factor" else "0", flush=True)
            else:
                print("none", flush=True)
        else:
            times = []
            begin = now()
            while not times or now() - begin < float(rest[0]):
                start = now()
                call()
                times.append(now() - start)
            print(statistics.median(times), flush=True)


def bundle(function, n, batch, dtype):
    folder = BUILD / "bench/linalg"
    folder.mkdir(parents=True, exist_ok=True)
    shape = f"{batch},{n},{n}"
    text = subprocess.run([BUILD / "bin/linalg-module", function, dtype, shape, *([f"{batch},{n},1"] if function == "solve" else [])],
                          capture_output=True, check=True).stdout  # fmt: skip
    compiler = hashlib.sha256((BUILD / "bin/astra-compile").read_bytes() + text).hexdigest()[:16]
    path = folder / f"{function}-{dtype}-{n}-{batch}-{compiler}.astra"
    if not path.exists():
        from machine import level

        source = path.with_suffix(".uop")
        source.write_bytes(text)
        subprocess.run([BUILD / "bin/astra-compile", source, "-o", path, f"--target=cpu:{level()}"], check=True)
        source.unlink()
    return path


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--rows", default="", help="a regular expression on 'FUNCTION N' or 'FUNCTION BATCH x N'")
    p.add_argument("--threads", default="1")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.2)
    p.add_argument("--type", default="f64", choices=("f32", "f64"))
    p.add_argument("--clock", default="wall", choices=("cpu", "wall"))
    p.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        return worker(args.worker[0], int(args.worker[1]), args.worker[2])
    from machine import level
    from peers import CORES, KEPT
    from process import Process

    dtype = {"f32": "float32", "f64": "float64"}[args.type]
    print("| | threads | ours ms | NumPy ms | SciPy ms | ours is faster by |\n|---|--:|--:|--:|--:|--:|", flush=True)
    for threads in map(int, args.threads.split(",")):
        blas = KEPT | {"OPENBLAS_CORETYPE": CORES.get(level(), ""), "OPENBLAS_NUM_THREADS": str(threads)}
        blas = {k: v for k, v in blas.items() if v}
        processes = {who: Process([sys.executable, __file__, "--worker", who, threads, args.clock], threads, None, blas) for who in ("ours", "numpy", "scipy")}
        for function, n, batch in ROWS:
            name = f"{function} {n}" if batch == 1 else f"{function} {batch} x {n}"
            if not re.search(args.rows, name):
                continue
            path = bundle(function, n, batch, args.type)
            sums = {who: q.ask(f"load {function} {n} {batch} {dtype} {path}", 600) for who, q in processes.items()}
            there = [who for who in processes if sums[who] != "none"]
            close = 1e-9 if args.type == "f64" else 1e-3
            if abs(float(sums["ours"]) - float(sums["numpy"])) > close * n * max(1.0, abs(float(sums["numpy"]))):
                print(f"{name}: ours gives {sums['ours']}, NumPy {sums['numpy']}")
                return 1
            times = {who: [] for who in there}
            for turn in range(args.rounds):
                for who in there[turn % len(there):] + there[: turn % len(there)]:
                    times[who].append(float(processes[who].ask(f"run {args.seconds}", 600)))
            ratios = [min(times[who][i] for who in there if who != "ours") / times["ours"][i] for i in range(args.rounds)]
            middle = {who: f"{1e3 * statistics.median(t):.3f}" for who, t in times.items()}
            print(f"| {name} | {threads} | {middle['ours']} | {middle['numpy']} | {middle.get('scipy', '')} | {statistics.median(ratios):.2f} |", flush=True)
        for q in processes.values():
            q.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
