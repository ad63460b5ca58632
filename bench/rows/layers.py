"""Transposed convolutions, batch 1: of generators, of decoders by channels, of mask and segmentation heads; and recurrent layers, a sequence each."""

from rows import Case, Row, node, normal


def transposed(name, ci, co, kernel, stride, pad, height, groups=1):
    out, shape = (height - 1) * stride + kernel - 2 * pad, (ci, co // groups, kernel, kernel)

    def make():
        nodes = [node("ConvTranspose", "x w b", "y", kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)]
        weights = {"w": normal("w", shape, (ci // groups * kernel**2 / stride**2) ** -0.5), "b": normal("b", (co,))}
        return Case({"x": normal("x", (1, ci, height, height))}, weights, nodes)

    def torch(torch, v):
        return torch.nn.functional.conv_transpose2d(v["x"], v["w"], v["b"], stride, pad, 0, groups)

    kind = f"depthwise {ci}" if groups > 1 else f"{ci}-{co}"
    return Row("layers", f"transposed {kernel}x{kernel} {kind} @{height} s{stride}, {name}", make, flops=2 * ci * height**2 * shape[1] * kernel**2,
               bytes=4 * (ci * height**2 + co * out**2 + ci * shape[1] * kernel**2), torch=torch)  # fmt: skip


def recurrent(kind, gates, steps, width):
    def make():
        names, count = {"LSTM": "all last cell", "GRU": "all last", "RNN": "all last"}[kind], gates * width
        weights = {name: normal(name, (1, count, width), width**-0.5) for name in ("w", "r")} | {"b": normal("b", (1, 2 * count), 0.1)}
        return Case({"x": normal("x", (steps, 1, width))}, weights, [node(kind, "x w r b", names, hidden_size=width)])

    weights = gates * width**2  # of W, which is read once, and of R, once a step
    return Row("layers", f"{kind} of {width}, {steps} step{'s' if steps > 1 else ''}", make, flops=4 * steps * weights, bytes=4 * (1 + steps) * weights, limit="read")


ROWS = [
    transposed("generator", 512, 256, 4, 2, 1, 8),
    transposed("generator", 64, 3, 4, 2, 1, 32),
    transposed("decoder", 64, 32, 2, 2, 0, 112),
    transposed("decoder", 64, 64, 4, 2, 1, 28, groups=64),
    transposed("mask", 256, 256, 2, 2, 0, 14),
    transposed("mask", 64, 1, 2, 2, 0, 112),
    transposed("segmentation", 21, 21, 16, 8, 4, 16),
    recurrent("RNN", 1, 1, 1024),
    recurrent("GRU", 3, 1, 1024),
    recurrent("LSTM", 4, 1, 1024),
    recurrent("LSTM", 4, 20, 512),
]
