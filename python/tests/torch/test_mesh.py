"""A training step of PyTorch's for a mesh: its bundle run by all shards, beside the step without one."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import astra
import astra_rt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "astra"))
from mesh_ranks import exchange, tupled  # noqa: E402


def test_a_step_is_cut_by_rows():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    x, t = torch.randn(8, 6), torch.randint(0, 4, (8,))
    given = (model, torch.nn.CrossEntropyLoss(), "sgd(lr=0.1)", (x, t))
    plain = astra.torch.train_step(*given, target="native")
    cut = astra.torch.train_step(*given, target="native", mesh=astra.mesh(data=4))
    name = "astra.mesh.all_reduce/data=4/data/sum.one"
    astra_rt.register(name, lambda *x: tupled([exchange(name, np.asarray(v)) for v in x]), deterministic=True)
    try:
        module = astra_rt.load(cut.compiled.bundle)
        for _ in range(3):
            loss = float(plain(x, t))
            made = module.train_step(x=x.numpy().reshape(4, 2, 6), target=t.numpy().reshape(4, 2)).loss
            assert abs(float(made) - loss) < 1e-5  # another order of sums
    finally:
        astra_rt.unregister(name)
    with pytest.raises(astra.ArgumentError, match="shardings are of a mesh"):
        astra.torch.train_step(*given, target="native", shardings={"x": "(data, -)"})
    with pytest.raises(astra.Error, match="axis 0 of 'x' has an extent of 8, which 3 shards do not divide"):
        astra.torch.train_step(*given, target="native", mesh=astra.mesh(data=3))
    with pytest.raises(astra.UnsupportedError, match="train_step takes gradients while it traces, and a pipeline comes before gradients"):
        astra.torch.train_step(*given, target="native", mesh=astra.mesh(stage=4).with_options(pipeline="stage,microbatches=4"))
