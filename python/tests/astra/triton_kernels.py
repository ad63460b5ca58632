"""Kernels in Triton's language, of the algorithms of its tutorials 01 to 09: what each is launched with, and what NumPy says that it gives."""

import math

import numpy as np

import astra.kernel.triton as triton
import astra.kernel.triton.language as tl
from astra.kernel.triton.language.extra import libdevice

RNG = np.random.default_rng(11)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape, dtype=np.float32).astype(dtype)


# ---- 01: vector add


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, total, mask=inside)


# ---- 02: softmax of rows, one program for each of them and persistent


@triton.jit
def softmax_row(out_ptr, in_ptr, row, out_stride, in_stride, width, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(in_ptr + row * in_stride + at, mask=at < width, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + at, power / tl.sum(power, axis=0), mask=at < width)


@triton.jit
def softmax(out_ptr, in_ptr, out_stride, in_stride, width, BLOCK: tl.constexpr):
    softmax_row(out_ptr, in_ptr, tl.program_id(0), out_stride, in_stride, width, BLOCK)


@triton.jit
def softmax_persistent(out_ptr, in_ptr, out_stride, in_stride, height, width, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), height, tl.num_programs(0), num_stages=STAGES):
        softmax_row(out_ptr, in_ptr, row, out_stride, in_stride, width, BLOCK)


# ---- 03: product of matrices, blocks in groups of rows


@triton.jit
def leaky(x, slope=0.01):
    return tl.where(x >= 0, x, slope * x)


@triton.jit
def block_of(pid, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    down, across = tl.cdiv(M, ROWS), tl.cdiv(N, COLUMNS)
    first = pid // (GROUP * across) * GROUP
    high = min(down - first, GROUP)
    within = pid % (GROUP * across)
    return first + within % high, within // high


@triton.autotune(configs=[triton.Config({"ROWS": 32, "COLUMNS": 16, "DEPTH": 16, "GROUP": 2}, num_stages=3, num_warps=8),
                          triton.Config({"ROWS": 64, "COLUMNS": 64, "DEPTH": 32, "GROUP": 8})], key=["M", "N", "K"])  # fmt: skip
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
            ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr):  # fmt: skip
    i, j = block_of(tl.program_id(axis=0), M, N, ROWS, COLUMNS, GROUP)
    rows, columns, depth = i * ROWS + tl.arange(0, ROWS), j * COLUMNS + tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
    a_ptrs = a_ptr + ((rows % M)[:, None] * a_row + depth[None, :] * a_column)
    b_ptrs = b_ptr + (depth[:, None] * b_row + (columns % N)[None, :] * b_column)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, DEPTH)):
        a = tl.load(a_ptrs, mask=depth[None, :] < K - k * DEPTH, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < K - k * DEPTH, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += DEPTH * a_column
        b_ptrs += DEPTH * b_row
    if ACTIVATION == "leaky":
        total = leaky(total)
    c_ptrs = c_ptr + rows[:, None] * c_row + columns[None, :] * c_column
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


# ---- 04: dropout, by a mask in memory and by a seed


@triton.jit
def dropout(x_ptr, keep_ptr, out_ptr, count, p, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x, keep = tl.load(x_ptr + at, mask=inside), tl.load(keep_ptr + at, mask=inside)
    tl.store(out_ptr + at, tl.where(keep, x / (1 - p), 0.0), mask=inside)


@triton.jit
def seeded_dropout(x_ptr, out_ptr, count, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, tl.load(x_ptr + at, mask=inside) / (1 - p), 0.0), mask=inside)


# ---- 05: layer norm, forward, and backward without locks: a program adds up the rows of its group


@triton.jit
def layer_norm(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, scale_ptr, stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < width, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / width
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < width, other=0.0).to(tl.float32)
        x = tl.where(at < width, x - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / width + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < width
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - mean) * scale * tl.load(w_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside), mask=inside)


