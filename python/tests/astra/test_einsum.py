"""einsum: random expressions mean what NumPy's mean, with any path and any bound on memory; the evaluator and compiled code give equal bytes."""

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

import astra
from astra._evaluate import evaluate
from astra._graph import current

BIN = Path(__file__).resolve().parents[3] / "build/bin"
NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
EXPRESSIONS = 20_000 if NIGHTLY else 1000
COMPILED = 600 if NIGHTLY else 60
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-11, "complex128": 1e-11, "int32": 0}


def expression(r):
    """A random equation with the shapes of its operands: repeated labels, ellipses, axes of extent 1, scalars."""
    letters = "abcdefgh"[: r.randint(1, 8)]
    extents = {c: r.choice([1, 2, 2, 3, 3, 4, 5]) for c in letters}
    wide = [r.choice([2, 3]) for _ in range(r.randint(1, 2))] if r.random() < 0.25 else []
    terms, shapes = [], []
    for _ in range(r.choice([1, 1, 2, 2, 2, 3, 3, 4, 5, 6])):
        term = [r.choice(letters) for _ in range(r.randint(0, 4))]
        shape = [1 if r.random() < 0.08 and term.count(c) == 1 else extents[c] for c in term]
        if wide and r.random() < 0.7:
            places, at = r.randint(0, len(wide)), r.randint(0, len(term))
            shape[at:at] = [1 if r.random() < 0.2 else n for n in wide[len(wide) - places :]]
            term.insert(at, "...")
        terms.append("".join(term))
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if r.random() < 0.8:
        used = sorted(set(equation) - set(",."))
        out = r.sample(used, r.randint(0, len(used)))
        if "..." in equation:
            out.insert(r.randint(0, len(out)), "...")
        equation += "->" + "".join(out)
    return equation, shapes


