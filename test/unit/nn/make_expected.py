"""What PyTorch gives for the losses, optimizers, schedules, metrics and initializers of lib/NN.

Takes:    PyTorch (scripts/setup --models).
Gives:    expected.txt beside this file: one line a case, fields between bars, numbers in hexadecimal so that none is rounded.
              loss RECIPE|TYPE|x|target|value|gradient of x      metric RECIPE of LOSS|TYPE|x|target|value
              optimizer RECIPE|TYPE|x|gradients of 10 steps|x after them
              schedule RECIPE|f64|||factors of 40 steps          clip MOST|TYPE|gradients||scaled gradients
              init RECIPE|f64|weight||bound of a uniform one, deviation of a normal one
              matrix RECIPE|TYPE|weight||what it becomes, without random numbers
          A tensor is SHAPE:NUMBERS. The gradient of ctc is that of ctc(log_softmax(x)),
          computed in f64.
Keeps:    the same file on every run. Muon, written out here, is PyTorch's but for its bfloat16.

    build/venv/bin/python test/unit/nn/make_expected.py
"""

import itertools
import math
from pathlib import Path
from unittest import mock

import torch
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent
TYPES = {"f32": torch.float32, "f64": torch.float64}


def waves(*shape, seed=0.0, t=torch.float64, scale=1.0):
    """Numbers without a pattern, the same everywhere."""
    count = math.prod(shape)
    values = [scale * (math.sin(1.7 * i + seed) + 0.3 * math.cos(4.1 * i * i + seed)) for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).to(t)


def text(t):
    t = t.detach()
    numbers = [float(v).hex() for v in t.reshape(-1)] if t.is_floating_point() else [str(int(v)) for v in t.reshape(-1)]
    return ",".join(map(str, t.shape)) + ":" + ",".join(numbers)


def of(f, **options):
    return lambda x, y: f(x, y, **options)


