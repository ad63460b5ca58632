"""Modules, losses, optimizers: trees, training steps, state dicts."""

import numpy as np
import pytest

import astra
from astra import nn, optim


class Net(nn.Module):
    def __init__(self):
        self.conv, self.norm = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.inner, self.drop = nn.Linear(32, 8), nn.Dropout(0.25)
        self.outer = nn.Linear(8, 3)

    def __call__(self, x):
        x = nn.MaxPool2d(2)(astra.maximum(self.norm(self.conv(x)), 0.0))
        return self.outer(self.drop(astra.tanh(self.inner(x.reshape(x.shape[0], -1)))))


def images():
    rng = np.random.default_rng(1)
    return rng.random((6, 1, 8, 8), dtype=np.float32), rng.integers(0, 3, 6)


def test_weights_are_a_function_of_the_seed():
    one, two, other = Net(seed=0), Net(seed=0), Net(seed=1)
    for name, t in one.state_dict().items():
        assert t.tobytes() == two.state_dict()[name].tobytes()
    assert one.inner.weight.tobytes() != other.inner.weight.tobytes()
    assert nn.initialize(one, seed=1).inner.weight.tobytes() == other.inner.weight.tobytes()
    same = nn.Sequential(nn.Linear(4, 4), astra.tanh, nn.Linear(4, 4))
    assert same[0].weight.tobytes() != same[2].weight.tobytes()
    assert abs(float(one.inner.weight.numpy().max()) - 32**-0.5) < 0.01


def test_what_was_trained_is_not_drawn_again():
    trained = nn.Linear(2, 2).load_state_dict({"weight": np.eye(2, dtype="f"), "bias": np.zeros(2, "f")})

    class Outer(nn.Module):
        def __init__(self):
            self.part = trained

    assert Outer().part.weight.tolist() == [[1, 0], [0, 1]]


def test_training_in_one_program():
    x, y = images()
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(lr=0.02, schedule=astra.schedules.warmup(steps=2)))
    params, rest = nn.partition(Net())
    state = optimizer.init(params)

    def loss_of(params, rest, x, y, key):
        scores, after = nn.apply(nn.combine(params, rest), x, key=key)
        return astra.losses.cross_entropy(scores, y), nn.partition(after)[1]

    @astra.jit
    def step(params, rest, state, x, y, key):
        (loss, rest), gradients = astra.value_and_grad(loss_of, has_aux=True)(params, rest, x, y, key)
        params, state = optimizer.step(params, gradients, state)
        return params, rest, state, loss

    losses = []
    for i in range(40):
        params, rest, state, loss = step(params, rest, state, x, y, np.array([0, i], np.uint32))
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 2
    net = nn.combine(params, rest)
    assert net.norm.num_batches_tracked.item() == 40 and net.norm.running_mean.tolist() != [0, 0]
    assert astra.metrics.accuracy(net(x), y).item() == 1


def test_a_module_outside_of_training_changes_nothing():
    net, (x, _) = Net(), images()
    before = astra.nn.partition(net)[1].norm.running_mean.tolist()
    assert net(x).tobytes() == net(x).tobytes() and net.norm.running_mean.tolist() == before


def test_accumulated_steps_and_averages():
    w = {"w": astra.tensor([1.0, 2.0])}
    g = {"w": astra.tensor([1.0, 1.0])}
    twice = optim.accumulate(optim.sgd(lr=0.5), 2)
    state = twice.init(w)
    once, state = twice.step(w, g, state)
    assert once["w"].tolist() == [1, 2]
    after, state = twice.step(once, {"w": astra.tensor([3.0, 3.0])}, state)
    assert after["w"].tolist() == [0, 1]
    ema = optim.ema(optim.sgd(lr=1.0), keep=0.5)
    _, state = ema.step(w, g, ema.init(w))
    assert state["average"]["w"].tolist() == [0.5, 1.5]


