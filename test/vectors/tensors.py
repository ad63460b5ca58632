"""Vectors of the ops on whole tensors: movement, reductions, contractions, indexing, random bits."""
import itertools
import warnings

import formats as F
import numpy as np
from elementwise import dot4, float_edges
from formats import ARITHMETIC_FLOATS, INTEGERS, INTS, decode, encode, integer, wrap

warnings.filterwarnings("ignore", category=RuntimeWarning)  # infinities and NaNs are meant
ALL = ARITHMETIC_FLOATS + INTEGERS + ["bool"]
REDUCE = ["sum", "prod", "max", "min", "and", "or"]
ORDER = {"lane64": 0, "chain": 1, "exact": 2}


# ---- computing as N12 says: f16 and bf16 in f32
def compute(t):
    return np.float64 if t == "f64" else np.float32


def load(t, bits):
    if t not in F.FLOATS:
        return integer(t, bits)
    wide = "f64" if t == "f64" else "f32"
    raw = encode(wide, decode(t, bits))
    return np.array([raw], np.uint64 if wide == "f64" else np.uint32).view(compute(t))[0]


def exact(x):
    """A NumPy float as an exact value."""
    wide, word = ("f64", np.uint64) if isinstance(x, np.float64) else ("f32", np.uint32)
    return decode(wide, int(np.array([x]).view(word)[0]))


def store(t, x):
    return encode(t, exact(x)) if t in F.FLOATS else wrap(t, int(x))


def larger(a, b):
    if isinstance(a, int):
        return max(a, b)
    if a != a or b != b:
        return a if a != a else b
    if a == b:
        return b if np.signbit(a) else a
    return max(a, b)


def lesser(a, b):
    return min(a, b) if isinstance(a, int) else -larger(-a, -b)


COMBINE = {"sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "max": larger, "min": lesser,
           "and": lambda a, b: a & b, "or": lambda a, b: a | b}


def unit(kind, t):
    if t in F.FLOATS:
        return compute(t)({"sum": -0.0, "prod": 1, "max": -np.inf, "min": np.inf}[kind])
    n, signed = INTS[t]
    lo, hi = (0, 1) if t == "bool" else (-(1 << n - 1), (1 << n - 1) - 1) if signed else (0, (1 << n) - 1)
    return {"sum": 0, "prod": 1, "max": lo, "min": hi, "and": 1 if t == "bool" else -1, "or": 0}[kind]


