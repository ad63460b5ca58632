"""Softmax attention: a program has M queries of a head, and all of its keys.

Keeps:    bits: the sums over keys are those of the ops, whole rows at a time, so that no order changes. Of a causal one the keys behind a query
          take no part: they are the fold's identity in its maximum and in its sum, and `tril` leaves them out of the product.
"""

import astra

from .forms import Form, Row

kernel = astra.kernel
M = 16


@astra.kernel
def attention(q, k, v, scale, bias, allowed, out, *, M, ACROSS, SAFE, SCALED, CAUSAL=False):
    head, group, i = kernel.program_id(0), kernel.program_id(1), kernel.program_id(2)
    keys, width = v.shape[1], q.shape[3]
    t = kernel.load(q, (head, group, i * M, 0), (1, 1, M, width), fill=0.0)
    by = kernel.load(k, (head, 0, 0), (1, width, keys)) if ACROSS else kernel.permute(kernel.load(k, (head, 0, 0), (1, keys, width)), (0, 2, 1))
    s = kernel.dot(kernel.reshape(t, (1, M, width)), by)
    if SCALED == "mul":
        s = s * kernel.load(scale, (0,), (1,))
    if SCALED == "div":
        s = s / kernel.load(scale, (0,), (1,))
    if bias is not None:
        s = s + kernel.reshape(kernel.load(bias, (head, group, i * M, 0), (1, 1, M, keys), fill=0.0), (1, M, keys))
    if allowed is not None:
        s = kernel.where(kernel.reshape(kernel.load(allowed, (head, group, i * M, 0), (1, 1, M, keys), fill=False), (1, M, keys)), s, -float("inf"))
    last = i * M + (keys - q.shape[2])  # the last key that the first query of the tile sees
    if CAUSAL:
        seen = kernel.arange(keys, astra.int64)[None, None, :] <= kernel.arange(M, astra.int64)[None, :, None] + last
        s = kernel.where(seen, s, -float("inf"))
    most = kernel.max(s, axis=2, keepdims=True)
    if SAFE:
        most = kernel.where(most == -float("inf"), 0.0, most)
    e = kernel.exp(s - most)
    if CAUSAL:
        e = kernel.where(seen, e, -0.0)
    total = kernel.sum(e, axis=2, keepdims=True)
    if SAFE:
        total = kernel.where(total == 0.0, 1.0, total)
    y = kernel.dot(e / total, kernel.load(v, (head, 0, 0), (1, keys, v.shape[2])), tril=last if CAUSAL else None)
    kernel.store(out, (head, group, i * M, 0), kernel.reshape(y, (1, 1, M, v.shape[2])), drop=True)


DIMS = {"b": (1, 64), "h": (1, 64), "s": (1, 4096), "t": (1, 4096), "d": (1, 256), "e": (1, 256)}  # a product is of 2^48 elements at most


def softmax(shape, rows, axis, safe, where=""):
    """Statements: %p of %scores, with the inequality of its folds."""
    ones = ", ".join(["1"] * (axis + 1))

    def number(name, value):
        return f"%{name}_0 = const {value} : f32\n%{name}_1 = reshape %{name}_0 [{ones}]\n%{name} = expand %{name}_1 [{rows}]\n"

    text = f"%most_s = reduce %scores kind=max order=exact axes=[{axis}]{where}\n%most_r = reshape %most_s [{rows}]\n%most = detach %most_r\n"
    if safe:
        text += number("low", "-inf") + number("zero", "0.0") + "%none = eq %most, %low\n%shift = select %none, %zero, %most\n"
    text += f"%shifts = expand {'%shift' if safe else '%most'} [{shape}]\n%moved = sub %scores, %shifts\n%exp = exp %moved\n"
    text += f"%total_s = reduce %exp kind=sum order=lane64 axes=[{axis}]{where}\n%total_r = reshape %total_s [{rows}]\n"
    if safe:
        text += number("one", "1.0") + "%empty = eq %total_r, %zero\n%total = select %empty, %one, %total_r\n"
    return text + f"%totals = expand {'%total' if safe else '%total_r'} [{shape}]\n%p = div %exp, %totals\n"


