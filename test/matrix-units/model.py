#!/usr/bin/env python3
"""The arithmetic of matrix units, a second time: exact fractions in Python, without Astra.

usage: model.py            writes rows.txt beside this script
       model.py --check    exit code 1 if rows.txt is not what a fresh run gives
       model.py --hardware rows of VDPBF16PS beside this machine's, where it has the instruction
A line of rows.txt is a unit, the type of operands (of both, or two with a comma), the bits of the addend, of the operands a and b (f32, hexadecimal) and
of the result; v*n stands for n times v. The test unit-eval (MatrixUnitTest.cpp) reads it.
"""
import ctypes
import itertools
import random
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

# mantissa's bits, least exponent
INPUTS = {"bf16": (7, -126), "f16": (10, -14), "tf32": (10, -126), "f8e4m3fn": (3, -6), "f8e5m2": (2, -14)}
GREATEST = {"bf16": 0x7F7F0000, "f16": 0x477FE000, "tf32": 0x7F7FE000, "f8e4m3fn": 0x43E00000, "f8e5m2": 0x47600000}
# types, block, then what its way to add needs
ALIGNED = {
    "hopper16": (("bf16", "f16"), 16, 25, 0, 23, False, 0x7FFFFFFF),
    "hopper8-tf32": (("tf32",), 8, 25, 0, 23, False, 0x7FFFFFFF),
    "hopper32-fp8": (("f8e4m3fn", "f8e5m2"), 32, 13, 0, 13, False, 0x7FFFFFFF),
    "ampere8": (("bf16", "f16"), 8, 24, 0, 23, False, 0x7FFFFFFF),
    "ampere4-tf32": (("tf32",), 4, 24, 0, 23, False, 0x7FFFFFFF),
    "cdna3-8": (("bf16", "f16"), 8, 24, 31, 23, True, 0x7FC00000),
}
CHAINED = {"cdna2": (("bf16", "f16"), 8), "dpbf16-2": (("bf16",), 2), "amx32": (("bf16",), 32)}
NAN, INF = "nan", "inf"


def value(bits):
    """Sign and magnitude: a fraction, INF or NAN."""
    sign, e, m = bits >> 31, bits >> 23 & 255, bits & 0x7FFFFF
    if e == 255:
        return sign, NAN if m else INF
    return sign, Fraction(m | (0x800000 if e else 0)) * Fraction(2) ** (max(e, 1) - 150)


def exponent_of(v):
    """The e with 2^e <= v < 2^(e + 1)."""
    e = v.numerator.bit_length() - v.denominator.bit_length()
    return e if v >= Fraction(2) ** e else e - 1


def encode(sign, v, mantissa=23, nearest=True, least=-126):
    """A fraction above or equal to 0 as f32 bits."""
    if v == 0:
        return sign << 31
    unit = Fraction(2) ** (max(exponent_of(v), least) - mantissa)
    n = v / unit
    whole = n.numerator // n.denominator
    rest = n - whole
    if nearest and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)):
        whole += 1
    v = whole * unit
    if v == 0:
        return sign << 31
    if v >= Fraction(2) ** 128:
        return sign << 31 | 0x7F800000
    e = exponent_of(v)
    field = v / Fraction(2) ** (max(e, -126) - 23)
    assert field.denominator == 1
    return sign << 31 | (int(field) if e < -126 else (e + 127) << 23 | int(field) - 0x800000)


def floor(v):
    return v.numerator // v.denominator


def trunc(v):
    return floor(v) if v >= 0 else -floor(-v)


def add_specials(terms):
    """The sum of infinities and NaNs: bits, or None where there are none."""
    signs = {s for s, v in terms if v == INF}
    if any(v == NAN for _, v in terms) or len(signs) == 2:
        return NAN
    return signs.pop() << 31 | 0x7F800000 if signs else None


def product(x, y):
    (s, v), (t, w) = x, y
    if NAN in (v, w) or (INF in (v, w) and 0 in (v, w)):
        return 0, NAN
    return s ^ t, INF if INF in (v, w) else v * w


def kinds_of(kind):
    """The types of the first operand and of the second."""
    first, _, second = kind.partition(",")
    return first, second or first


