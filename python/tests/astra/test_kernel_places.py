"""Bounds and races of kernels: what is refused while they are compiled is what the interpreter finds when they run.

The interpreter knows no proofs: it looks at each access of each program. So it is what the refusals are compared with.
"""

import re

import numpy as np
import placed_kernels
import pytest

import astra

KERNELS = placed_kernels.ONE + placed_kernels.TWO
OUTSIDE, RACE = "is outside", "race"


def draw(rng):
    """A kernel and what it is called with: mostly as it should be, with one thing that may be wrong."""
    f = KERNELS[rng.integers(len(KERNELS))]
    block = int(rng.integers(1, 6))
    fault = rng.integers(0, 6)
    step = block if fault != 0 else max(1, block + int(rng.integers(-2, 2)))
    shift = 0 if fault != 1 else int(rng.integers(-3, 4))
    programs, others = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    if f in placed_kernels.ONE:
        grid = (programs, others) if f is placed_kernels.digits else (programs,)
        shape = (int(np.prod(grid)) * block,)
    else:
        grid = (programs, others)
        shape = (programs * block, others * block)
        if f is placed_kernels.rows_and_columns_of_one_id:
            grid = (programs * others,)
        if f is placed_kernels.loops:
            grid = (programs * block,)
    if fault == 2:
        shape = (max(1, shape[0] - int(rng.integers(1, 3))), *shape[1:])
    if fault == 3:
        grid = (grid[0] + int(rng.integers(1, 3)), *grid[1:])
    out = tuple(reversed(shape)) if f is placed_kernels.transposed else shape
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return f, x, {"out": astra.spec(out), "grid": grid, "BLOCK": block, "STEP": step, "SHIFT": shift, "DROP": bool(rng.integers(3) == 0)}


def said(call):
    """What a call is refused with, and its result."""
    try:
        return "", call()
    except astra.KernelError as error:
        return str(error), None


def refusals():
    rng = np.random.default_rng(42)
    while True:
        f, x, given = draw(rng)
        wrong, value = said(lambda: astra.kernel.interpret(f, x, **given))
        refused, result = said(lambda: f(x, **given))
        yield f, given, wrong, value, refused, result


def test_what_is_refused_is_wrong_and_what_is_wrong_is_refused():
    outside = races = correct = refused_correct = 0
    for f, given, wrong, value, refused, result in refusals():
        if wrong:
            assert refused, (f, given, wrong)
            witness = re.search(r"program \(\d+.*?\)", refused)
            assert witness, refused
            if OUTSIDE in refused:
                outside += 1
                assert re.search(r"elements? -?\d+", refused)
            elif RACE in refused:
                races += 1
                assert re.search(r"program \(.*\) (and program \(.*\) )?both write element \(\d+.*\) of 'out'", refused) or "two elements" in refused
        elif refused:
            refused_correct += 1
        else:
            correct += 1
            assert value.tobytes() == result.tobytes(), (f, given)
        if outside >= 40 and races >= 40 and correct + refused_correct >= 50:
            break
    print(f"{outside} outside, {races} races, {refused_correct} of {correct + refused_correct} correct ones refused")
    assert refused_correct <= 0.02 * (correct + refused_correct)


@pytest.mark.parametrize("f", KERNELS, ids=lambda f: f.source.name)
def test_each_kernel_has_a_correct_call(f):
    shape = (12,) if f in placed_kernels.ONE else (12, 8)
    grid = {placed_kernels.digits: (3, 1), placed_kernels.loops: (12,), placed_kernels.rows_and_columns_of_one_id: (6,)}.get(f, (3,) if len(shape) == 1 else (3, 2))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = shape[::-1] if f is placed_kernels.transposed else shape
    given = {"out": astra.spec(out), "grid": grid, "BLOCK": 4, "STEP": 4, "SHIFT": 0, "DROP": False}
    assert f(x, **given).tobytes() == astra.kernel.interpret(f, x, **given).tobytes()
