"""Control flow that PyTorch keeps in the graph, sizes with bounds, mutations and custom ops: each beside PyTorch."""

import pytest
import torch
import torch.nn as nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as torch_map

import astra as package
from astra import astra


def same(f, *args, tolerance=1e-6):
    """f compiled gives what f gives."""
    mine, theirs = astra(f)(*args), f(*args)
    for a, b in zip(*(torch.utils._pytree.tree_leaves(x) for x in (mine, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_cond():
    def f(x, y):
        return torch.cond(x.sum() > y.sum(), lambda x, y: (x * 2, y - 1), lambda x, y: (x - 1, x + y), (x, y))

    x = torch.randn(4).abs()
    for a, b in ((x, -x), (-x, x)):
        same(f, a, b)


def test_what_pytorch_refuses_is_said():
    with pytest.raises(package.TraceError, match="'f' cannot be captured as a graph.*alias"):

        @astra
        def f(x, y):
            return torch.cond(x.sum() > 0, lambda x, y: y, lambda x, y: x + y, (x, y))

        f(torch.ones(2), torch.ones(2))


def test_cond_has_a_gradient():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * x, (x,))

    for sign in (1, -1):
        x = (torch.rand(3) * sign).requires_grad_()
        (mine,), (theirs,) = (torch.autograd.grad(g(x).sum(), x) for g in (astra(f), f))
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_switch():
    switch = getattr(torch, "switch", None) or getattr(torch._higher_order_ops, "switch", None)
    if switch is None:
        pytest.skip("this PyTorch has no switch")

    def f(i, x):
        return switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], (x,))

    for i in range(3):
        same(f, torch.tensor(i), torch.randn(3))


def test_while_loop():
    def f(n, x):
        return while_loop(lambda i, x: i < n.sum(), lambda i, x: (i + 1, x * 1.5 + i), (torch.zeros((), dtype=torch.int64), x))

    for n in (0, 1, 5):
        same(f, torch.tensor(n), torch.randn(3))


def test_scan():
    def f(x):
        return scan(lambda c, x: (c * 0.5 + x, c.sin() + x), torch.zeros(3), x)

    same(f, torch.randn(6, 3))
    same(lambda x: scan(lambda c, x: (c + x, c * x), torch.ones(2), x, dim=1, reverse=True), torch.randn(2, 4))


def test_scan_has_a_gradient():
    def f(x):
        return scan(lambda c, x: (c * 0.5 + x, c.sin() + x), torch.zeros(3), x)[1]

    x = torch.randn(5, 3, requires_grad=True)
    (mine,), (theirs,) = (torch.autograd.grad(g(x).square().sum(), x) for g in (astra(f), f))
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_map():
    same(lambda x, y: torch_map(lambda row, y: (row * y).sum() + row, x, y), torch.randn(5, 3), torch.randn(3))


def test_associative_scan():
    def f(x):
        return associative_scan(lambda a, b: a * 0.9 + b, x, dim=0, combine_mode="generic")

    same(lambda x: associative_scan(torch.add, x, dim=0, combine_mode="generic"), torch.randn(7, 2), tolerance=1e-5)
    same(lambda x: associative_scan(torch.maximum, x, dim=1, combine_mode="generic"), torch.randn(2, 5))
    same(lambda xs: associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), xs, dim=0, combine_mode="generic"), (torch.rand(6, 2), torch.randn(6, 2)), tolerance=1e-5)


def test_dims_of_several_axes_and_arguments_share_a_name():
    size = {0: ("rows", 1, 6), 1: ("columns", 2, 9)}
    f = astra(lambda x, y: (x @ y.T).softmax(-1) * x.shape[1], dims={"x": size, "y": {1: ("columns", 2, 9)}})
    for rows, columns in ((1, 2), (3, 5), (6, 9)):
        x, y = torch.randn(rows, columns), torch.randn(4, columns)
        torch.testing.assert_close(f(x, y), (x @ y.T).softmax(-1) * columns, rtol=1e-5, atol=1e-6)
    for x, y in ((torch.randn(7, 5), torch.randn(4, 5)), (torch.randn(2, 10), torch.randn(4, 10)), (torch.randn(2, 4), torch.randn(4, 5))):
        with pytest.raises(ValueError):
            f(x, y)


def test_bounds_may_be_dims_of_this_package(tmp_path):
    captured = package.from_torch(nn.Linear(3, 2), torch.randn(4, 3), dims={"input": package.dim("batch", 1, 16)})
    captured.compile("native").save(tmp_path / "m.astra")
    model = package.load(tmp_path / "m.astra")
    assert model.inputs[0].upper == (16, 3) and torch.from_dlpack(model(torch.ones(16, 3))).shape == (16, 2)


def test_mutations_of_inputs_buffers_and_views():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x, y):
            x[0].mul_(2)  # by a view
            y.copy_(x.sum(0))
            self.seen.add_(y)
            return x + self.seen

    mine, theirs = Module(), Module()
    compiled = astra(mine)
    a, b = [torch.randn(2, 3), torch.zeros(3)], None
    b = [t.clone() for t in a]
    for _ in range(2):
        torch.testing.assert_close(compiled(*a), theirs(*b))
        for p, q in zip([*a, mine.seen], [*b, theirs.seen]):
            torch.testing.assert_close(p, q)


@torch.library.custom_op("astra_tests::smooth", mutates_args=())
def smooth(x: torch.Tensor, by: float) -> torch.Tensor:
    return x / (by + x.abs())


@smooth.register_fake
def _(x, by):
    return torch.empty_like(x)


smooth.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0], None),
                         setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1] / (inputs[1] + inputs[0].abs()) ** 2))  # fmt: skip


def test_a_lowering_of_a_custom_op():
    @package.register_lowering(smooth)
    def _(x, by):
        assert isinstance(x, package.Tensor)
        return x / (by + abs(x))

    x = torch.randn(5, requires_grad=True)
    f = astra(lambda x: smooth(x * 2, 1.5))
    mine, theirs = f(x), smooth(x * 2, 1.5)
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (mine, theirs)))


def test_tensors_elsewhere_are_refused():
    f = astra(lambda x: x + 1)
    with pytest.raises(package.UnsupportedError, match=r"lies on meta.*\.cpu\(\)"):
        f(torch.ones(2, device="meta"))