def aligned(row, kind, c, a, b):
    _, _, bits, joint, result, nearest, nan = row
    leasts = [INPUTS[k][1] for k in kinds_of(kind)]
    signed = lambda x: -x[1] if x[0] else x[1]
    exponent = lambda x, low: max(exponent_of(x[1]), low) if x[1] else -126
    xs, ys, z = [value(v) for v in a], [value(v) for v in b], value(c)
    products = [product(x, y) for x, y in zip(xs, ys)]
    if joint:
        products = [(s, INF if v not in (NAN, INF) and v >= Fraction(2) ** 128 else v) for s, v in products]
    special = add_specials([*products, z])
    if special is not None:
        return nan if special == NAN else special
    es = [exponent(x, leasts[0]) + exponent(y, leasts[1]) for x, y in zip(xs, ys)]
    ec = exponent(z, -126)
    if not joint:
        unit = Fraction(2) ** (max([*es, ec]) - bits)
        total = sum(trunc(signed(p) / unit) for p in [*products, z]) * unit
    else:
        first = max(es, default=-252)
        unit = Fraction(2) ** (first - bits)
        total = sum(trunc(signed(p) / unit) for p in products) * unit
        last = max(first, ec)
        fine, coarse = Fraction(2) ** (last - joint), Fraction(2) ** (last - bits)
        total = floor(total / fine) * fine + floor(signed(z) / coarse) * coarse
    bits_of = encode(int(total < 0), abs(total), result, nearest)
    return 0 if not bits_of & 0x7FFFFFFF and not nearest else bits_of


def flushed(bits, least=-126):
    return bits & 0x80000000 if (bits >> 23 & 255) < least + 127 else bits


def fma(x, y, z, before):
    """f32 bits, nearest even; a result below 2^-126 is a zero of its sign."""
    p, c = product(value(x), value(y)), value(z)
    special = add_specials([p, c])
    if special is not None:
        return 0x7FC00000 if special == NAN else special
    total = (-p[1] if p[0] else p[1]) + (-c[1] if c[0] else c[1])
    if total == 0:
        return (p[0] & c[0]) << 31
    sign = int(total < 0)
    rounded = encode(sign, abs(total))
    if before and abs(total) < Fraction(2) ** -126:  # the rounding that an unbounded exponent has
        unit = Fraction(2) ** (exponent_of(abs(total)) - 23)
        n = abs(total) / unit
        whole, rest = floor(n), n - floor(n)
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
        return sign << 31 if whole * unit < Fraction(2) ** -126 else sign << 31 | 0x00800000
    return flushed(rounded)


ONE = 0x3F800000


def chained(unit, kind, c, a, b):
    before = unit != "cdna2"
    block = CHAINED[unit][1]
    a, b = ([flushed(v, INPUTS[kind][1]) for v in x] for x in (a, b))
    a, b, c = a + [0] * (block - len(a)), b + [0] * (block - len(b)), flushed(c)
    add = lambda x, y: fma(x, ONE, y, before)
    if unit == "dpbf16-2":
        r = fma(a[0], b[0], fma(a[1], b[1], c, before), before)
    elif unit == "amx32":
        even = odd = 0
        for k in range(0, 32, 2):
            even, odd = fma(a[k], b[k], even, before), fma(a[k + 1], b[k + 1], odd, before)
        r = add(add(even, odd), c)
    else:
        p = [fma(x, y, 0, before) for x, y in zip(a, b)]
        r = c if c & 0x7FFFFFFF else 0
        for k in (0, 4):
            r = add(add(add(p[k], p[k + 1]), add(p[k + 2], p[k + 3])), r)
    return 0x7FC00000 if value(r)[1] == NAN else r


def step(unit, kind, c, a, b):
    return aligned(ALIGNED[unit], kind, c, a, b) if unit in ALIGNED else chained(unit, kind, c, a, b)


def block_of(unit):
    return (ALIGNED.get(unit) or CHAINED[unit])[1]


def narrow(kind, bits):
    """The value of the type that has these bits at its top, nearer to zero."""
    s, v = value(bits)
    if v in (NAN, INF) or v == 0:
        return bits
    mantissa, least = INPUTS[kind]
    out = encode(s, v, mantissa, False, least)
    return out if out & 0x7FFFFFFF <= GREATEST[kind] else s << 31 | GREATEST[kind]


