"""Functions that are compiled when they are called: jit.

Takes:    a function of trees of tensors.
Gives:    a function that does the same; the stages of _trace and _stages behind it.
Keeps:    the function is traced once for each structure of its arguments. Tensors that it uses from outside are inputs of the program.
          Inside of a trace or a transform it is a part of what surrounds it.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
import warnings
import weakref
from collections import OrderedDict
from typing import Any, Callable, Mapping, Sequence

import numpy as np

import astra_rt
from astra_rt import ranks

from . import _cache, _dims, _tree
from ._errors import ArgumentError, ArgumentTypeError, ShapeError
from ._graph import inside
from ._mesh import Mesh
from ._stages import Lowered, results
from ._static import is_static, static_key
from ._tensor import Tensor, of_value, user_line
from ._trace import Spec, Traced, argument, argument_names, entry

_MOST_PROGRAMS = 512  # of one function
_MANY = 8  # values of a number of Python's, after which there is a warning
_all: weakref.WeakSet[Jitted] = weakref.WeakSet()


class _Static:
    """A value that is a leaf and part of the structure."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> None:  # so that it is no tensor
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and bool(static_key(self.value) == static_key(other.value))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class _Program:
    """A compiled function. guards: whether what it read beside its arguments is as it was; None where it read nothing."""

    __slots__ = ("entry", "captured", "out_tree", "single", "places", "environment", "guards", "_numbers")

    def __init__(self, traced: Traced, program: Any, order: list[int]) -> None:
        self.entry = program["main"]
        self.captured = [traced.graph.values[leaf] for leaf in traced.captured]
        self.out_tree = traced.out_tree
        self.single = self.out_tree == _tree.structure(0)
        self.places = None if order == sorted(order) else [order.index(i) for i in range(len(order))]
        self.environment = traced.environment
        numbers = {id(value): i for i, value in enumerate(self.captured)}
        once = [found[0] for found in self.environment.tensors.values() if len(found) == 1 and type(found[0]) is Tensor]
        self._numbers = {id(t): (numbers[id(t._value)], t) for t in once if id(t._value) in numbers}
        shared = {id(p.before) for p in self.environment.places if p.kind == "content" and isinstance(p.before, np.ndarray) and self._is_read(p.before)}
        guards = self.environment.guards(self._taken, shared)
        self.guards = guards if len(guards) else None

    def _is_read(self, array: Any) -> bool:
        """Whether a tensor from outside is an array's memory: what is written there is seen by the next call."""
        return any(value._address == array.ctypes.data and value.nbytes == array.nbytes for value in self.captured)

    def _taken(self, old: Any, new: Any) -> bool:
        """Takes another tensor in the place of one from outside, where it has the same type and shape."""
        found = self._numbers.get(id(old))
        if found is None or type(new) is not Tensor or id(new) in self._numbers:
            return False
        i, value = found[0], new._realized()
        if value.dtype != self.captured[i].dtype or value.shape != self.captured[i].shape:
            return False
        self.captured[i] = value
        del self._numbers[id(old)]
        self._numbers[id(new)] = (i, new)
        return True

    def __call__(self, values: Sequence[Any]) -> Any:
        made = self.entry(*values, *self.captured)
        if self.single:
            return of_value(made)
        return results(self.out_tree, made if self.places is None else tuple(made[i] for i in self.places))


