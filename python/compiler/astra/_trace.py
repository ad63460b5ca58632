"""Functions as graphs: spec, entry, trace, export.

Takes:    functions of trees of tensors; examples or specs of their arguments; values of states and params.
Gives:    Traced: one graph with an entry for each function. `lower()` makes a module of it.
Keeps:    a function is called once. What it may not do is refused with its line; after an exception nothing is left of the trace.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from . import _core, _dims, _dtypes, _environment, _tree
from ._errors import ArgumentError, ArgumentTypeError, DTypeError, Error, ShapeError, TraceError
from ._external import after_effects
from ._graph import Graph, tracing
from ._static import is_static, static_key
from ._tensor import Tensor, asarray, call, of_node
from ._transforms import operand

if TYPE_CHECKING:
    from ._stages import Lowered


class Spec:
    """Type and shape of an argument. Extents are numbers or dims (`astra.dim`)."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Any, dtype: Any = "float32") -> None:
        self.shape = (shape,) if isinstance(shape, (int, _dims.Dim)) else tuple(shape)
        self.dtype = _dtypes.dtype(dtype)

    def __repr__(self) -> str:
        return f"Spec({self.dtype.name}[{', '.join(map(str, self.shape))}])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.dtype.code, tuple(str(n) for n in self.shape)


def spec(shape: Any, dtype: Any = "float32") -> Spec:
    """Type and shape of an argument of a function that is traced. Extents are numbers or dims (`astra.dim`)."""
    return Spec(shape, dtype)


def argument_names(f: Any, args: Sequence[Any], named: Mapping[str, Any], skip: int = 0) -> list[str]:
    """A name for each leaf of the arguments: "x", "params.w". skip: parameters before them."""
    try:
        parameters = list(inspect.signature(f).parameters.values())[skip:]
    except (TypeError, ValueError):
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    out: list[str] = []
    for i, x in enumerate(args):
        first = positional[i] if i < len(positional) else f"x{i}"
        out += [first + ("." + p if p else "") for p in _tree.paths(x)]
    for key in sorted(named):
        out += [key + ("." + p if p else "") for p in _tree.paths(named[key])]
    return out


def argument(x: Any, name: str) -> Tensor:
    """A leaf of the arguments as a tensor."""
    if isinstance(x, Tensor):
        return x
    try:
        return asarray(x)
    except (Error, TypeError, ValueError) as error:
        raise ArgumentError(f"argument '{name}' is a {type(x).__name__}: neither a tensor nor a tree of tensors ({error}); register its class "
                            "with astra.tree.register, or name it in static_argnames") from None  # fmt: skip


