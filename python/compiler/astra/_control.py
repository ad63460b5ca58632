"""Control flow that is part of the program: cond, while_loop, fori_loop, scan.

Takes:    functions of trees of tensors, values for them; what else they use of the graph is closed over.
Gives:    the results of one control op each.
Keeps:    JAX's signatures. A body gives what it was given: the same types and shapes; the first that differs is named.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _dims, _ops, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node
from ._transforms import placeholder


def _same(found: Tensor, wanted: Tensor, what: str) -> Tensor:
    if found.dtype is not wanted.dtype:
        raise DTypeError(f"{what} is of {found.dtype.name}; it must be {wanted.dtype.name}")
    if found.shape != wanted.shape:
        raise ShapeError(f"{what} has shape {found.shape}; it must be {wanted.shape}")
    return found


def _nodes(graph: Graph, tensors: Any) -> list[Any]:
    return [t._in(graph) for t in tensors]


def _results(graph: Graph, control: Any, like: list[Any]) -> list[Tensor]:
    """Results of a control op, of the types of nodes."""
    return [of_node(graph, call(graph.core.result, control, i, n.dtype, list(n.dims))) for i, n in enumerate(like)]


def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """true_fn(*operands) where the predicate, a bool scalar, is true, else false_fn(*operands): one of them is computed. Both
    give trees of the same structure, types and shapes."""
    graph, core = current(), current().core
    p = _ops.astype(predicate, "bool")
    if p.shape != ():
        raise ShapeError(f"the predicate of cond is a scalar; it has shape {p.shape}: use astra.where for elements")
    leaves, structure = _tree.flatten(operands)
    values = [asarray(x) for x in leaves]
    inner = [placeholder(graph, v) for v in values]
    mark = core.size
    outs = [_tree.flatten(f(*_tree.unflatten(structure, inner))) for f in (true_fn, false_fn)]
    if outs[0][1] != outs[1][1]:
        raise ArgumentError(f"the functions of cond give trees of two structures, {outs[0][1]} and {outs[1][1]}")
    first = [asarray(x) for x in outs[0][0]]
    second = [_same(asarray(x), y, f"result {i} of the second function of cond") for i, (x, y) in enumerate(zip(outs[1][0], first))]
    roots = [_nodes(graph, first), _nodes(graph, second)]
    captured: list[Any] = []
    for r in roots:
        captured += [n for n in call(core.close, r, _nodes(graph, inner), mark, False, captured)[1] if n not in captured]
    functions = [call(core.close, r, _nodes(graph, inner), mark, False, captured)[0] for r in roots]
    control = call(core.control, "cond", [p._in(graph), *_nodes(graph, values), *captured], [], "", functions)
    return _tree.unflatten(outs[0][1], _results(graph, control, roots[0]))


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], initial: Any) -> Any:
    """value = initial; while condition(value): value = body(value). The value is a tree whose types and shapes stay."""
    graph, core = current(), current().core
    leaves, structure = _tree.flatten(initial)
    values = [asarray(x) for x in leaves]
    inner = [placeholder(graph, v) for v in values]
    mark = core.size
    test = _ops.astype(condition(_tree.unflatten(structure, inner)), "bool")
    if test.shape != ():
        raise ShapeError(f"the condition of while_loop gives a scalar, not a tensor of shape {test.shape}")
    out, out_structure = _tree.flatten(body(_tree.unflatten(structure, inner)))
    if out_structure != structure:
        raise ArgumentError(f"the body of while_loop gives {out_structure}; the value is {structure}")
    results = [_same(asarray(x), v, f"value {i} after the body of while_loop") for i, (x, v) in enumerate(zip(out, values))]
    holders, tested, given = _nodes(graph, inner), [test._in(graph)], _nodes(graph, results)
    captured = list(call(core.close, tested, holders, mark, True, [])[1])
    captured += [n for n in call(core.close, given, holders, mark, True, captured)[1] if n not in captured]
    functions = [call(core.close, roots, holders, mark, True, captured)[0] for roots in (tested, [*given, *captured])]
    control = call(core.control, "while", [*_nodes(graph, values), *captured], [], "", functions)
    return _tree.unflatten(structure, _results(graph, control, given))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], initial: Any) -> Any:
    """value = initial; for i in range(lower, upper): value = body(i, value). i is an int64 tensor."""
    if isinstance(lower, int) and isinstance(upper, (int, _dims.Dim)):
        length = upper - lower

        def step(carry: Any, i: Any) -> Any:
            return body(i, carry), None

        if isinstance(length, int) and length <= 0:
            return initial
        return scan(step, initial, _ops.iota(length) + lower)[0]
    value = while_loop(lambda s: s[0] < asarray(upper, dtype="int64"), lambda s: (s[0] + 1, body(s[0], s[1])),
                       (asarray(lower, dtype="int64"), initial))  # fmt: skip
    return value[1]


def scan(f: Callable[[Any, Any], Any], initial: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> tuple[Any, Any]:
    """Goes along the leading axis of xs: carry, y = f(carry, x) at each step. Gives the last carry and all y, stacked.
    length: the number of steps where xs is None. reverse: from the end."""
    graph, core = current(), current().core
    carry_leaves, carry_structure = _tree.flatten(initial)
    x_leaves, x_structure = _tree.flatten(xs)
    carries, slices = [asarray(x) for x in carry_leaves], [asarray(x) for x in x_leaves]
    for s in slices:
        if not s.ndim:
            raise ShapeError("scan goes along the leading axis of xs; a scalar has none")
    if not slices and length is None:
        raise ArgumentError("scan needs xs or a length")
    n = slices[0]._in(graph).dims[0] if slices else _dims.size_node(core, length)
    if any(not s._in(graph).dims[0] == n for s in slices) or (length is not None and not _dims.size_node(core, length) == n):
        raise ShapeError("the leading axes of xs are of different extents")
    if reverse:
        slices = [_ops.flip(s, 0) for s in slices]
    inner = [placeholder(graph, c) for c in carries]
    rows = [of_node(graph, core.leaf(s.dtype.code, list(s._in(graph).dims[1:]))) for s in slices]
    mark = core.size
    out = f(_tree.unflatten(carry_structure, inner), _tree.unflatten(x_structure, rows))
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ArgumentError("the function of scan gives a pair: (carry, y)")
    next_leaves, next_structure = _tree.flatten(out[0])
    if next_structure != carry_structure:
        raise ArgumentError(f"the function of scan gives a carry {next_structure}; it was given {carry_structure}")
    following = [_same(asarray(x), c, f"carry {i} after a step of scan") for i, (x, c) in enumerate(zip(next_leaves, carries))]
    y_leaves, y_structure = _tree.flatten(out[1])
    ys = [asarray(y) for y in y_leaves]
    roots = _nodes(graph, [*following, *ys])
    function, captured = call(core.close, roots, _nodes(graph, [*inner, *rows]), mark, True, [])
    control = call(core.control, "scan", [*_nodes(graph, [*carries, *slices]), *captured, n], [len(carries), len(slices)], "", [function])
    results = []
    for i, root in enumerate(roots):
        dims = list(root.dims) if i < len(carries) else [n, *root.dims]
        results.append(of_node(graph, call(core.result, control, i, root.dtype, dims)))
    stacked = results[len(carries) :]
    if reverse:
        stacked = [_ops.flip(y, 0) for y in stacked]
    return _tree.unflatten(carry_structure, results[: len(carries)]), _tree.unflatten(y_structure, stacked)
