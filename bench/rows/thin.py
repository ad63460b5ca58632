"""Few rows times a large constant matrix."""

from rows import Case, Row, node, normal

WIDTH = 4096


def row(m):
    make = lambda: Case({"a": normal("a", (m, WIDTH))}, {"b": normal("b", (WIDTH, WIDTH), 1 / 64)}, [node("MatMul", "a b", "c")])
    product = lambda _, v: v["a"] @ v["b"]
    return Row("thin", f"{m} x 4096 x 4096", make, flops=2 * m * WIDTH**2, bytes=4 * (WIDTH**2 + 2 * m * WIDTH), limit="read" if m == 1 else "fma",
               torch=product, jax=product)  # fmt: skip


ROWS = [row(m) for m in (1, 4, 8, 16, 32)]
