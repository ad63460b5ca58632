"""Kernels: the interpreter, the node of the graph and compiled code give the same bytes, near those of NumPy; they are parts of functions that are
compiled, differentiated and batched."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tutorial_kernels
from tutorial_kernels import CASES

import astra

kernel = astra.kernel
PAGE = Path(__file__).resolve().parents[3] / "docs" / "kernels.md"
RUN = PAGE.parents[1] / "build" / "bin" / "astra-run"


@pytest.mark.parametrize("name", CASES)
def test_tutorials(name):
    f, inputs, given, expected = CASES[name]
    result = f(*inputs, **given)
    assert result.tobytes() == kernel.interpret(f, *inputs, **given).tobytes()
    np.testing.assert_allclose(result.numpy(), expected, rtol=2e-5, atol=2e-5)


def compiled(f, inputs, given):
    """What the compiled kernel gives."""
    return astra.jit(lambda *xs: f(*xs, **given))(*inputs)


def test_loops_as_long_as_counters_say():
    x, given = np.linspace(-2, 2, 8, dtype=np.float32), {"out": astra.spec((5, 4)), "grid": 5}
    assert triangles(x, **given).tobytes() == kernel.interpret(triangles, x, **given).tobytes() == compiled(triangles, (x,), given).tobytes()
    given = {"out": astra.spec((4,)), "grid": 1}
    assert steps(x, **given).tobytes() == kernel.interpret(steps, x, **given).tobytes() == compiled(steps, (x,), given).tobytes()


def test_a_kernel_that_is_not_compiled_is_refused_with_its_line():
    x, given = np.ones(8, np.float32), {"out": astra.spec((64,)), "grid": 8}
    assert uneven(x, **given).tobytes() == kernel.interpret(uneven, x, **given).tobytes()
    line = uneven.source.tree.lineno + 3
    sentence = rf"test_kernels.py:{line}: custom: a store in a loop of a kernel, of whose steps each program decides the number, is not compiled yet; the evaluator runs it"
    with pytest.raises(astra.Error, match=sentence):
        compiled(uneven, (x,), given)


def test_long_tiles_are_sorted():
    x = np.random.default_rng(4).integers(-50, 50, 300).astype(np.float32)
    given = {"out": astra.spec((2, 300)), "out0": astra.spec((2, 300), "int64"), "grid": 2}
    assert all_bytes(compiled(sorted_both, (x,), given)) == all_bytes(sorted_both(x, **given))


@pytest.mark.skipif(not RUN.exists(), reason="there is no astra-run")
def test_a_kernel_whose_lanes_would_go_along_two_axes_has_a_thread_a_program(tmp_path):
    lowered = lambda n: astra.trace(lambda x: two_ways(x, out=astra.spec((n, n)), grid=1, N=n), astra.spec((2 * n, n))).lower()  # noqa: E731
    lowered(17).compile("cpu:x86-64-v3,cuda:sm_90,emu:cuda:sm_90").save(tmp_path / "kernel.astra")
    np.save(tmp_path / "x.npy", np.random.default_rng(6).standard_normal((34, 17), dtype=np.float32))
    bundle = astra.load(tmp_path / "kernel.astra")["main"]
    made = []
    for where in ("--level=x86-64-v3", "--emulate=cuda:sm_90"):
        words = [RUN, tmp_path / "kernel.astra", where, f"--input={bundle.inputs[0].name}={tmp_path / 'x.npy'}", f"--output={bundle.outputs[0].name}={tmp_path / 'y.npy'}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        made.append((tmp_path / "y.npy").read_bytes())
    assert made[0] == made[1]
    with pytest.raises(astra.Error, match="its arrays take 17536 bytes of each thread; at most 16384 have a GPU form"):
        lowered(33).compile("hip:gfx942")


@astra.kernel
def sorted_product(x, out, *, N):
    t = kernel.load(x, (0, 0), (N, N))
    kernel.store(out, (0, 0), kernel.dot(kernel.sort(t, 0), kernel.sort(t, 1)))


@pytest.mark.parametrize("target", ["cuda:sm_90", "hip:gfx942"])
def test_a_kernel_that_is_too_long_for_a_gpu_is_refused(target):
    lowered = astra.trace(lambda x: sorted_product(x, out=astra.spec((64, 64)), grid=1, N=64), astra.spec((64, 64))).lower()
    with pytest.raises(astra.Error, match=rf"kernel 'k0_custom' is \d+ instructions for {target}; the most are 32768: sort, or fold, smaller tiles"):
        lowered.compile(target)


@pytest.mark.skipif(not RUN.exists(), reason="there is no astra-run")
def test_a_long_loop_with_an_array_of_a_thread_is_not_written_out(tmp_path):
    """It was, a turn after the other: 49,322 lines, for which ptxas took more than ten minutes."""
    x = np.random.default_rng(7).standard_normal((20, 20), dtype=np.float32)
    lowered = astra.trace(lambda x: sorted_product(x, out=astra.spec((20, 20)), grid=1, N=20), astra.spec((20, 20))).lower()
    assert lowered.as_text("ptx", target="cuda:sm_90").count("\n") < 5000
    compiled = lowered.compile("cuda:sm_90,emu:cuda:sm_90")
    compiled.save(tmp_path / "kernel.astra")
    signature = compiled._signatures["main"]
    np.save(tmp_path / "x.npy", x)
    words = [RUN, tmp_path / "kernel.astra", "--emulate=cuda:sm_90", f"--input={signature.inputs[0][0]}={tmp_path / 'x.npy'}", f"--output={signature.outputs[0][0]}={tmp_path / 'y.npy'}"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert np.load(tmp_path / "y.npy").tobytes() == kernel.interpret(sorted_product, x, out=astra.spec((20, 20)), grid=1, N=20).tobytes()


@pytest.mark.parametrize("name", CASES)
def test_compiled_tutorials(name):
    f, inputs, given, _ = CASES[name]
    assert all_bytes(compiled(f, inputs, given)) == all_bytes(f(*inputs, **given))


def test_sizes_with_bounds():
    n = astra.dim("n", 1, 100)

    def plus(x, y):
        size = x.shape[0]
        return tutorial_kernels.add(x, y, out=astra.spec((size,)), grid=astra.ceildiv(size, 16), BLOCK=16)

    program = astra.trace(plus, astra.spec((n,)), astra.spec((n,))).lower().compile("native")
    for size in (1, 15, 16, 17, 100):
        x = np.arange(size, dtype=np.float32)
        assert program(x, x).tolist() == (x + x).tolist()


def test_loops_whose_length_is_a_dim():
    n = astra.dim("n", 1, 64)
    sums = lambda x: long_sum(x, out=astra.spec((3,)), grid=3, BLOCK=4)  # noqa: E731
    program = astra.trace(sums, astra.spec((3, n))).lower()
    x = np.arange(3 * 37, dtype=np.float32).reshape(3, 37)
    assert sums(x).tolist() == x.sum(1).tolist()
    assert program.compile("native")(x).tobytes() == sums(x).tobytes()


def test_a_call_inside_of_other_functions():
    f, (x, y), given, _ = CASES["add"]
    twice = astra.jit(lambda x, y: astra.sin(f(f(x, y, **given), y, **given)))
    assert twice(x, y).tobytes() == astra.sin(astra.asarray(x + y) + y).tobytes()


def test_batches():
    f, (x, y), given, _ = CASES["add"]
    xs = np.stack([x, x + 1, x + 2])
    each = astra.vmap(lambda a: f(a, y, **given))(xs)
    assert each.shape == (3, 1000) and all(each[i].tobytes() == f(xs[i], y, **given).tobytes() for i in range(3))


@astra.kernel
def squares(x, out, *, BLOCK=4):
    t = kernel.load(x, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    kernel.store(out, (kernel.program_id(0) * BLOCK,), t * t)


@astra.kernel
def squares_with_a_derivative(x, out, *, BLOCK=4):
    t = kernel.load(x, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    kernel.store(out, (kernel.program_id(0) * BLOCK,), t * t)


squares_with_a_derivative.defvjp(lambda x, **call: (squares_with_a_derivative(x, **call), x), lambda x, g: (2.0 * x * g,))


def test_declared_derivatives_are_those_of_the_function():
    call = {"out": astra.spec((8,)), "grid": 2}
    rng = np.random.default_rng(3)
    for _ in range(100):
        x = rng.standard_normal(8, dtype=np.float32)
        got = astra.grad(lambda x: squares_with_a_derivative(x, **call).sum())(x)
        assert got.tobytes() == astra.grad(lambda x: (x * x).sum())(x).tobytes()
    assert squares_with_a_derivative(x, **call).tobytes() == (astra.asarray(x) * x).tobytes()


def test_a_kernel_without_a_derivative_is_not_differentiated():
    with pytest.raises(astra.Error, match="derivative"):
        astra.grad(lambda x: squares(x, out=astra.spec((8,)), grid=2).sum())(np.ones(8, np.float32))


@astra.kernel
def collatz(x, out):
    n = kernel.load(x, (kernel.program_id(0),), (1,))
    steps = kernel.zeros((1,), astra.int64)
    while kernel.any(n != 1):
        n = kernel.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps = steps + 1
    if kernel.any(steps > 5):
        result = steps * 10
    else:
        result = steps
    kernel.store(out, (kernel.program_id(0),), result)


@astra.kernel
def branch_on_a_program_id(x, out, *, BLOCK):
    i = kernel.program_id(0)
    t = kernel.zeros((BLOCK,))
    if i > 0:
        t = kernel.load(x, ((i - 1) * BLOCK,), (BLOCK,))
    kernel.store(out, (i * BLOCK,), t)


@astra.kernel
def sorted_rows(x, out, best, places, *, K):
    row = kernel.program_id(0)
    t = kernel.load(x, (row, 0), (1, x.shape[1]))
    kernel.store(out, (row, 0), kernel.sort(t))
    values, indices = kernel.topk(t, K)
    kernel.store(best, (row, 0), values)
    kernel.store(places, (row, 0), indices)


@astra.kernel
def looked_up(table, index, out, *, BLOCK):
    i = kernel.load(index, (kernel.program_id(0) * BLOCK,), (BLOCK,))
    kernel.assume((i >= 0) & (i < table.shape[0]))
    columns = kernel.arange(table.shape[1])
    kernel.store(out, (kernel.program_id(0) * BLOCK, 0), kernel.gather(table, (i[:, None], columns[None, :])))


@astra.kernel
def reversed_by_scatter(x, out, *, BLOCK):
    i = kernel.program_id(0) * BLOCK + kernel.arange(BLOCK)
    kernel.scatter(out, (x.shape[0] - 1 - i,), kernel.gather(x, (i,), fill=0.0), drop=True)


@astra.kernel
def ordered_sum(x, index, out, *, BLOCK):
    at = kernel.program_id(0) * BLOCK
    kernel.scatter(out, (kernel.load(index, (at,), (BLOCK,)),), kernel.load(x, (at,), (BLOCK,)), mode="add", drop=True)


@astra.kernel.function
def swish(t, beta=1.0):
    """x times its sigmoid."""
    scaled = beta * t
    return t * kernel.sigmoid(scaled)


@astra.kernel
def with_a_helper(x, out):
    kernel.store(out, (0,), swish(kernel.load(x, (0,), (8,)), beta=2.0))


@astra.kernel
def everything_on_shapes(x, out):
    t = kernel.load(x, (0,), (8,))
    a, b = kernel.split(t, 2)
    m = kernel.join((kernel.reshape(a, (2, 2)), kernel.reshape(b, (2, 2))), axis=1)
    m = kernel.permute(m, (1, 0)) @ kernel.broadcast(kernel.full((1, 2), 0.5), (2, 2))
    kernel.store(out, (0,), kernel.reshape(kernel.cumsum(m, axis=1), (8,)) + kernel.slice(t, (0,), (8,)))


@astra.kernel
def narrow_types(x, out):
    t = kernel.cast(kernel.load(x, (0,), (8,)), astra.float32)
    kernel.store(out, (0,), kernel.cast(kernel.exp(t) * 0.125, out.dtype))


@astra.kernel
def long_loop(x, out, *, BLOCK):
    row, first = kernel.program_id(0), 0.5
    count = 0
    for k in range(x.shape[1] // BLOCK - 1, -1, -1):
        t = kernel.load(x, (row, k * BLOCK), (1, BLOCK)) + first
        first = kernel.sum(t)
        count += 1
    for k in range(x.shape[1] // BLOCK):
        kernel.store(out, (row, k * BLOCK), kernel.load(x, (row, k * BLOCK - 1), (1, BLOCK), fill=0.0) + first + kernel.cast(count, astra.float32))


@astra.kernel
def long_sum(x, out, *, BLOCK):
    row = kernel.program_id(0)
    total = kernel.zeros((1, BLOCK))
    for k in range(astra.ceildiv(x.shape[1], BLOCK)):
        total += kernel.load(x, (row, k * BLOCK), (1, BLOCK), fill=0.0)
    kernel.store(out, (row,), kernel.sum(total, axis=1))


@astra.kernel
def turned_softmax(x, out):
    t = kernel.load(x, (0, 0), (16, 16))
    e = kernel.exp(kernel.dot(t, t) - kernel.max(t, axis=1, keepdims=True))
    kernel.store(out, (0, 0), (e / kernel.sum(e, axis=1, keepdims=True)).T)


@astra.kernel
def sums_both_ways(x, out):
    t = kernel.cumsum(kernel.cumsum(kernel.load(x, (0, 0), (16, 16)), axis=0), axis=1)
    kernel.store(out, (0, 0), t / kernel.sum(kernel.cumprod(t, axis=0), axis=1, keepdims=True))


@astra.kernel
def triangles(x, out):
    p = kernel.program_id(0)
    acc = kernel.zeros((4,))
    for i in range(p + 1):
        for j in range(i + 1):
            acc = acc * 0.5 + kernel.load(x, (j,), (4,), fill=1.0)
        for j in range(i, p):
            acc += kernel.cast(j, astra.float32)
    kernel.store(out, (p, 0), acc[None])


@astra.kernel
def steps(x, out):
    acc = kernel.zeros((4,))
    for i in range(20):
        for j in range(i // 4):
            acc = acc + kernel.load(x, (j,), (4,), fill=1.0)
    kernel.store(out, (0,), acc)


@astra.kernel
def uneven(x, out):
    i = kernel.program_id(0)
    t = kernel.load(x, (i,), (1,))
    for k in range(i):
        kernel.store(out, (i * 8 + k,), t * 2.0)


@astra.kernel
def sorted_both(x, out, out0):
    i = kernel.program_id(0)
    t = kernel.load(x, (0,), (300,))[None]
    kernel.store(out, (i, 0), kernel.sort(t, axis=1))
    kernel.store(out0, (i, 0), kernel.argsort(t, axis=1, descending=True))


@astra.kernel
def two_ways(x, out, *, N):
    a, b = kernel.load(x, (0, 0), (N, N)), kernel.load(x, (N, 0), (N, N)).T
    scaled = b / (1.0 + kernel.abs(kernel.sum(a, axis=0, keepdims=True)))
    product = kernel.dot(scaled, kernel.sort(b, axis=1)) * 0.01
    t = (a - kernel.max(b, axis=0, keepdims=True)).T / (1.0 + kernel.abs(kernel.sum(product, axis=0, keepdims=True)))
    kernel.store(out, (0, 0), t)


def small_cases():
    x = np.linspace(-2, 2, 8, dtype=np.float32)
    yield "while and if", collatz, (np.arange(1, 9),), {"out": astra.spec((8,), "int64"), "grid": 8}
    yield "if on a program id", branch_on_a_program_id, (x,), {"out": astra.spec((8,)), "grid": 2, "BLOCK": 4}
    m = np.random.default_rng(5).standard_normal((4, 16), dtype=np.float32)
    outputs = {"out": astra.spec((4, 16)), "best": astra.spec((4, 3)), "places": astra.spec((4, 3), "int64")}
    yield "sort and topk", sorted_rows, (m,), {**outputs, "grid": 4, "K": 3}
    yield "gather", looked_up, (m, np.array([3, 0, 0, 2, 1, 3])), {"out": astra.spec((6, 16)), "grid": 2, "BLOCK": 3}
    yield "scatter", reversed_by_scatter, (x,), {"out": astra.spec((8,)), "grid": 3, "BLOCK": 3}
    yield "ordered sum of floats", ordered_sum, (x, np.array([1, 1, 0, 9, 1, -1, 0, 1])), {"out": astra.spec((3,)), "grid": 2, "BLOCK": 4}
    wide = np.random.default_rng(6).standard_normal((3, 160), dtype=np.float32)
    yield "short loop", long_loop, (wide,), {"out": astra.spec((3, 160)), "grid": 3, "BLOCK": 40}
    yield "long sum", long_sum, (wide,), {"out": astra.spec((3,)), "grid": 3, "BLOCK": 3}
    yield "long loop", long_loop, (wide,), {"out": astra.spec((3, 160)), "grid": 3, "BLOCK": 4}
    wider = np.random.default_rng(6).standard_normal((2, 800), dtype=np.float32)
    yield "very long loop", long_loop, (wider,), {"out": astra.spec((2, 800)), "grid": 2, "BLOCK": 2}
    square = np.random.default_rng(7).random((16, 16), dtype=np.float32)
    yield "rows divided by their sums, turned", turned_softmax, (square,), {"out": astra.spec((16, 16)), "grid": 1}
    yield "sums along both axes", sums_both_ways, (square,), {"out": astra.spec((16, 16)), "grid": 1}
    yield "helper", with_a_helper, (x,), {"out": astra.spec((8,)), "grid": 1}
    yield "shapes", everything_on_shapes, (x,), {"out": astra.spec((8,)), "grid": 1}
    for t in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "float64"):
        yield f"to {t}", narrow_types, (x,), {"out": astra.spec((8,), t), "grid": 1}
        yield f"from {t}", narrow_types, (astra.astype(x, t),), {"out": astra.spec((8,)), "grid": 1}


SMALL = {name: row for name, *row in small_cases()}


def all_bytes(result):
    return [t.tobytes() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", SMALL)
def test_the_interpreter_and_the_graph_give_the_same_bytes(name):
    f, inputs, given = SMALL[name]
    assert all_bytes(f(*inputs, **given)) == all_bytes(kernel.interpret(f, *inputs, **given))


@pytest.mark.parametrize("name", SMALL)
def test_compiled_code_gives_them_too(name):
    f, inputs, given = SMALL[name]
    assert all_bytes(compiled(f, inputs, given)) == all_bytes(f(*inputs, **given))


def test_values():
    def of(name):
        f, inputs, given = SMALL[name]
        return f(*inputs, **given)

    assert of("while and if").tolist() == [0, 1, 70, 2, 5, 80, 160, 3]
    assert of("if on a program id").tolist() == [0, 0, 0, 0, *SMALL["scatter"][1][0][:4].tolist()]
    assert of("scatter").tolist() == SMALL["scatter"][1][0][::-1].tolist()
    m, index = SMALL["gather"][1]
    assert of("gather").tolist() == m[index].tolist()
    assert of("sort and topk")[0].tolist() == np.sort(m).tolist()
    assert of("sort and topk")[2].tolist() == np.argsort(-m)[:, :3].tolist()


@astra.kernel
def talking(x, out):
    t = kernel.load(x, (kernel.program_id(0) * 2,), (2,))
    print("program", kernel.program_id(0), t)
    breakpoint()
    kernel.store(out, (kernel.program_id(0) * 2,), t)


def test_the_interpreter_prints_and_stops(capsys):
    stops = []
    x = np.array([1, 2, 3, 4], np.float32)
    result = kernel.interpret(talking, x, out=astra.spec((4,)), grid=2, on_breakpoint=stops.append)
    assert result.tolist() == [1, 2, 3, 4]
    assert capsys.readouterr().out == "program 0 Tensor([1., 2.], dtype=float32)\nprogram 1 Tensor([3., 4.], dtype=float32)\n"
    assert [s["program"] for s in stops] == [(0,), (1,)] and stops[1]["t"].tolist() == [3, 4] and stops[0]["line"] > 0
    assert talking(x, out=astra.spec((4,)), grid=2).tolist() == [1, 2, 3, 4]
    assert capsys.readouterr().out == ""


def test_the_interpreter_checks_what_is_assumed_and_asserted():
    with pytest.raises(astra.KernelError, match=r"program \(1,\): what is assumed does not hold at \(0,\)"):
        f, (table, index), given = SMALL["gather"]
        kernel.interpret(f, table, np.array([0, 1, 2, 9, 0, 0]), **given)

    @astra.kernel
    def positive(x, out):
        t = kernel.load(x, (kernel.program_id(0),), (1,))
        assert kernel.all(t > 0.0), "numbers are positive"
        kernel.store(out, (kernel.program_id(0),), t)

    with pytest.raises(astra.KernelError, match=r"program \(2,\): the assertion does not hold: numbers are positive"):
        kernel.interpret(positive, np.array([1, 2, -3], np.float32), out=astra.spec((3,)), grid=3)


def table():
    """The primitives as the page shows them: a table for each group."""
    lines = []
    for group in kernel.groups:
        lines += [f"| {group} | types | meaning |", "|---|---|---|"]
        rows = [(name, p) for name, p in kernel.primitives.items() if p.group == group and name == p.name]
        lines += [f"| `{name}{p.signature}` | {p.types} | {p.meaning} |" for name, p in rows] + [""]
    return "\n".join(lines)


def test_the_page_has_the_table_of_primitives():
    """ASTRA_UPDATE_DOCS=1 writes it."""
    begin, end = "<!-- primitives -->\n", "<!-- end of primitives -->"
    text = PAGE.read_text()
    first, rest = text.split(begin)
    _, last = rest.split(end)
    wanted = first + begin + table() + end + last
    if os.environ.get("ASTRA_UPDATE_DOCS"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted


@astra.kernel
def rows_of_any_length(x, w, out, *, SHIFT=0.0):
    row, n = kernel.program_id(0), x.shape[1]
    t = kernel.load(x, (row, 0), (1, n))
    pairs = kernel.reshape(kernel.load(w, (0,), (n,)), (1, n)) * t
    most = kernel.broadcast(kernel.max(t, axis=1, keepdims=True), (1, n))
    both = kernel.dot(pairs, kernel.reshape(t, (n, 1)))
    kernel.store(out, (row, 0), (t - most) * both / n + SHIFT)


def test_a_tile_may_be_as_long_as_a_size():
    rows, n = astra.dim("rows", 1, 9), astra.dim("n", 1, 100)

    def f(x, w):
        return rows_of_any_length(x, w, out=astra.spec(x.shape), grid=x.shape[0])

    program = astra.trace(f, astra.spec((rows, n)), astra.spec((n,))).lower().compile("native")
    for shape in ((1, 1), (3, 70), (9, 100)):
        x, w = tutorial_kernels.normal(*shape), tutorial_kernels.normal(shape[1])
        wanted = kernel.interpret(rows_of_any_length, x, w, out=astra.spec(shape), grid=shape[0])
        assert program(x, w).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("least, sentence", [(0, "sizes that are 1 at least; n may be 0"), (1, "16777216 are the most")])
def test_sizes_of_tiles_have_bounds(least, sentence):
    n = astra.dim("n", least, 1 << 25)
    with pytest.raises(astra.KernelError, match=sentence):
        astra.trace(lambda x, w: rows_of_any_length(x, w, out=astra.spec(x.shape), grid=x.shape[0]), astra.spec((4, n)), astra.spec((n,)))
