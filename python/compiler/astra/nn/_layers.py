"""Layers: PyTorch's definitions and names of parameters (torch.nn, 2.15), so that its state dicts load by name.

Shapes are PyTorch's: batches in front, channels behind them: [N, C, ...].
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core, _dims, _dtypes, _ops
from .._graph import current
from .._errors import ArgumentError, ShapeError
from .._tensor import Tensor, asarray
from ._module import Module, context, parameter

_EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
_WEIGHT = "kaiming_uniform(a=2.23606797749979)"  # as torch.nn: evenly within 1 / sqrt(inputs)


def _bias(inputs: int) -> str:
    bound = 1 / math.sqrt(inputs) if inputs else 0.0
    return f"uniform(low={-bound!r}, high={bound!r})" if bound else "constant(value=0)"


def _tuple(value: Any, n: int) -> tuple[int, ...]:
    return (int(value),) * n if isinstance(value, int) else tuple(int(v) for v in value)


def _last_axes(x: Tensor, extents: tuple[int, ...]) -> Tensor:
    if tuple(x.shape[x.ndim - len(extents) :]) != extents:
        raise ShapeError(f"the last axes have the extents {tuple(x.shape[-len(extents):])}; the layer is for {extents}")
    return x


def _channels(x: Tensor, count: int, least: int = 2) -> Tensor:
    if x.ndim < least or x.shape[1] != count:
        raise ShapeError(f"the layer is for [N, {count}, ...] of {least} axes or more, not for {tuple(x.shape)}")
    return x


class Linear(Module):
    """y = x W^T + b of x [..., in_features]: [..., out_features]. weight [out, in], bias [out]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = "float32") -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter((out_features, in_features), dtype)
        self.bias = parameter((out_features,), dtype) if bias else None

    def recipe(self, name: str) -> str | None:
        return _WEIGHT if name == "weight" else _bias(self.in_features)

    def __call__(self, x: Any) -> Tensor:
        y = _ops.matmul(x, _ops.swapaxes(self.weight, 0, 1))
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """Rows of weight [num_embeddings, embedding_dim] by numbers of any shape: [..., embedding_dim]. A number outside reads zeros.
    padding_idx: the number whose row gets no gradient; it is zeros at first in PyTorch, here what the weight has there."""

    _initial = {"weight": "normal"}

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: Any = "float32") -> None:
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ArgumentError(f"padding_idx is {padding_idx}; there are {num_embeddings} rows")
            self.padding_idx = padding_idx % num_embeddings
        self.weight = parameter((num_embeddings, embedding_dim), dtype)

    def __call__(self, x: Any) -> Tensor:
        x = asarray(x)
        y = _ops.take(self.weight, x, axis=0)
        if self.padding_idx is None:
            return y
        return _ops.where(_ops.expand_dims(_ops.equal(x, self.padding_idx), -1), _ops.stop_gradient(y), y)


def _batched(x: Any, rank: int) -> tuple[Tensor, bool]:
    """x with a batch axis, and whether it had none."""
    t = asarray(x)
    return (_ops.expand_dims(t, 0), True) if t.ndim == rank - 1 else (t, False)


