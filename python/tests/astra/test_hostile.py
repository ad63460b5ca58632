"""Arguments that make no sense: every public function refuses them in one sentence that has its arguments, and never by a raw error."""

import inspect
import os
import random
import resource

import numpy as np
import pytest

import astra
from astra import _ops

ROUNDS = 40 if os.environ.get("ASTRA_NIGHTLY") else 4
X = np.ones((2, 3), np.float32)
HOSTILE = [None, "x", b"ab", object(), 1e30, 2**70, -1, 0, 3, 1.5, float("nan"), True, [], [[1], [2, 3]], (0, 0), (1, "a"), {}, {1}, slice(0, 1),
           np.array(["a"]), np.array([object()]), np.zeros((1,) * 40), "float32", astra.float32, lambda v: v]  # fmt: skip
TENSORS = [astra.asarray(v) for v in (X, np.float32(1), np.zeros((0,), np.float32), np.array([1, 2, 3]), np.array([True, False]), np.eye(2),
                                      np.ones((2, 2), np.complex64))] + [astra.asarray([1, 2]).astype("int4")]  # fmt: skip
PARTS = {"": (astra, [n for n in _ops.__all__ if n != "at"] + ["asarray", "dim", "hash", "promote", "spec", "tensor"])}
PARTS |= {m: (getattr(astra, m), getattr(astra, m).__all__) for m in ("fft", "linalg", "losses", "metrics", "random")}
FUNCTIONS = {f"{m}.{n}".lstrip("."): getattr(part, n) for m, (part, names) in PARTS.items() for n in names
             if callable(getattr(part, n)) and not isinstance(getattr(part, n), type)}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """What asks for very much is refused by the machine, not by its other programs."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def refused(name, call):
    """Whether a call is refused; it may not be refused by a raw error."""
    try:
        for t in astra.tree.leaves(call()):
            if isinstance(t, astra.Tensor) and t.size < 10**6:
                t.numpy()
        return False
    except astra.Error as error:
        assert str(error).strip(), name
        return True
    except (TypeError, ValueError, IndexError, OverflowError) as error:  # of the signature, or written in the package
        from astra._boundary import _is_meant

        assert _is_meant(error), f"{name}: {type(error).__name__}: {error}"
        assert str(error).strip(), name
        return True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_raw_error_comes_out(name):
    f = FUNCTIONS[name]
    parameters = list(inspect.signature(f).parameters.values())
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    least = sum(p.default is p.empty for p in by_place)
    draw = random.Random(name)  # text: the same in every process
    for _ in range(ROUNDS):
        count = draw.randint(least, max(least, min(len(by_place), least + 2)))
        args = [draw.choice(HOSTILE + TENSORS) for _ in range(count)]
        if args and draw.random() < 0.6:
            args[0] = draw.choice(TENSORS)
        named = {p.name: draw.choice(HOSTILE) for p in parameters if p.kind == p.KEYWORD_ONLY and draw.random() < 0.4}
        refused(f"{name}({args}, {named})", lambda args=args, named=named: f(*args, **named))


@pytest.mark.parametrize("call, sentence", [
    (lambda: astra.arange(0, 1e30), "arange"),
    (lambda: astra.sort(X, axis=None), r"sort\(x=.*, axis=None\)"),
    (lambda: astra.tensor(2**70), "tensor"),
    (lambda: astra.reshape(X, "a"), r"reshape\(x=ndarray float32\[2, 3\], shape='a'\)"),
    (lambda: astra.asarray(X).reshape("a"), "reshape"),
    (lambda: astra.concat(None), "concat"),
    (lambda: astra.argmax(np.zeros((0, 3)), axis=0), "an axis of extent 0 has no argmax"),
    (lambda: astra.argmin(np.zeros(0)), "an axis of extent 0 has no argmin"),
    (lambda: astra.jit(lambda x: astra.argmax(x, axis=0))(np.zeros((0, 3))), "an axis of extent 0 has no argmax"),
    (lambda: astra.random.key(2**64), r"the seed is 18446744073709551616; it must be in 0 .. 2\^64 - 1"),
    (lambda: astra.random.key(-1), "the seed is -1"),
    (lambda: astra.random.fold_in(astra.random.key(0), 2**32), "must be in 0 .."),
    (lambda: astra.nn.Linear(2, 2, seed=2**32), "the seed is 4294967296"),
    (lambda: astra.init.normal((2,), seed=-1), "the seed is -1"),
    (lambda: astra.data.order_of(2**32, 1, 4), "the seed is 4294967296"),
    (lambda: astra.data.Dataset(X).split(0.5, 0.5, seed="a"), "the seed is a str"),
    (lambda: astra.metrics.squared_error(X, np.ones(4, np.float32)), r"metric squared_error: a prediction f32\[2, 3\] needs a target"),
    (lambda: astra.metrics.squared_error(X, np.ones((2, 3), np.int64)), "squared_error"),
])  # fmt: skip
def test_sentences(call, sentence):
    with pytest.raises(astra.Error, match=sentence):
        call()


@pytest.mark.parametrize("name, content, sentence", [
    ("a.npz", b"PK\x03\x04 no zip", "no .npz file"),
    ("a.npz", b"", "no .npz file"),
    ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': 3}    ", "no .npy file"),
    ("a.npy", b"abc", "no .npy file"),
    ("a.csv", b"\xff\xfe\x00a", "UTF-8"),
    ("a.csv", b'a,b\n"1,2\n', "no text of cells"),
    ("a.csv", b"a,b\n1\n", "line 2: 1 cells"),
    ("a.csv", b"a,\n1,2\n", "column 1 has no name"),
    ("a.csv", b"a,b\n1,\n", "line 2, column 'b': '' is no number"),
    ("a.csv", b"", "is empty"),
    ("a.safetensors", b"abc", "no .safetensors file"),
])  # fmt: skip
def test_damaged_files(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(astra.Error, match=sentence):
        astra.data.load(tmp_path / name)


def test_headers_of_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,2020,nan\n1,2,3\n")
    assert {k: v.tolist() for k, v in astra.data.load(path).items()} == {"id": [1], "2020": [2], "nan": [3]}
    path.write_text("1,2\n3,4\n")
    assert astra.data.load(path)["0"].tolist() == [1, 3] and astra.data.load(path, header=True)["1"].tolist() == [3]
    path.write_text("a,b\n")
    with pytest.raises(astra.ArgumentError, match="line 1, column '0': 'a' is no number"):
        astra.data.load(path, header=False)


def test_errors_of_the_users_own_pass_through():
    class Odd:
        def __call__(self, x):
            raise KeyError("mine")

    for way in (astra.grad, astra.vmap, astra.jit, astra.checkpoint):
        with pytest.raises(KeyError, match="mine"):
            way(Odd())(X[0])


def test_einsum_of_complex_numbers():
    z = np.array([[1 + 2j, 3 - 1j], [0.5j, 2]], np.complex64)
    for equation, given in (("ij,jk->ik", (z, z)), ("ij->i", (z,)), ("ii", (z,)), ("ij,jk,kl->il", (z, z, X[:, :2])), ("i,j", (z[0], z[1]))):
        np.testing.assert_allclose(astra.einsum(equation, *given).numpy(), np.einsum(equation, *given), rtol=1e-6)
