"""Runs bundles that Astra compiled ahead of time: the same bits everywhere, without a compiler.

    import astra_rt
    model = astra_rt.load("digits.astra")
    scores = model(image)

See `load`, `Module`, `Session`, `Entry` and `Tensor`; for one bundle on several processes `astra_rt.ranks`.
"""

from . import _rt
from ._convert import as_input, as_output, from_dlpack, front, tensor
from ._errors import (
    ArgumentError,
    BundleError,
    BusyError,
    ClosedError,
    DeviceError,
    DTypeError,
    Error,
    FileError,
    ForkedError,
    FunctionError,
    MissingMemoryError,
    NotFoundError,
    ShapeError,
    StateLostError,
    UnsupportedError,
    make_exception,
)
from ._function import call as call_function
from ._function import register, unregister
from ._future import Future, call_async
from ._hash import hash
from ._info import DimInfo, TargetInfo, TensorInfo
from ._module import Module, Session, devices, load
from ._rt import Entry
from ._tensor import Tensor
from ._tokenizer import Tokenizer
from ._trace import Event, Trace

__version__: str = _rt.package_version
abi_version: str = f"{_rt.version >> 16}.{_rt.version & 0xFFFF}"
"""The version of the C ABI that is inside."""

_rt.set_exception_maker(make_exception)
_rt.set_tensor_class(Tensor)
_rt.set_converter(as_input)
_rt.set_out_converter(as_output)
_rt.set_front(front)
_rt.set_async_caller(call_async)
_rt.set_dispatcher(call_function)

__all__ = [
    "ArgumentError", "BundleError", "BusyError", "ClosedError", "DTypeError", "DeviceError", "DimInfo", "Entry", "Error",
    "Event", "FileError", "ForkedError", "FunctionError", "Future", "MissingMemoryError", "Module", "NotFoundError", "Session", "ShapeError",
    "StateLostError", "TargetInfo", "Tensor", "TensorInfo", "Tokenizer", "Trace", "UnsupportedError", "__version__", "abi_version",
    "devices", "from_dlpack", "hash", "load", "register", "tensor", "unregister",
]  # fmt: skip
