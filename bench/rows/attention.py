"""What transformers are made of: attention of 12 heads of 64, the feed-forward network, layer norm, gelu."""

import numpy as np

from rows import Case, Row, node, normal

HEADS, DEPTH, WIDTH = 12, 64, 768


def attention(length):
    """As PyTorch's exporter writes it."""

    def make():
        inputs = {name: normal(name, (1, HEADS, length, DEPTH)) for name in "qkv"}
        nodes = [
            node("Transpose", "k", "t", perm=[0, 1, 3, 2]),
            node("MatMul", "q t", "p"),
            node("Mul", "p scale", "s"),
            node("Softmax", "s", "w", axis=-1),
            node("MatMul", "w v", "y"),
        ]
        return Case(inputs, {"scale": np.float32(DEPTH**-0.5).reshape(())}, nodes)

    return Row("attention", f"attention {length}", make, flops=4 * HEADS * length**2 * DEPTH, bytes=16 * HEADS * length * DEPTH,
               torch=lambda torch, v: torch.nn.functional.scaled_dot_product_attention(v["q"], v["k"], v["v"]), jax=scores(length, False))  # fmt: skip


def causal(length):
    """The operator of ONNX: a mask that is data would not say that half of the work need not be done."""

    def make():
        inputs = {name: normal(name, (1, HEADS, length, DEPTH)) for name in "qkv"}
        return Case(inputs, nodes=[node("Attention", "q k v", "y", is_causal=1)], opset=23)

    return Row("attention", f"causal attention {length}", make, flops=2 * HEADS * length * (length + 1) * DEPTH, bytes=16 * HEADS * length * DEPTH,
               torch=lambda torch, v: torch.nn.functional.scaled_dot_product_attention(v["q"], v["k"], v["v"], is_causal=True),
               jax=scores(length, True))  # fmt: skip


def scores(length, masked):
    def function(jax, v):
        s = v["q"] @ v["k"].transpose(0, 1, 3, 2) * DEPTH**-0.5
        if masked:
            s = jax.numpy.where(jax.numpy.tri(length, dtype=bool), s, -jax.numpy.inf)
        return jax.nn.softmax(s, axis=-1) @ v["v"]

    return function


def ffn():
    def make():
        weights = {"w1": normal("w1", (WIDTH, 4 * WIDTH), WIDTH**-0.5), "b1": normal("b1", (4 * WIDTH,), 0.1)}
        weights |= {"w2": normal("w2", (4 * WIDTH, WIDTH), (4 * WIDTH) ** -0.5), "b2": normal("b2", (WIDTH,), 0.1)}
        nodes = [
            node("MatMul", "x w1", "p"),
            node("Add", "p b1", "a"),
            node("Gelu", "a", "g"),
            node("MatMul", "g w2", "q"),
            node("Add", "q b2", "y"),
        ]
        return Case({"x": normal("x", (128, WIDTH))}, weights, nodes)

    def torch(torch, v):
        return torch.nn.functional.gelu(v["x"] @ v["w1"] + v["b1"]) @ v["w2"] + v["b2"]

    def jax(jax, v):
        return jax.nn.gelu(v["x"] @ v["w1"] + v["b1"], approximate=False) @ v["w2"] + v["b2"]

    return Row("attention", "feed-forward 128 x 768 x 3072", make, flops=4 * 128 * WIDTH * 4 * WIDTH, bytes=32 * WIDTH**2, torch=torch, jax=jax)


def layer_norm(rows):
    def make():
        weights = {"scale": normal("scale", (WIDTH,)), "shift": normal("shift", (WIDTH,))}
        return Case({"x": normal("x", (rows, WIDTH))}, weights, [node("LayerNormalization", "x scale shift", "y", axis=-1, epsilon=1e-5)])

    def jax(jax, v):
        centred = v["x"] - v["x"].mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * v["scale"] + v["shift"]

    return Row("attention", f"layer norm {rows} x 768", make, bytes=8 * rows * WIDTH, limit="copy" if rows > 1000 else "",
               torch=lambda torch, v: torch.nn.functional.layer_norm(v["x"], (WIDTH,), v["scale"], v["shift"]), jax=jax)  # fmt: skip


def gelu():
    return Row("attention", "gelu 128 x 3072", lambda: Case({"x": normal("x", (128, 3072))}, nodes=[node("Gelu", "x", "y")]), bytes=8 * 128 * 3072,
               limit="", torch=lambda torch, v: torch.nn.functional.gelu(v["x"]), jax=lambda jax, v: jax.nn.gelu(v["x"], approximate=False))  # fmt: skip


ROWS = [*map(attention, (128, 197, 512)), *map(causal, (128, 197, 512)), ffn(), layer_norm(128), layer_norm(4096), gelu()]
