"""What the entry `init` draws by default, beside what PyTorch's modules begin as, through the ONNX file.

Takes:    a build folder; PyTorch (scripts/setup --models). --sample: every third module alone.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    what PyTorch fills a parameter with is recorded while the module's reset_parameters runs: evenly between which
          bounds, or with which number. Of these the numbers are computed here, as docs/training.md has them, and
          compared within 1e-6 of the bound, since the bound is PyTorch's; ones and zeros are equal. A normal distribution
          is compared by its mean and deviation, within 6 deviations of each.

    build/venv/bin/python test/training/modules.py

scripts/test --only modules runs it.
"""

import os
import re
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

from run import LEVELS, done, expect  # of this folder: it makes test/onnx known
from harness import run

SEED = 11


class Recorded:
    """Within it every fill of a tensor is written down: (name of the method, its numbers) by the tensor's address."""

    METHODS = ("uniform_", "normal_", "fill_", "zero_")

    def __enter__(self):
        self.fills, self.real = {}, {m: getattr(torch.Tensor, m) for m in self.METHODS}
        for m in self.METHODS:
            setattr(torch.Tensor, m, self.method(m))
        return self.fills

    def method(self, name):
        def fill(tensor, *words, **options):
            options.pop("generator", None)
            self.fills[tensor.data_ptr()] = (name, *words, *options.values())
            return self.real[name](tensor, *words, **options)

        return fill

    def __exit__(self, *_):
        for m in self.METHODS:
            setattr(torch.Tensor, m, self.real[m])


def fills_of(net):
    """What each parameter is filled with by its own module: ("uniform_", low, high) and the like."""
    found = {}
    for prefix, module in net.named_modules():
        own = {n: p for n, p in module.named_parameters(recurse=False)}
        if not own or not hasattr(module, "reset_parameters"):
            continue
        with Recorded() as fills:
            module.reset_parameters()
        for n, p in own.items():
            found[f"{prefix}.{n}" if prefix else n] = fills[p.data_ptr()]
    return found


def threefry(key, counters):
    """Words 0 and 1 of Threefry2x32-20 (Salmon et al. 2011) for each counter (c, 0)."""
    with np.errstate(over="ignore"):
        keys = np.array([key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA], np.uint32)
        a, b = counters.astype(np.uint32) + keys[0], np.zeros_like(counters, np.uint32) + keys[1]
        for r in range(20):
            turn = np.uint32((13, 15, 26, 6, 17, 29, 16, 24)[r % 8])
            a = a + b
            b = (b << turn | b >> (np.uint32(32) - turn)) ^ a
            if r % 4 == 3:
                group = r // 4 + 1
                a, b = a + keys[group % 3], b + keys[(group + 1) % 3] + np.uint32(group)
    return a, b


def uniform(place, count):
    words = np.stack(threefry((SEED, 2**30 + place), np.arange((count + 1) // 2)), 1).reshape(-1)[:count]
    return (words >> np.uint32(8)).astype(np.float64) * 2.0**-24


def drawn(net, inputs, flags=()):
    """The numbers of every parameter after `init`, and its place among the model's."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), inputs, "m.onnx", dynamo=True, optimize=False, verbose=False, external_data=False,
                          input_names=[f"in{k}" for k in range(len(inputs))], output_names=["y"])  # fmt: skip
    said = done("astra-compile", "m.onnx", "-o", "m.astra", "--train", "--predict=y", "--loss=mse", "--target=cpu:" + LEVELS[0], "--print-after=load",
                *flags).stderr  # fmt: skip
    places = {n.strip('"'): k for k, n in enumerate(re.findall(r'^  param (?:fixed |constant )?@("[^"]*"|\S+) :', said, re.M))}
    names = [n for n, _ in net.named_parameters(remove_duplicate=False) if n in places]
    np.save("seed.npy", np.array(SEED, np.uint32))
    done("astra-run", "m.astra", "--entry=init", "--input=seed=seed.npy", *(f"--get-state={n}=s{k}.npy" for k, n in enumerate(names)))
    return {n: (np.load(f"s{k}.npy"), places[n]) for k, n in enumerate(names)}, said


def beside_pytorch(net, inputs, kept=()):
    """Every parameter of `net` but those `kept`, which keep the numbers of the file."""
    given = {n: p.detach().numpy().copy() for n, p in net.named_parameters()}
    values, said = drawn(net, inputs)
    fills = fills_of(net)
    for name, (value, place) in values.items():
        if name in kept:
            expect(value.tobytes() == given[name].tobytes() and f"'{name}'" in said, f"{name}: is not as it was, or no note says so: {said[-500:]}")
            continue
        expect(name in fills, f"{name}: no module fills it")
        method, *numbers = fills[name]
        if method == "uniform_":
            low, high = numbers
            wanted = (uniform(place, value.size) * (high - low) + low).reshape(value.shape)
            worst = np.abs(value - wanted).max() / high
            expect(worst < 1e-6, f"{name}: {worst} of the bound {high} away; the greatest number is {np.abs(value).max()}")
        elif method == "normal_":
            mean, std = numbers
            n = value.size
            expect(abs(value.mean() - mean) < 6 * std / n**0.5 and abs(value.std() - std) < 6 * std / (2 * n) ** 0.5,
                   f"{name}: mean {value.mean()}, deviation {value.std()}, expected {mean} and {std}")  # fmt: skip
        else:
            expect((value == (numbers[0] if numbers else 0)).all(), f"{name}: {value.reshape(-1)[:4]}, expected {method} {numbers}")
    expect(set(values) >= set(given), f"no states of {sorted(set(given) - set(values))}")


def image(channels, size):
    return (torch.randn(3, channels, *size),)


class Rows(nn.Module):
    """An embedding, whose rows go through `rest`."""

    def __init__(self, rest):
        super().__init__()
        self.table, self.rest = nn.Embedding(40, 24), rest

    def forward(self, ids):
        return self.rest(self.table(ids))


class First(nn.Module):
    """A recurrent network's sequence alone."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class Learned(nn.Module):
    """Parameters that no module of PyTorch fills: a position's, a token that stands in front, a layer's scale."""

    def __init__(self):
        super().__init__()
        self.position, self.token = nn.Parameter(torch.randn(1, 6, 24)), nn.Parameter(torch.randn(1, 1, 24))
        self.gamma, self.linear = nn.Parameter(torch.randn(24)), nn.Linear(24, 24, bias=False)

    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), self.linear(x)], 1) + self.position
        return x + self.gamma * self.linear(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(64, 100)
        self.norm, self.head = nn.LayerNorm(100), nn.Linear(100, 64)
        self.head.weight = self.words.weight

    def forward(self, ids):
        return self.head(self.norm(self.words(ids)))


def tied_table():
    """A table that is a weight too begins as nn.Linear's."""
    net = Tied()
    values, _ = drawn(net, (torch.randint(0, 64, (3, 5)),))
    (name,) = [n for n in values if values[n][0].ndim == 2]
    value, place = values[name]
    wanted = (uniform(place, value.size) * 0.2 - 0.1).reshape(value.shape)
    expect(np.abs(value - wanted).max() < 1e-7, f"{name}: the greatest number is {np.abs(value).max()}")


def by_pattern():
    """`default` of some parameters; the others stay."""
    net = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4))
    given = {n: p.detach().numpy().copy() for n, p in net.named_parameters()}
    values, _ = drawn(net, (torch.randn(3, 12),), ["--init=2.*=default"])
    for name, (value, place) in values.items():
        same = value.tobytes() == given[name].tobytes()
        expect(same == name.startswith("0."), f"{name}: {'stays' if same else 'is drawn'}")


