#!/usr/bin/env python3
"""Compiles a .uop module and compares every run of the bundle with the reference evaluator, byte for byte.

usage: same.py FILE.uop --temp DIR [--entry NAME] [--outputs a,b] [--states s,t] [--input NAME=DTYPE:EXPRESSION ...]
               [--set-state ...] [--param ...] [--dim NAME=N ...] [--compile OPTION ...]
EXPRESSION is NumPy's, in whose names and a seeded generator `r` it is evaluated: x=f32:r.standard_normal((3, 4)).
Runs: each CPU level that this machine has, with 1, 2 and 7 threads. astra-opt, astra-compile and astra-run come from PATH.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

DTYPES = {"bool": "?", "f16": "e", "f32": "f", "f64": "d", **{f"{s}{8 * n}": f"{s}{n}" for s in "iu" for n in (1, 2, 4, 8)}}
LEVELS = {"x86-64-v3": {"avx2", "fma", "bmi2"}, "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}


def run(*command):
    command = [str(c) for c in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}exit code {done.returncode}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--temp", required=True)
    p.add_argument("--entry", default="main")
    p.add_argument("--outputs", default="")
    p.add_argument("--states", default="")
    for option in ("--input", "--set-state", "--param", "--dim", "--compile"):
        p.add_argument(option, action="append", default=[])
    a = p.parse_args()
    temp = pathlib.Path(a.temp)
    temp.mkdir(parents=True, exist_ok=True)
    r = np.random.default_rng(1)

    def arrays(kind, values):
        """NAME=FILE.npy for each NAME=DTYPE:EXPRESSION, written."""
        for value in values:
            name, rest = value.split("=", 1)
            dtype, expression = rest.split(":", 1)
            array = np.array(eval(expression, {**vars(np), "r": r}), dtype=DTYPES[dtype], order="C")
            path = temp / f"{kind}-{name}.npy"
            np.save(path, array)
            yield f"{name}={path}"

    inputs = [x for v in arrays("input", a.input) for x in ("--input", v)]
    params = [x for v in arrays("param", a.param) for x in ("--param", v)]
    begin = list(arrays("state", a.set_state))
    dims = [x for v in a.dim for x in ("--dim", v)]
    outputs, states = [s for s in a.outputs.split(",") if s], [s for s in a.states.split(",") if s]

    def wanted(run_name, state_option, mark):
        for name in outputs:
            yield from ("--output", f"{name}={temp / run_name}-{name}.npy")
        for name in states:
            yield from (state_option, f"{mark}{name}={temp / run_name}-state-{name}.npy")

    run("astra-opt", a.file, "--standard", "--verify-each", "--eval", "--entry", a.entry, *inputs, *params, *dims,
        *[x for v in begin for x in ("--state", v)], *wanted("eval", "--output", "@"))
    have = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    levels = [level for level, flags in LEVELS.items() if flags <= have]
    bundle = temp / "module.astra"
    run("astra-compile", a.file, "-o", bundle, "--target=" + ",".join("cpu:" + level for level in LEVELS), *a.compile)
    count = 0
    for level in levels:
        for threads in (1, 2, 7):
            name = f"{level}-{threads}"
            run("astra-run", bundle, "--entry", a.entry, "--level", level, "--threads", threads, *inputs, *params, *dims,
                *[x for v in begin for x in ("--set-state", v)], *wanted(name, "--get-state", ""))
            for result in outputs + [f"state-{s}" for s in states]:
                expected, found = (np.load(temp / f"{who}-{result}.npy") for who in ("eval", name))
                if expected.dtype != found.dtype or expected.shape != found.shape or expected.tobytes() != found.tobytes():
                    sys.exit(f"{result} differs from the evaluator's at {name}:\nexpected {expected}\nfound {found}")
                count += 1
    print(f"{count} results equal the evaluator's")


main()
