"""Kernels with declared derivatives, each beside a function of the package that computes the same: of float64, so that what differs is the order of sums alone."""

import astra

kernel = astra.kernel
F64 = "float64"


def spec(*shape):
    return astra.spec(shape, F64)


@astra.kernel
def product(a, b, out, *, M, N, K):
    i, j = kernel.program_id(0), kernel.program_id(1)
    acc = kernel.zeros((M, N), out.dtype)
    for k in range(astra.ceildiv(a.shape[1], K)):
        acc = kernel.dot(kernel.load(a, (i * M, k * K), (M, K), fill=0.0), kernel.load(b, (k * K, j * N), (K, N), fill=0.0), acc)
    kernel.store(out, (i * M, j * N), acc, drop=True)


def matmul(a, b):
    m, n = a.shape[0], b.shape[1]
    return product(a, b, out=spec(m, n), grid=(astra.ceildiv(m, 4), astra.ceildiv(n, 4)), M=4, N=4, K=4)


def product_backward(r, g):
    return matmul(g, r[1].T), matmul(r[0].T, g)


product.defvjp(lambda a, b, **call: (product(a, b, **call), (a, b)), product_backward)


@astra.kernel
def softmax_rows(x, out, *, WIDTH):
    row = kernel.program_id(0)
    t = kernel.load(x, (row, 0), (1, WIDTH), fill=-float("inf"))
    e = kernel.exp(t - kernel.max(t, axis=1, keepdims=True))
    kernel.store(out, (row, 0), e / kernel.sum(e, axis=1, keepdims=True), drop=True)


@astra.kernel
def softmax_backward(y, g, out, *, WIDTH):
    row = kernel.program_id(0)
    t, s = kernel.load(y, (row, 0), (1, WIDTH), fill=0.0), kernel.load(g, (row, 0), (1, WIDTH), fill=0.0)
    kernel.store(out, (row, 0), t * (s - kernel.sum(t * s, axis=1, keepdims=True)), drop=True)


def softmax_forward(x, **call):
    y = softmax_rows(x, **call)
    return y, y


softmax_rows.defvjp(softmax_forward, lambda y, g: (softmax_backward(y, g, out=spec(*y.shape), grid=y.shape[0], WIDTH=16),))


@astra.kernel
def normed_rows(x, w, out, scales, *, WIDTH, EPS):
    row, n = kernel.program_id(0), x.shape[1]
    t = kernel.load(x, (row, 0), (1, WIDTH), fill=0.0)
    scale = kernel.rsqrt(kernel.sum(t * t, axis=1) / n + EPS)
    kernel.store(scales, (row,), scale)
    kernel.store(out, (row, 0), t * scale[:, None] * kernel.load(w[None], (0, 0), (1, WIDTH), fill=0.0), drop=True)


@astra.kernel
def normed_backward(x, w, s, g, dx, dw, *, WIDTH):
    row, n = kernel.program_id(0), x.shape[1]
    t, c = kernel.load(x, (row, 0), (1, WIDTH), fill=0.0), kernel.load(g, (row, 0), (1, WIDTH), fill=0.0)
    scale = kernel.load(s, (row,), (1,))[:, None]
    weighted = c * kernel.load(w[None], (0, 0), (1, WIDTH), fill=0.0)
    mean = kernel.sum(weighted * t, axis=1, keepdims=True) * scale * scale / n
    kernel.store(dx, (row, 0), (weighted - t * mean) * scale, drop=True)
    kernel.scatter(dw, (kernel.arange(WIDTH),), (c * t * scale)[0], mode="add", drop=True)


def normed_forward(x, w, **call):
    y, s = normed_rows(x, w, **call)
    return (y, s), (x, w, s)


def normed_pull(r, g):
    x, w, s = r
    return normed_backward(x, w, s, g[0], dx=spec(*x.shape), dw=spec(*w.shape), grid=x.shape[0], WIDTH=16)


