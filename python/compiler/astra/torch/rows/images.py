"""Images: resizing, sampling, blocks of pixels as channels; their gradients."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ... import _core, _dims, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor
from .derivatives import derivative, gradients, wide
from .registry import refuse, row
from .types import as_type, opmath


def _resize(x: Tensor, size: Any, scales: Any, mode: str, corners: bool, rounding: str = "floor", coordinates: str | None = None) -> Tensor:
    axes = list(range(2, x.ndim))
    given = None if scales is None or any(s is None for s in scales) else [float(s) for s in scales]
    if size is None:
        size = [math.floor(e * s) for e, s in zip(x.shape[2:], given or [])]
    whole = given is not None and all(isinstance(e, int) and e * s == out for e, s, out in zip(x.shape[2:], given, size))
    use = None if given is None or whole or corners else given
    if use is not None and any(math.floor(e * s) != out for e, s, out in zip(x.shape[2:], use, size)):
        raise UnsupportedError("a resize whose sizes are not those of its scales")
    coordinates = "align_corners" if corners else coordinates or "half_pixel"
    nodes = [_dims.size_node(current().core, e) for e in size]

    def f(x: Tensor) -> Tensor:
        return _ops.make(_core.resize, x, axes, nodes, use, mode, coordinates, rounding, False, -0.75)

    return wide(f, x) if x.dtype.kind == "f" else f(x)


def _upsample(name: str, n: int, mode: str, coordinates: str | None = None, rounding: str = "floor") -> None:
    takes_corners = mode != "nearest"

    def function(x: Tensor, size: Any, *args: Any) -> Tensor:
        if takes_corners and x.dtype.kind in "iu":
            raise UnsupportedError(f"{x.dtype.name} between pixels, which PyTorch computes with rounded weights: convert to float32 first")
        rest = list(args)
        corners = rest.pop(0) if takes_corners else False
        scales = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest if len(rest) == n else None
        return _resize(x, size, scales, mode, bool(corners), rounding, coordinates)

    def backward(grad: Tensor, size: Any, input_size: Sequence[Any], *args: Any) -> Tensor:
        return derivative(lambda x: function(x, size, *args), _ops.zeros(input_size, dtype=grad.dtype), grad)

    row(f"aten.{name}")(function)
    row(f"aten.{name}_backward")(backward)


for _n, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    _upsample(f"upsample_{_name}", _n, "linear")
    _upsample(f"upsample_nearest{_n}d", _n, "nearest", "asymmetric", "floor")
    _upsample(f"_upsample_nearest_exact{_n}d", _n, "nearest", "half_pixel", "prefer_ceil")
_upsample("upsample_bicubic2d", 2, "cubic")
refuse("its filters are not those of this package's resizing", "aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa")


def _grid_sampler(x: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool) -> Tensor:
    mode, outside = ("linear", "nearest", "cubic")[interpolation], ("zeros", "border", "reflection")[padding]
    return wide(lambda x, grid: _ops.make(_core.grid_sample, x, grid, mode, outside, corners), x, grid)


row("aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.grid_sampler")(_grid_sampler)


@row("aten.grid_sampler_2d_backward", "aten.grid_sampler_3d_backward")
def _grid_sampler_backward(grad: Tensor, x: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool, mask: Sequence[bool]) -> tuple[Any, ...]:
    xs = [as_type(v, opmath(v.dtype)) for v in (x, grid)]
    made = gradients(lambda x, g: _grid_sampler(x, g, interpolation, padding, corners), xs, as_type(grad, xs[0].dtype), mask)
    return tuple(None if g is None else as_type(g, x.dtype) for g in made)


def _blocks(composite: Any, x: Tensor, factor: int) -> Tensor:
    """Of the last three axes: channels, rows and columns."""
    lead = x.shape[:-3]
    count: Any = 1
    for n in lead:
        count = count * n
    made = _ops.make(composite, _ops.reshape(x, (count, *x.shape[-3:])), factor, "crd")
    return _ops.reshape(made, (*lead, *made.shape[1:]))


row("aten.pixel_shuffle")(lambda x, factor: _blocks(_core.depth_to_space, x, factor))
row("aten.pixel_unshuffle")(lambda x, factor: _blocks(_core.space_to_depth, x, factor))


@row("aten.channel_shuffle", "aten.native_channel_shuffle")
def _channel_shuffle(x: Tensor, groups: int) -> Tensor:
    n, c, *rest = x.shape
    return _ops.reshape(_ops.swapaxes(_ops.reshape(x, (n, groups, c // groups, *rest)), 1, 2), x.shape)
