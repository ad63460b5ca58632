"""Rows, columns and permutations: work that memory bounds."""

import numpy as np

from rows import Case, Row, node, normal

SIDE = 4096


def row(name, shape, nodes, limit, written, torch, jax, weights=None):
    make = lambda: Case({"x": normal("x", shape)}, weights or {}, nodes)
    return Row("rows", name, make, bytes=4 * (np.prod(shape) + written), limit=limit, torch=torch, jax=jax)


def permutation(name, shape, order):
    return row(name, shape, [node("Transpose", "x", "y", perm=order)], "copy", np.prod(shape),
               lambda torch, v: v["x"].permute(order).contiguous(), lambda jax, v: v["x"].transpose(order))  # fmt: skip


def sums(name, axis):
    return row(name, (SIDE, SIDE), [node("ReduceSum", "x axes", "y", keepdims=0)], "read", SIDE,
               lambda torch, v: v["x"].sum(axis), lambda jax, v: v["x"].sum(axis), {"axes": np.array([axis], np.int64)})  # fmt: skip


ROWS = [
    row("softmax 4096 x 1024", (4096, 1024), [node("Softmax", "x", "y", axis=-1)], "copy", 4096 * 1024,
        lambda torch, v: torch.softmax(v["x"], -1), lambda jax, v: jax.nn.softmax(v["x"], axis=-1)),  # fmt: skip
    sums("sum of rows, 4096 x 4096", 1),
    sums("sum of columns, 4096 x 4096", 0),
    permutation("transpose 4096 x 4096", (SIDE, SIDE), [1, 0]),
    permutation("permutation [2, 0, 1] of 256^3", (256,) * 3, [2, 0, 1]),
    permutation("rotation of 16^6", (16,) * 6, [1, 2, 3, 4, 5, 0]),
]
