"""Functions that are compiled: jit, trace, lower, compile, save, load.

Takes:    a function of trees of tensors; examples or specs of its arguments.
Gives:    JAX's stages: trace(f, ...) -> Traced, lower() -> Lowered, compile() -> Compiled, save(path); and jit, which goes through them
          at the first call with arguments of other types, shapes or structure.
Keeps:    a traced function is called once for each structure of its arguments. Tensors that it uses from outside are inputs of the
          program in jit, and constants of a bundle. Numbers of Python's among the arguments are part of the structure.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Sequence

import astra_rt

from . import _cache, _core, _dims, _dtypes, _evaluate, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, tracing
from ._tensor import Tensor, asarray, call, of_node, of_value


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


def _is_static(x: Any) -> bool:
    return x is None or isinstance(x, (bool, int, float, complex, str, bytes, _dtypes.DType, _dims.Dim)) or callable(x)


def _names(f: Any, args: Sequence[Any], named: dict[str, Any]) -> list[str]:
    """A name for each leaf of the arguments: "x", "params.w"."""
    try:
        positional = [p.name for p in inspect.signature(f).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):
        positional = []
    out: list[str] = []
    for i, x in enumerate(args):
        first = positional[i] if i < len(positional) else f"x{i}"
        out += [first + ("." + p if p else "") for p in _tree.paths(x)]
    for key in sorted(named):
        out += [key + ("." + p if p else "") for p in _tree.paths(named[key])]
    return out


class Traced:
    """A function as a graph: what `astra.trace` gives.

    `lower()` makes a module of it; `inputs` and `outputs` are (name, Spec)."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> None:
        self.name = getattr(f, "__name__", type(f).__name__)
        leaves, self.in_tree = _tree.flatten((tuple(args), named))
        names = _names(f, args, named)
        with tracing() as graph:
            self.graph: Graph = graph
            given, self.inputs, self._leaves = [], [], []
            for name, x in zip(names, leaves):
                if _is_static(x):
                    given.append(x)
                    continue
                s = x if isinstance(x, Spec) else Spec(asarray(x).shape, asarray(x).dtype)
                leaf = call(graph.core.leaf, s.dtype.code, [_dims.size_node(graph.core, n) for n in s.shape])
                given.append(of_node(graph, leaf))
                self.inputs.append((name, s))
                self._leaves.append(leaf)
            inner_args, inner_named = _tree.unflatten(self.in_tree, given)
            out = f(*inner_args, **inner_named)
            out_leaves, self.out_tree = _tree.flatten(out)
            tensors = [asarray(y) for y in out_leaves]
            self._nodes = [t._in(graph) for t in tensors]
        paths = _tree.paths(out)
        self.outputs = [("result" + ("." + p if p else ""), Spec(t.shape, t.dtype)) for p, t in zip(paths, tensors)]
        # Values from outside that the results use: further inputs of jit, constants of a bundle.
        known = graph.values
        self._captured = [leaf for leaf in graph.core.leaves_of(self._nodes) if leaf in known]

    def as_text(self) -> str:
        """The graph as a listing."""
        return str(self.graph.core.text(self._nodes))

    def _module(self, constants: bool) -> Any:
        core = self.graph.core
        making = _core.Making(core, self.name if self.name.isidentifier() else "function")
        inputs = list(zip((n for n, _ in self.inputs), self._leaves))
        if constants:
            for i, leaf in enumerate(self._captured):
                value = self.graph.values[leaf]
                call(making.param, f"captured.{i}", leaf, "fixed", (value._address, value.nbytes))
        else:
            inputs += [(f"captured.{i}", leaf) for i, leaf in enumerate(self._captured)]
        call(making.entry, "main", inputs, [(name, n) for (name, _), n in zip(self.outputs, self._nodes)])
        return making.finish()

    def lower(self) -> Lowered:
        """The module of the function: tensors from outside are its constants."""
        return Lowered(self._module(constants=True), self)


class Lowered:
    """A module: what `Traced.lower` gives. `compile` makes code of it."""

    def __init__(self, module: Any, traced: Traced | None = None) -> None:
        self.module, self.traced = module, traced

    def as_text(self, dialect: str = "uop", target: str | None = None) -> str:
        """The module as text: "uop" (the text form), "schedule", "plan", "c", "asm", or of a GPU "mlir", "llvm", "ptx"."""
        if dialect == "uop":
            return str(self.module.text(False))
        name = _cache.native() if target in (None, "native") else target
        return str(call(self.module.compile, [name], dialect, "", 1).text)

    def compile(self, target: str | Sequence[str] | None = None, frozen: bool | None = None) -> Compiled:
        """A bundle for the targets: names as `astra-compile --target` takes them, with commas or as a list; None: every CPU level
        that there is."""
        names = target.split(",") if isinstance(target, str) else list(target or _core.targets())
        return Compiled(_cache.compile(self.module, names, f"'{self.module.name}'", frozen=frozen), self.traced)