# ---- movement
def movement(v):
    def case(op, t, name, moved, ints=(), indices=(), extra=(), fill=0):
        """`moved`: positions in the source, -1 for the fill."""
        bits = v.data[name][1]
        flat = [fill if i < 0 else bits[i] for i in moved.reshape(-1).tolist()]
        v.case(op, [name, *extra], t, moved.shape, flat, ints, indices)

    for seed, t in enumerate(ALL + ["i4", "f8e5m2"]):
        name = v.random(f"{t}", t, [2, 3, 4], 40 + seed)
        at = np.arange(24).reshape(2, 3, 4)
        case("detach", t, name, at)
        case("reshape", t, name, at.reshape(6, 4), indices=[6, 4])
        case("permute", t, name, at.transpose(2, 0, 1), ints=[2, 0, 1])
        one = v.random(f"{t}-one", t, [2, 1, 3], 50 + seed)
        case("expand", t, one, np.broadcast_to(np.arange(6).reshape(2, 1, 3), (2, 4, 3)), indices=[2, 4, 3])
        fill = 1 if t == "bool" else 5
        case("pad", t, name, np.pad(at, ((1, 0), (0, 2), (3, 1)), constant_values=-1), ints=[fill],
             indices=[1, 0, 3, 0, 2, 1], fill=fill)
        case("shrink", t, name, at[1:2, 0:2, 1:4], indices=[1, 0, 1, 1, 2, 3])
        case("shrink", t, name, at[1:2, 0:0, 1:4], indices=[1, 0, 1, 1, 0, 3])
        case("flip", t, name, at[::-1, :, ::-1], ints=[0, 2])
        line = v.random(f"{t}-line", t, [2, 11], 60 + seed)
        at2 = np.arange(22).reshape(2, 11)
        for size, stride, dilation in ((3, 1, 1), (3, 2, 2), (1, 4, 1), (11, 1, 1)):
            span = (size - 1) * dilation + 1
            starts = range(0, 11 - span + 1, stride)
            w = np.stack([at2[:, s:s + span:dilation] for s in starts], axis=1)
            case("window", t, line, w, ints=[1, size, stride, dilation])
        w = np.stack([at[:, s:s + 2].transpose(0, 2, 1) for s in (0, 1)], axis=1)
        case("window", t, name, w, ints=[1, 2, 1, 1])
        if t in ("u8", "i8"):
            bytes8 = v.random(f"{t}-bytes", t, [2, 3, 8], 80 + seed)
            words = np.array(v.data[bytes8][1], dtype=np.uint8).view("<u4")
            v.case("words", [bytes8], "u32" if t == "u8" else "i32", [2, 3, 2], words.tolist())
        for i, start in enumerate(((0, 1, 2), (-5, 7, 1), (1, 1, 9), (-2 ** 63, 2 ** 63 - 1, 0))):
            starts = [v.tensor(f"{t}-start{i}{k}", "i64", [], [wrap("i64", s)]) for k, s in enumerate(start)]
            size = (1, 2, 2)
            a, b, c = (max(0, min(s, e - n)) for s, e, n in zip(start, (2, 3, 4), size))
            case("slice_at", t, name, at[a:a + 1, b:b + 2, c:c + 2], indices=size, extra=starts)
            new = v.random(f"{t}-new{i}", t, list(size), 70 + seed + i)
            out = np.array(v.data[name][1], dtype=object).reshape(2, 3, 4)
            out[a:a + 1, b:b + 2, c:c + 2] = np.array(v.data[new][1], dtype=object).reshape(size)
            v.case("update_at", [name, new, *starts], t, [2, 3, 4], out.reshape(-1).tolist())


# ---- reductions
def lane64(kind, t, xs):
    chunks = []
    for begin in range(0, len(xs), 4096):
        chunk = xs[begin:begin + 4096]
        lane = [unit(kind, t)] * 64
        for j in range(64):
            for x in chunk[j::64]:
                lane[j] = COMBINE[kind](lane[j], x)
        for s in (32, 16, 8, 4, 2, 1):
            for j in range(s):
                lane[j] = COMBINE[kind](lane[j], lane[j + s])
        chunks.append(lane[0])
    return unit(kind, t) if not chunks else chunks[0] if len(chunks) == 1 else lane64(kind, t, chunks)


def chain(kind, t, xs):
    acc = unit(kind, t)
    for x in xs:
        acc = COMBINE[kind](acc, x)
    return acc


def groups(axes):
    """The last run of neighbouring axes, and the axes before it."""
    k = len(axes) - 1
    while k and axes[k - 1] + 1 == axes[k]:
        k -= 1
    return axes[:k], axes[k:]


