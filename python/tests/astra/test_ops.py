"""Every function on tensors: the evaluator and compiled code give equal bytes, and mean what NumPy's function of that name means.

The functions are those of the package: one without a case fails. All functions of a dtype are compiled as one module."""

import os

import numpy as np
import pytest
from cases import CASES, NOT_OF_TENSORS, REFERENCE, samples

import astra
from astra import _ops
from astra._evaluate import evaluate
from astra._graph import current

NIGHTLY = os.environ.get("ASTRA_NIGHTLY") == "1"
DAILY = ["float32", "int32", "complex64"]
DTYPES = DAILY + (["float16", "bfloat16", "float64", "complex128", "bool", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"] if NIGHTLY else [])


def of_kind(dtype):
    return {name: make(name) for name, (kinds, make) in CASES.items() if dtype.kind in kinds}


def tensors_of(dtype):
    s = samples(np.dtype("float32" if dtype.name == "bfloat16" else dtype.numpy))
    for name, value in vars(s).items():
        if value is not None:
            t = astra.asarray(value)
            setattr(s, name, astra.astype(t, dtype) if dtype.name == "bfloat16" and value.dtype.kind == "f" else t)
    return s


def leaves(result):
    return [t for part in result for t in leaves(part)] if isinstance(result, (tuple, list)) else [result]


def test_every_function_has_a_case():
    assert set(_ops.__all__) - NOT_OF_TENSORS == set(CASES)
    assert not [name for name in astra.__all__ if not hasattr(astra, name)]


@pytest.mark.parametrize("name", DTYPES)
def test_evaluator_and_compiled_code_give_equal_bytes(name):
    s = tensors_of(astra.dtype(name))
    found = [(function, t) for function, case in of_kind(astra.dtype(name)).items() for t in leaves(case(astra, s))]
    lazy = [(function, t) for function, t in found if t._value is None and t._graph is current()]
    assert len(lazy) > 40
    nodes = [t._node for _, t in lazy]
    evaluated, compiled = (evaluate(current(), nodes, how) for how in ("evaluator", "compiled"))
    different = [f for (f, _), x, y in zip(lazy, evaluated, compiled) if (x.dtype, tuple(x.shape), x.tobytes()) != (y.dtype, tuple(y.shape), y.tobytes())]
    assert not different


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128", "bool", "int8", "int32", "int64", "uint8", "uint32"])
def test_functions_mean_what_they_mean_in_numpy(name):
    dtype = np.dtype(name)
    given, mine = samples(dtype), tensors_of(astra.dtype(name))
    tolerance = {"float32": 3e-6, "complex64": 3e-6}.get(name, 1e-12)
    wrong = []
    with np.errstate(all="ignore"):
        for function, case in of_kind(astra.dtype(name)).items():
            expected = leaves(REFERENCE[function](given) if function in REFERENCE else case(np, given))
            got = leaves(case(astra, mine))
            if len(got) != len(expected):
                wrong.append(function)
            for x, y in zip(got, expected):
                x, y = np.asarray(x), np.asarray(y)
                close = x.shape == y.shape and (np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))
                if not close:
                    wrong.append(f"{function}: {x} is not {y}")
    assert not wrong, "\n".join(wrong)


SUMS = {  # axes of two tensors, the same sum for einsum
    "abc,cbd->ad": ([1, 2], [1, 0]), "abc,cd->abd": ([2], [0]), "abc,ace->be": ([0, 2], [0, 1]), "abc,abc->": ([0, 1, 2], [0, 1, 2]),
    "ab,cd->abcd": ([], []), "abc,dcb->ad": ([-2, -1], [-1, -2]),
}  # fmt: skip


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "int32"])
def test_tensordot_has_the_bits_of_einsum(name):
    extents, rng, dtype = dict(zip("abcde", (5, 7, 33, 4, 3))), np.random.default_rng(0), np.dtype(name)
    for equation, axes in SUMS.items():
        x, y = (rng.standard_normal([extents[a] for a in term]) * 9 for term in equation.split("->")[0].split(","))
        x, y = x.astype(dtype), (y * (1 + 1j if dtype.kind == "c" else 1)).astype(dtype)
        got, expected = astra.tensordot(x, y, axes=axes).numpy(), astra.einsum(equation, x, y).numpy()
        assert got.dtype == dtype and got.shape == expected.shape and got.tobytes() == expected.tobytes()


def test_products_of_vectors_refuse_what_does_not_fit():
    x, y = astra.ones((2, 3)), astra.ones((4, 2))
    for products, sentence in (
        (lambda: astra.tensordot(x, y, axes=1), "extents 3 and 4 of the axes that are summed are not equal"),
        (lambda: astra.tensordot(x, y, axes=([0, 0], [1, 1])), "twice"),
        (lambda: astra.tensordot(x, y, axes=([0], [])), "1 axes of the first operand and 0 of the second"),
        (lambda: astra.vecdot(x, y), "extents 3 and 2 of the axes that are summed"),
    ):
        with pytest.raises(ValueError, match=sentence):
            products()
    assert astra.vecdot(astra.ones((4, 3)), astra.ones((4, 1, 3)), axis=-1).shape == (4, 4)
    assert astra.vecdot(astra.ones((3, 2)), astra.ones((3, 5, 2)), axis=0).shape == (5, 2)
    assert astra.outer(np.array([True, False]), np.array([True])).tolist() == [[True], [False]]
