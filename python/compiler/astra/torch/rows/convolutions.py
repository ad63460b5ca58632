"""Convolutions and their gradients; blocks of images as columns, and back."""

from __future__ import annotations

from typing import Any, Sequence

from ... import _core, _dims, _ops
from ..._errors import ArgumentError
from ..._graph import current
from ..._tensor import Tensor
from .derivatives import gradients, wide
from .reductions import fold
from .registry import row
from .types import as_type, opmath


def each(values: Any, n: int) -> list[int]:
    """One number for each axis."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return values * n if len(values) == 1 else values


def batched(x: Tensor, n: int) -> tuple[Tensor, bool]:
    """x with a batch before its channels and n spatial axes, and whether it had none."""
    return (_ops.expand_dims(x, 0), True) if x.ndim == n + 1 else (x, False)


@row("aten.convolution", "aten._convolution")
def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int, *_: Any) -> Tensor:  # fmt: skip
    n = weight.ndim - 2
    if x.dtype is not weight.dtype:
        raise ArgumentError(f"Input type ({x.dtype.name}) and weight type ({weight.dtype.name}) should be the same")
    if x.ndim == n + 1:  # without a batch
        made = convolution(_ops.expand_dims(x, 0), weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return _ops.squeeze(made, 0)
    stride, padding, dilation = each(stride, n), each(padding, n), each(dilation, n)
    if transposed:
        return wide(lambda x, w, b: _ops.make(_core.transposed_convolution, x, w, b, stride, dilation, padding * 2, groups,
                                               each(output_padding, n)), x, weight, bias)  # fmt: skip
    return wide(lambda x, w, b: _ops.make(_core.convolution, x, w, b, stride, dilation, padding * 2, groups), x, weight, bias)


@row("aten.convolution_backward")
def _convolution_backward(grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                          transposed: bool, output_padding: Any, groups: int, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    xs = [as_type(v, opmath(v.dtype)) for v in (x, weight)]
    f = lambda x, w: convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)  # noqa: E731
    gx, gw = gradients(f, xs, as_type(grad, xs[0].dtype), mask[:2])
    channels = grad.ndim - weight.ndim + 1
    axes = [d for d in range(grad.ndim) if d != channels]
    gb = as_type(fold("sum", as_type(grad, opmath(grad.dtype)), axes, False), grad.dtype) if mask[2] else None
    return *(None if g is None else as_type(g, grad.dtype) for g in (gx, gw)), gb


@row("aten.col2im")
def _col2im(x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    x, alone = batched(x, 1)
    image = [_dims.size_node(current().core, n) for n in output_size]
    made = _ops.make(_core.columns_to_image, x, image, list(kernel_size), list(stride), list(dilation), list(padding) * 2)
    return _ops.squeeze(made, 0) if alone else made


@row("aten.im2col")
def _im2col(x: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    x, alone = batched(x, 2)
    made = _ops.make(_core.image_to_columns, x, list(kernel_size), list(stride), list(dilation), list(padding) * 2)
    return _ops.squeeze(made, 0) if alone else made