def random_bits(rng, kind, low, high):
    return narrow(kind, rng.getrandbits(1) << 31 | rng.randint(low, high) + 127 << 23 | rng.getrandbits(23))


def rows():
    rng = random.Random(7)
    for unit, (kinds, block, *_) in [*ALIGNED.items(), *CHAINED.items()]:
        for kind in kinds:
            mantissa, least = INPUTS[kind]
            great, tiny = GREATEST[kind], narrow(kind, encode(0, Fraction(2) ** (least - mantissa)))
            one, minus, nan, inf = ONE, ONE | 1 << 31, 0x7FC00000, 0x7F800000
            cases = [
                (0, [0], [0]), (1 << 31, [0], [0]), (1 << 31, [1 << 31], [one]), (0, [1 << 31] * block, [one] * block),
                (1 << 31, [1 << 31] * block, [one] * block),
                (nan, [one], [one]), (one, [nan], [0]), (one, [one, nan], [one, one]),
                (inf, [one], [one]), (inf, [great] * 2, [great | 1 << 31] * 2), (inf | 1 << 31, [one] * block, [one] * block),
                (one, [great] * block, [great] * block), (one, [great] * block, [great | 1 << 31] * block),
                (0x7F7FFFFF, [great] * block, [great] * block), (0xFF7FFFFF, [minus] * block, [great] * block),
                (0, [tiny], [tiny]), (0, [tiny] * block, [one] * block), (1, [tiny], [one]), (0x00400000, [0], [great]),
                (0x00800001, [0] * block, [great] * block), (0x80000001, [tiny], [minus]),
                (one, [one, one], [one, minus]), (ONE + 1, [minus], [one]), (one, [minus], [one]),
                (0x4B800000, [one] * block, [one] * block), (0xCB800000, [one] * block, [one] * block),
                (0x33800000, [one] * (block - 1) + [minus], [one] * block), (0x0D800000, [one] * block, [great] * block),
                (0x3F800001, [narrow(kind, 0x3B800000)] * block, [narrow(kind, 0x3B800000)] * block),
                (0xBF800001, [narrow(kind, 0x3B900000)] * block, [narrow(kind, 0xBB900000)] * block),
            ]
            if kind != "f8e4m3fn":
                cases += [(one, [inf], [0]), (one, [inf], [minus]), (0, [inf, inf], [one, minus]), (inf, [inf], [minus]),
                          (inf, [inf], [one]), (0x7F7FFFFF, [one, inf], [great, one])]
            for spread in (1, 8, 24, 120):
                low, high = max(least - mantissa, -spread), min((GREATEST[kind] >> 23) - 127, spread)
                for _ in range(2):
                    n = rng.choice((block, block, max(1, block // 2)))
                    c = rng.getrandbits(1) << 31 | rng.randint(-spread, spread) + 127 << 23 | rng.getrandbits(23)
                    cases.append((c, [random_bits(rng, kind, low, high) for _ in range(n)],
                                  [random_bits(rng, kind, low, high) for _ in range(n)]))
            if kind in ("bf16", "tf32"):  # results near 2^-126, and products below f32
                for c in (0x00800000, 0x80800000, 0x00FFFFFF, 0x00000000):
                    for y in (0x33800000, 0xB3000000, 0xB2800000):
                        cases.append((c, [0x00800000], [narrow(kind, y)]))
            for c, a, b in cases:
                yield unit, kind, c, a, b, step(unit, kind, c, a, b)


def rows_of_two_types():
    rng = random.Random(8)
    unit, block, nan, inf = "hopper32-fp8", 32, 0x7FC00000, 0x7F800000
    for kinds in (("f8e4m3fn", "f8e5m2"), ("f8e5m2", "f8e4m3fn")):
        great = [GREATEST[k] for k in kinds]
        tiny = [narrow(k, encode(0, Fraction(2) ** (INPUTS[k][1] - INPUTS[k][0]))) for k in kinds]
        cases = [
            (0, [great[0]] * block, [great[1]] * block), (0, [great[0]] * 2, [great[1], great[1] | 1 << 31]),
            (ONE, [tiny[0]] * block, [tiny[1]] * block), (0, [tiny[0]] * block, [tiny[1]] * block), (0, [tiny[0]], [great[1]]),
            (0, [great[0]], [tiny[1]]), (1 << 31, [1 << 31], [tiny[1]]), (ONE, [nan], [0]), (ONE, [0], [nan]),
            (0, [inf], [ONE]) if kinds[0] == "f8e5m2" else (0, [ONE], [inf]),
            (inf, [ONE], [ONE]), (0x33800000, [ONE] * 31, [ONE] * 31),
        ]  # fmt: skip
        for spread in (1, 4, 8, 16):
            for _ in range(4):
                n = rng.choice((block, block, 5))
                c = rng.getrandbits(1) << 31 | rng.randint(-spread, spread) + 127 << 23 | rng.getrandbits(23)
                operands = []
                for k in kinds:
                    low, high = max(INPUTS[k][1] - INPUTS[k][0], -spread), min((GREATEST[k] >> 23) - 127, spread)
                    operands.append([random_bits(rng, k, low, high) for _ in range(n)])
                cases.append((rng.choice((0, c)), *operands))
        for c, a, b in cases:
            kind = ",".join(kinds)
            yield unit, kind, c, a, b, step(unit, kind, c, a, b)


def words(v):
    runs = [(x, len(list(n))) for x, n in itertools.groupby(v)]
    return ",".join(f"{x:08x}" + (f"*{n}" if n > 1 else "") for x, n in runs)


def text():
    return "".join(f"{u} {k} {c:08x} {words(a)} {words(b)} {d:08x}\n" for u, k, c, a, b, d in itertools.chain(rows(), rows_of_two_types()))


def hardware():
    code = """#include <immintrin.h>
void step(float *c, const unsigned *a, const unsigned *b) {
  _mm512_storeu_ps(c, _mm512_dpbf16_ps(_mm512_loadu_ps(c), (__m512bh)_mm512_loadu_si512(a), (__m512bh)_mm512_loadu_si512(b)));
}"""
    with tempfile.TemporaryDirectory() as d:
        Path(d, "x.c").write_text(code)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-mavx512bf16", "-mavx512f", "-o", f"{d}/x.so", f"{d}/x.c"], check=True)
        lib = ctypes.CDLL(f"{d}/x.so")
        rng, wrong, count = random.Random(1), 0, 0
        cases = [r[2:5] for r in rows() if r[0] == "dpbf16-2"]
        for _ in range(100000):
            spread = rng.choice((2, 10, 60, 126))
            any_bits = lambda: rng.getrandbits(1) << 31 | rng.randint(127 - spread, 127 + spread) << 23 | rng.getrandbits(23)
            low = lambda: rng.getrandbits(1) << 31 | rng.randint(127 - 72, 127 - 55) << 23 | rng.getrandbits(23)
            near = lambda: rng.getrandbits(1) << 31 | rng.randint(0, 3) << 23 | rng.getrandbits(23)
            f, g = rng.choice(((any_bits, any_bits), (low, near)))
            cases.append((g(), [f() & 0xFFFF0000 for _ in range(2)], [f() & 0xFFFF0000 for _ in range(2)]))
        for c, a, b in cases:
            a, b = (a + [0])[:2], (b + [0])[:2]
            x = (ctypes.c_uint * 16)(*[c] * 16)
            pair = lambda v: (ctypes.c_uint * 16)(*[v[0] >> 16 | v[1] & 0xFFFF0000] * 16)
            lib.step(x, pair(a), pair(b))
            got, want = x[0], step("dpbf16-2", "bf16", c, a, b)
            count += 1
            if got != want and not (value(got)[1] == NAN and value(want)[1] == NAN):
                wrong += 1
                if wrong < 10:
                    print(f"{c:08x} {a[0]:08x} {a[1]:08x} {b[0]:08x} {b[1]:08x}: {got:08x}, the model gives {want:08x}")
        print(f"{count} steps of VDPBF16PS, {wrong} differ")
        return wrong != 0


def main():
    if "--hardware" in sys.argv:
        return hardware()
    file = Path(__file__).with_name("rows.txt")
    fresh = text()
    if "--check" in sys.argv:
        return file.read_text() != fresh
    file.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
