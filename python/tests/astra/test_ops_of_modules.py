"""Functions of astra.linalg, fft, random, losses, metrics, init, and layers of astra.nn with their gradients: the evaluator and compiled code
give equal bytes. One without a case fails. test_ops.py does the same for the functions of `astra` itself."""

import inspect
import os

import numpy as np
import pytest
from cases import samples

import astra
from astra import fft, init, linalg, losses, metrics, nn, random
from astra._evaluate import evaluate
from astra._graph import current

NIGHTLY = os.environ.get("ASTRA_NIGHTLY") == "1"


def leaves(result):
    return [t for part in result for t in leaves(part)] if isinstance(result, (tuple, list)) else astra.tree.flatten(result)[0]


def check(cases):
    """Evaluates what the cases (name, function of nothing) give, both ways, all in one program."""
    found = [(name, t) for name, case in cases for t in leaves(case())]
    lazy = [(name, t) for name, t in found if isinstance(t, astra.Tensor) and t._value is None and t._graph is current()]
    assert {name for name, _ in lazy} == {name for name, _ in cases}
    nodes = [t._node for _, t in lazy]
    evaluated, compiled = (evaluate(current(), nodes, how) for how in ("evaluator", "compiled"))
    different = [n for (n, _), x, y in zip(lazy, evaluated, compiled) if (x.dtype, tuple(x.shape), x.tobytes()) != (y.dtype, tuple(y.shape), y.tobytes())]
    assert not different


# ---- linear algebra: functions of a [2, 4, 4], s symmetric positive definite, l lower triangular, b [2, 4, 3], v [4], w [3]

LINALG = {
    "cholesky": lambda m: linalg.cholesky(m.s), "cross": lambda m: linalg.cross(m.b[0], m.b[1]), "det": lambda m: linalg.det(m.a),
    "diagonal": lambda m: linalg.diagonal(m.a, offset=1), "eigh": lambda m: linalg.eigh(m.s), "eig": lambda m: linalg.eig(m.a), "eigvals": lambda m: linalg.eigvals(m.a), "eigvalsh": lambda m: linalg.eigvalsh(m.s),
    "expm": lambda m: linalg.expm(m.a), "inv": lambda m: linalg.inv(m.s), "kron": lambda m: linalg.kron(m.a[0], m.b[0]),
    "lu_ex": lambda m: linalg.lu_ex(m.a), "lu_factor_ex": lambda m: linalg.lu_factor_ex(m.a), "lstsq_ex": lambda m: linalg.lstsq_ex(m.b, m.b[..., :2]),
    "eigh_ex": lambda m: linalg.eigh_ex(m.s), "eig_ex": lambda m: linalg.eig_ex(m.a), "svd_ex": lambda m: linalg.svd_ex(m.b, full_matrices=False),
    "cholesky_ex": lambda m: linalg.cholesky_ex(m.s), "inv_ex": lambda m: linalg.inv_ex(m.a), "solve_ex": lambda m: linalg.solve_ex(m.a, m.b),
    "cholesky_solve": lambda m: linalg.cholesky_solve(m.l, m.b), "lstsq": lambda m: linalg.lstsq(m.b, m.b[..., :2]), "lu_factor": lambda m: linalg.lu_factor(m.a),
    "lu_solve": lambda m: linalg.lu_solve(linalg.lu_factor(m.a), m.b), "matrix_exp": lambda m: linalg.matrix_exp(m.b[..., :3, :]),
    "lu": lambda m: linalg.lu(m.a), "matmul": lambda m: linalg.matmul(m.a, m.b), "matrix_norm": lambda m: [linalg.matrix_norm(m.b, ord=o) for o in ("fro", 1, "nuc")],
    "matrix_power": lambda m: linalg.matrix_power(m.a, 5), "matrix_rank": lambda m: linalg.matrix_rank(m.b), "matrix_transpose": lambda m: linalg.matrix_transpose(m.b) + 0,
    "norm": lambda m: linalg.norm(m.v), "outer": lambda m: linalg.outer(m.v, m.v), "pinv": lambda m: linalg.pinv(m.b),
    "qr": lambda m: [linalg.qr(m.b), linalg.qr(m.b, mode="complete")], "slogdet": lambda m: linalg.slogdet(m.a), "solve": lambda m: linalg.solve(m.s, m.b),
    "solve_triangular": lambda m: linalg.solve_triangular(m.l, m.b), "svd": lambda m: linalg.svd(m.b, full_matrices=False), "svdvals": lambda m: linalg.svdvals(m.b),
    "tensordot": lambda m: linalg.tensordot(m.a, m.b, axes=([0, 2], [0, 1])), "trace": lambda m: linalg.trace(m.a), "vecdot": lambda m: linalg.vecdot(m.a, m.s),
    "vector_norm": lambda m: [linalg.vector_norm(m.b, axis=1, ord=o) for o in (1, 2, 3, float("inf"))],
}  # fmt: skip


