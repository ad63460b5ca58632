"""Values of tensors: by the reference evaluator where they are small, else compiled.

Takes:    tensors of one graph or several.
Gives:    their values; both ways give the same bytes.
Keeps:    what was compiled, by the digest of its graph, in the process (and by kernel on the disk: _cache.py).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any, Sequence

import numpy as np

import astra_rt

from . import _cache, _core, _tensor
from ._errors import ShapeError, TraceError
from ._graph import Graph, retire
from ._tensor import Tensor, call, user_line

# Element operations up to which the evaluator is faster than compiling once: it takes about 20 ns each.
SMALL = 1_000_000
MOST_AXES = 16  # ASTRA_MAX_RANK of astra.h; inside of a program there may be more
_MOST_PROGRAMS = 256
_programs: OrderedDict[str, Any] = OrderedDict()  # digest -> a loaded module


def realize(tensors: Sequence[Tensor]) -> None:
    """Computes tensors, all together where they are of one graph."""
    by_graph: dict[int, tuple[Graph, list[tuple[Tensor, Any]]]] = {}
    for t in tensors:
        t_graph, node = t._graph, t._node  # before the value: another thread sets it first
        if t._value is None:
            if t_graph.tracing:
                t._realized()  # says what is wrong
            by_graph.setdefault(id(t_graph), (t_graph, []))[1].append((t, node))
    for graph, members in by_graph.values():
        values = evaluate(graph, [node for _, node in members])
        for (t, _), value in zip(members, values):
            t._value, t._graph, t._node = value, None, None
        retire(graph)


def evaluate(graph: Graph, nodes: Sequence[Any], how: str = "auto") -> list[Any]:
    """The values of nodes of a graph. how: "auto", "evaluator" or "compiled"."""
    core = graph.core
    values = graph.values
    leaves = []
    for leaf in core.leaves_of(nodes):
        if leaf in values:
            leaves.append(leaf)
        elif leaf.name.startswith("%"):  # no constant that was computed while the graph was built
            raise TraceError(f"the values asked for depend on an argument of a function that is being transformed ({user_line()}): "
                             "they are not known yet; use astra.where, astra.cond or astra.while_loop for what depends on them")  # fmt: skip
    if how == "evaluator" or (how == "auto" and core.work_of(nodes) <= SMALL):
        given = []
        for leaf in leaves:
            v = values[leaf]
            given.append((leaf, (v.dtype, v.shape, (v._address, v.nbytes))))
        return [of_bytes(*y) for y in call(_core.evaluate_nodes, core, nodes, given)]
    making = _core.Making(core, "tensors")
    call(making.entry, "main", [(f"x{i}", leaf) for i, leaf in enumerate(leaves)], [(f"y{i}", n) for i, n in enumerate(nodes)])
    module = making.finish()
    return compiled(module, [values[leaf] for leaf in leaves])


def by_evaluator(module: Any, inputs: Sequence[Any], entry: str = "main", dims: dict[str, int] | None = None) -> list[Any]:
    """What the reference evaluator gives."""
    given = [(v.dtype, list(v.shape), (v._address, v.nbytes)) for v in inputs]
    outputs, _ = call(module.evaluate, entry, given, dims or {})
    return [of_bytes(*y) for y in outputs]


def of_bytes(dtype: str, shape: Sequence[int], data: bytes) -> Any:
    """A tensor of astra_rt with these bytes."""
    if len(shape) > MOST_AXES:
        raise ShapeError(f"a value has at most {MOST_AXES} axes; this one would have {len(shape)} ({user_line()})")
    if dtype in astra_rt._convert.NUMPY:
        array: Any = np.frombuffer(data, astra_rt._convert.NUMPY[dtype]).reshape(shape)
    else:
        array = np.frombuffer(data, np.uint16 if dtype == "bf16" else np.uint8)
    return astra_rt._rt.wrap(array, dtype, tuple(shape))


def compiled(module: Any, inputs: Sequence[Any]) -> list[Any]:
    """What the compiled module gives."""
    digest = module.digest()
    program = _programs.get(digest)
    if program is None:
        program = astra_rt.load(_cache.compile(module, what="a graph of tensors"))
        _programs[digest] = program
        if len(_programs) > _MOST_PROGRAMS:
            _programs.popitem(last=False)
    else:
        _programs.move_to_end(digest)
    result = program["main"](*inputs)
    return list(result) if isinstance(result, tuple) else [result]


_tensor._realize = realize
# A loaded program belongs to the process that loaded it.
os.register_at_fork(after_in_child=_programs.clear)


def hash(*trees: Any) -> str:
    """64 hexadecimal digits: SHA-256 of dtypes, shapes and bits of tensors, arrays and numbers, in trees of tuples, lists and dicts.
    Equal wherever the bits are: on every CPU and GPU. Of one argument it is `astra_rt.hash`, of several that of their tuple; the
    bytes that are hashed are in docs/python-rt.md, "A digest"."""
    return str(astra_rt.hash(_of_runtime(trees[0] if len(trees) == 1 else trees)))


def _of_runtime(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        return tree._realized()
    if isinstance(tree, dict):
        return {key: _of_runtime(x) for key, x in tree.items()}
    return [_of_runtime(x) for x in tree] if isinstance(tree, (tuple, list)) else tree


__all__ = ["hash", "realize"]
