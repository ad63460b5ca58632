"""How compiled PyTorch code is called: from threads, as a method, inside of other PyTorch code, under other settings; what is refused."""

import copy
import logging
import pickle
import threading

import pytest
import torch
from torch import nn

import astra as package
from astra import astra

X = torch.arange(1.0, 4.0)


def in_threads(*calls):
    """What calls give that begin at once; exceptions too."""
    out, begin = [None] * len(calls), threading.Barrier(len(calls))

    def run(i):
        begin.wait()
        try:
            out[i] = calls[i]()
        except Exception as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


@pytest.mark.parametrize("gradients", [False, True])
def test_first_calls_in_two_threads_leave_the_weights(gradients):
    net = nn.Linear(4, 3).requires_grad_(gradients)
    weight, f = net.weight, astra(net)
    given = [torch.ones(n, 4) for n in (2, 3)]
    made = in_threads(*(lambda x=x: f(x) for x in given))
    assert net.weight is weight and type(net.weight) is nn.Parameter and f.traces == 2
    for y, x in zip(made, given):
        torch.testing.assert_close(y, net(x))
    others = [nn.Linear(4, n) for n in (1, 2, 3)]
    for y, m in zip(in_threads(*(lambda m=m: astra(m)(given[0]) for m in others)), others):
        assert type(m.weight) is nn.Parameter
        torch.testing.assert_close(y, m(given[0]))


class Method(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.linear = nn.Linear(3, n)

    @astra
    def forward(self, x):
        return self.linear(x)

    @astra
    def twice(self, x):
        return self(x) * 2


class Plain:
    def __init__(self, factor):
        self.factor = factor

    @astra
    def scaled(self, x):
        return x * self.factor


def test_a_method_is_compiled_for_each_object():
    a, b = Method(), Method(4)
    for net in (a, b, copy.deepcopy(a), pickle.loads(pickle.dumps(b))):
        for _ in range(2):
            torch.testing.assert_close(net(X), net.linear(X))
            torch.testing.assert_close(net.twice(X), net.linear(X) * 2)
        assert net.forward.traces == 1 and net.twice.traces == 1
    a(X).sum().backward()
    assert a.linear.bias.grad.tolist() == [1, 1]
    small, large = Plain(2.0), Plain(5.0)
    assert small.scaled(X).tolist() == [2, 4, 6] and large.scaled(X).tolist() == [5, 10, 15]
    small.factor = 3.0
    assert small.scaled(X).tolist() == [3, 6, 9] and small.scaled.traces == 2


def test_arguments_that_share_memory_with_a_changed_one_are_refused():
    f = astra(lambda a, b: (a.add_(1), b * 2)[1])
    y = torch.ones(3)
    assert f(y, torch.ones(3)).tolist() == [2, 2, 2] and y.tolist() == [2, 2, 2]
    both = torch.zeros(2, 4)
    with pytest.raises(ValueError, match="shares memory"):
        f(y, y)
    with pytest.raises(ValueError, match="shares memory"):
        f(both.view(-1)[:3], both.view(-1)[2:5])
    assert f(both[:, :2], both[:, 2:]).tolist() == [[0, 0]] * 2 and both.tolist() == [[1, 1, 0, 0]] * 2  # no element in common
    g = astra(lambda a, b: (a.view(-1)[:1].add_(1), (a * b * 2).sum())[1])
    w = torch.ones(3, requires_grad=True)
    g(torch.ones(3), w).backward()
    assert w.grad.tolist() == [4, 2, 2]
    with pytest.raises(ValueError, match="shares memory"):
        g(w.detach(), w)
    h = astra(lambda a, b: a * b)  # nothing is changed: one tensor twice, then two
    assert h(y, y).tolist() == [4, 4, 4] and h(y, torch.ones(3)).tolist() == [2, 2, 2]


def test_settings_of_torch_are_seen():
    f, g = astra(lambda x: x @ x), astra(lambda x: torch.ones(2) * x.sum())
    x, integers = torch.ones(2, 2), torch.ones(3, dtype=torch.int64)
    half = astra(lambda x: x / 2)
    for _ in range(2):
        assert f(x).dtype is torch.float32 and g(integers).dtype is torch.float32 and half(integers).dtype is torch.float32
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype):
                assert f(x).dtype is dtype
        torch.set_default_dtype(torch.float64)
        try:
            assert g(integers).dtype is torch.float64 and half(integers).dtype is torch.float64
        finally:
            torch.set_default_dtype(torch.float32)
    assert f.traces == 3 and g.traces == 2


