"""Functions of the program: what a graph calls by name.

Takes:    names of functions that are registered where the graph runs, types of their results.
Gives:    external: functions of tensors; register, unregister: those of astra_rt.
Keeps:    a call with effects is made when it is met; in a function that is traced calls with effects keep their order, and are made
          though nothing needs their results.
Does not: look into the function: it has no derivative but a declared one (custom_vjp, custom_jvp), and no batch axis but where it takes one.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from astra_rt import register, unregister
from astra_rt._function import declared

from . import _core, _dims, _graph, _tree
from ._errors import ArgumentError, UnsupportedError
from ._graph import Graph, current
from ._tensor import call, of_node
from ._transforms import nodes_of, operand

_AFTER = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"}  # of what `after` takes


def external(name: str, out: Any, *, deterministic: bool = False, effects: bool = False, batched: bool = False) -> Callable[..., Any]:
    """A function of tensors that calls what the program registers under `name` (`astra.register`, `astra_rt.register`, astra.h) on
    whole tensors, in bundles and here.

    out             the result: `astra.spec(shape, dtype)`, a tree of these, or a function that gives one for the arguments; of a tree the
                    function gives the leaves in the order of `astra.tree`, those of a dict by their keys
    deterministic   it gives equal bits for equal operands; what is not declared so is no part of a strict bundle
    effects         it does more than give results; without, equal calls may be one, and what nobody needs is not called
    batched         it takes operands, and gives results, with axes more in front: `vmap` adds one"""
    if not isinstance(name, str) or not name:
        raise ArgumentError("an external function has a name, by which it is registered")

    def function(*args: Any) -> Any:
        graph = current()
        if effects and _graph._local.transforms:
            raise UnsupportedError(f"'{name}' has effects: it is called by the function that is traced itself, not by one that is differentiated, "
                                   "batched or given to control flow")  # fmt: skip
        _check(name, deterministic, effects)
        operands = [operand(x) for x in _tree.flatten(args)[0]]
        specs, structure = _tree.flatten(out(*args) if callable(out) else out)
        if not specs or not all(hasattr(s, "shape") and hasattr(s, "dtype") for s in specs):
            raise ArgumentError(f"the results of '{name}' are given by astra.spec(shape, dtype), or a tree of these")
        sources = nodes_of(graph, operands)
        if effects and graph.tracing and graph.effect is not None:
            sources.append(graph.effect[0])
        results = [(s.dtype.code, [_dims.size_node(graph.core, n) for n in s.shape]) for s in specs]
        node = call(_core.external, graph.core, name, sources, results, deterministic, effects, batched)
        tensors = [of_node(graph, call(graph.core.result, node, i, t, shape)) for i, (t, shape) in enumerate(results)]
        if effects and graph.tracing:
            graph.effect = (node, tensors[0]._in(graph))
        elif effects:
            from ._evaluate import realize

            realize(tensors)
        return _tree.unflatten(structure, tensors)

    function.__name__ = name
    return function


def _check(name: str, deterministic: bool, effects: bool) -> None:
    """What a bundle would refuse when it is loaded."""
    found = declared(name)
    if found is None:
        return
    if deterministic and not found[0]:
        raise ArgumentError(f"'{name}' is called as a deterministic function, and is registered without deterministic=True")
    if found[1] and not effects:
        raise ArgumentError(f"'{name}' is registered with effects, and called as one without: give external(..., effects=True)")


def after_effects(graph: Graph, name: str, outputs: Sequence[Any], updates: Sequence[Any]) -> list[Any]:
    """The outputs of a traced function, the first of which is there once all calls with effects were made."""
    nodes = list(outputs)
    if graph.effect is None or _core.reaches(graph.core, [*nodes, *updates], graph.effect[0]):
        return nodes
    for i, node in enumerate(nodes):
        if node.dtype in _AFTER:
            nodes[i] = call(graph.core.make, "after", [node, graph.effect[1]], [], "")
            return nodes
    raise UnsupportedError(f"'{name}' calls functions with effects and gives no result that could come after them: return one of theirs")


__all__ = ["external", "register", "unregister"]