def main():
    torch.manual_seed(3)
    ids = (torch.randint(0, 40, (3, 7)),)
    sequence = (torch.randn(5, 3, 24),)
    networks = [
        ("Linear", nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 1)), (torch.randn(3, 5, 24),), ()),
        ("Conv2d", nn.Conv2d(6, 8, 3, stride=2), image(6, (9, 9)), ()),
        ("Conv2d in groups", nn.Conv2d(6, 12, (3, 2), groups=3), image(6, (9, 9)), ()),
        ("Conv2d, depthwise", nn.Conv2d(6, 12, 3, groups=6, padding=1), image(6, (9, 9)), ()),
        ("Conv1d", nn.Conv1d(6, 8, 5, dilation=2), image(6, (20,)), ()),
        ("Conv3d", nn.Conv3d(2, 4, 2), image(2, (5, 5, 5)), ()),
        ("ConvTranspose2d", nn.ConvTranspose2d(6, 8, 3, stride=2), image(6, (5, 5)), ()),
        ("ConvTranspose2d in groups", nn.ConvTranspose2d(6, 10, (3, 2), groups=2), image(6, (5, 5)), ()),
        ("BatchNorm2d", nn.Sequential(nn.Conv2d(6, 8, 3, bias=False), nn.BatchNorm2d(8), nn.PReLU(8)), image(6, (9, 9)), ()),
        ("BatchNorm1d", nn.Sequential(nn.Linear(24, 8), nn.BatchNorm1d(8), nn.PReLU()), (torch.randn(3, 24),), ()),
        ("LayerNorm", nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 8), nn.LayerNorm((5, 8))), (torch.randn(3, 5, 24),), ()),
        ("RMSNorm", nn.Sequential(nn.RMSNorm(24), nn.Linear(24, 8)), (torch.randn(3, 5, 24),), ()),
        ("GroupNorm", nn.GroupNorm(2, 6), image(6, (4, 4)), ()),
        ("InstanceNorm2d", nn.InstanceNorm2d(6, affine=True), image(6, (4, 4)), ()),
        ("Embedding", Rows(nn.Linear(24, 8)), ids, ()),
        ("LSTM", First(nn.LSTM(24, 9, num_layers=2, bidirectional=True)), sequence, ()),
        ("GRU", First(nn.GRU(24, 9)), sequence, ()),
        ("parameters of no module", Learned(), (torch.randn(3, 5, 24),), ("position", "token", "gamma")),
    ]
    tests = [(name, lambda n=net, i=inputs, k=kept: beside_pytorch(n, i, k)) for name, net, inputs, kept in networks]
    tests += [(t.__name__, t) for t in (tied_table, by_pattern)]
    tests = tests[::3] if "--sample" in sys.argv[1:] else tests
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return run(tests)


if __name__ == "__main__":
    sys.exit(main())
