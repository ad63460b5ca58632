"""Vectors of the elementwise ops and leaves: edge values crossed with each other, and random ones."""
from fractions import Fraction

import formats as F
from formats import ARITHMETIC_FLOATS, FLOATS, INTEGERS, INTS, STORAGE, decode, encode, integer, wrap


def float_edges(t):
    """Zeros, subnormals, the ends of every range, ties, what integers end at; each with both signs; infinity, NaN."""
    f = FLOATS[t]
    one = f.bias << f.man
    codes = [0, 1, 2, (1 << f.man) - 1, 1 << f.man, (1 << f.man) + 1, f.top, f.top - 1, one, one + 1, one - 1,
             one + (1 << f.man), one + (1 << f.man - 1), one - (1 << f.man)]  # 2, 1.5, 0.5
    if f.man:
        codes += [encode(t, F.num(False, x)) for x in (Fraction(5, 2), Fraction(7, 2), 3, Fraction(1, 3))]
    codes = sorted({c for c in codes if 0 <= c <= f.top})
    sign = 1 << f.bits - 1
    special = [f.top + 1] if f.has_inf else []
    return codes + special + [c | sign for c in codes + special if not (f.fnuz and c == 0)] + ([f.nan] if f.nan else [])


def few_edges(t):
    f = FLOATS[t]
    one, sign = f.bias << f.man, 1 << f.bits - 1
    codes = [0, 1, one, one + 1, one + (1 << f.man - 1) + 1, f.top, f.top + 1]
    return codes + [c | sign for c in codes] + [f.nan]


