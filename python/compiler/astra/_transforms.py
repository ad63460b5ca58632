"""Derivatives and batching of functions.

Takes:    a function of trees of tensors, and values for it.
Gives:    functions: grad, value_and_grad, vjp, jvp, vmap, and the matrices made of them.
Keeps:    a transform works on the graph: the function is called on placeholders, the derivative or the batch is made of what
          comes out, and the placeholders are replaced by the values. So they nest in any order, in traces and outside.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _dims, _ops, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node


def placeholder(graph: Graph, like: Tensor) -> Tensor:
    """What stands for a value in a function while it is transformed."""
    return of_node(graph, graph.core.leaf(like.dtype.code, list(like._in(graph).dims)))


def substituted(graph: Graph, tensors: Sequence[Tensor], old: Sequence[Tensor], new: Sequence[Tensor]) -> list[Tensor]:
    """The tensors with placeholders replaced."""
    nodes = call(graph.core.substitute, [t._in(graph) for t in tensors], [t._in(graph) for t in old], [t._in(graph) for t in new])
    return [of_node(graph, n) for n in nodes]


def _argnums(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -count <= n < count:
            raise ArgumentError(f"argnums names argument {n}; the function is called with {count}")
    return tuple(n % count for n in numbers)


def _differentiable(t: Tensor, what: str) -> Tensor:
    if t.dtype.kind not in "fc":
        raise DTypeError(f"{what} is of {t.dtype.name}; derivatives are of floats")
    return t


def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives f's value, a scalar, and its gradient by the arguments that `argnums` numbers: a tree like the
    argument, or a tuple of them. has_aux: f gives (value, anything), and so does the result: ((value, anything), gradient)."""

    def function(*args: Any, **named: Any) -> Any:
        graph = current()
        numbers = _argnums(argnums, len(args))
        leaves, structure = _tree.flatten([args[n] for n in numbers])
        values = [_differentiable(asarray(x), "an argument that is differentiated by") for x in leaves]
        inner = [placeholder(graph, v) for v in values]
        given = list(args)
        for n, x in zip(numbers, _tree.unflatten(structure, inner)):
            given[n] = x
        with graph.differentiable():
            out = f(*given, **named)
        out, aux = out if has_aux else (out, None)
        out = asarray(out)
        if out.shape != ():
            raise ShapeError(f"grad is of functions that give a scalar; this one gives a tensor of shape {out.shape}")
        _differentiable(out, "the result")
        aux_leaves, aux_structure = _tree.flatten(aux)
        aux_tensors = [asarray(x) for x in aux_leaves]
        one = _ops.ones((), dtype=out.dtype)
        made, gradients = call(graph.core.vjp, [out._in(graph)], [one._in(graph)], [p._in(graph) for p in inner],
                               [x._in(graph) for x in aux_tensors])  # fmt: skip
        results = substituted(graph, [of_node(graph, n) for n in [*made, *gradients]], inner, values)
        k = 1 + len(aux_tensors)
        gradient = _tree.unflatten(structure, results[k:])
        gradient = gradient[0] if isinstance(argnums, int) else tuple(gradient)
        return ((results[0], _tree.unflatten(aux_structure, results[1:k])) if has_aux else results[0]), gradient

    return _named(function, f, "value_and_grad")


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of f, which gives a scalar. has_aux: (gradient, what f gives beside). See `value_and_grad`."""
    both = value_and_grad(f, argnums, has_aux)

    def function(*args: Any, **named: Any) -> Any:
        value, gradient = both(*args, **named)
        return (gradient, value[1]) if has_aux else gradient

    return _named(function, f, "grad")


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    """f(*primals), and a function from a cotangent like the result to a tuple of those of the primals."""
    graph = current()
    leaves, structure = _tree.flatten(primals)
    values = [_differentiable(asarray(x), "a primal") for x in leaves]
    inner = [placeholder(graph, v) for v in values]
    with graph.differentiable():
        out = f(*_tree.unflatten(structure, inner))
    out_leaves, out_structure = _tree.flatten(out)
    outs = [_differentiable(asarray(x), "a result") for x in out_leaves]

    def pullback(cotangent: Any) -> Any:
        given, given_structure = _tree.flatten(cotangent)
        if given_structure != out_structure:
            raise ArgumentError(f"the cotangent has the structure {given_structure}; the result's is {out_structure}")
        cotangents = [asarray(c, dtype=o.dtype) for c, o in zip(given, outs)]
        _, derivatives = call(graph.core.vjp, [o._in(graph) for o in outs], [c._in(graph) for c in cotangents],
                              [p._in(graph) for p in inner])  # fmt: skip
        return _tree.unflatten(structure, substituted(graph, [of_node(graph, d) for d in derivatives], inner, values))

    return _tree.unflatten(out_structure, substituted(graph, outs, inner, values)), pullback


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """f(*primals), and its derivative along the tangents, trees like the primals."""
    graph = current()
    leaves, structure = _tree.flatten(tuple(primals))
    along, along_structure = _tree.flatten(tuple(tangents))
    if along_structure != structure:
        raise ArgumentError(f"the tangents have the structure {along_structure}; that of the primals is {structure}")
    values = [_differentiable(asarray(x), "a primal") for x in leaves]
    directions = [asarray(t, dtype=v.dtype) for t, v in zip(along, values)]
    inner = [placeholder(graph, v) for v in values]
    with graph.differentiable():
        out = f(*_tree.unflatten(structure, inner))
    out_leaves, out_structure = _tree.flatten(out)
    outs = [_differentiable(asarray(x), "a result") for x in out_leaves]
    made, derivatives = call(graph.core.jvp, [o._in(graph) for o in outs], [p._in(graph) for p in inner],
                             [d._in(graph) for d in directions])  # fmt: skip
    results = substituted(graph, [of_node(graph, n) for n in [*made, *derivatives]], inner, values)
    return _tree.unflatten(out_structure, results[: len(outs)]), _tree.unflatten(out_structure, results[len(outs) :])


def _axes_like(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis or None for each leaf of a tree: `axes` is a tree of the same form, whose leaves stand for whole parts."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(_tree.leaves(tree))
    if isinstance(axes, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axes) == len(tree):
        return [a for part, x in zip(axes, tree) for a in _axes_like(part, x, what)]
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        return [a for key in sorted(tree) for a in _axes_like(axes[key], tree[key], what)]
    raise ArgumentError(f"{what} {axes!r} does not have the form of what it is for")


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that does what f does for each element along an axis of its arguments, at once: the bits are those of one
    call for each. in_axes: the axis of each argument, None for one that all share (a number for all, or a tuple with a number or
    a tree of them for each); out_axes: where the axis is in the results."""

    def function(*args: Any) -> Any:
        graph = current()
        leaves, structure = _tree.flatten(args)
        axes = _axes_like(in_axes, args, "in_axes")
        values = [asarray(x) for x in leaves]
        batched, inner, given, size = [], [], [], None
        for v, axis in zip(values, axes):
            if axis is None:
                given.append(v)
                continue
            v = _ops.moveaxis(v, axis, 0) if v.ndim else v
            if not v.ndim:
                raise ShapeError("an argument without axes has none to go along: give None in in_axes")
            node = v._in(graph)
            if size is None:
                size = node.dims[0]
            elif not size == node.dims[0]:
                raise ShapeError(f"the axes that vmap goes along have extents {size.index_text()} and {node.dims[0].index_text()}")
            p = of_node(graph, graph.core.leaf(v.dtype.code, list(node.dims[1:])))
            batched.append(v)
            inner.append(p)
            given.append(p)
        if size is None:
            raise ArgumentError("vmap goes along an axis of one argument at least: in_axes is None for all of them")
        out = f(*_tree.unflatten(structure, given))
        out_leaves, out_structure = _tree.flatten(out)
        outs = [asarray(x) for x in out_leaves]
        nodes = call(graph.core.vmap, [o._in(graph) for o in outs], [p._in(graph) for p in inner], [b._in(graph) for b in batched], size)
        results = []
        for node, axis in zip(nodes, _axes_like(out_axes, out, "out_axes")):
            t = of_node(graph, node)
            if axis is None:
                raise ArgumentError("out_axes says where the axis of each result is: a number")
            results.append(t if axis == 0 else _ops.moveaxis(t, 0, axis))
        return _tree.unflatten(out_structure, results)

    return _named(function, f, "vmap")


def _named(function: Any, f: Any, what: str) -> Any:
    function.__name__ = f"{what}({getattr(f, '__name__', 'function')})"
    function.__doc__ = f"{what} of: {f.__doc__ or getattr(f, '__name__', '')}"
    return function


_ = _dims