def asked(r, equation, shapes):
    """A random path, or a bound that the best one breaks."""
    if len(shapes) > 2 and r.random() < 0.5:
        path, left = [], len(shapes)
        while left > 1:
            step = min(left, r.choice([1, 2, 2, 2, 3]))
            path.append(tuple(r.sample(range(left), step)))
            left -= step - 1
        return {"path": path}
    if "..." not in equation and r.random() < 0.5:
        return {"memory_limit": max(1, astra.einsum_path(equation, *shapes).largest // r.choice([2, 3, 4, 8]))}
    return {}


def made(seed):
    r, rng = random.Random(seed), np.random.default_rng(seed)
    equation, shapes = expression(r)
    dtype = np.dtype(r.choice(list(TOLERANCE)))
    xs = []
    for shape in shapes:
        x = rng.integers(-4, 5, shape) if dtype.kind == "i" else rng.standard_normal(shape)
        xs.append(np.asarray(x + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)).astype(dtype))
    return equation, xs, asked(r, equation, shapes)


def test_random_expressions_mean_what_they_mean_in_numpy():
    wrong, sliced = [], 0
    for seed in range(EXPRESSIONS):
        equation, xs, options = made(seed)
        path = astra.einsum_path(equation, *xs, **options)
        sliced += bool(path.slices)
        expected, got = np.einsum(equation, *xs), astra.einsum(equation, *xs, **options).numpy()
        tolerance = TOLERANCE[got.dtype.name] * max(1, np.abs(expected).max(initial=0))
        if got.shape != expected.shape or got.dtype != expected.dtype or not np.allclose(got, expected, rtol=0, atol=tolerance):
            wrong.append((seed, equation, [x.shape for x in xs], options))
        if astra.einsum(path.text, *xs).numpy().tobytes() != got.tobytes():
            wrong.append((seed, "its text", path.text))
    assert not wrong and sliced > EXPRESSIONS // 100


def test_evaluator_and_compiled_code_give_equal_bytes():
    tensors = []
    for seed in range(COMPILED):
        equation, xs, options = made(seed)
        tensors.append((equation, options, astra.einsum(equation, *(astra.asarray(x) + 0 for x in xs), **options)))
    lazy = [(equation, options, t) for equation, options, t in tensors if t._value is None and t._graph is current()]
    assert len(lazy) > COMPILED // 2
    evaluated, compiled = (evaluate(current(), [t._node for _, _, t in lazy], how) for how in ("evaluator", "compiled"))
    different = [(e, o) for (e, o, _), x, y in zip(lazy, evaluated, compiled) if (x.dtype, x.shape, x.tobytes()) != (y.dtype, y.shape, y.tobytes())]
    assert not different


def test_a_network_of_many_short_axes():
    """Labels of extent 2 in any order, merged and permuted: one result, whatever the order of axes in memory."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2,) * 13), rng.standard_normal((2,) * 12)
    names = "abcdefghijklmnopqrs"
    for seed in range(3 if not NIGHTLY else 20):
        r = random.Random(seed)
        first, second = r.sample(names, 13), r.sample(names, 12)
        out = "".join(r.sample(sorted(set(first) | set(second)), 6))
        equation = f"{''.join(first)},{''.join(second)}->{out}"
        t = astra.einsum(equation, astra.asarray(x) + 0, astra.asarray(y) + 0)
        evaluated, compiled = (evaluate(current(), [t._node], how)[0] for how in ("evaluator", "compiled"))
        assert evaluated.tobytes() == compiled.tobytes()
        np.testing.assert_allclose(evaluated, np.einsum(equation, x, y, optimize=True), rtol=1e-9, atol=1e-9)


def test_narrow_floats_are_rounded_once():
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal(shape).astype(np.float16) for shape in ((5, 700), (700, 6), (6, 4))]
    wide = astra.einsum("ij,jk,kl->il", *(x.astype(np.float32) for x in xs)).numpy()
    assert astra.einsum("ij,jk,kl->il", *xs).numpy().tobytes() == wide.astype(np.float16).tobytes()


def test_paths_of_others_and_what_is_printed():
    xs = [np.ones(shape) for shape in ((10, 20), (20, 30), (30, 5), (5, 40))]
    ours = astra.einsum_path("ij,jk,kl,lm->im", *xs)
    assert (ours.path, ours.flops, ours.naive, ours.largest) == ([(1, 2), (0, 2), (0, 1)], 6000, 1_200_000, 400)
    assert str(ours).splitlines() == [
        "ij,jk,kl,lm->im path=[(1, 2), (0, 2), (0, 1)]", "products 6000 (at once 1200000), largest intermediate or result 400",
        "  jk,kl->jl  products 3000, gives 100", "  ij,jl->il  products 1000, gives 50", "  lm,il->im  products 2000, gives 400",
    ]  # fmt: skip
    path, _ = np.einsum_path("ij,jk,kl,lm->im", *xs, optimize="greedy")
    assert np.array_equal(astra.einsum("ij,jk,kl,lm->im", *xs, path=path).numpy(), np.einsum("ij,jk,kl,lm->im", *xs))
    assert astra.einsum_path("ij,jk", (2, 3), (3, 4)) == astra.einsum_path("ij,jk", np.ones((2, 3)), np.ones((3, 4)))


def test_many_operands():
    """More than 16: a greedy order, the same every time; bounded, it is sliced."""
    rng, r = np.random.default_rng(2), random.Random(2)
    ends = [(i, r.randrange(24)) for i in range(24)] + [(i, i + 1) for i in range(23)]
    ends = [(a, b) for a, b in ends if a != b]
    equation = ",".join(chr(ord("A") + a) + chr(ord("A") + b) for a, b in ends) + "->"
    xs = [rng.standard_normal((3, 3)) for _ in ends]
    free = astra.einsum_path(equation, *xs)
    bounded = astra.einsum_path(equation, *xs, memory_limit=free.largest // 9)
    assert bounded.slices and bounded.largest <= free.largest // 9 and free == astra.einsum_path(equation, *xs)
    whole, sliced = astra.einsum(equation, *xs).numpy(), astra.einsum(bounded.text, *xs).numpy()
    np.testing.assert_allclose(sliced, whole, rtol=1e-9)
    np.testing.assert_allclose(whole, np.einsum(equation, *xs, optimize=["einsum_path", *free.path]), rtol=1e-9)


def test_gradients_go_through_paths_and_slices():
    xs = [np.random.default_rng(i).standard_normal(s) for i, s in enumerate(((3, 4), (4, 5), (5, 2)))]
    for options in ({}, {"path": [(1, 2), (0, 1)]}, {"memory_limit": 4}):
        given = astra.grad(lambda x: astra.einsum("ij,jk,kl->il", x, *xs[1:], **options).sum())(xs[0]).numpy()
        np.testing.assert_allclose(given, np.broadcast_to((xs[1] @ xs[2]).sum(1), (3, 4)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32"])
def test_a_sum_over_no_slices_is_zero(dtype):
    """+0, as of the whole; of slices it begins with -0, so that a sum of -0 alone is -0."""
    empty = [np.zeros(s, dtype) for s in ((2, 0), (0, 4), (4, 5))]
    for text in ("ij,jk,kl->il path=[(1, 2), (0, 1)]", "ij,jk,kl->il path=[(1, 2), (0, 1)] slices=j"):
        assert astra.einsum(text, *empty).numpy().tobytes() == np.zeros((2, 5), dtype).tobytes()
    x, y, z = np.full((2, 3), -0.0).astype(dtype), np.ones((3, 4), dtype), np.ones((4, 5), dtype)
    sliced, whole = (astra.einsum(f"ij,jk,kl->il path=[(1, 2), (0, 1)]{slices}", x, y, z).numpy().tobytes() for slices in (" slices=j", ""))
    assert sliced == whole


def test_bools():
    """Sums are any and products all, as NumPy's, however large the counts are."""
    rng = np.random.default_rng(3)
    x, y, z = rng.random((3, 4)) < 0.3, rng.random((4, 5)) < 0.3, rng.random((4, 4)) < 0.5
    for equation, xs in (("ij,jk", [x, y]), ("ij,jk,kl->il", [x, y, y.T]), ("ii", [z]), ("ii->i", [z]), ("ij->", [x]), ("ij,kl->", [x, y])):
        got, expected = astra.einsum(equation, *xs).numpy(), np.einsum(equation, *xs)
        assert got.dtype == bool and np.array_equal(got, expected), equation
        assert np.array_equal(astra.einsum(equation, *xs, memory_limit=12 if len(xs) > 2 else None).numpy(), expected), equation
    many = [np.ones((64, 64), bool)] * 8  # 2^96 pairs of true elements
    assert astra.einsum("ab,cd,ef,gh,ij,kl,mn,op->", *many).item() is True


@pytest.mark.parametrize("given, sentence", [
    (lambda x: astra.einsum("ij,jk,kl", x, x, x, path=[(0, 1)]), "the path leaves 2 operands, and one is the result"),
    (lambda x: astra.einsum("ij,jk,kl", x, x, x, path=[(0, 7), (0, 1)]), "step 0 of the path names operand 7, and 3 are left"),
    (lambda x: astra.einsum("ij,jk,kl", x, x, x, path="greedy"), "a path is a list of tuples of places"),
    (lambda x: astra.einsum("ij,jk,kl", x, x, x, path=[(0, 1), (0, 1)], memory_limit=4), "a path and slices, or a bound on memory"),
    (lambda x: astra.einsum("ij,jk", x, np.ones((4, 3), np.float32)), "extents 3 and 4 of axis 'j' are not equal"),
    (lambda x: astra.einsum("ij,jk"), "an einsum takes one operand or more behind its equation"),
    (lambda x: astra.einsum_path("ij,jk"), "an einsum takes one operand or more behind its equation"),
    (lambda x: astra.einsum_path("ij,jk", (3,), (3, 3)), "operand 0 has 1 axes, the part 'ij' of the equation names 2"),
    (lambda x: astra.einsum_path("ab,cd,ef->abcdef", *[(1 << 20, 1 << 20)] * 3) and astra.einsum("ab,cd->abcd", *[astra.zeros((5000, 5000))] * 2), "2.48"),
])  # fmt: skip
def test_refusals_are_sentences(given, sentence):
    with pytest.raises(astra.ArgumentError, match=sentence):
        given(astra.ones((3, 3)))


TEXT_TYPES = {"float32": "f32", "complex64": "complex64", "float64": "f64", "complex128": "complex128", "int32": "i32"}
TEXTS = [  # beside random ones: diagonals, traces, ellipses, permutations, scalars, slices, a bound
    ("ii->i", [(4, 4)], ""),
    ("iji->j", [(3, 5, 3)], ""),
    ("ab,bc", [(3, 700), (700, 4)], ""),
    ("ab,bc,cd->ad", [(3, 9), (9, 4), (4, 5)], "path=[(1, 2), (0, 1)]"),
    ("ab,bc,cd->ad", [(3, 9), (9, 4), (4, 5)], "path=[(0, 1), (0, 1),]"),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)], "path=[(0, 1)]"),
    ("a,b,c->cab", [(2,), (3,), (4,)], ""),
    ("abc,cde,efa->bdf", [(6, 3, 6), (6, 4, 6), (6, 2, 6)], "memory=40"),
    ("abc,cde,efa->bdf", [(6, 3, 6), (6, 4, 6), (6, 2, 6)], "path=[(1, 2), (0, 1)] slices=ac"),
    ("äö,öü->üä", [(2, 3), (3, 4)], ""),
    (",ij,->ji", [(), (2, 3), ()], ""),
    ("abcd->dbca", [(2, 3, 4, 5)], ""),
    ("ij,ij,ij->", [(7, 300)] * 3, "path=[(0, 1, 2)]"),
]


