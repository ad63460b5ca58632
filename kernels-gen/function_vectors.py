#!/usr/bin/env python3
"""Exact values of the functions at chosen f64 arguments, for the test of the programs.

Takes:    nothing but mpmath.
Gives:    test/unit/numerics/vectors.txt (--write), or a comparison of it with a fresh run (--check). A line is
          `program argument [argument] unit whole fraction`: the exact value is (whole + fraction) * 2^unit, where 2^unit
          is the f64 ulp at that value; results beyond the range stand as `inf`.
Keeps:    the arguments are fixed: edges of each function's range and a linear congruential sequence.
Does not: know the programs; special values (infinities, NaNs, zeros) are in FunctionsTest.cpp.
"""

import argparse
import pathlib
import sys

from mpmath import mp, mpf

mp.prec = 1400  # arguments up to 2^1023 are reduced modulo pi
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "test/unit/numerics/vectors.txt"

FUNCTIONS = {
    "exp2": lambda x: mp.power(2, x),
    "exp": mp.exp,
    "expm1": mp.expm1,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log": mp.log,
    "log1p": mp.log1p,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "tanh": mp.tanh,
    "erf": mp.erf,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "pow": mp.power,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
}
# Magnitudes (as powers of 2) of the sequence's arguments, and whether they are positive only.
RANGES = {
    "exp2": (-30, 10, False), "exp": (-30, 9, False), "expm1": (-50, 9, False), "log2": (-1074, 1023, True),
    "log": (-1074, 1023, True), "log1p": (-50, 1023, True), "sin": (-30, 1023, False), "cos": (-30, 1023, False),
    "tan": (-30, 1023, False), "tanh": (-50, 4, False), "erf": (-50, 2, False), "sigmoid": (-30, 9, False),
    "rsqrt": (-1074, 1023, True), "asin": (-50, 0, False), "acos": (-50, 0, False), "atan": (-50, 60, False),
    "sinh": (-50, 9, False), "cosh": (-30, 9, False), "asinh": (-50, 1023, False), "acosh": (0, 1023, True),
    "atanh": (-50, 0, False),
}
EDGES = {
    "exp2": [1023.9999999, -1021.5, -1050.25, -1074.5, 0.5, -0.5],
    "exp": [709.78, -708.5, -740.0, -745.1, 0.34657, -0.34658, 1e-300],
    "expm1": [709.78, -37.0, 0.3465, 0.3466, 1.0397, -0.3466, 1e-300, 5e-17],
    "log2": [0.7071067811865475, 0.7071067811865476, 1.4142135623730951, 1.0000000000000002, 0.9999999999999999, 5e-324],
    "log": [0.7071067811865475, 0.7071067811865476, 1.4142135623730951, 1.0000000000000002, 0.9999999999999999, 5e-324],
    "log1p": [-0.9999999999999999, -0.5, -0.2929, 0.4142, 1e-16, 2e-16, -1e-16, 1e-300],
    "sin": [3.141592653589793, 1e22, float.fromhex("0x1.6ac5b262ca1ffp+849"), 0.7853981633974483, 0.7853981633974484],
    "cos": [1.5707963267948966, 1e22, float.fromhex("0x1.6ac5b262ca1ffp+849"), 0.7853981633974483, 0.7853981633974484],
    "tan": [1.5707963267948966, 1e22, float.fromhex("0x1.6ac5b262ca1ffp+849"), 0.7853981633974483, 0.7853981633974484],
    "tanh": [0.5625, 0.5624999999999999, 19.06, 19.5, 1e-300],
    "erf": [0.2, 0.4, 0.6, 5.9, 6.1, 1e-300],
    "sigmoid": [-745.0, -708.5, -710.0, 36.5, 40.0, -36.7, -0.3465],
    "rsqrt": [5e-324, 1.7976931348623157e308, 0.9999999999999999],
    "asin": [0.5, 0.5000000000000001, 0.9999999999999999, -0.75, 1e-300, 1.0],
    "acos": [0.5, 0.5000000000000001, 0.9999999999999999, -0.9999999999999999, -0.75, 1e-300, -1.0],
    "atan": [1.0, 1.0000000000000002, 0.9999999999999999, -2.414213562373095, 1e-300, 1e300],
    "sinh": [0.9999999999999999, 1.0, 709.9, 710.4758600739439, 711.0, -36.7, 1e-300],
    "cosh": [0.3465735902799726, 709.9, 710.4758600739439, 711.0, -745.2, 1e-300],
    "asinh": [0.49999999999999994, 0.5, 0.7071067811865476, 536870912.0, 1.7976931348623157e308, 1e-300],
    "acosh": [1.0000000000000002, 1.0000000001, 1.25, 1.4142135623730951, 536870912.0, 1.7976931348623157e308],
    "atanh": [0.17, 0.16999999999999998, 0.5, -0.9999999999999999, 0.8284271247461902, 1e-300],
}
POWERS = [(1.0000000000000002, 1e18), (0.9999999999999999, -6e18), (2.0, -1074.0), (2.0, 1023.5), (-3.0, 41.0), (-2.0, -1073.0),
          (5e-324, 0.25), (1.7976931348623157e308, -1.0), (10.0, 308.25), (10.0, -323.0), (0.7071067811865476, 2048.0),
          (3.0, 0.3333333333333333), (1e-300, 1e-300), (1.5, 1750.0), (0.25, -511.75)]
COUNT = 24


def sequence():
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 11  # 53 bits


def arguments(name, bits):
    if name == "pow":
        for pair in POWERS:
            yield pair
        for _ in range(COUNT):
            x = float(mpf(next(bits) + 1) * mpf(2) ** (next(bits) % 100 - 103))
            yield x, float((mpf(next(bits)) / 2**52 - 1) * 700 / max(abs(mp.log(x)), 1))
        return
    low, high, positive = RANGES[name]
    for x in EDGES[name]:
        yield (x,)
    for _ in range(COUNT):
        m, e, s = 1 + mpf(next(bits)) / 2**53, low + next(bits) % (high - low), next(bits) & 1
        yield (float(m * mpf(2) ** e) * (-1 if s and not positive else 1),)


def line(name, args):
    value = FUNCTIONS[name](*[mpf(a) for a in args])
    head = " ".join([name] + [a.hex() for a in args])
    exponent = int(mp.floor(mp.log(abs(value), 2))) if abs(value) < mpf(2) ** 1030 else 1030
    if abs(value) >= mpf(2) ** 1024:
        return f"{head} inf"
    unit = max(exponent - 52, -1074)
    scaled = value / mpf(2) ** unit
    whole = int(mp.floor(scaled))
    return f"{head} {unit} {whole} {mp.nstr(scaled - whole, 9, min_fixed=-20, max_fixed=20)}"


def generate():
    bits = sequence()
    return "\n".join(line(name, args) for name in FUNCTIONS for args in arguments(name, bits)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="write the vectors")
    mode.add_argument("--check", action="store_true", help="exit 1 if the vectors differ from a fresh run")
    text = generate()
    if parser.parse_args().write:
        OUTPUT.write_text(text)
        return 0
    if not OUTPUT.exists() or OUTPUT.read_text() != text:
        print(f"{OUTPUT.name} differs from a fresh run of function_vectors.py; run it with --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
