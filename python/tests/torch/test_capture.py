"""`@astra`, from_torch, torch.compile's backend and training steps beside PyTorch."""

import copy
import subprocess
import sys

import pytest
import torch
import torch.nn as nn

import astra as package
from astra import astra


def close(mine, theirs, tolerance=1e-5):
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    assert (mine - theirs).abs().max() <= tolerance * theirs.abs().max()


def network():
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))


def test_the_first_example():
    @astra
    def forward(x):
        return nn.Softmax(dim=1)(x)

    x = torch.randn(2, 3)
    y = forward(x)
    assert isinstance(y, torch.Tensor)
    close(y, nn.Softmax(dim=1)(x), 1e-6)


def test_import_astra_does_not_import_torch():
    code = "import sys, astra; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_inference_reads_parameters_and_buffers_at_each_call():
    model = network().eval()
    compiled, x = astra(model), torch.randn(3, 2, 4, 4)
    with torch.no_grad():
        close(compiled(x), model(x))
        model[5].weight.mul_(2)
        close(compiled(x), model(x))


def test_norms_and_activations_in_evaluation_and_training():
    """Their rows are composites of lib/Compose, and so are the backward ops of norms."""
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Hardswish(), nn.GroupNorm(2, 4), nn.Mish(), nn.BatchNorm2d(4, affine=False),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.RMSNorm(36), nn.Softplus(2), nn.LayerNorm(36, elementwise_affine=False), nn.GLU(),
    )  # fmt: skip
    compiled, x = astra(model), torch.randn(2, 3, 9, 9)
    with torch.no_grad():
        model.eval()
        close(compiled(x), model(x))
    model.train()
    wanted = [torch.autograd.grad((f(x) ** 2).sum(), list(model.parameters())) for f in (compiled, model)]
    scale = max(g.abs().max() for g in wanted[1])
    for mine, theirs in zip(*wanted):
        assert (mine - theirs).abs().max() <= 1e-5 * scale
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    attend = lambda q, k: nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)  # noqa: E731
    with torch.no_grad():
        close(astra(attend)(q, k), attend(q, k))


def test_training_by_backward_and_an_optimizer_of_torch():
    mine = network()
    theirs = copy.deepcopy(mine)
    compiled = astra(mine)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (mine, theirs)]
    x, y = torch.randn(4, 2, 4, 4), torch.randint(0, 3, (4,))
    for _ in range(3):
        for model, optimizer in ((compiled, optimizers[0]), (theirs, optimizers[1])):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    for a, b in zip(mine.state_dict().values(), theirs.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert mine[1].num_batches_tracked == 3


def test_a_function_reads_modules_outside_of_it_at_each_call():
    linear = nn.Linear(3, 2)

    @astra
    def f(x):
        return linear(x).relu()

    x = torch.randn(4, 3)
    for _ in range(2):
        with torch.no_grad():
            close(f(x), linear(x).relu())
            linear.weight.neg_()
    f(x).sum().backward()
    mine, linear.weight.grad = linear.weight.grad, None
    linear(x).relu().sum().backward()
    close(mine, linear.weight.grad)


def test_backend_of_torch_compile():
    import astra.torch  # noqa: F401

    model = network()
    compiled = torch.compile(copy.deepcopy(model), backend="astra")
    x = torch.randn(3, 2, 4, 4, requires_grad=True)
    a, b = compiled(x), model(x)
    close(a.detach(), b.detach())
    cotangent = torch.randn_like(a)
    close(*(torch.autograd.grad(out, x, cotangent)[0] for out in (a, b)), 1e-4)


def test_products_of_a_matrix_unit():
    """Under numerics= a module, its gradients, Dynamo's graphs and a training step have the unit's bits: the evaluator's."""
    contract = "device:hopper16"
    model, x = network().eval(), torch.randn(3, 2, 4, 4)
    captured = package.from_torch(model, x)
    wanted, strict = captured.compile("native", numerics=contract), captured.compile("native")
    package.verify(wanted, x.numpy())
    results = [f.detach().numpy().tobytes() for f in (wanted(x), strict(x))]
    assert results[0] != results[1]
    with torch.no_grad():
        for compiled in (astra(model, numerics=contract), astra(copy.deepcopy(model), numerics=contract),
                         torch.compile(copy.deepcopy(model), backend="astra", options={"numerics": contract})):  # fmt: skip
            assert compiled(x).numpy().tobytes() == results[0]
    gradients = []
    for make in (lambda m: m, lambda m: astra(m, numerics=contract), lambda m: torch.compile(m, backend="astra", options={"numerics": contract})):
        theirs = copy.deepcopy(model)
        make(theirs)(x).square().sum().backward()
        gradients.append([p.grad for p in theirs.parameters()])
    for plain, one, two in zip(*gradients):
        assert one.numpy().tobytes() == two.numpy().tobytes() != plain.numpy().tobytes()
        assert (one - plain).norm() < 0.03 * plain.norm()
    y = torch.randn(3, 4)
    mine = [package.torch.train_step(nn.Linear(5, 4), nn.MSELoss(), "sgd(lr=0.5)", (torch.randn(3, 5), y), numerics=c).compiled for c in (contract, "strict")]
    assert [contract.encode() in bytes(c.bundle) for c in mine] == [True, False]
    for wrong in (lambda c: astra(model, numerics=c), lambda c: captured.compile("native", numerics=c),
                  lambda c: package.torch.train_step(model, nn.MSELoss(), "sgd", (x, torch.randn(3, 3)), numerics=c)):  # fmt: skip
        with pytest.raises(package.ArgumentError, match="there is no matrix unit 'hopper'; there are hopper16"):
            wrong("device:hopper")


def test_an_average_of_a_permuted_image_has_dims():
    """Its decomposition asks for a view by strides, which is the row-major one."""

    @astra(dims={"x": ("batch", 1, 8)})
    def f(x):
        return torch.nn.functional.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1)

    for n in (1, 2, 8):
        x = torch.randn(n, 4, 6, 3)
        assert torch.allclose(f(x), x.mean((1, 2))[..., None, None], atol=1e-6)