class Jitted:
    """A function that is compiled when it is called with arguments of other types, shapes or structure: what `astra.jit` gives."""

    def __init__(self, f: Callable[..., Any], frozen: bool | None = None, static_argnums: Any = (), static_argnames: Any = (),
                 dims: Mapping[str, Any] | None = None, check: bool = False, numerics: str = "strict", mesh: Mesh | None = None,
                 shardings: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        if shardings is not None and mesh is None:
            raise ArgumentError("shardings are of a mesh: give mesh=astra.mesh(...)")
        self._mesh, self._shardings = mesh, dict(shardings or {})
        self._f, self._frozen, self._check, self._numerics = f, frozen, check, _cache.checked_numerics(numerics)
        self._dims = {name: {0: d} if isinstance(d, _dims.Dim) else dict(d) for name, d in (dims or {}).items()}
        self._numbers, self._names = _static_places(f, static_argnums, static_argnames)
        self._programs: OrderedDict[Any, list[_Program]] = OrderedDict()  # by structure: one for each set of values from outside
        self._quick: dict[Any, _Program] = {}  # by types and shapes, of calls with nothing but tensors by place
        self._values: dict[Any, set[Any]] = {}  # of numbers of Python's, by all else
        self._warned = False  # of values from outside
        self._traces = 0
        functools.update_wrapper(self, f, updated=())
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__qualname__ = getattr(f, "__qualname__", self.__name__)
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # a function of a module, as pickle has functions

    def trace(self, *args: Any, **named: Any) -> Traced:
        """See `astra.trace`."""
        args, named = self._marked(args, named)
        return Traced(self.__name__, {"main": entry(self._unmarked, *args, **named)})

    def lower(self, *args: Any, **named: Any) -> Lowered:
        """The module for arguments or specs."""
        lowered = self.trace(*args, **named).lower().with_numerics(self._numerics)
        return lowered if self._mesh is None else lowered.with_mesh(self._mesh, self._shardings)

    @property
    def traces(self) -> int:
        """How many times the function has been traced: it is the number of programs that were made."""
        return self._traces

    def clear_cache(self) -> None:
        """Forgets what was compiled in this process."""
        self._programs.clear()
        self._quick.clear()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not named:
            key = []
            values = []
            for x in args:
                if type(x) is Tensor:
                    value = x._value
                    if value is None:
                        break
                elif type(x) is np.ndarray:
                    value = x  # the runtime takes it as it is
                else:
                    break
                values.append(value)
                key.append(value.dtype)
                key.append(value.shape)
            else:
                program = self._quick.get(tuple(key))
                if program is not None and not inside() and (program.guards is None or program.guards.check()):
                    return program(values)
        return self._general(args, named)

    def _general(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if inside():
            return self._f(*args, **named)
        args, named = self._marked(args, named)
        leaves, structure = _tree.flatten((args, named))
        key: list[Any] = [structure]
        values, plain = [], not named
        names = argument_names(self._f, args, named) if self._dims else []
        for i, x in enumerate(leaves):
            if type(x) is not Tensor:
                if is_static(x):
                    key.append(static_key(x))
                    plain = False
                    continue
                names = names or argument_names(self._f, args, named)
                x = argument(x, names[i])
            value = x._value
            if value is None:
                value = x._realized()
            values.append(value)
            shape = value.shape
            if names and names[i] in self._dims:
                shape = self._shape(names[i], shape)
            key.append((value.dtype, shape))
        whole = tuple(key)
        found = self._programs.get(whole, ())
        program = next((p for p in found if p.guards is None or p.guards.check()), None)
        if program is None:
            if not found:
                self._warn(args, named, leaves)
            program = self._kept(whole, self._compiled(args, named))
        if plain and len(args) == len(leaves) and all(isinstance(x, Tensor) or _is_plain_array(x) for x in leaves):
            if len(self._quick) > _MOST_PROGRAMS:  # shapes of dims
                self._quick.clear()
            given = [x._realized() if isinstance(x, Tensor) else x for x in leaves]
            self._quick[tuple(part for v in given for part in (v.dtype, v.shape))] = program
        return program(values)

    def _kept(self, key: Any, program: _Program) -> _Program:
        """Keeps a program beside those for other values from outside, which are few."""
        kept = self._programs.setdefault(key, [])
        kept.insert(0, program)
        if len(kept) > _MANY:
            path = kept[1].environment.changed()
            kept.pop()
            if not self._warned:
                self._warned = True
                warnings.warn(f"'{self.__name__}' is compiled for more than {_MANY} values of '{path}' ({user_line()}), which it reads from outside: "
                              "pass it as an argument, a tensor", stacklevel=5)  # fmt: skip
        if len(self._programs) > _MOST_PROGRAMS:
            self._programs.popitem(last=False)
            self._quick.clear()
        return program

    def _shape(self, name: str, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """The shape of an argument, dims in place of the extents that they stand for."""
        out: list[Any] = list(shape)
        for axis, d in self._dims[name].items():
            if not -len(out) <= axis < len(out):
                raise ShapeError(f"dims names axis {axis} of argument '{name}', whose shape is {shape}")
            out[axis] = d
        return tuple(out)

    def _with_dims(self, args: Any, named: Any) -> tuple[Any, Any]:
        """The arguments, specs in place of those with dims."""
        names = argument_names(self._f, args, named)
        for name in self._dims:
            if name not in names:
                raise ArgumentError(f"dims names '{name}'; the arguments of '{self.__name__}' are {', '.join(names)}")
        leaves, structure = _tree.flatten((args, named))
        for i, name in enumerate(names):
            if name in self._dims:
                t = argument(leaves[i], name)
                leaves[i] = Spec(self._shape(name, t.shape), t.dtype)
        return _tree.unflatten(structure, leaves)

    def _compiled(self, args: Any, named: Any) -> _Program:
        if self._dims:
            args, named = self._with_dims(args, named)
        self._traces += 1
        traced = Traced(self.__name__, {"main": entry(self._unmarked, *args, **named)})
        order = traced.by_depth()
        module = traced.module(constants=False, order=order)
        if self._mesh is not None:
            module = Lowered(module).with_mesh(self._mesh, self._shardings).module
        bundle = _cache.compile(module, what=f"'{self.__name__}'", frozen=self._frozen, check=self._check, numerics=self._numerics)
        return _Program(traced, astra_rt.load(bundle) if self._mesh is None else ranks.init().load(bundle), order)

    def _marked(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, static ones as leaves."""
        if not self._numbers and not self._names:
            return args, named
        for i, x in (*enumerate(args), *named.items()):
            if (i in self._numbers or i in self._names) and getattr(type(x), "__hash__", None) is None:
                raise ArgumentTypeError(f"argument {i!r} of '{self.__name__}' is static and a {type(x).__name__}, which cannot be hashed ({user_line()})")
        marked = tuple(_Static(x) if i in self._numbers else x for i, x in enumerate(args))
        return marked, {k: _Static(x) if k in self._names else x for k, x in named.items()}

    @property
    def _unmarked(self) -> Any:
        """f for marked arguments."""
        f = self._f
        if not self._numbers and not self._names:
            return f

        @functools.wraps(f)
        def function(*args: Any, **named: Any) -> Any:
            plain = [x.value if isinstance(x, _Static) else x for x in args]
            return f(*plain, **{k: x.value if isinstance(x, _Static) else x for k, x in named.items()})

        return function

    def _warn(self, args: Any, named: Any, leaves: list[Any]) -> None:
        """Says so where one number after another makes a program."""
        for i, x in enumerate(leaves):
            if not isinstance(x, (int, float, complex)) or isinstance(x, bool):
                continue
            others = tuple((type(y), y) if is_static(y) else None for j, y in enumerate(leaves) if j != i)
            seen = self._values.setdefault((i, len(leaves), others), set())
            seen.add(x)
            if len(seen) == _MANY:
                name = argument_names(self._f, args, named)[i]
                warnings.warn(f"'{self.__name__}' is compiled for the {_MANY}th value of its argument '{name}' ({user_line()}): give a tensor, "
                              f"astra.asarray({name}), for what changes from call to call", stacklevel=4)  # fmt: skip


def _is_plain_array(x: Any) -> bool:
    """Whether the runtime takes an array as asarray would."""
    return type(x) is np.ndarray and x.dtype.isnative and x.dtype.kind in "biufc"


def _static_places(f: Any, numbers: Any, names: Any) -> tuple[set[int], set[str]]:
    """Static parameters by place and by name: each both ways."""
    by_place = {numbers} if isinstance(numbers, int) else set(numbers)
    by_name = {names} if isinstance(names, str) else set(names)
    if by_place or by_name:
        parameters = list(inspect.signature(f).parameters)
        for i in list(by_place):
            if not -len(parameters) <= i < len(parameters):
                raise ValueError(f"static_argnums names argument {i}; {getattr(f, '__name__', 'the function')} has {len(parameters)}")
            by_place.discard(i)
            by_place.add(i % len(parameters))
            by_name.add(parameters[i])
        for n in list(by_name):
            if n in parameters:
                by_place.add(parameters.index(n))
    return by_place, by_name


def jit(f: Callable[..., Any] | None = None, *, frozen: bool | None = None, static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (), dims: Mapping[str, Any] | None = None, check: bool = False,
        numerics: str = "strict", mesh: Mesh | None = None, shardings: Mapping[str, Any] | None = None) -> Any:  # fmt: skip
    """A function that does what f does, compiled for this machine. f is called once for each structure, types and shapes of the
    arguments, and again where a number, list or object that it reads from outside has another value; tensors from outside are read at
    each call. What it changes beside its result, and what it prints, is refused (TraceError). Numbers of Python's are part of the structure, and so are arguments that static_argnums or
    static_argnames name, whatever they are (they are compared and hashed): give a tensor for what changes from call to call.
    dims: sizes that may differ from call to call without another compilation, by argument: {"x": astra.dim("n", 1, 64)} for axis 0, or
    {"x": {1: dim}}. frozen: True forbids to compile (as ASTRA_FROZEN=1 does for all). check: kernels test what they assume and assert when
    they run (docs/kernels.md). numerics: "device:hopper16" and the like adds products as a matrix unit does (docs/numerics.md, N4.8). A decorator: `@astra.jit`.

    mesh, shardings: as of `Lowered.with_mesh`, by names of arguments ("p.weight") and results: calls are of all ranks that a launcher has
    started (`astra_rt.ranks`), each with the same tensors, whole ones (docs/distributed.md)."""
    if f is None:
        return lambda g: Jitted(g, frozen, static_argnums, static_argnames, dims, check, numerics, mesh, shardings)
    return Jitted(f, frozen, static_argnums, static_argnames, dims, check, numerics, mesh, shardings)


def _after_fork() -> None:
    """A loaded program belongs to the process that loaded it."""
    for function in list(_all):
        function.clear_cache()


os.register_at_fork(after_in_child=_after_fork)


__all__ = ["jit"]
