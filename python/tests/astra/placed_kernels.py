"""Kernels whose places depend on numbers that a test draws: with some they stay inside and apart, with others they do not."""

import astra

kernel = astra.kernel


@astra.kernel
def blocks(x, out, *, BLOCK, STEP, SHIFT, DROP):
    at = kernel.program_id(0) * STEP + SHIFT
    kernel.store(out, (at,), kernel.load(x, (at,), (BLOCK,)), drop=DROP)


@astra.kernel
def from_the_end(x, out, *, BLOCK, STEP, SHIFT, DROP):
    at = x.shape[0] - BLOCK - kernel.program_id(0) * STEP + SHIFT
    kernel.store(out, (at,), kernel.load(x, (at,), (BLOCK,), fill=0.0), drop=DROP)


@astra.kernel
def planes(x, out, *, BLOCK, STEP, SHIFT, DROP):
    i, j = kernel.program_id(0), kernel.program_id(1)
    kernel.store(out, (i * STEP + SHIFT, j * BLOCK), kernel.load(x, (i * STEP + SHIFT, j * BLOCK), (BLOCK, BLOCK)), drop=DROP)


@astra.kernel
def rows_and_columns_of_one_id(x, out, *, BLOCK, STEP, SHIFT, DROP):
    columns = x.shape[1] // BLOCK
    p = kernel.program_id(0)
    i, j = p // columns, p % columns
    kernel.store(out, (i * STEP + SHIFT, j * BLOCK), kernel.load(x, (i * STEP + SHIFT, j * BLOCK), (BLOCK, BLOCK), fill=0.0), drop=DROP)


@astra.kernel
def digits(x, out, *, BLOCK, STEP, SHIFT, DROP):
    i, j = kernel.program_id(0), kernel.program_id(1)
    at = (i * kernel.num_programs(1) + j) * STEP + SHIFT
    kernel.store(out, (at,), kernel.load(x, (at,), (BLOCK,), fill=0.0), drop=DROP)


@astra.kernel
def loops(x, out, *, BLOCK, STEP, SHIFT, DROP):
    row = kernel.program_id(0)
    for k in range(x.shape[1] // STEP):
        t = kernel.load(x, (row, k * STEP + SHIFT), (1, BLOCK))
        kernel.store(out, (row, k * BLOCK), t, drop=DROP)


@astra.kernel
def gathered(x, out, *, BLOCK, STEP, SHIFT, DROP):
    i = kernel.program_id(0) * STEP + kernel.arange(BLOCK)
    kernel.scatter(out, (i,), kernel.gather(x, (i + SHIFT,)), drop=DROP)


@astra.kernel
def reversed_elements(x, out, *, BLOCK, STEP, SHIFT, DROP):
    i = kernel.program_id(0) * STEP + kernel.arange(BLOCK)
    kernel.scatter(out, (x.shape[0] - 1 - i + SHIFT,), kernel.gather(x, (i,), fill=0.0), drop=DROP)


@astra.kernel
def transposed(x, out, *, BLOCK, STEP, SHIFT, DROP):
    i, j = kernel.program_id(0), kernel.program_id(1)
    t = kernel.load(x, (i * BLOCK + SHIFT, j * STEP), (BLOCK, BLOCK))
    kernel.store(out, (j * STEP, i * BLOCK), t.T, drop=DROP)


@astra.kernel
def last_block_overlaps(x, out, *, BLOCK, STEP, SHIFT, DROP):
    at = min(kernel.program_id(0) * STEP, x.shape[0] - BLOCK + SHIFT)
    kernel.store(out, (at,), kernel.load(x, (at,), (BLOCK,)), drop=DROP)


ONE = [blocks, from_the_end, digits, gathered, reversed_elements, last_block_overlaps]
TWO = [planes, rows_and_columns_of_one_id, loops, transposed]
