"""Fourier transforms: torch.fft is made of these three.

Keeps:    inverse transforms of PyTorch's are without a factor unless the normalization asks for one.
"""

from __future__ import annotations

from typing import Any, Sequence

from ... import _core, _dims, _ops
from ..._graph import current
from ..._tensor import Tensor
from .registry import row
from .shapes import axis
from .types import own_type


def _norm(normalization: int, forward: bool) -> str:
    """normalization: 0 none, 1 over the root of the number of points, 2 over their number."""
    return ("backward", "ortho", "forward")[normalization if forward else 2 - normalization]


def _transformed(composite: Any, x: Tensor, dim: Sequence[int], lengths: Sequence[Any], normalization: int, forward: bool) -> Tensor:
    core = current().core
    nodes = [_dims.size_node(core, n) for n in lengths]
    return _ops.make(composite, x, [axis(d, x) for d in dim], nodes, _norm(normalization, forward))


@row("aten._fft_c2c")
def _c2c(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    return _transformed(_core.fftn if forward else _core.ifftn, x, dim, [], normalization, forward)


@row("aten._fft_r2c")
def _r2c(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    if onesided:
        return _transformed(_core.rfftn, x, dim, [], normalization, True)
    return _c2c(_ops.astype(x, own_type("complex64" if x.dtype.bits == 32 else "complex128")), dim, normalization, True)


@row("aten._fft_c2r")
def _c2r(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Tensor:
    lengths = [*(x.shape[axis(d, x)] for d in dim[:-1]), last_dim_size]
    return _transformed(_core.irfftn, x, dim, lengths, normalization, False)
