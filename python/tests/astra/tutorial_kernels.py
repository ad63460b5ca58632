"""The kernels of tutorials, in the kernel language, each with arguments and what NumPy gives for them."""

import numpy as np

import astra

kernel = astra.kernel
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@astra.kernel
def add(x, y, out, *, BLOCK):
    at = kernel.program_id(0) * BLOCK
    a = kernel.load(x, (at,), (BLOCK,), fill=0.0)
    b = kernel.load(y, (at,), (BLOCK,), fill=0.0)
    kernel.store(out, (at,), a + b, drop=True)


@astra.kernel
def softmax(x, out, *, WIDTH):
    row = kernel.program_id(0)
    t = kernel.load(x, (row, 0), (1, WIDTH), fill=-float("inf"))
    e = kernel.exp(t - kernel.max(t, axis=1, keepdims=True))
    kernel.store(out, (row, 0), e / kernel.sum(e, axis=1, keepdims=True), drop=True)


@astra.kernel
def layer_norm(x, weight, bias, out, *, BLOCK, EPS=1e-5):
    row, n = kernel.program_id(0), x.shape[1]
    total = kernel.zeros((1, BLOCK))
    for k in range(astra.ceildiv(n, BLOCK)):
        total += kernel.load(x, (row, k * BLOCK), (1, BLOCK), fill=0.0)
    mean = kernel.sum(total) / n
    total = kernel.zeros((1, BLOCK))
    for k in range(astra.ceildiv(n, BLOCK)):
        t = kernel.load(x, (row, k * BLOCK), (1, BLOCK), fill=0.0)
        d = kernel.where(k * BLOCK + kernel.arange(BLOCK) < n, t - mean, 0.0)
        total += d * d
    scale = kernel.rsqrt(kernel.sum(total) / n + EPS)
    for k in range(astra.ceildiv(n, BLOCK)):
        t = kernel.load(x, (row, k * BLOCK), (1, BLOCK), fill=0.0)
        w = kernel.load(weight, (k * BLOCK,), (BLOCK,), fill=0.0)
        b = kernel.load(bias, (k * BLOCK,), (BLOCK,), fill=0.0)
        kernel.store(out, (row, k * BLOCK), (t - mean) * scale * w + b, drop=True)


@astra.kernel
def matmul(a, b, out, *, M, N, K):
    i, j = kernel.program_id(0), kernel.program_id(1)
    acc = kernel.zeros((M, N))
    for k in range(astra.ceildiv(a.shape[1], K)):
        x = kernel.load(a, (i * M, k * K), (M, K), fill=0.0)
        y = kernel.load(b, (k * K, j * N), (K, N), fill=0.0)
        acc = kernel.dot(x, y, acc)
    kernel.store(out, (i * M, j * N), kernel.cast(acc, out.dtype), drop=True)