def reduce_case(v, name, kind, axes, order, domain=None):
    t, bits = v.data[name]
    shape = v.shapes[name]
    x = np.empty(len(bits), dtype=object)
    x[:] = [load(t, b) for b in bits]
    x = x.reshape(shape)
    outer, lanes = groups(axes) if order == "lane64" else ([], axes)
    kept = [a for a in range(len(shape)) if a not in axes]
    fold = lane64 if order == "lane64" else chain
    results = []
    for k in itertools.product(*(range(shape[a]) for a in kept)):
        partial, count = [], 0
        for o in itertools.product(*(range(shape[a]) for a in outer)):
            row = []
            for i in itertools.product(*(range(shape[a]) for a in lanes)):
                point = [0] * len(shape)
                for a, p in zip(kept + outer + lanes, k + o + i):
                    point[a] = p
                count += 1
                row.append(x[tuple(point)] if domain is None or domain(point) else unit(kind, t))
            partial.append(fold(kind, t, row))
        r = chain(kind, t, partial)
        results.append(store(t, compute(t)(0) if t in F.FLOATS and kind == "sum" and not count else r))
    ints = [REDUCE.index(kind), ORDER[order], len(axes), *axes]
    ints += [1, 2, 0, 1, 1, -1, 0, 1] if domain else []  # axis 0 - axis 1 + bound >= 0
    v.case("reduce", [name], t, [shape[a] for a in kept], results, ints, [0] if domain else [])


def reductions(v):
    for t in ARITHMETIC_FLOATS:
        for n in (0, 1, 2, 63, 64, 65, 100, 4096, 4097, 9001):
            name = v.random(f"{t}-{n}", t, [n], n + 1)
            for kind in ("sum", "prod", "max", "min"):
                if kind != "prod" or n <= 100:
                    reduce_case(v, name, kind, [0], "lane64" if kind in ("sum", "prod") else "exact")
            if n <= 100:
                reduce_case(v, name, "sum", [0], "chain")
                reduce_case(v, name, "prod", [0], "chain")
        name = v.random(f"{t}-3d", t, [3, 4, 5], 8)
        for axes in ([0], [1], [2], [0, 2], [1, 2], [0, 1], [0, 1, 2]):
            reduce_case(v, name, "sum", axes, "lane64")
            reduce_case(v, name, "max", axes, "exact")
        reduce_case(v, v.random(f"{t}-4d", t, [3, 2, 5, 40], 9), "sum", [0, 2, 3], "lane64")
        reduce_case(v, v.random(f"{t}-ones", t, [1, 7, 1, 3], 9), "sum", [0, 2, 3], "lane64")
        reduce_case(v, v.random(f"{t}-empty", t, [3, 0, 2], 9), "sum", [0, 1], "lane64")
        triangle = v.random(f"{t}-triangle", t, [6, 70], 10)
        for kind in ("sum", "prod", "max", "min"):
            reduce_case(v, triangle, kind, [1], "exact" if kind in ("max", "min") else "lane64",
                        lambda p: p[0] - p[1] >= 0)
        e = float_edges(t)
        pairs = v.tensor(f"{t}-pairs", t, [len(e), len(e), 2], [b for x in e for y in e for b in (x, y)])
        for kind in ("sum", "prod", "max", "min"):
            reduce_case(v, pairs, kind, [2], "lane64" if kind in ("sum", "prod") else "exact")
    for t in INTEGERS + ["bool"]:
        name = v.random(f"{t}-3d", t, [3, 4, 5], 8)
        empty = v.random(f"{t}-empty", t, [2, 0], 8)
        for kind in REDUCE:
            if t != "bool" or kind in ("max", "min", "and", "or"):
                for axes in ([0], [0, 2], [0, 1, 2]):
                    reduce_case(v, name, kind, axes, "exact")
                reduce_case(v, empty, kind, [1], "exact")
        for op in (0, 1):
            for axis in (0, 1, 2):
                argreduce_case(v, name, op, axis)
    for t in ARITHMETIC_FLOATS:
        e = float_edges(t)
        twice = v.tensor(f"{t}-edges", t, [3, len(e)], e + e[::-1] + [b for b in e if b != F.FLOATS[t].nan] + [0])
        for op in (0, 1):
            for axis in (0, 1):
                argreduce_case(v, twice, op, axis)
            argreduce_case(v, v.random(f"{t}-none{op}", t, [2, 0], 1), op, 1)
        for descending in (0, 1):
            for axis in (0, 1):
                argsort_case(v, twice, axis, descending)
    for t in INTEGERS + ["bool"]:
        argsort_case(v, f"{t}-3d", 1, 0)
        argsort_case(v, f"{t}-3d", 2, 1)