def losses(t):
    """Recipe, x, target, and the loss as a function of both."""
    x, y = waves(4, 5, t=t, scale=2), waves(4, 5, seed=9, t=t, scale=2)
    p, q = torch.sigmoid(x), torch.sigmoid(3 * y)
    bits = (y > 0).to(t)
    logs = torch.log_softmax(x, 1)
    odds = torch.softmax(y, 1)
    odds[1, 2] = 0
    classes = torch.tensor([3, 0, 4, 1])
    some = torch.tensor([3, -100, 4, 1])
    image, pixels = waves(2, 3, 4, 5, t=t), (torch.arange(40) * 7 % 3).reshape(2, 4, 5)
    signs = torch.where(y > 0, 1.0, -1.0).to(t)
    # Where the slope jumps: each quarter beside each, differences from -1 to 1.
    quarters = torch.arange(5, dtype=t) / 4
    low, high = quarters.repeat(5, 1), quarters.repeat(5, 1).T.contiguous()
    for mean, s in (("mean", ""), ("sum", "sum=1")):
        r = {"reduction": mean}
        yield f"mse({s})", x, y, of(F.mse_loss, **r)
        yield f"l1({s})", x, y, of(F.l1_loss, **r)
        yield f"smooth_l1({s})", x, y, of(F.smooth_l1_loss, **r)
        yield f"huber({s})", x, y, of(F.huber_loss, **r)
        yield f"cross_entropy({s})", x, classes, of(F.cross_entropy, **r)
        yield f"cross_entropy({s})", image, pixels, of(F.cross_entropy, **r)
        yield f"nll({s})", logs, some, of(F.nll_loss, **r)
        yield f"multi_margin({s})", x, classes, of(F.multi_margin_loss, **r)
        yield f"bce({s})", p, q, of(F.binary_cross_entropy, **r)
        yield f"bce({s})", bits, q, of(F.binary_cross_entropy, **r)  # logarithms of 0
        yield f"bce_with_logits({s})", 40 * x, q, of(F.binary_cross_entropy_with_logits, **r)
        yield f"kl_div({s})", logs, odds, of(F.kl_div, **r)
        yield f"hinge_embedding({s})", x, signs, of(F.hinge_embedding_loss, **r)
        yield f"l1({s})", low, high, of(F.l1_loss, **r)
        yield f"smooth_l1({s})", low, high, of(F.smooth_l1_loss, **r)
        yield f"huber({s})", low, high, of(F.huber_loss, **r)
        yield f"multi_margin({s})", high - low, torch.tensor([3, 0, 4, 1, 2]), of(F.multi_margin_loss, **r)
        yield f"bce_with_logits({s})", high - low, high, of(F.binary_cross_entropy_with_logits, **r)
        yield f"hinge_embedding({s})", high, torch.where(low > 0.5, 1.0, -1.0).to(t), of(F.hinge_embedding_loss, **r)
    yield "smooth_l1(beta=0.25)", x, y, of(F.smooth_l1_loss, beta=0.25)
    yield "smooth_l1(beta=0)", x, y, of(F.smooth_l1_loss, beta=0)
    yield "smooth_l1(beta=0)", low, high, of(F.smooth_l1_loss, beta=0)
    yield "huber(delta=0.5)", x, y, of(F.huber_loss, delta=0.5)
    yield "cross_entropy(label_smoothing=0.1)", x, some, of(F.cross_entropy, label_smoothing=0.1)
    yield "cross_entropy(ignore_index=3)", x, classes, of(F.cross_entropy, ignore_index=3)
    yield "multi_margin(margin=0.5)", x, classes, of(F.multi_margin_loss, margin=0.5)
    yield "bce_with_logits(pos_weight=2.5)", x, q, of(
        F.binary_cross_entropy_with_logits, pos_weight=torch.tensor(2.5, dtype=t)
    )
    yield "kl_div(log_target=1, batchmean=1)", logs, odds.clamp(min=0.01).log(), of(
        F.kl_div, reduction="batchmean", log_target=True
    )
    yield "hinge_embedding(margin=2)", x, signs, of(F.hinge_embedding_loss, margin=2)
    frames = torch.log_softmax(waves(9, 3, 5, t=t, scale=2), 2)
    words = torch.tensor([[1, 2, 2, 4], [3, 3, 0, 0], [0, 0, 0, 0]])
    for mean, s in (("mean", ""), ("sum", "sum=1")):
        yield f"ctc({s})", frames, words, of(
            F.ctc_loss, input_lengths=torch.tensor([9, 9, 9]), target_lengths=torch.tensor([4, 2, 0]), reduction=mean
        )


def gradient(recipe, x, target, loss):
    leaf = x.clone().requires_grad_()
    if not recipe.startswith("ctc"):
        return torch.autograd.grad(loss(leaf, target), leaf)[0]
    # PyTorch's gradient by the logarithms has their odds added, which a log_softmax takes away again: so it is compared
    # behind one. In f32 it is 2e-6 away from itself in f64: that one is taken, rounded.
    leaf = x.double().requires_grad_()
    return torch.autograd.grad(loss(torch.log_softmax(leaf, 2), target), leaf)[0].to(x.dtype)


def sign(v):
    return torch.sign(v)


def lion(x, grads, lr=1e-4, b1=0.9, b2=0.99, decay=0.0):
    """Algorithm 2 of Chen et al. 2023."""
    m = torch.zeros_like(x)
    for g in grads:
        x = x * (1 - lr * decay) - lr * sign(b1 * m + (1 - b1) * g)
        m = b2 * m + (1 - b2) * g
    return x


def lamb(x, grads, lr=1e-3, b1=0.9, b2=0.999, eps=1e-6, decay=0.0):
    """Algorithm 2 of You et al. 2019, phi the identity."""
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    for i, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        r = (m / (1 - b1**i)) / ((v / (1 - b2**i)).sqrt() + eps) + decay * x
        x = x - lr * (x.norm() / r.norm()) * r
    return x