def test_dims_have_bounds():
    @astra(dims={"x": ("batch", 1, 8)})
    def f(x):
        return (x @ x.T).relu().sum(0)

    for n in (1, 3, 8):  # the first call has a size that torch.export would take for a constant
        x = torch.randn(n, 4)
        close(f(x), (x @ x.T).relu().sum(0))
    with pytest.raises(ValueError, match="batch|8"):
        f(torch.randn(9, 4))


def test_mutations_are_written_back():
    @astra
    def f(x):
        x.add_(1)
        return x * 2

    x = torch.zeros(3)
    assert f(x).tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]


def test_control_flow():
    @astra
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    x = torch.randn(4)
    for v in (x.abs(), -x.abs()):
        assert torch.equal(f(v), v * 2 if v.sum() > 0 else v - 1)


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_layers(make, both):
    model, x = make(3, 4, num_layers=2, bidirectional=both, batch_first=True), torch.randn(2, 5, 3)
    with torch.no_grad():
        mine, theirs = (torch.utils._pytree.tree_leaves(f(x)) for f in (astra(model), model))
    for a, b in zip(mine, theirs, strict=True):
        close(a, b)


def test_random_numbers_follow_the_seed():
    drop = astra(nn.Dropout(0.5))
    torch.manual_seed(3)
    a, b = drop(torch.ones(1000)), drop(torch.ones(1000))
    torch.manual_seed(3)
    assert torch.equal(a, drop(torch.ones(1000))) and not torch.equal(a, b) and 0.8 < a.mean() < 1.2


