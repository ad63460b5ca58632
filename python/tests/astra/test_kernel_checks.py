"""What kernels assume and assert: tested by the interpreter, by the evaluator, and by compiled code that is asked to (check=True)."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import astra

kernel = astra.kernel
RUN = Path(__file__).resolve().parents[3] / "build/bin/astra-run"
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@astra.kernel.function
def above(t, least):
    assert kernel.all(t > least), "far below"  # in a helper
    return t


@astra.kernel
def looked_up(table, index, out, *, BLOCK):
    i = kernel.load(index, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    kernel.assume((i >= 0) & (i < table.shape[0]))  # of an index
    columns = kernel.arange(table.shape[1])
    kernel.store(out, (kernel.program_id(0) * BLOCK, 0), kernel.gather(table, (i[:, None], columns[None, :])))


@astra.kernel
def looped(x, out, *, K):
    acc = kernel.zeros((1, 1, 4))
    for k in range(K):
        t = above(kernel.load(x, (kernel.program_id(0), kernel.program_id(1), k * 4), (1, 1, 4)), -100.0)
        assert kernel.all(t < 1000.0), "too large"  # in a loop
        acc = acc + t
    kernel.store(out, (kernel.program_id(0), kernel.program_id(1), 0), acc)


@astra.kernel
def branched(x, out, *, BLOCK=4):
    p = kernel.program_id(0)
    t = kernel.load(x, (p * BLOCK,), (BLOCK,))
    if p > 1:
        assert kernel.all(t >= 0.0)  # in a branch
        r = t * 2.0
    else:
        r = t
    kernel.store(out, (p * BLOCK,), r)


@astra.kernel
def narrow(x, out, *, BLOCK=4):
    t = kernel.load(x, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    kernel.assume(kernel.abs(t) < 400.0)  # of eight bits
    kernel.store(out, (kernel.program_id(0) * BLOCK,), kernel.cast(t, out.dtype))


@astra.kernel
def counted(x, out, *, BLOCK=4):
    t = kernel.load(x, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    assert kernel.all(t < 8), "no bin"  # before atomics
    kernel.atomic_add(out, (t,), 1, drop=True)


TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)
LONG = np.arange(6 * 160, dtype=np.float32).reshape(2, 3, 160) / 2
ONES = np.ones(16, np.float32)
CASES = {  # a kernel, good arguments, what is changed in the last of them, the marked line, the program
    "index": (looked_up, (TABLE, np.array([0, 4, 2, 3], np.int32)), (3, 5), "of an index", (1,), {"out": astra.spec((4, 4)), "grid": 2, "BLOCK": 2}),
    "below": (looked_up, (TABLE, np.array([0, 4, 2, 3], np.int32)), (0, -1), "of an index", (0,), {"out": astra.spec((4, 4)), "grid": 2, "BLOCK": 2}),
    "loop": (looped, (LONG,), ((1, 2, 77), 2000), "in a loop", (1, 2), {"out": astra.spec((2, 3, 4)), "grid": (2, 3), "K": 40}),
    "helper": (looped, (LONG,), ((0, 1, 10), -200), "in a helper", (0, 1), {"out": astra.spec((2, 3, 4)), "grid": (2, 3), "K": 40}),
    "short loop": (looped, (LONG,), ((1, 0, 10), -200), "in a helper", (1, 0), {"out": astra.spec((2, 3, 4)), "grid": (2, 3), "K": 5}),
    "branch": (branched, (ONES,), (14, -1), "in a branch", (3,), {"out": astra.spec((16,)), "grid": 4}),
    "eight bits": (narrow, (ONES,), (9, 500), "of eight bits", (2,), {"out": astra.spec((16,), "float8_e4m3fn"), "grid": 4}),
    "atomics": (counted, (np.arange(8, dtype=np.int32),), (5, 8), "before atomics", (1,), {"out": astra.spec((8,), "int32"), "grid": 2}),
}


def bits(x):
    return x.tobytes()


def sentence(mark, program):
    line = next(i + 1 for i, text in enumerate(LINES) if text.endswith(f"# {mark}"))
    return line, f"program ({', '.join(map(str, program))}"


@pytest.mark.parametrize("name", CASES)
def test_a_test_that_fails_refuses_the_call(name):
    f, good, (at, value), mark, program, given = CASES[name]
    bad = (*good[:-1], good[-1].copy())
    bad[-1][at] = value
    line, ids = sentence(mark, program)
    call = lambda *xs: f(*xs, **given)  # noqa: E731
    plain, checked = astra.jit(call), astra.jit(call, check=True)
    expected = bits(kernel.interpret(f, *good, **given))
    assert bits(f(*good, **given)) == bits(plain(*good)) == bits(checked(*good)) == expected
    plain(*bad)  # tests nothing: what it gives is not said
    for refused in (lambda: kernel.interpret(f, *bad, **given), lambda: bits(f(*bad, **given)), lambda: checked(*bad)):
        with pytest.raises(astra.Error) as caught:
            refused()
        assert f"test_kernel_checks.py:{line}" in str(caught.value) and ids in str(caught.value), str(caught.value)
    assert bits(checked(*good)) == expected


def test_the_first_program_in_the_order_of_the_grid_is_named():
    f, (x,), _, _, _, given = CASES["loop"]
    bad = x.copy()
    bad[1, 0, 3], bad[0, 2, 50], bad[0, 2, 7] = 5000, 5000, -500
    with pytest.raises(astra.Error, match=r"far below: program \(0, 2\)"):
        astra.jit(lambda x: f(x, **given), check=True)(bad)


@astra.kernel
def rows(x, out):
    t = kernel.load(x, (kernel.program_id(0), 0), (1, 4))
    assert kernel.all(t < 9.0), "too large"
    kernel.store(out, (kernel.program_id(0), 0), t * 2.0)


def test_a_grid_of_a_size():
    doubled = lambda x: rows(x, out=astra.spec(x.shape), grid=(x.shape[0], 1))  # noqa: E731
    program = astra.trace(doubled, astra.spec((astra.dim("n", 1, 40), 4))).lower().compile("native", check=True)
    for size in (1, 2, 40):
        x = np.ones((size, 4), np.float32)
        assert bits(program(x)) == bits(x * 2)
        x[size - 1, 2] = 10
        with pytest.raises(astra.Error, match=rf"too large: program \({size - 1}, 0\)"):
            program(x)


def test_a_batch():
    f, (x,), _, _, _, given = CASES["branch"]
    xs = np.stack([x, x + 1, x + 2])
    each = astra.jit(astra.vmap(lambda x: f(x, **given)), check=True)
    assert all(bits(r) == bits(f(x, **given)) for r, x in zip(each(xs), xs))
    xs[1, 9] = -3
    with pytest.raises(astra.Error, match=r"program \(1, 2\)"):
        each(xs)


def test_on_an_emulated_gpu(tmp_path):
    """A bundle for a GPU, emulated, and the same for this CPU, by astra-run."""
    tool = RUN
    if not tool.exists():
        pytest.skip("astra-run is not built")
    f, (x,), _, mark, program, given = CASES["branch"]
    lowered = astra.trace(lambda x: f(x, **given), astra.spec((16,))).lower()
    bundle = tmp_path / "checked.astra"
    lowered.compile(["native", "cuda:sm_80", "emu:cuda:sm_80"], check=True).save(bundle)
    bad = x.copy()
    bad[14] = -1
    np.save(tmp_path / "good.npy", x)
    np.save(tmp_path / "bad.npy", bad)
    line, ids = sentence(mark, program)
    name = lowered.module.inputs("main")[0][0]
    for device in ([], ["--emulate=cuda:sm_80"]):
        ran = [subprocess.run([tool, str(bundle), *device, f"--input={name}={tmp_path / part}.npy"], capture_output=True, text=True) for part in ("good", "bad")]
        assert ran[0].returncode == 0, ran[0].stderr
        assert ran[1].returncode != 0 and f"test_kernel_checks.py:{line}" in ran[1].stderr and ids in ran[1].stderr, ran[1].stderr