def grouped(bias, allowed, causal=False):
    """As composites have it: queries by key head and group. Of a causal one the last query is beside the last key."""
    shape, rows = "b, h, g, s, t", "b, h, g, s, 1"
    seen = " where i3 - {} + t - s >= 0" if causal else ""
    ops = f"""
        %product = contract %q[i0, i1, i2, i3, k0], %k[i0, i1, i4, k0] -> [i0, i1, i2, i3, i4] sum [k0]
        %scale_1 = reshape %scale [1, 1, 1, 1, 1]
        %scales = expand %scale_1 [{shape}]
        """
    ops += f"{'%scaled' if allowed else '%scores'} = mul %product, %scales\n"
    if bias:
        ops += "%biased = add %scaled, %bias\n"
    if allowed:
        ops += f"""
        %hidden_0 = const -inf : f32
        %hidden_1 = reshape %hidden_0 [1, 1, 1, 1, 1]
        %hidden = expand %hidden_1 [{shape}]
        %scores = select %allowed, {"%biased" if bias else "%scaled"}, %hidden
        """
    ops += softmax(shape, rows, 4, True, seen.format("i4"))
    ops += "%y = contract %p[i0, i1, i2, i3, k0], %v[i0, i1, k0, i4] -> [i0, i1, i2, i3, i4] sum [k0]" + seen.format("k0")
    inputs = {"q": ("f32", ("b", "h", "g", "s", "d")), "k": ("f32", ("b", "h", "t", "d")), "v": ("f32", ("b", "h", "t", "e")), "scale": ("f32", ())}
    inputs |= {"bias": ("f32", ("b", "h", "g", "s", "t"))} if bias else {}
    inputs |= {"allowed": ("bool", ("b", "h", "g", "s", "t"))} if allowed else {}

    def traced(q, k, v, scale, *rest, heads, g, s, e, **_):
        left = list(rest)
        added, shown = left.pop(0) if bias else None, left.pop(0) if allowed else None
        given = {"out": astra.spec((heads, g, s, e)), "grid": (heads, g, astra.ceildiv(s, M)), "M": M, "CAUSAL": causal}
        return attention(q, k, v, scale, added, shown, ACROSS=False, SAFE=True, SCALED="mul", **given)

    shapes = {"q": ("heads", "g", "s", "d"), "k": ("heads", "t", "d"), "v": ("heads", "t", "e"), "scale": (1,)}
    shapes |= {n: ("heads", "g", "s", "t") for n in ("bias", "allowed") if n in inputs}
    dims = {**DIMS, "g": (1, 16)}
    name = "_".join(["grouped", *(["causal"] if causal else []), *(["masked"] if bias else [])])
    return Form(name, dims, inputs, ops, ("b", "h", "g", "s", "e"), traced, {"heads": "b*h"}, shapes)


def plain(scaled, masked):
    """As exporters write it down: products with the keys transposed, a softmax."""
    shape, rows = "b, h, s, t", "b, h, s, 1"
    ops = "%product = contract %q[i0, i1, i2, k0], %k[i0, i1, k0, i3] -> [i0, i1, i2, i3] sum [k0]\n"
    last = "%product"
    if scaled:
        ops += f"%scale_1 = reshape %scale [1, 1, 1, 1]\n%scales = expand %scale_1 [{shape}]\n{'%scaled' if masked else '%scores'} = {scaled} {last}, %scales\n"
        last = "%scaled"
    if masked:
        ops += f"%scores = add {last}, %bias\n"
    ops += softmax(shape, rows, 3, False) + "%y = contract %p[i0, i1, i2, k0], %v[i0, i1, k0, i3] -> [i0, i1, i2, i3] sum [k0]"
    if not scaled and not masked:
        ops = ops.replace("%scores", "%product")
    inputs = {"q": ("f32", ("b", "h", "s", "d")), "k": ("f32", ("b", "h", "d", "t")), "v": ("f32", ("b", "h", "t", "e"))}
    inputs |= {"scale": ("f32", ())} if scaled else {}
    inputs |= {"bias": ("f32", ("b", "h", "s", "t"))} if masked else {}

    def traced(q, k, v, *rest, heads, s, e, **_):
        left = list(rest)
        scale = left.pop(0) if scaled else None
        bias = left.pop(0) if masked else None
        grid = (heads, 1, astra.ceildiv(s, M))
        return attention(q, k, v, scale, bias, None, out=astra.spec((heads, 1, s, e)), grid=grid, M=M, ACROSS=True, SAFE=False, SCALED=scaled)

    shapes = {"q": ("heads", 1, "s", "d"), "k": ("heads", "d", "t"), "v": ("heads", "t", "e")}
    shapes |= {"scale": (1,)} if scaled else {}
    shapes |= {"bias": ("heads", 1, "s", "t")} if masked else {}
    name = "_".join(["plain", *([scaled] if scaled else []), *(["masked"] if masked else [])])
    return Form(name, DIMS, inputs, ops, ("b", "h", "s", "e"), traced, {"heads": "b*h"}, shapes)


ROWS_OF_TABLE = [
    Row("attention", "a softmax of scaled products of queries and keys, with a mask or without, times values, causal or not",
        [*(grouped(*m) for m in ((True, True), (False, False), (True, True, True), (False, True, True))), *(plain(s, m) for s in ("mul", "div", "") for m in (True, False))]),  # fmt: skip
]
