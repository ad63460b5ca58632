"""Kernels that are as they should be: at most 2 % of them may be refused. Their number is what the tests and the page of kernels call with other kernels or
other sizes."""

import subprocess

import correct_kernels
import numpy as np
import pytest
import test_kernel_checks
import test_kernel_dtypes
import test_kernel_places
import test_kernel_stores
import test_kernel_views
import test_kernels
import tutorial_kernels

import astra
from astra import _core
from astra._evaluate import by_evaluator
from astra._tensor import call

kernel = astra.kernel
FEWEST = 100


def calls():
    """Kernels with what they are called with; the interpreter finds nothing wrong with any of them."""
    yield from correct_kernels.CASES.values()
    for f, inputs, given, _ in tutorial_kernels.CASES.values():
        yield f, inputs, given
    for f, inputs, given in test_kernels.SMALL.values():
        yield f, inputs, given
    for f, inputs, given, _ in test_kernel_views.CASES.values():
        yield f, inputs, given
    for f, x, given, _ in test_kernel_stores.CASES.values():
        yield f, (x,), {**given, "B": 4}
    for f, inputs, _, _, _, given in test_kernel_checks.CASES.values():
        yield f, inputs, given
    for dtype in ("float32", "bfloat16", "int8", "bool"):
        yield from test_kernel_dtypes.calls(dtype)
    rng = np.random.default_rng(11)
    for _ in range(80):
        f, x, given = test_kernel_places.draw(rng)
        yield f, (x,), given


def test_few_correct_kernels_are_refused():
    correct, refused = 0, []
    seen = set()
    for f, inputs, given in calls():
        try:
            kernel.interpret(f, *inputs, **given)
        except astra.KernelError:
            continue
        correct += 1
        seen.add(f.source.name)
        try:
            f(*inputs, **given)
        except astra.KernelError as error:
            refused.append(str(error))
    print(f"{len(refused)} of {correct} correct calls of {len(seen)} kernels are refused")
    assert correct >= FEWEST and len(seen) >= 40
    assert len(refused) <= 0.02 * correct, refused


def all_bytes(x):
    return [t.tobytes() for t in (x if isinstance(x, tuple) else (x,))]


NAMES = list(correct_kernels.CASES)


@pytest.mark.parametrize("names", [NAMES[i::6] for i in range(6)], ids=range(6))
def test_correct_kernels_have_the_same_bytes_interpreted_evaluated_and_compiled(names):
    """Some kernels a program: none of these is refused."""
    wanted = {}
    for name in names:
        f, inputs, given = correct_kernels.CASES[name]
        wanted[name] = all_bytes(kernel.interpret(f, *inputs, **given))
        assert all_bytes(f(*inputs, **given)) == wanted[name], name

    def program(*parts):
        return tuple(f(*xs, **given) for (f, _, given), xs in zip((correct_kernels.CASES[n] for n in names), parts))

    specs = [tuple(astra.spec(x.shape, str(x.dtype)) for x in correct_kernels.CASES[n][1]) for n in names]
    lowered = astra.trace(program, *specs).lower()
    assert call(_core.verify_programs, call(_core.parse_uop, lowered.as_text(), "kernels")) == []  # the text alone shows it
    made = lowered.compile("native")(*(correct_kernels.CASES[n][1] for n in names))
    for name, found in zip(names, made):
        assert all_bytes(found) == wanted[name], name


def test_there_are_enough_correct_kernels():
    assert len(NAMES) >= 60


# ---- bad input that a table of wrong kernels does not have