@triton.jit
def layer_norm_backward(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, scale_ptr, stride, height, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    rows, at = group * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    inside = (rows[:, None] < height) & (at[None, :] < width)
    places = rows[:, None] * stride + at[None, :]
    x = tl.load(x_ptr + places, mask=inside, other=0.0)
    dy = tl.load(dy_ptr + places, mask=inside, other=0.0)
    w = tl.load(w_ptr + at, mask=at < width, other=0.0)
    mean = tl.load(mean_ptr + rows, mask=rows < height, other=0.0)
    scale = tl.load(scale_ptr + rows, mask=rows < height, other=0.0)
    x_hat = tl.where(inside, (x - mean[:, None]) * scale[:, None], 0.0)
    wdy = w[None, :] * dy
    c1, c2 = tl.sum(x_hat * wdy, axis=1) / width, tl.sum(wdy, axis=1) / width
    tl.store(dx_ptr + places, (wdy - (x_hat * c1[:, None] + c2[:, None])) * scale[:, None], mask=inside)
    tl.store(dw_ptr + group * width + at, tl.sum(dy * x_hat, axis=0), mask=at < width)
    tl.store(db_ptr + group * width + at, tl.sum(dy, axis=0), mask=at < width)


@triton.jit
def columns_added(parts_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for i in range(0, height, ROWS):
        rows = i + tl.arange(0, ROWS)
        inside = (rows[:, None] < height) & (columns[None, :] < width)
        total += tl.load(parts_ptr + rows[:, None] * width + columns[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0), mask=columns < width)


# ---- 06: attention, forward and backward


@triton.jit
def attended(acc, sums, most, q, k_block, v_block, first, last, rows, scale, COLUMNS: tl.constexpr, MASKED: tl.constexpr):
    k_block, v_block = tl.advance(k_block, (0, first)), tl.advance(v_block, (first, 0))
    for start in range(first, last, COLUMNS):
        s = tl.dot(q, tl.load(k_block)) * scale
        if MASKED:
            s = tl.where(rows[:, None] >= start + tl.arange(0, COLUMNS)[None, :], s, -1.0e6)
        higher = tl.maximum(most, tl.max(s, 1))
        p = tl.math.exp2(s - higher[:, None])
        shrink = tl.math.exp2(most - higher)
        sums = sums * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(q.dtype), tl.load(v_block), acc * shrink[:, None])
        most = higher
        k_block, v_block = tl.advance(k_block, (0, COLUMNS)), tl.advance(v_block, (COLUMNS, 0))
    return acc, sums, most


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, scale, m_ptr, out_ptr, batch_stride, head_stride, row_stride, column_stride, heads, length,
              WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    tl.static_assert(COLUMNS <= WIDTH)
    block, head = tl.program_id(0), tl.program_id(1)
    base = (head // heads).to(tl.int64) * batch_stride + (head % heads).to(tl.int64) * head_stride
    q_block = tl.make_block_ptr(q_ptr + base, (length, WIDTH), (row_stride, column_stride), (block * ROWS, 0), (ROWS, WIDTH), (1, 0))
    k_block = tl.make_block_ptr(k_ptr + base, (WIDTH, length), (column_stride, row_stride), (0, 0), (WIDTH, COLUMNS), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + base, (length, WIDTH), (row_stride, column_stride), (0, 0), (COLUMNS, WIDTH), (1, 0))
    o_block = tl.make_block_ptr(out_ptr + base, (length, WIDTH), (row_stride, column_stride), (block * ROWS, 0), (ROWS, WIDTH), (1, 0))
    rows = block * ROWS + tl.arange(0, ROWS)
    most, sums = tl.zeros([ROWS], dtype=tl.float32) - float("inf"), tl.zeros([ROWS], dtype=tl.float32)
    acc = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    q = tl.load(q_block)
    scale *= 1.44269504
    if CAUSAL:
        acc, sums, most = attended(acc, sums, most, q, k_block, v_block, 0, block * ROWS, rows, scale, COLUMNS, False)
        acc, sums, most = attended(acc, sums, most, q, k_block, v_block, block * ROWS, (block + 1) * ROWS, rows, scale, COLUMNS, True)
    else:
        acc, sums, most = attended(acc, sums, most, q, k_block, v_block, 0, length, rows, scale, COLUMNS, False)
    tl.store(m_ptr + head * length + rows, most + tl.math.log2(sums))
    tl.store(o_block, (acc / sums[:, None]).to(out_ptr.type.element_ty))


@triton.jit
def attention_deltas(o_ptr, do_ptr, delta_ptr, length, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows, head = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    places = head * length * WIDTH + rows[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(delta_ptr + head * length + rows, tl.sum(tl.load(o_ptr + places) * tl.load(do_ptr + places), axis=1))


@triton.jit
def attention_backward(q_ptr, k_ptr, v_ptr, do_ptr, m_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, length,
                       WIDTH: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr):  # fmt: skip
    head, first = tl.program_id(1), tl.program_id(0) * BLOCK
    base, line = head * length * WIDTH, head * length
    own, across = first + tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    block = base + own[:, None] * WIDTH + across[None, :]
    # The gradients of this block's keys and values, from the queries at it and below it.
    k, v = tl.load(k_ptr + block), tl.load(v_ptr + block)
    dk, dv = tl.zeros([BLOCK, WIDTH], dtype=tl.float32), tl.zeros([BLOCK, WIDTH], dtype=tl.float32)
    q_ptrs = q_ptr + base + (first + tl.arange(0, STEP))[None, :] * WIDTH + across[:, None]
    do_ptrs = do_ptr + base + (first + tl.arange(0, STEP))[:, None] * WIDTH + across[None, :]
    at = first
    for _ in range((length - first) // STEP):
        rows = at + tl.arange(0, STEP)
        q, do = tl.load(q_ptrs), tl.load(do_ptrs)
        p = tl.math.exp2(tl.dot(k, q) * (scale * 1.44269504) - tl.load(m_ptr + line + rows)[None, :])
        p = tl.where(rows[None, :] >= own[:, None], p, 0.0)
        dv += tl.dot(p, do)
        ds = p * (tl.dot(v, tl.trans(do)) - tl.load(delta_ptr + line + rows)[None, :])
        dk += tl.dot(ds, tl.trans(q))
        at += STEP
        q_ptrs += STEP * WIDTH
        do_ptrs += STEP * WIDTH
    tl.store(dk_ptr + block, dk * scale)
    tl.store(dv_ptr + block, dv)
    # The gradient of its queries, from the keys up to it.
    q, do = tl.load(q_ptr + block), tl.load(do_ptr + block)
    m, delta = tl.load(m_ptr + line + own)[:, None], tl.load(delta_ptr + line + own)[:, None]
    dq = tl.zeros([BLOCK, WIDTH], dtype=tl.float32)
    for start in range(0, first + BLOCK, STEP):
        columns = start + tl.arange(0, STEP)
        places = base + columns[:, None] * WIDTH + across[None, :]
        keys, values = tl.load(k_ptr + places), tl.load(v_ptr + places)
        p = tl.math.exp2(tl.dot(q, keys.T) * (scale * 1.44269504) - m)
        p = tl.where(own[:, None] >= columns[None, :], p, 0.0)
        dq += tl.dot(p * (tl.dot(do, values.T) - delta), keys)
    tl.store(dq_ptr + block, dq * scale)


# ---- 07: a function of an external library


@triton.jit
def arc_sine(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, libdevice.asin(tl.load(x_ptr + at, mask=at < count)), mask=at < count)


# ---- 08: several products in one launch


@triton.jit
def grouped_product(a_ptrs, b_ptrs, c_ptrs, sizes, strides, groups: tl.constexpr, PROGRAMS: tl.constexpr,
                    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    end = 0
    for g in tl.static_range(groups):
        M, N, K = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        lda, ldb, ldc = tl.load(strides + 3 * g), tl.load(strides + 3 * g + 1), tl.load(strides + 3 * g + 2)
        across = tl.cdiv(N, COLUMNS)
        tiles = tl.cdiv(M, ROWS) * across
        while tile >= end and tile < end + tiles:
            rows = (tile - end) // across * ROWS + tl.arange(0, ROWS)
            columns = (tile - end) % across * COLUMNS + tl.arange(0, COLUMNS)
            depth = tl.arange(0, DEPTH)
            a = tl.load(a_ptrs + g) + rows[:, None] * lda + depth[None, :]
            b = tl.load(b_ptrs + g) + depth[:, None] * ldb + columns[None, :]
            total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
            for _ in range(0, tl.cdiv(K, DEPTH)):
                total += tl.dot(tl.load(a), tl.load(b))
                a += DEPTH
                b += DEPTH * ldb
            tl.store(tl.load(c_ptrs + g) + rows[:, None] * ldc + columns[None, :], total)
            tile += PROGRAMS
        end += tiles


# ---- 09: a persistent product


@triton.jit
def persistent_product(a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
                       ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    start = tl.program_id(axis=0)
    stored = start - PROGRAMS
    for tile in tl.range(start, tl.cdiv(M, ROWS) * tl.cdiv(N, COLUMNS), PROGRAMS, flatten=True):
        i, j = block_of(tile, M, N, ROWS, COLUMNS, GROUP)
        rows, columns = i * ROWS + tl.arange(0, ROWS), j * COLUMNS + tl.arange(0, COLUMNS)
        rows, columns = tl.where(rows < M, rows, 0), tl.where(columns < N, columns, 0)
        rows, columns = tl.max_contiguous(tl.multiple_of(rows, ROWS), ROWS), tl.max_contiguous(tl.multiple_of(columns, COLUMNS), COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for k in range(tl.cdiv(K, DEPTH)):
            depth = k * DEPTH + tl.arange(0, DEPTH)
            a = tl.load(a_ptr + (rows[:, None] * a_row + depth[None, :] * a_column), mask=depth[None, :] < K, other=0.0)
            b = tl.load(b_ptr + (depth[:, None] * b_row + columns[None, :] * b_column), mask=depth[:, None] < K, other=0.0)
            total = tl.dot(a, b, total)
        stored += PROGRAMS
        i, j = block_of(stored, M, N, ROWS, COLUMNS, GROUP)
        rows, columns = i * ROWS + tl.arange(0, ROWS), j * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(c_ptr + c_row * rows[:, None] + c_column * columns[None, :], total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


# ---- what a test draws numbers for


@triton.jit
def moved(x_ptr, out_ptr, rows, columns, row_stride, out_row, out_column, down, right, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KIND: tl.constexpr):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    if KIND == "whole":
        there = (i[:, None] + down >= 0) & (i[:, None] + down < rows) & (j[None, :] + right >= 0) & (j[None, :] + right < columns)
    elif KIND == "turned around":
        there = inside & (i[:, None] + down >= 0) & (i[:, None] < rows - down) & (j[None, :] >= -right) & (columns > j[None, :] + right)
    else:
        there = (i[:, None] >= j[None, :]) & inside & (i[:, None] + down >= 0) & (i[:, None] + down < rows) & (j[None, :] + right >= 0) & (j[None, :] + right < columns)
    t = tl.load(x_ptr + (i[:, None] + down) * row_stride + (j[None, :] + right), mask=there, other=-1.0)
    tl.store(out_ptr + i[:, None] * out_row + j[None, :] * out_column, t, mask=inside)


@triton.jit
def of_different_lengths(x_ptr, out_ptr, width, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    p = x_ptr + row * width + at
    total = tl.zeros([BLOCK], dtype=tl.float32)
    skipped = 0
    for k in range(row % 3, width, STEP):
        total += tl.load(p + skipped, mask=at + skipped < width, other=0.0) * k
        skipped += STEP
    if row > 1:
        total = total * 2
    elif row == 1:
        total -= 1
    tl.store(out_ptr + row * BLOCK + at, total)


@triton.jit
def backwards(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + (count - 1 - at), tl.load(x_ptr + at, mask=at < count), mask=at < count)


@triton.jit
def by_one_program(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 2:
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


def drawn(seed):
    """Launches of these kernels."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(1, 20, 2))
    tile = {"ROWS": int(2 ** rng.integers(0, 4)), "COLUMNS": int(2 ** rng.integers(0, 4)), "KIND": ["whole", "turned around", "triangle"][rng.integers(0, 3)]}
    stride = columns + int(rng.integers(0, 4))
    out = (1, rows) if rng.random() < 0.5 else (columns, 1)
    yield (moved, (triton.cdiv(rows, tile["ROWS"]), triton.cdiv(columns, tile["COLUMNS"])),
           [normal(rows * stride), np.full(rows * columns, 5, np.float32), rows, columns, stride, *out, *(int(n) for n in rng.integers(-2, 3, 2))], tile)  # fmt: skip
    count, block, programs = int(rng.integers(4, 30)), int(2 ** rng.integers(0, 5)), int(rng.integers(1, 5))
    named = {"BLOCK": block, "STEP": int(rng.integers(1, 6))}
    yield of_different_lengths, (programs,), [normal(programs * count), np.zeros(programs * block, np.float32), count], named
    yield backwards, (triton.cdiv(count, block),), [normal(count), np.zeros(count, np.float32), count], {"BLOCK": block}
    yield by_one_program, (4,), [normal(count), np.zeros(count, np.float32), count], {"BLOCK": block}


# ---- what they are launched with


def in_float(x):
    return x.astype(np.float64)


def softmax_of(x):
    power = np.exp(in_float(x) - x.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def attention_of(q, k, v, scale, causal):
    s = in_float(q) @ in_float(k).swapaxes(-1, -2) * scale
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    p = softmax_of(s)
    return p @ in_float(v), s.max(-1) / math.log(2) + np.log2(np.exp(s - s.max(-1, keepdims=True)).sum(-1))


def attention_gradients(q, k, v, do, scale):
    q, k, v, do = map(in_float, (q, k, v, do))
    s = np.where(np.tril(np.ones((q.shape[-2],) * 2, bool)), q @ k.swapaxes(-1, -2) * scale, -np.inf)
    p = softmax_of(s)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def spread(x, width):
    """The rows of a matrix apart from each other in memory."""
    wide = np.zeros((x.shape[0], width), x.dtype)
    wide[:, : x.shape[1]] = x
    return wide[:, : x.shape[1]]


def strides(*xs):
    return [s // x.itemsize for x in xs for s in x.strides]


def cases():
    """(name, kernel, grid, arguments, keyword arguments, expected of each argument that is stored, tolerance)"""
    x, y = normal(1000), normal(1000)
    grid = lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)  # noqa: E731
    yield "01 vector add", vector_add, grid, [x, y, np.empty_like(x), 1000], {"BLOCK": 256}, [x + y], 0

    m = normal(37, 781)
    given = [np.empty_like(m), m, 781, 781]
    yield "02 softmax", softmax, (37,), [*given, 781], {"BLOCK": triton.next_power_of_2(781), "num_warps": 8}, [softmax_of(m)], 1e-6
    yield "02 softmax, persistent", softmax_persistent, (8, 1, 1), [*given, 37, 781], {"BLOCK": 1024, "STAGES": 2}, [softmax_of(m)], 1e-6
    apart = spread(m, 800)
    yield "02 softmax, rows apart", softmax, (37,), [np.empty_like(m), apart, *strides(m)[:1], *strides(apart)[:1], 781], {"BLOCK": 1024}, [softmax_of(m)], 1e-6

    for name, (M, N, K), more in (("", (70, 45, 50), {"ACTIVATION": "leaky"}), (" of whole blocks", (64, 32, 48), {"ACTIVATION": ""})):
        a, b = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16)
        grid = lambda meta, M=M, N=N: (triton.cdiv(M, meta["ROWS"]) * triton.cdiv(N, meta["COLUMNS"]),)  # noqa: E731
        c, out = in_float(a) @ in_float(b), np.empty((M, N), np.float16)
        c = np.where(c < 0, 0.01 * c, c) if more["ACTIVATION"] else c
        yield f"03 product{name}", product, grid, [a, b, out, M, N, K, *strides(a, b, out)], more, [c], 4e-3
        t = np.ascontiguousarray(b.T).T
        yield f"03 product{name}, transposed", product, grid, [a, t, out, M, N, K, *strides(a, t, out)], more, [c], 4e-3

    x, keep = normal(300), (RNG.random(300) > 0.5).astype(np.int32)
    yield "04 dropout", dropout, (3,), [x, keep, np.empty_like(x), 300, 0.5], {"BLOCK": 128}, [np.where(keep, x / 0.5, 0)], 1e-6
    yield "04 seeded dropout", seeded_dropout, (3,), [x, np.empty_like(x), 300, 0.25, 123], {"BLOCK": 128}, [np.where(uniforms(123, 300) > 0.25, x / 0.75, 0)], 1e-6

    x, w, b = normal(6, 100), normal(100), normal(100)
    mean, var = in_float(x).mean(1), in_float(x).var(1)
    scale = 1 / np.sqrt(var + 1e-5)
    hat = (x - mean[:, None]) * scale[:, None]
    given = [x, np.empty_like(x), w, b, np.empty(6, np.float32), np.empty(6, np.float32), 100, 100, 1e-5]
    yield "05 layer norm", layer_norm, (6,), given, {"BLOCK": 128}, [hat * w + b, mean, scale], 1e-5
    yield "05 layer norm in blocks", layer_norm, (6,), given, {"BLOCK": 32}, [hat * w + b, mean, scale], 1e-5
    dy = normal(6, 100)
    wdy = w * dy
    dx = (wdy - (hat * (hat * wdy).mean(1, keepdims=True) + wdy.mean(1, keepdims=True))) * scale[:, None]
    parts = lambda t: in_float(t).reshape(2, 3, 100).sum(1)  # noqa: E731
    sums = [np.empty((2, 100), np.float32) for _ in range(2)]
    given = [np.empty_like(x), dy, *sums, x, w, mean.astype(np.float32), scale.astype(np.float32), 100, 6, 100]
    yield "05 layer norm backward", layer_norm_backward, (2,), given, {"ROWS": 3, "BLOCK": 128}, [dx, parts(dy * hat), parts(dy)], 1e-4
    yield "05 sums of columns", columns_added, (4,), [x, np.empty(100, np.float32), 6, 100], {"ROWS": 4, "COLUMNS": 32}, [in_float(x).sum(0)], 1e-5

    q, k, v = (normal(1, 2, 64, 16) for _ in range(3))
    for causal in (False, True):
        o, most = attention_of(q, k, v, 0.5, causal)
        out = [np.empty((2, 64), np.float32), np.empty_like(q)]
        yield ("06 attention" + ", causal" * causal, attention, (2, 2), [q, k, v, 0.5, *out, *strides(q), 2, 64],
               {"WIDTH": 16, "ROWS": 32, "COLUMNS": 16, "CAUSAL": causal}, [most.reshape(2, 64), o], 1e-5)  # fmt: skip
    do = normal(1, 2, 64, 16)
    delta = (o * do).sum(-1)
    given = [o.astype(np.float32), do, np.empty((2, 64), np.float32), 64]
    yield "06 attention, deltas", attention_deltas, (4, 2), given, {"WIDTH": 16, "ROWS": 16}, [delta.reshape(2, 64)], 1e-5
    given = [q, k, v, do, most.astype(np.float32), delta.astype(np.float32), *(np.empty_like(q) for _ in range(3)), 0.5, 64]
    yield "06 attention backward", attention_backward, (2, 2), given, {"WIDTH": 16, "BLOCK": 32, "STEP": 16}, [*attention_gradients(q, k, v, do, 0.5)], 1e-4

    x = RNG.random(500, dtype=np.float32)
    yield "07 arc sine", arc_sine, (2,), [x, np.empty_like(x), 500], {"BLOCK": 256, "extern_libs": {"libdevice": "libdevice.10.bc"}}, [np.arcsin(in_float(x))], 1e-6

    sizes = [(32, 32, 16), (16, 48, 32), (64, 16, 16)]
    a, b = [normal(M, K, dtype=np.float16) for M, _, K in sizes], [normal(K, N, dtype=np.float16) for _, N, K in sizes]
    c = [np.empty((M, N), np.float16) for M, N, _ in sizes]
    given = [a, b, c, [n for row in sizes for n in row], [n for M, N, K in sizes for n in (K, N, N)], 3]
    yield ("08 grouped product", grouped_product, (5,), given, {"PROGRAMS": 5, "ROWS": 16, "COLUMNS": 16, "DEPTH": 16},
           [in_float(x) @ in_float(y) for x, y in zip(a, b)], 4e-3)  # fmt: skip

    for name, (M, N, K), programs in (("", (70, 45, 50), 4), (" of whole blocks", (64, 64, 48), 5), (" of few blocks", (40, 20, 48), 8)):
        a, b, out = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16), np.empty((M, N), np.float16)
        blocks = triton.cdiv(M, 32) * triton.cdiv(N, 16)
        yield (f"09 persistent product{name}", persistent_product, (min(programs, blocks),), [a, b, out, M, N, K, *strides(a, b, out)],
               {"ROWS": 32, "COLUMNS": 16, "DEPTH": 16, "GROUP": 2, "PROGRAMS": programs}, [in_float(a) @ in_float(b)], 4e-3)  # fmt: skip


def uniforms(seed, count):
    """Philox 4x32 with 10 rounds of the counters (i, 0, 0, 0), in Python's integers, as floats."""
    out = []
    for i in range(count):
        c, k = [i, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        signed = c[0] - (1 << 32) if c[0] >> 31 else c[0]
        out.append(np.float32(~signed if signed < 0 else signed) * np.float32(4.6566127342e-10))
    return np.array(out, np.float32)


CASES = {name: row for name, *row in cases()}
