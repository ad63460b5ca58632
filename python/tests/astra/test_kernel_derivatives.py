"""Declared derivatives of kernels beside those that the package derives of the same function, on 100 random inputs each."""

import derived_kernels
import numpy as np
import pytest

import astra

INPUTS = 100


@pytest.mark.parametrize("name", derived_kernels.CASES)
def test_a_declared_derivative_is_that_of_the_function(name):
    by_kernel, plain, shapes = derived_kernels.CASES[name]
    rng = np.random.default_rng(len(name))

    def pulled(f):
        """The value and the cotangents of all arguments, for a cotangent of the value."""

        def function(g, *xs):
            y, pull = astra.vjp(f, *xs)
            return (y, *pull(g))

        return astra.jit(function)

    kernels, derived = pulled(by_kernel), pulled(plain)
    shape = plain(*(astra.asarray(np.ones(s)) for s in shapes)).shape
    for _ in range(INPUTS):
        args = [rng.standard_normal(s) for s in (shape, *shapes)]
        for got, expected in zip(kernels(*args), derived(*args)):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-12, atol=1e-13)
