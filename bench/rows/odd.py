"""Small and odd work, as entries of one module of text: few rows, few columns, merged axes, outer products, permutations of six axes.

Gives:    ROWS (name, types of the inputs, type of the output, statements), module(): their text.
Keeps:    extents that are no multiples of a vector, so that tails are measured; nothing is taken out because it is slow.
Does not: run beside peers: bench/odd.py holds one compiler against another.

A statement names the inputs %a, %b, ... in their order, and gives %out.
"""

import itertools
from dataclasses import dataclass


@dataclass
class Odd:
    name: str
    inputs: list  # types, as in the text form
    output: str
    body: str
    index: int = 0  # integers of an input are below it


def of(dtype, *extents):
    return f"{dtype}[{', '.join(map(str, extents))}]"


def f32(*extents):
    return of("f32", *extents)


def extents(shape):
    return f"[{', '.join(map(str, shape))}]"


def times(shape):
    return "x".join(map(str, shape))


def products():
    for m, (k, n) in itertools.product((2, 3, 5, 6, 7), ((64, 64), (100, 300), (768, 768), (333, 77))):
        yield Odd(f"{m} rows by {k} x {n}", [f32(m, k), f32(k, n)], f32(m, n), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k]")
        yield Odd(f"{m} rows by {k} x {n}, turned", [f32(m, k), f32(n, k)], f32(m, n), "%out = contract %a[i, k], %b[j, k] -> [i, j] sum [k]")
    for n, (m, k) in itertools.product((1, 2, 3, 5), ((1000, 256), (64, 4096))):
        yield Odd(f"{m} x {k} by {n} columns", [f32(m, k), f32(k, n)], f32(m, n), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k]")
    for k, (m, n) in itertools.product((1, 2, 3), ((300, 500), (7, 10000), (10000, 7))):
        yield Odd(f"outer product {m} x {n}, {k} steps", [f32(m, k), f32(k, n)], f32(m, n), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k]")
    for b, m, k, n in ((1000, 3, 3, 3), (1000, 4, 4, 4), (64, 16, 16, 16), (12, 7, 64, 64), (500, 5, 1, 9), (33, 31, 17, 13), (100, 1, 50, 50), (8, 77, 77, 3)):
        yield Odd(f"{b} products of {m} x {k} x {n}", [f32(b, m, k), f32(b, k, n)], f32(b, m, n), "%out = contract %a[b, i, k], %b[b, k, j] -> [b, i, j] sum [k]")
    yield Odd("product of f64, 61 x 67 x 71", [of("f64", 61, 67), of("f64", 67, 71)], of("f64", 61, 71), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k]")
    yield Odd("product of i32, 61 x 67 x 71", [of("i32", 61, 67), of("i32", 67, 71)], of("i32", 61, 71), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k]")
    yield Odd("product over two axes that are apart", [f32(30, 7, 40), f32(40, 50, 7)], f32(30, 50), "%out = contract %a[i, k, l], %b[l, j, k] -> [i, j] sum [k, l]")
    yield Odd("product with a kept axis innermost", [f32(20, 30, 9), f32(30, 25, 9)], f32(20, 25, 9), "%out = contract %a[i, k, b], %b[k, j, b] -> [i, j, b] sum [k]")
    yield Odd("dot product of 99,991", [f32(99991), f32(99991)], "f32", "%out = contract %a[k], %b[k] -> [] sum [k]")
    yield Odd("causal product, 65 x 65 x 33", [f32(65, 65), f32(65, 33)], f32(65, 33), "%out = contract %a[i, k], %b[k, j] -> [i, j] sum [k] where k <= i")


