"""What PyTorch gives for the losses, optimizers and schedules of lib/NN.

Takes:    PyTorch (scripts/setup --models).
Gives:    expected.txt beside this file: one line a case, fields between bars, numbers in hexadecimal so that none is rounded.
              loss RECIPE|TYPE|x|target|value            optimizer RECIPE|TYPE|x|gradients of 10 steps|x after them
              schedule RECIPE||||factors of 40 steps     clip MOST|TYPE|gradients|...|scaled gradients
              init RECIPE|f64|weight||bound of a uniform one, deviation of a normal one
          A tensor is SHAPE:NUMBERS.
Keeps:    the same file on every run.

    build/venv/bin/python test/unit/nn/make_expected.py
"""

import math
from pathlib import Path

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


def losses(t):
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
    for mean, s in (("mean", ""), ("sum", "sum=1")):
        r = {"reduction": mean}
        yield f"mse({s})", x, y, F.mse_loss(x, y, **r)
        yield f"l1({s})", x, y, F.l1_loss(x, y, **r)
        yield f"smooth_l1({s})", x, y, F.smooth_l1_loss(x, y, **r)
        yield f"huber({s})", x, y, F.huber_loss(x, y, **r)
        yield f"cross_entropy({s})", x, classes, F.cross_entropy(x, classes, **r)
        yield f"cross_entropy({s})", image, pixels, F.cross_entropy(image, pixels, **r)
        yield f"nll({s})", logs, some, F.nll_loss(logs, some, **r)
        yield f"multi_margin({s})", x, classes, F.multi_margin_loss(x, classes, **r)
        yield f"bce({s})", p, q, F.binary_cross_entropy(p, q, **r)
        yield f"bce({s})", bits, q, F.binary_cross_entropy(bits, q, **r)  # logarithms of 0
        yield f"bce_with_logits({s})", 40 * x, q, F.binary_cross_entropy_with_logits(40 * x, q, **r)
        yield f"kl_div({s})", logs, odds, F.kl_div(logs, odds, **r)
        yield f"hinge_embedding({s})", x, signs, F.hinge_embedding_loss(x, signs, **r)
    yield "smooth_l1(beta=0.25)", x, y, F.smooth_l1_loss(x, y, beta=0.25)
    yield "smooth_l1(beta=0)", x, y, F.smooth_l1_loss(x, y, beta=0)
    yield "huber(delta=0.5)", x, y, F.huber_loss(x, y, delta=0.5)
    yield "cross_entropy(label_smoothing=0.1)", x, some, F.cross_entropy(x, some, label_smoothing=0.1)
    yield "cross_entropy(ignore_index=3)", x, classes, F.cross_entropy(x, classes, ignore_index=3)
    yield "multi_margin(margin=0.5)", x, classes, F.multi_margin_loss(x, classes, margin=0.5)
    yield "bce_with_logits(pos_weight=2.5)", x, q, F.binary_cross_entropy_with_logits(x, q, pos_weight=torch.tensor(2.5, dtype=t))
    yield "kl_div(log_target=1, batchmean=1)", logs, odds.clamp(min=0.01).log(), F.kl_div(
        logs, odds.clamp(min=0.01).log(), reduction="batchmean", log_target=True
    )
    yield "hinge_embedding(margin=2)", x, signs, F.hinge_embedding_loss(x, signs, margin=2)
    frames = torch.log_softmax(waves(9, 3, 5, t=t, scale=2), 2)
    words = torch.tensor([[1, 2, 2, 4], [3, 3, 0, 0], [0, 0, 0, 0]])
    lengths = torch.tensor([4, 2, 0])
    for mean, s in (("mean", ""), ("sum", "sum=1")):
        yield f"ctc({s})", frames, words, F.ctc_loss(frames, words, torch.tensor([9, 9, 9]), lengths, reduction=mean)


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


def muon(x, grads, lr=1e-3, momentum=0.95, decay=0.1, steps=5):
    """torch.optim.Muon, whose iteration in bfloat16 is done in x's own type here."""
    m = torch.zeros_like(x)
    for g in grads:
        m = momentum * m + (1 - momentum) * g
        s = momentum * m + (1 - momentum) * g
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


def main():
    lines = []
    for name, t in TYPES.items():
        for recipe, x, target, value in losses(t):
            lines.append(f"loss {recipe}|{name}|{text(x)}|{text(target)}|{text(value)}")
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
