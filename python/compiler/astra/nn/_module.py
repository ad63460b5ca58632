"""Modules: trees of tensors that can be called.

Takes:    subclasses of Module; their attributes are tensors, modules, containers of these, or settings.
Gives:    trees: `astra.grad`, `jit`, `vmap`, optimizers and files go over the tensors; settings are part of the structure.
Keeps:    a module is pure: a call changes nothing. What a training step does beside (running statistics, random numbers of a dropout)
          happens in `apply`, which gives the module as it is afterwards.
"""

from __future__ import annotations

import functools
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import numpy as np

from .. import _dtypes, _ops, _tree
from .._errors import ArgumentError, DTypeError, ShapeError
from .._tensor import Tensor, asarray

_STATIC = (bool, int, float, complex, str, bytes, type(None), _dtypes.DType, type)


class _Building(threading.local):
    depth = 0


_building = _Building()


class _Kind(type):
    """Registers each class as a tree; the outermost constructor draws the weights of all that it made."""

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        if "__call__" in members:
            cls.__call__ = _watched(members["__call__"])  # type: ignore[method-assign]
        _tree.register(cls, _flatten, lambda static, children: _unflatten(cls, static, children))

    def __call__(cls, *args: Any, seed: int = 0, **named: Any) -> Any:
        _building.depth += 1
        try:
            made = super().__call__(*args, **named)
        finally:
            _building.depth -= 1
        if not _building.depth:
            initialize(made, seed, fresh=True)
        return made


def _watched(call: Callable[..., Any]) -> Callable[..., Any]:
    """A module's call, of which `watch` sees the result."""

    @functools.wraps(call)
    def watched(self: Any, *args: Any, **named: Any) -> Any:
        out = call(self, *args, **named)
        for see in _run.watchers:
            see(self, out)
        return out

    return watched


@contextmanager
def watch(see: Callable[[Any, Any], None]) -> Iterator[None]:
    """Meanwhile see(module, result) is called after the call of each module, inner ones first."""
    _run.watchers.append(see)
    try:
        yield
    finally:
        _run.watchers.remove(see)


def _is_static(value: Any) -> bool:
    if isinstance(value, _STATIC):
        return True
    if isinstance(value, (tuple, list)):
        return all(map(_is_static, value)) and bool(value)
    return callable(value) and not isinstance(value, Module)


class _Setting:
    """A setting in the structure of a tree: lists are compared as what they hold."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _key(self) -> Any:
        return tuple(self.value) if isinstance(self.value, list) else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Setting) and type(self.value) is type(other.value) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return repr(self.value)


def _flatten(module: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]:
    fields = {k: v for k, v in module.__dict__.items() if not k.startswith("_")}
    dynamic = tuple(k for k, v in fields.items() if not _is_static(v))
    static = tuple((k, _Setting(v)) for k, v in fields.items() if _is_static(v))
    return tuple(fields[k] for k in dynamic), (dynamic, static, tuple(fields)), dynamic


def _unflatten(cls: type, structure: Any, children: Any) -> Any:
    made: Any = object.__new__(cls)
    dynamic, static, order = structure
    values = {**dict(zip(dynamic, children)), **{k: s.value for k, s in static}}
    for k in order:
        made.__dict__[k] = values[k]
    return made


class Module(metaclass=_Kind):
    """Derive from it, make parts in `__init__`, and say in `__call__` (or `forward`) what it does:

        class Net(astra.nn.Module):
            def __init__(self):
                self.inner, self.outer = astra.nn.Linear(784, 128), astra.nn.Linear(128, 10)

            def __call__(self, x):
                return self.outer(astra.relu(self.inner(x)))

        net = Net(seed=0)

    Tensors, modules and containers of these are parts of the tree; numbers, strings, functions and None are settings. Weights are drawn
    when the outermost constructor ends, from `seed`, each by its place in the tree."""

    _buffers: tuple[str, ...] = ()  # names of tensors that are not trained
    _initial: dict[str, str] = {}  # parameter -> recipe of an initializer (astra.init)

    def forward(self, *args: Any, **named: Any) -> Any:
        """What a call does, where a class has no `__call__` of its own."""
        raise NotImplementedError(f"{type(self).__name__} has neither __call__ nor forward")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.forward(*args, **named)

    def recipe(self, name: str) -> str | None:
        """The initializer of a parameter by its name; None: it is not drawn."""
        return self._initial.get(name)

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors by their names, "layers.0.weight", as PyTorch has them."""
        return {path: t for path, t, _, _ in _named(self)}

    def load_state_dict(self, state: Any, strict: bool = True) -> Any:
        """This module with tensors of a dict by their names (arrays, tensors of PyTorch's, of a safetensors file). strict: every name
        is in both. The module itself stays as it is."""
        own = self.state_dict()
        missing, others = [n for n in own if n not in state], [n for n in state if n not in own]
        if strict and (missing or others):
            raise ArgumentError(f"the names are not those of the module: missing {missing or 'none'}; unknown {others or 'none'}")
        new = {}
        for name, old in own.items():
            if name not in state:
                continue
            value = asarray(state[name])
            if tuple(value.shape) != tuple(old.shape):
                raise ShapeError(f"'{name}' has shape {tuple(value.shape)}; the module's has {tuple(old.shape)}")
            if value.dtype is not old.dtype:
                if value.dtype.kind != old.dtype.kind:
                    raise DTypeError(f"'{name}' is of {value.dtype.name}; the module's is {old.dtype.name}")
                value = _ops.astype(value, old.dtype)
            new[name] = value
        copy = _copied(self)
        for path, _, owner, field in _named(copy):
            if path in new:
                _put(owner, field, new[path])
        return copy

    def __repr__(self) -> str:
        parts = []
        for k, v in self.__dict__.items():
            if k.startswith("_"):
                continue
            shown = f"{v.dtype.name}[{', '.join(map(str, v.shape))}]" if isinstance(v, Tensor) else repr(v)
            parts.append(f"{k}={shown}")
        text = ", ".join(parts)
        if len(text) + len(type(self).__name__) > 100:
            text = "\n  " + ",\n  ".join(p.replace("\n", "\n  ") for p in parts) + "\n"
        return f"{type(self).__name__}({text})"