def lines(v, name, axis):
    """Each line of a tensor along an axis, and where its results go."""
    shape = v.shapes[name]
    at = np.arange(int(np.prod(shape))).reshape(shape)
    return np.moveaxis(at, axis, -1).reshape(-1, shape[axis])


def argreduce_case(v, name, op, axis):
    t, bits = v.data[name]
    results = []
    shape = v.shapes[name]
    kept = shape[:axis] + shape[axis + 1:]
    for line in lines(v, name, axis) if shape[axis] else [[]] * int(np.prod(kept)):
        xs = [load(t, bits[i]) for i in line]
        nans = [i for i, x in enumerate(xs) if x != x]
        best = max(xs) if xs and not op else min(xs) if xs else None
        results.append(nans[0] if nans else xs.index(best) if xs else 0)
    v.case("argreduce", [name], "i64", kept, results, [op, axis])


def argsort_case(v, name, axis, descending):
    t, bits = v.data[name]
    out = [0] * len(bits)

    def key(i):
        x = load(t, bits[i])
        return (1, 0, 0) if x != x else (0, x, 0 if isinstance(x, int) or np.signbit(x) else 1)
    for line in lines(v, name, axis):
        order = sorted(range(len(line)), key=lambda k: key(line[k]), reverse=bool(descending))
        if descending:  # Python keeps equal keys in place under reverse, as a stable sort must
            assert all(key(line[a]) != key(line[b]) or a < b for a, b in zip(order, order[1:]))
        for at, k in zip(line, order):
            out[at] = k
    v.case("argsort", [name], "i64", v.shapes[name], out, [axis, descending])


def cumulations(v):
    for t in ARITHMETIC_FLOATS + INTEGERS:
        for shape, axis in (([0], 0), ([1], 0), ([15], 0), ([16], 0), ([17], 0), ([2, 37], 1), ([37, 2], 0), ([100], 0),
                            ([20, 1], 0)):
            name = v.random(f"{t}-{'x'.join(map(str, shape))}-{axis}", t, shape, 11)
            for kind in ("sum", "prod", "max", "min"):
                out = [0] * len(v.data[name][1])
                for line in lines(v, name, axis) if shape[0] else []:
                    xs = [load(t, v.data[name][1][i]) for i in line]
                    in_blocks = t in F.FLOATS and kind in ("sum", "prod") and axis == len(shape) - 1
                    for at, x in zip(line, running(kind, xs, in_blocks)):
                        out[at] = store(t, x)
                v.case("cumulate", [name], t, shape, out, [REDUCE.index(kind), axis])


def running(kind, xs, in_blocks):
    out, block = [], 16 if in_blocks else 1
    for begin in range(0, len(xs), block):
        a = list(xs[begin:begin + block])
        for s in (1, 2, 4, 8):
            a = [COMBINE[kind](a[i - s], x) if i >= s else x for i, x in enumerate(a)]
        out += [COMBINE[kind](out[begin - 1], x) for x in a] if begin else a
    return out


# ---- contractions
def fma(t, x, y, c):
    if t not in F.FLOATS:
        return x * y + c
    wide = "f64" if t == "f64" else "f32"
    return decode(wide, encode(wide, F.f_fma(x, y, c)))


def form(terms, constant=0, divisor=1):
    return [len(terms), *(i for term in terms for i in term), constant, divisor]