def test_autocast_of_a_module_with_gradients():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    f = astra(net)
    f(X)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mine, theirs = f(X), net(X)
        assert mine.dtype is theirs.dtype is torch.bfloat16
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=1e-2)
        gradients = [torch.autograd.grad(y.float().sum(), net[0].weight)[0] for y in (mine, theirs)]
        torch.testing.assert_close(*gradients, rtol=2e-2, atol=1e-2)


def test_a_compiled_module_is_a_module():
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    f = astra(net)
    assert isinstance(f, nn.Module) and f.get_submodule('0') is net[0] and dict(f.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert f.state_dict().keys() == net.state_dict().keys()
    f.eval()
    assert not net.training and not f.training and not net[1].training
    net.eval()
    torch.testing.assert_close(f(X), net(X))
    whole = nn.Sequential(astra(nn.Linear(3, 3)), nn.ReLU())
    torch.testing.assert_close(whole(X), whole[0].original(X).relu())
    assert list(whole.state_dict()) == ["0.weight", "0.bias"]
    torch.testing.assert_close(astra(whole)(X), whole(X))
    f.scale = 2.0
    assert net.scale == 2.0
    clone = copy.deepcopy(f)
    assert clone.original[0] is not net[0] and clone.original[0].weight.equal(net[0].weight)
    torch.testing.assert_close(clone(X), net(X))
    torch.testing.assert_close(pickle.loads(pickle.dumps(f))(X), net(X))
    other = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5)).eval()
    f.load_state_dict(other.state_dict())
    torch.testing.assert_close(f(X), other(X))


@astra
def doubled(x):
    return x * 2


def test_compiled_functions_inside_of_others():
    inner = astra(nn.Linear(3, 2))

    @astra
    def f(x):
        return inner(doubled(x)) + 1

    torch.testing.assert_close(f(X), inner.original(X * 2) + 1)
    assert doubled(X).tolist() == [2, 4, 6]  # alone too, before and behind
    torch.testing.assert_close(f(X + 1), inner.original(X * 2 + 2) + 1)
    with torch.no_grad():
        inner.weight.zero_()
    torch.testing.assert_close(f(X), inner.original(X * 2) + 1)


def test_transforms_of_torch_take_the_original():
    assert torch.func.grad(lambda x: doubled(x).sum())(X).tolist() == [2, 2, 2]
    assert torch.vmap(doubled)(X).tolist() == [2, 4, 6]
    assert torch.compile(lambda x: doubled(x) + 1, backend="eager", fullgraph=True)(X).tolist() == [3, 5, 7]
    net = astra(nn.Linear(3, 2))
    torch.testing.assert_close(torch.compile(net, backend="eager")(X), net.original(X))
    program = torch.export.export(nn.Sequential(net, nn.ReLU()), (X,))
    torch.testing.assert_close(program.module()(X), net.original(X).relu())


def test_gradients_of_gradients_are_refused():
    f, x = astra(lambda x: (x * x * x).sum()), torch.ones(3, requires_grad=True)
    with pytest.raises(package.UnsupportedError, match="gradients of gradients"):
        torch.autograd.grad(f(x), x, create_graph=True)
    assert torch.autograd.grad(f(x), x)[0].tolist() == [3, 3, 3]


