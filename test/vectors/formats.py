"""Number formats in exact arithmetic: the reference of the reference evaluator's vectors.

Takes:    bits, or exact values (fractions).
Gives:    exact values, or bits after one rounding to nearest even; IEEE 754 arithmetic on them.
Keeps:    independence: imports nothing of Astra and computes with integers and fractions alone.
"""
from collections import namedtuple
from fractions import Fraction
from math import isqrt

# A float: nan, or inf or a magnitude with a sign.
Val = namedtuple("Val", "kind neg mag")
NAN = Val("nan", False, None)


def inf(neg=False):
    return Val("inf", neg, None)


def num(neg, mag):
    return Val("num", bool(neg), Fraction(mag))


Float = namedtuple("Float", "name bits exp man bias top has_inf nan fnuz")


def ieee(name, bits, exp, man):
    top = (((1 << exp) - 1) << man) - 1
    return Float(name, bits, exp, man, (1 << exp - 1) - 1, top, True, ((1 << exp + 1) - 1) << man - 1, False)


FLOATS = {f.name: f for f in [
    ieee("f16", 16, 5, 10), ieee("bf16", 16, 8, 7), ieee("f32", 32, 8, 23), ieee("f64", 64, 11, 52),
    ieee("f8e5m2", 8, 5, 2),
    Float("f8e4m3fn", 8, 4, 3, 7, 0x7e, False, 0x7f, False),
    Float("f8e4m3fnuz", 8, 4, 3, 8, 0x7f, False, 0x80, True),
    Float("f8e5m2fnuz", 8, 5, 2, 16, 0x7f, False, 0x80, True),
    Float("f4e2m1", 4, 2, 1, 1, 7, False, 0, False),
    Float("e8m0", 8, 8, 0, 127, 0xfe, False, 0xff, False),
]}
INTS = {name: (bits, signed) for name, bits, signed in [
    ("bool", 8, False), ("i8", 8, True), ("i16", 16, True), ("i32", 32, True), ("i64", 64, True), ("u8", 8, False),
    ("u16", 16, False), ("u32", 32, False), ("u64", 64, False), ("i2", 2, True), ("u2", 2, False), ("i4", 4, True),
    ("u4", 4, False)]}
ARITHMETIC_FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
STORAGE = ["i2", "u2", "i4", "u4", "f4e2m1", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "e8m0"]


PART = {"complex64": "f32", "complex128": "f64"}  # a complex element is two of these, the real part first


def width(t):
    """Bits of an element, of a complex type of a part."""
    t = PART.get(t, t)
    return FLOATS[t].bits if t in FLOATS else INTS[t][0]


# ---- floats
def decode(t, bits):
    f = FLOATS[t]
    if t == "e8m0":
        return NAN if bits == 0xff else num(False, Fraction(2) ** (bits - 127))
    neg, code = bits >> f.bits - 1, bits & (1 << f.bits - 1) - 1
    if f.fnuz and bits == f.nan or not f.fnuz and code > f.top + f.has_inf:
        return NAN
    if f.has_inf and code == f.top + 1:
        return inf(neg)
    e, m = code >> f.man, code & (1 << f.man) - 1
    if e == 0:
        return num(neg, m * Fraction(2) ** (1 - f.bias - f.man))
    return num(neg, (m + (1 << f.man)) * Fraction(2) ** (e - f.bias - f.man))


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def encode(t, v, saturate=False):
    f = FLOATS[t]
    if t == "e8m0":
        return encode_e8m0(v, saturate)
    if v.kind == "nan":
        return f.nan
    sign = v.neg << f.bits - 1
    code = f.top + 1
    if v.kind == "num":
        if v.mag == 0:
            return 0 if f.fnuz else sign
        e = max(floor_log2(v.mag), 1 - f.bias)
        n = round(v.mag / Fraction(2) ** (e - f.man))  # Python rounds a fraction half to even
        code = ((e + f.bias - 1) << f.man) + n
    if code > f.top:
        if t == "f4e2m1" or saturate and f.bits == 8:
            code = f.top
        elif not f.has_inf:
            return f.nan
        else:
            code = f.top + 1
    return 0 if f.fnuz and code == 0 else sign | code


def encode_e8m0(v, saturate):
    if v.kind == "nan" or v.neg and (v.kind == "inf" or v.mag):
        return 0xff
    if v.kind == "inf":
        return 0xfe if saturate else 0xff
    if v.mag == 0:
        return 0
    e = floor_log2(v.mag)
    code, beyond = e + 127, v.mag / Fraction(2) ** e - Fraction(3, 2)
    if code < 0:
        return 0
    code += beyond > 0 or beyond == 0 and code % 2
    return code if code < 0xff else 0xfe if saturate else 0xff


