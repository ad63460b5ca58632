"""The graph that operations add nodes to.

Takes:    concrete values, which become leaves.
Gives:    the graph at hand: that of the function being traced, else one for values that are computed when they are looked at.
Keeps:    a graph of values is given up after so many nodes: what still needs it keeps it alive.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Iterator

from . import _core

_MOST_NODES = 200_000
_RETIRED_NODES, _RETIRED_BYTES = 20_000, 64 << 20  # of a graph after whose evaluation the next one begins


class Graph:
    """A graph of nodes, with the values of its leaves."""

    __slots__ = ("core", "values", "leaves", "bytes", "tracing", "depth", "effect", "at", "__weakref__")

    def __init__(self, tracing: bool) -> None:
        self.core = _core.Graph()
        self.values: dict[Any, Any] = {}  # leaf (a node) -> value (a tensor of astra_rt)
        self.leaves: dict[int, Any] = {}  # id of a value -> leaf
        self.bytes = 0  # of the values
        self.tracing = tracing  # of a function: values in it are not known
        self.at: tuple[str, int] | None = None  # the line of a kernel that is being walked
        self.depth = 0  # of functions that will be differentiated
        self.effect: Any = None  # the last call with effects of the function being traced, and one of its results

    def leaf_of(self, value: Any) -> Any:
        """The leaf that stands for a value."""
        found = self.leaves.get(id(value))
        if found is None:
            core = self.core
            found = core.leaf(value.dtype, [core.index(n) for n in value.shape])
            self.leaves[id(value)], self.values[found] = found, value
            self.bytes += value.nbytes
        return found

    @contextmanager
    def transforming(self, gradients: bool = False) -> Iterator[None]:
        """A function is called on placeholders meanwhile. gradients: what it builds will be differentiated."""
        _local.transforms += 1
        self.depth += gradients
        self.core.gradients = self.depth > 0
        try:
            yield
        finally:
            _local.transforms -= 1
            self.depth -= gradients
            self.core.gradients = self.depth > 0


class _Local(threading.local):
    def __init__(self) -> None:
        self.traces: list[Graph] = []
        self.transforms = 0  # functions that are being called on placeholders
        self.eager = Graph(tracing=False)


_local = _Local()


def current() -> Graph:
    """The graph that an operation adds to now."""
    if _local.traces:
        return _local.traces[-1]
    if _local.eager.core.size > _MOST_NODES and not _local.transforms:
        _local.eager = Graph(tracing=False)
    return _local.eager


def retire(graph: Graph) -> None:
    """Called when values of a graph have been computed: what comes next goes into a new one where this has grown."""
    if graph is _local.eager and not _local.transforms and (graph.core.size > _RETIRED_NODES or graph.bytes > _RETIRED_BYTES):
        _local.eager = Graph(tracing=False)


def inside() -> bool:
    """Whether a function is being traced, or called on placeholders: then a compiled function is a part of it."""
    return bool(_local.traces) or _local.transforms > 0


def is_open(graph: Graph) -> bool:
    """Whether a function is being traced into this graph now, in this thread."""
    return graph in _local.traces


@contextmanager
def tracing() -> Iterator[Graph]:
    """A new graph, which operations add to meanwhile."""
    graph = Graph(tracing=True)
    _local.traces.append(graph)
    try:
        yield graph
    finally:
        _local.traces.remove(graph)
