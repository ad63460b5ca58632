"""Control flow that is part of the program: cond, switch, while_loop, fori_loop, scan, map, associative_scan.

Takes:    functions of trees of tensors, values for them; what else they use of the graph is closed over.
Gives:    the results of one control op each.
Keeps:    JAX's signatures. A body gives what it was given: the same types and shapes; the first that differs is named.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _dims, _ops, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node
from ._transforms import nodes_of, operand, placeholder


def _same(tree: Any, structure: Any, wanted: Sequence[Tensor], what: str, of: str) -> list[Tensor]:
    """The leaves of a tree, which are like others: structure, types, shapes."""
    leaves, found = _tree.flatten(tree)
    if found != structure:
        raise ArgumentError(f"{what} has the structure {found}; {of} has {structure}")
    out = [operand(x) for x in leaves]
    for i, (x, w) in enumerate(zip(out, wanted)):
        if x.dtype is w.dtype and x.shape == w.shape:
            continue
        path = _tree.paths(tree)[i]
        where = f"{what}, at '{path}'," if path else what
        if x.dtype is not w.dtype:
            raise DTypeError(f"{where} is of {x.dtype.name}; {of} is of {w.dtype.name}")
        raise ShapeError(f"{where} has shape {x.shape}; {of} has {w.shape}")
    return out


def _results(graph: Graph, control: Any, like: list[Any]) -> list[Tensor]:
    """Results of a control op, of the types of nodes."""
    return [of_node(graph, call(graph.core.result, control, i, n.dtype, list(n.dims))) for i, n in enumerate(like)]


def _scalar(x: Any, what: str) -> Tensor:
    t = operand(x)
    if t.shape != ():
        raise ShapeError(f"{what} is a scalar; it has shape {t.shape}: use astra.where for what is decided for each element")
    return t


def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """true_fn(*operands) where the predicate, a bool scalar, is true, else false_fn(*operands): one of them is computed. Both
    give trees of the same structure, types and shapes."""
    graph, core = current(), current().core
    p = _ops.astype(_scalar(predicate, "the predicate of cond"), "bool")
    leaves, structure = _tree.flatten(operands)
    values = [operand(x) for x in leaves]
    inner = [placeholder(graph, v) for v in values]
    mark = core.size
    with graph.transforming():
        trees = [f(*_tree.unflatten(structure, inner)) for f in (true_fn, false_fn)]
    first_leaves, out_structure = _tree.flatten(trees[0])
    first = [operand(x) for x in first_leaves]
    second = _same(trees[1], out_structure, first, "what the second function of cond gives", "what the first gives")
    roots, holders = [nodes_of(graph, first), nodes_of(graph, second)], nodes_of(graph, inner)
    captured: list[Any] = []
    for r in roots:
        captured += [n for n in call(core.close, r, holders, mark, False, captured)[1] if n not in captured]
    functions = [call(core.close, r, holders, mark, False, captured)[0] for r in roots]
    control = call(core.control, "cond", [p._in(graph), *nodes_of(graph, values), *captured], [], "", functions)
    return _tree.unflatten(out_structure, _results(graph, control, roots[0]))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands): one of them is computed. An index outside is taken as the nearest. All branches give trees of the
    same structure, types and shapes."""
    branches = list(branches)
    if not branches:
        raise ArgumentError("switch needs a function at least")
    i = _scalar(index, "the index of switch")
    if i.dtype.kind not in "iu":
        raise DTypeError(f"the index of switch is an integer, not of {i.dtype.name}")

    def between(lo: int, hi: int) -> Callable[..., Any]:
        if hi - lo == 1:
            return branches[lo]
        middle = (lo + hi) // 2
        return lambda *xs: cond(_ops.less(xs[0], middle), _without_first(between(lo, middle), middle - lo),
                                _without_first(between(middle, hi), hi - middle), *xs)  # fmt: skip

    if len(branches) == 1:
        return branches[0](*operands)
    return between(0, len(branches))(i, *operands)


