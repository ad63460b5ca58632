"""Tensors, transforms and compilation ahead of time.

    import astra
    x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = (x @ x.T).softmax(axis=-1)

See `tensor`, `jit`, `grad`, `vmap`, `trace`, `load`.
"""

import sys as _sys
from math import e, inf, nan, pi

from astra_rt import __version__

from . import _methods, _ops, fft, linalg
from . import _random as random
from . import _tree as tree
from ._analysis import explain
from ._control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from ._custom import checkpoint, custom_vjp
from ._dims import Dim, dim, require_equal
from ._dtypes import DTYPES as _DTYPES
from ._dtypes import DType, dtype, promote
from ._errors import ArgumentError, DTypeError, Error, FrozenError, MismatchError, ShapeError, TraceError, UnsupportedError
from ._evaluate import hash, realize
from ._jit import jit
from ._module import make_callable as _make_callable
from ._onnx import from_onnx
from ._ops import *  # noqa: F403
from ._ops import __array_namespace_info__
from ._stages import Compiled, Lowered, compile_file, load, verify
from ._tensor import Tensor, asarray, tensor
from ._trace import Spec, Traced, entry, export, spec, trace
from ._transforms import grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap

newaxis = None
__array_api_version__ = "2025.12"
_sys.modules[__name__ + ".random"], _sys.modules[__name__ + ".tree"] = random, tree  # import astra.random
globals().update(_DTYPES)
_methods.install()
__all__ = sorted([
    "ArgumentError", "Compiled", "DType", "DTypeError", "Dim", "Error", "FrozenError", "Lowered", "MismatchError", "ShapeError", "Spec",
    "Tensor", "TraceError", "Traced", "UnsupportedError", "__array_api_version__", "__version__", "asarray", "associative_scan",
    "checkpoint", "compile_file", "cond", "custom_vjp", "dim", "dtype", "e", "entry", "explain", "export", "fft", "fori_loop", "from_onnx",
    "grad", "hash", "hessian", "inf", "jacfwd", "jacrev", "jit", "jvp", "linalg", "linearize", "load", "map", "nan", "newaxis", "pi",
    "promote", "random", "realize", "require_equal", "scan", "spec", "switch", "tensor", "trace", "tree", "value_and_grad", "verify", "vjp",
    "vmap", "while_loop", *_DTYPES, *_ops.__all__,
])  # fmt: skip
_make_callable(__name__)

_PARTS = ("data", "init", "losses", "metrics", "nn", "optim", "schedules")  # loaded when they are first used


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in ("train", "compile_training", "EarlyStop", "Stop"):
        from . import _train

        return getattr(_train, name)
    if name == "from_jax":
        from . import _jax

        return _jax.from_jax
    if name in ("find_nan", "compare", "profile"):
        from . import _debug

        return getattr(_debug, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
