"""Gradients by complex values beside PyTorch's, which have the same convention: that by a, plus i times that by b."""

import numpy as np
import pytest

import astra

torch = pytest.importorskip("torch")
R = np.random.default_rng(11)


def drawn(*shape):
    return R.standard_normal(shape) + 1j * R.standard_normal(shape)


POINTS = np.array([0.4 + 0.3j, -0.7 + 0.2j, 0.2 - 0.9j, 1.5 - 0.6j, -1.2 - 0.5j, 0.6 + 0j, 0.25j, -0.3 + 0j])  # two real ones, an imaginary one
WEIGHTS = drawn(8)
FUNCTIONS = ["exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
             "asinh", "acosh", "atanh", "sigmoid", "abs", "angle", "conj", "square", "reciprocal"]  # fmt: skip
OFTORCH = {"log1p": lambda z: torch.log(1 + z), "expm1": lambda z: torch.exp(z) - 1, "acosh": lambda z: torch.log(z + torch.sqrt(z + 1) * torch.sqrt(z - 1))}


def loss(xp, y, weights):
    w = xp.asarray(weights) if xp is astra else torch.as_tensor(weights)
    return (y * w).real.sum() if xp is torch else astra.sum(astra.real(astra.asarray(y) * w))


def both(ours, theirs, *given):
    """Gradients by all arguments, of a sum with complex weights."""
    z = [torch.tensor(x, requires_grad=True) for x in given]
    y = theirs(*z)
    weights = [np.random.default_rng(5).standard_normal(t.shape) + 1j * np.random.default_rng(6).standard_normal(t.shape) for t in (y if isinstance(y, tuple) else (y,))]
    sum(loss(torch, t, w) for t, w in zip(y if isinstance(y, tuple) else (y,), weights)).backward()

    def f(*x):
        y = ours(*x)
        return sum(loss(astra, t, w) for t, w in zip(y if isinstance(y, tuple) else (y,), weights))

    found = astra.grad(f, argnums=tuple(range(len(given))))(*map(astra.asarray, given))
    again = astra.grad(f, argnums=tuple(range(len(given))))(*map(astra.asarray, given))
    for mine, more, t in zip(found, again, z):
        assert mine.numpy().tobytes() == more.numpy().tobytes()
        np.testing.assert_allclose(mine.numpy(), t.grad.resolve_conj().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    points = POINTS[:5] if name in ("acosh", "asin", "acos", "angle", "log2") else POINTS  # the others lie on a cut
    both(getattr(astra, name), OFTORCH.get(name) or getattr(torch, name), points)


@pytest.mark.parametrize("exponent", [2.0, 3.0 + 0j, 0.5 - 0.25j])
def test_powers(exponent):
    both(lambda z: z**exponent, lambda z: z**exponent, np.append(POINTS[:5], 0) if exponent == 2.0 else POINTS[:5])
    both(lambda z, w: z**w, lambda z, w: z**w, POINTS[:5], drawn(5))


def test_products():
    both(lambda z, w: z @ w, lambda z, w: z @ w, drawn(2, 3, 4), drawn(4, 2))
    both(lambda z, w: z / w, lambda z, w: z / w, drawn(4), drawn(4))
    both(lambda *x: astra.einsum("ij,jk,kl->il", *x), lambda *x: torch.einsum("ij,jk,kl->il", *x), drawn(2, 3), drawn(3, 4), drawn(4, 2))
    both(lambda z: astra.prod(z, axis=1), lambda z: torch.prod(z, 1), drawn(3, 4))
    both(lambda z, x: z * x, lambda z, x: z * x, drawn(4), R.standard_normal(4))  # a real factor has a real gradient
    both(lambda z: astra.fft.ifft(astra.fft.fft(z) ** 2), lambda z: torch.fft.ifft(torch.fft.fft(z) ** 2), drawn(12))
    both(lambda x: astra.fft.rfft(x), torch.fft.rfft, R.standard_normal(12))


def test_matrices():
    a, y = drawn(2, 4, 4), drawn(2, 4, 3)
    h = a @ a.conj().swapaxes(1, 2) + 4 * np.eye(4)
    ours, theirs = astra.linalg, torch.linalg
    both(ours.solve, theirs.solve, a, y)
    both(ours.inv, theirs.inv, a)
    both(ours.det, theirs.det, a)
    both(lambda x: tuple(ours.slogdet(x))[1], lambda x: theirs.slogdet(x)[1], a)
    both(lambda x: tuple(ours.qr(x)), lambda x: tuple(theirs.qr(x)), drawn(2, 5, 3))
    both(lambda x: ours.cholesky((x + astra.conj(astra.matrix_transpose(x))) / 2), lambda x: theirs.cholesky((x + x.mH) / 2), h)

    # What does not change with the directions of vectors: PyTorch refuses anything else.
    k = drawn(4, 4)
    adjoint = lambda x: astra.conj(astra.matrix_transpose(x))  # noqa: E731

    def projector(xp, values, vectors, turn):
        return (vectors * xp.cos(values)[..., None, :]) @ turn(vectors)

    both(lambda x: projector(astra, *ours.eigh((x + adjoint(x)) / 2), adjoint) @ k,
         lambda x: projector(torch, *theirs.eigh((x + x.mH) / 2), lambda v: v.mH) @ torch.tensor(k), h)  # fmt: skip

    def joined(u, s, vh, xp):
        return (u * xp.sin(s)[..., None, :]) @ vh

    for shape in ((2, 4, 4), (2, 5, 3), (2, 3, 5)):
        both(lambda x: joined(*ours.svd(x, full_matrices=False), astra), lambda x: joined(*theirs.svd(x, full_matrices=False), torch), drawn(*shape))
    both(lambda x: projector(astra, *ours.eig(x), ours.inv), lambda x: projector(torch, *theirs.eig(x), theirs.inv), a)


def test_forward_and_custom():
    z, v = map(astra.asarray, (drawn(4), drawn(4)))
    f = lambda x: astra.sin(x) * astra.conj(x)  # noqa: E731
    y, tangent = astra.jvp(f, (z,), (v,))
    _, pull = astra.vjp(f, z)
    u = astra.asarray(drawn(4))
    (back,) = pull(u)
    np.testing.assert_allclose(np.vdot(u.numpy(), tangent.numpy()).real, np.vdot(back.numpy(), v.numpy()).real, rtol=1e-12)

    @astra.custom_vjp
    def twice(x):
        return 2 * x

    twice.defvjp(lambda x: (2 * x, ()), lambda kept, g: (3j * g,))
    (back,) = astra.vjp(twice, z)[1](u)
    assert back.numpy().tolist() == (3j * u).numpy().tolist()
    plain, kept = (astra.grad(lambda x: astra.sum(astra.abs(g(x))))(z).numpy() for g in (f, astra.checkpoint(f)))
    assert plain.tobytes() == kept.tobytes()


def test_refused():
    z = astra.asarray(drawn(3))
    with pytest.raises(astra.DTypeError, match="gives complex128"):
        astra.grad(astra.sum)(z)
    for jacobian in (astra.jacfwd, astra.jacrev, astra.hessian):
        with pytest.raises(astra.DTypeError, match="Jacobians are of real floats"):
            jacobian(astra.sin)(z)
    with pytest.raises(astra.DTypeError, match="derivatives are of floats and complex numbers"):
        astra.grad(lambda x: x.sum())(astra.asarray([1, 2]))