@astra.kernel
def collatz(x, out):
    n = kernel.load(x, (kernel.program_id(0),), (1,))
    while kernel.any(n != 1):  # the loop of collatz
        n = kernel.where(n % 2 == 0, n // 2, 3 * n + 1)
    kernel.store(out, (kernel.program_id(0),), n)


def test_a_kernel_that_does_not_end(monkeypatch):
    """0 is never 1: no step limit would be a call that never comes back."""
    for part in ("_graph", "_interpret"):
        monkeypatch.setattr(f"astra._kernel.{part}.MOST_STEPS", 200)
    call = {"out": astra.spec((3,), "int64"), "grid": 3}
    for run in (collatz, lambda *xs, **given: kernel.interpret(collatz, *xs, **given)):
        assert run(np.array([3, 7, 5]), **call).tolist() == [1, 1, 1]
        with pytest.raises(astra.Error, match="this `while` has not ended after 200 steps") as caught:
            run(np.array([3, 0, 5]), **call).tolist()
        line = next(i for i, text in enumerate(open(__file__, encoding="utf-8"), 1) if "# the loop of collatz" in text)
        assert "program (1" in str(caught.value) and f"test_kernel_correct.py:{line}" in str(caught.value)


def test_a_while_in_a_build_that_checks(monkeypatch):
    """Compiled, one that does not end is an error as well, whatever other programs do; its steps are the interpreter's."""
    monkeypatch.setattr("astra._kernel._graph.MOST_STEPS", 16)
    lowered = astra.trace(lambda x: collatz(x, out=astra.spec((3,), "int64"), grid=3), astra.spec((3,), "int64")).lower()
    program = lowered.compile("native", check=True)
    assert program(np.array([3, 7, 5])).tolist() == [1, 1, 1]  # 7 takes 16 steps
    for x, first in (([3, 0, 5], 1), ([9, 0, 5], 0)):  # 9 takes 19
        with pytest.raises(astra.Error, match=rf"test_kernel_correct.py:\d+: this `while` has not ended after 16 steps: program \({first}\)"):
            program(np.array(x))
    assert program(np.array([1, 2, 16])).tolist() == [1, 1, 1]


@astra.kernel
def sought(x, at, out):
    i, steps = kernel.load(at, (kernel.program_id(0),), (1,)), kernel.zeros((1,), "int64")
    while kernel.any(steps < 3):
        kernel.assume((i >= 0) & (i < x.shape[0]))
        i, steps = kernel.gather(x, (i,)), steps + 1
    kernel.store(out, (kernel.program_id(0),), i)


def test_what_a_while_assumes_is_tested():
    run = astra.jit(lambda x, at: sought(x, at, out=astra.spec((2,), "int64"), grid=2), check=True)
    assert run(np.array([1, 2, 3, 0]), np.array([0, 1])).tolist() == [3, 0]
    assert run(np.array([1, 2, 4, 0]), np.array([3, 0])).tolist() == [2, 4]  # what the last step finds is no place
    with pytest.raises(astra.Error, match=r"what is assumed does not hold: program \(1\)"):
        run(np.array([1, 2, 4, 0]), np.array([3, 1]))


def test_the_bits_of_a_product_by_tiles():
    """Tiles of chain512's blocks have the bits of `@`; smaller ones have others."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((16, 1100), dtype=np.float32), rng.standard_normal((1100, 16), dtype=np.float32)
    whole = (astra.asarray(a) @ astra.asarray(b)).tobytes()
    by = {k: by_tiles(a, b, out=astra.spec((16, 16)), grid=1, K=k).tobytes() for k in (16, 512, 2048)}
    assert by[512] == by[2048] == whole and by[16] != whole


@astra.kernel
def by_tiles(a, b, out, *, K):
    acc = kernel.zeros((16, 16))
    for k in range(astra.ceildiv(a.shape[1], K)):
        acc = kernel.dot(kernel.load(a, (0, k * K), (16, K), fill=0.0), kernel.load(b, (k * K, 0), (K, 16), fill=0.0), acc)
    kernel.store(out, (0, 0), acc)


@astra.kernel
def product(a, b, out):
    kernel.store(out, (0, 0), kernel.dot(kernel.load(a, (0, 0), (16, 16)), kernel.load(b, (0, 0), (16, 16))))


PAIRS = [("int8", "float16"), ("int16", "int16"), ("float16", "bfloat16"), ("float32", "float64"), ("bool", "bool"), ("float8_e4m3fn", "float8_e4m3fn"), ("uint8", "int16")]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: "-".join(p))
def test_a_dot_of_types_that_it_has_not(pair):
    a, b = (astra.astype(np.ones((16, 16), np.float32), t) for t in pair)
    for run in (product, lambda *xs, **given: kernel.interpret(product, *xs, **given)):
        with pytest.raises(astra.KernelError, match=r"error: (dot of|the (first|second) operand of dot is of)"):
            run(a, b, out=astra.spec((16, 16)), grid=1)


def test_a_contract_that_there_is_not():
    """Every target has every sub-contract, as its matrix unit or by arithmetic: what there is not is a unit of another name."""
    s = astra.spec((16, 16), "bfloat16")
    lowered = astra.trace(lambda a, b: product(a, b, out=astra.spec((16, 16)), grid=1), s, s).lower()
    with pytest.raises(astra.ArgumentError, match="there is no matrix unit 'hopper17'; there are hopper16, "):
        lowered.with_numerics("device:hopper17")


CONTRACT = """module @product {
  entry @main(%a : bf16[16, 16], %b : bf16[16, 16]) -> (%y : f32[16, 16]) {
    %x = cast %a : f32[16, 16]
    %w = cast %b : f32[16, 16]
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper16 bf16"
  }
}
"""


def test_a_dot_under_a_matrix_unit(tmp_path):
    """The bytes of a contract that names the unit, by the evaluator; and others than those of strict numerics."""
    s = astra.spec((16, 16), "bfloat16")
    strict = astra.trace(lambda a, b: product(a, b, out=astra.spec((16, 16)), grid=1), s, s).lower()
    rng = np.random.default_rng(1)
    a, b = (astra.astype(rng.standard_normal((16, 16), dtype=np.float32), "bfloat16") for _ in range(2))
    wanted = by_evaluator(_core.parse_uop(CONTRACT, "product.uop"), [a._realized(), b._realized()])[0].tobytes()
    modelled = strict.with_numerics("device:hopper16")
    assert modelled.compile("native")(a, b).tobytes() == wanted
    assert strict.compile("native")(a, b).tobytes() != wanted
    if not test_kernels.RUN.exists():
        return
    compiled = modelled.compile("native,cuda:sm_80,emu:cuda:sm_80")
    compiled.save(tmp_path / "product.astra")
    signature = compiled._signatures["main"]
    words = [test_kernels.RUN, tmp_path / "product.astra", "--emulate=cuda:sm_80", f"--output={signature.outputs[0][0]}={tmp_path / 'y.npy'}"]
    for (name, _), t in zip(signature.inputs, (a, b)):
        np.save(tmp_path / f"{name}.npy", np.frombuffer(t.tobytes(), np.uint16).reshape(16, 16))
        words.append(f"--input={name}={tmp_path / name}.npy")
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert np.load(tmp_path / "y.npy").tobytes() == wanted


def test_a_unit_that_has_no_plain_type():
    """A product of float32 under a unit of 8-bit floats stays strict; a type named for it makes it the unit's."""
    s = astra.spec((16, 16))
    strict = astra.trace(lambda a, b: product(a, b, out=astra.spec((16, 16)), grid=1), s, s).lower()
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((16, 16), dtype=np.float32) for _ in range(2))
    under = [strict.with_numerics(f"device:hopper32-fp8{t}").compile("native")(a, b).tobytes() for t in ("", ":f8e4m3fn")]
    wanted = strict.compile("native")(a, b).tobytes()
    assert under[0] == wanted and under[1] != wanted


