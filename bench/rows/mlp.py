"""Three small layers, one row: what a call costs. Ours is called from C; the peers from Python, by their shortest way."""

from rows import Case, Row, node, normal


def row(width):
    def make():
        weights = {f"w{i}": normal(f"w{i}", (width, width), (2 / width) ** 0.5) for i in range(3)}
        weights |= {f"b{i}": normal(f"b{i}", (width,), 0.1) for i in range(3)}
        nodes = [node("Gemm", "x w0 b0", "h0"), node("Relu", "h0", "a0"), node("Gemm", "a0 w1 b1", "h1"), node("Relu", "h1", "a1"),
                 node("Gemm", "a1 w2 b2", "y")]  # fmt: skip
        return Case({"x": normal("x", (1, width))}, weights, nodes)

    def torch(torch, v):
        a = torch.relu(torch.addmm(v["b0"], v["x"], v["w0"]))
        return torch.addmm(v["b2"], torch.relu(torch.addmm(v["b1"], a, v["w1"])), v["w2"])

    def jax(jax, v):
        a = jax.nn.relu(v["x"] @ v["w0"] + v["b0"])
        return jax.nn.relu(a @ v["w1"] + v["b1"]) @ v["w2"] + v["b2"]

    return Row("mlp", f"3 layers of {width}", make, flops=6 * width**2, bytes=12 * width**2, limit="", torch=torch, jax=jax)


ROWS = [row(64), row(256)]
