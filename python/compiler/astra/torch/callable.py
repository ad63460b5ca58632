"""What `@astra` makes of PyTorch code.

Takes:    a function, a bound method, a module or its class.
Gives:    a callable that captures and compiles at its first call with arguments of other types and shapes; for a module a module, which has the
          parts, parameters and names of the original.
Keeps:    a call like one before is found by one key, without a walk through its arguments. Inside of a trace, PyTorch's or this package's,
          the original runs.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch.utils import _device

from .. import _core
from .._cache import checked_numerics
from .._environment import Environment
from .._errors import ArgumentError
from .._graph import tracing
from .._static import static_key
from .._tensor import call, user_line
from .aliases import apart
from .capture import Captured, Inference, _Function
from .exclusive import capture, capturing, is_inside
from .program import kind_of
from .settings import settings

_MANY = 8  # programs for one kind of arguments
_MOST_QUICK = 512  # kinds of arguments that are found without flattening them

if kind_of is not None:

    @torch.compiler.substitute_in_graph(kind_of, skip_signature_check=True)  # Dynamo goes by the original
    def _kind_in_a_trace(tensors: Any) -> Any:
        return None


class _Variant:
    """A program for what its function reads beside its arguments. direct: what calls it with tensors by place alone, and what takes the
    result, or None."""

    __slots__ = ("program", "guards", "flags", "direct", "always")

    def __init__(self, program: Any, gradients: bool) -> None:
        self.program = program
        self.guards = program.guards if len(program.guards) else None
        self.flags = [t.requires_grad for t in program.tensors] if gradients and program.tensors else None
        self.always = self.guards is None and self.flags is None
        self.direct = program.program.direct() if isinstance(program, Inference) and program.is_direct else None

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        if self.guards is not None and not self.guards.check():
            return False
        return self.flags is None or self.flags == [t.requires_grad for t in self.program.tensors]


def checked_target(target: Any, bundle: Any) -> None:
    """Refuses machines that there are none of, and such as nothing would be compiled for."""
    if target is None:
        return
    for name in target.split(",") if isinstance(target, str) else list(target):
        if name not in ("native", *_core.targets()):  # of a GPU; or unknown: the compiler refuses it
            with tracing() as graph:
                making = _core.Making(graph.core, "nothing")
                one = call(graph.core.leaf, "f32", [])
                call(making.entry, "main", [("x", one)], [("result", one)])
                call(making.finish().compile, [name.removeprefix("emu:")], "schedule", "", 1)
        if bundle is None and name != "native":
            raise ArgumentError(f"target='{name}' says for which machines a bundle is compiled: give bundle='m.astra' too; calls run on this machine")


class Callable_:
    """What `@astra` makes of PyTorch code: compiled at the first call with arguments of other types, shapes or structure, or where what
    it reads beside them has other values."""

    def __init__(self, f: Any, dims: Mapping[str, Any] | None = None, target: Any = None, bundle: Any = None, grad: bool | None = None,
                 frozen: bool | None = None, numerics: str = "strict") -> None:  # fmt: skip
        checked_target(target, bundle)
        self._numerics = checked_numerics(numerics)
        self._f, self._dims, self._target, self._bundle, self._grad, self._frozen = f, dims, target, bundle, grad, frozen
        self._programs: dict[Any, list[_Variant]] = {}
        # What runs, what takes its result (None: it takes all tensors as one argument), the default device, and what must hold: by settings,
        # types and shapes, of calls with nothing but tensors by place.
        self._quick: dict[Any, tuple[Any, Any, Any, _Variant | None]] = {}
        self._eager: Any = f  # what runs inside of a trace
        self._warned = False
        self._saved = False
        self.traces = 0  # how many programs were made
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__doc__ = f.__doc__
        self.__wrapped__ = f

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._f, name)

    def __repr__(self) -> str:
        return f"astra({self._f!r})"

    @property
    def options(self) -> dict[str, Any]:
        """As they were given."""
        return {"dims": self._dims, "target": self._target, "bundle": self._bundle, "grad": self._grad, "frozen": self._frozen,
                "numerics": self._numerics}  # fmt: skip

    def __deepcopy__(self, memo: Any) -> Any:
        return Callable_(copy.deepcopy(self._f, memo), **self.options)

    def __reduce__(self) -> Any:
        return _remade, (self._f, self.options)

    def trace(self, *args: Any, **named: Any) -> Captured:
        """The captured graph for arguments: `.lower()`, `.compile()`."""
        return Captured(self._f, args, named, self._dims)

    def train(self, mode: bool = True) -> Any:
        """As nn.Module's."""
        module = self._f if isinstance(self._f, torch.nn.Module) else _Function(self._f)
        module.train(mode)
        return self

    def eval(self) -> Any:
        """As nn.Module's."""
        return self.train(False)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call(args, named)

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What a call gives. One with tensors by place alone, like one before, is found without flattening trees."""
        quick: Any = None
        if not named and capture.owner is None:
            quick = kind_of(args)
            found = self._quick.get(quick)
            if found is not None:
                run, taken, device, variant = found
                if device is _device.CURRENT_DEVICE and (variant is None or variant.holds()):
                    return run(args) if taken is None else taken(run(*args))
        return self._general(args, named, quick)

    def _general(self, args: Any, named: Any, quick: Any) -> Any:
        leaves, structure = pytree.tree_flatten((args, named))
        if is_inside(*leaves):
            return self._eager(*args, **named)
        variant = self._variant(args, named, leaves, structure, settings())
        if quick is not None:
            if len(self._quick) > _MOST_QUICK:  # shapes of dims
                self._quick.clear()
            direct = None if any(x.requires_grad for x in args) else variant.direct
            self._quick[quick] = (*(direct or (variant.program, None)), _device.CURRENT_DEVICE, None if variant.always else variant)
        return variant.program(leaves)

    def _variant(self, args: Any, named: Any, leaves: Sequence[Any], structure: Any, key: tuple[Any, ...]) -> _Variant:
        """The program for a call, which is made where there is none."""
        gradients = key[0] if self._grad is None else self._grad
        parts: list[Any] = [structure, gradients, key[1:]]
        for x in leaves:
            if isinstance(x, torch.Tensor):
                parts.append((x.dtype, None if self._dims else tuple(x.shape), x.requires_grad and gradients))
            else:
                parts.append(static_key(x))
        whole = tuple(parts)
        found = self._held(whole)
        if found is not None:
            return found
        with capturing():  # another thread may have made it meanwhile, or has put tensors of its trace into the module
            return self._held(whole) or self._kept(whole, _Variant(self._compiled(args, named, gradients, leaves), gradients))

    def _held(self, key: Any) -> _Variant | None:
        return next((v for v in tuple(self._programs.get(key, ())) if v.holds()), None)

    def _kept(self, key: Any, variant: _Variant) -> _Variant:
        """Keeps a program beside those for other values from outside, which are few."""
        kept = self._programs.setdefault(key, [])
        kept.insert(0, variant)
        if len(kept) > _MANY:
            path = kept.pop(1).program.environment.changed()
            if not self._warned:
                self._warned = True
                warnings.warn(f"'{self.__name__}' is compiled for more than {_MANY} values of '{path}' ({user_line()}), which it reads from outside: "
                              "pass it as an argument, a tensor", stacklevel=6)  # fmt: skip
        return variant

    def _compiled(self, args: Any, named: Any, gradients: bool, leaves: Sequence[Any]) -> Any:
        self.traces += 1
        args, named = pytree.tree_unflatten(apart(leaves), pytree.tree_structure((args, named)))
        if self._bundle is not None and self._saved:  # another would take the place of the first in the file
            raise ArgumentError(f"'{self.__name__}' has saved its bundle {self._bundle} for its first arguments; these have other types or shapes, or are used "
                                "in another way: give sizes that change as dims, or save another bundle by astra.from_torch")  # fmt: skip
        if gradients and self._grad is None:
            gradients = any(isinstance(x, torch.Tensor) and x.requires_grad for x in leaves) or self._has_gradients()
        if gradients:
            from .autograd import Differentiable

            if self._bundle is not None:
                with torch.no_grad():
                    self._save(Captured(self._f, args, named, self._dims))
            module = self._f if isinstance(self._f, torch.nn.Module) else _Function(self._f)
            return Differentiable(module, args, named, self.__name__, self._dims, self._frozen, self._numerics)
        captured = Captured(self._f, args, named, self._dims)
        if self._bundle is not None:
            self._save(captured)
        return Inference(captured, self._frozen, self._numerics)

    def _save(self, captured: Captured) -> None:
        captured.compile(self._target, self._frozen, self._numerics).save(self._bundle)
        self._saved = True

    def _has_gradients(self) -> bool:
        """Whether something that the function reads wants gradients."""
        found = Environment(self._f)
        return any(t.requires_grad for m in found.modules for t in m.parameters(False)) or any(
            isinstance(t, torch.Tensor) and t.requires_grad for _, t in found.objects.values())  # fmt: skip


def _remade(f: Any, options: dict[str, Any]) -> Any:
    return compiled(f, **options)


_SHARED = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class CompiledModule(torch.nn.Module):
    """A module that runs compiled. It shares the parameters, buffers, parts and hooks of the original, under the original's names; attributes
    are read from the original and set there."""

    def __init__(self, original: torch.nn.Module, options: dict[str, Any]) -> None:
        own = self.__dict__
        own.update((k, v) for k, v in vars(original).items() if k in _SHARED or k.endswith(("_hooks", "_hooks_with_kwargs", "_hooks_always_called")))
        own["original"] = original
        own["_engine"] = engine = Callable_(original, **options)
        own["_call"] = engine.call
        engine._eager = super().__call__  # as a part of what is traced: a module of its own
        own["__wrapped__"], own["__name__"], own["__doc__"] = original, engine.__name__, original.__doc__

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(args, named)

    def forward(self, *args: Any, **named: Any) -> Any:
        """As the original's, compiled."""
        return self.original.forward(*args, **named) if is_inside() else self._call(args, named)

    def trace(self, *args: Any, **named: Any) -> Captured:
        """The captured graph for arguments: `.lower()`, `.compile()`."""
        return self._engine.trace(*args, **named)

    @property
    def traces(self) -> int:
        """How many programs were made."""
        return self._engine.traces

    @property
    def training(self) -> bool:  # type: ignore[override]
        """As the original's."""
        return self.original.training

    def train(self, mode: bool = True) -> Any:
        """As nn.Module's."""
        self.original.train(mode)
        return self

    def __getattr__(self, name: str) -> Any:
        if "original" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["original"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.original, name)

    def __dir__(self) -> Any:
        return dir(self.original)

    def __repr__(self) -> str:
        return f"astra({self.original!r})"

    def __deepcopy__(self, memo: Any) -> Any:
        return CompiledModule(copy.deepcopy(self.original, memo), self._engine.options)

    def __reduce__(self) -> Any:
        return _remade, (self.original, self._engine.options)

    def state_dict(self, *args: Any, **named: Any) -> Any:
        """As the original's."""
        return self.original.state_dict(*args, **named)

    def load_state_dict(self, *args: Any, **named: Any) -> Any:
        """As the original's."""
        return self.original.load_state_dict(*args, **named)

    def _load_from_state_dict(self, *args: Any, **named: Any) -> None:
        self.original._load_from_state_dict(*args, **named)


def compiled(f: Any, **options: Any) -> Any:
    """`@astra` on PyTorch code."""
    if isinstance(f, type):
        return _compiled_class(f, options)
    return CompiledModule(f, options) if isinstance(f, torch.nn.Module) else Callable_(f, **options)


def _compiled_class(kind: type, options: dict[str, Any]) -> type:
    """A class whose instances are compiled when they are called."""
    checked_target(options.get("target"), options.get("bundle"))

    class Compiled_(kind):  # type: ignore[misc]
        def __call__(self, *args: Any, **named: Any) -> Any:
            if is_inside():
                return super().__call__(*args, **named)
            found = self.__dict__.get("_astra_compiled")
            if found is None:
                found = self.__dict__["_astra_compiled"] = Callable_(self, **options)
            return found(*args, **named)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(Compiled_, name, getattr(kind, name))
    return Compiled_