def _without_first(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A branch does not take the index."""
    return f if count > 1 else lambda _, *xs: f(*xs)


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], initial: Any) -> Any:
    """value = initial; while condition(value): value = body(value). The value is a tree whose types and shapes stay."""
    graph, core = current(), current().core
    leaves, structure = _tree.flatten(initial)
    values = [operand(x) for x in leaves]
    inner = [placeholder(graph, v) for v in values]
    mark = core.size
    with graph.transforming():
        test = _ops.astype(_scalar(condition(_tree.unflatten(structure, inner)), "what the condition of while_loop gives"), "bool")
        out = body(_tree.unflatten(structure, inner))
    results = _same(out, structure, values, "what the body of while_loop gives", "the value that it is given")
    holders, tested, given = nodes_of(graph, inner), [test._in(graph)], nodes_of(graph, results)
    captured = list(call(core.close, tested, holders, mark, True, [])[1])
    captured += [n for n in call(core.close, given, holders, mark, True, captured)[1] if n not in captured]
    functions = [call(core.close, roots, holders, mark, True, captured)[0] for roots in (tested, [*given, *captured])]
    control = call(core.control, "while", [*nodes_of(graph, values), *captured], [], "", functions)
    return _tree.unflatten(structure, _results(graph, control, given))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], initial: Any) -> Any:
    """value = initial; for i in range(lower, upper): value = body(i, value). i is an int64 tensor."""
    if isinstance(lower, int) and isinstance(upper, (int, _dims.Dim)):
        length = upper - lower

        def step(carry: Any, i: Any) -> Any:
            return body(i, carry), None

        if isinstance(length, int) and length <= 0:
            return _tree.map(operand, initial)
        return scan(step, initial, _ops.iota(length) + lower)[0]
    bound = _ops.astype(operand(upper), "int64")
    first = _ops.astype(operand(lower), "int64")
    value = while_loop(lambda s: s[0] < bound, lambda s: (s[0] + 1, body(s[0], s[1])), (first, initial))
    return value[1]


def scan(f: Callable[[Any, Any], Any], initial: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> tuple[Any, Any]:
    """Goes along the leading axis of xs: carry, y = f(carry, x) at each step. Gives the last carry and all y, stacked.
    length: the number of steps where xs is None. reverse: from the end."""
    graph, core = current(), current().core
    carry_leaves, carry_structure = _tree.flatten(initial)
    x_leaves, x_structure = _tree.flatten(xs)
    carries, slices = [operand(x) for x in carry_leaves], [asarray(x) for x in x_leaves]
    for s in slices:
        if not s.ndim:
            raise ShapeError("scan goes along the leading axis of xs; a scalar has none")
    if not slices and length is None:
        raise ArgumentError("scan needs xs or a length")
    n = slices[0]._in(graph).dims[0] if slices else _dims.size_node(core, length)
    if any(not s._in(graph).dims[0] == n for s in slices) or (length is not None and not _dims.size_node(core, length) == n):
        raise ShapeError("the leading axes of xs are of different extents, or not of the length that is given: "
                         + ", ".join(str(s.shape[0]) for s in slices))  # fmt: skip
    if reverse:
        slices = [_ops.flip(s, 0) for s in slices]
    inner = [placeholder(graph, c) for c in carries]
    rows = [of_node(graph, core.leaf(s.dtype.code, list(s._in(graph).dims[1:]))) for s in slices]
    mark = core.size
    with graph.transforming():
        out = f(_tree.unflatten(carry_structure, inner), _tree.unflatten(x_structure, rows))
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ArgumentError("the function of scan gives a pair: (carry, y)")
    following = _same(out[0], carry_structure, carries, "the carry that the function of scan gives", "the carry that it is given")
    y_leaves, y_structure = _tree.flatten(out[1])
    ys = [operand(y) for y in y_leaves]
    roots = nodes_of(graph, [*following, *ys])
    if not roots:
        return initial, out[1]
    function, captured = call(core.close, roots, nodes_of(graph, [*inner, *rows]), mark, True, [])
    control = call(core.control, "scan", [*nodes_of(graph, [*carries, *slices]), *captured, n], [len(carries), len(slices)], "", [function])
    results = []
    for i, root in enumerate(roots):
        dims = list(root.dims) if i < len(carries) else [n, *root.dims]
        results.append(of_node(graph, call(core.result, control, i, root.dtype, dims)))
    stacked = results[len(carries) :]
    if reverse:
        stacked = [_ops.flip(y, 0) for y in stacked]
    return _tree.unflatten(carry_structure, results[: len(carries)]), _tree.unflatten(y_structure, stacked)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f for each element along the leading axis of xs, one after another, stacked: `vmap` does them at once."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running results along an axis: y[0] = x[0], y[i] = f(y[i - 1], x[i]) for an f that is associative, in ceil(log2(n)) steps:
    step k combines each element with the one 2^k before it. f takes two trees of tensors that have the axis, and gives one: element by
    element along it. The order, and so the bits, depends on n alone, be it known or a dim."""
    leaves, structure = _tree.flatten(xs)
    values = [operand(x) for x in leaves]
    if not values:
        return xs
    for v in values:
        if not v.ndim:
            raise ShapeError("associative_scan goes along an axis; a scalar has none")
    places = [_ops.axis_of(axis, v.ndim) for v in values]
    n = values[0].shape[places[0]]
    if any(v.shape[a] != n for v, a in zip(values, places)):
        raise ShapeError(f"the axes that associative_scan goes along have extents {', '.join(str(v.shape[a]) for v, a in zip(values, places))}")
    if reverse:
        values = [_ops.flip(v, a) for v, a in zip(values, places)]
    most = n if isinstance(n, int) else n.bounds[1]
    step = 1
    while step < most:
        values = _doubled(f, structure, values, places, n, step)
        step *= 2
    if reverse:
        values = [_ops.flip(v, a) for v, a in zip(values, places)]
    return _tree.unflatten(structure, values)


def _doubled(f: Any, structure: Any, values: list[Tensor], places: list[int], n: Any, step: int) -> list[Tensor]:
    """Each element combined with the one `step` before it."""

    def part(v: Tensor, axis: int, bounds: slice) -> Tensor:
        return v[(slice(None),) * axis + (bounds,)]

    if isinstance(n, int):
        early = [part(v, a, slice(0, n - step)) for v, a in zip(values, places)]
        late = [part(v, a, slice(step, n)) for v, a in zip(values, places)]
    else:  # there may be fewer elements than the step
        number = _ops.iota(n)
        before = _ops.maximum(number - step, 0)
        early = [_ops.take(v, before, axis=a) for v, a in zip(values, places)]
        late = values
    made = f(_tree.unflatten(structure, early), _tree.unflatten(structure, late))
    results = _same(made, structure, late, "what the function of associative_scan gives", "what it is given")
    if isinstance(n, int):
        return [_ops.concat([part(v, a, slice(0, step)), r], axis=a) for v, a, r in zip(values, places, results)]
    out = []
    for v, a, r in zip(values, places, results):
        inside = _ops.reshape(number >= step, (n,) + (1,) * (v.ndim - a - 1))
        out.append(_ops.where(inside, r, v))
    return out


__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
