"""Resident memory of a process over many calls, evaluations and compilations.

Takes:    how many of each.
Gives:    a table: MiB of the process after the first tenth, and after each fifth of the rest. Exit code 1 where the last figure is more
          than the first by over ALLOWED.
Keeps:    nothing is kept on the disk; garbage is collected before each figure. A compilation is of a program that there was not before:
          its function is forgotten then. The first tenth is a warm-up: memory that malloc keeps, caches of a bounded number of programs.
Does not: count memory that is given back to malloc and not to the system as free: growth is what the process never reuses.

    PYTHONPATH=build/python build/venv/bin/python python/tests/astra/memory.py [--calls=100000] [--evaluations=50000] [--compilations=10000]
"""

import argparse
import ctypes
import gc
import os
import resource
import sys

import numpy as np

import astra

ALLOWED = 4.0  # MiB
_libc = ctypes.CDLL(None)


def resident():
    """MiB, when what malloc does not need has been given back."""
    gc.collect()
    _libc.malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / (1 << 20)


def calls():
    """A call of a compiled function: a tensor, an array, a tree out."""
    f = astra.jit(lambda x, y: {"sum": x + y, "product": (x * y, x)})
    x, y = astra.ones(4), np.ones(4, np.float32)
    return lambda i: f(x, y)


def evaluations():
    """A small graph that is evaluated when it is looked at."""
    x = astra.ones(4)
    return lambda i: (x * 2 + i).tolist()


def compilations():
    """A function that there was not before, compiled and called once."""
    x = astra.ones(2)

    def once(i):
        assert astra.jit(lambda x: x * float(i) + 1)(x).tolist() == [i + 1.0] * 2

    return once


KINDS = {"calls": calls, "evaluations": evaluations, "compilations": compilations}


def figures(kind, count):
    """MiB after the first tenth, and after each fifth of the rest."""
    once, first, seen = KINDS[kind](), max(1, count // 10), []
    for i in range(count):
        if i >= first and (i - first) % max(1, (count - first) // 5) == 0:
            seen.append(resident())
        once(i)
    return [*seen[:5], resident()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind, count in (("calls", 100_000), ("evaluations", 50_000), ("compilations", 10_000)):
        parser.add_argument(f"--{kind}", type=int, default=count)
    options = vars(parser.parse_args())
    os.environ["ASTRA_CACHE_DIR"] = ""
    grown = False
    print("| what | how often | MiB after a tenth | after each fifth of the rest | more |\n|---|---|---|---|---|")
    for kind in KINDS:
        if not options[kind]:
            continue
        begin, *rest = figures(kind, options[kind])
        grown |= rest[-1] - begin > ALLOWED
        print(f"| {kind} | {options[kind]:,} | {begin:.1f} | {' '.join(f'{m:.1f}' for m in rest)} | {rest[-1] - begin:+.1f} |", flush=True)
    sys.exit(grown)


if __name__ == "__main__":
    main()