def muon(x, grads, lr=1e-3, momentum=0.95, nesterov=True, decay=0.1, steps=5):
    """torch.optim.Muon, whose iteration in bfloat16 is done in x's own type here: see muon_is_torchs."""
    m = torch.zeros_like(x)
    for g in grads:
        m = momentum * m + (1 - momentum) * g
        s = momentum * m + (1 - momentum) * g if nesterov else m
        s = s.T if x.shape[0] > x.shape[1] else s
        s = s / s.norm().clamp(min=1e-7)
        for _ in range(steps):
            a = s @ s.T
            s = 3.4445 * s + (-4.7750 * a + 2.0315 * a @ a) @ s
        s = s.T if x.shape[0] > x.shape[1] else s
        x = x * (1 - lr * decay) - lr * max(1, x.shape[0] / x.shape[1]) ** 0.5 * s
    return x


def by_torch(make):
    def run(x, grads):
        p = torch.nn.Parameter(x.clone())
        optimizer = make([p])
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        return p

    return run


O = torch.optim


def muon_is_torchs():
    """That the two are one, rounding to bfloat16 apart."""
    for shape, momentum, nesterov, decay, steps, lr in itertools.product(
        ((3, 5), (5, 3), (4, 4), (1, 6)), (0.95, 0.8, 0), (True, False), (0.1, 0), (5, 3, 0), (1e-3, 0.02)
    ):
        x, grads = waves(*shape, seed=3), [waves(*shape, seed=5 + i) for i in range(10)]
        options = {"lr": lr, "momentum": momentum, "nesterov": nesterov}
        ours = muon(x, grads, decay=decay, steps=steps, **options)
        theirs = by_torch(
            lambda p: O.Muon(p, weight_decay=decay, ns_steps=steps, adjust_lr_fn="original", **options)
        )
        with mock.patch("torch.bfloat16", x.dtype):  # the type that the iteration asks for
            torch.testing.assert_close(theirs(x, grads).detach(), ours, rtol=1e-12, atol=1e-12)
        if steps:  # so the iteration is what the patch reaches: with its own rounding it is far from ours
            assert (theirs(x, grads) - ours).abs().max() > 1e-6


OPTIMIZERS = [
    ("sgd(lr=0.1)", by_torch(lambda p: O.SGD(p, lr=0.1)), (3, 4)),
    ("sgd(lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.05)",
     by_torch(lambda p: O.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.05)), (3, 4)),
    ("sgd(lr=0.1, momentum=0.9, nesterov=true)", by_torch(lambda p: O.SGD(p, lr=0.1, momentum=0.9, nesterov=True)), (7,)),
    ("adam(lr=0.01, weight_decay=0.1)", by_torch(lambda p: O.Adam(p, lr=0.01, weight_decay=0.1)), (3, 4)),
    ("adam(beta1=0.8, beta2=0.95, eps=1e-3)", by_torch(lambda p: O.Adam(p, betas=(0.8, 0.95), eps=1e-3)), (3, 4)),
    ("adamw(lr=0.01, weight_decay=0.1)", by_torch(lambda p: O.AdamW(p, lr=0.01, weight_decay=0.1)), (3, 4)),
    ("adamw", by_torch(lambda p: O.AdamW(p)), ()),
    ("rmsprop", by_torch(lambda p: O.RMSprop(p)), (3, 4)),
    ("rmsprop(lr=0.02, momentum=0.9, centered=1, weight_decay=0.1)",
     by_torch(lambda p: O.RMSprop(p, lr=0.02, momentum=0.9, centered=True, weight_decay=0.1)), (3, 4)),
    ("adagrad(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2)",
     by_torch(lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2)), (3, 4)),
    ("lion(lr=0.01, weight_decay=0.1)", lambda x, g: lion(x, g, lr=0.01, decay=0.1), (3, 4)),
    ("lamb(lr=0.01, weight_decay=0.1)", lambda x, g: lamb(x, g, lr=0.01, decay=0.1), (3, 4)),
    ("muon(lr=0.02)", lambda x, g: muon(x, g, lr=0.02), (3, 5)),
    ("muon(lr=0.02)", lambda x, g: muon(x, g, lr=0.02), (5, 3)),
    ("muon(lr=0.02, momentum=0.8, nesterov=0, steps=3, weight_decay=0)",
     lambda x, g: muon(x, g, lr=0.02, momentum=0.8, nesterov=False, steps=3, decay=0), (4, 6)),
    ("muon(lr=0.02)", by_torch(lambda p: O.AdamW(p, lr=0.02, weight_decay=0.1)), (5,)),
]  # fmt: skip

