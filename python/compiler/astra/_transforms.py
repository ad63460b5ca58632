"""Derivatives and batching of functions.

Takes:    a function of trees of tensors, and values for it.
Gives:    functions: grad, value_and_grad, vjp, jvp, linearize, vmap, and the matrices made of them: jacfwd, jacrev, hessian.
Keeps:    a transform works on the graph: the function is called on placeholders, the derivative or the batch is made of what
          comes out, and the placeholders are replaced by the values. So they nest in any order, in traces and outside.
          Functions with derivatives of their own: _custom.py.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import _dtypes, _ops, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node


def placeholder(graph: Graph, like: Tensor) -> Tensor:
    """What stands for a value in a function while it is transformed."""
    return of_node(graph, graph.core.leaf(like.dtype.code, list(like._in(graph).dims)))


def operand(x: Any) -> Tensor:
    """x as a tensor; a number of Python's is a literal of the program."""
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return _ops.literal(x, _dtypes.DEFAULT[_dtypes.kind_of_number(x)])
    return asarray(x)


def nodes_of(graph: Graph, tensors: Sequence[Tensor]) -> list[Any]:
    """The nodes that stand for tensors in a graph."""
    return [t._in(graph) for t in tensors]


def tensors_of(graph: Graph, nodes: Sequence[Any]) -> list[Tensor]:
    """Tensors that nodes of a graph stand for."""
    return [of_node(graph, n) for n in nodes]


def substituted(graph: Graph, tensors: Sequence[Tensor], old: Sequence[Tensor], new: Sequence[Tensor]) -> list[Tensor]:
    """The tensors with placeholders replaced."""
    nodes = call(graph.core.substitute, nodes_of(graph, tensors), nodes_of(graph, old), nodes_of(graph, new))
    return tensors_of(graph, nodes)