def _copied(module: Any) -> Any:
    leaves, structure = _tree.flatten(module)
    return _tree.unflatten(structure, leaves)


def _put(owner: Any, field: Any, value: Any) -> None:
    if isinstance(owner, Module):
        owner.__dict__[field] = value
    else:
        owner[field] = value


def _named(module: Any, path: str = "") -> Iterator[tuple[str, Tensor, Any, Any]]:
    """Name, tensor, owner and field of each tensor, in the order in which they were made."""
    if isinstance(module, Module):
        items: Any = [(k, v) for k, v in module.__dict__.items() if not k.startswith("_")]
    elif isinstance(module, dict):
        items = list(module.items())
    else:
        items = list(enumerate(module))
    for key, value in items:
        name = f"{path}.{key}" if path else str(key)
        if isinstance(module, Sequential) and key == "layers":
            name = path  # as PyTorch's: "0.weight"
        if isinstance(value, Tensor):
            yield name, value, module, key
        elif isinstance(value, (Module, dict, list)) or (isinstance(value, tuple) and not _is_static(value)):
            yield from _named(value, name)


def initialize(module: Any, seed: int = 0, fresh: bool = False) -> Any:
    """Draws the parameters of a module from a seed, each by its place; gives the module. fresh: only those that have not been drawn or
    given. Otherwise the module stays as it is and another is given."""
    from ..init import draw

    made = module if fresh else _copied(module)
    for stream, (_, t, owner, field) in enumerate(list(_named(made))):
        recipe = owner.recipe(field) if isinstance(owner, Module) else None
        if recipe is None or (fresh and _unset.get(id(t)) is not t and not _is_drawn(owner, field, t)):
            continue
        value = draw(recipe, t.shape, t.dtype, seed, stream)
        _put(owner, field, value)
        if fresh:
            owner.__dict__.setdefault("_drawn", {})[field] = value
    return made


def _is_drawn(owner: Any, field: str, value: Tensor) -> bool:
    return owner.__dict__.get("_drawn", {}).get(field) is value


_unset: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # parameters that are not drawn yet, by their ids: zeros


def parameter(shape: Any, dtype: Any = "float32") -> Tensor:
    """A parameter that is drawn when the outermost constructor ends, by the recipe that its module names."""
    made = _ops.zeros(shape, dtype=dtype)
    _unset[id(made)] = made
    return made


