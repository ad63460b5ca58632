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


def test_tensors_go_in_and_out_by_c_functions():
    """All kinds of views, types and shapes give what PyTorch gives, whichever way they go."""
    f, g = astra(lambda x: x + x), astra(lambda x: (x * 2, x.sum()))
    z = torch.tensor([1 + 2j, 3 - 1j])
    wide = torch.arange(12.0).reshape(3, 4)
    given = [wide, wide.T, wide[1], wide[:, ::2], wide[1:, 1:2], torch.tensor(2.0), torch.zeros(0), torch.zeros(0, 3), torch.ones(2, 1).expand(2, 3), z, z.conj(),
             z.conj().imag, z.real, *(torch.tensor([1, 0, 1]).to(t) for t in (torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.uint8, torch.int64)),
             nn.Parameter(torch.ones(2)).detach(), torch.ones(2, requires_grad=True)]  # fmt: skip
    with torch.no_grad():
        for x in given:
            for _ in range(3):  # the third by the quick way
                y, s = f(x), g(x)
                assert torch.equal(y, x + x) and y.dtype == (x + x).dtype
                assert torch.equal(s[0], x * 2) and torch.allclose(s[1], x.sum())
        kept = [f(torch.full((1000,), float(i))) for i in range(50)]
        assert all((t == 2 * i).all() for i, t in enumerate(kept))
        kept[3].add_(1)  # results are the caller's
        assert (kept[3] == 7).all() and (kept[4] == 8).all()


def test_the_type_of_a_view_does_not_matter_to_the_runtime():
    x = torch.arange(3.0)
    double = package.trace(lambda x: x + x, package.spec((3,))).lower().compile("native").module
    assert double(x).tolist() == [0, 2, 4] and double(torch.arange(6.0)[::2]).tolist() == [0, 4, 8]
    assert double(torch.complex(x, -x).conj().imag).tolist() == [0, 2, 4]
    with pytest.raises((package.Error, BufferError, RuntimeError)):
        double(x.clone().requires_grad_(True))
    with pytest.raises(package.DTypeError):
        double(x.double())
