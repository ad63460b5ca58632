"""Fourier transforms: torch.fft is made of these three.

Keeps:    a complex value is a pair along a last axis while it is transformed. Inverse transforms of PyTorch's are without a factor
          unless the normalization asks for one.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from ... import _core, _dims, _ops
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from .elementwise import _view_as_complex, _view_as_real
from .registry import row
from .shapes import axis
from .types import as_type, own_type


def _transformed(x: Tensor, dim: int, length: Any, inverse: bool, onesided: bool) -> Tensor:
    graph, core = current(), current().core
    n = None if length is None else _dims.size_node(core, length)
    return of_node(graph, call(_core.fourier_transform, core, x._in(graph), dim, n, inverse, onesided))


def _scaled(x: Tensor, extents: Sequence[Any], normalization: int, divided: bool) -> Tensor:
    """normalization: 0 none, 1 over the root of the number of points, 2 over their number. divided: the transform has divided already."""
    n = math.prod(extents)
    factor = (n if divided else 1) / (1 if normalization == 0 else math.sqrt(n) if normalization == 1 else n)
    return x if factor == 1 else _ops.multiply(x, as_type(float(factor), x.dtype))


def _axes(dim: Sequence[int], x: Tensor) -> list[int]:
    return [axis(d, x) for d in dim]


@row("aten._fft_c2c")
def _c2c(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    dims = _axes(dim, x)
    pairs = _view_as_real(x)
    for d in dims:
        pairs = _transformed(pairs, d, None, not forward, False)
    return _view_as_complex(_scaled(pairs, [x.shape[d] for d in dims], normalization, not forward))


@row("aten._fft_r2c")
def _r2c(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    dims = _axes(dim, x)
    pairs = _transformed(_ops.expand_dims(x, -1), dims[-1], None, False, onesided)
    for d in dims[:-1]:
        pairs = _transformed(pairs, d, None, False, False)
    return _view_as_complex(_scaled(pairs, [x.shape[d] for d in dims], normalization, False))


@row("aten._fft_c2r")
def _c2r(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Tensor:
    dims = _axes(dim, x)
    pairs = _view_as_real(x)
    for d in dims[:-1]:
        pairs = _transformed(pairs, d, None, True, False)
    real = _transformed(pairs, dims[-1], last_dim_size, True, True)
    made = _ops.squeeze(real, real.ndim - 1) if real.ndim > x.ndim else real
    return _scaled(made, [*(x.shape[d] for d in dims[:-1]), last_dim_size], normalization, True)


_ = own_type
