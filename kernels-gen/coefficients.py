#!/usr/bin/env python3
"""Coefficients of the function programs: a minimax fit per polynomial, rounded to f32 and f64.

Takes:    nothing but mpmath; every number is computed from the function's definition.
Gives:    include/astra/Numerics/Coefficients.h (--write), or a comparison of it with a fresh run (--check).
Keeps:    the output is a function of this file alone: fixed precision, no clock, no random number.
Does not: choose the programs' shapes; those are in include/astra/Numerics/Functions.h.

The fit is Remez's exchange on a weighted error, in 50 digits: solve for an alternating error at n + 1 points, move
the points to the extrema, repeat. Coefficients are then rounded to nearest; the programs keep the leading terms of
every expansion exact (1, r, s, ...), so rounding touches only terms that are small beside the result.
"""

import argparse
import pathlib
import struct
import sys

from mpmath import mp, mpf

mp.prec = 200
HEADER = pathlib.Path(__file__).resolve().parent.parent / "include/astra/Numerics/Coefficients.h"


def horner(c, x):
    y = mpf(0)
    for a in reversed(c):
        y = y * x + a
    return y


def minimax(f, weight, lo, hi, degree):
    """Coefficients c that minimise max |weight(x) * (f(x) - sum c[i] x^i)| on [lo, hi]; and that maximum."""
    n = degree + 2
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    points = [mid - half * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    samples = [mid - half * mp.cos(mp.pi * i / (16 * n)) for i in range(16 * n + 1)]
    table = [(x, f(x), weight(x)) for x in samples]
    for _ in range(20):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                a[i, j] = ((x - mid) / half) ** j
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solution = mp.lu_solve(a, b)
        scaled = [solution[j] for j in range(degree + 1)]
        error = lambda x, y, w: w * (y - horner(scaled, (x - mid) / half))
        errors = [error(*row) for row in table]
        # One extremum of each sign change, the largest in its run.
        runs, best = [], 0
        for i in range(1, len(errors)):
            if (errors[i] < 0) != (errors[best] < 0):
                runs.append(best)
                best = i
            elif abs(errors[i]) > abs(errors[best]):
                best = i
        runs.append(best)
        if len(runs) < n:
            break
        while len(runs) > n:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        largest, smallest = max(abs(errors[i]) for i in runs), min(abs(errors[i]) for i in runs)
        points = [samples[i] for i in runs]
        if largest < smallest * mpf("1.02"):
            break
    # From powers of (x - mid) / half to powers of x.
    c = [mpf(0)] * (degree + 1)
    for a in reversed(scaled):
        shifted = [mpf(0)] * (degree + 1)
        for i in range(degree + 1):
            shifted[i] -= c[i] * mid / half
            if i:
                shifted[i] += c[i - 1] / half
        c = shifted
        c[0] += a
    return c, max(abs(e) for e in errors)


class Format:
    """One binary format: its name in C++, precision in bits, and rounding to nearest."""

    def __init__(self, name, prec):
        self.name, self.prec, self.suffix = name, prec, "f" if prec == 24 else ""

    def round(self, x):
        keep = mp.prec
        mp.prec = self.prec
        y = +x
        mp.prec = keep
        return y

    def literal(self, x):
        value = float(self.round(x))
        if self.prec == 24:
            assert struct.unpack("f", struct.pack("f", value))[0] == value
        return value.hex() + self.suffix

    def split(self, x, parts):
        out = []
        for _ in range(parts):
            out.append(self.round(x))
            x -= out[-1]
        return out


F32, F64 = Format("float", 24), Format("double", 53)
LN2 = mp.log(2)
TANH_SPLIT = mpf(9) / 16


def atanh_sum(z, first):
    """sum over i >= 0 of 2 z^i / (2 (i + first) + 1): atanh(s) = s/2 * atanh_sum(s^2, 0)."""
    return mp.nsum(lambda i: 2 * z**i / (2 * (i + first) + 1), [0, mp.inf], method="d") if z else mpf(2) / (2 * first + 1)


def series(f, terms):
    """A function given by its power series near 0, where the closed form cancels."""
    return lambda x: horner(terms, x) if abs(x) < mpf("0.05") else f(x)


def polynomials(fmt):
    """Rows (name, meaning, coefficients, error in ulp) of one format."""
    wide = fmt is F64
    one = lambda _: mpf(1)
    h = LN2 / 2 * (1 + mpf(2) ** -12)
    rows = []

    def row(name, meaning, f, weight, lo, hi, degree):
        c, error = minimax(f, weight, mpf(lo), mpf(hi), degree)
        rows.append((name, meaning, c, error * mpf(2) ** fmt.prec))

    factorials = [1 / mp.factorial(i) for i in range(0, 60)]
    row("expTail", "(e^r - 1 - r) / r^2 on |r| <= ln2 / 2",
        series(lambda r: (mp.exp(r) - 1 - r) / r**2, factorials[2:]), lambda r: r**2 * mp.exp(-r) + mpf(2)**-40,
        -h, h, 9 if wide else 4)
    row("exp2Tail", "(2^r - 1) / r on |r| <= 1/2",
        series(lambda r: (mp.power(2, r) - 1) / r, [LN2**i * factorials[i] for i in range(1, 60)]),
        lambda r: abs(r) + mpf(2)**-40, mpf(-1) / 2, mpf(1) / 2, 10 if wide else 5)
    zmax = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * (1 + mpf(2) ** -10)
    row("logTail", "(2 atanh(s) / s - 2) / s^2 as a polynomial in s^2, |s| <= (sqrt2 - 1) / (sqrt2 + 1)",
        lambda z: atanh_sum(z, 1), lambda z: z / 2 + mpf(2)**-40, 0, zmax, 6 if wide else 2)
    row("powTail", "(2 atanh(s) / s - 2 - 2/3 s^2) / (s^4 ln2) as a polynomial in s^2",
        lambda z: atanh_sum(z, 2) / LN2, lambda z: z**2 / 2 + mpf(2)**-40, 0, zmax, 6 if wide else 2)
    qmax = (mp.pi / 4) ** 2 * (1 + mpf(2) ** -10)
    row("sinTail", "(sin(r) - r) / r^3 as a polynomial in r^2, |r| <= pi / 4",
        lambda z: mp.nsum(lambda i: (-1)**(i + 1) * z**i * factorials[int(2 * i + 3)], [0, 25], method="d"),
        lambda z: z + mpf(2)**-40, 0, qmax, 5 if wide else 2)
    row("cosTail", "(cos(r) - 1 + r^2 / 2) / r^4 as a polynomial in r^2",
        lambda z: mp.nsum(lambda i: (-1)**i * z**i * factorials[int(2 * i + 4)], [0, 25], method="d"),
        lambda z: z**2 * mpf("1.42") + mpf(2)**-40, 0, qmax, 5 if wide else 2)
    tangent = [mp.taylor(mp.tan, 0, 61)[2 * i + 1] for i in range(1, 30)]
    row("tanTail", "(tan(r) - r) / r^3 as a polynomial in r^2",
        lambda z: horner(tangent, z) if z < mpf("0.01") else (mp.tan(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z)**3,
        lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)) if z else mpf(2)**-40, 0, qmax, 13 if wide else 5)
    tanh_series = [mp.taylor(mp.tanh, 0, 61)[2 * i + 1] for i in range(1, 30)]
    row("tanhTail", "(tanh(x) - x) / x^3 as a polynomial in x^2, |x| <= tanhSplit",
        lambda z: horner(tanh_series, z) if z < mpf("0.01") else (mp.tanh(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z)**3,
        lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) if z else mpf(2)**-40, 0, TANH_SPLIT**2, 9 if wide else 4)

    def odd(name, f, coefficient, most, degree):
        """(f(x) - x) / x^3 of an odd f as a polynomial in z = x^2 <= most; coefficient(i) belongs to x^(2i + 1)."""
        near = [coefficient(i) for i in range(1, 29)]
        tail = lambda z: horner(near, z) if z < mpf("0.01") else (f(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z)**3
        row(name + "Tail", f"({name}(x) - x) / x^3 as a polynomial in x^2 <= {mp.nstr(most, 3)}", tail,
            lambda z: z * mp.sqrt(z) / f(mp.sqrt(z)) + mpf(2)**-40 if z else mpf(2)**-40, 0, most, degree)

    central = lambda i: mp.binomial(2 * i, i) / mpf(4)**i / (2 * i + 1)
    odd("atan", mp.atan, lambda i: mpf(-1)**i / (2 * i + 1), mpf(1), 20 if wide else 8)
    odd("asin", mp.asin, central, mpf(1) / 4, 11 if wide else 4)
    odd("asinh", mp.asinh, lambda i: mpf(-1)**i * central(i), mpf(1) / 4, 10 if wide else 4)
    odd("sinh", mp.sinh, lambda i: factorials[2 * i + 1], mpf(1), 7 if wide else 3)
    return rows


def erf_step(fmt):
    """The least-error distance of centres, from a range where the last interval reaches erf = 1: a multiple of 2^-12 for
    which erf at the first two centres is nearly a number of the format, since results beside them have smaller ulps."""
    def miss(step):
        c = [mp.erf(step), mp.erf(2 * step)]
        return max(abs(x - fmt.round(x)) / x for x in c)
    first, last = (1640, 1690) if fmt is F64 else (1056, 1086)
    return min((mpf(k) / 4096 for k in range(first, last)), key=miss)


def erf_rows(fmt):
    """erf(c + t) over t, around sixteen centres c = j * step: for each a list of coefficients of t^i."""
    wide = fmt is F64
    step, degree = erf_step(fmt), 14 if wide else 6
    half = step / 2 * (1 + mpf(2) ** -10)
    table, worst = [], mpf(0)
    for j in range(16):
        centre = j * step
        taylor = mp.taylor(mp.erf, centre, 50)
        f = lambda t: horner(taylor[1:], t)
        if j:
            weight = lambda t: (abs(t) + mpf(2) ** -6) / mp.erf(centre)
        else:
            weight = lambda t: mpf(1)
        c, error = minimax(f, weight, -half, half, degree - 1)
        worst = max(worst, error * mpf(2) ** fmt.prec)
        # erf is odd: around 0 the even terms are the fit's noise.
        table.append([taylor[0]] + [mpf(0) if j == 0 and i % 2 else a for i, a in enumerate(c)])
    return step, degree, table, worst


def words(bits):
    """A word of zero, then the bits of 2/pi behind the point in words of the given width, most significant first."""
    keep = mp.prec
    mp.prec = 1600
    digits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (18 * bits)))
    mp.prec = keep
    return [(digits >> (bits * (18 - i))) & ((1 << bits) - 1) for i in range(19)]


