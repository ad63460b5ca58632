"""The module as a decorator: `from astra import astra`, then `@astra`."""

from __future__ import annotations

import sys
import types
from typing import Any

from ._jit import Jitted


class CallableModule(types.ModuleType):
    """The module `astra`, which may be called: a decorator that compiles what it is on."""

    def __call__(self, f: Any = None, **options: Any) -> Any:
        """Compiles a function ahead of its first call. On a function of tensors of this package it is `astra.jit`; on a function, an
        nn.Module class or an instance of PyTorch's see `astra.torch`."""
        if f is None:
            return lambda g: self(g, **options)
        return Jitted(f, options.pop("frozen", None))


def make_callable(name: str) -> None:
    """Lets the module of this name be called, and be found in itself under its own name."""
    module: Any = sys.modules[name]
    module.__class__ = CallableModule
    module.astra = module