def modules_of(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Name and module of each part that is one, as PyTorch names them; itself with the name ""."""
    if isinstance(module, Module):
        yield path, module
        items: Any = [(k, v) for k, v in module.__dict__.items() if not k.startswith("_")]
    elif isinstance(module, dict):
        items = list(module.items())
    else:
        items = list(enumerate(module))
    for key, value in items:
        inner = path if isinstance(module, Sequential) and key == "layers" else f"{path}.{key}" if path else str(key)
        if isinstance(value, (Module, dict, list)) or (isinstance(value, tuple) and not _is_static(value)):
            yield from modules_of(value, inner)


def is_buffer(owner: Any, field: Any) -> bool:
    """Whether a tensor of a module is one that training does not change by gradients."""
    return isinstance(owner, Module) and field in owner._buffers


def partition(module: Any, trained: Callable[[str, Tensor], bool] | None = None) -> tuple[Any, Any]:
    """(parameters, rest): two trees of the module's form, with None where the other has a tensor. Parameters are tensors of floats that
    are no buffers, and for which trained(name, tensor) holds. `combine` puts them together again."""
    one, other = _copied(module), _copied(module)
    second = {path: (owner, field) for path, _, owner, field in _named(other)}
    for path, t, owner, field in list(_named(one)):
        chosen = t.dtype.kind == "f" and not is_buffer(owner, field) and (trained is None or trained(path, t))
        if chosen:
            _put(*second[path], _Absent())
        else:
            _put(owner, field, _Absent())
    return one, other


class _Absent:
    """Where the other part of a partition has a tensor: a tree without leaves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "-"


_tree.register(_Absent, lambda _: ((), None), lambda *_: _Absent())


def combine(parameters: Any, rest: Any) -> Any:
    """The module of which `partition` made two trees."""
    if isinstance(parameters, _Absent):
        return rest
    if isinstance(rest, _Absent) or isinstance(parameters, Tensor):
        return parameters
    if isinstance(parameters, Module):
        made = object.__new__(type(parameters))
        for k, v in parameters.__dict__.items():
            if not k.startswith("_"):
                made.__dict__[k] = combine(v, rest.__dict__[k])
        return made
    if isinstance(parameters, dict):
        return {k: combine(v, rest[k]) for k, v in parameters.items()}
    if isinstance(parameters, (list, tuple)) and not _is_static(parameters):
        return type(parameters)(combine(x, y) for x, y in zip(parameters, rest))
    return parameters


class _Run(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Context] = []
        self.watchers: list[Callable[[Any, Any], None]] = []


class _Context:
    def __init__(self, training: bool, key: Any) -> None:
        self.training, self.key, self.count = training, key, 0

    def stream(self) -> tuple[Tensor, Tensor]:
        """Seed and stream of the next random numbers."""
        if self.key is None:
            raise ArgumentError("random numbers are needed here: astra.nn.apply(model, ..., key=astra.random.key(0))")
        self.count += 1
        key = asarray(self.key)
        return key[0], key[1] + _ops.literal(self.count, _dtypes.DTYPES["uint32"])


_run = _Run()


def context() -> _Context:
    """What the call at hand is for: training or inference."""
    return _run.stack[-1] if _run.stack else _Context(False, None)


def apply(module: Any, *args: Any, training: bool = True, key: Any = None, **named: Any) -> tuple[Any, Any]:
    """(module(*args), the module afterwards): as in training, where batch norms take the statistics of the batch and keep a mean of
    them, and dropouts drop by random numbers of the key (uint32[2], `astra.random.key`)."""
    copy = _copied(module)
    _run.stack.append(_Context(training, key))
    try:
        out = copy(*args, **named)
    finally:
        _run.stack.pop()
    return out, copy


class Function(Module):
    """A function as a module without tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)


class Sequential(Module):
    """Modules and functions one after another."""

    def __init__(self, *layers: Any) -> None:
        self.layers = [x if isinstance(x, Module) else Function(x) for x in layers]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Any:
        return self.layers[i]


def save(module: Any, path: Any) -> None:
    """Writes the tensors of a module into a .safetensors file, by their names."""
    import os

    from astra_rt._safetensors import write

    write(os.fspath(path), {name: t._realized() for name, t in module.state_dict().items()})


def load(module: Any, path: Any, strict: bool = True) -> Any:
    """The module with the tensors of a .safetensors file."""
    import os

    from astra_rt._safetensors import read

    return module.load_state_dict(read(os.fspath(path)), strict)


_ = np