class Compiled:
    """A bundle in memory: what `Lowered.compile` gives. Call it, or `save` it and `astra.load` it anywhere."""

    def __init__(self, bundle: bytes, traced: Traced | None = None) -> None:
        self.bundle, self._traced = bundle, traced
        self._loaded: Any = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle: the file is there as a whole or not at all."""
        target = os.fspath(path)
        temporary = f"{target}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(self.bundle)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    @property
    def module(self) -> Any:
        """The loaded module (`astra_rt.Module`)."""
        if self._loaded is None:
            self._loaded = astra_rt.load(self.bundle)
        return self._loaded

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self._traced is None:
            return self.module(*args, **named)
        leaves, structure = _tree.flatten((args, named))
        if structure != self._traced.in_tree:
            raise ArgumentError(f"the arguments have the structure {structure}; the function was traced with {self._traced.in_tree}")
        given = [_value(x) for x in leaves if not _is_static(x)]
        return _results(self._traced, self.module["main"](*given))


def _value(x: Any) -> Any:
    """An argument as the runtime takes it."""
    return x._realized() if isinstance(x, Tensor) else asarray(x)._realized()


def _results(traced: Traced, made: Any) -> Any:
    values = list(made) if isinstance(made, tuple) else [made]
    return _tree.unflatten(traced.out_tree, [of_value(v) for v in values])


def trace(f: Callable[..., Any], *args: Any, **named: Any) -> Traced:
    """Calls f with tensors that have no values, and keeps what it does with them as a graph. Arguments are examples (tensors,
    arrays), `astra.spec(shape, dtype)`, or trees of these; what else they are (numbers, strings, functions) is given to f as it is."""
    return Traced(f, args, named)


class Jitted:
    """A function that is compiled when it is called with arguments of other types, shapes or structure: what `astra.jit` gives."""

    def __init__(self, f: Callable[..., Any], frozen: bool | None) -> None:
        self._f, self._frozen = f, frozen
        self._programs: dict[Any, tuple[Traced, Any, list[Any]]] = {}
        self.__name__, self.__doc__ = getattr(f, "__name__", type(f).__name__), f.__doc__
        self.__wrapped__ = f

    def trace(self, *args: Any, **named: Any) -> Traced:
        """See `astra.trace`."""
        return trace(self._f, *args, **named)

    def lower(self, *args: Any, **named: Any) -> Lowered:
        """The module for arguments or specs."""
        return self.trace(*args, **named).lower()

    def __call__(self, *args: Any, **named: Any) -> Any:
        leaves, structure = _tree.flatten((args, named))
        key: list[Any] = [structure]
        dynamic = []
        for x in leaves:
            if _is_static(x):
                key.append((type(x), x))
                continue
            t = x if isinstance(x, Tensor) else asarray(x)
            if t._value is None and t._graph.tracing:  # inside of another trace: a part of it
                return self._f(*args, **named)
            value = t._realized()
            dynamic.append(value)
            key.append((value.dtype, value.shape))
        program = self._programs.get(tuple(key))
        if program is None:
            program = self._programs[tuple(key)] = self._compiled(args, named)
        traced, entry, captured = program
        return _results(traced, entry(*dynamic, *captured))

    def _compiled(self, args: Any, named: Any) -> tuple[Traced, Any, list[Any]]:
        traced = Traced(self._f, args, named)
        captured = [traced.graph.values[leaf] for leaf in traced._captured]
        module = traced._module(constants=False)
        program = astra_rt.load(_cache.compile(module, what=f"'{self.__name__}'", frozen=self._frozen))
        return traced, program["main"], captured


def jit(f: Callable[..., Any] | None = None, *, frozen: bool | None = None) -> Any:
    """A function that does what f does, compiled for this machine. f is called once for each structure, types and shapes of the
    arguments; its side effects happen then. Numbers of Python's are part of the structure: give a tensor for what changes from
    call to call. frozen: True forbids to compile (as ASTRA_FROZEN=1 does for all). A decorator: `@astra.jit`."""
    if f is None:
        return lambda g: Jitted(g, frozen)
    return Jitted(f, frozen)


def load(path: str | os.PathLike[str] | bytes, **options: Any) -> Any:
    """A saved bundle, ready to be called: `astra_rt.load`."""
    return astra_rt.load(path, **options)


_ = (DTypeError, ShapeError, _evaluate)