def reductions():
    for kind in ("sum", "max"):
        order = " order=lane64" if kind == "sum" else " order=exact"
        for w in (2, 3, 4, 5, 6, 7, 13, 31):
            yield Odd(f"{kind} of 20,000 rows of {w}", [f32(20000, w)], f32(20000), f"%out = reduce %a kind={kind}{order} axes=[1]")
            yield Odd(f"{kind} of {w} rows of 20,000 over rows", [f32(w, 20000)], f32(20000), f"%out = reduce %a kind={kind}{order} axes=[0]")
        for shape, axes in (((40, 33, 500), (1,)), ((500, 33, 7), (1,)), ((11, 13, 17, 19), (1, 3)), ((11, 13, 17, 19), (0, 2)), ((317, 331), (0, 1)), ((100003,), (0,)), ((3000, 3), (0,))):
            kept = [e for i, e in enumerate(shape) if i not in axes]
            yield Odd(f"{kind} of {times(shape)} over {axes}", [f32(*shape)], f32(*kept) if kept else "f32", f"%out = reduce %a kind={kind}{order} axes={list(axes)}")
    for shape, axis in (((20000, 5), 1), ((5, 20000), 0), ((100, 1001), 1), ((30, 40, 50), 1)):
        kept = [e for i, e in enumerate(shape) if i != axis]
        yield Odd(f"argmax of {times(shape)} along {axis}", [f32(*shape)], of("i64", *kept), f"%out = argreduce %a kind=argmax axis={axis}")
    for shape, axis in (((1000, 5), 1), ((100, 1001), 1), ((5, 10000), 1), ((1001, 100), 0), ((30, 40, 50), 1), ((50001,), 0)):
        yield Odd(f"running sum of {times(shape)} along {axis}", [f32(*shape)], f32(*shape), f"%out = cumulate %a kind=sum axis={axis}")
        yield Odd(f"running maximum of {times(shape)} along {axis}", [f32(*shape)], f32(*shape), f"%out = cumulate %a kind=max axis={axis}")
    for dtype in ("i8", "u8", "i64", "f64", "f16"):
        order = "lane64" if dtype[0] == "f" else "exact"
        yield Odd(f"sum of 301 x 307 of {dtype}", [of(dtype, 301, 307)], of(dtype, 301), f"%out = reduce %a kind=sum order={order} axes=[1]")
    yield Odd("product of 300 rows of 33", [f32(300, 33)], f32(300), "%out = reduce %a kind=prod order=lane64 axes=[1]")


def permutations():
    def one(shape, perm, dtype="f32"):
        name = f"permutation {times(perm)} of {times(shape)}" + ("" if dtype == "f32" else f" of {dtype}")
        return Odd(name, [of(dtype, *shape)], of(dtype, *(shape[p] for p in perm)), f"%out = permute %a perm={list(perm)}")

    for shape in ((1000, 1000), (7, 30000), (30000, 7), (333, 777)):
        yield one(shape, (1, 0))
    for shape in ((64, 80, 96), (7, 500, 33), (3, 224, 224), (224, 224, 3)):
        for perm in list(itertools.permutations(range(3)))[1:]:
            yield one(shape, perm)
    for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)):
        yield one((8, 12, 64, 33), perm)
    for perm in ((5, 4, 3, 2, 1, 0), (0, 2, 4, 1, 3, 5), (1, 0, 3, 2, 5, 4), (2, 3, 4, 5, 0, 1), (0, 5, 1, 4, 2, 3)):
        yield one((8, 6, 10, 4, 12, 9), perm)
    for dtype in ("u8", "f16", "f64"):
        yield one((301, 403), (1, 0), dtype)
        yield one((31, 33, 35), (2, 0, 1), dtype)


def elementwise():
    for shape in ((100003,), (3, 33333), (33333, 3), (101, 103, 7)):
        for op in ("exp", "sqrt", "tanh", "neg"):
            yield Odd(f"{op} of {times(shape)}", [f32(*shape)], f32(*shape), f"%out = {op} %a")
    spread = "%r = reshape %b {one}\n    %s = expand %r {all}\n    %out = {op} %a, %s"
    for shape, axis in (((333, 301), 0), ((333, 301), 1), ((30000, 3), 1), ((3, 30000), 0), ((16, 33, 200), 1), ((200, 33, 3), 1), ((8, 64, 7, 7), 1)):
        ones = [e if i == axis else 1 for i, e in enumerate(shape)]
        for op in ("add", "div"):
            yield Odd(f"{op}, axis {axis} of {times(shape)}", [f32(*shape), f32(shape[axis])], f32(*shape), spread.format(one=extents(ones), all=extents(shape), op=op))
    for dtype in ("f64", "f16", "i8", "i64"):
        yield Odd(f"add of 30,001 of {dtype}", [of(dtype, 30001), of(dtype, 30001)], of(dtype, 30001), "%out = add %a, %b")
    for op in ("floordiv", "mod", "shl", "max"):
        yield Odd(f"{op} of 30,001 of i32", [of("i32", 30001), of("i32", 30001)], of("i32", 30001), f"%out = {op} %a, %b")
    for a, b in (("f32", "u8"), ("u8", "f32"), ("f32", "f16"), ("f16", "f32"), ("i64", "f32"), ("f32", "bool"), ("f64", "i32"), ("i8", "i64")):
        yield Odd(f"cast of 50,021 {a} to {b}", [of(a, 50021)], of(b, 50021), f"%out = cast %a : {of(b, 50021)}")
    yield Odd("select by a comparison", [f32(301, 307), f32(301, 307)], f32(301, 307), "%m = lt %a, %b\n    %out = select %m, %a, 0.5")
    yield Odd("gelu of 97 x 3,073", [f32(97, 3073)], f32(97, 3073), "%s = mul %a, 0.70710678\n    %e = erf %s\n    %t = add %e, 1.0\n    %h = mul %t, 0.5\n    %out = mul %h, %a")
    yield Odd("sum of two permutations", [f32(301, 307), f32(307, 301)], f32(301, 307), "%t = permute %b perm=[1, 0]\n    %out = add %a, %t")


