"""Reductions, running folds, softmax, order.

Keeps:    sums in the orders of the numeric contract; of halves in f32. dim of [] or None is all axes, as in PyTorch.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ... import _core, _dims, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from .elementwise import _max, _min, truth
from .registry import refuse, row
from .shapes import axes, axis, narrow
from .types import BOOL, F32, I64, as_type, category, float_of, opmath, own_type


def fold(kind: str, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _ops.make(_core.fold, kind, x, dims, keep) if dims else x


def _summed(kind: str, x: Tensor, dims: list[int], keep: bool, dtype: Any) -> Tensor:
    t = own_type(dtype) if dtype is not None else I64 if category(x.dtype) < 2 else x.dtype
    return as_type(fold(kind, as_type(x, opmath(t)), dims, keep), t)


@row("aten.sum")
def _sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return _summed("sum", x, axes(dim, x), keepdim, dtype)


@row("aten.prod")
def _prod(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return _summed("prod", x, axes(dim, x), keepdim, dtype)


def count_of(x: Tensor, dims: Sequence[int]) -> Any:
    """The number of elements along axes."""
    n: Any = 1
    for d in dims:
        n = n * x.shape[d]
    return n


def mean_of(x: Tensor, dims: list[int], keep: bool = True) -> Tensor:
    """The mean, of the type that x has."""
    return fold("mean", x, dims, keep)


@row("aten.mean")
def _mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    t = own_type(dtype) if dtype is not None else x.dtype
    dims = axes(dim, x)
    return as_type(mean_of(as_type(x, opmath(t)), dims, keepdim), t)


def _real_type(t: Any) -> Any:
    return t if t.kind != "c" else own_type("float32" if t.bits == 64 else "float64")


def _variance(x: Tensor, dims: list[int], correction: Any, keep: bool) -> Tensor:
    return _ops.make(_core.variance, as_type(x, opmath(x.dtype)), dims, float(correction), keep)


def _spread(x: Tensor, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[int], Any, bool]:
    """The three forms of var's arguments: (unbiased), (dim, unbiased, keepdim), (dim, *, correction, keepdim)."""
    dim, correction, keep = None, named.get("correction"), named.get("keepdim", False)
    if args and isinstance(args[0], bool):
        correction = int(args[0])
    elif args:
        dim = args[0]
        if len(args) > 1 and isinstance(args[1], bool):
            correction = int(args[1])
            keep = args[2] if len(args) > 2 else keep
    if "unbiased" in named:
        correction = int(named["unbiased"])
    return axes(named.get("dim", dim), x), 1 if correction is None else correction, keep


@row("aten.var")
def _var(x: Tensor, *args: Any, **named: Any) -> Tensor:
    dims, correction, keep = _spread(x, args, named)
    return as_type(_variance(x, dims, correction, keep), _real_type(x.dtype))


@row("aten.std")
def _std(x: Tensor, *args: Any, **named: Any) -> Tensor:
    dims, correction, keep = _spread(x, args, named)
    return as_type(_ops.sqrt(_variance(x, dims, correction, keep)), _real_type(x.dtype))