def test_weights_that_do_not_decay():
    w = {"bias": astra.tensor([1.0]), "weight": astra.tensor([1.0])}
    zero = astra.nn._module._tree.map(astra.zeros_like, w)
    optimizer = optim.sgd(lr=1.0, weight_decay=0.5, decay=lambda path, t: path != "bias")
    after, _ = optimizer.step(w, zero, optimizer.init(w))
    assert after["bias"].tolist() == [1] and after["weight"].tolist() == [0.5]


def test_attention_with_a_cache_is_attention_without_one():
    layer = nn.MultiHeadAttention(16, 4, kv_heads=2, causal=True, rotary_base=10000.0)
    x = np.random.default_rng(0).standard_normal((2, 6, 16), dtype=np.float32)
    whole = layer(x).numpy()
    _, cache = layer(x[:, :4], use_cache=True)
    tail, _ = layer(x[:, 4:], cache=cache)
    np.testing.assert_allclose(tail.numpy(), whole[:, 4:], rtol=1e-5, atol=1e-6)


def test_low_rank_updates():
    base = nn.Linear(4, 3)
    layer = nn.LoRA(base, rank=2)
    x = np.ones((1, 4), np.float32)
    assert layer(x).tobytes() == base(x).tobytes()
    gradient = astra.grad(lambda m: m(x).sum())(layer)
    assert gradient.base.weight.tolist() == np.zeros((3, 4)).tolist() and np.any(gradient.lora_B.numpy())


def test_files_of_weights(tmp_path):
    net = Net(seed=5)
    nn.save(net, tmp_path / "net.safetensors")
    read = nn.load(Net(seed=6), tmp_path / "net.safetensors")
    assert all(t.tobytes() == read.state_dict()[n].tobytes() for n, t in net.state_dict().items())
    with pytest.raises(astra.ArgumentError, match="missing"):
        Net().load_state_dict({})
    with pytest.raises(astra.ShapeError, match="inner.weight"):
        Net().load_state_dict({**net.state_dict(), "inner.weight": np.zeros((2, 2), "f")})


def test_what_does_not_fit_an_optimizer():
    o, ones = optim.adam(lr=0.1), {"a": astra.ones((3,))}
    for gradients, state in (({"a": astra.ones((1,))}, o.init(ones)), (ones, o.init({"a": astra.ones((5,))}))):
        with pytest.raises(astra.ShapeError, match="'a'"):
            o.step(ones, gradients, state)
    with pytest.raises(astra.ArgumentError, match="tree"):
        o.step(ones, {"b": astra.ones((3,))}, o.init(ones))
    with pytest.raises(astra.ArgumentError, match="another optimizer"):
        o.step(ones, ones, optim.sgd().init(ones))
    with pytest.raises(astra.DTypeError, match="float16"):
        o.init({"a": astra.ones((3,), dtype="float16")})
    with pytest.raises(ValueError, match="lr"):
        optim.sgd(lr=-1.0)


def test_weights_of_narrow_types():
    assert nn.Linear(2, 2, dtype="bfloat16").weight.dtype is astra.bfloat16
    assert astra.init.normal((4,), dtype="float16").tobytes() == astra.init.normal((4,)).astype("float16").tobytes()
    with pytest.raises(astra.DTypeError, match="int32"):
        astra.init.normal((2,), dtype="int32")


def test_shapes_that_layers_are_not_for():
    with pytest.raises(astra.ShapeError, match="extents"):
        nn.LayerNorm(1)(np.ones((8, 3), np.float32))
    for layer, shape in ((nn.BatchNorm2d(1), (2, 4, 3, 3)), (nn.GroupNorm(1, 1), (2, 4, 3))):
        with pytest.raises(astra.ShapeError, match="is for"):
            layer(np.ones(shape, np.float32))
    with pytest.raises(astra.ShapeError, match="accuracy"):
        astra.metrics.accuracy(np.ones(3, np.float32), np.ones(3, np.int64))
