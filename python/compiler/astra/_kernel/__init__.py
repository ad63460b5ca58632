"""Kernels written in Python: astra.kernel (docs/kernels.md).

Takes:    functions in a part of Python, parsed and never executed; a grid; tensors, and specs of outputs.
Gives:    tensors: a call is one node of the graph, which every target, transform and tier knows.
Keeps:    files: _source (syntax trees, places), _walker (the language), _primitives (the table), _forms and _races (what is shown of indices), _graph (to a
          node), _interpret (program by program).
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import operator
from typing import Any, Callable, Sequence

import numpy as np

from .. import _dims, _ops
from .._custom import custom_vjp
from .._errors import ArgumentError
from .._graph import Graph, current
from .._tensor import Tensor, asarray, call, of_node, of_value
from .._trace import Spec
from .._transforms import nodes_of, placeholder
from . import _interpret, _views
from ._graph import GraphWalker, Result
from ._primitives import GROUPS, PRIMITIVES, Primitive
from ._source import Source
from ._values import View
from ._expressions import MOST_ELEMENTS, constant

MOST_PROGRAMS = (2**31 - 1, 65535, 65535)  # along the axes of a grid: what GPUs have


class Function:
    """A helper of kernels: its body stands in place of its call. Made by @astra.kernel.function."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.source = Source(f)
        self.__name__, self.__doc__, self.__wrapped__ = self.source.name, f.__doc__, f

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise ArgumentError(f"'{self.source.name}' is a helper: it is called in kernels")


class Arguments:
    """What a call of a kernel says."""

    def __init__(self, source: Source, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.source = source
        given = dict(named)
        self.grid = _grid(source, given.pop("grid", None))
        try:
            bound = source.signature.bind(*args, **given)
        except TypeError as error:
            raise ArgumentError(f"{source.name}{source.signature}: {error}") from None
        bound.apply_defaults()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Spec] = {}
        self.constants: dict[str, Any] = {}
        for name, x in bound.arguments.items():
            x = _number(x)
            kind = source.signature.parameters[name].kind
            if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise ArgumentError(f"{source.name}{source.signature}: a kernel names all of its arguments: '*{name}' is not supported")
            if isinstance(x, Spec):
                self.outputs[name] = x
                _check_output(source, name, x)
            elif constant(x) or isinstance(x, (Function, Primitive)):
                self.constants[name] = x
            elif kind is inspect.Parameter.KEYWORD_ONLY:
                raise ArgumentError(f"{source.name}: '{name}' stands behind the `*`, so it is a number, a dtype or a tuple, known while the kernel is compiled; "
                                    f"it is given a {type(x).__name__}")  # fmt: skip
            else:
                self.inputs[name] = asarray(x)
        if not self.outputs:
            raise ArgumentError(f"{source.name} has no output: give one as astra.spec(shape, dtype)")


def _number(x: Any) -> Any:
    """An integer of numpy as one of Python's; anything else as it is."""
    return operator.index(x) if isinstance(x, np.integer) else x


def _grid(source: Source, grid: Any, least: int = 0) -> tuple[Any, ...]:
    if grid is None:
        raise ArgumentError(f"{source.name}: say how many programs run: grid=(...), one to three sizes")
    parts = tuple(_number(n) for n in (grid if isinstance(grid, tuple) else (grid,)))
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"{source.name}: a grid has one to three axes, not {len(parts)}")
    for axis, n in enumerate(parts):
        if isinstance(n, bool) or not isinstance(n, (int, _dims.Dim)):
            raise ArgumentError(f"{source.name}: extent {axis} of the grid is a size, not a {type(n).__name__}")
        low, high = (n, n) if isinstance(n, int) else n.bounds
        if low < least:
            raise ArgumentError(f"{source.name}: extent {axis} of the grid is {n}" + ("" if isinstance(n, int) else f", which may be {low}") + f"; {least} is the least")
        if high > MOST_PROGRAMS[axis]:
            raise ArgumentError(f"{source.name}: extent {axis} of the grid is {n}" + ("" if isinstance(n, int) else f", which may be {high}")
                                + f"; {MOST_PROGRAMS[axis]} is the most")  # fmt: skip
    return parts


def _check_output(source: Source, name: str, s: Spec) -> None:
    if not s.shape:
        raise ArgumentError(f"{source.name}: the output '{name}' has no axes; give it the shape (1,)")
    if s.dtype.kind == "s" and s.dtype.bits < 8:
        raise ArgumentError(f"{source.name}: the output '{name}' is of {s.dtype.name}, several of which share a byte: that is not there yet")
    if s.dtype.kind == "c":
        raise ArgumentError(f"{source.name}: the output '{name}' is of {s.dtype.name}; kernels compute with real numbers")


