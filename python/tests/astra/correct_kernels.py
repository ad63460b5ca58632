"""Kernels as people write them, all of them correct: what test_kernel_correct.py compiles, and compares with the interpreter."""

import numpy as np

import astra

kernel = astra.kernel
CASES = {}  # name: kernel, inputs, what it is called with
rng = np.random.default_rng(5)
F32, I32, I64 = astra.float32, astra.int32, astra.int64
V = rng.standard_normal(100, dtype=np.float32)
M = rng.standard_normal((13, 20), dtype=np.float32)
C = rng.standard_normal((3, 8, 10), dtype=np.float32)
IDS = rng.integers(0, 100, 40).astype(np.int32)
WILD = rng.integers(-1000, 1000, 40).astype(np.int64)
BYTES = rng.integers(0, 256, 64).astype(np.uint8)
BOOLS = rng.random(40) > 0.5


def case(*inputs, **given):
    """A row of the table: inputs, shapes of outputs (with dtypes that are not float32), the grid, numbers."""

    def row(f):
        outputs = {k: astra.spec(*(v if isinstance(v[0], tuple) else (v,))) if isinstance(v, tuple) and k.startswith("out") else v for k, v in given.items()}
        made = astra.kernel(f)
        CASES[f.__name__.replace("_", " ")] = made, inputs, outputs
        return made

    return row


# ---- masked tails, strides, views


@case(V, out=(100,), grid=13, B=8)
def tail_with_fill_and_drop(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.load(x, (at,), (B,), fill=0.0) * 2.0, drop=True)


@case(M, out=(13, 20), grid=(4, 3), B=(4, 8))
def tails_of_two_axes(x, out, *, B):
    at = kernel.program_id(0) * B[0], kernel.program_id(1) * B[1]
    kernel.store(out, at, kernel.exp(kernel.load(x, at, B, fill=0.0)), drop=True)


@case(M, out=(20, 13), grid=(4, 3), B=8)
def transpose_by_tiles(x, out, *, B):
    i, j = kernel.program_id(0) * B, kernel.program_id(1) * B
    kernel.store(out, (j, i), kernel.load(x, (i, j), (B, B), fill=0.0).T, drop=True)


@case(V, out=(50,), grid=5, B=10)
def every_second(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.load(x[::2], (at,), (B,)))


@case(V, out=(100,), grid=5, B=10)
def into_every_second(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out[1::2], (at,), kernel.load(x[:50], (at,), (B,)))


@case(V, out=(100,), grid=5, B=10)
def into_both_halves(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out[:50], (at,), kernel.load(x[:50], (at,), (B,)))
    kernel.store(out[50:], (at,), kernel.load(x[50:], (at,), (B,)))


@case(V, out=(100,), grid=10, B=10)
def backwards(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.load(x[::-1], (at,), (B,)))


@case(V, out=(98,), grid=7, B=14)
def neighbours(x, out, *, B):
    at = kernel.program_id(0) * B
    left, mid, right = kernel.load(x[:-2], (at,), (B,)), kernel.load(x[1:-1], (at,), (B,)), kernel.load(x[2:], (at,), (B,))
    kernel.store(out, (at,), left + 2.0 * mid + right)


@case(V, out=(100,), grid=13, B=8)
def neighbours_with_borders(x, out, *, B):
    at = kernel.program_id(0) * B
    left, right = kernel.load(x, (at - 1,), (B,), fill=0.0), kernel.load(x, (at + 1,), (B,), fill=0.0)
    kernel.store(out, (at,), right - left, drop=True)


@case(M, out=(13,), grid=13)
def a_column(x, out):
    i = kernel.program_id(0)
    kernel.store(out, (i,), kernel.load(x[:, 3], (i,), (1,)))


@case(C, out=(10, 3, 8), grid=(3, 8))
def three_axes_turned(x, out):
    c, i = kernel.program_id(0), kernel.program_id(1)
    t = kernel.load(x, (c, i, 0), (1, 1, 10))
    kernel.store(out, (0, c, i), kernel.permute(t, (2, 0, 1)))