S = O.lr_scheduler


def warmup(steps):
    return lambda o: S.LambdaLR(o, lambda t: min(1, (t + 1) / steps))


def after_warmup(steps, count, rest):
    return lambda o: S.LambdaLR(o, lambda t: (t + 1) / steps if t < steps else rest((t - steps) / (count - steps)))


SCHEDULES = [
    ("constant", lambda o: S.ConstantLR(o, factor=1)),
    ("step(size=7, gamma=0.5)", lambda o: S.StepLR(o, 7, 0.5)),
    ("exponential(gamma=0.9)", lambda o: S.ExponentialLR(o, 0.9)),
    ("warmup(steps=8)", warmup(8)),
    ("linear(steps=30)", lambda o: S.LinearLR(o, 1, 0, 30)),
    ("linear(steps=30, warmup=5, min=0.1)", after_warmup(5, 30, lambda p: 1 - 0.9 * min(p, 1))),
    ("cosine(steps=39, min=0.25)", lambda o: S.CosineAnnealingLR(o, 39, 0.25)),
    ("cosine(steps=30, warmup=5)", after_warmup(5, 30, lambda p: 0.5 + 0.5 * math.cos(math.pi * min(p, 1)))),
    ("one_cycle(steps=40)", lambda o: S.OneCycleLR(o, 1, total_steps=40)),
]


def factors(make):
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = O.SGD([p], lr=1)
    schedule = make(optimizer)
    found = []
    for _ in range(40):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(found) < 40:
            schedule.step()
    return torch.tensor(found, dtype=torch.float64)


def widths():
    """What torch.nn.init draws from, of weights that are zeros."""
    fans = torch.nn.init._calculate_fan_in_and_fan_out
    for shape in ((6, 10), (4, 3, 2, 5)):
        w = torch.zeros(shape, dtype=torch.float64)
        fan_in, fan_out = fans(w)
        xavier = math.sqrt(2 / (fan_in + fan_out))
        yield "xavier_uniform", w, math.sqrt(3) * xavier
        yield "xavier_normal(gain=1.5)", w, 1.5 * xavier
        for slope, text in ((0, ""), (math.sqrt(5), "a=2.23606797749979")):
            gain = torch.nn.init.calculate_gain("leaky_relu", slope)
            yield f"kaiming_uniform({text})", w, math.sqrt(3) * gain / math.sqrt(fan_in)
            yield f"kaiming_normal({text})", w, gain / math.sqrt(fan_in)
        yield "kaiming_normal(fan_out=1)", w, math.sqrt(2) / math.sqrt(fan_out)
        yield "kaiming_normal(transposed=1)", w, math.sqrt(2) / math.sqrt(fan_out)


def hits(x, target, k):
    """Of a prediction [N, C, ...]: argmax takes the first of the greatest, topk any of equal ones."""
    best = x.argmax(1, keepdim=True) if k == 1 else x.topk(min(k, x.shape[1]), 1).indices
    return (best == target.unsqueeze(1)).any(1)


