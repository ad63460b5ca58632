"""Vectors of complex values: edge values crossed with each other, random ones, and every op that has complex operands."""
import itertools

import formats as F
import numpy as np
from elementwise import edges, few_edges
from formats import ARITHMETIC_FLOATS, FLOATS, INTEGERS, PART, STORAGE, convert, decode, encode
from tensors import contract_ints, contract_sums, label, lane64, load, running, store

NUMBERS = ARITHMETIC_FLOATS + INTEGERS + ["bool"]


class Arithmetic:
    """Complex numbers as pairs of exact values of a type, every real operation rounded once."""

    def __init__(self, t):
        self.t, self.part = t, PART[t]
        self.zero, self.one = F.num(False, 0), F.num(False, 1)

    def do(self, f, *args):
        return F.rounded(self.part, f(*args))

    def fma(self, a, b, c):
        return self.do(F.f_fma, a, b, c)

    def mul(self, x, y):
        (a, b), (c, d) = x, y
        return (self.fma(a, c, F.f_neg(self.do(F.f_mul, b, d))), self.fma(a, d, self.do(F.f_mul, b, c)))

    def div(self, x, y):
        (a, b), (c, d) = x, y
        over = lambda n, m: self.do(F.f_div, n, m)
        if F.f_less(F.f_abs(c), F.f_abs(d)):
            t = over(c, d)
            m = self.fma(c, t, d)
            return over(self.fma(a, t, b), m), over(self.fma(b, t, F.f_neg(a)), m)
        t = self.zero if F.f_equal(c, self.zero) and F.f_equal(d, self.zero) else over(d, c)
        m = self.fma(d, t, c)
        return over(self.fma(b, t, a), m), over(self.fma(F.f_neg(a), t, b), m)

    def abs(self, x):
        a, b = map(F.f_abs, x)
        if "inf" in (a.kind, b.kind):
            return F.inf()
        m = F.f_max(a, b)
        if F.f_equal(m, self.zero):
            return self.zero
        t = self.do(F.f_div, F.f_min(a, b), m)
        return self.do(F.f_mul, m, self.do(F.f_sqrt, self.fma(t, t, self.one)))

    def parts(self, f):
        return lambda x, y=(None, None): tuple(self.do(f, *(p for p in pair if p)) for pair in zip(x, y))

    def decode(self, pairs):
        return [tuple(decode(self.part, p) for p in pair) for pair in pairs]

    def encode(self, numbers):
        return [encode(self.part, p) for n in numbers for p in n]


def equal(x, y):
    return all(F.f_equal(a, b) for a, b in zip(x, y))


def in_pairs(a, xs):
    """The product in the order `pairs`."""
    while len(xs) > 1:
        xs = [a.mul(*xs[i:i + 2]) if i + 1 < len(xs) else xs[i] for i in range(0, len(xs), 2)]
    return xs[0] if xs else (a.one, a.zero)


