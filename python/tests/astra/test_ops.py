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
