"""Kernels of Triton's: the adapter, its interpreter and compiled code give the same bytes, near those of NumPy."""

import inspect
import os
import re
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
from triton_kernels import CASES, drawn, uniforms
from wrong_triton_kernels import WRONG

import astra
import astra.kernel.triton as triton
import astra.kernel.triton.language as tl
from astra.kernel.triton import _pointers
from astra.kernel.triton._builtins import BUILTINS


RUN = Path(__file__).resolve().parents[3] / "build" / "bin" / "astra-run"


def copied(x):
    """A copy of the same strides, of arrays and lists of them."""
    if isinstance(x, list):
        return [copied(i) for i in x]
    if not isinstance(x, np.ndarray):
        return x
    span = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.strides)) // x.itemsize
    row = np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,)).copy()
    return np.lib.stride_tricks.as_strided(row, x.shape, x.strides)


def launched(f, grid, args, named, run):
    """What arguments are after a launch: those that are arrays, in order."""
    given = copied(args)
    run(f, grid, given, named)
    return [x for a in given for x in (a if isinstance(a, list) else [a]) if isinstance(x, np.ndarray)]


def emitted(f, grid, args, named):
    return f[grid](*args, **named)


def interpreted(f, grid, args, named):
    return triton.interpret(f, *args, grid=grid, **named)


def tensors(x):
    """Arrays as tensors, whose elements are what lies in memory."""
    if isinstance(x, list):
        return [tensors(i) for i in x]
    if not isinstance(x, np.ndarray):
        return x
    span = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.strides)) // x.itemsize
    return astra.asarray(np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,)))


def arrays(x):
    return [t.numpy() for t in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize("name", CASES)
def test_the_adapter_the_interpreter_and_compiled_code_agree(name):
    f, grid, args, named, expected, tolerance = CASES[name]
    before = [copied(x) for a in args for x in (a if isinstance(a, list) else [a]) if isinstance(x, np.ndarray)]
    ours, slow = (launched(f, grid, args, named, run) for run in (emitted, interpreted))
    assert [x.tobytes() for x in ours] == [x.tobytes() for x in slow]
    stored = [x for x, old in zip(ours, before) if x.tobytes() != old.tobytes()]
    assert len(stored) == len(expected)
    for x, y in zip(stored, expected):
        np.testing.assert_allclose(x.astype(np.float64), y.reshape(x.shape), rtol=tolerance, atol=tolerance)
    given = tensors(list(args))
    compiled = astra.jit(lambda: f[grid](*given, **named))()
    assert [x.tobytes() for x in arrays(compiled)] == [x.tobytes() for x in stored]


@pytest.mark.parametrize("seed", range(100 if os.environ.get("ASTRA_NIGHTLY") else 6))
def test_launches_that_are_drawn(seed):
    for f, grid, args, named in drawn(seed):
        ours, slow = (launched(f, grid, args, named, run) for run in (emitted, interpreted))
        assert [x.tobytes() for x in ours] == [x.tobytes() for x in slow], (f, grid, args[2:], named)


def launch_wrong(f, run):
    x, index = np.zeros(1000, np.float32), np.zeros(1000, np.int32)
    run(f, (4,), [x, np.zeros(1000, np.float32), np.zeros(8, np.int32), index, np.zeros(4, np.int64)], {})


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row[0].__name__)
def test_wrong_kernels_are_refused_with_their_line(row):
    f, sentence, at = row
    with pytest.raises(astra.KernelError) as caught:
        launch_wrong(f, emitted)
    found = re.fullmatch(r"(.*):(\d+):(\d+): error: (.*)\n    (.*)\n    ( *)\^", str(caught.value))
    assert found is not None, str(caught.value)
    file, line, column, said, shown, spaces = found.groups()
    assert said == sentence.format(line=line)
    assert file == inspect.getsourcefile(f.fn)
    lines, first = inspect.getsourcelines(f.fn)
    assert [first + i for i, text in enumerate(lines) if "# here" in text] == [int(line)]
    assert shown[int(column) - 1 :].startswith(at) and len(spaces) == int(column) - 1