def test_sizes_of_numpy_are_sizes():
    assert scaled_blocks(np.arange(8, dtype=np.float32), out=astra.spec((8,)), grid=np.int64(2), B=np.int64(4)).tolist() == [2.0 * i for i in range(8)]


@astra.kernel
def scaled_blocks(x, out, *, B):
    kernel.store(out, (kernel.program_id(0) * B,), kernel.load(x, (kernel.program_id(0) * B,), (B,)) * 2.0)


@astra.kernel
def guarded(x, out, *, B):
    at = kernel.program_id(0) * B
    if at < x.shape[0]:
        kernel.store(out, (at,), kernel.load(x, (at,), (B,), fill=0.0), drop=True)


def test_a_store_in_an_if_of_program_ids():
    with pytest.raises(astra.KernelError, match=r"inside of an `if` of program ids and sizes is not there yet: .* let store\(..., drop=True\) leave out"):
        guarded(np.ones(10, np.float32), out=astra.spec((10,)), grid=4, B=4)


@astra.kernel
def long_loop(x, out):
    t = kernel.load(x, (0,), (1,))
    for _ in range(10**15):  # the long loop
        t = t + 1.0
    kernel.store(out, (0,), t)


def test_a_loop_of_too_many_steps():
    line = next(i for i, text in enumerate(open(__file__, encoding="utf-8"), 1) if "# the long loop" in text)
    with pytest.raises(astra.KernelError, match=f"test_kernel_correct.py:{line}.*at most {2**40} steps; this one may have {10**15}"):
        long_loop(np.ones(1, np.float32), out=astra.spec((1,)), grid=1)


@astra.kernel
def large_tiles(x, out, *, B):
    t = kernel.load(x, (0, 0), (B, B))
    kernel.store(out, (0, 0), kernel.cumsum(t, axis=1) + kernel.sort(t, axis=1))


def test_a_tile_beyond_all_memory():
    with pytest.raises(astra.KernelError, match="16777216 are the most of a tile"):
        large_tiles(astra.zeros((8192, 8192)), out=astra.spec((8192, 8192)), grid=1, B=8192)