normed_rows.defvjp(normed_forward, normed_pull)


def rms_norm(x, w):
    return normed_rows(x, w, out=spec(*x.shape), scales=spec(x.shape[0]), grid=x.shape[0], WIDTH=16, EPS=1e-5)[0]


@astra.kernel
def taken(table, index, out):
    i = kernel.load(index, (kernel.program_id(0),), (1,))
    kernel.store(out, (kernel.program_id(0), 0), kernel.gather(table, (i[:, None], kernel.arange(table.shape[1])[None]), fill=0.0))


@astra.kernel
def added_up(g, index, out):
    row = kernel.program_id(0)
    columns = kernel.arange(g.shape[1])[None]
    i = kernel.broadcast(kernel.load(index, (row,), (1,))[:, None], columns.shape)
    kernel.scatter(out, (i, columns), kernel.load(g, (row, 0), (1, g.shape[1])), mode="add", drop=True)


taken.defvjp(lambda table, index, **call: (taken(table, index, **call), (table, index)),
             lambda r, g: (added_up(g, r[1], out=spec(*r[0].shape), grid=g.shape[0]), None))  # fmt: skip


@astra.kernel
def gated(x, y, out, *, BLOCK):
    at = (kernel.program_id(0) * BLOCK,)
    a, b = kernel.load(x, at, (BLOCK,), fill=0.0), kernel.load(y, at, (BLOCK,), fill=0.0)
    kernel.store(out, at, a * kernel.sigmoid(a) * b, drop=True)


@astra.kernel
def gated_backward(x, y, g, dx, dy, *, BLOCK):
    at = (kernel.program_id(0) * BLOCK,)
    a, b, c = kernel.load(x, at, (BLOCK,), fill=0.0), kernel.load(y, at, (BLOCK,), fill=0.0), kernel.load(g, at, (BLOCK,), fill=0.0)
    s = kernel.sigmoid(a)
    kernel.store(dx, at, c * b * s * (1.0 + a * (1.0 - s)), drop=True)
    kernel.store(dy, at, c * a * s, drop=True)


gated.defvjp(lambda x, y, **call: (gated(x, y, **call), (x, y)),
             lambda r, g: gated_backward(*r, g, dx=spec(*g.shape), dy=spec(*g.shape), grid=astra.ceildiv(g.shape[0], 8), BLOCK=8))  # fmt: skip


@astra.kernel
def square(x, out, *, BLOCK=8):
    at = kernel.program_id(0) * BLOCK
    t = kernel.load(x, (at,), (BLOCK,), fill=0.0)
    kernel.store(out, (at,), t * t, drop=True)


square.defvjp(lambda x, **call: (square(x, **call), x), lambda x, cotangent: (2.0 * x * cotangent,))  # that of docs/kernels.md

INDEX = astra.tensor([3, 0, 0, 4, 9, 3])
CASES = {  # name: a function that calls the kernel, one that does not, the shapes of their arguments
    "product": (matmul, lambda a, b: a @ b, [(5, 7), (7, 6)]),
    "softmax": (lambda x: softmax_rows(x, out=spec(*x.shape), grid=x.shape[0], WIDTH=16), lambda x: astra.softmax(x, axis=1), [(4, 13)]),
    "norm": (rms_norm, lambda x, w: x / astra.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w, [(4, 13), (13,)]),
    "gather": (lambda t: taken(t, INDEX, out=spec(6, 3), grid=6), lambda t: astra.take(astra.concat([t, t[:1] * 0.0]), astra.tensor([3, 0, 0, 4, 5, 3]), axis=0), [(5, 3)]),
    "gate": (lambda x, y: gated(x, y, out=spec(*x.shape), grid=3, BLOCK=8), lambda x, y: x * astra.sigmoid(x) * y, [(20,), (20,)]),
    "square": (lambda x: square(x, out=spec(*x.shape), grid=3), lambda x: x * x, [(20,)]),
}  # fmt: skip
