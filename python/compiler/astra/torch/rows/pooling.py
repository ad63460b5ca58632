"""Pools and their gradients."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ... import _core, _ops
from ..._graph import current
from ..._tensor import Tensor
from .convolutions import batched, each
from .derivatives import derivative
from .reductions import count_of
from .registry import refuse, row
from .types import F64, I64, as_type


def _window(n: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> tuple[list[int], list[int], list[int], list[int]]:
    kernel = each(kernel, n)
    return kernel, each(stride, n) if stride not in (None, [], ()) else kernel, each(dilation, n), each(padding, n) * 2


def _max_pool(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
        x, alone = batched(x, n)
        k, s, d, p = _window(n, kernel, stride, padding, dilation)
        values, index = _ops.make_all(_core.max_pool_with_indices, x, k, s, d, p, ceil_mode)
        index = _ops.remainder(index, as_type(count_of(x, range(2, x.ndim)), I64))  # within the image
        return (_ops.squeeze(values, 0), _ops.squeeze(index, 0)) if alone else (values, index)

    return function


row("aten.max_pool1d_with_indices")(_max_pool(1))
row("aten.max_pool2d_with_indices")(_max_pool(2))
row("aten.max_pool3d_with_indices")(_max_pool(3))
row("aten.max_pool2d")(lambda *a, **k: _max_pool(2)(*a, **k)[0])
row("aten.max_pool1d")(lambda *a, **k: _max_pool(1)(*a, **k)[0])
row("aten.max_pool3d")(lambda *a, **k: _max_pool(3)(*a, **k)[0])


def _unpooled(values: Tensor, index: Tensor, image: Sequence[Any], adds: bool) -> Tensor:
    """Zeros with values put or added where their index within the image says."""
    return _ops.make(_core.unpool, values, index, _ops.sizes(current(), image), adds)


def _max_pool_backward(n: int) -> Callable[..., Tensor]:
    return lambda grad, x, *args: _unpooled(grad, args[-1], x.shape[-n:], True)


row("aten.max_pool2d_with_indices_backward", "aten.adaptive_max_pool2d_backward")(_max_pool_backward(2))
row("aten.max_pool3d_with_indices_backward", "aten.adaptive_max_pool3d_backward")(_max_pool_backward(3))
for _n in (2, 3):
    row(f"aten.max_unpool{_n}d")(lambda x, index, size, *_: _unpooled(x, index, size, False))


def _average_pool(n: int) -> Callable[..., Tensor]:
    def function(x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> Tensor:  # fmt: skip
        if x.dtype.kind != "f":  # the quotient truncates
            return as_type(function(as_type(x, F64), kernel, stride, padding, ceil_mode, count_include_pad, divisor_override), x.dtype)
        x, alone = batched(x, n)
        k, s, d, p = _window(n, kernel, stride, padding)
        made = _ops.make(_core.average_pool, x, k, s, d, p, ceil_mode, count_include_pad, float(divisor_override or 0))
        return _ops.squeeze(made, 0) if alone else made

    return function


def _average_pool_backward(n: int) -> Callable[..., Tensor]:
    return lambda grad, x, *args: derivative(lambda x: _average_pool(n)(x, *args), x, grad)


for _n in (1, 2, 3):
    row(f"aten.avg_pool{_n}d")(_average_pool(_n))
row("aten.avg_pool2d_backward")(_average_pool_backward(2))
row("aten.avg_pool3d_backward")(_average_pool_backward(3))


# ---- pools whose results have a given size


def _adaptive_average(n: int) -> Callable[..., Tensor]:
    return lambda x, size: _ops.make(_core.adaptive_average_pool, x, each(size, n))


def _adaptive_backward(n: int) -> Callable[..., Tensor]:
    return lambda grad, x: derivative(lambda x: _adaptive_average(n)(x, list(grad.shape[grad.ndim - n :])), x, grad)


def _adaptive_max(n: int) -> Callable[..., tuple[Tensor, ...]]:
    return lambda x, size: _ops.make_all(_core.adaptive_max_pool, x, each(size, n))


for _n in (1, 2, 3):
    row(f"aten.adaptive_avg_pool{_n}d", *([f"aten._adaptive_avg_pool{_n}d"] if _n > 1 else []))(_adaptive_average(_n))
    row(f"aten.adaptive_max_pool{_n}d")(_adaptive_max(_n))
row("aten._adaptive_avg_pool2d_backward")(_adaptive_backward(2))
row("aten._adaptive_avg_pool3d_backward")(_adaptive_backward(3))

refuse("its windows are drawn at random, by numbers of PyTorch's", "aten.fractional_max_pool2d", "aten.fractional_max_pool3d")
