"""Layers: convolutions, pools, norms, attention, embedding bags, resizing, sampling, dropout; their gradients.

Keeps:    a gradient that PyTorch has as an op of its own is the derivative of the row, by this package's rules: one definition.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from ... import _core, _dims, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from ..._transforms import placeholder, substituted
from .elementwise import node
from .indexing import scattered
from .reductions import count_of, fold, mean_of
from .registry import refuse, row
from .shapes import _padded, narrow
from .types import BOOL, F64, I64, as_type, opmath


def gradients(f: Callable[..., Tensor], xs: Sequence[Tensor], cotangent: Tensor, wanted: Sequence[bool] | None = None) -> list[Tensor | None]:
    """The derivatives of f at xs along a cotangent of its result; None for those that nobody wants."""
    graph = current()
    inner = [placeholder(graph, x) for x in xs]
    with graph.transforming(gradients=True):
        out = f(*inner)
    chosen = [i for i in range(len(xs)) if wanted is None or wanted[i]]
    if not chosen:
        return [None] * len(xs)
    _, made = call(graph.core.vjp, [out._in(graph)], [as_type(cotangent, out.dtype)._in(graph)], [inner[i]._in(graph) for i in chosen])
    found = substituted(graph, [of_node(graph, d) for d in made], inner, xs)
    result: list[Tensor | None] = [None] * len(xs)
    for i, g in zip(chosen, found):
        result[i] = g
    return result


def _each(values: Any, n: int) -> list[int]:
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return values * n if len(values) == 1 else values


# ---- convolutions


def _wide(f: Callable[..., Tensor], *xs: Tensor | None) -> Tensor:
    """f of halves in f32, rounded once."""
    t = next(x for x in xs if x is not None).dtype
    return as_type(f(*(None if x is None else as_type(x, opmath(t)) for x in xs)), t)


@row("aten.convolution", "aten._convolution")
def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int, *_: Any) -> Tensor:  # fmt: skip
    n = weight.ndim - 2
    if x.ndim == n + 1:  # without a batch
        made = convolution(_ops.expand_dims(x, 0), weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return _ops.squeeze(made, 0)
    stride, padding, dilation = _each(stride, n), _each(padding, n), _each(dilation, n)
    if transposed:
        return _wide(lambda x, w, b: _ops.make(_core.transposed_convolution, x, w, b, stride, dilation, padding * 2, groups,
                                               _each(output_padding, n)), x, weight, bias)  # fmt: skip
    return _wide(lambda x, w, b: _ops.make(_core.convolution, x, w, b, stride, dilation, padding * 2, groups), x, weight, bias)


@row("aten.convolution_backward")
def _convolution_backward(grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                          transposed: bool, output_padding: Any, groups: int, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    wide = [as_type(v, opmath(v.dtype)) for v in (x, weight)]
    f = lambda x, w: convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)  # noqa: E731
    gx, gw = gradients(f, wide, as_type(grad, wide[0].dtype), mask[:2])
    channels = grad.ndim - weight.ndim + 1
    axes = [d for d in range(grad.ndim) if d != channels]
    gb = as_type(fold("sum", as_type(grad, opmath(grad.dtype)), axes, False), grad.dtype) if mask[2] else None
    return *(None if g is None else as_type(g, grad.dtype) for g in (gx, gw)), gb


# ---- pools


def _batched(x: Tensor, n: int) -> tuple[Tensor, bool]:
    return (_ops.expand_dims(x, 0), True) if x.ndim == n + 1 else (x, False)


def _window(n: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> tuple[list[int], list[int], list[int], list[int]]:
    kernel = _each(kernel, n)
    return kernel, _each(stride, n) if stride not in (None, [], ()) else kernel, _each(dilation, n), _each(padding, n) * 2


def _max_pool(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
        x, alone = _batched(x, n)
        k, s, d, p = _window(n, kernel, stride, padding, dilation)
        values, index = _ops.make_several(_core.max_pool_with_indices, x, k, s, d, p, ceil_mode)
        assert values is not None and index is not None
        index = _ops.remainder(index, as_type(count_of(x, range(2, x.ndim)), I64))  # within the image
        return (_ops.squeeze(values, 0), _ops.squeeze(index, 0)) if alone else (values, index)

    return function


row("aten.max_pool1d_with_indices")(_max_pool(1))
row("aten.max_pool2d_with_indices")(_max_pool(2))
row("aten.max_pool3d_with_indices")(_max_pool(3))
row("aten.max_pool2d")(lambda *a, **k: _max_pool(2)(*a, **k)[0])
row("aten.max_pool1d")(lambda *a, **k: _max_pool(1)(*a, **k)[0])
row("aten.max_pool3d")(lambda *a, **k: _max_pool(3)(*a, **k)[0])


def _max_pool_backward(n: int) -> Callable[..., Tensor]:
    def function(grad: Tensor, x: Tensor, *args: Any) -> Tensor:
        return unpooled(grad, args[-1], x.shape, n)

    return function


def unpooled(values: Tensor, index: Tensor, shape: Any, n: int) -> Tensor:
    """Zeros with values added where their index within the image says."""
    lead, image = tuple(shape[:-n]), 1
    for extent in shape[-n:]:
        image = image * extent
    flat = [_ops.reshape(v, (*lead, count_of(v, range(v.ndim - n, v.ndim)))) for v in (values, index)]
    wide = as_type(flat[0], opmath(values.dtype))
    made = scattered("add", _ops.zeros((*lead, image), dtype=wide.dtype), len(lead), flat[1], wide)
    return as_type(_ops.reshape(made, shape), values.dtype)


row("aten.max_pool2d_with_indices_backward")(_max_pool_backward(2))
row("aten.max_pool3d_with_indices_backward")(_max_pool_backward(3))


def _max_unpool(n: int) -> Callable[..., Tensor]:
    def function(x: Tensor, index: Tensor, size: Sequence[Any], *_: Any) -> Tensor:
        shape = (*x.shape[: x.ndim - n], *size)
        lead = shape[:-n]
        flat = [_ops.reshape(v, (*lead, count_of(v, range(v.ndim - n, v.ndim)))) for v in (x, index)]
        image: Any = 1
        for extent in size:
            image = image * extent
        return _ops.reshape(scattered("set", _ops.zeros((*lead, image), dtype=x.dtype), len(lead), flat[1], flat[0]), shape)

    return function


row("aten.max_unpool2d")(_max_unpool(2))
row("aten.max_unpool3d")(_max_unpool(3))


def _average_pool(n: int) -> Callable[..., Tensor]:
    def function(x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> Tensor:  # fmt: skip
        x, alone = _batched(x, n)
        k, s, d, p = _window(n, kernel, stride, padding)
        if x.dtype.kind != "f":  # the quotient truncates
            made = function(as_type(x, F64), kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
            return as_type(_ops.squeeze(made, 0) if alone else made, x.dtype)

        def f(x: Tensor) -> Tensor:
            if divisor_override:
                # Sums: averages of a window without pads, times its size.
                zero = [(0, 0)] * 2 + [(a, a + (b if ceil_mode else 0)) for a, b in zip(p[:n], s)]
                padded = _padded(x, [v for pair in reversed(zero) for v in pair], 0)
                made = _ops.make(_core.average_pool, padded, k, s, d, [0] * 2 * n, False, False)
                made = _ops.multiply(made, as_type(math.prod(k) / divisor_override, x.dtype))
                return _cut(made, n, [_places(e, a, b, c, ceil_mode) for e, a, b, c in zip(x.shape[2:], k, s, p)])
            return _ops.make(_core.average_pool, x, k, s, d, p, ceil_mode, count_include_pad)

        made = _wide(f, x)
        return _ops.squeeze(made, 0) if alone else made

    return function


def _cut(x: Tensor, n: int, extents: Sequence[Any]) -> Tensor:
    for i, extent in enumerate(extents):
        x = narrow(x, x.ndim - n + i, 0, extent)
    return x


def _places(extent: Any, kernel: int, stride: int, pad: int, ceil_mode: bool) -> Any:
    """How many windows PyTorch's pools have."""
    free = extent + 2 * pad - kernel
    count = (free + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and isinstance(count, int) and (count - 1) * stride >= extent + pad:
        count -= 1
    return count


for _n in (1, 2, 3):
    row(f"aten.avg_pool{_n}d")(_average_pool(_n))


def _average_pool_backward(n: int) -> Callable[..., Tensor]:
    forward = _average_pool(n)

    def function(grad: Tensor, x: Tensor, *args: Any) -> Tensor:
        wide = as_type(x, opmath(x.dtype))
        return as_type(gradients(lambda x: forward(x, *args), [wide], as_type(grad, wide.dtype))[0], x.dtype)

    return function


row("aten.avg_pool2d_backward")(_average_pool_backward(2))
row("aten.avg_pool3d_backward")(_average_pool_backward(3))


def _adaptive_average(n: int) -> Callable[..., Tensor]:
    def function(x: Tensor, size: Any) -> Tensor:
        def f(x: Tensor) -> Tensor:
            for i, out in enumerate(_each(size, n)):
                x = _adaptive_axis(x, x.ndim - n + i, out, n)
            return x

        return _wide(f, x)

    return function


def _bins(extent: int, out: int) -> list[tuple[int, int]]:
    return [(i * extent // out, -(-((i + 1) * extent) // out)) for i in range(out)]


def _adaptive_axis(x: Tensor, axis: int, out: Any, n: int) -> Tensor:
    """Means of parts of an axis, which may overlap: all of one length at once, else bin by bin."""
    extent = x.shape[axis]
    if isinstance(out, int) and out == 1:
        return mean_of(x, [axis])
    if not isinstance(extent, int):
        raise UnsupportedError("an adaptive pool of an image whose extent is not known, to more than one element")
    if out == extent:
        return x
    if out and extent % out == 0:
        shape = (*x.shape[:axis], out, extent // out, *x.shape[axis + 1 :])
        return _ops.squeeze(mean_of(_ops.reshape(x, shape), [axis + 1]), axis + 1)
    parts = [mean_of(narrow(x, axis, a, b - a), [axis]) for a, b in _bins(extent, out)]
    return _ops.concat(parts, axis) if parts else narrow(x, axis, 0, 0)


for _n in (1, 2, 3):
    row(f"aten._adaptive_avg_pool{_n}d" if _n > 1 else "aten.adaptive_avg_pool1d")(_adaptive_average(_n))
row("aten.adaptive_avg_pool2d")(_adaptive_average(2))
row("aten.adaptive_avg_pool3d")(_adaptive_average(3))


def _adaptive_backward(n: int) -> Callable[..., Tensor]:
    def function(grad: Tensor, x: Tensor) -> Tensor:
        wide = as_type(x, opmath(x.dtype))
        size = list(grad.shape[grad.ndim - n :])
        return as_type(gradients(lambda x: _adaptive_average(n)(x, size), [wide], as_type(grad, wide.dtype))[0], x.dtype)

    return function


row("aten._adaptive_avg_pool2d_backward")(_adaptive_backward(2))
row("aten._adaptive_avg_pool3d_backward")(_adaptive_backward(3))


def _adaptive_max(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(x: Tensor, size: Any) -> tuple[Tensor, Tensor]:
        extents = x.shape[x.ndim - n :]
        if any(not isinstance(e, int) for e in extents):
            raise UnsupportedError("an adaptive maximum of an image whose extent is not known")
        index = _ops.broadcast_to(_ops.reshape(_ops.iota(math.prod(extents)), extents), x.shape)
        for i, out in enumerate(_each(size, n)):
            d = x.ndim - n + i
            values, places = [], []
            for a, b in _bins(x.shape[d], out):
                part, where = narrow(x, d, a, b - a), narrow(index, d, a, b - a)
                at = _ops.make(_core.arg_reduce, part, d, True, False)
                values.append(_ops.make(_core.gather_elements, part, at, d))
                places.append(_ops.make(_core.gather_elements, where, at, d))
            x, index = _ops.concat(values, d), _ops.concat(places, d)
        return x, index

    return function


row("aten.adaptive_max_pool1d")(_adaptive_max(1))
row("aten.adaptive_max_pool2d")(_adaptive_max(2))
row("aten.adaptive_max_pool3d")(_adaptive_max(3))
row("aten.adaptive_max_pool2d_backward")(_max_pool_backward(2))
row("aten.adaptive_max_pool3d_backward")(_max_pool_backward(3))


@row("aten.col2im")
def _col2im(x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    x, alone = _batched(x, 1)
    graph, core = current(), current().core
    image = [_dims.size_node(core, n) for n in output_size]
    made = of_node(graph, call(_core.columns_to_image, core, x._in(graph), image, list(kernel_size), list(stride), list(dilation), list(padding) * 2))
    return _ops.squeeze(made, 0) if alone else made


@row("aten.im2col")
def _im2col(x: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    x, alone = _batched(x, 2)
    x = _padded(x, [padding[1], padding[1], padding[0], padding[0]], 0)
    for i in (0, 1):
        x = _ops.op("window", x, ints=[2 + i, kernel_size[i], stride[i], dilation[i]])
    n, c, h, w, kh, kw = x.shape
    made = _ops.reshape(_ops.permute_dims(x, (0, 1, 4, 5, 2, 3)), (n, c * kh * kw, h * w))
    return _ops.squeeze(made, 0) if alone else made


# ---- norms


def _standardized(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """x without its mean, over its deviation; the mean, and one over the deviation."""
    mean = mean_of(x, axes)
    distance = node("sub", x, mean)
    variance = mean_of(node("mul", distance, distance), axes)
    inverse = _ops.rsqrt(node("add", variance, as_type(eps, x.dtype)))
    return node("mul", distance, inverse), mean, inverse


@row("aten.native_layer_norm")
def _native_layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
    wide = as_type(x, opmath(x.dtype))
    axes = list(range(x.ndim - len(shape), x.ndim))
    if weight is not None:
        graph, core = current(), current().core
        b = None if bias is None else as_type(bias, wide.dtype)._in(graph)
        parts = call(_core.layer_norm, core, wide._in(graph), as_type(weight, wide.dtype)._in(graph), b, axes[0], eps)
        value, mean, inverse = (of_node(graph, p) for p in parts)
        return as_type(value, x.dtype), as_type(mean, weight.dtype), as_type(inverse, weight.dtype)
    value, mean, inverse = _standardized(wide, axes, eps)
    value = value if bias is None else node("add", value, as_type(bias, wide.dtype))
    return as_type(value, x.dtype), as_type(mean, x.dtype), as_type(inverse, x.dtype)


@row("aten.layer_norm")
def _layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any) -> Tensor:
    return _native_layer_norm(x, shape, weight, bias, eps)[0]


@row("aten.native_layer_norm_backward")
def _layer_norm_backward(grad: Tensor, x: Tensor, shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
                         bias: Tensor | None, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    wide = opmath(x.dtype)
    axes = list(range(x.ndim - len(shape), x.ndim))
    outer = list(range(x.ndim - len(shape)))
    g, mean, rstd = as_type(grad, wide), as_type(mean, wide), as_type(rstd, wide)
    standard = node("mul", node("sub", as_type(x, wide), mean), rstd)
    gx = gw = gb = None
    if mask[0]:
        gs = g if weight is None else node("mul", g, as_type(weight, wide))
        inner = node("sub", node("sub", gs, mean_of(gs, axes)), node("mul", standard, mean_of(node("mul", gs, standard), axes)))
        gx = as_type(node("mul", inner, rstd), x.dtype)
    if mask[1] and weight is not None:
        gw = as_type(fold("sum", node("mul", g, standard), outer, False), weight.dtype)
    if mask[2] and bias is not None:
        gb = as_type(fold("sum", g, outer, False), bias.dtype)
    return gx, gw, gb


def _grouped(x: Tensor, n: Any, c: Any, group: int) -> Tensor:
    return _ops.reshape(x, (n, group, (c // group) * count_of(x, range(2, x.ndim))))


@row("aten.native_group_norm")
def _native_group_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, n: Any, c: Any, hxw: Any, group: int, eps: float) -> tuple[Tensor, ...]:
    wide = as_type(x, opmath(x.dtype))
    value, mean, inverse = _standardized(_grouped(wide, n, c, group), [2], eps)
    value = _ops.reshape(value, x.shape)
    column = (1, -1) + (1,) * (x.ndim - 2)
    if weight is not None:
        value = node("mul", value, _ops.reshape(as_type(weight, wide.dtype), column))
    if bias is not None:
        value = node("add", value, _ops.reshape(as_type(bias, wide.dtype), column))
    # PyTorch gives its statistics in the type of x unless the weights are wider
    t = x.dtype if weight is None else weight.dtype
    return as_type(value, x.dtype), as_type(_ops.squeeze(mean, 2), t), as_type(_ops.squeeze(inverse, 2), t)


@row("aten.native_group_norm_backward")
def _group_norm_backward(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, n: Any, c: Any, hxw: Any,
                         group: int, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    wide = opmath(x.dtype)
    g, xs = as_type(grad, wide), as_type(x, wide)
    column = (1, c) + (1,) * (x.ndim - 2)
    mean, rstd = (_ops.expand_dims(as_type(v, wide), 2) for v in (mean, rstd))
    standard = node("mul", node("sub", _grouped(xs, n, c, group), mean), rstd)
    gx = gw = gb = None
    axes = [d for d in range(x.ndim) if d != 1]
    if mask[0]:
        gs = g if weight is None else node("mul", g, _ops.reshape(as_type(weight, wide), column))
        gs = _grouped(gs, n, c, group)
        inner = node("sub", node("sub", gs, mean_of(gs, [2])), node("mul", standard, mean_of(node("mul", gs, standard), [2])))
        gx = as_type(_ops.reshape(node("mul", inner, rstd), x.shape), x.dtype)
    if mask[1]:
        gw = as_type(fold("sum", node("mul", g, _ops.reshape(standard, x.shape)), axes, False), x.dtype if weight is None else weight.dtype)
    if mask[2]:
        gb = as_type(fold("sum", g, axes, False), x.dtype if weight is None else weight.dtype)
    return gx, gw, gb


def _channels(v: Tensor, rank: int, t: Any) -> Tensor:
    return _ops.reshape(as_type(v, t), (1, -1) + (1,) * (rank - 2))


def _scaled(value: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        value = node("mul", value, _channels(weight, value.ndim, value.dtype))
    return value if bias is None else node("add", value, _channels(bias, value.ndim, value.dtype))


def _empty(t: Any) -> Tensor:
    return _ops.zeros((0,), dtype=t)


def _batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, variance: Tensor | None, training: bool,
                momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The value, the mean and one over the deviation that were taken, and the next running statistics."""
    wide, own = as_type(x, opmath(x.dtype)), x.dtype if weight is None else weight.dtype
    if not training:
        assert mean is not None and variance is not None
        if weight is not None and bias is not None and all(v.dtype is wide.dtype for v in (weight, bias, mean, variance)):
            graph = current()
            parts = call(_core.batch_norm, graph.core, *(v._in(graph) for v in (wide, weight, bias, mean, variance)), eps, False)
            return as_type(of_node(graph, parts[0]), x.dtype), _empty(own), _empty(own), mean, variance
        scale = _ops.rsqrt(node("add", as_type(variance, wide.dtype), as_type(eps, wide.dtype)))
        value = node("mul", node("sub", wide, _channels(mean, x.ndim, wide.dtype)), _channels(scale, x.ndim, wide.dtype))
        return as_type(_scaled(value, weight, bias), x.dtype), _empty(own), _empty(own), mean, variance
    axes = [d for d in range(x.ndim) if d != 1]
    taken = mean_of(wide, axes)
    distance = node("sub", wide, taken)
    spread = mean_of(node("mul", distance, distance), axes)
    inverse = _ops.rsqrt(node("add", spread, as_type(eps, wide.dtype)))
    value = _scaled(node("mul", distance, inverse), weight, bias)
    count = as_type(count_of(x, axes), wide.dtype)
    sample = node("mul", spread, node("div", count, node("sub", count, as_type(1, wide.dtype))))
    flat = lambda v: _ops.squeeze(v, axes)  # noqa: E731

    def running(old: Tensor | None, now: Tensor) -> Tensor | None:
        if old is None:
            return None
        part = _ops.multiply(flat(now), as_type(momentum, wide.dtype))
        return as_type(node("add", part, node("mul", as_type(old, wide.dtype), as_type(1 - momentum, wide.dtype))), old.dtype)

    kept = as_type(flat(taken), own), as_type(flat(inverse), own)
    return as_type(value, x.dtype), *kept, running(mean, taken), running(variance, sample)


@row("aten._native_batch_norm_legit_no_training")
def _batch_norm_inference(x: Tensor, weight: Any, bias: Any, mean: Tensor, variance: Tensor, momentum: float, eps: float) -> tuple[Tensor, ...]:
    return _batch_norm(x, weight, bias, mean, variance, False, momentum, eps)[:3]


@row("aten._native_batch_norm_legit.no_stats")
def _batch_norm_alone(x: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> tuple[Tensor, ...]:
    return _batch_norm(x, weight, bias, None, None, True, momentum, eps)[:3]


@row("aten._native_batch_norm_legit", "aten.native_batch_norm")
def _batch_norm_legit(x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float) -> tuple[Tensor, ...]:
    return _batch_norm(x, weight, bias, mean, variance, training, momentum, eps)[:3]


@row("aten._native_batch_norm_legit_functional")
def _batch_norm_functional(x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float) -> tuple[Any, ...]:
    return _batch_norm(x, weight, bias, mean, variance, training, momentum, eps)


@row("aten._batch_norm_with_update_functional")
def _batch_norm_with_update(x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> tuple[Any, ...]:
    value, m, i, next_mean, next_variance = _batch_norm(x, weight, bias, mean, variance, True, momentum, eps)
    return value, m, i, _ops.zeros((0,), dtype="uint8"), next_mean, next_variance


@row("aten._batch_norm_no_update")
def _batch_norm_no_update(x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> tuple[Any, ...]:
    return *_batch_norm(x, weight, bias, mean, variance, False, momentum, eps)[:3], _ops.zeros((0,), dtype="uint8")


@row("aten.native_batch_norm_backward")
def _batch_norm_backward(grad: Tensor, x: Tensor, weight: Any, mean: Any, variance: Any, saved_mean: Any, saved_inverse: Any, train: bool,
                         eps: float, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    wide = opmath(x.dtype)
    axes = [d for d in range(x.ndim) if d != 1]
    g = as_type(grad, wide)
    if train:
        middle, inverse = _channels(saved_mean, x.ndim, wide), _channels(saved_inverse, x.ndim, wide)
    else:
        middle = _channels(mean, x.ndim, wide)
        inverse = _ops.rsqrt(node("add", _channels(variance, x.ndim, wide), as_type(eps, wide)))
    standard = node("mul", node("sub", as_type(x, wide), middle), inverse)
    gx = gw = gb = None
    if mask[0]:
        gs = g if weight is None else node("mul", g, _channels(weight, x.ndim, wide))
        if train:
            gs = node("sub", node("sub", gs, mean_of(gs, axes)), node("mul", standard, mean_of(node("mul", gs, standard), axes)))
        gx = as_type(node("mul", gs, inverse), x.dtype)
    if mask[1]:
        gw = as_type(fold("sum", node("mul", g, standard), axes, False), x.dtype if weight is None else weight.dtype)
    if mask[2]:
        gb = as_type(fold("sum", g, axes, False), x.dtype if weight is None else weight.dtype)
    return gx, gw, gb


@row("aten.rms_norm", "aten._fused_rms_norm")
def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Any:
    import torch

    from .types import torch_type

    wide = as_type(x, opmath(x.dtype))
    axes = list(range(x.ndim - len(shape), x.ndim))
    guard = torch.finfo(torch_type(wide.dtype)).eps if eps is None else eps
    inverse = _ops.rsqrt(node("add", mean_of(node("mul", wide, wide), axes), as_type(guard, wide.dtype)))
    made = node("mul", wide, inverse)
    if weight is not None:
        made = node("mul", made, as_type(weight, wide.dtype))
    return as_type(made, x.dtype), inverse


# ---- attention


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None, grouped: bool = False) -> Tensor:
    rank = q.ndim
    if grouped and q.shape[-3] != k.shape[-3]:
        from .shapes import _repeat_interleave

        k, v = (_repeat_interleave(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    if mask is not None and mask.dtype.kind != "b":
        mask = as_type(mask, q.dtype)
    lead = q.shape[:-2]
    four = lambda t: _ops.reshape(t, (1,) * (4 - rank) + tuple(t.shape)) if rank < 4 else t  # noqa: E731
    if rank > 4:
        raise UnsupportedError("attention of more than four axes")
    if mask is not None and mask.ndim < 2:
        mask = _ops.broadcast_to(mask, (q.shape[-2], k.shape[-2]))
    made = _ops.make(_core.attention, four(q), four(k), four(v), mask, causal, scale, 0.0)
    return _ops.reshape(made, (*lead, *made.shape[-2:])) if rank < 4 else made


@row("aten.scaled_dot_product_attention")
def _sdpa(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
          scale: float | None = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    return _attention(q, k, v, attn_mask, is_causal, scale, enable_gqa)


@row("aten._scaled_dot_product_flash_attention_for_cpu")
def _sdpa_cpu(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
              scale: float | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    wide = opmath(q.dtype)
    size = q.shape[-1]
    factor = as_type(1 / math.sqrt(size) if scale is None else scale, wide)
    scores = node("mul", _ops.matmul(as_type(q, wide), _ops.matrix_transpose(as_type(k, wide))), factor)
    if is_causal:
        down, along = _ops.expand_dims(_ops.iota(q.shape[-2]), 1), _ops.expand_dims(_ops.iota(k.shape[-2]), 0)
        scores = _ops.where(_ops.greater_equal(down, along), scores, -math.inf)
    if attn_mask is not None:
        scores = _ops.where(attn_mask, scores, -math.inf) if attn_mask.dtype.kind == "b" else node("add", scores, as_type(attn_mask, wide))
    return _attention(q, k, v, attn_mask, is_causal, scale), fold("logsumexp", scores, [scores.ndim - 1], False)


@row("aten._scaled_dot_product_flash_attention_for_cpu_backward")
def _sdpa_cpu_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float, is_causal: bool, *,
                       attn_mask: Tensor | None = None, scale: float | None = None) -> tuple[Any, ...]:  # fmt: skip
    wide = [as_type(t, opmath(q.dtype)) for t in (q, k, v)]
    made = gradients(lambda q, k, v: _attention(q, k, v, attn_mask, is_causal, scale), wide, as_type(grad, wide[0].dtype))
    return tuple(as_type(g, q.dtype) for g in made)


# ---- embedding bags


@row("aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                   per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Tensor, ...]:  # fmt: skip
    n = indices.shape[0]
    indices, offsets = as_type(indices, I64), as_type(offsets, I64)
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    bag = _bag_of(offsets, bags, n)
    picked = _ops.make(_core.gather, weight, indices, 0)
    counted = _ops.ones((n,), dtype=BOOL) if padding_idx < 0 else _ops.not_equal(indices, padding_idx)
    if per_sample_weights is not None:
        picked = _ops.multiply(picked, _ops.expand_dims(per_sample_weights, 1))
    size = weight.shape[1]
    place = _ops.expand_dims(_ops.where(counted, bag, bags), 1)  # outside: not written
    sizes = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags,), dtype=I64), place, _ops.ones((n,), dtype=I64))
    empty = _ops.expand_dims(_ops.equal(sizes, 0), 1)
    if mode == 2:
        low = _ops.broadcast_to(as_type(-math.inf, weight.dtype), (bags, size))
        made = _ops.make(_core.scatter_tuples, "max", low, place, picked)
        made = _ops.where(empty, 0, made)
        # Where the maximum comes from: the first element of the bag that reaches it.
        reached = node("eq", picked, _ops.make(_core.gather, made, bag, 0))
        places = _ops.where(reached, _ops.expand_dims(_ops.iota(n), 1), n)
        first = _ops.make(_core.scatter_tuples, "min", _ops.broadcast_to(as_type(n, I64), (bags, size)), place, places)
        rows_of = _ops.make(_core.gather, indices, first, 0)  # of an empty bag: outside, 0
        return made, bag, sizes, rows_of
    else:
        made = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags, size), dtype=opmath(weight.dtype)), place, as_type(picked, opmath(weight.dtype)))
        if mode == 1:
            made = _ops.divide(made, _ops.astype(_ops.expand_dims(_ops.maximum(sizes, 1), 1), made.dtype))
        made = as_type(made, weight.dtype)
    return made, bag, sizes, _ops.zeros((bags,), dtype=I64)


def _bag_of(offsets: Tensor, bags: Any, n: Any) -> Tensor:
    """The bag of each of n elements: how many begin at it or before, less one."""
    begun = _ops.less_equal(_ops.expand_dims(narrow(as_type(offsets, I64), 0, 0, bags), 1), _ops.expand_dims(_ops.iota(n), 0))
    return _ops.subtract(fold("sum", as_type(begun, I64), [0], False), 1)


@row("aten._embedding_bag_backward")
def _embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                            num_weights: Any, by_frequency: bool, mode: int, sparse: bool, weights: Tensor | None,
                            padding: int = -1) -> Tensor:  # fmt: skip
    wide, bags, n = opmath(grad.dtype), grad.shape[0], indices.shape[0]
    if mode == 2:
        filled = _ops.expand_dims(_ops.greater(bag_size, 0), 1)
        given = _ops.where(filled, as_type(grad, wide), as_type(0, wide))
        return as_type(scattered("add", _ops.zeros((num_weights, grad.shape[1]), dtype=wide), 0, maximum_indices, given), grad.dtype)
    bag = _bag_of(offsets, bags, n)
    rows_ = _ops.make(_core.gather, as_type(grad, wide), bag, 0)
    if mode == 1:
        counted = as_type(_ops.not_equal(indices, padding), I64)
        sizes = _ops.make(_core.scatter_tuples, "add", _ops.zeros((bags,), dtype=I64), _ops.expand_dims(bag, 1), counted)
        rows_ = _ops.divide(rows_, _ops.expand_dims(as_type(_ops.maximum(_ops.make(_core.gather, sizes, bag, 0), 1), wide), 1))
    if weights is not None:
        rows_ = _ops.multiply(rows_, _ops.expand_dims(as_type(weights, wide), 1))
    from .indexing import _embedding_backward

    return as_type(_embedding_backward(rows_, indices, num_weights, padding, by_frequency), grad.dtype)


@row("aten._embedding_bag_per_sample_weights_backward")
def _embedding_bag_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
                                    padding: int = -1) -> Tensor:  # fmt: skip
    bag = _bag_of(offsets, grad.shape[0], indices.shape[0])
    product = _ops.multiply(_ops.make(_core.gather, grad, bag, 0), _ops.make(_core.gather, weight, indices, 0))
    made = fold("sum", as_type(product, opmath(grad.dtype)), [1], False)
    if padding >= 0:
        made = _ops.where(_ops.equal(indices, padding), 0, made)
    return as_type(made, grad.dtype)


# ---- resizing and sampling


def _resize(x: Tensor, size: Any, scales: Any, mode: str, corners: bool, rounding: str = "floor", coordinates: str | None = None) -> Tensor:
    graph, core = current(), current().core
    n = x.ndim - 2
    axes = list(range(2, x.ndim))
    given = None if scales is None or any(s is None for s in scales) else [float(s) for s in scales]
    if size is None:
        size = [math.floor(e * s) for e, s in zip(x.shape[2:], given or [])]
    whole = given is not None and all(isinstance(e, int) and e * s == out for e, s, out in zip(x.shape[2:], given, size))
    use = None if given is None or whole or corners else given
    if use is not None and any(math.floor(e * s) != out for e, s, out in zip(x.shape[2:], use, size)):
        raise UnsupportedError("a resize whose sizes are not those of its scales")
    coordinates = "align_corners" if corners else coordinates or "half_pixel"
    nodes = [_dims.size_node(core, e) for e in size]

    def f(x: Tensor) -> Tensor:
        return of_node(graph, call(_core.resize_as, core, x._in(graph), axes[:n], nodes, use, mode, coordinates, rounding, False, -0.75))

    return _wide(f, x) if x.dtype.kind == "f" else f(x)


def _upsample(name: str, n: int, mode: str, coordinates: str | None = None, rounding: str = "floor") -> None:
    takes_corners = mode != "nearest"

    def function(x: Tensor, size: Any, *args: Any) -> Tensor:
        rest = list(args)
        corners = rest.pop(0) if takes_corners else False
        scales = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest if len(rest) == n else None
        return _resize(x, size, scales, mode, bool(corners), rounding, coordinates)

    def backward(grad: Tensor, size: Any, input_size: Sequence[Any], *args: Any) -> Tensor:
        x = _ops.zeros(input_size, dtype=opmath(grad.dtype))
        return as_type(gradients(lambda x: function(x, size, *args), [x], as_type(grad, x.dtype))[0], grad.dtype)

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
    return _wide(lambda x, grid: _ops.make(_core.grid_sample, x, grid, mode, outside, corners), x, grid)


row("aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.grid_sampler")(_grid_sampler)


@row("aten.grid_sampler_2d_backward", "aten.grid_sampler_3d_backward")
def _grid_sampler_backward(grad: Tensor, x: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool, mask: Sequence[bool]) -> tuple[Any, ...]:
    wide = [as_type(v, opmath(v.dtype)) for v in (x, grid)]
    made = gradients(lambda x, g: _grid_sampler(x, g, interpolation, padding, corners), wide, as_type(grad, wide[0].dtype), mask)
    return tuple(None if g is None else as_type(g, x.dtype) for g in made)


@row("aten.pixel_shuffle")
def _pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    *lead, c, h, w = x.shape
    made = _ops.reshape(x, (*lead, c // factor**2, factor, factor, h, w))
    n = len(lead)
    made = _ops.permute_dims(made, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _ops.reshape(made, (*lead, c // factor**2, h * factor, w * factor))


@row("aten.pixel_unshuffle")
def _pixel_unshuffle(x: Tensor, factor: int) -> Tensor:
    *lead, c, h, w = x.shape
    made = _ops.reshape(x, (*lead, c, h // factor, factor, w // factor, factor))
    n = len(lead)
    made = _ops.permute_dims(made, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _ops.reshape(made, (*lead, c * factor**2, h // factor, w // factor))


@row("aten.channel_shuffle", "aten.native_channel_shuffle")
def _channel_shuffle(x: Tensor, groups: int) -> Tensor:
    n, c, *rest = x.shape
    return _ops.reshape(_ops.swapaxes(_ops.reshape(x, (n, groups, c // groups, *rest)), 1, 2), x.shape)


refuse("it is a sparse or quantized tensor's", "aten.sparse_coo_tensor", "aten._sparse_mm", "aten.quantize_per_tensor")
