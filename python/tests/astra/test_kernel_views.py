"""Views of arguments: evaluator, interpreter and compiled code give the same bytes, those of NumPy; operands that are views are read in place."""

import numpy as np
import pytest

import astra

kernel = astra.kernel


@astra.kernel
def transposed(x, out, *, B):
    i, j = kernel.program_id(0), kernel.program_id(1)
    kernel.store(out.T, (i * B, j * B), kernel.load(x, (i * B, j * B), (B, B), fill=0.0), drop=True)


@astra.kernel
def evens_to_odds(x, out, *, B):
    i = kernel.program_id(0)
    kernel.store(out[1::2], (i * B,), kernel.load(x[::2], (i * B,), (B,), fill=0.0), drop=True)


@astra.kernel
def inside(x, out, *, B):
    i, j = kernel.program_id(0), kernel.program_id(1)
    t = kernel.load(x.T[::-1, 1:-1], (i * B, j * B), (B, B), fill=5.0)
    kernel.store(out[2, 1:-1, None, 2:], (i * B, 0, j * B), t[:, None, :], drop=True)


@astra.kernel
def thirds_of_both(x, out, *, B):
    i, j = kernel.program_id(0), kernel.program_id(1)
    view = kernel.permute(out[:, 1::3, 2::4], (2, 0, 1))
    t = kernel.load(kernel.permute(x, (2, 0, 1))[::4, :, ::3], (i * B, 0, j * B), (B, x.shape[0], B), fill=0.0)
    kernel.store(view, (i * B, 0, j * B), t, drop=True)


@astra.kernel
def with_bias(x, b, out, *, B):
    i = kernel.program_id(0)
    w = kernel.broadcast(b[:, None], x.shape)
    kernel.store(out, (i * B, 0), kernel.load(x, (i * B, 0), (B, x.shape[1])) + kernel.load(w, (i * B, 0), (B, x.shape[1])))


@astra.kernel
def gathered(x, at, out, *, B):
    i = kernel.load(at, (kernel.program_id(0) * B,), (B,))
    kernel.store(out, (kernel.program_id(0) * B,), kernel.gather(x.T[1::2], (i, i), fill=-1.0))


