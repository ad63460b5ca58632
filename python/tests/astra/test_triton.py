"""Kernels of Triton's: the adapter, its interpreter and compiled code give the same bytes, near those of NumPy."""

import numpy as np
import pytest
from triton_kernels import CASES

import astra
import astra.kernel.triton as triton


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