@astra.kernel
def ordered(a, b, c, out, *, ORDER, TYPE, TRIL=None):
    i = kernel.program_id(0)
    x, y = kernel.cast(kernel.load(a, (i * 8, 0), (8, 40)), TYPE), kernel.cast(kernel.load(b, (0, 0), (40, 8)), TYPE)
    acc = kernel.load(c, (i * 8, 0), (8, 8))
    if TRIL is None:
        kernel.store(out, (i * 8, 0), kernel.dot(x, y, acc, order=ORDER))
    else:
        kernel.store(out, (i * 8, 0), kernel.dot(x, y, acc, tril=i * 8 + TRIL, order=ORDER))


ORDERS = [  # each unit, types that are named and that the operands have
    ("hopper16", "bfloat16"), ("hopper16 f16", "float32"), ("ampere8", "float16"), ("hopper8-tf32", "float32"), ("ampere4-tf32 tf32", "float32"),
    ("hopper32-fp8 f8e4m3fn", "float32"), ("hopper32-fp8 f8e4m3fn f8e5m2", "float32"), ("cdna3-8", "bfloat16"), ("cdna2 f16", "float32"),
    ("dpbf16-2", "bfloat16"), ("amx32", "float32"),
]  # fmt: skip


def in_order(order, dtype, tril):
    """What the kernel computes, as a text of the graph."""
    unit, *types = order.split()
    named = {"bfloat16": "bf16", "float16": "f16", "float32": "tf32" if "tf32" in unit else "bf16"}[dtype]
    kind, wide = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[dtype], "f32"
    return f"""module @m {{
      entry @main(%a : f32[24, 40], %b : f32[40, 8], %c : f32[24, 8]) -> (%y : f32[24, 8]) {{
        %a1 = cast %a : {kind}[24, 40]
        %x = cast %a1 : {wide}[24, 40]
        %b1 = cast %b : {kind}[40, 8]
        %w = cast %b1 : {wide}[40, 8]
        %p = contract %x[i, k], %w[k, j] -> [i, j] sum [k] {'' if tril is None else f'where k <= i + {tril}'} order="{unit} {' '.join(types) or named}"
        %y = add %c, %p
      }}
    }}"""


@pytest.mark.parametrize("tril", [None, 7])
def test_a_dot_in_the_order_of_a_matrix_unit(tril, tmp_path):
    """One set of bytes: the text's meaning, the interpreter, eager calls, C, and an emulated GPU; and they are not those of strict numerics."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(s, dtype=np.float32) for s in ((24, 40), (40, 8), (24, 8)))
    orders = ORDERS if tril is None else ORDERS[::4]
    given = [{"ORDER": o, "TYPE": t, "TRIL": tril} for o, t in orders]
    call_ = {"out": astra.spec((24, 8)), "grid": 3}
    wanted = [by_evaluator(_core.parse_uop(in_order(o, t, tril), "m"), [astra.asarray(v)._realized() for v in (a, b, c)])[0].tobytes() for o, t in orders]
    strict = {t: ordered(a, b, c, ORDER=None, TYPE=t, TRIL=tril, **call_).tobytes() for _, t in orders}
    assert all(w != strict[t] for w, (_, t) in zip(wanted, orders))
    for g, w in zip(given, wanted):
        assert kernel.interpret(ordered, a, b, c, **g, **call_).tobytes() == w == ordered(a, b, c, **g, **call_).tobytes(), g
    s = [astra.spec(x.shape) for x in (a, b, c)]
    program = lambda given: astra.trace(lambda *xs: tuple(ordered(*xs, **g, **call_) for g in given), *s).lower()  # noqa: E731
    assert [y.tobytes() for y in program(given).compile("native")(a, b, c)] == wanted
    if not test_kernels.RUN.exists():
        return
    compiled, wanted = program(given[::3]).compile("native,cuda:sm_90,emu:cuda:sm_90"), wanted[::3]
    compiled.save(tmp_path / "m.astra")
    signature = compiled._signatures["main"]
    words = [test_kernels.RUN, tmp_path / "m.astra", "--emulate=cuda:sm_90"]
    for (name, _), x in zip(signature.inputs, (a, b, c)):
        np.save(tmp_path / f"{name}.npy", x)
        words.append(f"--input={name}={tmp_path / name}.npy")
    words += [f"--output={name}={tmp_path / name}.npy" for name, _ in signature.outputs]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert [np.load(tmp_path / f"{name}.npy").tobytes() for name, _ in signature.outputs] == wanted
    refused = subprocess.run([*words, "--strict"], capture_output=True, text=True)
    assert refused.returncode != 0 and "strict" in refused.stderr