def contract_sums(t, xs, x_shape, ys, y_shape, kept, reduced, a, b, domain=()):
    """The sums at each kept point, exact values or integers."""
    floats = t in F.FLOATS
    xs, ys = ([decode(t, i) if floats else integer(t, i) for i in n] for n in (xs, ys))
    zero, start = (F.num(False, 0), F.num(True, 0)) if floats else (0, 0)

    def read(values, shape, forms, point):
        at, outside = 0, False
        for (terms, constant, divisor), extent in zip(forms, shape):
            p = constant + sum(k * point[label] for label, k in terms)
            if p % divisor:
                return None
            p //= divisor
            outside |= not 0 <= p < extent
            at = at * extent + p
        return zero if outside else values[at]

    r = len(reduced)
    block, s = [0] * r, 1
    for i in reversed(range(r)):
        block[i] = min(reduced[i], 512 if i == r - 1 else max(1, 8192 // s))
        s *= max(block[i], 1)
    results = []
    for k in itertools.product(*map(range, kept)):
        if 0 in reduced:
            results.append(zero)
            continue
        acc = None
        order = [r - 1] + list(range(r - 1)) if r else []  # blocks of the innermost label outermost
        for begins in itertools.product(*(range(0, reduced[i], block[i]) for i in order)):
            begin = dict(zip(order, begins))
            c = start
            for p in itertools.product(*(range(begin[i], min(reduced[i], begin[i] + block[i])) for i in range(r))):
                point = k + p
                if any(bound + sum(q * point[label] for label, q in terms) < 0 for terms, bound in domain):
                    continue
                l, m = read(xs, x_shape, a, point), read(ys, y_shape, b, point)
                if l is not None and m is not None:
                    c = fma(t, l, m, c)
            if acc is None:
                acc = c
            else:
                acc = F.rounded("f64" if t == "f64" else "f32", F.f_add(acc, c)) if floats else acc + c
        results.append(acc)
    return results


def contract_ints(kept, reduced, a, b, domain=()):
    ints = [len(kept), len(reduced), len(a), len(b), len(domain)]
    for f in [*a, *b]:
        ints += form(*f)
    for terms, _ in domain:
        ints += form(terms)
    return ints


def contract_case(v, x, y, kept, reduced, a, b, domain=()):
    """a, b: per operand dim (terms, constant, divisor); domain: (terms, bound)."""
    t, xs = v.data[x]
    sums = contract_sums(t, xs, v.shapes[x], v.data[y][1], v.shapes[y], kept, reduced, a, b, domain)
    bits = [encode(t, c) if t in F.FLOATS else wrap(t, c) for c in sums]
    v.case("contract", [x, y], t, kept, bits, contract_ints(kept, reduced, a, b, domain),
           kept + reduced + [bound for _, bound in domain])


def label(i):
    return ([(i, 1)], 0, 1)


def contractions(v):
    for t in ARITHMETIC_FLOATS + INTEGERS:
        def matmul(m, k, n, x=None, y=None):
            x = x or v.random(f"{t}-x{m}x{k}", t, [m, k], 12)
            y = y or v.random(f"{t}-y{k}x{n}", t, [k, n], 13)
            contract_case(v, x, y, [m, n], [k], [label(0), label(2)], [label(2), label(1)])
        for m, k, n in ((2, 3, 2), (1, 0, 2), (0, 4, 1), (2, 512, 1), (1, 513, 2), (1, 1100, 1)):
            matmul(m, k, n)
        x, w = v.random(f"{t}-image", t, [5, 6, 3], 14), v.random(f"{t}-filter", t, [2, 3, 3, 3], 15)
        for stride, dilation, pad, oh, ow in ((1, 1, 1, 5, 6), (2, 1, 1, 3, 3), (1, 2, 2, 5, 6)):
            contract_case(v, x, w, [oh, ow, 2], [3, 3, 3],
                          [([(0, stride), (3, dilation)], -pad, 1), ([(1, stride), (4, dilation)], -pad, 1), label(5)],
                          [label(2), label(3), label(4), label(5)])
        # transposed: x[(o + 1 - k) / 2] has holes
        line, taps = v.random(f"{t}-line", t, [4, 2], 16), v.random(f"{t}-taps", t, [3, 2], 17)
        contract_case(v, line, taps, [8], [3, 2], [([(0, 1), (1, -1)], 1, 2), label(2)], [label(1), label(2)])
        # depthwise, and no reduced label
        contract_case(v, line, taps, [4, 2], [3], [([(0, 1), (2, 1)], -1, 1), label(1)], [label(2), label(1)])
        contract_case(v, line, taps, [4, 2, 3, 2], [], [label(0), label(1)], [label(2), label(3)])
        # causal: j <= i
        square, column = v.random(f"{t}-square", t, [6, 6], 18), v.random(f"{t}-column", t, [6, 2], 19)
        contract_case(v, square, column, [6, 2], [6], [label(0), label(2)], [label(2), label(1)],
                      [([(0, 1), (2, -1)], 0)])
        contract_case(v, square, column, [6, 2], [6], [label(0), label(2)], [label(2), label(1)],
                      [([(2, -1)], -1)])  # empty domain
    for t in ARITHMETIC_FLOATS:
        e = float_edges(t)
        x, y = v.tensor(f"{t}-edges", t, [len(e), 1], e), v.tensor(f"{t}-row", t, [1, len(e)], e)
        contract_case(v, x, y, [len(e), len(e)], [1], [label(0), label(2)], [label(2), label(1)])
        minus = v.tensor(f"{t}-minus", t, [1, 600], [1 << F.FLOATS[t].bits - 1] * 600)
        one = v.tensor(f"{t}-one", t, [600, 1], [F.FLOATS[t].bias << F.FLOATS[t].man] * 600)
        contract_case(v, minus, one, [1, 1], [600], [label(0), label(2)], [label(2), label(1)])
    for t, u, k in (("u32", "i32", 7), ("i32", "u32", 1100)):  # of words
        x, y = v.random(f"{t}-words", t, [3, k], 24), v.random(f"{u}-words", u, [k, 2], 25)
        pairs = [[(v.data[x][1][i * k + j], v.data[y][1][j * 2 + c]) for j in range(k)] for i in range(3) for c in range(2)]
        sums = [sum(dot4(*(ab if t == "u32" else ab[::-1])) for ab in row) for row in pairs]
        v.case("contract", [x, y], "i32", [3, 2], [wrap("i32", s) for s in sums],
               contract_ints([3, 2], [k], [label(0), label(2)], [label(2), label(1)]), [3, 2, k])
    # block lengths of outer labels: 512, then 16, then 1
    x, y = v.random("long-x", "f32", [2, 40, 600], 20), v.random("long-y", "f32", [2, 40, 600], 21)
    contract_case(v, x, y, [], [2, 40, 600], [label(0), label(1), label(2)], [label(0), label(1), label(2)])
    x, y = v.random("tall-x", "f32", [9000, 1], 22), v.random("tall-y", "f32", [9000, 1], 23)
    contract_case(v, x, y, [], [9000, 1], [label(0), label(1)], [label(0), label(1)])


# ---- indexing
def indexing(v):
    for t in ALL:
        name = v.random(t, t, [2, 5, 3], 24)
        x = np.array(v.data[name][1], dtype=object).reshape(2, 5, 3)
        for it in ("i64", "i32"):
            at = [[0, 4, -1, 5], [2, 2, -2 ** 31, 2 ** 31 - 1]]
            index = v.tensor(f"{t}-{it}", it, [2, 4], [wrap(it, i) for row in at for i in row])
            out = [x[a, i, b] if 0 <= i < 5 else 0 for a in range(2) for row in at for i in row for b in range(3)]
            v.case("gather", [name, index], t, [2, 2, 4, 3], out, [1])
            along = [(a * 7 + b * 5 + k * 3) % 8 - 1 for a in range(2) for b in range(4) for k in range(3)]
            index = v.tensor(f"{t}-{it}-along", it, [2, 4, 3], [wrap(it, i) for i in along])
            cells = list(zip(itertools.product(range(2), range(4), range(3)), along))
            v.case("pick", [name, index], t, [2, 4, 3], [x[a, i, k] if 0 <= i < 5 else 0 for (a, _, k), i in cells], [1])
        update = v.random(f"{t}-update", t, [2, 4, 3], 25)
        fresh = np.array(v.data[update][1], dtype=object).reshape(2, 4, 3)
        for number, kind in enumerate(("set", "add", "mul", "max", "min")):
            if t == "bool" and kind in ("add", "mul"):
                continue
            if kind == "set":
                out = x.copy()
                for (a, b, k), i in cells:
                    if 0 <= i < 5:
                        out[a, i, k] = fresh[a, b, k]
                bits = out.reshape(-1).tolist()
            else:
                out = np.empty((2, 5, 3), dtype=object)
                for p in np.ndindex(2, 5, 3):
                    out[p] = load(t, x[p])
                f = COMBINE["sum" if kind == "add" else "prod" if kind == "mul" else kind]
                for (a, b, k), i in cells:
                    if 0 <= i < 5:
                        out[a, i, k] = f(out[a, i, k], load(t, fresh[a, b, k]))
                bits = [store(t, r) for r in out.reshape(-1)]
            v.case("scatter", [name, index, update], t, [2, 5, 3], bits, [1, number])
        if t in F.FLOATS:  # many additions to one element: in order, narrow types rounded once
            base, zero = v.random(f"{t}-base", t, [1], 26), v.tensor(f"{t}-zero", "i32", [90], [0] * 90)
            many = v.random(f"{t}-many", t, [90], 27)
            total = chain("sum", t, [load(t, b) for b in v.data[base][1] + v.data[many][1]])
            v.case("scatter", [base, zero, many], t, [1], [store(t, total)], [0, 1])
        mask = v.tensor(f"{t}-mask", "bool", [5], [0, 1, 1, 0, 1])
        rows = v.random(f"{t}-rows", t, [5, 2], 28)
        bits = v.data[rows][1]
        v.case("compact", [rows, mask], t, [3, 2], [bits[2 * i + k] for i in (1, 2, 4) for k in (0, 1)])
        empty = v.tensor(f"{t}-nothing", "bool", [5], [0] * 5)
        v.case("compact", [rows, empty], t, [0, 2], [])


def threefry(key, counter):
    """Threefry2x32-20, with the known answers of Random123."""
    word = 2 ** 32 - 1
    keys = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    x, y = ((c + k) & word for c, k in zip(counter, key))
    for r in range(20):
        rotation = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        x = (x + y) & word
        y = ((y << rotation | y >> 32 - rotation) & word) ^ x
        if r % 4 == 3:
            s = r // 4 + 1
            x, y = (x + keys[s % 3]) & word, (y + keys[(s + 1) % 3] + s) & word
    return x, y


assert threefry((0, 0), (0, 0)) == (0x6b200159, 0x99ba4efe)
assert threefry((0xffffffff,) * 2, (0xffffffff,) * 2) == (0x1cb996fc, 0xbb002be7)
assert threefry((0x13198a2e, 0x03707344), (0x243f6a88, 0x85a308d3)) == (0xc4923a9c, 0x483df7a0)


def random_bits(v):
    for seed, stream in ((0, 0), (1, 0), (0, 1), (0x13198a2e, 0x03707344), (0xffffffff, 0xffffffff)):
        names = [v.tensor(f"{n}-{seed}-{stream}", "u32", [], [x]) for n, x in (("seed", seed), ("stream", stream))]
        for shape in ([], [7], [3, 5], [0]):
            count = int(np.prod(shape))
            bits = [threefry((seed, stream), (i >> 1, 0))[i & 1] for i in range(count)]
            v.case("random", names, "u32", shape, bits, indices=shape)


FILES = {"movement": movement, "reductions": reductions, "cumulations": cumulations, "contractions": contractions,
         "indexing": indexing, "random": random_bits}