def rows_of():
    softmax = """%m = reduce %a kind=max order=exact axes=[1]
    %m1 = reshape %m [{h}, 1]
    %m2 = expand %m1 [{h}, {w}]
    %d = sub %a, %m2
    %e = exp %d
    %t = reduce %e kind=sum order=lane64 axes=[1]
    %t1 = reshape %t [{h}, 1]
    %t2 = expand %t1 [{h}, {w}]
    %out = div %e, %t2"""
    norm = """%m = reduce %a kind=sum order=lane64 axes=[1]
    %mm = div %m, {w}.0
    %m1 = reshape %mm [{h}, 1]
    %m2 = expand %m1 [{h}, {w}]
    %d = sub %a, %m2
    %q = mul %d, %d
    %v = reduce %q kind=sum order=lane64 axes=[1]
    %vv = div %v, {w}.0
    %e = add %vv, 0.00001
    %r = rsqrt %e
    %r1 = reshape %r [{h}, 1]
    %r2 = expand %r1 [{h}, {w}]
    %out = mul %d, %r2"""
    for w, h in ((2, 10000), (3, 10000), (5, 5000), (7, 5000), (10, 5000), (17, 3000), (50, 1000), (100, 500), (333, 200), (1001, 100), (30011, 3)):
        yield Odd(f"softmax of {h} rows of {w}", [f32(h, w)], f32(h, w), softmax.format(h=h, w=w))
        yield Odd(f"layer norm of {h} rows of {w}", [f32(h, w)], f32(h, w), norm.format(h=h, w=w))


def movement():
    def one(name, shape, out, body):
        return Odd(name, [f32(*shape)], f32(*out), body)

    for shape, lo, hi in (((300, 301), (1, 1), (1, 1)), ((32, 30, 30), (0, 1, 1), (0, 1, 1)), ((1000, 3), (0, 0), (0, 1)), ((50001,), (3,), (4,))):
        out = [a + b + c for a, b, c in zip(shape, lo, hi)]
        yield one(f"pad of {times(shape)}", shape, out, f"%out = pad %a {list(lo)} {list(hi)} value=0.0")
        yield one(f"cut of {times(out)}", out, shape, f"%out = shrink %a {list(lo)} {list(shape)}")
    for shape, axes in (((301, 303), [0]), ((301, 303), [1]), ((301, 303), [0, 1]), ((30, 40, 50), [1])):
        yield one(f"flip of {times(shape)} along {axes}", shape, shape, f"%out = flip %a axes={axes}")
    for shape, axis, size, stride in (((10007,), 0, 16, 1), ((10007,), 0, 400, 160), ((64, 100), 1, 5, 2), ((100, 64), 0, 5, 2)):
        kept = (shape[axis] - size) // stride + 1
        out = [kept if i == axis else e for i, e in enumerate(shape)] + [size]
        yield one(f"windows of {size} of {times(shape)} along {axis}, stride {stride}", shape, out, f"%out = window %a axis={axis} size={size} stride={stride} dilation=1")
    for n, w in ((1000, 1), (1000, 3), (1000, 16), (500, 100), (100, 1001)):
        yield Odd(f"{n} rows of {w} gathered", [f32(2000, w), of("i64", n)], f32(n, w), "%out = gather %a, %b axis=0", 2000)
        yield Odd(f"{n} columns of {min(w, 100)} rows gathered", [f32(min(w, 100), 2000), of("i64", n)], f32(min(w, 100), n), "%out = gather %a, %b axis=1", 2000)
    yield Odd("elements picked along rows", [f32(300, 301), of("i64", 300, 64)], f32(300, 64), "%out = pick %a, %b axis=1", 301)
    for kind in ("add", "set"):
        yield Odd(f"scatter of rows, {kind}", [f32(500, 33), of("i64", 300, 33), f32(300, 33)], f32(500, 33), f"%out = scatter %a, %b, %c axis=0 kind={kind}", 500)
    for shape, axis, n in (((301, 7), 0, 3), ((7, 301), 1, 3), ((40, 50), 1, 5)):
        out = [e * n if i == axis else e for i, e in enumerate(shape)]
        wide = list(shape[:axis]) + [n] + list(shape[axis:])
        ones = list(shape[:axis]) + [1] + list(shape[axis:])
        yield one(f"{times(shape)} {n} times along {axis}", shape, out, f"%r = reshape %a {ones}\n    %s = expand %r {wide}\n    %out = reshape %s {out}")
    yield Odd("argsort of 64 x 100", [f32(64, 100)], of("i64", 64, 100), "%out = argsort %a axis=1 descending=0")