def test_a_bundle_in_memory_is_called_as_its_function():
    net, drop = nn.Linear(3, 2), nn.Dropout(0.5)
    with torch.no_grad():
        torch.testing.assert_close(package.from_torch(net, X).compile("native")(X), net(X))
        made = package.from_torch(lambda x, k: {"sum": x.sum(), "more": [x + k["y"], 3]}, X, {"y": X}).compile("native")
        found = made(X, {"y": X})
        assert found["sum"] == 6 and found["more"][0].tolist() == [2, 4, 6] and found["more"][1] == 3
        with pytest.raises(ValueError, match="structure"):
            made(X)
        random = package.from_torch(drop, torch.ones(1000)).compile("native")
        assert not random(torch.ones(1000)).equal(random(torch.ones(1000)))
    again = pickle.loads(pickle.dumps(made))
    assert len(again(X, X)) == 2


class Failing(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        if self.error is KeyError:
            return {}["mine"] + x
        assert self.error is not AssertionError, "my words"
        raise ValueError("a value of mine")


@pytest.mark.parametrize("error, words", [(KeyError, "mine"), (AssertionError, "my words"), (ValueError, "a value of mine")])
@pytest.mark.parametrize("gradients", [False, True])
def test_exceptions_of_the_users_come_through(error, words, gradients):
    with pytest.raises(error, match=words) as caught:
        astra(Failing(error))(X.clone().requires_grad_(gradients))
    assert type(caught.value) is error


def test_refusals_name_what_is_wrong(caplog):
    with torch.no_grad(), pytest.raises(ValueError, match=r"'Linear' is called with batch = 9; dims gives batch the bounds 1\.\.8"):
        astra(nn.Linear(3, 2), dims={"input": ("batch", 1, 8)})(torch.ones(9, 3))
    for f in (lambda a: a[a > 0], lambda a: a.masked_select(a > 0).sum()):
        with pytest.raises(package.TraceError, match=r"test_calls\.py:\d+\).*size depends on data.*torch\.where"):
            astra(f)(torch.randn(4, requires_grad=True))
    with caplog.at_level(logging.WARNING), pytest.raises(package.TraceError, match=r"test_calls\.py:\d+\)") as caught:
        astra(lambda x: x @ torch.ones(5, 5))(X)
    assert "torch.where" not in str(caught.value) and not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_targets_and_bundles_that_would_be_passed_over_are_refused(tmp_path):
    for target, words in (("nope", "no target 'nope'"), ("cuda:sm_90", "bundle="), (["cpu:x86-64-v3"], "bundle=")):
        for f in (lambda x: x, nn.Linear(3, 2)):
            with pytest.raises(ValueError, match=words):
                astra(f, target=target)
    with pytest.raises(ValueError, match="no target 'nope'"):
        astra(nn.Linear, target="nope", bundle="m.astra")
    path = tmp_path / "m.astra"
    f = astra(nn.Linear(3, 2), bundle=path, target="native")
    torch.testing.assert_close(f(X), f.original(X))
    torch.testing.assert_close(torch.from_dlpack(package.load(path)(X)), f.original(X).detach())
    with pytest.raises(ValueError, match="has saved its bundle"):
        f(torch.ones(2, 3))
    assert f(X).requires_grad


def test_numbers_that_are_equal_and_not_the_same():
    f = astra(lambda a, s: a / s)
    assert f(torch.ones(1), 0.0).item() == float("inf") and f(torch.ones(1), -0.0).item() == -float("inf")
    before = f.traces
    assert all(f(torch.ones(1), float("nan")).isnan() for _ in range(3)) and f.traces == before + 1
    g, x = package.jit(lambda a, s: a / s), package.ones(1)
    assert g(x, 0.0).tolist() == [float("inf")] and g(x, -0.0).tolist() == [-float("inf")]


def test_class_methods():
    class Scaled:
        factor = 2

        @classmethod
        @astra
        def of(cls, x):
            return x * cls.factor

    assert Scaled.of(torch.ones(2)).tolist() == Scaled().of(torch.ones(2)).tolist() == [2, 2]
