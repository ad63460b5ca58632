"""f32 matrix products, both operands inputs."""

from rows import Case, Row, node, normal

SIZES = [(256, 256, 256), (512, 512, 512), (1000, 1000, 1000), (1024, 1024, 1024), (2048, 2048, 2048), (577, 311, 129)]


def case(m, n, k):
    return lambda: Case({"a": normal("a", (m, k)), "b": normal("b", (k, n))}, nodes=[node("MatMul", "a b", "c")])


def row(m, n, k):
    name = str(m) if m == n == k else f"{m}x{n}x{k}"
    product = lambda _, v: v["a"] @ v["b"]
    return Row("matmul", name, case(m, n, k), flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n), torch=product, jax=product)


ROWS = [row(*size) for size in SIZES]