class Signature:
    """What an entry is called with and what it gives; without its graph. It can be pickled."""

    def __init__(self, name: str, in_tree: Any, statics: list[tuple[int, Any]], inputs: list[tuple[str, str]]) -> None:
        self.name, self.in_tree, self.statics, self.inputs = name, in_tree, statics, inputs
        self.out_tree: Any = None
        self.outputs: list[tuple[str, str]] = []
        # How many tensors by place are the arguments; -1 where they are something else.
        count = len(inputs) or in_tree.num_leaves
        self.plain = count if not statics and in_tree == _tree.structure(((0,) * count, {})) else -1

    def tensors(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The inputs among the arguments of a call, which are like those that were traced."""
        leaves, structure = _tree.flatten((args, named))
        if structure != self.in_tree:
            wanted = ", ".join(f"{n}: {s}" for n, s in self.inputs) or "none"
            raise ArgumentError(f"{self.name}() takes {self.in_tree.num_leaves} arguments or parts of them ({wanted}), of the structure "
                                f"{_shown(self.in_tree)}; those given have {_shown(structure)}")  # fmt: skip
        places = set()
        for i, value in self.statics:
            places.add(i)
            if static_key(leaves[i]) != static_key(value):
                raise ArgumentError(f"{self.name}() was traced with {value!r} in place of {leaves[i]!r}; numbers of Python's are a part of the program")
        return [x for i, x in enumerate(leaves) if i not in places]


def _shown(structure: Any) -> str:
    """A structure of (args, kwargs), as a call is written."""
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")").split(", namespace=")[0]


class TracedEntry:
    """One function of a trace."""

    def __init__(self, signature: Signature, leaves: list[Any]) -> None:
        self.signature, self.leaves = signature, leaves
        self.inputs: list[tuple[str, Spec]] = []
        self.outputs: list[tuple[str, Spec]] = []
        self.nodes: list[Any] = []
        self.updates: list[tuple[str, Any]] = []


class EntrySpec:
    """A function with what it will be called with: what `astra.entry` gives."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], updates: bool) -> None:
        self.f, self.args, self.named, self.updates = f, args, named, updates


def entry(f: Callable[..., Any], *args: Any, updates: bool = False, **named: Any) -> EntrySpec:
    """A function for `astra.export`, and examples or specs of its arguments: without the params and states, which it is given
    first. updates: it gives (states, result), and the states are those of later calls."""
    return EntrySpec(f, args, named, updates)


class Shared:
    """A tree of values that all entries have: params, or states."""

    def __init__(self, graph: Graph, tree: Any, what: str) -> None:
        leaves, self.structure = _tree.flatten(tree)
        self.names = [p or what for p in _tree.paths(tree)]
        self.values: list[Any] = []
        self.specs: list[Spec] = []
        for name, x in zip(self.names, leaves):
            t = None if isinstance(x, Spec) else argument(x, name)
            self.values.append(None if t is None else t._realized())
            self.specs.append(x if t is None else Spec(t.shape, t.dtype))
        if len(set(self.names)) != len(self.names):
            raise ArgumentError(f"two {what}s have one name: {', '.join(self.names)}")
        self.leaves = [call(graph.core.leaf, s.dtype.code, [_dims.size_node(graph.core, n) for n in s.shape]) for s in self.specs]

    def tree(self, graph: Graph) -> Any:
        return _tree.unflatten(self.structure, [of_node(graph, leaf) for leaf in self.leaves])


class Traced:
    """Functions as one graph: what `astra.trace` and `astra.export` give. `lower()` makes a module of it."""

    def __init__(self, name: str, entries: Mapping[str, EntrySpec], params: Any = None, states: Any = None) -> None:
        self.name = name
        self.entries: dict[str, TracedEntry] = {}
        self.environment: Any = None  # what the last function reads beside its arguments
        with tracing() as graph:
            self.graph: Graph = graph
            self.params = None if params is None else Shared(graph, params, "param")
            self.states = None if states is None else Shared(graph, states, "state")
            for key, e in entries.items():
                self.entries[key] = self._traced(key, e)
        # Values from outside that the results use: further inputs of jit, constants of a bundle.
        known = graph.values
        self.captured = [leaf for leaf in graph.core.leaves_of(self._roots()) if leaf in known]

    def _traced(self, key: str, e: EntrySpec) -> TracedEntry:
        graph = self.graph
        shared = [s for s in (self.params, self.states) if s is not None]
        leaves, in_tree = _tree.flatten((tuple(e.args), e.named))
        given: list[Any] = []
        statics = [(i, x) for i, x in enumerate(leaves) if not isinstance(x, Spec) and is_static(x)]
        out = TracedEntry(Signature(key, in_tree, statics, []), [])
        taken = {n for s in shared for n in s.names}
        for name, x in zip(argument_names(e.f, e.args, e.named, len(shared)), leaves):
            if not isinstance(x, Spec) and is_static(x):
                given.append(x)
                continue
            s = x if isinstance(x, Spec) else Spec(argument(x, name).shape, argument(x, name).dtype)
            leaf = call(graph.core.leaf, s.dtype.code, [_dims.size_node(graph.core, n) for n in s.shape])
            given.append(of_node(graph, leaf))
            out.inputs.append((_free(name, taken), s))
            out.leaves.append(leaf)
        args, named = _tree.unflatten(in_tree, given)
        whole = (tuple(s.tree(graph) for s in shared), args, named)
        before = _tree.containers(whole)
        name = self.name if key == "main" else key
        graph.effect = None
        with _environment.traced(e.f, name, *(getattr(x, "value", x) for _, x in statics)) as self.environment:
            result = _lined(e.f, *whole[0], *args, **named)
        self._refuse_changed_arguments(name, e, before, _tree.containers(whole))
        if e.updates:
            result = self._updated(key, result, out)
        made, out.signature.out_tree = _tree.flatten(result)
        paths = _tree.paths(result)
        if not isinstance(result, dict):
            paths = ["result" + ("." + p if p else "") for p in paths]
        tensors = [self._result(name, e.f, p, y) for p, y in zip(paths, made)]
        out.nodes = after_effects(graph, name, [t._in(graph) for t in tensors], [u for _, u in out.updates])
        paths = self._output_names(paths, out)
        out.outputs = [(p, Spec(t.shape, t.dtype)) for p, t in zip(paths, tensors)]
        out.signature.inputs = [(n, repr(s)) for n, s in out.inputs]
        out.signature.outputs = [(n, repr(s)) for n, s in out.outputs]
        return out

    @staticmethod
    def _result(name: str, f: Any, path: str, y: Any) -> Tensor:
        try:
            return operand(y)
        except (Error, TypeError, ValueError) as error:
            raise ArgumentTypeError(f"'{name}' ({_environment.line_of_function(f)}) gives a {type(y).__name__} as '{path or 'result'}', "
                                    f"which is no tensor: {error}") from None  # fmt: skip

    def _output_names(self, paths: Sequence[str], out: TracedEntry) -> list[str]:
        """Names of the results, which no other value of the entry has: an input that is given back keeps its name."""
        values = {n: leaf for (n, _), leaf in zip(out.inputs, out.leaves)}
        for s in (self.params, self.states):
            values.update(zip(s.names, s.leaves) if s is not None else ())
        names: list[str] = []
        taken: set[str] = set()
        for path, node in zip(paths, out.nodes):
            if path in values and not node == values[path]:
                path = f"result.{path}"
            names.append(_free(path or "result", taken | (values.keys() - {path})))
            taken.add(names[-1])
        return names

    @staticmethod
    def _refuse_changed_arguments(name: str, e: EntrySpec, before: Any, after: Any) -> None:
        """A list or dict that a function is given and changes would be a copy of it."""
        if before[1] == after[1] and all(x is y for x, y in zip(before[0], after[0])):
            return
        raise TraceError(f"'{name}' ({_environment.line_of_function(e.f)}) changes a list or dict that it is given: those of the caller would stay "
                         "as they are; return what it becomes")  # fmt: skip

    def _updated(self, key: str, result: Any, out: TracedEntry) -> Any:
        """The result without the states, which the entry updates."""
        if self.states is None:
            raise ArgumentError(f"entry '{key}' updates states, and export is given none")
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ArgumentError(f"entry '{key}' updates states: it gives a pair, (states, result)")
        leaves, structure = _tree.flatten(result[0])
        if structure != self.states.structure:
            raise ArgumentError(f"entry '{key}' gives states of the structure {structure}; they have {self.states.structure}")
        for name, s, old, x in zip(self.states.names, self.states.specs, self.states.leaves, leaves):
            t = asarray(x)
            if t.dtype is not s.dtype:
                raise DTypeError(f"entry '{key}' makes state '{name}' {t.dtype.name}; it is {s.dtype.name}")
            if t.shape != tuple(s.shape):
                raise ShapeError(f"entry '{key}' gives state '{name}' the shape {t.shape}; it has {tuple(s.shape)}")
            node = t._in(self.graph)
            if not node == old:
                out.updates.append((name, node))
        return result[1]

    @property
    def inputs(self) -> list[tuple[str, Spec]]:
        """Names and types of the inputs of the entry "main", or of the only one."""
        return self._main().inputs

    @property
    def outputs(self) -> list[tuple[str, Spec]]:
        """Names and types of the results of the entry "main", or of the only one."""
        return self._main().outputs

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments, (args, kwargs)."""
        return self._main().signature.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._main().signature.out_tree

    def _main(self) -> TracedEntry:
        found = self.entries.get("main") or (next(iter(self.entries.values())) if len(self.entries) == 1 else None)
        if found is None:
            raise ArgumentError(f"there is no entry 'main', and not just one; the entries are {', '.join(self.entries)}")
        return found

    def _roots(self) -> list[Any]:
        return [n for e in self.entries.values() for n in [*e.nodes, *(u for _, u in e.updates)]]

    def as_text(self) -> str:
        """The graph as a listing."""
        return str(self.graph.core.text(self._roots()))

    def module(self, constants: bool = True, order: Sequence[int] | None = None) -> Any:
        """The module of the core. constants: tensors from outside are part of it, else they are inputs of every entry. order: of the
        results of "main" in the module.

        Entries compute their roots in order. Updates of states go by depth: the gradient of the last layer, which is ready first, is
        used before those of the layers below are made, and what it needs is given up."""
        making = _core.Making(self.graph.core, self.name if self.name.isidentifier() else "function")
        if self.params is not None:
            for name, leaf, value in zip(self.params.names, self.params.leaves, self.params.values):
                call(making.param, name, leaf, "weight", _data(value))
        if self.states is not None:
            for name, leaf, value in zip(self.states.names, self.states.leaves, self.states.values):
                call(making.state, name, leaf, _data(value))
        more: list[tuple[str, Any]] = []
        for i, leaf in enumerate(self.captured):
            if constants:
                call(making.param, f"captured.{i}", leaf, "fixed", _data(self.graph.values[leaf]))
            else:
                more.append((f"captured.{i}", leaf))
        for key, e in self.entries.items():
            inputs = list(zip((n for n, _ in e.inputs), e.leaves)) + more
            outputs = [(name, n) for (name, _), n in zip(e.outputs, e.nodes)]
            if order is not None:
                outputs = [outputs[i] for i in order]
            depths = self.graph.core.depths_of([n for _, n in e.updates])
            updates = [u for _, u in sorted(zip(depths, e.updates), key=lambda pair: pair[0])]
            call(making.entry, key, inputs, outputs, updates)
        return making.finish()

    def by_depth(self) -> list[int]:
        """The results of "main", those that can be computed first before the others."""
        depths = self.graph.core.depths_of(self._main().nodes)
        return sorted(range(len(depths)), key=depths.__getitem__)

    def lower(self) -> Lowered:
        """The module: tensors from outside are its constants."""
        from ._stages import Lowered

        return Lowered(self.module(), {key: e.signature for key, e in self.entries.items()}, self.states and self.states.structure)


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is taken now."""
    name = name.replace("\0", "\\0")
    found, n = name, 2
    while found in taken:
        found, n = f"{name}.{n}", n + 1
    taken.add(found)
    return found


def _lined(f: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """f(...), of which what the package refuses names the line of the user's that asked for it."""
    try:
        return f(*args, **named)
    except Exception as error:
        line = _environment.line_of_refusal(error)
        if line and error.args and isinstance(error.args[0], str) and line not in error.args[0] and "\n" not in error.args[0]:
            error.args = (f"{error.args[0]} ({line})", *error.args[1:])
        raise


def _data(value: Any) -> tuple[int, int] | None:
    return None if value is None else (value._address, value.nbytes)


def trace(f: Callable[..., Any], *args: Any, **named: Any) -> Traced:
    """Calls f with tensors that have no values, and keeps what it does with them as a graph. Arguments are examples (tensors,
    arrays), `astra.spec(shape, dtype)`, or trees of these; what else they are (numbers, strings, functions) is given to f as it is."""
    return Traced(getattr(f, "__name__", type(f).__name__), {"main": entry(f, *args, **named)})


def export(entries: Mapping[str, EntrySpec], states: Any = None, params: Any = None, name: str = "module") -> Traced:
    """Several functions as one program, which share params and states: each is what `astra.entry` gives, and is called as
    f(params, states, *args), without params or states where there are none.

    states: a tree of tensors (or specs: zeros), the first values; calls read them, and entries with updates=True replace them.
    params: a tree of tensors, weights that may be replaced when a bundle is loaded. Their names are their paths: "layers.0.weight"."""
    for key, e in entries.items():
        if not isinstance(e, EntrySpec):
            raise ArgumentError(f"entry '{key}' is a {type(e).__name__}; it must be astra.entry(function, *specs)")
    if not entries:
        raise ArgumentError("export needs an entry at least")
    return Traced(name, entries, params, states)


__all__ = ["Spec", "Traced", "entry", "export", "spec", "trace"]