def rounded(t, v):
    return decode(t, encode(t, v))


def signed(v):
    return -v.mag if v.neg else v.mag


def real(x, zero_negative=False):
    """The value x, and for x = 0 the sign of the zero."""
    return num(x < 0 or x == 0 and zero_negative, abs(x))


# IEEE 754 operations, exact before the rounding
def f_neg(a):
    return a if a.kind == "nan" else a._replace(neg=not a.neg)


def f_abs(a):
    return a if a.kind == "nan" else a._replace(neg=False)


def f_add(a, b):
    if "nan" in (a.kind, b.kind):
        return NAN
    if a.kind == "inf" or b.kind == "inf":
        if a.kind == b.kind and a.neg != b.neg:
            return NAN
        return a if a.kind == "inf" else b
    return real(signed(a) + signed(b), a.neg and b.neg)


def f_sub(a, b):
    return f_add(a, f_neg(b))


def f_mul(a, b):
    if "nan" in (a.kind, b.kind):
        return NAN
    neg = a.neg != b.neg
    if a.kind == "inf" or b.kind == "inf":
        other = b if a.kind == "inf" else a
        return NAN if other.kind == "num" and other.mag == 0 else inf(neg)
    return num(neg, a.mag * b.mag)


def f_div(a, b):
    if "nan" in (a.kind, b.kind):
        return NAN
    neg = a.neg != b.neg
    if a.kind == "inf":
        return NAN if b.kind == "inf" else inf(neg)
    if b.kind == "inf":
        return num(neg, 0)
    if b.mag == 0:
        return NAN if a.mag == 0 else inf(neg)
    return num(neg, a.mag / b.mag)


def f_fma(a, b, c):
    return f_add(f_mul(a, b), c)


def f_sqrt(a):
    """To 200 bits and a sticky one: enough for one rounding to any format."""
    if a.kind == "nan" or a.neg and (a.kind == "inf" or a.mag):
        return NAN
    if a.kind == "inf" or a.mag == 0:
        return a
    shift = 400 - 2 * (floor_log2(a.mag) // 2)
    scaled = a.mag * Fraction(2) ** shift
    root = isqrt(scaled.numerator // scaled.denominator)
    sticky = Fraction(1, 2) if root * root != scaled else 0
    return num(False, (root + sticky) / Fraction(2) ** (shift // 2))


def f_integral(how):
    def f(a):
        if a.kind != "num":
            return a
        x = signed(a)
        n = {"roundeven": round, "floor": lambda v: v.__floor__(), "ceil": lambda v: v.__ceil__(),
             "trunc": lambda v: v.__trunc__()}[how](x)
        return num(a.neg, abs(n))
    return f


def f_less(a, b):
    """a < b by IEEE; false on a NaN."""
    if "nan" in (a.kind, b.kind):
        return False
    def key(v):
        return (-1 if v.neg else 1, 0) if v.kind == "inf" else (0, signed(v))
    return key(a) < key(b)


def f_equal(a, b):
    return "nan" not in (a.kind, b.kind) and not f_less(a, b) and not f_less(b, a)


def f_max(a, b):
    if "nan" in (a.kind, b.kind):
        return NAN
    if f_equal(a, b):
        return b if a.neg else a
    return b if f_less(a, b) else a


def f_min(a, b):
    return f_neg(f_max(f_neg(a), f_neg(b)))


def f_copysign(a, b):
    return a if a.kind == "nan" else a._replace(neg=b.kind != "nan" and b.neg)


def f_scale2(a, n):
    return a if a.kind != "num" else num(a.neg, a.mag * Fraction(2) ** n)


# ---- integers
def wrap(t, v):
    """The bits of v modulo 2^width."""
    return v & (1 << INTS[t][0]) - 1


def integer(t, bits):
    n, is_signed = INTS[t]
    return bits - (1 << n) if is_signed and bits >> n - 1 else bits


def convert(src, dst, bits, saturate=False):
    """N11 and N12: cast."""
    if src in FLOATS:
        v = decode(src, bits)
        if dst == "bool":
            return int(v.kind != "num" or v.mag != 0)
        if dst in FLOATS:
            return encode(dst, v, saturate)
        n, is_signed = INTS[dst]
        lo, hi = (-(1 << n - 1), (1 << n - 1) - 1) if is_signed else (0, (1 << n) - 1)
        if v.kind == "nan":
            return 0
        x = (lo if v.neg else hi) if v.kind == "inf" else max(lo, min(hi, int(signed(v))))
        return wrap(dst, x)
    x = integer(src, bits)
    if dst == "bool":
        return int(x != 0)
    return encode(dst, real(Fraction(x)), saturate) if dst in FLOATS else wrap(dst, x)
