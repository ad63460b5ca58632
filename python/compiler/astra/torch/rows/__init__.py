"""Rows: an op of PyTorch each, in functions of this package."""

from . import (  # noqa: F401
    attention,
    control,
    convolutions,
    elementwise,
    embedding,
    fourier,
    images,
    indexing,
    matrices,
    normalization,
    pooling,
    products,
    random,
    recurrent,
    reductions,
    shapes,
    symbols,
)