@astra.kernel
def loops(x, out, *, B):
    column = kernel.program_id(0)
    for k in range(x.shape[0] // B):
        t = kernel.load(x.T, (column, k * B), (1, B))
        kernel.store(out.T[:, ::2], (column, k * B), t)


def odds(v, n):
    out = np.zeros(n, np.float32)
    out[1::2] = v[::2][: n // 2]
    return out


X = np.arange(20 * 33, dtype=np.float32).reshape(20, 33)
V = np.arange(37, dtype=np.float32)
CUBE = np.arange(3 * 19 * 22, dtype=np.float32).reshape(3, 19, 22)
BOX = np.zeros((4, 35, 20), np.float32)
BOX[2, 1:-1, 2:] = X.T[::-1, 1:-1]
SPREAD = np.zeros((3, 20, 24), np.float32)
SPREAD[:, 1:20:3, 2:24:4] = CUBE[:, ::3, ::4]
LOOPED = np.zeros((40, 33), np.float32)
LOOPED[::2] = X
AT = np.array([0, 3, 7, 40, -1, 15, 9, 2], np.int64)
PICKED = np.array([X.T[1::2][i, i] if 0 <= i < 16 else -1 for i in AT], np.float32)
CASES = {
    "transposed": (transposed, (X,), {"out": astra.spec((33, 20)), "grid": (3, 5), "B": 8}, X.T),
    "odd": (evens_to_odds, (V,), {"out": astra.spec((37,)), "grid": 5, "B": 4}, odds(V, 37)),
    "even": (evens_to_odds, (V,), {"out": astra.spec((38,)), "grid": 5, "B": 4}, odds(V, 38)),
    "inside": (inside, (X,), {"out": astra.spec((4, 35, 20)), "grid": (5, 3), "B": 8}, BOX),
    "thirds": (thirds_of_both, (CUBE,), {"out": astra.spec((3, 20, 24)), "grid": (2, 2), "B": 4}, SPREAD),
    "bias": (with_bias, (X, V[:20]), {"out": astra.spec((20, 33)), "grid": 5, "B": 4}, X + V[:20, None]),
    "gathered": (gathered, (X, AT), {"out": astra.spec((8,)), "grid": 2, "B": 4}, PICKED),
    "loops": (loops, (X,), {"out": astra.spec((40, 33)), "grid": 33, "B": 4}, LOOPED),
}


@pytest.mark.parametrize("name", CASES)
def test_views(name):
    f, inputs, given, expected = CASES[name]
    found = f(*inputs, **given)
    assert found.numpy().tolist() == expected.tolist()
    assert found.tobytes() == kernel.interpret(f, *inputs, **given).tobytes()
    assert found.tobytes() == astra.jit(lambda *xs: f(*xs, **given))(*inputs).tobytes()


def test_sizes_with_bounds():
    n = astra.dim("n", 8, 64)
    f = lambda x: evens_to_odds(x, out=astra.spec((x.shape[0],)), grid=astra.ceildiv(x.shape[0], 8), B=4)  # noqa: E731
    program = astra.trace(f, astra.spec((n,))).lower().compile("native")
    for size in (8, 9, 31, 64):
        v = np.arange(size, dtype=np.float32)
        assert program(v).tolist() == odds(v, size).tolist()


@astra.kernel
def added(x, y, out, *, B):
    at = (kernel.program_id(0) * B, 0)
    kernel.store(out, at, kernel.load(x, at, (B, 6), fill=0.0) + kernel.load(y, at, (B, 6), fill=0.0), drop=True)


OPERANDS = {
    "transposed": (lambda x: astra.permute_dims(x, (1, 0)), (6, 9)),
    "in steps": (lambda x: x[1::2, ::3], (18, 16)),
    "reversed": (lambda x: x[::-1], (9, 6)),
    "broadcast": (lambda x: astra.broadcast_to(x, (9, 6)), (1, 6)),
    "reshaped": (lambda x: astra.reshape(x, (9, 6)), (54,)),
    "a part": (lambda x: x[2:11, 1:7], (12, 8)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_an_operand_that_is_a_view_is_read_in_place(name):
    view, shape = OPERANDS[name]
    x, y = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.arange(54, dtype=np.float32).reshape(9, 6) * 100
    f = lambda x, y: added(view(x), y, out=astra.spec((9, 6)), grid=3, B=4)  # noqa: E731
    lowered = astra.trace(f, astra.spec(shape), astra.spec((9, 6))).lower()
    assert lowered.compile("native")(x, y).tolist() == (view(astra.asarray(x)).numpy() + y).tolist()
    plan = lowered.as_text("schedule").splitlines()
    assert sum(line.strip().startswith("launch") for line in plan) == 1 and not any(line.strip().startswith("copy") for line in plan)


def test_derivatives_and_batches_of_operands_that_are_views():
    each = astra.jit(astra.vmap(lambda x, y: added(astra.permute_dims(x, (1, 0)), y, out=astra.spec((9, 6)), grid=3, B=4)))
    xs, ys = np.arange(2 * 54, dtype=np.float32).reshape(2, 6, 9), np.ones((2, 9, 6), np.float32)
    assert each(xs, ys).tolist() == (xs.transpose(0, 2, 1) + ys).tolist()


# ---- batches of kernels that scatter


@astra.kernel
def counted(x, w, out, counts, *, B):
    i = kernel.program_id(0) * B
    t = kernel.load(x, (i,), (B,), fill=-1)
    kernel.atomic_add(counts, (t,), 1, drop=True)
    kernel.scatter(out, (t // 2, t % 2), kernel.load(w, (i,), (B,), fill=0.0), mode="add", drop=True)


@astra.kernel
def reordered(at, x, out, *, B):
    i = kernel.load(at, (kernel.program_id(0) * B,), (B,))
    kernel.scatter(out, ((kernel.program_id(0) * B + kernel.arange(B)) % 8,), kernel.load(x, (kernel.program_id(0) * B,), (B,)) + kernel.cast(i, astra.float32))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_batch_of_a_kernel_that_scatters(dtype):
    rng = np.random.default_rng(5)
    xs = rng.integers(-2, 8, (3, 50)).astype(np.int32)
    ws = astra.asarray(rng.standard_normal((3, 50)).astype(np.float32)).astype(dtype)
    given = {"out": astra.spec((3, 2), dtype), "counts": astra.spec((6,), "int32"), "grid": 4, "B": 16}
    for axes in ((0, 0), (0, None), (None, 0)):
        picked = lambda b: (xs[b] if axes[0] == 0 else xs[0], ws[b] if axes[1] == 0 else ws[0])  # noqa: E731
        each = astra.vmap(lambda x, w: counted(x, w, **given), in_axes=axes)
        args = (xs if axes[0] == 0 else xs[0], ws if axes[1] == 0 else ws[0])
        for found in (each(*args), astra.jit(each)(*args)):
            for b in range(3):
                one = kernel.interpret(counted, *picked(b), **given)
                assert all(r[b].tobytes() == e.tobytes() for r, e in zip(found, one))


def test_a_batch_of_a_kernel_that_writes_each_element_once():
    at, x = np.arange(8, dtype=np.int64), np.ones(8, np.float32)
    xs = np.stack([x, 2 * x])
    f = lambda x: reordered(at, x, out=astra.spec((8,)), grid=2, B=4)  # noqa: E731
    each = astra.vmap(f)(xs)
    assert each.tolist() == [f(x).tolist() for x in xs] == astra.jit(astra.vmap(f))(xs).tolist()
