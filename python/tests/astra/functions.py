"""Functions of a vector of six doubles that give a scalar, for tests of transforms: smooth where they are tried."""

import numpy as np

import astra

W = np.linspace(-0.7, 0.9, 18).reshape(6, 3)


def _scan(x):
    carry, ys = astra.scan(lambda c, r: (c * 0.5 + astra.sin(r), c * r), x[0], x)
    return carry + (ys * ys).sum()


def _nested_scan(x):
    def outer(c, r):
        inner, _ = astra.scan(lambda d, s: (d + s * r, None), c, x)
        return astra.tanh(inner), inner

    carry, ys = astra.scan(outer, x[0], x)
    return carry * ys.sum()


def _while(x):
    return astra.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * astra.cos(x)), (0, x))[1].sum()


def _custom():
    @astra.custom_vjp
    def f(x):
        return astra.sin(x) * x

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * (astra.cos(x) * x + astra.sin(x)),))
    return f


CUSTOM = _custom()

FUNCTIONS = {
    "polynomial": lambda x: (x * x * x - 2 * x).sum(),
    "exp": lambda x: astra.exp(x).sum() * astra.exp(-x).sum(),
    "log": lambda x: astra.log(x * x + 1).sum(),
    "trigonometry": lambda x: (astra.sin(x) * astra.cos(2 * x) + astra.tan(x / 3)).sum(),
    "hyperbolic": lambda x: (astra.tanh(x) + astra.sinh(x) / astra.cosh(x)).sum(),
    "inverse": lambda x: (astra.asin(x / 9) + astra.acos(x / 9) * astra.atan(x)).sum(),
    "inverse hyperbolic": lambda x: (astra.asinh(x) + astra.atanh(x / 9) + astra.acosh(x * x + 2)).sum(),
    "sigmoid": lambda x: astra.sigmoid(x).prod(),
    "erf": lambda x: (astra.erf(x) ** 2).sum(),
    "square root": lambda x: astra.sqrt(x * x + 0.5).sum(),
    "power": lambda x: ((x * x + 1) ** 1.5 + 2.0**x).sum(),
    "quotient": lambda x: (x / (1 + x * x)).sum() / (2 + x[0]),
    "magnitude": lambda x: (astra.abs(x) * x).sum(),
    "expm1": lambda x: (astra.expm1(x) + astra.log1p(x * x)).sum(),
    "softmax": lambda x: (astra.softmax(x) * np.arange(6.0)).sum(),
    "log softmax": lambda x: astra.log_softmax(x)[2],
    "logsumexp": lambda x: astra.logsumexp(x * 3),
    "mean": lambda x: (x - x.mean()).square().mean(),
    "product": lambda x: x.prod() * x.sum(),
    "greatest": lambda x: x.max() * x.min(),
    "matmul": lambda x: astra.tanh(x @ W).sum(),
    "matrix": lambda x: (x.reshape((2, 3)) @ x.reshape((3, 2)))[0, 1],
    "einsum": lambda x: astra.einsum("i,ij,j->", x, W @ W.T, x),
    "outer": lambda x: (x[:, None] * x[None, :] * W[:, :1]).sum(),
    "where": lambda x: astra.where(x > 0, x * x, astra.sin(x)).sum(),
    "clip": lambda x: (astra.clip(x, -0.8, 0.8) * x).sum(),
    "slices": lambda x: (x[1:5] * x[::-1][:4]).sum() + x[::2].prod(),
    "concat": lambda x: (astra.concat([x, x * x]) * np.arange(12.0)).sum(),
    "stack": lambda x: astra.stack([x, astra.sin(x)], axis=1).prod(axis=1).sum(),
    "take": lambda x: (astra.take(x, [5, 0, 0, 3]) * np.arange(4.0)).sum(),
    "transpose": lambda x: (x.reshape((2, 3)).T * W[:3, :2]).sum() * x[0],
    "cond": lambda x: astra.cond(x.sum() > 0, lambda y: (y * y).sum(), lambda y: astra.sin(y).sum(), x),
    "switch": lambda x: astra.switch(astra.asarray(1), [lambda y: y.sum(), lambda y: (y * y * y).sum(), lambda y: y.prod()], x),
    "scan": _scan,
    "nested scan": _nested_scan,
    "while": _while,
    "for": lambda x: astra.fori_loop(0, 3, lambda i, c: astra.sin(c) + x * i, x).sum(),
    "map": lambda x: (astra.map(lambda r: astra.sin(r) * r, x) * x).sum(),
    "associative scan": lambda x: (astra.associative_scan(lambda a, b: a * b, x + 2) * x).sum(),
    "vmap": lambda x: astra.vmap(lambda r, y: (r * y).sum(), in_axes=(0, None))(x, astra.sin(x)).prod(),
    "gradient": lambda x: (astra.grad(lambda y: (astra.sin(y) * y).sum())(x) * x).sum(),
    "tangent": lambda x: astra.jvp(lambda y: astra.sin(y) * y, (x,), (x * x,))[1].sum(),
    "checkpoint": lambda x: astra.checkpoint(lambda y: astra.sin(astra.exp(y) * x))(x).sum(),
    "custom": lambda x: CUSTOM(x * x).sum(),
}
POINT = np.array([0.31, -0.52, 1.1, 0.73, -1.27, 0.94])
