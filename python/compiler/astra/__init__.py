"""Tensors, transforms and compilation ahead of time.

    import astra
    x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = (x @ x.T).softmax(axis=-1)

What is here, by topic; `help(astra.grad)` says more of each:

    tensors      tensor, asarray, Tensor, realize, hash; newaxis, e, pi, inf, nan
    types        dtype, DType, promote; bool, int8, ..., float32, bfloat16, ..., complex128
    sizes        dim, Dim, ceildiv, require_equal
    functions    those of the Array API 2025.12 with NumPy's aliases (add, sum, matmul, where, ...), and those of networks (softmax, ...)
                 linalg, fft, random: modules of more
    transforms   grad, value_and_grad, vjp, jvp, linearize, jacfwd, jacrev, hessian, vmap, checkpoint, custom_vjp, custom_jvp
    control      cond, switch, while_loop, fori_loop, scan, associative_scan, map
    trees        tree: lists, dicts, dataclasses and modules of tensors
    compiling    jit, or @astra (`from astra import astra`); trace, export, entry, spec, Spec, Traced, Lowered, Compiled
    kernels      kernel: a decorator for kernels of one's own, with the primitives of their language; kernel.triton: kernels written for Triton
    outside      external: functions of the program by name; register, unregister
    bundles      load, verify, compile_file
    meshes       mesh, Mesh, shard: programs for several devices and machines
    networks     nn, init, losses, metrics, optim, schedules, data: modules
    language     lm: language models of GGUF files and of transformers
    training     train, compile_training, EarlyStop, Stop
    looking      explain, profile, compare, find_nan
    others       from_onnx, from_jax, from_torch; torch, register_lowering: functions and modules of PyTorch
    errors       Error, ArgumentError, ArgumentTypeError, AxisError, DTypeError, ShapeError, UnsupportedError, TraceError, FrozenError, MismatchError,
                 KernelError
"""

import sys as _sys
import typing as _typing
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from astra_rt import __version__ as __version__

from . import _analysis, _boundary, _control, _custom, _dims, _dtypes, _errors, _evaluate, _external, _jit, _mesh, _methods, _onnx, _ops
from . import _random, _stages, _tensor, _trace, _transforms, _tree
from . import fft as fft
from . import linalg as linalg
from ._activations import *  # noqa: F403
from ._aliases import *  # noqa: F403
from ._analysis import *  # noqa: F403
from ._control import *  # noqa: F403
from ._creation import *  # noqa: F403
from ._custom import *  # noqa: F403
from ._dims import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._errors import *  # noqa: F403
from ._evaluate import *  # noqa: F403
from ._external import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._inspection import *  # noqa: F403
from ._jit import *  # noqa: F403
from ._manipulation import *  # noqa: F403
from ._mesh import *  # noqa: F403
from ._module import make_callable as _make_callable
from ._onnx import *  # noqa: F403
from ._products import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._stages import *  # noqa: F403
from ._tensor import *  # noqa: F403
from ._trace import *  # noqa: F403
from ._transforms import *  # noqa: F403

random, tree, newaxis = _random, _tree, None
__array_api_version__ = "2025.12"
_sys.modules[__name__ + ".random"], _sys.modules[__name__ + ".tree"] = random, tree  # import astra.random
globals().update(_dtypes.DTYPES)
_methods.install()
_boundary.guard(globals(), (*_ops.__all__, "asarray", "dim", "hash", "promote", "realize", "spec", "tensor"), __name__)
_boundary.guard(vars(fft), fft.__all__, fft.__name__)
_boundary.guard(vars(linalg), linalg.__all__, linalg.__name__)
_boundary.guard(vars(random), random.__all__, random.__name__)

_LAZY = {  # what is loaded when it is first used, and the module that has it
    **{name: name for name in ("data", "init", "lm", "losses", "metrics", "nn", "optim", "schedules")},
    **dict.fromkeys(("EarlyStop", "Stop", "compile_training", "train"), "_train"),
    **dict.fromkeys(("compare", "find_nan", "profile"), "_debug"),
    "from_jax": "_jax",
    "kernel": "_kernel",
}
_OF_PYTORCH = ("from_torch", "register_lowering", "torch")  # where it is installed (_module)
_PARTS = (_analysis, _control, _custom, _dims, _dtypes, _errors, _evaluate, _external, _jit, _mesh, _onnx, _ops, _stages, _tensor, _trace, _transforms)
__all__ = sorted({
    "__array_api_version__", "__version__", "astra", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi", "random", "tree",
    *_dtypes.DTYPES, *_LAZY, *(name for part in _PARTS for name in part.__all__),
})  # fmt: skip
_make_callable(__name__)

if _typing.TYPE_CHECKING:
    from . import _module
    from . import data as data
    from . import init as init
    from . import lm as lm
    from . import losses as losses
    from . import metrics as metrics
    from . import nn as nn
    from . import optim as optim
    from . import schedules as schedules
    from . import torch as torch
    from ._debug import *  # noqa: F403
    from ._jax import *  # noqa: F403
    from ._kernel import kernel as kernel
    from ._train import *  # noqa: F403
    from .torch import from_torch as from_torch
    from .torch import register_lowering as register_lowering

    astra: _module.CallableModule
    bool: DType
    int2: DType
    int4: DType
    int8: DType
    int16: DType
    int32: DType
    int64: DType
    uint2: DType
    uint4: DType
    uint8: DType
    uint16: DType
    uint32: DType
    uint64: DType
    float4_e2m1fn: DType
    float8_e4m3fn: DType
    float8_e4m3fnuz: DType
    float8_e5m2: DType
    float8_e5m2fnuz: DType
    float8_e8m0fnu: DType
    float16: DType
    bfloat16: DType
    float32: DType
    float64: DType
    complex64: DType
    complex128: DType
else:

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
        return module if _LAZY[name] == name else getattr(module, name)

    def __dir__():
        return sorted({*__all__, *_OF_PYTORCH, *(name for name in globals() if name.startswith("__"))})
