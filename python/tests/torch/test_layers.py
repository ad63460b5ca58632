"""Layers of astra.nn beside those of PyTorch, by tolerance: state dicts load by name and mean the same."""

import numpy as np
import pytest
import torch

from astra import nn

LAYERS = {
    "linear": (lambda t: t.Linear(5, 3), (2, 5)),
    "conv": (lambda t: t.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9, 7)),
    "conv1d same": (lambda t: t.Conv1d(3, 2, 4, padding="same"), (2, 3, 9)),
    "conv3d": (lambda t: t.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 6, 5)),
    "transposed": (lambda t: t.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (2, 4, 5, 4)),
    "conv without a batch": (lambda t: t.Conv2d(4, 6, 3, padding=1), (4, 9, 7)),
    "transposed without a batch": (lambda t: t.ConvTranspose1d(4, 6, 3, stride=2), (4, 5)),
    "conv reflected": (lambda t: t.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), (1, 2, 5, 6)),
    "conv replicated": (lambda t: t.Conv1d(2, 3, 4, padding="same", padding_mode="replicate"), (2, 2, 7)),
    "conv circular": (lambda t: t.Conv2d(2, 3, 3, padding="same", dilation=2, padding_mode="circular"), (1, 2, 6, 7)),
    "upsample": (lambda t: t.Upsample(scale_factor=2), (1, 2, 3, 4)),
    "upsample by a half": (lambda t: t.Upsample(scale_factor=1.5), (1, 2, 5)),
    "upsample to a size": (lambda t: t.Upsample(size=(5, 3), mode="nearest-exact"), (1, 2, 3, 4)),
    "upsample linear": (lambda t: t.Upsample(scale_factor=2, mode="linear"), (2, 2, 5)),
    "upsample bilinear": (lambda t: t.Upsample(scale_factor=(1.5, 2.5), mode="bilinear"), (1, 2, 4, 5)),
    "upsample corners": (lambda t: t.Upsample(size=(7, 9), mode="bilinear", align_corners=True), (1, 2, 4, 5)),
    "upsample trilinear": (lambda t: t.Upsample(scale_factor=2, mode="trilinear"), (1, 1, 2, 3, 4)),
    "upsample bicubic": (lambda t: t.Upsample(size=(9, 6), mode="bicubic"), (1, 2, 4, 5)),
    "max pool": (lambda t: t.MaxPool2d(3, 2, 1), (1, 2, 9, 8)),
    "average pool": (lambda t: t.AvgPool2d(3, 2, 1, ceil_mode=True), (1, 2, 9, 8)),
    "layer norm": (lambda t: t.LayerNorm((3, 4)), (2, 3, 4)),
    "rms norm": (lambda t: t.RMSNorm(6, eps=1e-6), (2, 6)),
    "group norm": (lambda t: t.GroupNorm(2, 4), (2, 4, 3)),
    "instance norm": (lambda t: t.InstanceNorm1d(4, affine=True), (2, 4, 6)),
    "batch norm": (lambda t: t.BatchNorm2d(3), (2, 3, 4, 4)),
    "batch norm, not affine": (lambda t: t.BatchNorm1d(3, affine=False), (4, 3, 5)),
    "batch norm without running statistics": (lambda t: t.BatchNorm1d(3, track_running_stats=False), (4, 3, 5)),
    "prelu": (lambda t: t.PReLU(3), (2, 3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_beside_pytorch(name):
    make, shape = LAYERS[name]
    theirs = make(torch.nn).eval()
    ours = make(nn).load_state_dict(theirs.state_dict())
    x = np.random.default_rng(2).standard_normal(shape, dtype=np.float32)
    np.testing.assert_allclose(ours(x).numpy(), theirs(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_beside_pytorch(cell):
    theirs = getattr(torch.nn, cell)(5, 4, num_layers=2, bidirectional=True, batch_first=True)
    ours = getattr(nn, cell)(5, 4, num_layers=2, bidirectional=True, batch_first=True).load_state_dict(theirs.state_dict())
    x = np.random.default_rng(3).standard_normal((3, 6, 5), dtype=np.float32)
    (y, state), (z, last) = ours(x), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol=1e-4, atol=1e-5)
    pairs = zip(state, last) if cell == "LSTM" else [(state, last)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_without_a_batch(cell):
    theirs = getattr(torch.nn, cell)(5, 4, num_layers=2)
    ours = getattr(nn, cell)(5, 4, num_layers=2).load_state_dict(theirs.state_dict())
    x, h = (np.random.default_rng(3).standard_normal(s, dtype=np.float32) for s in ((6, 5), (2, 4)))
    of = lambda make: (make(h), make(h)) if cell == "LSTM" else make(h)  # noqa: E731
    (y, state), (z, last) = ours(x, of(lambda a: a)), theirs(torch.from_numpy(x), of(torch.from_numpy))
    pairs = zip(state, last) if cell == "LSTM" else [(state, last)]
    for a, b in [(y, z), *pairs]:
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_row_of_padding_gets_no_gradient():
    import astra

    theirs = torch.nn.Embedding(5, 2, padding_idx=-1)
    ours = nn.Embedding(5, 2, padding_idx=-1).load_state_dict(theirs.state_dict())
    ids = np.array([[4, 0], [1, 4]])
    theirs(torch.from_numpy(ids)).square().sum().backward()
    found = astra.grad(lambda layer: astra.square(layer(ids)).sum())(ours).weight
    np.testing.assert_allclose(found.numpy(), theirs.weight.grad.numpy(), rtol=1e-6)