@case(V, out=(10, 100), grid=10)
def a_row_for_all(x, out):
    kernel.store(out, (kernel.program_id(0), 0), kernel.load(x, (0,), (100,))[None])


@case(M, out=(6, 20), grid=6)
def pairs_of_rows(x, out):
    i = kernel.program_id(0)
    t = kernel.load(x, (2 * i, 0), (2, 20))
    kernel.store(out, (i, 0), t[:1] * t[1:])


@case(V, out=(96,), grid=(4, 3, 2), B=4)
def three_axes_of_a_grid(x, out, *, B):
    at = ((kernel.program_id(0) * 3 + kernel.program_id(1)) * 2 + kernel.program_id(2)) * B
    kernel.store(out, (at,), kernel.load(x, (at,), (B,)) + 1.0)


@case(V, out=(96,), grid=24, B=4)
def digits_of_one_id(x, out, *, B):
    i, j = kernel.program_id(0) // 6, kernel.program_id(0) % 6
    kernel.store(out, ((j * 4 + i) * B,), kernel.load(x, ((i * 6 + j) * B,), (B,)))


# ---- indices that are computed


@case(V, IDS, out=(40,), grid=5, B=8)
def looked_up_as_assumed(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    i = kernel.load(ids, (at,), (B,))
    kernel.assume((i >= 0) & (i < x.shape[0]))
    kernel.store(out, (at,), kernel.gather(x, (i,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_clipped(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    i = kernel.clip(kernel.load(ids, (at,), (B,)), 0, x.shape[0] - 1)
    kernel.store(out, (at,), kernel.gather(x, (i,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_by_a_remainder(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.load(ids, (at,), (B,)) % 100,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_by_low_bits(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.load(ids, (at,), (B,)) & 63,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_by_bits_of_a_mask(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.load(ids, (at,), (B,)) & 37,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_where_inside(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    i = kernel.load(ids, (at,), (B,))
    inside = (i >= 0) & (i < x.shape[0])
    kernel.store(out, (at,), kernel.where(inside, kernel.gather(x, (kernel.where(inside, i, 0),)), 0.0))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_with_python_min_and_max(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    i = max(min(kernel.load(ids, (at,), (B,)), 99), 0)
    kernel.store(out, (at,), kernel.gather(x, (i,)))


@case(V, BYTES, out=(64,), grid=8, B=8)
def looked_up_by_halves_of_bytes(x, codes, out, *, B):
    at = kernel.program_id(0) * B
    b = kernel.load(codes, (at,), (B,))
    low, high = kernel.cast(b & 15, I32), kernel.cast(b >> 4, I32)
    kernel.store(out, (at,), kernel.gather(x, (low,)) - kernel.gather(x, (high + 16,)))


@case(M, out=(13,), grid=13)
def the_greatest_by_its_index(x, out):
    i = kernel.program_id(0)
    j = kernel.argmax(kernel.load(x, (i, 0), (1, 20)), axis=1)
    kernel.store(out, (i,), kernel.gather(x, (i + kernel.zeros((1,), I64), j)))


@case(M, V, out=(13,), grid=13)
def a_table_by_the_least(x, table, out):
    i = kernel.program_id(0)
    j = kernel.argmin(kernel.load(x, (i, 0), (1, 20)), axis=1)
    kernel.store(out, (i,), kernel.gather(table, (j * 2 + 1,)))


@case(M, V, out=(13, 20), grid=13)
def a_table_by_ranks(x, table, out):
    i = kernel.program_id(0)
    order = kernel.argsort(kernel.load(x, (i, 0), (1, 20)), axis=1)
    kernel.store(out, (i, 0), kernel.gather(table, (order,)))


@case(M, V, out=(13, 3), grid=13)
def a_table_by_the_three_greatest(x, table, out):
    i = kernel.program_id(0)
    _, order = kernel.topk(kernel.load(x, (i, 0), (1, 20)), 3, axis=1)
    kernel.store(out, (i, 0), kernel.gather(table, (order,)))


@case(V, out=(40,), grid=5, B=8)
def exchanged_neighbours(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, ((at + kernel.arange(B, I64)) ^ 1,)))


@case(V, BOOLS, out=(40,), grid=5, B=8)
def one_of_two_indices(x, which, out, *, B):
    at = kernel.program_id(0) * B
    k = at + kernel.arange(B, I64)
    i = kernel.where(kernel.load(which, (at,), (B,)), k, 99 - k)
    kernel.store(out, (at,), kernel.gather(x, (i,)))


@case(V, BOOLS, out=(40,), grid=5, B=8)
def an_index_of_a_bool(x, which, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.cast(kernel.load(which, (at,), (B,)), I32) * 50,)))


@case(V, BOOLS, out=(5,), grid=5, B=8)
def counted_and_looked_up(x, which, out, *, B):
    at = kernel.program_id(0) * B
    n = kernel.sum(kernel.cast(kernel.load(which, (at,), (B,)), I32), keepdims=True)
    kernel.store(out, (kernel.program_id(0),), kernel.gather(x, (n,)))


@case(V, WILD, out=(40,), grid=5, B=8)
def a_magnitude_as_an_index(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.abs(kernel.load(ids, (at,), (B,)) % 7 - 3),)))


@case(V, WILD, out=(40,), grid=5, B=8)
def looked_up_in_a_branch(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    i = kernel.load(ids, (at,), (B,))
    if kernel.all((i >= -500) & (i < 400)):
        t = kernel.gather(x, ((i + 500) // 10,))
    else:
        t = kernel.zeros((B,))
    kernel.store(out, (at,), t)


@case(V, np.array([3], np.int64), out=(8,), grid=1)
def a_block_at_a_place_that_was_read(x, where, out):
    i = kernel.load(where, (0,), (1,))
    at = kernel.sum(kernel.clip(i, 0, 92))
    kernel.store(out, (0,), kernel.load(x, (at,), (8,)))


@case(V, np.array([90], np.int64), out=(20,), grid=1)
def a_block_with_fill_at_such_a_place(x, where, out):
    at = kernel.sum(kernel.load(where, (0,), (1,)))
    kernel.store(out, (0,), kernel.load(x, (at,), (20,), fill=-1.0))


@case(V, IDS, out=(40,), grid=5, B=8)
def gather_with_fill(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.gather(x, (kernel.load(ids, (at,), (B,)) * 2,), fill=1.5))


# ---- loops


@case(M, out=(13,), grid=13, B=4)
def sums_of_rows(x, out, *, B):
    i = kernel.program_id(0)
    acc = kernel.zeros((1, B))
    for k in range(x.shape[1] // B):
        acc += kernel.load(x, (i, k * B), (1, B))
    kernel.store(out, (i,), kernel.sum(acc, axis=1))


@case(M, M.T.copy(), out=(13, 13), grid=(2, 2), B=8)
def product(a, b, out, *, B):
    i, j = kernel.program_id(0) * B, kernel.program_id(1) * B
    acc = kernel.zeros((B, B))
    for k in range(astra.ceildiv(a.shape[1], B)):
        acc = kernel.dot(kernel.load(a, (i, k * B), (B, B), fill=0.0), kernel.load(b, (k * B, j), (B, B), fill=0.0), acc)
    kernel.store(out, (i, j), acc, drop=True)


@case(M, np.where(np.arange(20)[:, None] > 16, np.inf, M.T).astype(np.float32), out=(13, 13), grid=(2, 2), B=8)
def lower_product(a, b, out, *, B):
    i, j = kernel.program_id(0) * B, kernel.program_id(1) * B
    rows, columns = kernel.load(a, (i, 0), (B, 20), fill=0.0), kernel.load(b, (0, j), (20, B), fill=0.0)
    kernel.store(out, (i, j), kernel.dot(rows, columns, tril=i + 4 - (a.shape[1] - 20)), drop=True)


@case(IDS.reshape(5, 8), out=((3, 5, 5), I32), grid=3)
def lower_products_of_integers(x, out):
    t = kernel.load(x, (0, 0), (5, 8))
    p = kernel.program_id(0)
    kernel.store(out, (p, 0, 0), (kernel.dot(t, t.T, tril=-2) + kernel.dot(t, t.T, tril=9) + kernel.dot(t, t.T, tril=3 * p - 9))[None])


@case(M, out=(13, 20), grid=13, B=5)
def softmax_in_two_passes(x, out, *, B):
    i = kernel.program_id(0)
    top = kernel.full((1, B), -1e30)
    for k in range(4):
        top = kernel.maximum(top, kernel.load(x, (i, k * B), (1, B)))
    top = kernel.max(top, axis=1, keepdims=True)
    total = kernel.zeros((1, B))
    for k in range(4):
        total += kernel.exp(kernel.load(x, (i, k * B), (1, B)) - top)
    total = kernel.sum(total, axis=1, keepdims=True)
    for k in range(4):
        kernel.store(out, (i, k * B), kernel.exp(kernel.load(x, (i, k * B), (1, B)) - top) / total)


@case(V, out=(100,), grid=1, B=10)
def a_loop_with_stores(x, out, *, B):
    for k in range(10):
        kernel.store(out, (k * B,), kernel.load(x, (k * B,), (B,)) + kernel.cast(k + kernel.zeros((B,), I64), F32))


@case(V, out=(100,), grid=2, B=10)
def a_loop_downwards(x, out, *, B):
    first = kernel.program_id(0) * 50
    for k in range(4, -1, -1):
        kernel.store(out, (first + 40 - k * B,), kernel.load(x, (first + k * B,), (B,)))


@case(V, out=(12,), grid=1, B=4)
def a_loop_without_a_step(x, out, *, B):
    for k in range(x.shape[0] // 200):
        kernel.store(out, (k * B,), kernel.load(x, (k * B,), (B,)))


@case(V, out=(8,), grid=1)
def unrolled(x, out):
    t = kernel.zeros((8,))
    for k in kernel.static_for(3):
        t = t * 0.5 + kernel.load(x, (k * 8,), (8,))
    kernel.store(out, (0,), t)


@case(C, out=(3, 8), grid=3)
def loops_in_loops(x, out):
    c = kernel.program_id(0)
    acc = kernel.zeros((1, 8))
    for i in range(2):
        for j in range(5):
            acc += kernel.load(x, (c, 0, i * 5 + j), (1, 8, 1))[:, :, 0]
    kernel.store(out, (c, 0), acc)


@case(V, out=(4,), grid=4)
def as_many_steps_as_the_program_says(x, out):
    i = kernel.program_id(0)
    acc = kernel.zeros((1,))
    for k in range(i * 3):
        acc += kernel.load(x, (k,), (1,), fill=0.0)
    kernel.store(out, (i,), acc)


@case(V, out=(100,), grid=10, B=10)
def a_running_value(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.cumsum(kernel.load(x, (at,), (B,))))


# ---- while, if


@case(V, out=(4,), grid=1)
def a_while_with_a_number(x, out):
    k = 0
    acc = kernel.zeros((4,))
    while k < 6:
        acc += kernel.load(x, (k * 4,), (4,))
        k += 1
    kernel.store(out, (0,), acc)


@case(V, out=(4,), grid=1)
def a_while_without_a_step(x, out):
    k = 6
    acc = kernel.load(x, (0,), (4,))
    while k < 6:
        acc += 1.0
        k += 1
    kernel.store(out, (0,), acc)


@case(np.array([5.0, 100.0, 0.5, 17.0], np.float32), out=((4,), "int32"), grid=4)
def halved_until_below_one(x, out):
    i = kernel.program_id(0)
    t, n = kernel.load(x, (i,), (1,)), kernel.zeros((1,), I32)
    while kernel.any(t >= 1.0):
        t, n = t * 0.5, n + 1
    kernel.store(out, (i,), n)


@case(V, out=(100,), grid=10, B=10)
def an_if_of_data(x, out, *, B):
    at = kernel.program_id(0) * B
    t = kernel.load(x, (at,), (B,))
    if kernel.sum(t) > 0.0:
        t = t * 2.0
    else:
        t = -t
    kernel.store(out, (at,), t)


@case(V, out=(100,), grid=10, B=10)
def an_if_of_a_program(x, out, *, B):
    i = kernel.program_id(0)
    t = kernel.load(x, (i * B,), (B,))
    if i == 3:
        t = kernel.zeros((B,))
    kernel.store(out, (i * B,), t)


@case(V, out=(100,), grid=10, B=10, DOUBLE=True)
def an_if_of_a_number(x, out, *, B, DOUBLE):
    at = kernel.program_id(0) * B
    t = kernel.load(x, (at,), (B,))
    if DOUBLE:
        t = t + t
    kernel.store(out, (at,), t)


# ---- several outputs, several stores


@case(M, out0=(13,), out1=((13,), "int64"), grid=13)
def the_greatest_and_its_index(x, out0, out1):
    i = kernel.program_id(0)
    t = kernel.load(x, (i, 0), (1, 20))
    kernel.store(out0, (i,), kernel.max(t, axis=1))
    kernel.store(out1, (i,), kernel.argmax(t, axis=1))


@case(M, out0=(13, 20), out1=(13,), out2=(13,), grid=13)
def layer_norm_with_its_moments(x, out0, out1, out2):
    i = kernel.program_id(0)
    t = kernel.load(x, (i, 0), (1, 20))
    mean = kernel.sum(t, axis=1, keepdims=True) / 20.0
    d = t - mean
    r = kernel.rsqrt(kernel.sum(d * d, axis=1, keepdims=True) / 20.0 + 1e-5)
    kernel.store(out0, (i, 0), d * r)
    kernel.store(out1, (i,), mean[:, 0])
    kernel.store(out2, (i,), r[:, 0])


@case(V, out=(100,), grid=5, B=10)
def two_stores_side_by_side(x, out, *, B):
    at = kernel.program_id(0) * 2 * B
    kernel.store(out, (at,), kernel.load(x, (at,), (B,)))
    kernel.store(out, (at + B,), -kernel.load(x, (at + B,), (B,)))


@case(V, out0=(100,), out1=((100,), "bool"), grid=13, B=8)
def values_and_signs(x, out0, out1, *, B):
    at = kernel.program_id(0) * B
    t = kernel.load(x, (at,), (B,), fill=0.0)
    kernel.store(out0, (at,), kernel.abs(t), drop=True)
    kernel.store(out1, (at,), t < 0.0, drop=True)


# ---- scatters and atomics


@case(IDS, out=((100,), "int32"), grid=5, B=8)
def counts(ids, out, *, B):
    i = kernel.load(ids, (kernel.program_id(0) * B,), (B,))
    kernel.atomic_add(out, (i,), kernel.full((B,), 1, I32), drop=True)


@case(WILD, out=((10,), "int64"), grid=5, B=8)
def greatest_of_classes(x, out, *, B):
    t = kernel.load(x, (kernel.program_id(0) * B,), (B,))
    kernel.atomic_max(out, (t % 10,), t)


@case(WILD, out=((10,), "int64"), grid=5, B=8)
def least_of_classes(x, out, *, B):
    t = kernel.load(x, (kernel.program_id(0) * B,), (B,))
    kernel.atomic_min(out, (t & 7,), t)


@case(V, IDS, out=(100,), grid=5, B=8)
def sums_of_floats_by_index(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    kernel.scatter(out, (kernel.load(ids, (at,), (B,)),), kernel.load(x, (at,), (B,)), mode="add", drop=True)


@case(V, out=(100,), grid=10, B=10)
def scattered_backwards(x, out, *, B):
    at = kernel.program_id(0) * B + kernel.arange(B, I64)
    kernel.scatter(out, (99 - at,), kernel.load(x, (kernel.program_id(0) * B,), (B,)))


@case(BYTES, out=((8, 16), "int32"), grid=8)
def histograms(x, out):
    i = kernel.program_id(0)
    kernel.store(out, (i, 0), kernel.histogram(kernel.load(x, (i * 8,), (8,)) & 15, 16)[None])


# ---- dtypes, folds, orders


@case(BYTES, out=(64,), grid=8, SCALE=0.25)
def dequantized(x, out, *, SCALE):
    at = kernel.program_id(0) * 8
    kernel.store(out, (at,), (kernel.cast(kernel.load(x, (at,), (8,)), F32) - 128.0) * SCALE)


@case(V, out=((100,), "int8"), grid=10, B=10)
def quantized(x, out, *, B):
    at = kernel.program_id(0) * B
    t = kernel.clip(kernel.round(kernel.load(x, (at,), (B,)) * 50.0), -128.0, 127.0)
    kernel.store(out, (at,), kernel.cast(t, "int8"))


@case(M, out=((13, 20), "float16"), grid=13)
def to_halves(x, out):
    i = kernel.program_id(0)
    kernel.store(out, (i, 0), kernel.cast(kernel.load(x, (i, 0), (1, 20)), "float16"))


@case(M, out=(13, 20), grid=13)
def sorted_rows(x, out):
    i = kernel.program_id(0)
    kernel.store(out, (i, 0), kernel.sort(kernel.load(x, (i, 0), (1, 20)), axis=1))


@case(M, out=(13, 20), grid=13)
def picked_in_order(x, out):
    i = kernel.program_id(0)
    t = kernel.load(x, (i, 0), (1, 20))
    kernel.store(out, (i, 0), kernel.pick(t, kernel.argsort(t, axis=1), axis=1))


@case(M, out=(13, 20), grid=13)
def joined_halves(x, out):
    i = kernel.program_id(0)
    a, b = kernel.split(kernel.load(x, (i, 0), (1, 20)), 2, axis=1)
    kernel.store(out, (i, 0), kernel.join((b, a), axis=1))


@case(M, out=(13, 20), grid=13)
def rotated_pairs(x, out):
    i = kernel.program_id(0)
    t = kernel.reshape(kernel.load(x, (i, 0), (1, 20)), (10, 2))
    a, b = t[:, 0], t[:, 1]
    kernel.store(out, (i, 0), kernel.reshape(kernel.join((a[:, None] - b[:, None], a[:, None] + b[:, None]), axis=1), (1, 20)))


@kernel.function
def gelu(t):
    return 0.5 * t * (1.0 + kernel.erf(t * 0.7071067811865476))


@case(V, out=(100,), grid=10, B=10)
def with_a_helper(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), gelu(kernel.load(x, (at,), (B,))))


@case(M, out=((13,), "bool"), grid=13)
def any_of_rows(x, out):
    i = kernel.program_id(0)
    kernel.store(out, (i,), kernel.any(kernel.load(x, (i, 0), (1, 20)) > 2.0, axis=1))


@case(V, WILD, out=(40,), grid=5, B=8)
def selected_by_integers(x, ids, out, *, B):
    at = kernel.program_id(0) * B
    odd = kernel.load(ids, (at,), (B,)) % 2 == 1
    kernel.store(out, (at,), kernel.where(odd, kernel.load(x, (at,), (B,)), 0.0))


@case(np.zeros((0,), np.float32), out=(0,), grid=0, B=8)
def nothing_at_all(x, out, *, B):
    at = kernel.program_id(0) * B
    kernel.store(out, (at,), kernel.load(x, (at,), (B,), fill=0.0), drop=True)