def elementwise(v, a):
    t, part = a.t, a.part
    f = FLOATS[part]
    one, sign = f.bias << f.man, 1 << f.bits - 1
    codes = few_edges(part) + [one + (1 << f.man), (f.bias - f.man) << f.man | sign, f.top - 5]
    short = [0, sign, one | sign, f.top, f.top + 1, f.nan]
    all_pairs = [c for pair in itertools.product(codes, repeat=2) for c in pair]
    some = [c for pair in itertools.product(short, repeat=2) for c in pair]
    e = v.tensor(f"{t}", t, [len(all_pairs) // 2], all_pairs)
    s = v.tensor(f"{t}-some", t, [len(some) // 2], some)
    r, q = (v.random(f"{t}{k}", t, [200], k) for k in (1, 2))
    n, k = len(all_pairs) // 2, len(some) // 2
    unary = {"neg": a.parts(F.f_neg)}
    binary = {"add": a.parts(F.f_add), "sub": a.parts(F.f_sub), "mul": a.mul, "div": a.div}
    for op, g in unary.items():
        for x in (e, r):
            out = [g(z) for z in a.decode(v.elements(x))]
            v.case(op, [x], t, [len(out)], a.encode(out))
    for op, g in binary.items():
        for x, y in (([f"{s}:{k}:1", f"{s}:1:{k}"]), (e, e), (r, q)):
            out = [g(*z) for z in zip(a.decode(v.elements(x)), a.decode(v.elements(y)))]
            v.case(op, [x, y], t, [len(out)], a.encode(out))
    for x in (e, r):
        out = [encode(part, a.abs(z)) for z in a.decode(v.elements(x))]
        v.case("abs", [x], part, [len(out)], out)
        for op, index in (("real", 0), ("imag", 1)):
            v.case(op, [x], part, [len(out)], [z[index] for z in v.elements(x)])
    x, y = f"{s}:{k}:1", f"{s}:1:{k}"
    same = [int(equal(*z)) for z in zip(a.decode(v.elements(x)), a.decode(v.elements(y)))]
    v.case("eq", [x, y], "bool", [len(same)], same)
    v.case("ne", [x, y], "bool", [len(same)], [1 - z for z in same])
    re, im = (v.tensor(f"{t}-{name}", part, [n], all_pairs[i::2]) for i, name in enumerate(("re", "im")))
    v.case("complex", [re, im], t, [n], all_pairs)
    back = v.tensor(f"{t}-back", t, [n], [c for z in v.elements(e)[::-1] for c in z])
    mask = v.random(f"{t}-mask", "bool", [n], 4)
    out = [c for m, x, y in zip(v.elements(mask), v.elements(e), v.elements(back)) for c in (x if m else y)]
    v.case("select", [mask, e, back], t, [n], out)
    v.case("const", [], t, [], [one, 0], ints=[one], to=t)


def conversions(v, a):
    t, part = a.t, a.part
    for source in NUMBERS + STORAGE:
        es = edges(source)
        x = v.tensor(f"{source}-to-{t}", source, [len(es)], es)
        bits = [c for b in es for c in (b if source == part else convert(source, part, b), 0)]
        v.case("cast", [x], t, [len(es)], bits, ints=[0], to=t)
    x = f"{t}"
    other = next(o for o in PART if o != t)
    zs = v.elements(x)
    v.case("cast", [x], other, [len(zs)], [convert(part, PART[other], c) for z in zs for c in z], ints=[0], to=other)
    v.case("cast", [x], "bool", [len(zs)], [int(any(convert(part, "bool", c) for c in z)) for z in zs], ints=[0],
           to="bool")


def cells(v, name):
    """The elements of a tensor as an array of pairs of bits."""
    x = np.empty(len(v.data[name][1]) // 2, dtype=object)
    x[:] = v.elements(name)
    return x.reshape(v.shapes[name])


def flat(x):
    return [c for z in x.reshape(-1).tolist() for c in z]


def folds(v, a):
    t, part = a.t, a.part

    def sums(name, axis, order):
        x = np.moveaxis(cells(v, name), axis, -1)
        out = []
        for row in x.reshape(-1, x.shape[-1]) if x.size else [[]] * int(np.prod(x.shape[:-1])):
            for k in (0, 1):
                xs = [load(part, z[k]) for z in row]
                acc = lane64("sum", part, xs) if order == 0 else sum_chain(part, xs)
                out.append(store(part, acc) if len(xs) else 0)
        v.case("reduce", [name], t, x.shape[:-1], out, [0, order, 1, axis])

    def sum_chain(part, xs):
        acc = load(part, 1 << FLOATS[part].bits - 1)
        for x in xs:
            acc = acc + x
        return acc

    def products(name, axes):
        numbers = np.empty(len(v.elements(name)), dtype=object)
        numbers[:] = a.decode(v.elements(name))
        x = numbers.reshape(v.shapes[name])
        for axis in reversed(axes):
            moved = np.moveaxis(x, axis, -1)
            x = np.empty(moved.shape[:-1], dtype=object)
            for at in np.ndindex(x.shape):
                x[at] = in_pairs(a, moved[at].tolist())
        v.case("reduce", [name], t, x.shape, a.encode(x.reshape(-1).tolist()), [1, 3, len(axes), *axes])

    for n in (0, 1, 2, 3, 5, 8, 64, 65, 100, 4097):
        name = v.random(f"{t}-{n}", t, [n], n + 1)
        sums(name, 0, 0)
        if n <= 100:
            sums(name, 0, 1)
            products(name, [0])
    cube = v.random(f"{t}-3d", t, [3, 4, 5], 8)
    for axis in (0, 1, 2):
        sums(cube, axis, 0)
    for axes in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]):
        products(cube, axes)
    products(v.random(f"{t}-empty", t, [2, 0, 3], 8), [1])
    for shape, axis in (([0], 0), ([1], 0), ([16], 0), ([17], 0), ([2, 37], 1), ([37, 2], 0)):
        name = v.random(f"{t}-run-{'x'.join(map(str, shape))}", t, shape, 11)
        x = np.moveaxis(cells(v, name), axis, -1)
        total, product = np.empty(x.shape, dtype=object), np.empty(x.shape, dtype=object)
        for at in np.ndindex(x.shape[:-1]) if x.size else []:
            row = x[at].tolist()
            runs = [running("sum", [load(part, z[k]) for z in row], axis == len(shape) - 1) for k in (0, 1)]
            zs, s = a.decode(row), 1
            while s < len(zs):
                zs = [a.mul(zs[i - s], z) if i >= s else z for i, z in enumerate(zs)]
                s *= 2
            for i, (re, im, z) in enumerate(zip(*runs, zs)):
                total[at + (i,)] = (store(part, re), store(part, im))
                product[at + (i,)] = tuple(encode(part, p) for p in z)
        v.case("cumulate", [name], t, shape, flat(np.moveaxis(total, -1, axis)), [0, axis])
        v.case("cumulate", [name], t, shape, flat(np.moveaxis(product, -1, axis)), [1, axis])


def contractions(v, a):
    t, part = a.t, a.part

    def case(x, y, kept, reduced, forms_a, forms_b, domain=()):
        xs, ys = v.data[x][1], v.data[y][1]
        rr, ri, ir, ii = ([F.rounded(part, c) for c in contract_sums(part, xs[i::2], v.shapes[x], ys[j::2], v.shapes[y],
                                                                     kept, reduced, forms_a, forms_b, domain)]
                          for i in (0, 1) for j in (0, 1))
        out = [(a.do(F.f_sub, p, q), a.do(F.f_add, r, s)) for p, q, r, s in zip(rr, ii, ri, ir)]
        v.case("contract", [x, y], t, kept, a.encode(out), contract_ints(kept, reduced, forms_a, forms_b, domain),
               kept + reduced + [bound for _, bound in domain])

    for m, k, n in ((2, 3, 2), (1, 0, 2), (0, 4, 1), (1, 513, 2)):
        x, y = v.random(f"{t}-x{m}x{k}", t, [m, k], 12), v.random(f"{t}-y{k}x{n}", t, [k, n], 13)
        case(x, y, [m, n], [k], [label(0), label(2)], [label(2), label(1)])
    line, taps = v.random(f"{t}-line", t, [4, 2], 16), v.random(f"{t}-taps", t, [3, 2], 17)
    case(line, taps, [4], [3, 2], [([(0, 1), (1, 1)], -1, 1), label(2)], [label(1), label(2)])
    case(line, taps, [8], [3, 2], [([(0, 1), (1, -1)], 1, 2), label(2)], [label(1), label(2)])
    square, column = v.random(f"{t}-square", t, [6, 6], 18), v.random(f"{t}-column", t, [6, 2], 19)
    case(square, column, [6, 2], [6], [label(0), label(2)], [label(2), label(1)], [([(0, 1), (2, -1)], 0)])
    x, y = v.tensor(f"{t}-left", t, [36, 1], v.data[f"{t}-some"][1]), v.tensor(f"{t}-right", t, [1, 36],
                                                                               v.data[f"{t}-some"][1])
    case(x, y, [36, 36], [1], [label(0), label(2)], [label(2), label(1)])


def moves(v, a):
    t, part = a.t, a.part
    name = v.random(f"{t}-move", t, [2, 3, 4], 40)
    x = cells(v, name)

    def case(op, moved, ints=(), indices=(), extra=(), source=name):
        v.case(op, [source, *extra], t, moved.shape, flat(moved), ints, indices)

    case("detach", x)
    case("reshape", x.reshape(6, 4), indices=[6, 4])
    case("permute", x.transpose(2, 0, 1), [2, 0, 1])
    one = v.random(f"{t}-one", t, [2, 1, 3], 50)
    case("expand", np.broadcast_to(cells(v, one), (2, 4, 3)), indices=[2, 4, 3], source=one)
    fill = np.empty((), dtype=object)
    fill[()] = (5, 0)
    padded = np.full((3, 5, 8), fill, dtype=object)
    padded[1:, :3, 3:7] = x
    case("pad", padded, [5], [1, 0, 3, 0, 2, 1])
    case("shrink", x[1:2, 0:2, 1:4], indices=[1, 0, 1, 1, 2, 3])
    case("flip", x[::-1, :, ::-1], [0, 2])
    line = v.random(f"{t}-long", t, [2, 11], 60)
    y = cells(v, line)
    case("window", np.stack([y[:, s:s + 5:2] for s in range(0, 7, 2)], axis=1), [1, 3, 2, 2], source=line)
    starts = [v.tensor(f"{t}-start{i}", "i64", [], [s]) for i, s in enumerate((0, 7, 2))]
    case("slice_at", x[0:1, 1:3, 2:4], indices=[1, 2, 2], extra=starts)
    new = v.random(f"{t}-new", t, [1, 2, 2], 70)
    out = x.copy()
    out[0:1, 1:3, 2:4] = cells(v, new)
    case("update_at", out, extra=[new, *starts])
    none = np.empty((), dtype=object)
    none[()] = (0, 0)
    at = v.tensor(f"{t}-at", "i64", [4], [2, 0, F.wrap("i64", -1), 3])
    case("gather", np.stack([x[:, 2], x[:, 0], *[np.full((2, 4), none, dtype=object)] * 2], axis=1), [1], extra=[at])
    along = [(i * 5 + 1) % 4 for i in range(16)]
    index = v.tensor(f"{t}-along", "i32", [2, 2, 4], along)
    picked, where = np.empty((2, 2, 4), dtype=object), list(zip(np.ndindex(2, 2, 4), along))
    for (i, j, k), at in where:
        picked[i, j, k] = x[i, at, k] if at < 3 else (0, 0)
    case("pick", picked, [1], extra=[index])
    update = v.random(f"{t}-update", t, [2, 2, 4], 25)
    fresh, replaced, added = cells(v, update), x.copy(), x.copy()
    for (i, j, k), at in where:
        if at < 3:
            replaced[i, at, k] = fresh[i, j, k]
            added[i, at, k] = tuple(a.encode([a.parts(F.f_add)(*a.decode([added[i, at, k], fresh[i, j, k]]))]))
    case("scatter", replaced, [1, 0], extra=[index, update])
    case("scatter", added, [1, 1], extra=[index, update])
    mask = v.tensor(f"{t}-keep", "bool", [2], [0, 1])
    case("compact", x[1:], extra=[mask])


def complexes(v):
    for t in PART:
        a = Arithmetic(t)
        for fill in (elementwise, conversions, folds, contractions, moves):
            fill(v, a)


FILES = {"complexes": complexes}
