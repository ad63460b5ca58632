"""Several stores into one output: apart, or one over the other in the order of statements; evaluator, interpreter and compiled code give the same bytes."""

import numpy as np
import pytest

import astra

kernel = astra.kernel
X = np.arange(1, 25, dtype=np.float32)


@astra.kernel
def halves(x, out, *, B):
    p = kernel.program_id(0) * 2 * B
    kernel.store(out, (p,), kernel.load(x, (p,), (B,)))
    kernel.store(out, (p + B,), kernel.load(x, (p + B,), (B,)) * 2.0)


@astra.kernel
def far_apart(x, out, *, B):
    p = kernel.program_id(0) * B
    n = x.shape[0]
    t = kernel.load(x, (p,), (B,))
    kernel.store(out, (p,), t)
    kernel.store(out, (n + p,), t * 2.0)
    kernel.store(out, (p,), t * 3.0)  # over the first


@astra.kernel
def overwritten(x, out, *, B):
    p = kernel.program_id(0) * B
    t = kernel.load(x, (p,), (B,))
    kernel.store(out, (p,), t)
    kernel.store(out, (p + 1,), t[:2] * 100.0)


@astra.kernel
def interleaved(x, out, *, B):
    p = kernel.program_id(0) * B
    t = kernel.load(x, (p,), (B,))
    kernel.store(out[::2], (p,), t)
    kernel.store(out[1::2], (p,), t * 2.0)


@astra.kernel
def after_each_other(x, out, *, B):
    p = kernel.program_id(0) * B
    t = kernel.load(x, (p,), (B,))
    kernel.store(out[:20], (p,), t, drop=True)  # the last block ends here, not in the second view
    kernel.store(out[20:44], (p,), t * 2.0)


@astra.kernel
def in_a_loop(x, out, *, B):
    p = kernel.program_id(0)
    for k in range(3):
        t = kernel.load(x, (p, k * B), (1, B))
        kernel.store(out, (p, 2 * k * B), t)
        kernel.store(out, (p, 2 * k * B + B), t * 2.0)


@astra.kernel
def counted_twice(x, out, *, B):
    t = kernel.load(x, (kernel.program_id(0) * B,), (B,))
    kernel.atomic_add(out, (t,), 1, drop=True)
    kernel.atomic_add(out, (t + 1,), 10, drop=True)


OVER = np.array([1, 100, 200, 4, 5, 500, 600, 8, 9, 900, 1000, 12, 13, 1300, 1400, 16, 17, 1700, 1800, 20, 21, 2100, 2200, 24], np.float32)
LOOPED = np.concatenate([X.reshape(2, 3, 1, 4), 2 * X.reshape(2, 3, 1, 4)], axis=2).reshape(2, 24)
NUMBERS = X.astype(np.int32) % 7
COUNTS = np.bincount(NUMBERS, minlength=8) + 10 * np.bincount(NUMBERS + 1, minlength=8)
CASES = {
    "halves": (halves, X, {"out": astra.spec((24,)), "grid": 3}, (X.reshape(3, 2, 4) * np.array([1, 2], np.float32)[:, None]).reshape(-1)),
    "far apart": (far_apart, X, {"out": astra.spec((48,)), "grid": 6}, np.concatenate([3 * X, 2 * X])),
    "overwritten": (overwritten, X, {"out": astra.spec((24,)), "grid": 6}, OVER),
    "interleaved": (interleaved, X, {"out": astra.spec((48,)), "grid": 6}, np.stack([X, 2 * X], 1).reshape(-1)),
    "after each other": (after_each_other, X, {"out": astra.spec((45,)), "grid": 6}, np.concatenate([X[:20], 2 * X, np.zeros(1, np.float32)])),
    "in a loop": (in_a_loop, X.reshape(2, 12), {"out": astra.spec((2, 24)), "grid": 2}, LOOPED),
    "atomics": (counted_twice, NUMBERS, {"out": astra.spec((8,), "int32"), "grid": 6}, COUNTS),
}


@pytest.mark.parametrize("name", CASES)
def test_several_stores(name):
    f, x, given, expected = CASES[name]
    call = lambda x: f(x, **given, B=4)  # noqa: E731
    found = call(x)
    assert found.tolist() == expected.tolist()
    assert found.tobytes() == kernel.interpret(f, x, **given, B=4).tobytes() == astra.jit(call)(x).tobytes()


def test_blocks_that_follow_each_other_are_one_store():
    f, x, given, _ = CASES["halves"]
    lowered = astra.trace(lambda x: f(x, **given, B=4), astra.spec(x.shape)).lower()
    assert sum(line.strip().startswith("launch") for line in lowered.as_text("schedule").splitlines()) == 1


@astra.kernel
def both_ends(x, out, *, A, B, C):
    p = kernel.program_id(0)
    kernel.store(out, (p * A,), kernel.load(x, (0,), (4,)))
    kernel.store(out, (C - p * B,), kernel.load(x, (4,), (3,)))


def test_what_is_refused_races_and_what_races_is_refused():
    """Drawn places of two stores, beside the interpreter, which looks at every element."""
    rng = np.random.default_rng(9)
    races = 0
    for _ in range(120):
        given = {"out": astra.spec((64,)), "grid": int(rng.integers(1, 6)), "A": int(rng.integers(3, 9)), "B": int(rng.integers(2, 8)), "C": int(rng.integers(30, 60))}
        found = []
        for run in (lambda: kernel.interpret(both_ends, X, **given), lambda: both_ends(X, **given)):
            try:
                found.append(run().tobytes())
            except astra.KernelError as error:
                assert "race" in str(error) or "outside" in str(error)
                found.append(b"")
        assert found[0] == found[1], given
        races += not found[0]
    assert 20 <= races <= 100


@kernel.function
def rows_stored(x, o, n):
    for i in range(n):
        kernel.store(o, (i * 4,), kernel.load(x, (i * 4,), (4,)))


@astra.kernel
def never_stored(x, out, *, N):
    o = out[4:]
    if N:
        kernel.store(o, (0,), kernel.load(x, (0,), (4,)))
    while N:
        kernel.store(o, (0,), kernel.load(x, (0,), (4,)))
    for _ in range(N):
        kernel.store(o, (0,), kernel.load(x, (0,), (4,)))


@astra.kernel
def never_stored_by_a_helper(x, out, *, N):
    rows_stored(x, out, N)


@pytest.mark.parametrize("f", [never_stored, never_stored_by_a_helper])
def test_what_statements_that_never_run_would_store_stays_0(f):
    given = {"out": astra.spec((24,)), "grid": 1, "N": 0}
    assert f(X, **given).tobytes() == kernel.interpret(f, X, **given).tobytes() == bytes(96)


k = 0


@astra.kernel
def counts_before_it_begins(x, out):
    while k < 6:
        k += 1
    kernel.store(out, (0,), kernel.load(x, (0,), (4,)))


def test_a_name_that_is_assigned_is_not_looked_up_outside():
    for run in (counts_before_it_begins, lambda *a, **b: kernel.interpret(counts_before_it_begins, *a, **b)):
        with pytest.raises(astra.KernelError, match="'k' is used before it has a value"):
            run(X, out=astra.spec((4,)), grid=1)