def windows():
    def conv(name, x, w, out, body):
        return Odd(name, [f32(*x), f32(*w)], f32(*out), f"%out = contract {body}")

    dense = "%a[n, c, oh{s} + kh{d} - {p}, ow{s} + kw{d} - {p}], %b[o, c, kh, kw] -> [n, o, oh: {e}, ow: {e}] sum [kh, kw, c]"
    for c, o, size, k, s, d in ((3, 5, 30, 3, 1, 1), (1, 8, 60, 3, 1, 1), (8, 1, 60, 3, 1, 1), (3, 16, 61, 7, 2, 1), (33, 35, 14, 1, 1, 1), (64, 64, 7, 3, 1, 1), (16, 16, 28, 3, 1, 2), (512, 7, 7, 1, 1, 1), (2, 2, 100, 5, 1, 1)):
        p, e = d * (k - 1) // 2, -(-size // s)
        text = dense.format(s=f"*{s}" if s > 1 else "", d=f"*{d}" if d > 1 else "", p=p, e=e)
        yield conv(f"convolution {k}x{k} {c}-{o} @{size}, stride {s}, dilation {d}", (1, c, size, size), (o, c, k, k), (1, o, e, e), text)
    deep = "%a[n, c, oh{s} + kh - {p}, ow{s} + kw - {p}], %b[c, kh, kw] -> [n, c, oh: {e}, ow: {e}] sum [kh, kw]"
    for c, size, k, s in ((32, 28, 3, 1), (32, 29, 3, 2), (17, 28, 5, 1), (24, 30, 7, 1), (3, 100, 5, 1)):
        e = -(-size // s)
        yield conv(f"depthwise {k}x{k} of {c} @{size}, stride {s}", (1, c, size, size), (c, k, k), (1, c, e, e), deep.format(s=f"*{s}" if s > 1 else "", p=(k - 1) // 2, e=e))
    for c, o, n, k, s in ((1, 16, 4000, 9, 1), (16, 16, 1000, 3, 1), (1, 64, 8000, 40, 20), (32, 8, 500, 25, 1)):
        e = (n - k) // s + 1
        yield conv(f"convolution of one axis, {k} taps {c}-{o} @{n}, stride {s}", (1, c, n), (o, c, k), (1, o, e), f"%a[n, c, ol{f'*{s}' if s > 1 else ''} + kl], %b[o, c, kl] -> [n, o, ol: {e}] sum [kl, c]")
    yield conv("transposed convolution 2x2 16-8 @20", (1, 16, 20, 20), (16, 8, 2, 2), (1, 8, 40, 40), "%a[n, i, (oh - kh)/2, (ow - kw)/2], %b[i, o, kh, kw] -> [n, o, oh: 40, ow: 40] sum [kh, kw, i]")
    for kind, k, s, size in itertools.product(("max", "sum"), (2, 3), (1, 2), (57,)):
        e = (size - k) // s + 1
        order = "lane64" if kind == "sum" else "exact"
        yield Odd(f"pooling by {kind}, {k}x{k}, stride {s}", [f32(16, size, size)], f32(16, e, e), f"%h = window %a axis=1 size={k} stride={s} dilation=1\n    %w = window %h axis=2 size={k} stride={s} dilation=1\n    %out = reduce %w kind={kind} order={order} axes=[3, 4]")


ROWS = [row for family in (products, reductions, permutations, elementwise, rows_of, movement, windows) for row in family()]


def module(wanted):
    """Of the rows those that are wanted, by their numbers, as entries r0, r1, ... of one module."""
    lines = ["module @odd {"]
    for number in wanted:
        row = ROWS[number]
        inputs = ", ".join(f"%{name} : {kind}" for name, kind in zip("abc", row.inputs))
        lines += [f"  entry @r{number}({inputs}) -> (%out : {row.output}) {{", f"    {row.body}", "  }"]
    return "\n".join([*lines, "}", ""])
