"""What compiled PyTorch code reads and changes beside its arguments: a new value is seen, a change is refused and put back."""

import pytest
import torch
from torch import nn

import astra as package
from astra import astra

X = torch.arange(1.0, 4.0)
weight, scale, log, trained = torch.ones(3), 2.0, [], torch.ones(3, requires_grad=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.factor, self.kept, self.calls = nn.Linear(3, 2), 2.0, [1.0], 0
        self.register_buffer("shift", torch.zeros(2))

    def forward(self, x):
        return self.linear(x) * self.factor * self.kept[0] + self.shift


def test_a_function_sees_tensors_and_numbers_from_outside():
    global weight, scale

    @astra
    def f(x):
        return x * weight + scale

    def check(traces):
        for _ in range(2):
            assert torch.equal(f(X), X * weight + scale) and f.traces == traces

    weight, scale = torch.ones(3), 2.0
    check(1)
    weight.add_(1)
    check(1)
    weight = torch.full((3,), 5.0)
    check(1)
    scale = 3.0
    check(2)
    weight = torch.ones(3, 3)
    check(3)


@pytest.mark.parametrize("gradients", [False, True])
def test_attributes_of_a_module_are_seen(gradients):
    torch.manual_seed(0)
    net = Net()
    f = astra(net)

    def check(traces):
        with torch.set_grad_enabled(gradients):
            for _ in range(2):
                torch.testing.assert_close(f(X), net(X))
        assert f.traces == traces

    check(1)
    net.linear.weight = nn.Parameter(torch.ones(2, 3))
    net.shift = torch.ones(2)
    check(1)
    net.factor = 5.0
    check(2)
    net.kept[0] = 3.0
    check(3)
    net.linear = nn.Linear(3, 2, bias=False)
    check(4)
    if gradients:
        net.linear.weight.requires_grad_(False)
        check(5)
        assert not f(X).requires_grad


def test_gradients_reach_tensors_from_outside():
    global trained

    @astra
    def f(x):
        return (x * trained).sum()

    trained = torch.ones(3, requires_grad=True)
    for _ in range(2):
        f(X).backward()
        assert torch.equal(trained.grad, X) and f.traces == 1
        trained = torch.full((3,), 2.0, requires_grad=True)


def test_a_weight_that_is_not_used_may_change():
    class Spare(Net):
        def __init__(self):
            super().__init__()
            self.spare = nn.Linear(4, 4)

    net = Spare()
    f = astra(net)
    with torch.no_grad():
        f(X)
        net.spare.weight.add_(1)
        torch.testing.assert_close(f(X), net(X))


class Counting(Net):
    def forward(self, x):
        self.calls += 1
        return x


class Keeping(Net):
    def forward(self, x):
        self.kept.append(x)
        return x


class Remembering(Net):
    def forward(self, x):
        self.last = x * 2
        return x


def appended(x):
    log.append(x)
    return x


def printed(x):
    print(x)
    return x


@pytest.mark.parametrize("make, sentence", [
    (Counting, r"'Counting' changes 'calls' \(test_environment.py:\d+\)"),
    (Keeping, "'Keeping' changes 'kept'"),
    (Remembering, "'Remembering' changes 'last'"),
    (lambda: appended, r"'appended' changes 'log' \(test_environment.py:\d+\)"),
    (lambda: printed, r"'printed' prints \(test_environment.py:\d+\)"),
])  # fmt: skip
def test_what_a_module_changes_is_refused_and_put_back(make, sentence):
    made = make()
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients), pytest.raises(package.TraceError, match=sentence):
            astra(made)(X.clone().requires_grad_(gradients))
    assert log == []
    if isinstance(made, nn.Module):
        assert made.calls == 0 and made.kept == [1.0] and not hasattr(made, "last")


def test_buffers_are_states():
    class Running(Net):
        def forward(self, x):
            self.shift = self.shift + 1
            return x * self.shift[0]

    net = Running()
    f = astra(net)
    with torch.no_grad():
        assert torch.equal(f(X), X) and torch.equal(f(X), X * 2) and net.shift.tolist() == [2, 2]