def _argnums(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -count <= n < count:
            raise ArgumentError(f"argnums names argument {n}; the function is called with {count}")
    return tuple(n % count for n in numbers)


def _differentiable(t: Tensor, what: str) -> Tensor:
    if t.dtype.kind not in "fc":
        raise DTypeError(f"{what} is of {t.dtype.name}; derivatives are of floats and complex numbers")
    return t


def _leaf(what: str, path: str) -> str:
    return f"{what} at '{path}'," if path else what


def _floats(tree: Any, what: str) -> tuple[list[Tensor], Any]:
    """Leaves that a derivative is by or of, and the structure."""
    leaves, structure = _tree.flatten(tree)
    made = [operand(x) for x in leaves]
    if any(t.dtype.kind not in "fc" for t in made):
        for t, path in zip(made, _tree.paths(tree)):
            _differentiable(t, _leaf(what, path))
    return made, structure


class _Call:
    """A function that was called on placeholders for some of its arguments: what came out, and what it stands for."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], numbers: Sequence[int], named: dict[str, Any], has_aux: bool) -> None:
        self.graph = graph = current()
        parts = [_floats(args[n], f"argument {n}, which is differentiated by,") for n in numbers]
        self.structures = [structure for _, structure in parts]
        self.values = [v for leaves, _ in parts for v in leaves]
        self.inner = [placeholder(graph, v) for v in self.values]
        given = list(args)
        for n, tree in zip(numbers, self.trees(self.inner)):
            given[n] = tree
        with graph.transforming(gradients=True):
            out = f(*given, **named)
        if has_aux and not (isinstance(out, tuple) and len(out) == 2):
            raise ArgumentError("with has_aux=True the function gives a pair: (result, anything)")
        out, aux = out if has_aux else (out, ())
        self.outs, self.out_structure = _floats(out, "the result")
        leaves, self.aux_structure = _tree.flatten(aux)
        self.aux = [operand(x) for x in leaves]

    def trees(self, leaves: Sequence[Any]) -> list[Any]:
        """Trees like the arguments, of as many leaves."""
        out, at = [], 0
        for structure in self.structures:
            out.append(_tree.unflatten(structure, leaves[at : at + structure.num_leaves]))
            at += structure.num_leaves
        return out

    def tree_of_out(self, leaves: Sequence[Any]) -> Any:
        return _tree.unflatten(self.out_structure, leaves)

    def tree_of_aux(self, leaves: Sequence[Any]) -> Any:
        return _tree.unflatten(self.aux_structure, leaves)

    def filled(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The tensors for the values that the call stands for."""
        return substituted(self.graph, tensors, self.inner, self.values)

    def backward(self, cotangents: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Results, what is beside them, the derivatives by the arguments."""
        g = self.graph
        made, derivatives = call(g.core.vjp, nodes_of(g, self.outs), nodes_of(g, cotangents), nodes_of(g, self.inner), nodes_of(g, self.aux))
        return self._split(made, derivatives)

    def forward(self, tangents: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Results, what is beside them, the derivatives of the results along tangents of the arguments."""
        g = self.graph
        made, derivatives = call(g.core.jvp, nodes_of(g, self.outs), nodes_of(g, self.inner), nodes_of(g, tangents), nodes_of(g, self.aux))
        return self._split(made, derivatives)

    def _split(self, made: Sequence[Any], derivatives: Sequence[Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        results = self.filled(tensors_of(self.graph, [*made, *derivatives]))
        n = len(self.outs)
        return results[:n], results[n : len(made)], results[len(made) :]


def _like(tree: Any, structure: Any, wanted: Sequence[Tensor], what: str, of: str) -> list[Tensor]:
    """Leaves of a tree that has the structure, types and shapes of others."""
    leaves, found = _tree.flatten(tree)
    if found != structure:
        raise ArgumentError(f"the {what} has the structure {found}; that of the {of} is {structure}")
    out = []
    for x, like in zip(leaves, wanted):
        t = asarray(x) if isinstance(x, Tensor) else asarray(x, dtype=like.dtype)
        if t.dtype is not like.dtype:
            raise DTypeError(f"a {what} is of {t.dtype.name}; the {of} is of {like.dtype.name}")
        if t.shape != like.shape:
            raise ShapeError(f"a {what} has shape {t.shape}; the {of} has shape {like.shape}")
        out.append(t)
    return out


def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives f's value, a real scalar, and its gradient by the arguments that `argnums` numbers: a tree like the
    argument, or a tuple of them. By a complex number a + b i it is that by a, plus i times that by b. has_aux: f gives (value, anything), and so does the result: ((value, anything), gradient)."""

    def function(*args: Any, **named: Any) -> Any:
        made = _Call(f, args, _argnums(argnums, len(args)), named, has_aux)
        if len(made.outs) != 1 or made.outs[0].shape != ():
            what = f"a tensor of shape {made.outs[0].shape}" if len(made.outs) == 1 else f"{len(made.outs)} tensors"
            raise ShapeError(f"grad is of functions that give a scalar; {_called(f)} gives {what}")
        if made.outs[0].dtype.kind == "c":
            raise DTypeError(f"grad is of functions that give a real scalar; {_called(f)} gives {made.outs[0].dtype.name} (vjp takes a cotangent)")
        results, aux, gradients = made.backward([_ops.ones((), dtype=made.outs[0].dtype)])
        trees = made.trees(gradients)
        gradient = trees[0] if isinstance(argnums, int) else tuple(trees)
        value = made.tree_of_out(results)
        return ((value, made.tree_of_aux(aux)) if has_aux else value), gradient

    return _named(function, f, "value_and_grad")


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of f, which gives a scalar. has_aux: (gradient, what f gives beside). See `value_and_grad`."""
    both = value_and_grad(f, argnums, has_aux)

    def function(*args: Any, **named: Any) -> Any:
        value, gradient = both(*args, **named)
        return (gradient, value[1]) if has_aux else gradient

    return _named(function, f, "grad")


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """f(*primals), and a function from a cotangent like the result to a tuple of those of the primals. has_aux: f gives (result,
    anything), and the third of what comes is the second."""
    made = _Call(f, primals, range(len(primals)), {}, has_aux)

    def pullback(cotangent: Any) -> Any:
        if current() is not made.graph:  # in another trace, or much later
            return vjp(f, *primals, has_aux=has_aux)[1](cotangent)
        cotangents = _like(cotangent, made.out_structure, made.outs, "cotangent", "result")
        return tuple(made.trees(made.backward(cotangents)[2]))

    results = made.filled([*made.outs, *made.aux])
    n = len(made.outs)
    first = made.tree_of_out(results[:n]), pullback
    return (*first, made.tree_of_aux(results[n:])) if has_aux else first


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """f(*primals), and its derivative along the tangents, trees like the primals. has_aux: f gives (result, anything), and the
    third of what comes is the second."""
    primals, tangents = tuple(primals), tuple(tangents)
    made = _Call(f, primals, range(len(primals)), {}, has_aux)
    along = _like(tangents, _tree.structure(primals), made.values, "tangent", "primal")
    results, aux, derivatives = made.forward(along)
    first = made.tree_of_out(results), made.tree_of_out(derivatives)
    return (*first, made.tree_of_aux(aux)) if has_aux else first


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """f(*primals), and a function from tangents, one for each primal, to the derivative along them."""
    made = _Call(f, primals, range(len(primals)), {}, False)

    def pushforward(*tangents: Any) -> Any:
        if current() is not made.graph:
            return jvp(f, primals, tangents)[1]
        return made.tree_of_out(made.forward(_like(tangents, _tree.structure(primals), made.values, "tangent", "primal"))[2])

    return made.tree_of_out(made.filled(made.outs)), pushforward


def _basis(like: Tensor) -> Tensor:
    """Along a new axis in front: for each element of a tensor one that is 1 there and 0 elsewhere."""
    number = _ops.iota(like.size)
    square = _ops.equal(_ops.expand_dims(number, 1), _ops.expand_dims(number, 0))
    return _ops.reshape(_ops.astype(square, like.dtype), (like.size, *like.shape))


def _only(leaves: Sequence[Tensor], k: int, x: Tensor) -> list[Tensor]:
    """Zeros like the leaves, x in place k."""
    return [x if i == k else _ops.zeros_like(leaf) for i, leaf in enumerate(leaves)]


def _jacobian(f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, name: str, rows: Callable[[_Call], list[list[Tensor]]]) -> Any:
    """rows(call)[i][k]: the derivative of result i by argument k, of shape (*result, *argument)."""

    def function(*args: Any, **named: Any) -> Any:
        made = _Call(f, args, _argnums(argnums, len(args)), named, has_aux)
        for t in (*made.inner, *made.outs):
            if t.dtype.kind == "c":
                raise DTypeError(f"{name} of {_called(f)} meets {t.dtype.name}; Jacobians are of real floats (jvp and vjp take complex numbers)")
        out = []
        for row in rows(made):
            trees = made.trees(made.filled(row))
            out.append(trees[0] if isinstance(argnums, int) else tuple(trees))
        matrix = made.tree_of_out(out)
        return (matrix, made.tree_of_aux(made.filled(made.aux))) if has_aux else matrix

    return _named(function, f, name)


def jacfwd(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of f, column by column: for each result a tree like the argument, whose leaves have the
    axes of the result, then those of the argument. Best where there are fewer arguments than results."""

    def rows(made: _Call) -> list[list[Tensor]]:
        g, columns = made.graph, []
        for k, v in enumerate(made.inner):
            one = placeholder(g, v)
            _, derivatives = call(g.core.jvp, nodes_of(g, made.outs), nodes_of(g, made.inner), nodes_of(g, _only(made.inner, k, one)), [])
            batched = call(g.core.vmap, derivatives, [one._in(g)], [_basis(v)._in(g)], _extent(g, v))
            columns.append([_ops.reshape(_ops.moveaxis(d, 0, -1), (*o.shape, *v.shape)) for d, o in zip(tensors_of(g, batched), made.outs)])
        return [[column[i] for column in columns] for i in range(len(made.outs))]

    return _jacobian(f, argnums, has_aux, "jacfwd", rows)


def jacrev(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The same as `jacfwd`, row by row: best where there are fewer results than arguments."""

    def rows(made: _Call) -> list[list[Tensor]]:
        g, out = made.graph, []
        for i, y in enumerate(made.outs):
            one = placeholder(g, y)
            _, derivatives = call(g.core.vjp, nodes_of(g, made.outs), nodes_of(g, _only(made.outs, i, one)), nodes_of(g, made.inner), [])
            batched = call(g.core.vmap, derivatives, [one._in(g)], [_basis(y)._in(g)], _extent(g, y))
            out.append([_ops.reshape(d, (*y.shape, *v.shape)) for d, v in zip(tensors_of(g, batched), made.inner)])
        return out

    return _jacobian(f, argnums, has_aux, "jacrev", rows)


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the second derivatives of f: `jacfwd` of `jacrev`."""
    return _named(jacfwd(jacrev(f, argnums, has_aux), argnums, has_aux), f, "hessian")


def _extent(graph: Graph, t: Tensor) -> Any:
    """The number of elements as a node."""
    from ._dims import size_node

    return size_node(graph.core, t.size)


def _axes_like(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis or None for each leaf of a tree: `axes` is a tree of the same form, whose leaves stand for whole parts."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(_tree.leaves(tree))
    if isinstance(axes, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axes) == len(tree):
        return [a for part, x in zip(axes, tree) for a in _axes_like(part, x, what)]
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        return [a for key in sorted(tree) for a in _axes_like(axes[key], tree[key], what)]
    raise ArgumentError(f"{what} {axes!r} does not have the form of what it is for")


def _front(t: Tensor, axis: int) -> Tensor:
    if not -t.ndim <= axis < t.ndim:
        raise ShapeError(f"in_axes names axis {axis} of a tensor of shape {t.shape}; give None for what has no such axis")
    return t if axis == 0 else _ops.moveaxis(t, axis, 0)


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: Any = None) -> Callable[..., Any]:
    """A function that does what f does for each element along an axis of its arguments, at once: the bits are those of one
    call for each. in_axes: the axis of each argument, None for one that all share (a number for all, or a tuple with a number or
    a tree of them for each); out_axes: where the axis is in the results, None for one that all share. Arguments by name go along
    axis 0. axis_size: how many elements there are, where no argument says so."""

    def function(*args: Any, **named: Any) -> Any:
        graph = current()
        leaves, structure = _tree.flatten((args, named))
        axes = _axes_like(in_axes, args, "in_axes") + [0] * len(_tree.leaves(named))
        size = _size(graph, axis_size)
        batched, inner, given = [], [], []
        for x, axis in zip(leaves, axes):
            if axis is None:
                given.append(x)
                continue
            v = _front(asarray(x), axis)
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
        inner_args, inner_named = _tree.unflatten(structure, given)
        with graph.transforming():
            out = f(*inner_args, **inner_named)
        out_leaves, out_structure = _tree.flatten(out)
        outs = [operand(x) for x in out_leaves]
        places = _axes_like(out_axes, out, "out_axes")
        for o, place in zip(outs, places):
            if place is None and _reached(graph, o, inner):
                raise ArgumentError("out_axes is None for a result that is not the same for all elements: say where its axis is")
        along = [o for o, place in zip(outs, places) if place is not None]
        nodes = call(graph.core.vmap, nodes_of(graph, along), nodes_of(graph, inner), nodes_of(graph, batched), size)
        made = iter(tensors_of(graph, nodes))
        results = [o if place is None else _placed(next(made), place) for o, place in zip(outs, places)]
        return _tree.unflatten(out_structure, results)

    return _named(function, f, "vmap")


def _size(graph: Graph, size: Any) -> Any:
    from ._dims import size_node

    return None if size is None else size_node(graph.core, size)


def _placed(t: Tensor, axis: int) -> Tensor:
    return t if axis == 0 else _ops.moveaxis(t, 0, axis)


def _reached(graph: Graph, t: Tensor, leaves: Sequence[Tensor]) -> bool:
    found = graph.core.leaves_of([t._in(graph)])
    return any(leaf._in(graph) in found for leaf in leaves)


def _called(f: Any) -> str:
    return f"'{getattr(f, '__name__', 'the function')}'"


def _named(function: Any, f: Any, what: str) -> Any:
    function.__name__ = f"{what}({getattr(f, '__name__', 'function')})"
    function.__doc__ = f"{what} of: {f.__doc__ or getattr(f, '__name__', '')}"
    function.__wrapped__ = f
    return function


__all__ = ["grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]