_PADDING_MODES = {"zeros": None, "reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # PyTorch's names, and those of pad


class _Conv(Module):
    _axes = 0

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", dtype: Any = "float32") -> None:  # fmt: skip
        n = self._axes
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = _tuple(kernel_size, n), _tuple(stride, n), _tuple(dilation, n)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, n)
        if padding_mode not in _PADDING_MODES:
            raise ArgumentError(f"padding_mode is one of {', '.join(_PADDING_MODES)}, not {padding_mode!r}")
        self.padding_mode = padding_mode
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(f"{groups} groups divide neither {in_channels} nor {out_channels} channels evenly")
        self.weight = parameter((out_channels, in_channels // groups, *self.kernel_size), dtype)
        self.bias = parameter((out_channels,), dtype) if bias else None

    def recipe(self, name: str) -> str | None:
        return _WEIGHT if name == "weight" else _bias(self.in_channels // self.groups * math.prod(self.kernel_size))

    def __call__(self, x: Any) -> Tensor:
        pads: Any = {"same": "same_upper", "valid": "valid"}.get(self.padding) if isinstance(self.padding, str) else list(self.padding) * 2
        if pads is None:
            raise ArgumentError(f"padding is numbers, 'same' or 'valid', not '{self.padding}'")
        t, single = _batched(x, self._axes + 2)
        mode = _PADDING_MODES[self.padding_mode]
        if mode is not None and pads != "valid":
            if isinstance(pads, str):  # the odd element is above
                whole = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
                pads = [w // 2 for w in whole] + [w - w // 2 for w in whole]
            t = _ops.pad(t, [(0, 0), (0, 0), *zip(pads[: self._axes], pads[self._axes :])], mode)
            pads = [0] * 2 * self._axes
        y = _ops.make(_core.convolution, t, self.weight, self.bias, list(self.stride), list(self.dilation), pads, self.groups)
        return _ops.squeeze(y, 0) if single else y


class Conv1d(_Conv):
    """A convolution of x [N, C, L], or without N, with weight [out, C / groups, K]. padding: zeros on both sides, or "same", "valid"; padding_mode: what is
    there instead of zeros, "reflect", "replicate" or "circular"."""

    _axes = 1


class Conv2d(_Conv):
    """A convolution of x [N, C, H, W], or without N, with weight [out, C / groups, K, K]. padding: zeros on both sides, or "same", "valid"; padding_mode: what is
    there instead of zeros, "reflect", "replicate" or "circular"."""

    _axes = 2


class Conv3d(_Conv):
    """A convolution of x [N, C, D, H, W], or without N, with weight [out, C / groups, K, K, K]. padding: zeros on both sides, or "same", "valid"; padding_mode: what is
    there instead of zeros, "reflect", "replicate" or "circular"."""

    _axes = 3


class _ConvTranspose(Module):
    _axes = 0

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, dtype: Any = "float32") -> None:  # fmt: skip
        n = self._axes
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = _tuple(kernel_size, n), _tuple(stride, n), _tuple(dilation, n)
        self.padding, self.output_padding = _tuple(padding, n), _tuple(output_padding, n)
        self.weight = parameter((in_channels, out_channels // groups, *self.kernel_size), dtype)
        self.bias = parameter((out_channels,), dtype) if bias else None

    def recipe(self, name: str) -> str | None:
        return _WEIGHT if name == "weight" else _bias(self.out_channels // self.groups * math.prod(self.kernel_size))

    def __call__(self, x: Any) -> Tensor:
        t, single = _batched(x, self._axes + 2)
        y = _ops.make(_core.transposed_convolution, t, self.weight, self.bias, list(self.stride), list(self.dilation),
                      list(self.padding) * 2, self.groups, list(self.output_padding))  # fmt: skip
        return _ops.squeeze(y, 0) if single else y


class ConvTranspose1d(_ConvTranspose):
    """The gradient of Conv1d by its input as a layer: x [N, C, L], weight [C, out / groups, K]."""

    _axes = 1


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d by its input as a layer: x [N, C, H, W], weight [C, out / groups, K, K]."""

    _axes = 2


class ConvTranspose3d(_ConvTranspose):
    """The gradient of Conv3d by its input as a layer: x [N, C, D, H, W], weight [C, out / groups, K, K, K]."""

    _axes = 3


class _Pool(Module):
    _axes = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:  # fmt: skip
        n = self._axes
        self.kernel_size = _tuple(kernel_size, n)
        self.stride = self.kernel_size if stride is None else _tuple(stride, n)
        self.padding, self.dilation = _tuple(padding, n), _tuple(dilation, n)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad


class _MaxPool(_Pool):
    def __call__(self, x: Any) -> Tensor:
        return _ops.make(_core.max_pool, asarray(x), list(self.kernel_size), list(self.stride), list(self.dilation),
                         list(self.padding) * 2, self.ceil_mode)  # fmt: skip


class _AvgPool(_Pool):
    def __call__(self, x: Any) -> Tensor:
        return _ops.make(_core.average_pool, asarray(x), list(self.kernel_size), list(self.stride), list(self.dilation),
                         list(self.padding) * 2, self.ceil_mode, self.count_include_pad)  # fmt: skip


class MaxPool1d(_MaxPool):
    """The greatest element of each window of x [N, C, L]."""

    _axes = 1


class MaxPool2d(_MaxPool):
    """The greatest element of each window of x [N, C, H, W]."""

    _axes = 2


class MaxPool3d(_MaxPool):
    """The greatest element of each window of x [N, C, D, H, W]."""

    _axes = 3


class AvgPool1d(_AvgPool):
    """The mean of each window of x [N, C, L]."""

    _axes = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of x [N, C, H, W]."""

    _axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of x [N, C, D, H, W]."""

    _axes = 3


class GlobalAvgPool(Module):
    """The mean over all places of x [N, C, ...]: [N, C]."""

    def __call__(self, x: Any) -> Tensor:
        x = asarray(x)
        return _ops.mean(x, axis=tuple(range(2, x.ndim)))


class Upsample(Module):
    """x [N, C, ...] with axes of other extents: PyTorch's. size: the extents, or scale_factor: what they are multiplied by, rounded down.
    mode: "nearest" (the element at floor(i / scale)), "nearest-exact" (at the centre), or with weights "linear" (one axis), "bilinear"
    (two), "trilinear" (three), "bicubic" (two, Keys' kernel with -0.75). align_corners: the first and last elements are the input's."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> None:
        if (size is None) == (scale_factor is None):
            raise ArgumentError("Upsample takes a size or a scale_factor")
        if mode not in _UPSAMPLE:
            raise ArgumentError(f"the mode is one of {', '.join(_UPSAMPLE)}, not {mode!r}")
        if align_corners is not None and mode.startswith("nearest"):
            raise ArgumentError(f"align_corners is not of the mode '{mode}'")
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, bool(align_corners)

    def __call__(self, x: Any) -> Tensor:
        t = asarray(x)
        n = t.ndim - 2
        axes, kind, coordinates, rounding = _UPSAMPLE[self.mode]
        if n < 1 or axes not in (0, n):
            raise ShapeError(f"Upsample of mode '{self.mode}' takes x [N, C, {'one axis or more' if not axes else f'{axes} axes'}]; it has shape {t.shape}")
        given = self.size if self.size is not None else self.scale_factor
        each = tuple(given) if isinstance(given, (tuple, list)) else (given,) * n
        if len(each) != n:
            raise ShapeError(f"Upsample is given {len(each)} numbers for {n} axes")
        extents = t.shape[2:]
        scales = None if self.size is not None or self.align_corners else [float(s) for s in each]
        sizes = list(each) if self.size is not None else [e * int(s) if float(s).is_integer() else math.floor(e * s) for e, s in zip(extents, each)]
        if scales is not None and all(s.is_integer() for s in scales):
            scales = None
        coordinates = "align_corners" if self.align_corners else coordinates
        wide = _ops.astype(t, "float32") if t.dtype.code in ("f16", "bf16") else t
        core = current().core
        nodes = [_dims.size_node(core, s) for s in sizes]
        y = _ops.make(_core.resize, wide, list(range(2, t.ndim)), nodes, scales, kind, coordinates, rounding, False, -0.75)
        return _ops.astype(y, t.dtype)


# mode -> how many axes (0: any), kind, where elements are, how nearest rounds
_UPSAMPLE = {"nearest": (0, "nearest", "asymmetric", "floor"), "nearest-exact": (0, "nearest", "half_pixel", "prefer_ceil"),
             "linear": (1, "linear", "half_pixel", "floor"), "bilinear": (2, "linear", "half_pixel", "floor"),
             "trilinear": (3, "linear", "half_pixel", "floor"), "bicubic": (2, "cubic", "half_pixel", "floor")}  # fmt: skip


class Flatten(Module):
    """x [N, ...] as [N, elements]."""

    def __init__(self, start_dim: int = 1) -> None:
        self.start_dim = start_dim

    def __call__(self, x: Any) -> Tensor:
        x = asarray(x)
        return _ops.reshape(x, (*x.shape[: self.start_dim], math.prod(x.shape[self.start_dim :])))


class _BatchNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel of x [N, C, ...]. In training (`astra.nn.apply`) by the
    statistics of the batch, of which running ones are kept: running * (1 - momentum) + batch * momentum; otherwise by the running ones.
    affine=False: no weight and bias; track_running_stats=False: the batch's statistics always."""

    _buffers = ("running_mean", "running_var", "num_batches_tracked")
    _initial = {"weight": "constant(value=1)", "bias": "constant(value=0)"}

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True,
                 dtype: Any = "float32") -> None:  # fmt: skip
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight, self.bias = (parameter((num_features,), dtype) if affine else None for _ in range(2))
        tracked = track_running_stats
        self.running_mean = _ops.zeros((num_features,), dtype=dtype) if tracked else None
        self.running_var = _ops.ones((num_features,), dtype=dtype) if tracked else None
        self.num_batches_tracked = _ops.zeros((), dtype="int64") if tracked else None

    def __call__(self, x: Any) -> Tensor:
        x, training = _channels(asarray(x), self.num_features), context().training
        tracked = self.running_mean is not None
        by_batch = training or not tracked
        given = (None, None) if by_batch else (self.running_mean, self.running_var)
        weight, bias = self.weight, self.bias
        if weight is None:
            weight, bias = _ops.ones((self.num_features,), dtype=x.dtype), _ops.zeros((self.num_features,), dtype=x.dtype)
        value, mean, _, _, unbiased = _ops.make_several(_core.batch_norm, x, weight, bias, *given, float(self.eps), by_batch)
        if training and tracked:
            keep = 1 - self.momentum
            self.running_mean = _ops.make(_core.moving_average, self.running_mean, _ops.astype(mean, self.running_mean.dtype), keep)
            self.running_var = _ops.make(_core.moving_average, self.running_var, _ops.astype(unbiased, self.running_var.dtype), keep)
            self.num_batches_tracked = self.num_batches_tracked + 1
        assert value is not None
        return value


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axes, which have the extents `normalized_shape`."""

    _initial = {"weight": "constant(value=1)", "bias": "constant(value=0)"}

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 dtype: Any = "float32") -> None:  # fmt: skip
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = parameter(self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = parameter(self.normalized_shape, dtype) if elementwise_affine and bias else None

    def __call__(self, x: Any) -> Tensor:
        x = _last_axes(asarray(x), self.normalized_shape)
        return _ops.make_all(_core.layer_norm, x, self.weight, self.bias, -len(self.normalized_shape), float(self.eps))[0]


class RMSNorm(Module):
    """x / sqrt(mean of squares + eps) * weight over the last axes, which have the extents `normalized_shape`. eps: that of the type unless
    given."""

    _initial = {"weight": "constant(value=1)"}

    def __init__(self, normalized_shape: Any, eps: float | None = None, dtype: Any = "float32") -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = _EPSILON[_dtypes.dtype(dtype).code] if eps is None else eps
        self.weight = parameter(self.normalized_shape, dtype)

    def __call__(self, x: Any) -> Tensor:
        x = _last_axes(asarray(x), self.normalized_shape)
        return _ops.make_all(_core.rms_norm, x, self.weight, -len(self.normalized_shape), float(self.eps))[0]


class GroupNorm(Module):
    """A norm over each of `num_groups` groups of channels of x [N, C, ...]; weight and bias [C]."""

    _initial = {"weight": "constant(value=1)", "bias": "constant(value=0)"}

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, dtype: Any = "float32") -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight, self.bias = parameter((num_channels,), dtype), parameter((num_channels,), dtype)

    def __call__(self, x: Any) -> Tensor:
        x = _channels(asarray(x), self.num_channels)
        return _ops.make_all(_core.group_norm, x, self.weight, self.bias, self.num_groups, float(self.eps))[0]


class _InstanceNorm(Module):
    """A norm of each channel of each image by its own statistics, x [N, C, ...]. affine: weight and bias [C]."""

    _initial = {"weight": "constant(value=1)", "bias": "constant(value=0)"}

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = False, dtype: Any = "float32") -> None:
        self.num_features, self.eps = num_features, eps
        self.weight = parameter((num_features,), dtype) if affine else None
        self.bias = parameter((num_features,), dtype) if affine else None

    def __call__(self, x: Any) -> Tensor:
        return _ops.make(_core.instance_norm, asarray(x), self.weight, self.bias, float(self.eps))


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__


class Dropout(Module):
    """In training (`astra.nn.apply(..., key=...)`) x / (1 - p) where a random number is not below p, else 0; otherwise x."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p < 1:
            raise ArgumentError(f"p is at least 0 and below 1, not {p}")
        self.p = float(p)

    def __call__(self, x: Any) -> Tensor:
        x, run = asarray(x), context()
        if not run.training or not self.p:
            return x
        return _ops.make_all(_core.dropout, *run.stream(), x, self.p)[0]


class PReLU(Module):
    """x, times weight where it is not above 0. weight [num_parameters]: one, or one for each channel."""

    _initial = {"weight": "constant(value=0.25)"}

    def __init__(self, num_parameters: int = 1, dtype: Any = "float32") -> None:
        self.weight = parameter((num_parameters,), dtype)

    def __call__(self, x: Any) -> Tensor:
        x, slope = asarray(x), self.weight
        if slope.shape[0] != 1:
            slope = _ops.reshape(slope, (slope.shape[0], *([1] * (x.ndim - 2))))
        return _ops.make(_core.prelu, x, slope)


class LoRA(Module):
    """A linear layer whose weight stays, and an update of low rank that is trained (Hu et al., arXiv 2106.09685):
    base(x) + (x A^T) B^T * alpha / rank. A [rank, in], B [out, rank], which begins as zeros."""

    _initial = {"lora_A": _WEIGHT, "lora_B": "constant(value=0)"}

    def __init__(self, base: Linear, rank: int = 8, alpha: float = 16.0) -> None:
        self.base, self.rank, self.alpha = base, rank, float(alpha)
        self.lora_A = parameter((rank, base.in_features), base.weight.dtype)
        self.lora_B = parameter((base.out_features, rank), base.weight.dtype)

    def __call__(self, x: Any) -> Tensor:
        update = _ops.matmul(_ops.matmul(x, _ops.swapaxes(self.lora_A, 0, 1)), _ops.swapaxes(self.lora_B, 0, 1))
        frozen = Linear.__call__
        base = object.__new__(Linear)
        base.__dict__.update({k: _ops.stop_gradient(v) if isinstance(v, Tensor) else v for k, v in self.base.__dict__.items()})
        return frozen(base, x) + update * (self.alpha / self.rank)

    def merged(self) -> Linear:
        """One linear layer with the update in its weight."""
        made = object.__new__(Linear)
        made.__dict__.update({k: v for k, v in self.base.__dict__.items() if not k.startswith("_")})
        made.weight = self.base.weight + _ops.matmul(self.lora_B, self.lora_A) * (self.alpha / self.rank)
        return made


