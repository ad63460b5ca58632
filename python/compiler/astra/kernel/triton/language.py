"""`import astra.kernel.triton.language as tl`: the names that kernels of Triton's use. They have a meaning inside of a kernel alone."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..._dtypes import DTYPES
from ..._kernel._values import Tile
from ._builtins import BUILTINS, TYPES, Descriptor

globals().update(BUILTINS)
globals().update({name: DTYPES[own] for name, own in TYPES.items()})
dtype = type(DTYPES["float32"])
tensor, tensor_descriptor = Tile, Descriptor  # for isinstance


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(f"{__name__}.{name}", f"Functions of {name}, which are those of tl.")
    module.__dict__.update(names)
    sys.modules[module.__name__] = module
    return module


math = _module("math", **BUILTINS)
libdevice = _module("extra.libdevice", **BUILTINS)
extra = _module("extra", libdevice=libdevice, __path__=[])
