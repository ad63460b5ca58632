"""Control flow that PyTorch keeps in the graph, as control ops of this package."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from ... import _control, _ops
from ..._tensor import Tensor
from .registry import row
from .shapes import narrow
from .types import as_type


def _function(module: torch.fx.GraphModule) -> Any:
    from ..lower import lower

    def call(*args: Any) -> tuple[Any, ...]:
        out = lower(module, args)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    return call


def _predicate(p: Any) -> Tensor:
    return _ops.reshape(as_type(p, _ops.BOOL), ())


@row("higher_order.cond")
def _cond(predicate: Any, true_graph: Any, false_graph: Any, operands: Sequence[Any] = ()) -> tuple[Any, ...]:
    if isinstance(predicate, bool):
        return _function(true_graph if predicate else false_graph)(*operands)
    return _control.cond(_predicate(predicate), _function(true_graph), _function(false_graph), *operands)


@row("higher_order.switch")
def _switch(index: Any, branches: Sequence[Any], operands: Sequence[Any] = ()) -> tuple[Any, ...]:
    """The branch of a number; one outside takes the first or the last."""
    number = _ops.reshape(index, ()) if isinstance(index, Tensor) else as_type(index, _ops.I64)

    def chosen(i: int, *xs: Any) -> tuple[Any, ...]:
        if i + 1 == len(branches):
            return _function(branches[i])(*xs)
        here = _ops.less_equal(number, i)
        return _control.cond(here, _function(branches[i]), lambda *ys: chosen(i + 1, *ys), *xs)

    return chosen(0, *operands)


@row("higher_order.while_loop")
def _while_loop(condition: Any, body: Any, carried: Sequence[Any], extra: Sequence[Any] = ()) -> tuple[Any, ...]:
    values = tuple(v if isinstance(v, Tensor) else as_type(v, _ops.I64) for v in carried)
    test, step = _function(condition), _function(body)
    return _control.while_loop(lambda s: _predicate(test(*s, *extra)[0]), lambda s: step(*s, *extra), values)


@row("higher_order.scan")
def _scan(combine: Any, init: Sequence[Tensor], xs: Sequence[Tensor], extra: Sequence[Any] = ()) -> list[Tensor]:
    f, n = _function(combine), len(init)

    def step(carry: Any, x: Any) -> Any:
        out = f(*carry, *x, *extra)
        return tuple(out[:n]), tuple(out[n:])

    carry, ys = _control.scan(step, tuple(init), tuple(xs))
    return [*carry, *ys]


@row("higher_order.map_impl", "higher_order.map")
def _map(f: Any, xs: Sequence[Tensor], extra: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    step = _function(f)
    return tuple(_control.scan(lambda c, x: (c, step(*x, *extra)), (), tuple(xs))[1])


@row("higher_order.associative_scan")
def _associative_scan(combine: Any, xs: Sequence[Tensor], extra: Sequence[Any] = ()) -> tuple[Tensor, ...]:
    """One after the other along the first axis: the order of the contract."""
    f = _function(combine)
    first = tuple(narrow(x, 0, 0, 1) for x in xs)
    n = xs[0].shape[0]
    if isinstance(n, int) and n == 1:
        return tuple(xs)

    def step(carry: Any, x: Any) -> Any:
        out = tuple(f(*carry, *x, *extra))
        return out, out

    begin = tuple(_ops.squeeze(x, 0) for x in first)
    ys = _control.scan(step, begin, tuple(narrow(x, 0, 1, n - 1) for x in xs))[1]
    return tuple(_ops.concat([a, b], 0) for a, b in zip(first, ys))


@row("higher_order.invoke_subgraph")
def _invoke(graph: Any, identifier: Any, *operands: Any) -> tuple[Any, ...]:
    return _function(graph)(*operands)