@pytest.mark.skipif(not (BIN / "astra-opt").exists(), reason="there is no astra-opt")
def test_the_text_form_means_the_same(tmp_path):
    """%y = einsum "..." path=[...] in a .uop file: the evaluator and a bundle give the bytes of astra.einsum."""
    rng, cases = np.random.default_rng(3), []
    for number, (equation, shapes, words) in enumerate(TEXTS):
        dtype = list(TEXT_TYPES)[number % 5]
        xs = [(rng.integers(-9, 9, s) if dtype == "int32" else rng.standard_normal(s) + (1j * rng.standard_normal(s) if "complex" in dtype else 0)) for s in shapes]
        cases.append((equation, [np.asarray(x).astype(dtype) for x in xs], words))
    for seed in range(2000, 2400 if NIGHTLY else 2025):
        equation, xs, options = made(seed)
        plan = astra.einsum_path(equation, *xs, **options).text
        cases.append((equation, xs, plan[plan.index("path=") :]))
    lines, entries = [], []
    for number, (equation, xs, words) in enumerate(cases):
        for i, x in enumerate(xs):
            of = TEXT_TYPES[x.dtype.name] + (str(list(x.shape)) if x.ndim else "")
            lines.append(f'  param @x{number}_{i} : {of} = hex "{x.tobytes().hex()}"')
        operands = ", ".join(f"@x{number}_{i}" for i in range(len(xs)))
        entries.append(f'  entry @e{number}() -> (%y) {{\n    %y = einsum "{equation}" {words} {operands}\n  }}')
    text = tmp_path / "einsums.uop"
    text.write_text("module @m {\n" + "\n".join(lines + entries) + "\n}\n")
    subprocess.run([BIN / "astra-compile", text, "-o", tmp_path / "m.astra", "--target=cpu:x86-64-v3", "--quiet"], check=True)
    astra.compile_file(text)  # reads it too
    wrong = []
    for number, (equation, xs, words) in enumerate(cases):
        ours = astra.einsum(f"{equation} {words}".strip(), *xs).numpy()
        for command in (["astra-opt", text, "--eval"], ["astra-run", tmp_path / "m.astra"]):
            y = tmp_path / "y.npy"
            subprocess.run([BIN / command[0], *command[1:], f"--entry=e{number}", "--output", f"y={y}"], check=True, stdout=subprocess.DEVNULL)
            got = np.load(y)
            if (got.dtype, got.shape, got.tobytes()) != (ours.dtype, ours.shape, ours.tobytes()):
                wrong.append((command[0], equation, words))
    assert not wrong