class Matrices:
    def __init__(self, dtype):
        rng = np.random.default_rng(0)
        draw = lambda *shape: rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else 0)  # noqa: E731
        a, b = draw(2, 4, 4), draw(2, 4, 3)
        made = {"a": a, "b": b, "v": draw(4), "s": a @ a.conj().swapaxes(1, 2) + 4 * np.eye(4), "l": np.tril(a) + 3 * np.eye(4)}
        for name, value in made.items():
            setattr(self, name, astra.asarray(value.astype(dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"] if NIGHTLY else ["float32"])
def test_linear_algebra(dtype):
    assert set(LINALG) == set(linalg.__all__) - {"register_lapack"}
    m = Matrices(dtype)
    check([(name, lambda f=f: f(m)) for name, f in LINALG.items()])


def test_infos_are_data():
    """A singular matrix, or one with a NaN, is seen without an exception; the results are those of the functions without _ex."""
    good, singular, nan = np.diag([2.0, 1.0]), np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[np.nan, 1.0], [1.0, 1.0]])
    x, y = np.stack([good, singular, nan]), np.ones((3, 2, 1))
    infos = {"lu_ex": [0, 2, 0], "lu_factor_ex": [0, 2, 0], "inv_ex": [0, 2, 0], "solve_ex": [0, 2, 0], "cholesky_ex": [0, 2, 1],
             "eigh_ex": [0, 0, 1], "eig_ex": [0, 0, 1], "svd_ex": [0, 0, 1], "lstsq_ex": [0, 0, 1]}  # fmt: skip
    assert set(infos) == {name for name in linalg.__all__ if name.endswith("_ex")}
    for name, expected in infos.items():
        args = (x, y) if name in ("solve_ex", "lstsq_ex") else (x,)
        found = astra.jit(getattr(linalg, name))(*args)
        assert found.info.tolist() == expected, name
        plain = getattr(linalg, name.removesuffix("_ex"))(*args)
        for a, b in zip(astra.tree.leaves(found.result), astra.tree.leaves(plain)):
            assert a.numpy().tobytes() == b.numpy().tobytes(), name
    assert linalg.lstsq(x, y).rank.tolist() == [2, 1, -1] and linalg.matrix_rank(x).tolist() == [2, 1, -1]
    assert np.isnan(linalg.qr(nan).Q.numpy()).all()


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda x: linalg.matrix_power(x, 2.5), "the exponent of linalg.matrix_power is an integer, not 2.5"),
        (lambda x: linalg.matrix_power(x, 10**30), "the exponent of linalg.matrix_power has more than 64 bits"),
        (lambda x: linalg.vector_norm(x, ord="x"), "the order of a norm is a number, or of matrices also 'fro' or 'nuc', not 'x'"),
        (lambda x: linalg.matrix_norm(x, ord=None), "the order of a norm is a number, or of matrices also 'fro' or 'nuc', not None"),
        (lambda x: linalg.lu_solve((x, np.array([0])), x), r"lu_solve of 2 x 2 matrices takes 2 pivots each, not a tensor of shape \(1,\)"),
        (lambda x: linalg.lstsq(np.zeros((0, 2)), np.zeros((0, 1))), "linalg.lstsq of matrices without elements is not supported"),
        (lambda x: linalg.cholesky_solve(np.zeros((0, 0)), x), "a system of 0 equations has no right side of 2 rows"),
    ],
)
def test_bad_input_of_linear_algebra(call, sentence):
    with pytest.raises((ValueError, astra.UnsupportedError), match=sentence):
        call(np.eye(2))


