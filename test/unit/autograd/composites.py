"""Gradients of composites by PyTorch, in f64, as numbers for CompositeTest.cpp.

    /PATH/TO/python-with-torch test/unit/autograd/composites.py > test/unit/autograd/composites.txt

Gives a line for each tensor: its name, then its elements. Element i of input number k is a fixed fraction, the same there.
"""

import math

import torch
import torch.nn.functional as F


def fixed(k, *shape):
    count = math.prod(shape)
    values = [((i * 7919 + k * 104729 + 13) % 97) / 48.5 - 1 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def show(name, loss, tensors):
    gradients = torch.autograd.grad(loss, tensors)
    print(f"{name}.loss {loss.item():.17g}")
    for i, g in enumerate(gradients):
        print(f"{name}.{i}", *(f"{v:.17g}" for v in g.flatten().tolist()))


def weighted(y, k):
    return (y * fixed(k, *y.shape).detach()).sum()


x, w, b = fixed(0, 2, 4, 7, 6), fixed(1, 6, 2, 3, 3), fixed(2, 6)
show("convolution", weighted(F.conv2d(x, w, b, stride=2, padding=1, dilation=1, groups=2), 3), [x, w, b])
x, w = fixed(0, 2, 4, 3, 3), fixed(1, 4, 3, 3, 3)
show("transposed", weighted(F.conv_transpose2d(x, w, stride=2, padding=1, dilation=1), 3), [x, w])
x = fixed(0, 2, 3, 6, 6)
show("pooling", weighted(F.max_pool2d(x, 3, stride=2), 3) + weighted(F.avg_pool2d(x, 2), 4), [x])
x = fixed(0, 3, 5)
show("softmax", weighted(F.softmax(x, 1), 3), [x])
target = fixed(1, 3, 5)
show("cross_entropy", F.cross_entropy(x, F.softmax(target, 1)), [x, target])
x, g, b = fixed(0, 4, 6), fixed(1, 6), fixed(2, 6)
show("layer_norm", weighted(F.layer_norm(x, (6,), g, b, eps=1e-5), 3), [x, g, b])
q, k, v = fixed(0, 2, 4, 3), fixed(1, 2, 4, 3), fixed(2, 2, 4, 3)
show("attention", weighted(F.scaled_dot_product_attention(q, k, v, is_causal=True), 3), [q, k, v])
x = fixed(0, 8)
show("gelu", weighted(F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x) + F.softplus(x), 3), [x])
x = fixed(0, 3, 5)
show("sort", weighted(x.sort(dim=1, descending=True).values, 3) + weighted(x.cumsum(1), 4) + weighted(x.cumprod(1), 5), [x])
