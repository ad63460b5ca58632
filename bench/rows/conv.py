"""Each distinct convolution of ResNet-50 and MobileNetV2, batch 1, with bias and activation as the networks have them."""

from rows import Case, Row, node, normal


def shapes():
    """(network, input channels, output channels, kernel, stride, groups, height, activation), each once."""
    found = [("resnet50", 3, 64, 7, 2, 1, 224, "relu")]
    channels, height = 64, 56
    for width, blocks, stage_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = stage_stride if block == 0 else 1
            found.append(("resnet50", channels, width, 1, 1, 1, height, "relu"))
            found.append(("resnet50", width, width, 3, stride, 1, height, "relu"))
            if block == 0:
                found.append(("resnet50", channels, 4 * width, 1, stride, 1, height, ""))
            height //= stride
            found.append(("resnet50", width, 4 * width, 1, 1, 1, height, ""))
            channels = 4 * width
    found.append(("mobilenet_v2", 3, 32, 3, 2, 1, 224, "relu6"))
    channels, height = 32, 112
    for expand, width, blocks, stage_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, hidden = stage_stride if block == 0 else 1, channels * expand
            if expand != 1:
                found.append(("mobilenet_v2", channels, hidden, 1, 1, 1, height, "relu6"))
            found.append(("mobilenet_v2", hidden, hidden, 3, stride, hidden, height, "relu6"))
            height //= stride
            found.append(("mobilenet_v2", hidden, width, 1, 1, 1, height, ""))
            channels = width
    found.append(("mobilenet_v2", channels, 1280, 1, 1, 1, height, "relu6"))
    return list(dict.fromkeys(found))


def row(network, ci, co, kernel, stride, groups, height, activation):
    pad, out = kernel // 2, (height + 2 * (kernel // 2) - kernel) // stride + 1
    shape = (co, ci // groups, kernel, kernel)
    per_output = ci // groups * kernel * kernel
    kind = "depthwise" if groups > 1 else f"{ci}-{co}"
    name = f"{network} {kernel}x{kernel} {kind if groups == 1 else f'{kind} {ci}'} @{height}" + (f" s{stride}" if stride > 1 else "")

    def make():
        nodes = [node("Conv", "x w b", "y" if activation else "z", kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2, group=groups)]
        weights = {"w": normal("w", shape, per_output**-0.5), "b": normal("b", (co,))}
        if activation == "relu":
            nodes.append(node("Relu", "y", "z"))
        if activation == "relu6":
            nodes.append(node("Clip", "y low high", "z"))
            weights |= {"low": normal("low", (), 0), "high": normal("high", (), 0) + 6}
        return Case({"x": normal("x", (1, ci, height, height))}, weights, nodes)

    def torch(torch, v):
        y = torch.nn.functional.conv2d(v["x"], v["w"], v["b"], stride, pad, 1, groups)
        return torch.relu(y) if activation == "relu" else torch.nn.functional.relu6(y) if activation else y

    def jax(jax, v):
        y = jax.lax.conv_general_dilated(v["x"], v["w"], (stride, stride), [(pad, pad)] * 2, feature_group_count=groups) + v["b"][:, None, None]
        return jax.nn.relu(y) if activation == "relu" else jax.nn.relu6(y) if activation else y

    return Row("conv", name, make, flops=2 * co * out * out * per_output, bytes=4 * (ci * height**2 + co * out**2 + co * per_output),
               limit="fma" if groups == 1 else "", torch=torch, jax=jax)  # fmt: skip


ROWS = [row(*shape) for shape in shapes()]
