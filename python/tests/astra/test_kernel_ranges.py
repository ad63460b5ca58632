"""Indices that are computed: what is shown of them holds, and a witness is one.

Kernels with drawn expressions of an integer that is read are written into a file. One that is not refused finds nothing outside, whatever it reads; one that is
refused with a witness finds what the witness says when it reads that; else the sentence says that it could not be shown.
"""

import importlib.util
import os
import re

import numpy as np
import pytest

import astra

kernel = astra.kernel
COUNT = 1500 if os.environ.get("ASTRA_NIGHTLY") else 100
EXTREMES = [0, 1, -1, 2, 3, 5, 7, 8, 63, 64, 100, -100, 2**31 - 1, -(2**31)]
HEAD = """import astra
kernel = astra.kernel

"""
BODY = """@astra.kernel
def drawn_{n}(table, ints, floats, out):
    i = kernel.load(ints, (kernel.program_id(0) * 4,), (4,))
    j = kernel.arange(4)
    k = kernel.cast(kernel.argmax(kernel.load(floats, (kernel.program_id(0) * 4,), (4,)), keepdims=True), astra.int32)
    kernel.store(out, (kernel.program_id(0) * 4,), kernel.gather(table, ({e} + kernel.zeros((4,), astra.int32),)))

"""


def draw(rng, depth=0):
    """An expression of i (read), j (0 .. 3), k (of argmax) and numbers, as text."""
    kind = rng.integers(0, 12) if depth < 3 else 0
    one = lambda: draw(rng, depth + 1)  # noqa: E731
    number = int(rng.integers(1, 9))
    if kind <= 1:
        return str(rng.choice(["i", "i", "j", "k", f"(j * 0 + {number})"])) if depth else f"(i & {number})"
    return {
        2: lambda: f"({one()} + {number})", 3: lambda: f"({one()} % {number})", 4: lambda: f"({one()} & {number})",
        5: lambda: f"kernel.clip({one()}, {-number}, {number})", 6: lambda: f"kernel.where({one()} < {number}, {one()}, {one()})",
        7: lambda: f"kernel.minimum({one()}, {one()})", 8: lambda: f"kernel.maximum({one()}, 0)", 9: lambda: f"({one()} // {number})",
        10: lambda: f"kernel.abs({one()})", 11: lambda: f"({one()} - {one()} % {number})",
    }[int(kind)]()  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    rng = np.random.default_rng(int(os.environ.get("ASTRA_RANDOM_SEED", "7")))
    path = tmp_path_factory.mktemp("drawn") / "drawn_kernels.py"
    texts = [f"kernel.maximum({draw(rng)}, 0)" if n % 2 else draw(rng) for n in range(COUNT)]
    path.write_text(HEAD + "".join(BODY.format(n=n, e=e) for n, e in enumerate(texts)))
    spec = importlib.util.spec_from_file_location("drawn_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"drawn_{n}") for n in range(COUNT)]


def outside(f, table, ints, floats):
    """Whether the interpreter finds an access outside."""
    try:
        kernel.interpret(f, table, ints, floats, out=astra.spec(ints.shape), grid=len(ints) // 4)
    except astra.KernelError as error:
        assert "is outside" in str(error), error
        return True
    return False


def test_what_is_shown_holds_and_a_witness_is_one(drawn):
    rng = np.random.default_rng(8)
    table = np.arange(6, dtype=np.float32)
    ints = np.array([*EXTREMES, *rng.integers(-20, 20, 26)], np.int32)
    floats = rng.standard_normal(len(ints), dtype=np.float32)
    found = {"shown": 0, "witness": 0, "not shown": 0}
    needless = []
    for f in drawn:
        try:
            f(table, ints, floats, out=astra.spec(ints.shape), grid=len(ints) // 4)
        except astra.KernelError as error:
            if "is not shown to stay inside" in str(error):
                found["not shown"] += 1
                if not outside(f, table, ints, floats):
                    needless.append(f.source.name)
                continue
            found["witness"] += 1
            value = re.search(r"a value that was read = (-?\d+)", str(error))
            read = np.full(4, int(value[1]) if value else 0, np.int32)
            assert outside(f, table, read, floats[:4]), error
            continue
        found["shown"] += 1
        assert not outside(f, table, ints, floats), f.source.name
    print(found, "refused though nothing is outside:", needless)
    assert found["shown"] >= 0.3 * COUNT and found["witness"] >= 0.1 * COUNT and len(needless) <= 0.1 * COUNT


@astra.kernel
def by_the_greatest(table, x, out):
    j = kernel.argmax(kernel.load(x, (kernel.program_id(0) * 8,), (8,)), keepdims=True)
    kernel.store(out, (kernel.program_id(0),), kernel.gather(table, (j,)))


def test_an_index_of_argmax_is_known_by_its_bounds():
    x, call = np.ones(16, np.float32), {"out": astra.spec((2,)), "grid": 2}
    assert by_the_greatest(x[:8], x, **call).tolist() == [1, 1]
    with pytest.raises(astra.KernelError, match="the gather from 'table' is not shown to stay inside along axis 0") as caught:
        by_the_greatest(x[:7], x, **call)
    assert "program (" not in str(caught.value) and "a value that was read" not in str(caught.value)


@astra.kernel
def read_twice(table, ints, out):
    i = kernel.load(ints, (kernel.program_id(0) * 4,), (4,))
    j = kernel.load(ints, (kernel.program_id(0) * 4,), (4,))
    kernel.store(out, (kernel.program_id(0) * 4,), kernel.gather(table, (i - j,)))


@astra.kernel
def turned(table, ints, out):
    i = kernel.load(ints, (kernel.program_id(0) * 4,), (4,))
    kernel.assume((i >= 0) & (i < 4))
    kernel.store(out, (kernel.program_id(0) * 4, 0), kernel.gather(table, (i[:, None] + i[None],)))


def test_elements_that_are_read_twice_are_the_same_and_others_are_not():
    table, ints, call = np.ones(7, np.float32), np.arange(8, dtype=np.int64), {"out": astra.spec((8,)), "grid": 2}
    assert read_twice(table[:1], ints, **call).tolist() == [1] * 8
    ints %= 4
    call = {"out": astra.spec((8, 4)), "grid": 2}
    assert turned(table, ints, **call).tolist() == np.ones((8, 4)).tolist()
    with pytest.raises(astra.KernelError, match=r"program \(0,\) where a value that was read = 3, a value that was read = 3: the gather from 'table' is outside: element 6 "):
        turned(table[:6], ints, **call)


@astra.kernel
def half_heard(table, ints, out):
    i = kernel.load(ints, (kernel.program_id(0) * 4,), (4,))
    kernel.assume(i + kernel.arange(4, astra.int64) < 9)
    kernel.assume(i >= 0)
    kernel.store(out, (kernel.program_id(0) * 4,), kernel.gather(table, (i,)))


def test_what_is_assumed_of_places_in_a_tile_is_no_witness_against_itself():
    with pytest.raises(astra.KernelError, match="is not shown to stay inside"):
        half_heard(np.ones(9, np.float32), np.zeros(4, np.int64), out=astra.spec((4,)), grid=1)


def test_grids_that_may_be_empty():
    n = astra.dim("n", 0, 60)

    @astra.kernel
    def halves(x, out, *, B):
        at = kernel.program_id(0) * B
        kernel.store(out, (at,), kernel.load(x, (at,), (B,), fill=0.0) * 0.5, drop=True)

    def some(x):
        return halves(x, out=astra.spec((x.shape[0],)), grid=astra.ceildiv(x.shape[0], 8), B=8)

    def few(x):  # an output that does not become empty with the grid
        return halves(x, out=astra.spec((8,)), grid=astra.ceildiv(x.shape[0], 60), B=8)

    program = [astra.trace(f, astra.spec((n,))).lower().compile("native") for f in (some, few)]
    for size in (0, 1, 8, 60):
        x = np.arange(size, dtype=np.float32)
        assert program[0](x).tolist() == some(x).tolist() == (x / 2).tolist()
        assert program[1](x).tolist() == few(x).tolist() == [x[i] / 2 if i < size else 0 for i in range(8)]
    with pytest.raises(astra.ArgumentError, match="extent 0 of the grid is -1; 0 is the least"):
        halves(x, out=astra.spec((8,)), grid=-1, B=8)
