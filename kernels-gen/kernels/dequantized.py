"""Products by weights of few bits, a scale for 32 elements of a row: a program has M rows of the input and N of the weight.

Keeps:    bits: an element of the weight is computed as the ops do, and the product is one sum over the whole row (chain512).
"""

import astra

from .forms import Form, Row

kernel = astra.kernel
BLOCK, M, N = 32, 16, 16


@astra.kernel
def dequantized_product(x, codes, scales, least, out, *, M, N, BLOCK, OFFSET):
    i, j = kernel.program_id(0), kernel.program_id(1)
    blocks, width = scales.shape[1], x.shape[1]
    t = kernel.load(x, (i * M, 0), (M, width), fill=0.0)
    q = kernel.load(codes, (j * N, 0), (N, width), fill=0)
    if OFFSET:
        q = kernel.cast(kernel.cast(q, astra.uint8), astra.int8) - OFFSET
    elif q.dtype != astra.int8:
        q = kernel.cast(q, astra.uint8)
    d = kernel.cast(kernel.load(scales, (j * N, 0), (N, blocks), fill=0.0), astra.float32)
    w = kernel.broadcast(d[:, :, None], (N, blocks, BLOCK)) * kernel.reshape(kernel.cast(q, astra.float32), (N, blocks, BLOCK))
    if least is not None:
        m = kernel.cast(kernel.load(least, (j * N, 0), (N, blocks), fill=0.0), astra.float32)
        w = w + kernel.broadcast(m[:, :, None], (N, blocks, BLOCK))
    kernel.store(out, (i * M, j * N), kernel.dot(t, kernel.reshape(w, (N, width)).T), drop=True)


ROWS = {2: [(1, 1 << 16)], 3: [(1, 64), (1, 1024)]}  # a product is of 2^48 elements at most
WEIGHT = {"n": (1, 1 << 17), "k": (1, 1024)}  # rows, blocks of a row


def repeated(name, plane):
    """%name: one of 32 elements for each of them."""
    return f"""
        %{name}_f = cast {plane} : f32[n, k]
        %{name}_1 = reshape %{name}_f [n, k, 1]
        %{name}_r = expand %{name}_1 [n, k, {BLOCK}]
        %{name} = reshape %{name}_r [n, k*{BLOCK}]
        """


def form(name, code, offset, least, rank):
    axes = [f"{letter}{rank}" for letter in "ab"[: rank - 1]]
    labels = ", ".join(f"i{i}" for i in range(rank - 1))
    wide = f"[n, k*{BLOCK}]"
    ops = repeated("scale", "%d")
    if code == "u4":
        ops += f"%bytes = cast %q : u8{wide}\n"
    if offset:
        ops += f"%signed = cast %bytes : i8{wide}\n%offset_0 = const {offset} : i8\n%offset_1 = reshape %offset_0 [1, 1]\n%offset = expand %offset_1 {wide}\n"
        ops += "%whole = sub %signed, %offset\n"
    ops += f"%codes = cast {'%whole' if offset else '%bytes' if code == 'u4' else '%q'} : f32{wide}\n%scaled = mul %scale, %codes\n"
    if least:
        ops += repeated("least", "%m") + "%w = add %scaled, %least\n"
    ops += f"%y = contract %x[{labels}, k0], {'%w' if least else '%scaled'}[i{rank - 1}, k0] -> [{labels}, i{rank - 1}] sum [k0]"
    inputs = {"x": ("f32", (*axes, f"k*{BLOCK}")), "q": (code, ("n", f"k*{BLOCK}")), "d": ("f16", ("n", "k"))}
    inputs |= {"m": ("f16", ("n", "k"))} if least else {}

    def traced(x, q, d, m=None, *, rows, n, **_):
        grid = (astra.ceildiv(rows, M), astra.ceildiv(n, N))
        return dequantized_product(x, q, d, m, out=astra.spec((rows, n)), grid=grid, M=M, N=N, BLOCK=BLOCK, OFFSET=offset)

    flat, shapes = {"rows": "*".join(axes)}, {"x": ("rows", f"k*{BLOCK}")}
    return Form(f"{name}_{rank}", {**dict(zip(axes, ROWS[rank])), **WEIGHT}, inputs, ops, (*axes, "n"), traced, flat, shapes)


ROWS_OF_TABLE = [
    Row("dequantized-product", "products by weights of the formats Q8_0, Q4_0 and Q4_1, of inputs of 2 or 3 axes",
        [form(name, *what, rank) for rank in ROWS for name, *what in (("q8_0", "i8", 0, False), ("q4_0", "u4", 8, False), ("q4_1", "u4", 0, True))]),  # fmt: skip
]