def table_of(values, literal, per_line):
    lines = []
    for i in range(0, len(values), per_line):
        lines.append("      " + ", ".join(literal(v) for v in values[i:i + per_line]) + ",")
    return "\n".join(lines)


def emit(fmt, report):
    t, out = fmt.name, []
    out.append(f"template <> struct Coefficients<{t}> {{")

    def constant(name, value, meaning):
        out.append(f"  static constexpr {t} {name} = {fmt.literal(value)}; // {meaning}")

    def pair(name, value, meaning):
        hi, lo = fmt.split(value, 2)
        constant(name + "Hi", hi, meaning)
        constant(name + "Lo", lo, "the rest")

    constant("log2e", 1 / LN2, "1 / ln 2")
    pair("ln2", LN2, "ln 2")
    pair("invLn2", 1 / LN2, "1 / ln 2, in two parts")
    pair("pow1", 2 / LN2, "2 / ln 2: log2(m) = s * (pow1 + z * (pow3 + z * powTail(z)))")
    pair("pow3", 2 / (3 * LN2), "2 / (3 ln 2)")
    pair("halfPi", mp.pi / 2, "pi / 2")
    constant("tanhSplit", TANH_SPLIT, "where tanh changes its form")
    constant("sqrtHalf", mp.sqrt(mpf(1) / 2), "sqrt(1/2)")
    for name, meaning, c, error in polynomials(fmt):
        report.append(f"{t:7} {name:9} degree {len(c) - 1:2}  {mp.nstr(error, 3)} half ulp")
        out.append(f"  // {meaning}; fit error {mp.nstr(error / 2, 2)} ulp.")
        out.append(f"  static constexpr {t} {name}[{len(c)}] = {{")
        out.append(table_of(c, fmt.literal, 4) + "\n  };")
    step, degree, table, error = erf_rows(fmt)
    report.append(f"{t:7} erf       degree {degree:2}  {mp.nstr(error, 3)} half ulp")
    lo = fmt.split(table[0][1], 2)[1]
    for row in table:
        row[1] -= lo
    constant("erfSlopeLo", lo, "the part of every slope that the table lacks: 2 / sqrt(pi) in two words at 0")
    constant("erfStep", step, "distance of the centres of erf's sixteen intervals")
    out.append(f"  // erf(j * erfStep + t) = sum of erfTable[i][j] * t^i, plus erfSlopeLo * t, |t| <= erfStep / 2; fit error {mp.nstr(error / 2, 2)} ulp.")
    out.append(f"  static constexpr {t} erfTable[{degree + 1}][16] = {{")
    for i in range(degree + 1):
        out.append("    {\n" + table_of([table[j][i] for j in range(16)], fmt.literal, 4) + "\n    },")
    out.append("  };")
    bits = 32 if fmt is F32 else 64
    row = words(bits)
    out.append(f"  // 2/pi = 0.w1 w2 w3 ... in words of {bits} bits, w0 = 0; twoOverPi[i][j] is word i + j.")
    out.append(f"  static constexpr uint{bits}_t twoOverPi[4][16] = {{")
    hexadecimal = lambda w: f"0x{w:0{bits // 4}x}" + ("u" if bits == 32 else "ull")
    for i in range(4):
        out.append("    {\n" + table_of(row[i:i + 16], hexadecimal, 4) + "\n    },")
    out.append("  };\n};\n")
    return "\n".join(out)


def generate(report):
    head = """//===- Coefficients.h: numbers of the function programs -------------------===//
// Generated by kernels-gen/coefficients.py; do not edit. The test `coefficients` compares this file with a fresh run.
// Takes:    nothing.
// Gives:    the polynomials and constants of numerics clause N5, per format, lowest power first.
// Keeps:    every literal is exact in its format.
// Does not: say how they are evaluated; that is Functions.h.
#pragma once
#include <cstdint>

// clang-format off
namespace astra::numerics {

template <class T> struct Coefficients;

"""
    tail = """} // namespace astra::numerics
// clang-format on
"""
    return head + emit(F32, report) + "\n" + emit(F64, report) + "\n" + tail


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="write the header")
    mode.add_argument("--check", action="store_true", help="exit 1 if the header differs from a fresh run")
    arguments = parser.parse_args()
    report = []
    text = generate(report)
    print("\n".join(report))
    if arguments.write:
        HEADER.write_text(text)
        return 0
    if HEADER.read_text() != text:
        print(f"{HEADER.name} differs from a fresh run of coefficients.py; run it with --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