# ---- what is launched, and what a launch gives


@triton.jit
def plus_one(x_ptr, out_ptr, rows, columns, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    places = tl.program_id(0) * stride + at
    tl.store(out_ptr + places, tl.load(x_ptr + places, mask=at < columns) + 1, mask=at < columns)


def test_elements_that_are_not_stored_keep_their_values():
    x = np.arange(60, dtype=np.float32).reshape(6, 10)
    for columns, rows in ((10, 6), (7, 6), (10, 4), (7, 4)):
        expected = np.full((6, 10), -1, np.float32)
        expected[:rows, :columns] = x[:rows, :columns] + 1
        for run in (emitted, interpreted):
            out = np.full((6, 10), -1, np.float32)
            run(plus_one, (rows,), [x, out, rows, columns, 10], {"BLOCK": 16})
            assert out.tolist() == expected.tolist()
        given = plus_one[(rows,)](astra.asarray(x), astra.spec((6, 10)), rows, columns, 10, BLOCK=16)
        assert given.tolist() == np.where(expected == -1, 0, expected).tolist()


def test_an_argument_may_be_loaded_and_stored():
    for run in (emitted, interpreted):
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        run(plus_one, (4,), [x, x, 4, 6, 6], {"BLOCK": 8})  # two arguments of one array: what is read is what it was
        assert x.tolist() == (np.arange(24).reshape(4, 6) + 1).tolist()

    @triton.jit
    def doubled(x_ptr, BLOCK: tl.constexpr):
        p = x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(p, tl.load(p) * 2)

    x = np.arange(12, dtype=np.int32)
    assert doubled[(3,)](astra.asarray(x), BLOCK=4).tolist() == (x * 2).tolist()
    triton.interpret(doubled, x, grid=3, BLOCK=4)
    assert x.tolist() == [2 * i for i in range(12)]


@triton.jit
def counted(x_ptr, counts_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(counts_ptr + x, 1, mask=(x >= 0) & (x < 5))


def test_atomics_add_to_what_is_there():
    x = np.array([0, 3, 3, 4, 9, 0, -1, 3], np.int32)
    for run in (emitted, interpreted):
        counts = np.full(5, 100, np.int32)
        run(counted, (2,), [x, counts], {"BLOCK": 4})
        assert counts.tolist() == [102, 100, 100, 103, 101]


@triton.jit
def halves(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    left, right = tl.split(tl.reshape(tl.load(x_ptr + tl.program_id(0) * width + tl.arange(0, BLOCK)), (BLOCK // 2, 2)))
    at = out_ptr + tl.program_id(0) * width + tl.arange(0, BLOCK // 2)
    tl.store(at, left)
    tl.store(at + BLOCK // 2, right)


def test_stores_that_follow_each_other_are_one():
    x, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    halves[(4,)](x, out, 8, BLOCK=8)
    assert out.tolist() == np.concatenate([x[:, ::2], x[:, 1::2]], axis=1).tolist()


@triton.jit
def transposed(x_desc, out_ptr, rows, columns, SIZE: tl.constexpr):
    i, j = tl.program_id(0) * SIZE, tl.program_id(1) * SIZE
    out = tl.make_tensor_descriptor(out_ptr, shape=[columns, rows], strides=[rows, 1], block_shape=[SIZE, SIZE])
    out.store([j, i], x_desc.load([i, j]).T)


def test_descriptors_of_the_host_and_of_the_kernel():
    x = np.arange(77, dtype=np.float32).reshape(7, 11)
    for run in (emitted, interpreted):
        out = np.zeros((11, 7), np.float32)
        run(transposed, (2, 3), [triton.TensorDescriptor.from_tensor(x, [4, 4]), out, 7, 11], {"SIZE": 4})
        assert out.tolist() == x.T.tolist()


@triton.heuristics({"EVEN": lambda given: given["count"] % given["BLOCK"] == 0})
@triton.jit
def filled(out_ptr, count, value, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + at, value)
    else:
        tl.store(out_ptr + at, value, mask=at < count)


def test_decorators_give_arguments():
    hooked = []
    configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 8}, num_warps=2, pre_hook=lambda given: hooked.append(given["BLOCK"]))]
    few = lambda configs, given, **_: [c for c in configs if c.kwargs["BLOCK"] < 64]  # noqa: E731
    tuned = triton.autotune(configs, key=["count"], prune_configs_by={"early_config_prune": few})(filled)
    for count in (16, 13):
        out = np.zeros(count, np.float32)
        tuned[lambda meta, count=count: (triton.cdiv(count, meta["BLOCK"]),)](out, count, 2.5)
        assert out.tolist() == [2.5] * count
    assert hooked == [8, 8]


@pytest.mark.parametrize("seed", [0, 123, (1 << 40) + 17])
def test_random_bits_are_those_of_philox(seed):
    @triton.jit
    def drawn(out_ptr, seed, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.rand(seed, at))

    out = np.zeros(64, np.float32)
    drawn[(1,)](out, seed, BLOCK=64)
    assert out.tobytes() == uniforms(seed, 64).tobytes()


def test_tensors_of_pytorch_and_kernels_of_its_triton():
    torch = pytest.importorskip("torch")
    x, out = torch.arange(24.0).reshape(4, 6), torch.zeros(4, 8)[:, :6]
    plus_one[(4,)](x.reshape(-1), x.reshape(-1), 4, 6, 6, BLOCK=8)
    assert x.tolist() == (torch.arange(24.0).reshape(4, 6) + 1).tolist()
    softmax = CASES["02 softmax, rows apart"][0]
    softmax[(4,)](out, x, out.stride(0), x.stride(0), 6, BLOCK=8)
    assert torch.allclose(out, torch.softmax(x, 1))
    real = pytest.importorskip("triton")
    language = pytest.importorskip("triton.language")
    namespace = {"tl": language}
    made = types.FunctionType(plus_one.fn.__code__, namespace, "plus_one")
    taken = triton.jit(real.jit(made))
    taken[(4,)](x, x, 4, 6, 6, BLOCK=8)
    assert x.tolist() == (torch.arange(24.0).reshape(4, 6) + 2).tolist()


@pytest.mark.parametrize("name", ["01 vector add", "02 softmax", "03 product", "06 attention, causal", "09 persistent product"])
def test_kernels_are_compiled_for_gpus(name):
    f, grid, args, named, _, _ = CASES[name]
    given = tensors(list(args))
    lowered = astra.trace(lambda: f[grid](*given, **named)).lower()
    assert lowered.compile("cuda:sm_90,hip:gfx942") is not None


@pytest.mark.skipif(not os.environ.get("ASTRA_NIGHTLY") or not RUN.exists(), reason="ASTRA_NIGHTLY is not set, or there is no astra-run")
@pytest.mark.parametrize("gpu", ["cuda:sm_90", "hip:gfx942"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_on_gpus_that_are_emulated(name, gpu, tmp_path):
    f, grid, args, named, _, _ = CASES[name]
    given = tensors(copied(list(args)))
    traced = astra.trace(lambda: f[grid](*given, **named))
    program = traced.lower().compile(f"cpu:x86-64-v3,{gpu},emu:{gpu}")
    program.save(tmp_path / "kernel.astra")
    names = [o.name for o in astra.load(tmp_path / "kernel.astra")["main"].outputs]
    made = []
    for where in (["--level=x86-64-v3"], [f"--emulate={gpu}", "--seed=3"]):
        outputs = [f"--output={n}={tmp_path / n}.npy" for n in names]
        subprocess.run([RUN, tmp_path / "kernel.astra", *where, *outputs], check=True, stdout=subprocess.DEVNULL)
        made.append([(tmp_path / f"{n}.npy").read_bytes() for n in names])
    assert made[0] == made[1]


def test_accesses_that_are_sums_of_axes_and_strides_are_blocks(monkeypatch):
    """Of the kernels here all are, but rows that wrap around where no tile divides them."""
    missed = []
    found = _pointers.block

    def spied(*args):
        result = found(*args)
        missed.append(name) if result is None else None
        return result

    monkeypatch.setattr(_pointers, "block", spied)
    for name, (f, grid, args, named, _, _) in CASES.items():  # noqa: B007
        f[grid](*tensors(list(args)), **named)
    assert {name for name in missed} == {"03 product", "03 product, transposed", "09 persistent product", "09 persistent product of few blocks"}


def test_launches_that_are_wrong():
    x = np.zeros(8, np.float32)
    for launch, sentence in (
        (lambda: plus_one(x, x, 1, 8, 8, BLOCK=8), "is launched with a grid"),
        (lambda: plus_one[(1,)](x, x, 1, 8, BLOCK=8), "missing a required argument: 'stride'"),
        (lambda: plus_one[(1,)](x, x, 1, 8, 8, BLOCK=8, SIZE=3), "unexpected keyword argument 'SIZE'"),
        (lambda: plus_one[(0,)](x, x, 1, 8, 8, BLOCK=8), "extent 0 of the grid is 0; 1 is the least"),
        (lambda: plus_one[(1, 1, 1, 1)](x, x, 1, 8, 8, BLOCK=8), "a grid has one to three axes, not 4"),
        (lambda: plus_one[(1,)](x[::-1], x, 1, 8, 8, BLOCK=8), "negative"),
        (lambda: plus_one[(1,)](x[:0], x, 1, 8, 8, BLOCK=8), "'x_ptr' has no elements"),
        (lambda: plus_one[(1,)](x, {}, 1, 8, 8, BLOCK=8), "'out_ptr' is a dict"),
        (lambda: tl.load(x), "tl.load is called in a kernel"),
        (lambda: triton.jit(3), "stands above a function"),
    ):
        with pytest.raises(astra.ArgumentError, match=re.escape(sentence)):
            launch()


PAGE = Path(__file__).resolve().parents[3] / "docs" / "kernels-triton.md"


def test_the_page_lists_the_functions():
    """ASTRA_UPDATE_DOCS=1 writes the list."""
    begin, end = "<!-- functions -->\n", "<!-- end of functions -->"
    first, rest = PAGE.read_text().split(begin)
    _, last = rest.split(end)
    wanted = first + begin + functions() + end + last
    if os.environ.get("ASTRA_UPDATE_DOCS"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted


def functions():
    """The names of tl that are not refused, twelve a line."""
    names = [f"`{name}`" for name in sorted(BUILTINS) if BUILTINS[name].there]
    return "".join(", ".join(names[i : i + 12]) + ("," if i + 12 < len(names) else ".") + "\n" for i in range(0, len(names), 12)) + "\n"


@triton.jit
def by_the_greatest(x_ptr, table_ptr, out_ptr, low_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    k = tl.argmax(tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK)), axis=0)
    tl.store(out_ptr + row, tl.load(table_ptr + k, mask=k < n, other=0.0))
    low = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK)).to(tl.int32) & 3
    tl.store(low_ptr + row * BLOCK + tl.arange(0, BLOCK), tl.load(table_ptr + low))


def test_an_index_of_argmax_is_known_by_its_bounds():
    x = np.array([[1, 9, 2, 3], [8, 7, 6, 5]], np.float32)
    table = np.array([10, 20, 30, 40], np.float32)
    for n in (4, 1):
        out, low = by_the_greatest[(2,)](x, table, astra.spec((2,)), astra.spec((2, 4)), n, BLOCK=4)
        assert out.tolist() == [20 if n == 4 else 0, 10] and low.tolist() == table[x.astype(int) & 3].tolist()
    with pytest.raises(astra.KernelError, match="is not shown to stay within its 3 elements"):
        by_the_greatest[(2,)](x, table[:3], astra.spec((2,)), astra.spec((2, 4)), 3, BLOCK=4)