def int_edges(t):
    n, signed = INTS[t]
    if t == "bool":
        return [0, 1]
    values = [0, 1, 2, 3, 5, 7, 8, 10, n - 1, n, n + 1, (1 << n - 1) - 1, 1 << n - 1, (1 << n - 1) + 1, (1 << n) - 1,
              (1 << n) - 2, (1 << n) - 3, (1 << n) - 7, 1 << n // 2]
    return sorted({wrap(t, v) for v in values})


def edges(t):
    if t in FLOATS:
        return float_edges(t) if FLOATS[t].bits > 8 else [b for b in range(1 << FLOATS[t].bits) if not ignored(t, b)]
    return list(range(1 << INTS[t][0])) if t in ("i2", "u2", "i4", "u4") else int_edges(t)


def ignored(t, bits):
    """A NaN other than the canonical one."""
    return decode(t, bits).kind == "nan" and bits != FLOATS[t].nan


def narrow_op(t, f):
    """f on values of type t: exact, rounded once; f16 and bf16 through f32 (N12)."""
    def g(*args):
        v = f(*args)
        return encode(t, F.rounded("f32", v) if t in ("f16", "bf16") else v)
    return g


FLOAT_UNARY = {"neg": F.f_neg, "abs": F.f_abs, "sqrt": F.f_sqrt, "roundeven": F.f_integral("roundeven"),
               "floor": F.f_integral("floor"), "ceil": F.f_integral("ceil"), "trunc": F.f_integral("trunc")}
FLOAT_BINARY = {"add": F.f_add, "sub": F.f_sub, "mul": F.f_mul, "div": F.f_div, "max": F.f_max, "min": F.f_min,
                "copysign": F.f_copysign}
FLOAT_COMPARE = {"lt": F.f_less, "le": lambda a, b: F.f_less(a, b) or F.f_equal(a, b), "eq": F.f_equal,
                 "ne": lambda a, b: not F.f_equal(a, b)}


def floats(v):
    for t in ARITHMETIC_FLOATS:
        e = v.tensor(f"{t}", t, [len(float_edges(t))], float_edges(t))
        r, q = (v.random(f"{t}{k}", t, [200], k) for k in (1, 2))
        n = len(float_edges(t))
        crossed = [f"{e}:{n}:1", f"{e}:1:{n}"]
        for op, f in FLOAT_UNARY.items():
            for operand in (e, r):
                bits = [narrow_op(t, f)(decode(t, a)) for a in v.elements(operand)]
                v.case(op, [operand], t, [len(bits)], bits)
        for op, f in FLOAT_BINARY.items():
            for x, y in (crossed, (r, q)):
                bits = [narrow_op(t, f)(decode(t, a), decode(t, b)) for a, b in zip(v.elements(x), v.elements(y))]
                v.case(op, [x, y], t, [len(bits)], bits)
        for op, f in FLOAT_COMPARE.items():
            x, y = crossed
            bits = [int(f(decode(t, a), decode(t, b))) for a, b in zip(v.elements(x), v.elements(y))]
            v.case(op, [x, y], "bool", [len(bits)], bits)
        k = len(few_edges(t))
        few = v.tensor(f"{t}few", t, [k], few_edges(t))
        last = v.random(f"{t}3", t, [200], 3)
        for x, y, z in ((f"{few}:{k * k}:1", f"{few}:{k}:{k}", f"{few}:1:{k * k}"), (r, q, last)):
            bits = [narrow_op(t, F.f_fma)(*(decode(t, a) for a in abc))
                    for abc in zip(v.elements(x), v.elements(y), v.elements(z))]
            v.case("fma", [x, y, z], t, [len(bits)], bits)
        by = [0, 1, -1, 5, -5, 24, -24, 126, -126, 149, -149, 150, -150, 278, -278, 1074, -1074, 2100, -2100, 2 ** 31 - 1,
              -2 ** 31]
        counts = v.tensor(f"{t}by", "i32", [len(by)], [wrap("i32", b) for b in by])
        x, y = f"{e}:{len(by)}:1", f"{counts}:1:{n}"
        bits = [narrow_op(t, lambda a, c: F.f_scale2(a, max(-3000, min(3000, c))))(decode(t, a), integer("i32", c))
                for a, c in zip(v.elements(x), v.elements(y))]
        v.case("scale2", [x, y], t, [len(bits)], bits)
        subnormal = v.tensor(f"{t}sub", t, [3], [3, 5, (1 << FLOATS[t].man) - 1])  # halves of odd ones are ties
        down = v.tensor(f"{t}down", "i32", [3], [wrap("i32", b) for b in (-1, -2, -3)])
        x, y = f"{subnormal}:3:1", f"{down}:1:3"
        bits = [narrow_op(t, F.f_scale2)(decode(t, a), integer("i32", c)) for a, c in zip(v.elements(x), v.elements(y))]
        v.case("scale2", [x, y], t, [9], bits)


def floor_div(t, a, b):
    return 0 if b == 0 else a // b


def trunc_div(t, a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shift(t, a, b, left):
    n = INTS[t][0]
    count = b % 2 ** n
    if count >= n:
        return -1 if not left and a < 0 else 0
    return a << count if left else a >> count


INT_UNARY = {"neg": lambda t, a: -a, "abs": lambda t, a: abs(a), "not": lambda t, a: ~a,
             "popcount": lambda t, a: (a % 2 ** INTS[t][0]).bit_count()}
INT_BINARY = {"add": lambda t, a, b: a + b, "sub": lambda t, a, b: a - b, "mul": lambda t, a, b: a * b,
              "floordiv": floor_div, "mod": lambda t, a, b: a - floor_div(t, a, b) * b, "truncdiv": trunc_div,
              "rem": lambda t, a, b: a - trunc_div(t, a, b) * b, "max": lambda t, a, b: max(a, b),
              "min": lambda t, a, b: min(a, b), "and": lambda t, a, b: a & b, "or": lambda t, a, b: a | b,
              "xor": lambda t, a, b: a ^ b, "shl": lambda t, a, b: shift(t, a, b, True),
              "shr": lambda t, a, b: shift(t, a, b, False)}
INT_COMPARE = {"lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b}


def integers(v):
    for t in INTEGERS + ["bool"]:
        es = int_edges(t)
        n = len(es)
        e = v.tensor(t, t, [n], es)
        x, y = f"{e}:{n}:1", f"{e}:1:{n}"
        pairs = [(integer(t, a), integer(t, b)) for a, b in zip(v.elements(x), v.elements(y))]
        for op, f in INT_UNARY.items():
            if t != "bool" or op == "not":
                bits = [1 - a if t == "bool" else wrap(t, f(t, integer(t, a))) for a in es]
                v.case(op, [e], t, [n], bits)
        for op, f in INT_BINARY.items():
            if t != "bool" or op in ("max", "min", "and", "or", "xor"):
                v.case(op, [x, y], t, [n * n], [wrap(t, f(t, a, b)) for a, b in pairs])
        for op, f in INT_COMPARE.items():
            v.case(op, [x, y], "bool", [n * n], [int(f(a, b)) for a, b in pairs])


    some = [0, 1, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80ff017f, 0x12345678]  # bytes at the ends of both kinds
    n = len(some)
    e, last = v.tensor("words", "i32", [n], some), v.random("sums", "i32", [n * n], 5)
    x, y = f"{e}:{n}:1", f"{e}:1:{n}"
    bits = [wrap("i32", dot4(a, b) + integer("i32", c))
            for a, b, c in zip(v.elements(x), v.elements(y), v.elements(last))]
    v.case("dot4", [x, y, last], "i32", [n * n], bits)


def dot4(a, b):
    """The products of the bytes of a, unsigned, and of b, signed."""
    return sum((a >> k & 255) * integer("i8", b >> k & 255) for k in (0, 8, 16, 24))


def conversions(v):
    arithmetic = ARITHMETIC_FLOATS + INTEGERS + ["bool"]
    for t in arithmetic + STORAGE:
        es = edges(t)
        if t in ("f32", "f64"):  # where integers and narrower floats end, and half way between their neighbours
            for k in (7, 8, 15, 16, 31, 32, 63, 64):
                for x in (2 ** k, 2 ** k - 1, Fraction(2 ** k) - Fraction(1, 2), 2 ** k + 1):
                    es += [encode(t, F.real(Fraction(s * x))) for s in (1, -1)]
            for g in FLOATS.values():
                if g.bits < FLOATS[t].bits and g.man:
                    for code in (0, 1, 2, g.top - 1, g.top):
                        at = decode(g.name, code).mag
                        step = decode(g.name, code + 1).mag - at if code < g.top else at - decode(g.name, code - 1).mag
                        es += [encode(t, F.num(s, at + step / 2)) for s in (0, 1)]
                        es += [encode(t, F.num(0, at + step / 2)) + d for d in (1, -1)]
        e = v.tensor(t, t, [len(es)], es)
        for to in arithmetic + STORAGE:
            if to != t:
                saturates = (0, 1) if to in FLOATS and FLOATS[to].bits == 8 else (0,)
                for s in saturates:
                    v.case("cast", [e], to, [len(es)], [F.convert(t, to, b, s) for b in es], ints=[s], to=to)
        for to in ARITHMETIC_FLOATS + INTEGERS:
            if t in arithmetic and to != t and F.width(to) == F.width(t):
                v.case("bitcast", [e], to, [len(es)], es, to=to)
    payload = v.tensor("payloads", "f32", [4], [0x7f800001, 0xffc00000, 0x7fffffff, 0xff812345])
    v.case("bitcast", [payload], "u32", [4], [0x7fc00000] * 4, to="u32")
    ones = v.tensor("ones", "f32", [4], [0xbf800000] * 4)
    v.case("copysign", [ones, payload], "f32", [4], [0x3f800000] * 4)
    for t in ARITHMETIC_FLOATS + INTEGERS:
        table = [b for b in v.elements(v.random(f"table-{t}", t, [16], 9))]
        for index in INTEGERS:
            es = int_edges(index)
            v.case("lookup16", [index], t, [len(es)], [table[b % 16] for b in es],
                   ints=[b - 2 ** 64 if b >> 63 else b for b in table], to=t)


def leaves(v):
    for t in ARITHMETIC_FLOATS + INTEGERS:
        def at(i, t=t):
            return encode(t, F.real(Fraction(i))) if t in FLOATS else wrap(t, i)
        v.case("iota", [], t, [3, 5], [at(j) for i in range(3) for j in range(5)], ints=[1], indices=[3, 5], to=t)
        v.case("iota", [], t, [300, 2], [at(i) for i in range(300) for j in range(2)], ints=[0], indices=[300, 2], to=t)
        for i in (0, -1, 127, 128, 2049, 65519, 65520, 2 ** 24 + 1, -2 ** 31 - 1, 2 ** 53 + 1, 2 ** 61 + 2 ** 37 + 1):
            v.case("from_index", [], t, [], [at(i)], indices=[i], to=t)
    for t in ARITHMETIC_FLOATS + INTEGERS + ["bool"] + STORAGE:
        for b in edges(t)[:6]:
            v.case("const", [], t, [], [b], ints=[b - 2 ** 64 if b >> 63 else b], to=t)
        es = edges(t)[::-4]
        e = v.tensor(t, t, [len(es)], es)
        reverse = v.tensor(f"{t}-reverse", t, [len(es)], es[::-1])
        mask = v.random(f"mask-{t}", "bool", [len(es)], 4)
        bits = [a if m else b for m, a, b in zip(v.elements(mask), es, es[::-1])]
        v.case("select", [mask, e, reverse], t, [len(es)], bits)


FILES = {"floats": floats, "integers": integers, "conversions": conversions, "leaves": leaves}