class Kernel:
    """A kernel: called with tensors, specs of its outputs, a grid, and numbers by name. Made by @astra.kernel."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.source = Source(f)
        self.__name__, self.__doc__, self.__wrapped__ = self.source.name, f.__doc__, f
        if "grid" in self.source.signature.parameters:
            raise ArgumentError(f"'{self.source.name}' has an argument 'grid', which is what a call says of its programs")
        self._derivative: Any = None

    def __repr__(self) -> str:
        return f"<kernel {self.source.name}{self.source.signature}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs: one tensor, or a tuple in the order of the arguments."""
        given = Arguments(self.source, args, named)
        if self._derivative is None:
            return self._emitted(given, list(given.inputs.values()))
        return self._derivative((given, named, args), *given.inputs.values())

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Declares the derivative, as `astra.custom_vjp` does: forward(*args, **named), with what the kernel is called with, gives (result,
        residuals); backward(residuals, cotangent) a tuple with a cotangent for each input, None for zeros."""

        def value(call_: Any, *tensors: Tensor) -> Any:
            return self._emitted(call_[0], list(tensors))

        def ahead(call_: Any, *tensors: Tensor) -> Any:
            given, named, args = call_
            found = iter(tensors)
            inputs = {name: next(found) for name in given.inputs}
            bound = self.source.signature.bind(*args, **{k: v for k, v in named.items() if k != "grid"})
            changed = {k: inputs.get(k, v) for k, v in bound.arguments.items()}
            return forward(*[changed[k] for k in list(bound.arguments)[: len(args)]], **{k: changed[k] for k in list(bound.arguments)[len(args) :]},
                           grid=given.grid)  # fmt: skip

        def behind(_: Any, residuals: Any, cotangent: Any) -> Any:
            return backward(residuals, cotangent)

        value.__name__ = self.source.name
        self._derivative = custom_vjp(value, nondiff_argnums=(0,))
        self._derivative.defvjp(ahead, behind)

    def _walked(self, graph: Graph, given: Arguments, tensors: Sequence[tuple[Tensor, list[Any]]]) -> tuple[GraphWalker, list[Tensor], list[View], list[list[Result]]]:
        """The body, built of placeholders: the walker, the placeholders, the outputs, the results."""
        walker = GraphWalker(self.source, language, graph, given.grid)
        inner = [placeholder(graph, t) for t, _ in tensors]
        names: dict[str, Any] = dict(given.constants)
        for name, (_, chain), p in zip(given.inputs, tensors, inner):
            with graph.transforming():
                for node in reversed(chain):
                    p = of_node(graph, call(graph.core.make, node.op, [p._in(graph), *node.sources[1:]], list(node.ints)))
            names[name] = View(name, p.dtype, walker.extents_of(p), p)
        outputs = []
        for name, s in given.outputs.items():
            names[name] = View(name, s.dtype, tuple(walker.extent(n) for n in s.shape), None)
            outputs.append(names[name])
        walker.begin(names)
        with graph.transforming():
            walker.run()
            results = walker.results(outputs)
        return walker, inner, outputs, results

    def _emitted(self, given: Arguments, tensors: list[Tensor]) -> Any:
        """The node `custom`, and its results."""
        if any(isinstance(n, int) and n == 0 for n in given.grid):  # no program runs
            zeros = tuple(_ops.broadcast_to(_ops.literal(False if s.dtype.kind == "b" else 0, s.dtype), s.shape) for s in given.outputs.values())
            return zeros[0] if len(zeros) == 1 else zeros
        graph = current()
        core = graph.core
        whole = [_whole(graph, t) for t in tensors]
        nodes = nodes_of(graph, [t for t, _ in whole])
        walker, inner, outputs, results = self._walked(graph, given, whole)
        # Nothing is hoisted: what a call before has built alike is built again inside.
        flat = [t for rows in results for r in rows for t in (r.value, r.stored) if t is not None]
        function, captured = call(core.close, nodes_of(graph, flat), nodes_of(graph, inner), 0, False, [])
        grid = [walker.node_of(n) for n in walker.grid]
        node = call(core.control, "custom", [*nodes, *captured, *grid], [], ",".join(walker.names_of_grid), [function])
        numbers = itertools.count()

        def result(r: Tensor, shape: tuple[Any, ...], steps: Sequence[int]) -> Tensor:
            t = of_node(graph, call(core.result, node, next(numbers), r.dtype.code, list(r._in(graph).dims)))
            return _shaped(t, r._in(graph).op == "place", shape, steps)

        out = []
        for v, rows in zip(outputs, results):
            shape = tuple(given.outputs[v.name].shape)
            whole_output = None
            for r in rows:  # a later store stands over an earlier one
                value = result(r.value, shape, r.steps)
                whole_output = value if r.stored is None else _ops.where(result(r.stored, shape, r.steps), value, whole_output)
            out.append(whole_output)
        return out[0] if len(out) == 1 else tuple(out)


def _whole(graph: Graph, t: Tensor) -> tuple[Tensor, list[Any]]:
    """What a tensor is a view of, and the movements that make it one, the last first: a kernel reads views in place."""
    chain: list[Any] = []
    node = t._in(graph)
    while node.op in ("permute", "expand", "shrink", "flip", "reshape", "window", "pad"):
        chain.append(node)
        node = node.sources[0]
    return (of_node(graph, node), chain) if chain else (t, [])


def _shaped(t: Tensor, placed: bool, shape: tuple[Any, ...], steps: Sequence[int]) -> Tensor:
    """A result in the shape of its output. steps: of the axes, each of which is two where it is not 1: of steps, and of elements in one."""
    if max(steps, default=1) > 1:
        rows = [_dims.ceildiv(n, s) * s for n, s in zip(shape, steps)]
        t = _ops.reshape(t, tuple(rows))
        return t[tuple(slice(0, n) for n in shape)]
    return t if placed and t.ndim == len(shape) else _ops.reshape(t, shape)


def interpret(kernel: Any, *args: Any, on_breakpoint: Callable[[dict[str, Any]], Any] | None = None, **named: Any) -> Any:
    """Runs a kernel program by program, with `print` and `breakpoint()` in it: interpret(add, x, y, out=..., grid=...). The bits are those of the kernel
    compiled under strict numerics. Accesses outside, elements that are written twice, what is assumed and asserted are checked as they happen. on_breakpoint: called with a dict of
    the program, the line and the names in place of a prompt."""
    if not isinstance(kernel, Kernel):
        raise ArgumentError("interpret takes a kernel, a function under @astra.kernel, and what it is called with")
    given = Arguments(kernel.source, args, named)
    if any(not isinstance(n, int) for n in (*given.grid, *(n for s in given.outputs.values() for n in s.shape))):
        raise ArgumentError("the interpreter runs with numbers: sizes are known there, no dims")
    names: dict[str, Any] = dict(given.constants)
    for name, t in given.inputs.items():
        names[name] = View(name, t.dtype, tuple(t.shape), of_value(t._realized()))
    outputs = [View(name, s.dtype, tuple(s.shape), None) for name, s in given.outputs.items()]
    names.update({v.name: v for v in outputs})
    walker = _interpret.Interpreter(kernel.source, language, given.grid, outputs, on_breakpoint)
    walker.run_all(names)
    for v in outputs:
        if not walker.outputs[v.name].mode and v.name not in walker.skipped and 0 not in given.grid:
            raise walker.error(f"nothing is stored into the output '{v.name}'", kernel.source.tree)
    found = [walker.outputs[v.name].value() for v in outputs]
    return found[0] if len(found) == 1 else tuple(found)


class Language:
    """`astra.kernel`: a decorator, whose attributes are the primitives of the language.

        @astra.kernel
        def add(x, y, out, *, BLOCK):
            at = kernel.program_id(0) * BLOCK
            a = kernel.load(x, (at,), (BLOCK,), fill=0.0)
            b = kernel.load(y, (at,), (BLOCK,), fill=0.0)
            kernel.store(out, (at,), a + b, drop=True)

        z = add(x, y, out=astra.spec(x.shape), grid=(astra.ceildiv(x.size, 1024),), BLOCK=1024)"""

    Primitive, Function, Kernel = Primitive, Function, Kernel
    primitives = PRIMITIVES
    groups = GROUPS
    views = _views
    most_elements = MOST_ELEMENTS
    interpret = staticmethod(interpret)

    def __call__(self, f: Callable[..., Any]) -> Any:
        """The kernel that a function is the source of."""
        if isinstance(f, (Kernel, Function)) or not inspect.isfunction(f):
            raise ArgumentError(f"@astra.kernel stands above a function of `def`, not above a {type(f).__name__}")
        return Kernel(f)

    def function(self, f: Callable[..., Any]) -> Any:
        """A decorator: a helper that kernels call; its body stands in place of the call, and its last statement may be a `return`."""
        return Function(f)

    def __getattr__(self, name: str) -> Any:
        if name == "triton":
            return importlib.import_module("astra.kernel.triton")
        try:
            return PRIMITIVES[name]
        except KeyError:
            raise AttributeError(f"astra.kernel has no '{name}'") from None

    def __dir__(self) -> list[str]:
        return sorted({*PRIMITIVES, "function", "interpret"})

    def __repr__(self) -> str:
        return "<astra.kernel: a decorator, and the primitives of the kernel language>"


language = Language()
kernel = language
__all__ = ["kernel"]