def metrics(t):
    """Recipe, x, target and value; parts of targets are f32 whatever x is."""
    x, classes = waves(8, 7, t=t, scale=2), torch.arange(8) * 5 % 7
    some = torch.where(classes == 2, -100, classes)
    image, pixels = waves(2, 5, 2, 3, seed=2, t=t), (torch.arange(12) * 7 % 5).reshape(2, 2, 3)
    tied, y = x.round(), waves(8, 7, seed=9, t=t, scale=2)
    tied[2, 4] = math.nan  # the greatest
    firsts = tied.argmax(1)
    firsts[2] = 0
    for recipe, k in (("accuracy", 1), ("top(k=1)", 1), ("top(k=2)", 2), ("top", 5), ("top(k=9)", 9)):
        for loss, scores, target in (
            ("cross_entropy", x, classes),
            ("cross_entropy", x, some),
            ("nll(ignore_index=3)", x, classes),
            ("multi_margin", x, classes),
            ("cross_entropy", image, pixels),
            ("cross_entropy(ignore_index=1)", image, pixels),
            *([("cross_entropy", tied, firsts)] if k == 1 else []),
        ):
            counted = target != {"nll(ignore_index=3)": 3, "cross_entropy(ignore_index=1)": 1}.get(loss, -100)
            yield f"{recipe} of {loss}", scores, target, hits(scores, target, k)[counted].to(torch.float32).mean()
    for loss in ("mse", "huber"):
        yield f"squared_error of {loss}", x, y, F.mse_loss(x, y)
        yield f"absolute_error of {loss}", x, y, F.l1_loss(x, y)
        yield f"squared_error of {loss}", image, image.flip(0), F.mse_loss(image, image.flip(0))
        yield f"absolute_error of {loss}", image, image.flip(0), F.l1_loss(image, image.flip(0))


def matrices(t):
    init = torch.nn.init
    for shape in ((3, 3), (2, 5), (5, 2)):
        w = torch.full(shape, 7, dtype=t)
        yield "eye", w, init.eye_(w.clone())
        yield "constant(value=0.3)", w, init.constant_(w.clone(), 0.3)
    for shape, groups in (
        ((4, 3, 3), 1), ((3, 4, 2), 1), ((4, 3, 3), 2), ((6, 2, 4, 3), 3), ((4, 4, 3, 3), 1), ((4, 2, 3, 2, 1), 2)
    ):  # fmt: skip
        w = torch.full(shape, 7, dtype=t)
        yield f"dirac(groups={groups})", w, init.dirac_(w.clone(), groups)


def main():
    muon_is_torchs()
    lines = []
    for name, t in TYPES.items():
        for recipe, x, target, loss in losses(t):
            fields = x, target, loss(x, target), gradient(recipe, x, target, loss)
            lines.append(f"loss {recipe}|{name}|" + "|".join(map(text, fields)))
        for recipe, x, target, value in metrics(t):
            lines.append(f"metric {recipe}|{name}|{text(x)}|{text(target)}|{text(value)}")
        for recipe, weight, made in matrices(t):
            lines.append(f"matrix {recipe}|{name}|{text(weight)}||{text(made)}")
        for recipe, run, shape in OPTIMIZERS:
            x, grads = waves(*shape, seed=3, t=t), [waves(*shape, seed=5 + i, t=t) for i in range(10)]
            lines.append(f"optimizer {recipe}|{name}|{text(x)}|{text(torch.stack(grads))}|{text(run(x, grads))}")
        for most in (0.5, 100.0):
            ps = [torch.nn.Parameter(torch.zeros(3, 4, dtype=t)) for _ in range(2)]
            grads = [waves(3, 4, seed=i, t=t) for i in range(2)]
            for p, g in zip(ps, grads):
                p.grad = g.clone()
            torch.nn.utils.clip_grad_norm_(ps, most)
            lines.append(f"clip {most}|{name}|{text(torch.stack(grads))}||{text(torch.stack([p.grad for p in ps]))}")
    for recipe, weight, width in widths():
        lines.append(f"init {recipe}|f64|{text(weight)}||{text(torch.tensor(width, dtype=torch.float64))}")
    for recipe, make in SCHEDULES:
        lines.append(f"schedule {recipe}|f64|||{text(factors(make))}")
    (HERE / "expected.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
