"""One training step: forward, backward, AdamW, on a batch of random data; batch norms take the statistics of the batch.

The networks are PyTorch's modules, exported as they are in training; JAX's are functions of the same parameters, images
channels-last, as XLA wants them on a CPU. A case has one input beside its target.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from rows import Case, Row, normal, random

RATE, DECAY = 1e-3, 0.01


def digits(torch):
    """The network of examples/digits, up to its logits."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.ReLU(), nn.BatchNorm2d(16), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 2 * 2, 10))  # fmt: skip


def resnet18(torch):
    import torchvision

    return torchvision.models.resnet18()


def chargpt(torch):
    """The network of examples/chargpt."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples/chargpt"))
    from export import CharGPT

    return CharGPT()


class Layers:
    """What JAX's networks are made of, by the names of PyTorch's parameters; running statistics are replaced in `state`."""

    def __init__(self, jax, p, state):
        self.jax, self.p, self.state = jax, p, state

    def conv(self, name, x, stride, pad):
        y = self.jax.lax.conv_general_dilated(x, self.p[f"{name}.weight"], (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + self.p[f"{name}.bias"] if f"{name}.bias" in self.p else y

    def norm(self, name, x):
        mean, var, count = x.mean((0, 1, 2)), x.var((0, 1, 2)), x.size // x.shape[-1]
        for part, value in (("running_mean", mean), ("running_var", var * count / (count - 1))):
            self.state[f"{name}.{part}"] = 0.9 * self.state[f"{name}.{part}"] + 0.1 * value
        return (x - mean) * (self.jax.lax.rsqrt(var + 1e-5) * self.p[f"{name}.weight"]) + self.p[f"{name}.bias"]

    def pool(self, x, size, stride, pad):
        padding = [(0, 0), (pad, pad), (pad, pad), (0, 0)]
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)

    def linear(self, name, x):
        return x @ self.p[f"{name}.weight"].T + self.p[f"{name}.bias"]


def digits_jax(layers, x):
    relu = layers.jax.nn.relu
    x = layers.pool(layers.norm("2", relu(layers.conv("0", x, 1, 1))), 2, 2, 0)
    x = layers.pool(relu(layers.conv("4", x, 1, 1)), 2, 2, 0)
    return layers.linear("8", x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1))


def resnet18_jax(layers, x):
    relu = layers.jax.nn.relu
    x = layers.pool(relu(layers.norm("bn1", layers.conv("conv1", x, 2, 3))), 3, 2, 1)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = relu(layers.norm(f"{name}.bn1", layers.conv(f"{name}.conv1", x, stride, 1)))
            y = layers.norm(f"{name}.bn2", layers.conv(f"{name}.conv2", y, 1, 1))
            if stride > 1:
                x = layers.norm(f"{name}.downsample.1", layers.conv(f"{name}.downsample.0", x, stride, 0))
            x = relu(x + y)
    return layers.linear("fc", x.mean((1, 2)))


def chargpt_jax(layers, token):
    jax, p, heads = layers.jax, layers.p, 4
    jnp = jax.numpy

    def norm(name, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    x = p["characters.weight"][token.astype(jnp.int32)] + p["positions.weight"]
    rows, length, width = x.shape
    causal = jnp.tril(jnp.ones((length, length), bool))
    for k in range(6):
        name = f"layers.{k}"
        parts = jnp.split(layers.linear(f"{name}.qkv", norm(f"{name}.norm1", x)), 3, -1)
        q, keys, values = (part.reshape(rows, length, heads, width // heads).transpose(0, 2, 1, 3) for part in parts)
        scores = jnp.where(causal, q @ keys.transpose(0, 1, 3, 2) / np.sqrt(width // heads).astype(np.float32), -np.inf)
        y = (jax.nn.softmax(scores) @ values).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + layers.linear(f"{name}.mix", y)
        wide = jax.nn.gelu(layers.linear(f"{name}.up", norm(f"{name}.norm2", x)), approximate=False)
        x = x + layers.linear(f"{name}.down", wide)
    return (norm("norm", x) @ p["head.weight"].T).transpose(0, 2, 1)


def data(case):
    """The name and the value of the input."""
    return next((name, value) for name, value in case.inputs.items() if name != "target")


def module(torch, row):
    torch.manual_seed(1)
    return row.torch(torch).train()


def export(torch, row, case, path):
    """With batch norms kept: the exporter's optimizer would fold them."""
    name, value = data(case)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module(torch, row).eval(), (torch.from_numpy(value),), dynamo=True, optimize=False,
                                    input_names=[name], output_names=["logits"], verbose=False)  # fmt: skip
    made = program.model_proto
    made.ClearField("metadata_props")
    for noted in (made.graph, *made.graph.node, *made.graph.value_info, *made.graph.input, *made.graph.output):
        noted.ClearField("metadata_props")
    path.write_bytes(made.SerializeToString())


def jax_step(jax, torch, row, case):
    """A jitted step: (weights, moments, statistics, number of the step, input, target) to the same and the loss."""
    jnp = jax.numpy
    made = module(torch, row)
    last = lambda v, axes: v.transpose(axes) if v.ndim == 4 else v
    p = {name: jnp.asarray(last(value.detach().numpy(), (2, 3, 1, 0))) for name, value in made.named_parameters()}
    statistics = {name: jnp.asarray(value.numpy()) for name, value in made.named_buffers() if "running" in name}
    moments = {name: (jnp.zeros_like(value), jnp.zeros_like(value)) for name, value in p.items()}
    del made

    def loss(p, statistics, given, target):
        statistics = dict(statistics)
        scores = jax.nn.log_softmax(row.jax(Layers(jax, p, statistics), given), 1)
        return -jnp.take_along_axis(scores, target[:, None], 1).mean(), statistics

    def step(p, moments, statistics, number, given, target):
        (value, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(p, statistics, given, target)
        for name, g in gradient.items():
            m, v = moments[name]
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            moments[name] = m, v
            p[name] = p[name] * (1 - RATE * DECAY) - RATE * m / (1 - 0.9**number) / (jnp.sqrt(v / (1 - 0.999**number)) + 1e-8)
        return p, moments, statistics, number + 1, value

    given = jnp.asarray(last(data(case)[1], (0, 2, 3, 1)))
    target = jnp.asarray(case.inputs["target"])
    state = p, moments, statistics, jnp.float32(1)
    return jax.jit(step, donate_argnums=(0, 1, 2, 3)).lower(*state, given, target).compile(), state, (given, target)


def images(batch, shape, classes):
    return lambda: Case({"image": normal("image", (batch, *shape)), "target": random("target").integers(0, classes, batch)})


def characters(batch):
    draw = lambda name: random(name).integers(0, 96, (batch, 128))
    return lambda: Case({"token": draw("token").astype(np.uint8), "target": draw("target")})


def row(name, network, jax, make):
    recipe = ["--train", "--predict=logits", "--loss=cross_entropy", f"--optimizer=adamw(lr={RATE}, weight_decay={DECAY})"]
    return Row("train", name, make, limit="", torch=network, jax=jax, options=recipe, entry="train_step")


ROWS = [
    row("digits, batch 64", digits, digits_jax, images(64, (1, 8, 8), 10)),
    row("chargpt, batch 16", chargpt, chargpt_jax, characters(16)),
    row("resnet18, batch 8 at 224", resnet18, resnet18_jax, images(8, (3, 224, 224), 1000)),
]
