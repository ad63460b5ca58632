"""Random numbers: by the contract's generator, from a key that the call gives.

Keeps:    each op has a stream of its own; the key is drawn from PyTorch's generator at each call, so torch.manual_seed repeats a run.
          The numbers are not PyTorch's: those come from generators of its own.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

import torch

from ... import _core, _ops
from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from .derivatives import derivative
from .registry import refuse, row
from .types import BOOL, F32, F64, I64, as_type, opmath, own_type


class _Keys(threading.local):
    key: Tensor | None = None
    streams = 0


_keys = _Keys()


@contextmanager
def keyed(key: Tensor | None) -> Iterator[None]:
    """Random ops take their numbers from this key, a u32 scalar, meanwhile."""
    before = _keys.key, _keys.streams
    _keys.key, _keys.streams = key, 0
    try:
        yield
    finally:
        _keys.key, _keys.streams = before


RANDOM = {"aten.rand", "aten.randn", "aten.randint", "aten.randperm", "aten.rand_like", "aten.randn_like", "aten.randint_like",
          "aten.native_dropout", "aten.bernoulli", "aten.uniform", "aten.normal", "aten.normal_functional", "aten.multinomial",
          "aten.exponential", "aten.dropout"}  # fmt: skip


def _generator() -> tuple[Any, Any]:
    graph = current()
    if _keys.key is None:
        raise UnsupportedError("a random op outside of a captured function")
    _keys.streams += 1
    return _keys.key._in(graph), graph.core.literal_int("u32", _keys.streams)


def _shape(shape: Sequence[Any]) -> list[Any]:
    return _ops.sizes(current(), tuple(shape))


def uniform(shape: Sequence[Any], t: Any, low: float = 0.0, high: float = 1.0) -> Tensor:
    graph = current()
    drawn = call(_core.uniform, graph.core, *_generator(), _shape(shape), opmath(t).code, low, high)
    return as_type(of_node(graph, drawn), t)


def normal(shape: Sequence[Any], t: Any, mean: float = 0.0, scale: float = 1.0) -> Tensor:
    graph = current()
    drawn = call(_core.normal, graph.core, *_generator(), _shape(shape), opmath(t).code, mean, scale)
    return as_type(of_node(graph, drawn), t)


def _default(dtype: Any) -> Any:
    return own_type(dtype or torch.get_default_dtype())


row("aten.rand")(lambda size, dtype=None, **_: uniform(size, _default(dtype)))
row("aten.randn")(lambda size, dtype=None, **_: normal(size, _default(dtype)))
row("aten.rand_like")(lambda x, dtype=None, **_: uniform(x.shape, own_type(dtype) if dtype else x.dtype))
row("aten.randn_like")(lambda x, dtype=None, **_: normal(x.shape, own_type(dtype) if dtype else x.dtype))
row("aten.uniform")(lambda x, low=0.0, high=1.0, **_: uniform(x.shape, x.dtype, low, high))
row("aten.normal_functional")(lambda x, mean=0.0, std=1.0, **_: normal(x.shape, x.dtype, mean, std))


def _integers(low: int, high: int, shape: Sequence[Any], t: Any) -> Tensor:
    if high - low > 1 << 32:
        raise UnsupportedError("random integers of more than 32 bits")
    made = _ops.floor(_ops.multiply(uniform(shape, F64), float(high - low)))
    return as_type(_ops.add(as_type(made, I64), low), t)


@row("aten.randint")
def _randint(*args: Any, dtype: Any = torch.int64, **_: Any) -> Tensor:
    low, high, size = (0, *args) if len(args) == 2 else args
    return _integers(low, high, size, own_type(dtype or torch.int64))


@row("aten.randint_like")
def _randint_like(x: Tensor, *args: Any, dtype: Any = None, **_: Any) -> Tensor:
    low, high = (0, args[0]) if len(args) == 1 else args
    return _integers(low, high, x.shape, own_type(dtype) if dtype else x.dtype)


@row("aten.randperm")
def _randperm(n: Any, *, dtype: Any = torch.int64, **_: Any) -> Tensor:
    return as_type(_ops.make(_core.argsort, uniform((n,), F64), 0, False), own_type(dtype or torch.int64))


@row("aten.native_dropout")
def _native_dropout(x: Tensor, p: float, train: bool | None = None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x, _ops.ones(x.shape, dtype=BOOL)
    if p == 1:
        return _ops.zeros_like(x), _ops.zeros(x.shape, dtype=BOOL)
    value, kept = call(_core.dropout, current().core, *_generator(), x._in(current()), float(p))
    return of_node(current(), value), of_node(current(), kept)


@row("aten.dropout")
def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    return _native_dropout(x, p, train)[0] if train else x


@row("aten.bernoulli")
def _bernoulli(x: Tensor, p: Any = None, **_: Any) -> Tensor:
    graph, chance = current(), _ops.broadcast_to(as_type(x if p is None else p, F32), x.shape)
    return of_node(graph, call(_core.bernoulli, graph.core, *_generator(), chance._in(graph), x.dtype.code))


@row("aten.exponential")
def _exponential(x: Tensor, rate: float = 1.0, **_: Any) -> Tensor:
    wide, graph = opmath(x.dtype), current()
    drawn = of_node(graph, call(_core.exponential, graph.core, *_generator(), _shape(x.shape), wide.code))
    return as_type(_ops.divide(drawn, as_type(rate, wide)), x.dtype)


@row("aten.multinomial")
def _multinomial(x: Tensor, samples: int, replacement: bool = False, **_: Any) -> Tensor:
    wide = as_type(x, F32)
    if not replacement:  # the greatest of the weights' exponential races (Efraimidis and Spirakis)
        race = _ops.divide(wide, _ops.negative(_ops.log1p(_ops.negative(uniform(x.shape, F32)))))
        from .reductions import _topk

        return _topk(race, samples, -1)[1]
    graph = current()
    two = _ops.reshape(_ops.log(wide), (-1, x.shape[-1]))
    drawn = of_node(graph, call(_core.multinomial, graph.core, *_generator(), two._in(graph), samples, "i64"))
    return _ops.reshape(drawn, (*x.shape[:-1], samples))


refuse("its numbers would have to be drawn from a distribution that the generator does not have", "aten.poisson", "aten.binomial",
       "aten._standard_gamma")  # fmt: skip


@row("aten.rrelu_with_noise_functional")
def _rrelu(x: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *_: Any) -> tuple[Tensor, Tensor]:
    if training:
        raise UnsupportedError("its slopes are drawn at random, by numbers of PyTorch's: leaky_relu has one slope")
    return _ops.leaky_relu(x, (lower + upper) / 2), noise


@row("aten.rrelu_with_noise_backward")
def _rrelu_backward(grad: Tensor, x: Tensor, noise: Tensor, lower: float, upper: float, training: bool, self_is_result: bool) -> Tensor:
    if training:
        raise UnsupportedError("its slopes are drawn at random, by numbers of PyTorch's: leaky_relu has one slope")
    return derivative(lambda x: _ops.leaky_relu(x, (lower + upper) / 2), x, grad)
