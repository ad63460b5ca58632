"""Rows: an op of PyTorch each, in functions of this package."""

from . import control, elementwise, fourier, indexing, networks, products, random, recurrent, reductions, shapes, symbols  # noqa: F401