@torch.library.custom_op("astra_tests::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scale.register_fake
def _(x, factor):
    return torch.empty_like(x)


def test_refusals_name_the_line_of_the_user():
    @astra
    def branches(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(package.TraceError, match=r"test_capture\.py:\d+.*torch\.cond"):
        branches(torch.ones(2))

    @astra
    def custom(x):
        return scale(x, 3.0)

    with pytest.raises(package.UnsupportedError, match=r"astra_tests\.scale \(.*test_capture\.py:\d+\).*register_lowering"):
        custom(torch.ones(2))
    package.torch.register_lowering(torch.ops.astra_tests.scale)(lambda x, factor: x * factor)
    assert custom(torch.ones(2)).tolist() == [3, 3]


def test_a_bundle_keeps_changed_buffers_as_states(tmp_path):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(2))
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            self.n += 1
            return self.linear(x) + self.n

    model, x = Counting(), torch.randn(4, 3)
    package.torch.from_torch(model, x).compile("cpu:x86-64-v3").save(tmp_path / "m.astra")
    loaded = package.load(tmp_path / "m.astra")
    first = torch.from_dlpack(loaded(x)).clone()
    second = torch.from_dlpack(loaded(x))
    close(first, model.linear(x).detach() + 1)
    close(second - first, torch.ones(4, 2))
    assert loaded.get_state("n").tolist() == [2, 2]


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01)], ids=["sgd", "adamw"])
def test_a_training_step_in_one_bundle(make):
    mine = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    theirs = copy.deepcopy(mine)
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    step = package.torch.train_step(mine, nn.CrossEntropyLoss(), make(mine.parameters()), (x, y))
    optimizer = make(theirs.parameters())
    for _ in range(4):
        loss = step(x, y)
        optimizer.zero_grad()
        wanted = nn.functional.cross_entropy(theirs(x), y)
        wanted.backward()
        optimizer.step()
        torch.testing.assert_close(loss, wanted.detach(), rtol=1e-5, atol=1e-6)
    step.write_back()
    for a, b in zip(mine.state_dict().values(), theirs.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_recipes_schedules_and_clipping_of_a_training_step():
    mine = nn.Linear(4, 3)
    theirs = copy.deepcopy(mine)
    x, y = torch.randn(8, 4), torch.randn(8, 3)
    step = package.torch.train_step(mine, nn.MSELoss(), "sgd(lr=0.5)", (x, y), schedule="linear(steps=4)", clip_norm=0.1)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    rates = []
    for _ in range(3):
        result = step.session["train_step"](x, y)
        rates.append(float(result.rate))
        optimizer.param_groups[0]["lr"] = rates[-1]
        optimizer.zero_grad()
        nn.functional.mse_loss(theirs(x), y).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        optimizer.step()
    assert rates[0] > rates[-1]
    step.write_back()
    torch.testing.assert_close(mine.weight, theirs.weight, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5), lambda p: torch.optim.AdamW(p, lr=0.05),
    lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True), lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
], ids=["sgd", "adamw", "rmsprop", "adagrad"])  # fmt: skip
def test_a_training_step_goes_on_from_the_optimizer_and_follows_its_scheduler(make):
    mine = nn.Linear(4, 3)
    x, y = torch.randn(8, 4), torch.randn(8, 3)

    def stepped(model, optimizer, scheduler, count):
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            scheduler.step()

    optimizer = make(mine.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    stepped(mine, optimizer, scheduler, 2)
    theirs, their_optimizer, their_scheduler = copy.deepcopy((mine, optimizer, scheduler))
    step = package.torch.train_step(mine, nn.MSELoss(), optimizer, (x, y))
    for _ in range(3):
        step(x, y)
        scheduler.last_epoch += 1
        for g in optimizer.param_groups:
            g["lr"] *= 0.5
    stepped(theirs, their_optimizer, their_scheduler, 3)
    step.write_back()
    torch.testing.assert_close(mine.weight, theirs.weight, rtol=1e-4, atol=1e-6)
    optimizer.param_groups[0]["weight_decay"] = 0.5
    with pytest.raises(ValueError, match="weight_decay changed"):
        step(x, y)


def test_optimizers_that_a_training_step_lacks_are_refused():
    net = nn.Linear(4, 3)
    for kind in (torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adadelta, torch.optim.Adamax):
        with pytest.raises(package.UnsupportedError, match=f"the optimizer {kind.__name__}: .*SGD, Adam"):
            package.torch.train_step(net, nn.MSELoss(), kind(net.parameters()), (torch.ones(2, 4), torch.ones(2, 3)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = package.torch.train_step(net, nn.MSELoss(), optimizer, (torch.ones(2, 4), torch.ones(2, 3)), schedule="linear(steps=4)")
    optimizer.param_groups[0]["lr"] = 0.2
    with pytest.raises(ValueError, match="use one of them"):
        step(torch.ones(2, 4), torch.ones(2, 3))