def test_pivots_that_name_no_row():
    factors = linalg.lu_factor(np.array([[[1.0, 2.0], [3.0, 4.0]]] * 3))
    got = linalg.lu_solve((factors.LU, np.array([[1, 1], [5, 9], [-1, 1]])), np.ones((3, 2, 1))).numpy()
    assert np.isnan(got[1:]).all()
    np.testing.assert_allclose(got[0], np.linalg.solve([[1.0, 2.0], [3.0, 4.0]], np.ones((2, 1))), rtol=1e-14)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (3, 0), (0, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_matrices_without_elements(shape, dtype):
    """As NumPy, or where it has none by what they are: x = P L U, x = Q R, an info of 0 of each matrix."""
    x, square = np.zeros(shape, dtype), shape[-1] == shape[-2]

    def same(given, expected):
        for a, b in zip(given, expected, strict=True):
            assert a.numpy().dtype == b.dtype and a.shape == b.shape and np.array_equal(a.numpy(), b)

    for full in (False, True):
        same(linalg.svd(x, full_matrices=full), np.linalg.svd(x, full_matrices=full))
    for mode in ("reduced", "complete"):
        same(linalg.qr(x, mode=mode), np.linalg.qr(x, mode))
    p, l, u = linalg.lu(x)
    same([p @ l @ u], [x])
    assert linalg.lu_factor(x).pivots.shape == (*shape[:-2], 0)
    assert linalg.matrix_rank(x).tolist() == np.zeros(shape[:-2]).tolist() and linalg.svdvals(x).shape == (*shape[:-2], 0)
    checked = [linalg.lu_ex, linalg.lu_factor_ex, linalg.svd_ex]
    if square:
        same(linalg.eigh(x), np.linalg.eigh(x))
        same(linalg.slogdet(x), np.linalg.slogdet(x))
        same([linalg.inv(x), linalg.cholesky(x), linalg.eigvalsh(x)], [np.linalg.inv(x), np.linalg.cholesky(x), np.linalg.eigvalsh(x)])
        assert linalg.eig(x).eigenvectors.shape == shape and linalg.eigvals(x).shape == shape[:-1]
        y = np.zeros((0, 2), dtype)
        expected = np.linalg.solve(x, y)
        same([linalg.solve_ex(x, y).result, linalg.solve_triangular(x, y), linalg.cholesky_solve(x, y), linalg.lu_solve(linalg.lu_factor(x), y)], [expected] * 4)
        v = np.zeros(0, dtype)
        same([linalg.solve_ex(x, v).result], [linalg.solve(x, v)])
        checked += [linalg.inv_ex, linalg.cholesky_ex, linalg.eigh_ex, linalg.eig_ex, lambda x: linalg.solve_ex(x, y)]
    for f in checked:
        assert f(x).info.tolist() == np.zeros(shape[:-2], int).tolist()


# ---- transforms of Fourier's, of extents of every kind


@pytest.mark.parametrize("dtype", ["complex64", "complex128"] if NIGHTLY else ["complex64"])
def test_fourier_transforms(dtype):
    rng = np.random.default_rng(0)
    cases = []
    for n in (1, 2, 7, 8, 12, 15):
        z = astra.asarray((rng.uniform(-1, 1, (2, n)) + 1j * rng.uniform(-1, 1, (2, n))).astype(dtype))
        x = astra.real(z)
        for name in ("fft", "ifft", "hfft", "fftn", "ifftn", "irfft", "irfftn", "fftshift", "ifftshift"):
            if n > 1 or name not in ("hfft", "irfft", "irfftn"):
                cases.append((f"{name} {n}", lambda name=name, z=z: getattr(fft, name)(z) + 0))
        for name in ("rfft", "ihfft", "rfftn"):
            cases.append((f"{name} {n}", lambda name=name, x=x: getattr(fft, name)(x)))
    cases += [(name, lambda name=name: getattr(fft, name)(9, d=0.5)) for name in ("fftfreq", "rfftfreq")]
    assert {name.split()[0] for name, _ in cases} == set(fft.__all__)
    check(cases)


# ---- random numbers

RANDOM = {
    "key": lambda k, t: random.key(astra.asarray(7) + 1) + 0, "split": lambda k, t: random.split(k, 3), "fold_in": lambda k, t: random.fold_in(k, 5),
    "bits": lambda k, t: [random.bits(k, (7,), b) for b in ("uint8", "uint16", "uint32", "uint64")], "uniform": lambda k, t: random.uniform(k, (3, 5), t, -1, 2),
    "normal": lambda k, t: random.normal(k, (3, 5), t), "randint": lambda k, t: random.randint(k, (9,), -3, 11), "bernoulli": lambda k, t: random.bernoulli(k, 0.3, (9,)),
    "categorical": lambda k, t: random.categorical(k, astra.iota((4, 3), t), shape=(4,)), "permutation": lambda k, t: random.permutation(k, 9),
    "shuffle": lambda k, t: random.shuffle(k, astra.iota((5, 2))), "choice": lambda k, t: [random.choice(k, 9, (4,)), random.choice(k, 9, (4,), replace=False)],
    "multivariate_normal": lambda k, t: random.multivariate_normal(k, astra.zeros(3, dtype=t), astra.tril(astra.ones((3, 3), dtype=t)), (4,)),
    "truncated_normal": lambda k, t: random.truncated_normal(k, -1, 2, (9,), t), "gamma": lambda k, t: random.gamma(k, 0.7, (9,), t),
    "beta": lambda k, t: random.beta(k, 2.0, 0.5, (9,), t), "poisson": lambda k, t: random.poisson(k, 3.0, (9,)),
    "rademacher": lambda k, t: random.rademacher(k, (9,)),
    **{n: lambda k, t, n=n: getattr(random, n)(k, (9,), t) for n in ("exponential", "gumbel", "logistic", "laplace", "cauchy")},
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"] if NIGHTLY else ["float32"])
def test_random_numbers(dtype):
    assert set(RANDOM) == set(random.__all__)
    key = astra.asarray(np.array([3, 5], np.uint32))
    check([(name, lambda f=f: f(key, dtype)) for name, f in RANDOM.items()])


# ---- losses with their gradients, metrics, initializers


def test_losses_and_metrics():
    s = samples(np.dtype("float32"))
    x, y, classes = (astra.asarray(a) for a in (s.x, s.y, np.array([0, 4, 2])))
    share = astra.softmax(y, axis=1)
    given = {"cross_entropy": (x, classes), "nll": (x, classes), "multi_margin": (x, classes), "bce": (astra.sigmoid(x), share), "bce_with_logits": (x, share),
             "kl_div": (x, share), "hinge_embedding": (x, astra.sign(y)), "accuracy": (x, classes), "top": (x, classes),
             "ctc": (astra.log_softmax(astra.concat([x, y])[:, None, :], axis=-1), astra.asarray(np.array([[1, 2]])))}  # fmt: skip
    cases = []
    for name in losses.__all__:
        f, (a, b) = getattr(losses, name), given.get(name, (x, y))
        cases.append((name, lambda f=f, a=a, b=b: [f(a, b), f(a, b, sum=True), astra.grad(f)(a, b)]))
    cases += [(name, lambda name=name: getattr(metrics, name)(*given.get(name, (x, y)), **({"k": 2} if name == "top" else {}))) for name in metrics.__all__]
    check(cases)


# ---- layers with the gradients of their parameters

LAYERS = {
    **{f"{kind}Pool{d}d": (lambda d=d, kind=kind: getattr(nn, f"{kind}Pool{d}d")(2), (2, 3) + (4,) * d) for d in (1, 2, 3) for kind in ("Avg", "Max")},
    **{f"Conv{d}d": (lambda d=d: getattr(nn, f"Conv{d}d")(3, 4, 3, padding=1), (2, 3) + (4,) * d) for d in (1, 2, 3)},
    **{f"ConvTranspose{d}d": (lambda d=d: getattr(nn, f"ConvTranspose{d}d")(3, 2, 3, stride=2), (2, 3) + (3,) * d) for d in (1, 2, 3)},
    **{f"{kind}Norm{d}d": (lambda d=d, kind=kind: getattr(nn, f"{kind}Norm{d}d")(3), (2, 3) + (4,) * d) for d in (1, 2, 3) for kind in ("Batch", "Instance")},
    **{kind: (lambda kind=kind: getattr(nn, kind)(3, 4, batch_first=True), (2, 5, 3)) for kind in ("RNN", "GRU", "LSTM")},
    "Linear": (lambda: nn.Linear(5, 4), (2, 5)), "LoRA": (lambda: nn.LoRA(nn.Linear(5, 4), 2), (2, 5)), "LayerNorm": (lambda: nn.LayerNorm(5), (2, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5), (2, 5)), "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)), "PReLU": (lambda: nn.PReLU(), (2, 5)),
    "Flatten": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Flatten()), (2, 3, 3)), "GlobalAvgPool": (lambda: nn.Sequential(nn.Conv2d(3, 2, 1), nn.GlobalAvgPool()), (2, 3, 4, 4)),
    "Dropout": (lambda: nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5)), (2, 5)), "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2), (2, 5, 8)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(5, 4), astra.gelu, nn.Linear(4, 2)), (2, 5)),
    "Upsample": (lambda: nn.Sequential(nn.Conv2d(3, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear")), (2, 3, 4, 4)),
    "Function": (lambda: nn.Function(astra.silu), (2, 5)), "Embedding": (lambda: nn.Embedding(7, 3), None),
}  # fmt: skip


def of_layer(make, shape):
    """What a layer gives in inference and in training, and the gradients of its parameters."""
    net = make()
    x = np.array([[0, 6, 2]]) if shape is None else np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    x, params = astra.asarray(x), nn.partition(net)

    def loss(params, rest):
        y, after = nn.apply(nn.combine(params, rest), x, key=astra.random.key(3))
        return sum((t * t).sum() for t in leaves(y)), (y, nn.partition(after)[1])

    made = [net(x)]
    if astra.tree.leaves(params[0]):
        made.append(astra.grad(loss, has_aux=True)(*params))
    return [t for t in leaves(made) if isinstance(t, astra.Tensor) and t._value is None]


def test_layers():
    classes = {n for n in nn.__all__ if inspect.isclass(getattr(nn, n))} - {"Module"}
    assert classes == set(LAYERS)
    check([(name, lambda made=made: of_layer(*made)) for name, made in LAYERS.items()])


def test_functions_of_attention():
    rng = np.random.default_rng(2)
    q, k, v = (astra.asarray(rng.uniform(-1, 1, (2, 2, 5, 4)).astype(np.float32)) for _ in range(3))
    tables = nn.rotary_tables(5, 4)
    check([("attention", lambda: [nn.attention(q, k, v), nn.attention(q, k, v, causal=True)]), ("rotary_tables", lambda: tables),
           ("rotary", lambda: nn.rotary(q, *tables, astra.iota((2, 5)) * 0 + astra.iota(5))), ("alibi", lambda: nn.alibi(2, 5, 5))])  # fmt: skip


def test_initializers():
    shapes, parameters = {"dirac": (4, 3, 3)}, {"constant": {"value": 0.5}, "sparse": {"sparsity": 0.5}}
    check([(name, lambda name=name: getattr(init, name)(shapes.get(name, (4, 3)), seed=1, **parameters.get(name, {})) + 0)
           for name in init.__all__ if name != "draw"])  # fmt: skip
