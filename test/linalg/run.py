"""Linear algebra: residuals as LAPACK's tests take them, equal bytes on every machine, a batch as its matrices alone, gradients.

Takes:    modules that linalg-module prints, matrices of fixed kinds (random, graded, nearly singular, diagonal, repeated
          eigenvalues, scaled near the ends of the type, zeros ...), each kind one matrix of a batch.
Gives:    a line per module; residual ratios (||A - Q R|| / (||A|| max(m, n) eps) and the like) below LIMIT on every kind; bytes of
          the CPU levels, of threads and of an emulated GPU equal to those of the reference evaluator; those of a matrix alone
          equal to those in the batch; gradients beside central differences; values beside NumPy's. Exit code 1 if one fails.
          A day runs the cases of DAILY. ASTRA_NIGHTLY: all, more sizes, and an emulated GPU.
Keeps:    inputs are functions of the case alone. Residuals are computed in more bits than the matrices have.
Does not: tolerate a bit between machines.

    build/venv/bin/python test/linalg/run.py [--build build] [--only REGEX] [--machines LIST]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "common"))
import verdicts  # noqa: E402

LIMIT = 35
DAILY = {"cholesky f64 40x40", "cholesky complex128 17x17", "lu f64 9x5", "lu complex128 9x5", "lu_factor f64 38x35", "qr f64 9x5", "qr complex128 9x5", "eigh f64 5x5", "eigh f64 33x33", "eigh complex128 5x5", "eig f64 5x5", "svd f32 8x5", "svd complex64 8x5", "solve f64 5",
         "triangular_rt f64 40", "slogdet f64", "lu_solve f64", "cholesky_solve complex128", "least_squares f64", "pinv f64", "expm f64", "rfft f64", "gradient cholesky f64", "gradient lu f64", "gradient qr f64",
         "gradient eigh f64", "gradient svd f64", "gradient svd complex128", "gradient eig f64", "vmap eigh", "parts lu_factor", "failures"}
NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "complex64": np.complex64, "complex128": np.complex128}
EPS = {"f32": 2.0**-23, "f64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}
PARTS = {"complex64": "f32", "complex128": "f64"}


class Failure(Exception):
    """What should not be."""


def command(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, args))}\n  exit {done.returncode}: {done.stderr.strip()[:1500]}")
    return done.stdout


class Machines:
    """A module, on the evaluator and compiled."""

    def __init__(self, build, folder, function, dtype, shapes, gradient=False, targets="cpu:x86-64-v4,cpu:x86-64-v3"):
        self.build, self.folder, self.dtype, self.targets = build, folder, dtype, targets
        self.text = folder / "m.uop"
        text = command(build / "bin/linalg-module", function, dtype, *shapes, *(["gradient"] if gradient else []))
        self.text.write_text(text)
        main = re.search(r"entry @main\((.*?)\) -> \((.*?)\) \{", text)
        self.outputs = re.findall(r"%(\w+) :", main[2])
        self.compiled = False

    def _arguments(self, inputs, outputs):
        words = []
        for name, value in inputs.items():
            np.save(self.folder / f"{name}.npy", value)
            words.append(f"--input={name}={self.folder / name}.npy")
        return words + [f"--output={o}={self.folder / o}.npy" for o in outputs]

    def evaluator(self, inputs, entry="main", outputs=None, passes=()):
        outputs = self.outputs if outputs is None else outputs
        command(self.build / "bin/astra-opt", self.text, *passes, "--eval", f"--entry={entry}", *self._arguments(inputs, outputs))
        return [np.load(self.folder / f"{o}.npy") for o in outputs]

    def bundle(self, inputs, *flags, outputs=None):
        outputs = self.outputs if outputs is None else outputs
        if not self.compiled:
            command(self.build / "bin/astra-compile", self.text, "-o", self.folder / "m.astra", f"--target={self.targets}",
                    *verdicts.compile_flags())
            self.compiled = True
        command(self.build / "bin/astra-run", self.folder / "m.astra", *flags, *self._arguments(inputs, outputs))
        return [np.load(self.folder / f"{o}.npy") for o in outputs]


def same(found, expected, what):
    for i, (a, b) in enumerate(zip(found, expected)):
        if a.shape != b.shape or a.tobytes() != b.tobytes():
            where = [] if a.shape != b.shape else np.argwhere(a.view(np.uint8) != b.view(np.uint8))[:1].tolist()
            raise Failure(f"{what}: output {i} has other bytes, first at {where}")


# ---- matrices

def normal(r, shape, dtype):
    return r.standard_normal(shape) + 1j * r.standard_normal(shape) if dtype in PARTS else r.standard_normal(shape)


def orthogonal(r, n, dtype):
    return np.linalg.qr(normal(r, (n, n), dtype))[0]


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def kinds(m, n, dtype, symmetric=False, definite=False):
    """Names and matrices [m, n]: symmetric ones by their eigenvalues, the others by their singular values."""
    r = np.random.default_rng(zlib.crc32(f"{m} {n} {symmetric} {definite}".encode()))
    k, eps = min(m, n), EPS[dtype]
    u, v = orthogonal(r, m, dtype)[:, :k], orthogonal(r, n, dtype)[:, :k]

    def of(values):
        values = np.asarray(values, float)
        if definite:
            values = abs(values)
        elif symmetric:
            values = values * np.where(np.arange(k) % 2, -1, 1)
        a = (u * values) @ adjoint(u if symmetric else v)
        return (a + adjoint(a)) / 2 if symmetric else a

    small, large = {"f32": (1e-30, 1e30), "f64": (1e-300, 1e300)}[PARTS.get(dtype, dtype)]
    steps = np.arange(k) / max(k - 1, 1)
    even = 1 + steps
    out = {
        "random": of(r.uniform(0.5, 2, k)),
        "graded": of((1 / np.sqrt(eps)) ** -steps),
        "nearly singular": of(np.where(np.arange(k) == k - 1, 8 * k * eps, 1)),
        "repeated": of(np.where(np.arange(k) < k // 2, 1, 3)),
        "even": of(1 - steps * (1 - 8 * k * eps)),
        "clustered": of(np.where(np.arange(k) == 0, 1, 8 * k * eps)),
        "any magnitude": of((8 * k * eps) ** r.uniform(0, 1, k)),
        "small": of(even) * small,
        "large": of(even) * large,
        "diagonal": np.eye(m, n) * np.resize(1 + np.arange(n) % 5, n),
        "identity": np.eye(m, n),
    }
    if not definite:
        out["zero"] = np.zeros((m, n))
        out["singular"] = of(np.where(np.arange(k) % 3 == 2, 0, even))
        out["ones"] = np.ones((m, n))
        out["integers"] = np.round(of(10 * even))
        out["spread"] = of((1 / (eps * eps)) ** -steps)
        for name, none in (("first", slice(0, 1)), ("last", slice(n - 1, n)), ("half", slice(n // 2, n))):
            a = out["random"].copy()
            a[:, none] = 0
            if symmetric:
                a[none] = 0
            out[f"{name} of zeros"] = a
        if not symmetric:
            out["rows"] = normal(r, (m, n), dtype) * (10.0 ** -(20 * np.arange(m) / m))[:, None]
            out["columns"] = normal(r, (m, n), dtype) * (10.0 ** -(20 * np.arange(n) / n))[None]
            out["normal"] = normal(r, (m, n), dtype)
        else:
            a = normal(r, (m, n), dtype)
            out["normal"] = a + adjoint(a)
            d = 10.0 ** -(8 * np.arange(n) / n)
            out["both graded"] = (a + adjoint(a)) * d * d[:, None]
    if m == n and not symmetric:  # what has fewer eigenvectors than columns, or goes round
        out["one block"] = np.eye(n) + np.eye(n, k=1)
        out["cycle"] = np.roll(np.eye(n), 1, 0)
        out["triangle"] = np.triu(np.ones((n, n)))
        out["lower triangle"] = np.tril(normal(r, (n, n), dtype))
        out["nilpotent"] = np.triu(normal(r, (n, n), dtype), 1)
    return {name: a.astype(TYPES[dtype]) for name, a in out.items()}


# ---- residuals, of one matrix

def wide(*arrays):
    return [np.asarray(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble) for a in arrays]


def shifted(a, e):
    """a * 2^e."""
    return np.ldexp(a.real, e) + 1j * np.ldexp(a.imag, e) if np.iscomplexobj(a) else np.ldexp(a, e)


def norm(a):
    return float(abs(a).sum(0).max()) if a.size else 0.0


def ratio(error, size, n, eps):
    """Scaled first: nothing overflows. An error of 0 is 0, also beside zeros."""
    e, s = norm(error), norm(size)
    return 0.0 if e == 0 else np.inf if not np.isfinite(e) or s == 0 else e / s / (n * eps)


def unitary(q, eps):
    (q,) = wide(q)
    return norm(adjoint(q) @ q - np.eye(q.shape[1])) / (max(q.shape) * eps)


def exponent(a):
    most = abs(a).max()
    return 0 if most == 0 else np.frexp(float(most))[1]


def residual_cholesky(a, out, eps, upper=False):
    (f, info), (x,) = out, wide(a)
    if info:
        raise Failure(f"info {info}")
    (f,) = wide(f)
    f = adjoint(f) if upper else f
    if np.any(np.triu(f, 1)):
        raise Failure("the factor is not triangular")
    return ratio(x - f @ adjoint(f), x, len(x), eps)


def residual_lu(a, out, eps):
    (p, l, u), (x,) = wide(*out[:3]), wide(a)
    if abs(l).max() > 1 + (4 * eps if np.iscomplexobj(l) else 0) or np.any(np.diag(l) != 1):
        raise Failure("L has elements above 1")
    zeros = np.flatnonzero(np.diag(u) == 0)
    if out[3] != (zeros[0] + 1 if len(zeros) else 0):
        raise Failure(f"info {out[3]}, the diagonal has zeros at {zeros[:3]}")
    e = exponent(x)
    return ratio(shifted(x, -e) - p @ l @ shifted(u, -e), shifted(x, -e), max(x.shape), eps)


def residual_lu_factor(a, out, eps):
    packed, pivots, order, info = out
    perm = np.arange(len(a))
    for i, p in enumerate(pivots):
        perm[[i, p]] = perm[[p, i]]
    if not np.array_equal(perm, order):
        raise Failure("pivots and order differ")
    k = min(a.shape)
    p = np.zeros((len(a), len(a)))
    p[order, np.arange(len(a))] = 1
    return residual_lu(a, [p, np.tril(packed[:, :k], -1) + np.eye(len(a), k), np.triu(packed[:k]), info], eps)


def residual_qr(a, out, eps):
    (q, r), (x,) = wide(*out), wide(a)
    if np.any(np.tril(r, -1)):
        raise Failure("R is not triangular")
    e = exponent(x)
    return max(ratio(shifted(x, -e) - q @ shifted(r, -e), shifted(x, -e), max(x.shape), eps), unitary(q, eps))


def residual_eigh(a, out, eps):
    (w, v), (x,) = wide(*out[:2]), wide(a)
    if out[2]:
        raise Failure(f"info {out[2]}")
    if np.any(np.diff(w) < 0):
        raise Failure("eigenvalues are not ascending")
    e = exponent(x)
    x, w = shifted(x, -e), shifted(w, -e)
    reference = np.linalg.eigvalsh(np.asarray(x, complex if np.iscomplexobj(x) else float))
    size = max(abs(reference).max(), 1e-300)
    return max(ratio(x @ v - v * w, x, len(x), eps), unitary(v, eps), abs(w - reference).max() / size / (len(x) * max(eps, 2.0**-52)))


def residual_eig(a, out, eps):
    """||A V - V W|| / (||A|| n eps), columns of length 1, and eigenvalues that are those of a matrix near A: their sum is its trace."""
    (w, v), (x,) = wide(*out[:2]), wide(a)
    if out[2]:
        raise Failure(f"info {out[2]}")
    e = exponent(x)
    x, w = shifted(x, -e), shifted(w, -e)
    lengths = abs(np.sqrt((abs(v) ** 2).sum(0)) - 1).max() / (len(x) * eps)
    trace = abs(w.sum() - np.trace(x)) / max(norm(x), 1e-300) / (len(x) * eps)
    return max(ratio(x @ v - v * w, x, len(x), eps), float(lengths), float(trace))


def residual_svd(a, out, eps):
    (u, s, v), (x,) = wide(*out[:3]), wide(a)
    if out[3]:
        raise Failure(f"info {out[3]}")
    if np.any(np.diff(s) > 0) or np.any(s < 0):
        raise Failure("singular values are not descending")
    e, k = exponent(x), len(s)
    x, s = shifted(x, -e), shifted(s, -e)
    reference = np.linalg.svd(np.asarray(x, complex if np.iscomplexobj(x) else float), compute_uv=False)
    size = max(reference[0], 1e-300)
    return max(ratio(x - (u[:, :k] * s) @ v[:k], x, max(x.shape), eps), unitary(u, eps), unitary(adjoint(v), eps),
               float(abs(s - reference).max() / size / (max(x.shape) * max(eps, 2.0**-52))))


def residual_solve(a, out, eps, y):
    (x, b, y) = wide(a, out[0], y)
    if out[1]:
        raise Failure(f"info {out[1]}")
    # by columns: ||A x - y|| / (||A|| ||x|| n eps)
    error = abs(x @ b - y).sum(0) / np.maximum(norm(x) * abs(b).sum(0), np.longdouble(1e-4000))
    return float(error.max() / (len(x) * eps))


# Function, its residual, whether it takes symmetric and definite matrices, what the other shapes are.
SOLVED = ("graded", "random", "repeated", "even", "clustered", "any magnitude", "nearly singular", "diagonal", "identity", "normal", "integers", "small", "large")
FACTORS = {
    "cholesky": (residual_cholesky, True, True),
    "cholesky_upper": (lambda a, o, e: residual_cholesky(a, o, e, True), True, True),
    "lu": (residual_lu, False, False),
    "lu_factor": (residual_lu_factor, False, False),
    "qr": (residual_qr, False, False),
    "qr_complete": (residual_qr, False, False),
    "eigh": (residual_eigh, True, False),
    "eigh_upper": (residual_eigh, True, False),
    "eig": (residual_eig, False, False),
    "svd": (residual_svd, False, False),
    "svd_full": (residual_svd, False, False),
}


def factor_case(make, function, dtype, m, n, machines):
    residual, symmetric, definite = FACTORS[function]
    a = kinds(m, n, dtype, symmetric, definite)
    names, x = list(a), np.stack(list(a.values()))
    p = make(function, dtype, [f"n,{m},{n}"], targets=machines)
    out = p.bundle({"x0": x})
    worst = (0.0, "")
    for i, name in enumerate(names):
        try:
            worst = max(worst, (residual(x[i], [o[i] for o in out], EPS[dtype]), name))
        except Failure as e:
            raise Failure(f"'{name}': {e}") from None
    if not worst[0] < LIMIT:
        raise Failure(f"a residual ratio of {worst[0]:.1f} on '{worst[1]}'")
    everywhere(p, {"x0": x}, out, machines, evaluator=m * n <= 40 * 40 and m * n * len(x) < 12000)
    for i in {0, len(names) - 1, names.index("repeated")}:
        alone = p.bundle({"x0": x[i : i + 1]})
        same([o[0] for o in alone], [o[i] for o in out], f"'{names[i]}' alone")
    return f"{worst[0]:.2f} of {LIMIT}, on '{worst[1]}'"


def everywhere(p, inputs, out, machines, evaluator=True):
    """The bytes of the other machines."""
    if evaluator:
        same(out, p.evaluator(inputs), "the evaluator")
    if "x86-64-v3" in machines:
        same(p.bundle(inputs, "--level=x86-64-v3"), out, "x86-64-v3")
    same(p.bundle(inputs, "--threads=2"), out, "two threads")
    for gpu in re.findall(r"emu:(\S+?)(?:,|$)", machines):
        same(p.bundle(inputs, f"--emulate={gpu}"), out, gpu)


def solve_case(make, function, dtype, n, k, machines):
    a = {name: x for name, x in kinds(n, n, dtype).items() if name in SOLVED}
    names, x = list(a), np.stack(list(a.values()))
    y = normal(np.random.default_rng(n), (len(x), n, k), dtype).astype(TYPES[dtype])
    inputs = {"x0": x} if function == "inverse" else {"x0": x, "x1": y}
    p = make(function, dtype, [f"n,{n},{n}"] + ([] if function == "inverse" else [f"n,{n},{k}"]), targets=machines)
    out = p.bundle(inputs)
    worst = (0.0, "")
    for i, name in enumerate(names):
        right = np.eye(n) if function == "inverse" else y[i]
        worst = max(worst, (residual_solve(x[i], [o[i] for o in out], EPS[dtype], right), name))
    if not worst[0] < LIMIT:
        raise Failure(f"a residual ratio of {worst[0]:.1f} on '{worst[1]}'")
    everywhere(p, inputs, out, machines, evaluator=n <= 20)
    return f"{worst[0]:.2f} of {LIMIT}, on '{worst[1]}'"


def triangular_case(make, function, dtype, n, k, machines):
    letters = function.split("_")[1]
    r = np.random.default_rng(zlib.crc32(function.encode()))
    a = normal(r, (3, n, n), dtype) / np.sqrt(n) + 2 * np.eye(n)
    a[1] *= 10.0 ** -(8 * np.arange(n) / n)[:, None]
    y = normal(r, (3, k, n) if "r" in letters else (3, n, k), dtype)
    a, y = a.astype(TYPES[dtype]), y.astype(TYPES[dtype])
    p = make(function, dtype, [f"n,{n},{n}", "n," + ("%d,%d" % (y.shape[1:]))], targets=machines)
    out = p.bundle({"x0": a, "x1": y})
    worst = 0.0
    for i in range(3):
        (t, x, right) = wide(a[i], out[0][i], y[i])
        t = np.triu(t) if "u" in letters else np.tril(t)
        if "i" in letters:
            t = t - np.diag(np.diag(t)) + np.eye(n)
        t = t.T if "t" in letters else t
        if "r" in letters:
            t, x, right = t.T, x.T, right.T
        worst = max(worst, float(abs(t @ x - right).max() / (abs(t) @ abs(x)).max() / (n * EPS[dtype])))
    if not worst < LIMIT:
        raise Failure(f"a residual ratio of {worst:.1f}")
    everywhere(p, {"x0": a, "x1": y}, out, machines, evaluator=n <= 20)
    return f"{worst:.2f} of {LIMIT}"


# ---- values beside NumPy

def close(found, expected, eps, what, scale=None):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise Failure(f"{what}: the shape {found.shape}, expected {expected.shape}")
    size = scale if scale is not None else abs(expected[np.isfinite(expected)]).max(initial=1e-300)
    with np.errstate(invalid="ignore"):
        bad = ~((abs(found - expected) <= 200 * eps * size) | (found == expected) | (np.isnan(found) & np.isnan(expected)))
    if bad.any():
        i = tuple(np.argwhere(bad)[0])
        raise Failure(f"{what}: {found[i]} at {i}, NumPy has {expected[i]}")


def numpy_functions():
    t = np.linalg
    singular = lambda a: t.svd(a, compute_uv=False)  # noqa: E731
    return {
        "determinant": (lambda a: [t.det(a)], ["n,5,5"]),
        "slogdet": (lambda a: list(t.slogdet(a)), ["n,7,7"]),
        "power3": (lambda a: [t.matrix_power(a, 3)], ["n,4,4"]),
        "power-2": (lambda a: [t.matrix_power(a, -2)], ["n,4,4"]),
        "power0": (lambda a: [t.matrix_power(a, 0)], ["n,4,4"]),
        "eigvalsh": (lambda a: [t.eigvalsh(a)], ["n,6,6"]),
        "svdvals": (lambda a: [singular(a)], ["n,4,6"]),
        "pinv": (lambda a: [t.pinv(a)], ["n,4,6"]),
        "rank": (lambda a: [t.matrix_rank(a)], ["n,4,4"]),
        "norms": (lambda a: [np.sqrt((abs(a) ** 2).sum((1, 2))), singular(a).sum(1), singular(a)[:, 0], singular(a)[:, -1],
                             abs(a).sum(1).max(1), abs(a).sum(1).min(1), abs(a).sum(2).max(1), abs(a).sum(2).min(1)], ["n,4,3"]),
        "vector_norms": (lambda a: [t.norm(a, o, -1) for o in (2, 1, 0, 3, -1, np.inf, -np.inf)], ["n,9"]),
        "outer": (lambda a, b: [a[:, :, None] * b[:, None]], ["n,4", "n,5"]),
        "vecdot": (lambda a, b: [(np.conj(a) * b).sum(-1)], ["n,2,9", "n,1,9"]),
        "cross": (lambda a, b: [np.cross(a, b)], ["n,3", "n,3"]),
        "tensordot": (lambda a, b: [np.tensordot(a, b, ([1, 2], [1, 0]))], ["2,3,4", "4,3,5"]),
        "kron": (lambda a, b: [np.kron(a, b)], ["2,3", "4,2"]),
        "diagonal": (lambda a: [np.diagonal(a, k, 1, 2) for k in (0, 1, -2)], ["n,5,4"]),
        "trace": (lambda a: [np.trace(a, k, 1, 2) for k in (0, 1)], ["n,4,4"]),
        "lu_solve": (lambda a, b: [t.solve(a, b), *2 * [pivoted(a)]], ["n,5,5", "n,5,3"]),
        "cholesky_solve": (lambda a, b: [t.solve(a, b), t.solve(a, b)], ["n,5,5", "n,5,3"]),
        "least_squares": (lambda a, b: least_squares(a, b), ["n,6,4", "n,6,2"]),
        "expm": (lambda a: [np.stack([expm(x) for x in a])], ["n,5,5"]),
    }


def pivoted(a):
    """The order of rows of LU with partial pivoting."""
    out = []
    for x in a.copy():
        order = np.arange(len(x))
        for j in range(len(x)):
            p = j + abs(x[j:, j]).argmax()
            x[[j, p]], order[[j, p]] = x[[p, j]], order[[p, j]]
            x[j + 1 :] -= np.outer(x[j + 1 :, j] / x[j, j], x[j])
        out.append(order)
    return np.stack(out)


def least_squares(a, b):
    x = np.linalg.pinv(a) @ b
    return [x, (abs(a @ x - b) ** 2).sum(1), np.linalg.matrix_rank(a), np.linalg.svd(a, compute_uv=False)]


def expm(a):
    """By scaling and a Taylor series, in long double."""
    s = max(0, int(np.ceil(np.log2(max(norm(a), 1e-300)))) + 4)
    (x,) = wide(a)
    x, term, out = shifted(x, -s), np.eye(len(a), dtype=x.dtype), np.eye(len(a), dtype=x.dtype)
    for k in range(1, 30):
        term = term @ x / k
        out = out + term
    for _ in range(s):
        out = out @ out
    return out.astype(a.dtype)


def numpy_case(make, function, dtype, machines):
    reference, shapes = numpy_functions()[function]
    r = np.random.default_rng(zlib.crc32(function.encode()))
    x = [normal(r, [3 if s == "n" else int(s) for s in shape.split(",")], dtype).astype(TYPES[dtype]) for shape in shapes]
    if function in ("eigvalsh",):
        x[0] = x[0] + adjoint(x[0])
    if function == "cholesky_solve":
        x[0] = x[0] @ adjoint(x[0]) + np.eye(5).astype(TYPES[dtype])
    if function == "least_squares":
        x[0][1, :, 2] = x[0][1, :, 0] * 2
    if function == "rank":
        x[0][1, 2] = x[0][1, 1] * 2
        x[0][2] = 0
    if function == "slogdet":
        x[0][2, :, 3] = 0
    if function == "expm":
        x[0] *= np.array([0.1, 1, 4]).reshape(3, 1, 1).astype(TYPES[dtype])
    if function == "determinant":
        x[0] = np.round(4 * x[0])
    p = make(function, dtype, shapes, targets=machines)
    inputs = {f"x{i}": v for i, v in enumerate(x)}
    out = p.bundle(inputs)
    with np.errstate(all="ignore"):
        expected = reference(*[v.astype(np.complex128 if dtype in PARTS else np.float64) for v in x])
    for i, (a, b) in enumerate(zip(out, expected)):
        close(a, b, EPS[dtype], f"output {i}")
    everywhere(p, inputs, out, machines)
    return "as NumPy"


def fft_case(make, function, dtype, machines):
    eps, t = (EPS["f32"] if dtype in ("complex64", "f32") else EPS["f64"]), np.fft
    r = np.random.default_rng(7)
    if function == "fft":
        x = (r.standard_normal((6, 9)) + 1j * r.standard_normal((6, 9))).astype(TYPES[dtype])
        expected = []
        for n in ("backward", "forward", "ortho"):
            expected += [t.fft(x, norm=n), t.ifft(x, axis=0, norm=n)]
        expected += [t.fftn(x), t.ifftn(x, (5, 8)), t.irfft(x), t.irfftn(x, (6, 7), norm="ortho"), t.hfft(x, norm="forward"),
                     t.fftshift(x), t.ifftshift(x, -1)]
    else:
        x = r.standard_normal((4, 9)).astype(TYPES[dtype])
        expected = [t.rfft(x), t.rfft(x, 3, norm="ortho"), t.rfftn(x), t.ihfft(x), t.fft(x), t.fftfreq(9, 0.5), t.rfftfreq(9, 0.5)]
    p = make(function, dtype, ["%d,%d" % x.shape], targets=machines)
    out = p.bundle({"x0": x})
    for i, (a, b) in enumerate(zip(out, expected)):
        close(a, b, eps, f"output {i}")
    everywhere(p, {"x0": x}, out, machines)
    return "as NumPy"


# ---- gradients, beside central differences of the evaluator's values

GRADIENTS = {
    "cholesky": ["2,5,5"], "cholesky_upper": ["1,4,4"], "lu": ["2,4,4"], "lu_factor": ["1,3,5"], "qr": ["2,5,3"],
    "triangular_": ["1,4,4", "1,4,2"], "triangular_ut": ["1,4,4", "1,4,2"], "triangular_r": ["1,4,4", "1,2,4"],
    "triangular_rut": ["1,4,4", "1,2,4"], "triangular_i": ["1,3,3", "1,3,2"], "solve": ["2,4,4", "2,4,2"], "lu_solve": ["2,4,4", "2,4,2"], "cholesky_solve": ["2,4,4", "2,4,2"], "least_squares": ["1,5,3", "1,5,2"], "inverse": ["1,4,4"],
    "slogdet": ["2,4,4"], "eigh": ["2,4,4"], "eigvalsh": ["1,5,5"], "svd": ["1,5,3"], "svdvals": ["1,3,4"], "pinv": ["1,4,3"],
    "expm": ["1,3,3"], "norms": ["1,4,3"], "outer": ["2,3", "2,4"], "power-2": ["1,3,3"], "eig": ["2,4,4"], "eigvals": ["1,5,5"],
    "determinant": ["2,3,3"],
}

SECOND = {"cholesky", "cholesky_solve", "lu", "qr", "triangular_ut", "solve", "eigh", "svd"}


def gradient_case(make, function, dtype, machines):
    shapes = GRADIENTS[function]
    p = make(function, dtype, shapes, gradient=True, targets=machines)
    r = np.random.default_rng(zlib.crc32(function.encode()))

    def drawn(shape, t=dtype):
        x = r.standard_normal(shape)
        return x + 1j * r.standard_normal(shape) if t in PARTS else x

    x = [drawn([int(s) for s in shape.split(",")]) for shape in shapes]
    n = x[0].shape[-1]
    symmetric = function.startswith(("cholesky", "eigh", "eigvalsh"))
    if function.startswith("cholesky"):
        x[0] = x[0] @ adjoint(x[0]) + n * np.eye(n)
    if symmetric and function.startswith("eig"):
        x[0] = x[0] + adjoint(x[0]) + np.diag(3.0 * np.arange(n))
    if function.startswith("triangular"):
        x[0] = x[0] / 2 + 2 * np.eye(n)
    text = p.text.read_text()
    loss = re.search(r"entry @loss\((.*?)\) ->", text)[1]
    weights = {name: drawn([int(v) for v in shape.split(",")] if shape else [], t)
               for name, t, shape in re.findall(r"%(w\d+) : (f64|complex128)(?:\[([\d, ]*)\])?", loss)}
    inputs = {f"x{i}": v for i, v in enumerate(x)} | weights
    wrt = [f"x{i}" for i in range(len(x))]
    plain = {k: v for k, v in inputs.items() if k in wrt}
    same(p.evaluator(plain), make(function, dtype, shapes).evaluator(plain), "without derivatives")
    gradients = [f"{w}.grad" for w in wrt]
    got = p.evaluator(inputs, "gradient", gradients, ["--passes=grad"])
    same(p.bundle(inputs, "--entry=gradient", outputs=gradients), got, "the compiled gradient")
    worst = 0.0
    for name, g in zip(wrt, got):
        for time in range(3):
            d = drawn(g.shape)
            if symmetric and name == "x0":
                d = (d + adjoint(d)) / 2
            step = 1e-5
            values = [p.evaluator(inputs | {name: inputs[name] + s * step * d}, "loss", ["loss"], ["--passes=grad"])[0] for s in (1, -1)]
            slope = float(values[0] - values[1]) / (2 * step)
            found = float((g.conj() * d).sum().real)
            worst = max(worst, abs(found - slope) / max(1.0, abs(slope)))
            if not np.isfinite(found):
                raise Failure(f"the gradient of {name} is not finite")
    if worst > 1e-6:
        raise Failure(f"a gradient differs from differences by {worst:.1e}")
    if function not in SECOND:
        return f"within {worst:.0e} of differences"
    # forward over reverse: the gradient's tangent beside its differences
    p.text.write_text(re.sub(r"(  grad @gradient [^\n]*\n)", r"\1  jvp @second = @gradient wrt %x0\n", text))
    d = drawn(x[0].shape)
    if symmetric:
        d = (d + adjoint(d)) / 2
    found = p.evaluator(inputs | {"x0.dot": d}, "second", ["x0.grad.dot"], ["--passes=grad"])[0]
    near = [p.evaluator(inputs | {"x0": x[0] + s * 1e-5 * d}, "gradient", ["x0.grad"], ["--passes=grad"])[0] for s in (1, -1)]
    slope = (near[0] - near[1]) / 2e-5
    second = abs(found - slope).max() / max(1.0, abs(slope).max())
    if not second < 1e-6:
        raise Failure(f"a second derivative differs from differences by {second:.1e}")
    return f"within {worst:.0e} of differences, the second derivative {second:.0e}"


def vmap_case(make, function):
    """The directive over one matrix has the bytes of a batch."""
    x = np.random.default_rng(4).standard_normal((3, 5, 5))
    if function == "cholesky":
        x = x @ np.swapaxes(x, 1, 2) + np.eye(5)
    p = make(function, "f64", ["5,5"])
    text = p.text.read_text()
    end = text.rindex("}")
    p.text.write_text(text[:end] + "  vmap @many = @main over 3 in %x0 0\n}\n")
    many = p.evaluator({"x0": x}, "many", passes=["--passes=grad"])
    same(many, make(function, "f64", ["3,5,5"]).evaluator({"x0": x}), "vmap")
    return "the bytes of a batch"


def parts_case(make, function, machines):
    """A large batch of constant extent, which is taken in parts, has the bytes of one of any extent."""
    x = np.random.default_rng(5).standard_normal((301, 16, 16))
    if function in ("cholesky", "eigh"):
        x = x @ adjoint(x) + np.eye(16)
    parts = make(function, "f64", ["301,16,16"], targets=machines)
    out = make(function, "f64", ["n,16,16"], targets=machines).bundle({"x0": x})
    same(parts.bundle({"x0": x}), out, "in parts")
    everywhere(parts, {"x0": x}, out, machines, evaluator=False)
    return "the bytes of any batch"


# ---- failures are data

def failures_case(make, machines):
    x = np.stack([np.eye(4), np.diag([1.0, 2, -1, 3]), np.full((4, 4), np.nan), np.zeros((4, 4)), np.diag([1.0, 0, 2, 0])])
    p = make("cholesky", "f64", ["n,4,4"], targets=machines)
    f, info = p.bundle({"x0": x})
    if info.tolist() != [0, 3, 1, 1, 2] or not np.array_equal(f[0], np.eye(4)) or not np.isnan(f[1:]).all():
        raise Failure(f"cholesky: info {info.tolist()}")
    everywhere(p, {"x0": x}, [f, info], machines)
    for function, count in (("eigh", 3), ("svd", 4)):
        p = make(function, "f64", ["n,4,4"], targets=machines)
        y = x.copy()
        y[3, 1, 0] = np.inf
        out = p.bundle({"x0": y})
        if out[-1].tolist() != [0, 0, 1, 1, 0]:
            raise Failure(f"{function}: info {out[-1].tolist()}")
        for o in out[:-1]:
            if not np.isnan(o[2:4]).all() or np.isnan(o[[0, 1, 4]]).any():
                raise Failure(f"{function}: what is not finite should be NaN, and nothing else")
        everywhere(p, {"x0": y}, out, machines)
    for function, dtype in (("qr", "f64"), ("qr_complete", "f64"), ("qr", "complex128")):  # a head, an element below it, one behind
        p = make(function, dtype, ["n,5,4"], targets=machines)
        at = [(0, 0), (0, 0), (3, 0), (1, 1), (0, 3), (4, 3)]
        y = normal(np.random.default_rng(3), (len(at) + 1, 5, 4), dtype)
        for x, where, value in zip(y, at, [np.nan, np.inf, np.nan, -np.inf, np.nan, np.inf]):
            x[where] = value
        q, r = out = p.bundle({"x0": y})
        for i, (_, column) in enumerate(at):
            above = np.triu(np.ones(r[i].shape)) > 0
            if not np.isnan(q[i]).all() or not np.array_equal(np.isfinite(r[i]), ~above | (np.arange(4) < column)):
                raise Failure(f"{function}: matrix {i}: Q should be NaN, and R not finite from column {column} on")
        if not np.isfinite(q[-1]).all() or not np.isfinite(r[-1]).all():
            raise Failure(f"{function}: what is finite should stay so")
        everywhere(p, {"x0": y}, out, machines)
    p = make("least_squares", "f64", ["n,4,4", "n,4,1"], targets=machines)
    y = np.stack([np.eye(4), np.full((4, 4), np.nan), np.diag([1.0, np.inf, 1, 1]), np.zeros((4, 4))])
    out = p.bundle({"x0": y, "x1": np.ones((4, 4, 1))})
    if out[2].tolist() != [4, -1, -1, 0] or not np.isnan(out[0][1:3]).all():
        raise Failure(f"least_squares: ranks {out[2].tolist()}")
    p = make("rank", "f64", ["n,4,4"], targets=machines)
    out = p.bundle({"x0": y})
    if out[0].tolist() != [4, -1, -1, 0]:
        raise Failure(f"rank: {out[0].tolist()}")
    everywhere(p, {"x0": y}, out, machines)
    p = make("solve", "f64", ["n,4,4", "n,4,1"], targets=machines)
    y = np.stack([np.eye(4), np.diag([1.0, 2, 0, 3]), np.ones((4, 4))])
    out = p.bundle({"x0": y, "x1": np.ones((3, 4, 1))})
    if out[1].tolist() != [0, 3, 2] or np.isfinite(out[0][1]).all():
        raise Failure(f"solve: info {out[1].tolist()}")
    return "info says where"


def cases():
    """Name and what runs it, given `make` and the machines."""
    sizes = {"cholesky": [(1, 1), (3, 3), (17, 17), (40, 40)], "cholesky_upper": [(20, 20)],
             "lu": [(1, 1), (4, 4), (9, 5), (5, 9), (40, 40)], "lu_factor": [(20, 20), (38, 35), (35, 70)],
             "qr": [(1, 1), (2, 2), (9, 5), (5, 9), (40, 36)], "qr_complete": [(9, 4), (36, 34)],
             "eigh": [(1, 1), (2, 2), (5, 5), (16, 16), (33, 33), (70, 70)], "eigh_upper": [(6, 6)],
             "eig": [(1, 1), (2, 2), (5, 5), (16, 16), (33, 33)],
             "svd": [(1, 1), (2, 2), (8, 5), (5, 8), (20, 16), (40, 36)], "svd_full": [(7, 3), (3, 7)]}
    if NIGHTLY:
        for function, more in {"cholesky": [64, 100, 128], "lu": [64, 100, 128], "qr": [64, 100, 128], "eigh": [48, 64, 100],
                               "svd": [32, 64, 80], "lu_factor": [65]}.items():
            sizes[function] = sizes[function] + [(n, n) for n in more] + [(n + 13, n) for n in more if FACTORS[function][1] is False]
    for function, list_ in sizes.items():
        for dtype in ("f64", "f32", "complex128", "complex64"):
            for m, n in list_:
                if dtype == "f32" and not NIGHTLY and m * n not in (25, 16 * 16, 40, 81, 20 * 20, 45, 17 * 17):
                    continue
                if dtype in PARTS and (m * n == 1 or max(m, n) > 40):
                    continue
                yield f"{function} {dtype} {m}x{n}", lambda k, s, f=function, t=dtype, m=m, n=n: factor_case(k, f, t, m, n, s)
    for n, k in [(5, 2), (40, 3)] + ([(100, 30)] if NIGHTLY else []):
        for function in ("solve", "inverse"):
            for dtype in ("f64", "f32", "complex128", "complex64") if n == 5 or NIGHTLY else ("f64",):
                yield f"{function} {dtype} {n}", lambda m, s, f=function, t=dtype, n=n, k=k: solve_case(m, f, t, n, k, s)
    some = ("", "u", "t", "ut", "r", "ru", "rt", "rut", "i", "ui")
    for letters in some if NIGHTLY else ("", "ut", "rt", "rui"):
        for n, dtype in ((7, "f64"), (40, "f64"), (7, "complex128")):
            yield (f"triangular_{letters} {dtype} {n}",
                   lambda m, s, f=f"triangular_{letters}", t=dtype, n=n: triangular_case(m, f, t, n, 5, s))
    for function in numpy_functions():
        for dtype in ("f64", "f32", "complex128", "complex64") if NIGHTLY else ("f64", "complex128"):
            if dtype in PARTS and function == "determinant":
                continue  # rounded products: test/unit/compose
            yield f"{function} {dtype}", lambda m, s, f=function, t=dtype: numpy_case(m, f, t, s)
    for function, dtype in (("fft", "complex128"), ("rfft", "f64")) + ((("fft", "complex64"), ("rfft", "f32")) if NIGHTLY else ()):
        yield f"{function} {dtype}", lambda m, s, f=function, t=dtype: fft_case(m, f, t, s)
    for function in GRADIENTS:
        for dtype in ("f64", "complex128"):
            yield f"gradient {function} {dtype}", lambda m, s, f=function, t=dtype: gradient_case(m, f, t, s)
    for function in ("cholesky", "lu_factor", "qr", "eigh", "svd", "expm"):
        yield f"vmap {function}", lambda m, s, f=function: vmap_case(m, f)
    for function in ("cholesky", "lu_factor", "qr", "eigh", "svd"):
        yield f"parts {function}", lambda m, s, f=function: parts_case(m, f, s)
    yield "failures", lambda m, s: failures_case(m, s)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--build", type=Path, default=Path("build"))
    p.add_argument("--only", default="", help="a regular expression; of all cases, also of those of the night")
    p.add_argument("--machines", default="cpu:x86-64-v3,cpu:x86-64-v4" + (",cuda:sm_90,emu:cuda:sm_90" if NIGHTLY else ""))
    args = p.parse_args()
    passed = failed = 0
    for name, run in cases():
        if not (re.search(args.only, name) if args.only else NIGHTLY or name in DAILY):
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = iter(range(99))

            def make(*a, **k):
                sub = Path(folder) / str(next(made))
                sub.mkdir()
                return Machines(args.build, sub, *a, **k)

            try:
                said = run(make, args.machines)
                passed += 1
                print(f"ok   {name}: {said}", flush=True)
            except Failure as e:
                failed += 1
                print(f"FAIL {name}: {e}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
