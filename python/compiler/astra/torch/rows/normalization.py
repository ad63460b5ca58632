"""Layer, group, batch and RMS norms, and their gradients.

Keeps:    statistics that PyTorch saves for its backward ops, in the types that it gives them: that of the weights where there are some.
"""

from __future__ import annotations

from typing import Any, Sequence

from ... import _core, _ops
from ..._inspection import finfo
from ..._tensor import Tensor
from .derivatives import gradients
from .registry import row
from .shapes import axis
from .types import as_type, opmath


def _in(t: Any, *xs: Tensor | None) -> list[Tensor | None]:
    """Tensors of a type; none stays none."""
    return [None if x is None else as_type(x, t) for x in xs]


def _wanted(mask: Sequence[bool], *gradients: Tensor) -> tuple[Any, ...]:
    return tuple(g if wanted else None for g, wanted in zip(gradients, mask))


@row("aten.native_layer_norm")
def _native_layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
    own = x.dtype if weight is None else weight.dtype
    value, mean, inverse = _ops.make_all(_core.layer_norm, *_in(opmath(x.dtype), x, weight, bias), x.ndim - len(shape), eps)
    return as_type(value, x.dtype), as_type(mean, own), as_type(inverse, own)


@row("aten.layer_norm")
def _layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any) -> Tensor:
    return _native_layer_norm(x, shape, weight, bias, eps)[0]


@row("aten.native_layer_norm_backward")
def _layer_norm_backward(grad: Tensor, x: Tensor, shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
                         bias: Tensor | None, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    made = _ops.make_all(_core.layer_norm_gradients, grad, x, weight, mean, rstd, x.ndim - len(shape))
    return _wanted((mask[0], mask[1] and weight is not None, mask[2] and bias is not None), *made)


@row("aten.native_group_norm")
def _native_group_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, n: Any, c: Any, hxw: Any, group: int, eps: float) -> tuple[Tensor, ...]:
    own = x.dtype if weight is None else weight.dtype
    value, mean, inverse = _ops.make_all(_core.group_norm, *_in(opmath(x.dtype), x, weight, bias), group, eps)
    return as_type(value, x.dtype), as_type(mean, own), as_type(inverse, own)


@row("aten.native_group_norm_backward")
def _group_norm_backward(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, n: Any, c: Any, hxw: Any,
                         group: int, mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    return _wanted(mask, *_ops.make_all(_core.group_norm_gradients, grad, x, weight, mean, rstd, group))


@row("aten._fused_rms_norm")
def _fused_rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> tuple[Tensor, Tensor]:
    t = opmath(x.dtype)
    guard = float(finfo(t).eps) if eps is None else eps
    value, inverse = _ops.make_all(_core.rms_norm, *_in(t, x, weight), x.ndim - len(shape), guard)
    return as_type(value, x.dtype), inverse


@row("aten.rms_norm")
def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    return _fused_rms_norm(x, shape, weight, eps)[0]


# ---- batch norms


def _empty(t: Any) -> Tensor:
    return _ops.zeros((0,), dtype=t)


def _running(old: Tensor | None, now: Tensor, momentum: float) -> Tensor | None:
    if old is None:
        return None
    return as_type(_ops.make(_core.moving_average, as_type(old, now.dtype), now, 1 - momentum), old.dtype)


def _batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, variance: Tensor | None, training: bool,
                momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The value, the mean and one over the deviation that were taken, and the next running statistics."""
    own = x.dtype if weight is None else weight.dtype
    given = _in(opmath(x.dtype), x, weight, bias, *((None, None) if training else (mean, variance)))
    value, taken, inverse, *_, sample = _ops.make_several(_core.batch_norm, *given, eps, training, training)
    assert value is not None and taken is not None and inverse is not None
    if not training:
        return as_type(value, x.dtype), _empty(own), _empty(own), mean, variance
    assert sample is not None
    return as_type(value, x.dtype), as_type(taken, own), as_type(inverse, own), _running(mean, taken, momentum), _running(variance, sample, momentum)


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
    statistics = (saved_mean, None, saved_inverse) if train else (mean, variance, None)
    return _wanted(mask, *_ops.make_all(_core.batch_norm_gradients, grad, x, weight, *statistics, eps, train))


def _weight_norm(v: Tensor, g: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    norm = _ops.make(_core.vector_norm, v, [d for d in range(v.ndim) if d != axis(dim, v)], 2.0, True)
    return _ops.multiply(v, _ops.divide(g, norm)), norm


row("aten._weight_norm_interface")(lambda v, g, dim=0: tuple(as_type(x, v.dtype) for x in _weight_norm(*(as_type(x, opmath(x.dtype)) for x in (v, g)), dim)))


@row("aten._weight_norm_interface_backward")
def _weight_norm_backward(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Any, ...]:
    xs = [as_type(x, opmath(x.dtype)) for x in (v, g)]
    found = gradients(lambda v, g: _weight_norm(v, g, dim)[0], xs, as_type(grad, xs[0].dtype))
    return tuple(None if d is None else as_type(d, x.dtype) for d, x in zip(found, (v, g)))
