"""What backward ops share: the derivative of a row, by this package's rules.

Keeps:    a gradient that PyTorch has as an op of its own, and that is no more than the derivative of a row, is just that: one
          definition. Halves compute in f32 and are rounded once.
"""

from __future__ import annotations

from typing import Callable, Sequence

from ..._errors import UnsupportedError
from ..._graph import current
from ..._tensor import Tensor, call, of_node
from ..._transforms import placeholder, substituted
from .types import as_type, opmath


def gradients(f: Callable[..., Tensor], xs: Sequence[Tensor], cotangent: Tensor, wanted: Sequence[bool] | None = None) -> list[Tensor | None]:
    """The derivatives of f at xs along a cotangent of its result; None for those that nobody wants."""
    whole = next((x.dtype.name for x in xs if x.dtype.kind in "biu"), None)
    if whole:
        raise UnsupportedError(f"a gradient by {whole}, which has none")
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


def wide(f: Callable[..., Tensor], *xs: Tensor | None) -> Tensor:
    """f of halves in f32, rounded once."""
    t = next(x for x in xs if x is not None).dtype
    return as_type(f(*(None if x is None else as_type(x, opmath(t)) for x in xs)), t)


def derivative(f: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    """The derivative of f at x alone, of x's type."""
    inner = as_type(x, opmath(x.dtype))
    found = gradients(f, [inner], as_type(grad, inner.dtype))[0]
    assert found is not None
    return as_type(found, x.dtype)
