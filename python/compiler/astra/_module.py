"""The module as a decorator: `from astra import astra`, then `@astra`.

Takes:    a function, or an nn.Module's class or instance.
Gives:    the same, compiled ahead of its first call: by `astra.jit`, or where tensors of PyTorch's go in by `astra.torch`.
Keeps:    PyTorch is imported only where it was imported before.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from ._errors import ArgumentError
from ._jit import Jitted

_TORCH_OPTIONS = ("dims", "target", "bundle", "grad")
_OWN_OPTIONS = ("mesh", "shardings")


def _torch() -> Any:
    """PyTorch where the process has it."""
    module = sys.modules.get("torch")
    return module if module is not None and hasattr(module, "Tensor") else None


def _has_torch_tensor(xs: Any) -> bool:
    torch = _torch()
    if torch is None:
        return False
    for x in xs:
        if isinstance(x, torch.Tensor):
            return True
        if isinstance(x, (list, tuple)) and _has_torch_tensor(x) or isinstance(x, dict) and _has_torch_tensor(x.values()):
            return True
    return False


def _refuse_own(options: dict[str, Any]) -> None:
    wrong = [k for k in _OWN_OPTIONS if options.get(k) is not None]
    if wrong:
        raise ArgumentError(f"@astra({wrong[0]}=...) is for functions of Astra's tensors; PyTorch's modules train on a mesh by astra.torch.train_step(..., mesh=...)")


class Decorated:
    """A function under `@astra`: its arguments say whose it is."""

    def __init__(self, f: Any, options: dict[str, Any]) -> None:
        self._f, self._options = f, options
        self._of_torch: Any = None
        self._own: Any = None
        self._kind: Any = None  # PyTorch's tensors
        self._call: Any = None  # of them
        self._bound: dict[int, Any] = {}  # methods of objects that have no attributes of their own
        if _torch() is not None and any(options.get(k) is not None for k in ("target", "bundle")):
            from .torch.callable import checked_target

            checked_target(options.get("target"), options.get("bundle"))
        functools.update_wrapper(self, f)

    def _chosen(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if _has_torch_tensor(args) or _has_torch_tensor(named.values()):
            if self._of_torch is None:
                _refuse_own(self._options)
                from .torch import compiled

                self._kind = sys.modules["torch"].Tensor
                self._of_torch = compiled(self._f, **self._options)
                self._call = self._of_torch.call
            return self._of_torch
        if self._own is None:
            wrong = [k for k in _TORCH_OPTIONS if k in self._options]
            if wrong:
                raise ArgumentError(f"@astra({wrong[0]}=...) is for functions of PyTorch's tensors; use astra.trace(...).lower() here")
            self._own = Jitted(self._f, self._options.get("frozen"), numerics=self._options.get("numerics", "strict"),
                               **{k: self._options[k] for k in _OWN_OPTIONS if k in self._options})  # fmt: skip
        return self._own

    def __call__(self, *args: Any, **named: Any) -> Any:
        if args and type(args[0]) is self._kind:  # as in the call before
            return self._call(args, named)
        return self._chosen(args, named)(*args, **named)

    @property
    def traces(self) -> int:
        """How many programs were made: see `Jitted.traces`."""
        return sum(f.traces for f in (self._own, self._of_torch) if f is not None)

    def trace(self, *args: Any, **named: Any) -> Any:
        """The graph for arguments: `.lower()`, then `.compile()`."""
        return self._chosen(args, named).trace(*args, **named)

    def lower(self, *args: Any, **named: Any) -> Any:
        """The module for arguments."""
        return self.trace(*args, **named).lower()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _Method(self, instance)

    def of(self, instance: Any) -> Any:
        """The method of an object on PyTorch's tensors: one for each object."""
        kept = None if isinstance(instance, type) else getattr(instance, "__dict__", None)  # a class's cannot be written
        methods = self._bound if kept is None else kept.setdefault(_METHODS, _Methods()).of
        key = id(instance) if kept is None else id(self)
        if key not in methods:
            from .torch.callable import Callable_

            methods[key] = Callable_(types.MethodType(self._f, instance), **self._options)
        return methods[key]


_METHODS = "_astra_methods"


class _Methods:
    """The compiled methods of an object; a copy of the object begins without."""

    def __init__(self) -> None:
        self.of: dict[int, Any] = {}

    def __deepcopy__(self, memo: Any) -> _Methods:
        return _Methods()

    def __reduce__(self) -> Any:
        return _Methods, ()


class _Method:
    """A function under `@astra` as a method of an object."""

    def __init__(self, decorated: Decorated, instance: Any) -> None:
        self._decorated, self._instance = decorated, instance
        self.__wrapped__ = types.MethodType(decorated._f, instance)
        self.__name__, self.__doc__ = decorated.__name__, decorated.__doc__

    def _chosen(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        torch = _torch()
        is_network = torch is not None and isinstance(self._instance, torch.nn.Module)
        if is_network or _has_torch_tensor(args) or _has_torch_tensor(named.values()):
            return self._decorated.of(self._instance)
        return functools.partial(self._decorated, self._instance)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._chosen(args, named)(*args, **named)

    @property
    def traces(self) -> int:
        """How many programs were made: see `Jitted.traces`."""
        return int(self._decorated.of(self._instance).traces) if _torch() is not None else self._decorated.traces

    def trace(self, *args: Any, **named: Any) -> Any:
        """The graph for arguments: `.lower()`, then `.compile()`."""
        chosen = self._chosen(args, named)
        return self._decorated.trace(self._instance, *args, **named) if isinstance(chosen, functools.partial) else chosen.trace(*args, **named)


class CallableModule(types.ModuleType):
    """The module `astra`, which may be called: a decorator that compiles what it is on."""

    def __call__(self, f: Any = None, **options: Any) -> Any:
        """Compiles a function, or an nn.Module's class or instance, ahead of its first call. frozen=True forbids to compile.
        numerics="device:hopper16" and the like, mesh=astra.mesh(data=8) and shardings={...}: see `astra.jit`. For PyTorch's
        code: dims={"x": ("batch", 1, 64)} are sizes that may change, bundle="m.astra" saves what is compiled, target="..." says for
        which machines, grad=True or False says whether results have gradients (else as PyTorch would)."""
        if f is None:
            return lambda g: self(g, **options)
        wrong = sorted(set(options) - {*_TORCH_OPTIONS, *_OWN_OPTIONS, "frozen", "numerics"})
        if wrong:
            raise ArgumentError(f"@astra takes dims, target, bundle, grad, frozen, numerics, mesh and shardings, not {wrong[0]}")
        torch = _torch()
        if torch is not None and (isinstance(f, torch.nn.Module) or (isinstance(f, type) and issubclass(f, torch.nn.Module))):
            _refuse_own(options)
            from .torch import compiled

            return compiled(f, **options)
        return Decorated(f, options)

    def __getattr__(self, name: str) -> Any:
        if name == "torch":  # imported when somebody asks: it needs PyTorch
            import importlib

            try:
                return importlib.import_module(f"{self.__name__}.torch")
            except ModuleNotFoundError as error:
                if error.name != "torch":
                    raise
                raise AttributeError(f"{self.__name__}.torch needs PyTorch, which is not installed") from None
        if name == "from_torch":
            return self.torch.from_torch
        if name == "register_lowering":
            return self.torch.register_lowering
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")


def make_callable(name: str) -> None:
    """Lets the module of this name be called, and be found in itself under its own name."""
    module: Any = sys.modules[name]
    module.__class__ = CallableModule
    module.astra = module
