"""find_nan, compare, profile."""

import json

import numpy as np
import pytest

import astra
from astra import nn


def test_the_first_value_that_is_no_number():
    def f(x):
        y = x - 1.0
        z = astra.log(y)  # the place
        return (z * 2.0).sum()

    found = astra.find_nan(f, astra.tensor([2.0, 0.5, 3.0]))
    assert found.op == "log" and found.kind == "NaN" and found.where == (1,) and found.count == 1
    assert any("test_debug.py" in line for line in found.lines)
    assert "log" in str(found) and "[1]" in str(found)
    assert astra.find_nan(f, astra.tensor([2.0, 3.0])) is None


def test_infinities_and_arguments():
    assert astra.find_nan(lambda x: 1.0 / x, astra.tensor([1.0, 0.0])).kind == "inf"
    assert astra.find_nan(lambda x: 1.0 / x, astra.tensor([1.0, 0.0]), infinite=False) is None
    assert astra.find_nan(lambda x: x + 1.0, astra.tensor([float("nan")])).op == "an argument"


class Net(nn.Module):
    def __init__(self):
        self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 2)

    def __call__(self, x):
        return self.outer(astra.tanh(self.inner(x)))


def test_layer_by_layer():
    x = np.ones((3, 4), np.float32)
    net = Net()
    assert net.outer.weight.shape == (2, 8)
    same = astra.compare(net, Net(), x)
    assert [d.name for d in same] == ["inner", "outer", "(all)"] and same.first() is None
    other = net.load_state_dict({**net.state_dict(), "outer.bias": net.outer.bias + 1})
    assert astra.compare(net, other, x).first().name == "outer"
    assert "outer" in str(same)
    with pytest.raises(astra.ArgumentError, match="module"):
        astra.compare(lambda x: x, net, x)


def test_where_the_time_goes(tmp_path):
    net, x = Net(), np.ones((64, 4), np.float32)
    profile = astra.profile(net, x, repeat=3)
    assert profile.kernels and profile.seconds > 0 and sum(k.launches for k in profile.kernels) >= 1
    assert "of limit" in str(profile) and profile.kernels[0].name in str(profile)
    profile.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["name"] for e in events} == {k.name for k in profile.kernels}