@row("aten.var_mean")
def _var_mean(x: Tensor, *args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    dims, correction, keep = _spread(x, args, named)
    mean = mean_of(as_type(x, opmath(x.dtype)), dims, keep)
    return as_type(_variance(x, dims, correction, keep), _real_type(x.dtype)), as_type(mean, x.dtype)


def _extreme(greatest: bool) -> Callable[..., Any]:
    kind = "max" if greatest else "min"

    def amax(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        if x.dtype.kind == "b":
            return _ops.make(_core.reduce, "or" if greatest else "and", x, axes(dim, x), keepdim) if x.ndim else x
        return fold(kind, x, axes(dim, x), keepdim)

    def function(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            from .types import computed

            return computed(_max if greatest else _min, x, dim)
        if dim is None:
            return amax(x)
        values, index = amax(x, [dim], keepdim), _arg(x, dim, keepdim, greatest)
        return values, index

    row(f"aten.a{kind}")(amax)
    row(f"aten.{kind}")(function)
    row(f"aten.arg{kind}")(lambda x, dim=None, keepdim=False: _arg(x, dim, keepdim, greatest))
    return amax


def _arg(x: Tensor, dim: int | None, keep: bool, greatest: bool) -> Tensor:
    if x.dtype.kind == "b":
        x = as_type(x, own_type("uint8"))
    if not x.ndim:
        return as_type(0, I64)
    if dim is None:
        out = _ops.squeeze(_ops.make(_core.arg_reduce, _ops.reshape(x, (-1,)), 0, greatest, False), 0)
        return _ops.reshape(out, (1,) * x.ndim) if keep else out
    d = axis(dim, x)
    out = _ops.make(_core.arg_reduce, x, d, greatest, False)
    return out if keep else _ops.squeeze(out, d)


_amax = _extreme(True)
_amin = _extreme(False)


@row("aten.aminmax")
def _aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    dims = () if dim is None else [dim]
    return _amin(x, dims, keepdim), _amax(x, dims, keepdim)


def _logical(kind: str) -> Callable[..., Tensor]:
    def function(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        made = truth(x)
        dims = axes(dim, x)
        made = _ops.make(_core.reduce, kind, made, dims, keepdim) if dims else made
        return as_type(made, x.dtype) if x.dtype.code == "u8" else made

    return function


row("aten.any")(_logical("or"))
row("aten.all")(_logical("and"))


@row("aten.count_nonzero")
def _count_nonzero(x: Tensor, dim: Any = None) -> Tensor:
    return fold("sum", as_type(truth(x), I64), axes(dim, x), False)


@row("aten.logsumexp")
def _logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    t = float_of(x.dtype)
    if t.kind == "c":
        raise UnsupportedError("logsumexp of complex numbers")
    return as_type(fold("logsumexp", as_type(x, opmath(t)), axes(dim, x), keepdim), t)


@row("aten.linalg_vector_norm")
def _vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    t = own_type(dtype) if dtype is not None else x.dtype
    if t.kind == "c":
        t = own_type("float32" if t.bits == 64 else "float64")
    size = _ops.abs(as_type(x, own_type(dtype) if dtype is not None else x.dtype))
    wide, dims = as_type(size, opmath(t)), axes(dim, x)
    return as_type(_ops.make(_core.vector_norm, wide, dims, float(ord), keepdim), t)


@row("aten.norm")
def _norm(x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return _vector_norm(x, 2 if p is None else p, dim, keepdim, dtype=dtype)


# ---- running folds


def _running(kind: str) -> Callable[..., Tensor]:
    def function(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        t = own_type(dtype) if dtype is not None else I64 if category(x.dtype) < 2 else x.dtype
        made = as_type(x, opmath(t))
        return as_type(_ops.make(_core.cumulate, kind, made, axis(dim, x), False, False) if x.ndim else made, t)

    return function


row("aten.cumsum")(_running("sum"))
row("aten.cumprod")(_running("prod"))


def _running_extreme(greatest: bool) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if not x.ndim:
            return x, as_type(0, I64)
        d = axis(dim, x)
        narrow_ = x.dtype.kind == "b"
        wide = as_type(x, own_type("uint8")) if narrow_ else x
        values, index = _ops.make_all(_core.running_extreme, wide, d, greatest)
        return (as_type(values, BOOL) if narrow_ else values), index

    return function


row("aten.cummax")(_running_extreme(True))
row("aten.cummin")(_running_extreme(False))


# ---- softmax


def _softmax_row(function: Any) -> Callable[..., Tensor]:
    def softmax(x: Tensor, dim: int, half_to_float: Any = False, *, dtype: Any = None) -> Tensor:
        given = None if isinstance(half_to_float, bool) else half_to_float
        t = F32 if half_to_float is True else own_type(dtype or given) if dtype or given else x.dtype
        wide = as_type(x, opmath(t))
        if not x.ndim:
            return as_type(_ops.squeeze(_ops.make(function, _ops.reshape(wide, (1,)), [0]), 0), t)
        return as_type(_ops.make(function, wide, [axis(dim, x)]), t)

    return softmax


row("aten._softmax", "aten.softmax")(_softmax_row(_core.softmax))
row("aten._log_softmax", "aten.log_softmax")(_softmax_row(_core.log_softmax))


row("aten._safe_softmax")(_softmax_row(_core.safe_softmax))


def _softmax_backward(composite: Any) -> Callable[..., Tensor]:
    def function(grad: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
        g, y = (as_type(v, opmath(output.dtype)) for v in (grad, output))
        return as_type(_ops.make(composite, g, y, [axis(dim, grad)] if grad.ndim else []), own_type(input_dtype))

    return function


row("aten._softmax_backward_data")(_softmax_backward(_core.softmax_gradient))
row("aten._log_softmax_backward_data")(_softmax_backward(_core.log_softmax_gradient))


# ---- order


@row("aten.sort", "aten.sort.stable")
def _sort(x: Tensor, *args: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    if args:
        dim, descending = args[0], args[1] if len(args) > 1 else descending
    if not x.ndim:
        return x, as_type(0, I64)
    d, narrow_ = axis(dim, x), x.dtype.kind == "b"
    wide = as_type(x, own_type("uint8")) if narrow_ else x
    if x.dtype.kind == "f":  # zeros of both signs are equal in PyTorch
        wide = _ops.where(_ops.equal(x, 0), as_type(0, x.dtype), x)
    index = _ops.make(_core.argsort, wide, d, descending)
    return _ops.make(_core.gather_elements, x, index, d), index


@row("aten.argsort", "aten.argsort.stable")
def _argsort(x: Tensor, *args: Any, **named: Any) -> Tensor:
    return _sort(x, *args, **named)[1]


@row("aten.topk")
def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        values, index = _topk(_ops.reshape(x, (1,)), k, 0, largest)
        return (_ops.reshape(values, ()), _ops.reshape(index, ())) if k == 1 else (values, index)
    graph, core = current(), current().core
    values, index = call(_core.topk, core, x._in(graph), _dims.size_node(core, k), axis(dim, x), largest)
    return of_node(graph, values), of_node(graph, index)


@row("aten.kthvalue")
def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, index = _sort(x, dim)
    if not x.ndim:
        return values, index
    d = axis(dim, x)
    parts = [narrow(v, d, k - 1, 1) for v in (values, index)]
    return tuple(parts if keepdim else [_ops.squeeze(p, d) for p in parts])  # type: ignore[return-value]


@row("aten.median")
def _median_row(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    return _median(x, dim, keepdim, False)


@row("aten.nanmedian")
def _nanmedian_row(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    return _median(x, dim, keepdim, True)


def _median(x: Tensor, dim: int | None, keepdim: bool, ignoring: bool) -> Any:
    if dim is None:
        return _median(_ops.reshape(x, (-1,)), 0, False, ignoring)[0]
    if not x.ndim:
        return x, as_type(0, I64)
    d = axis(dim, x)
    parts = _ops.make_all(_core.lower_median, x, d, ignoring)
    return tuple(parts if keepdim else [_ops.squeeze(p, d) for p in parts])


refuse("the most frequent value has no row", "aten.mode")
refuse("a running logarithm of sums has no row; torch.logsumexp has", "aten.logcumsumexp", "aten._logcumsumexp")