@astra.kernel
def dequantised_matmul(a, codes, scales, out, *, M, N, GROUP):
    i, j = kernel.program_id(0), kernel.program_id(1)
    acc = kernel.zeros((M, N))
    for k in range(a.shape[1] // GROUP):
        x = kernel.load(a, (i * M, k * GROUP), (M, GROUP), fill=0.0)
        q = kernel.load(codes, (k * GROUP, j * N), (GROUP, N), fill=0)
        s = kernel.load(scales, (k, j * N), (1, N), fill=0.0)
        acc = kernel.dot(x, kernel.cast(q, astra.float32) * s, acc)
    kernel.store(out, (i * M, j * N), acc, drop=True)


@astra.kernel
def attention(q, k, v, out, *, M, N, SCALE):
    i, n = kernel.program_id(0), k.shape[0]
    width = q.shape[1]
    t = kernel.load(q, (i * M, 0), (M, width), fill=0.0)
    greatest = kernel.full((M, 1), -float("inf"))
    for j in range(n // N):
        s = kernel.dot(t, kernel.load(k, (j * N, 0), (N, width)).T) * SCALE
        greatest = kernel.maximum(greatest, kernel.max(s, axis=1, keepdims=True))
    total, acc = kernel.zeros((M, 1)), kernel.zeros((M, width))
    for j in range(n // N):
        s = kernel.dot(t, kernel.load(k, (j * N, 0), (N, width)).T) * SCALE
        p = kernel.exp(s - greatest)
        total += kernel.sum(p, axis=1, keepdims=True)
        acc = kernel.dot(p, kernel.load(v, (j * N, 0), (N, width)), acc)
    kernel.store(out, (i * M, 0), acc / total, drop=True)


@astra.kernel
def row_sums(x, out, *, ROWS, BLOCK):
    at = kernel.program_id(0) * ROWS
    total = kernel.zeros((ROWS, BLOCK))
    for k in range(astra.ceildiv(x.shape[1], BLOCK)):
        total += kernel.load(x, (at, k * BLOCK), (ROWS, BLOCK), fill=0.0)
    kernel.store(out, (at,), kernel.sum(total, axis=1), drop=True)


@astra.kernel
def running_sums(x, out, *, BLOCK):
    row = kernel.program_id(0)
    before = kernel.zeros((1, 1))
    for k in range(x.shape[1] // BLOCK):
        t = kernel.cumsum(kernel.load(x, (row, k * BLOCK), (1, BLOCK)), axis=1) + before
        kernel.store(out, (row, k * BLOCK), t)
        before = t[:, BLOCK - 1 : BLOCK]


@astra.kernel
def histogram(x, out, *, BLOCK, BINS):
    t = kernel.load(x, (kernel.program_id(0) * BLOCK,), (BLOCK,), fill=-1)
    kernel.atomic_add(out, (kernel.arange(BINS),), kernel.histogram(t, BINS))


@astra.kernel
def convolution(x, w, out, *, ROWS, COLUMNS):
    f, i, j = kernel.program_id(0), kernel.program_id(1), kernel.program_id(2)
    acc = kernel.zeros((ROWS, COLUMNS))
    for c in range(x.shape[0]):
        for u in kernel.static_for(w.shape[2]):
            for v in kernel.static_for(w.shape[3]):
                t = kernel.load(x, (c, i * ROWS + u - 1, j * COLUMNS + v - 1), (1, ROWS, COLUMNS), fill=0.0)
                acc = kernel.fma(t[0], kernel.load(w, (f, c, u, v), (1, 1, 1, 1))[0, 0], acc)
    kernel.store(out, (f, i * ROWS, j * COLUMNS), acc[None, :, :], drop=True)


def cases():
    """Name: kernel, inputs, what the call says, what NumPy gives."""
    x, y = normal(1000), normal(1000)
    yield "add", add, (x, y), {"out": astra.spec((1000,)), "grid": astra.ceildiv(1000, 64), "BLOCK": 64}, x + y
    m = normal(5, 37)
    e = np.exp(m - m.max(1, keepdims=True))
    yield "softmax", softmax, (m,), {"out": astra.spec((5, 37)), "grid": 5, "WIDTH": 64}, e / e.sum(1, keepdims=True)
    w, b = normal(37), normal(37)
    normed = (m - m.mean(1, keepdims=True)) / np.sqrt(m.var(1, keepdims=True) + 1e-5) * w + b
    yield "layer norm", layer_norm, (m, w, b), {"out": astra.spec((5, 37)), "grid": 5, "BLOCK": 16}, normed
    p, q = normal(33, 45), normal(45, 29)
    yield "matmul", matmul, (p, q), {"out": astra.spec((33, 29)), "grid": (3, 2), "M": 16, "N": 16, "K": 16}, p @ q
    halves = astra.asarray(p).astype("bfloat16"), astra.asarray(q).astype("bfloat16")
    wide = [t.astype("float32").numpy() for t in halves]
    yield "matmul of bf16", matmul, halves, {"out": astra.spec((33, 29)), "grid": (3, 2), "M": 16, "N": 16, "K": 16}, wide[0] @ wide[1]
    a, codes, scales = normal(12, 64), RNG.integers(-8, 8, (64, 24)).astype(np.int8), normal(4, 24)
    full = codes.astype(np.float32) * np.repeat(scales, 16, axis=0)
    yield "dequantised matmul", dequantised_matmul, (a, codes, scales), {"out": astra.spec((12, 24)), "grid": (2, 2), "M": 8, "N": 16, "GROUP": 16}, a @ full
    k, v, t = normal(32, 16), normal(32, 16), normal(20, 16)
    s = t @ k.T * 0.25
    e = np.exp(s - s.max(1, keepdims=True))
    yield "attention", attention, (t, k, v), {"out": astra.spec((20, 16)), "grid": 3, "M": 8, "N": 8, "SCALE": 0.25}, e / e.sum(1, keepdims=True) @ v
    yield "reduction", row_sums, (p,), {"out": astra.spec((33,)), "grid": 5, "ROWS": 8, "BLOCK": 16}, p.sum(1)
    z = normal(3, 48)
    yield "scan", running_sums, (z,), {"out": astra.spec((3, 48)), "grid": 3, "BLOCK": 16}, np.cumsum(z, axis=1)
    h = RNG.integers(0, 10, 100).astype(np.int32)
    yield "histogram", histogram, (h,), {"out": astra.spec((10,), "int32"), "grid": 7, "BLOCK": 16, "BINS": 10}, np.bincount(h, minlength=10)
    image, filters = normal(3, 10, 12), normal(4, 3, 3, 3)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    given = {"out": astra.spec((4, 10, 12)), "grid": (4, 2, 2), "ROWS": 8, "COLUMNS": 8}
    yield "convolution", convolution, (image, filters), given, np.einsum("cijuv,fcuv->fij", windows, filters)


CASES = {name: row for name, *row in cases()}
