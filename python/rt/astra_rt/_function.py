"""Functions of Python that bundles call.

Takes:    names and functions of arrays, or of C.
Gives:    register, unregister; call, which the extension module calls for a bundle.
Keeps:    a name stands for the function that was registered last, also in bundles that are loaded already. A function is given views of
          the runtime's memory: one that keeps a view is refused, since that memory is used again.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Callable, TypeVar

import numpy as np

from . import _rt
from ._convert import NARROW, NUMPY, as_input, decoded
from ._errors import DTypeError, ShapeError, refusal

_F = TypeVar("_F", bound=Callable[..., Any])
_DETERMINISTIC, _EFFECTS = 1, 2
_functions: dict[str, Callable[..., Any]] = {}
_flags: dict[str, int] = {}


def register(name: str, function: _F | None = None, *, deterministic: bool = False, effects: bool = False) -> Any:
    """Registers a function that bundles call by this name; without `function` a decorator. A bundle that calls a function is loaded when
    it is registered.

    The function is given NumPy arrays, read-only, and gives an array, or a tuple of them where the call has several results, of the
    dtypes and shapes that the bundle says. The arrays are the runtime's memory: copy what is kept. What it raises ends the call with
    a FunctionError. It is called on the thread that runs the call, with the GIL.

    A function of C is one of a `ctypes` library that has the type astra_function_fn of astra.h: it is called without the GIL.

    deterministic   equal inputs give equal bits: what a bundle that declares it so, or is loaded with strict=True, asks for
    effects         it does more than give results; a bundle that calls it must declare it so too"""
    if not isinstance(name, str) or not name:
        raise TypeError("a function is registered by a name")
    if function is None:
        return lambda f: register(name, f, deterministic=deterministic, effects=effects)
    if not callable(function):
        raise TypeError(f"'{name}' is a {type(function).__name__}, which cannot be called")
    flags = _DETERMINISTIC * bool(deterministic) + _EFFECTS * bool(effects)
    if isinstance(function, ctypes._CFuncPtr):
        _rt.register(name, flags, ctypes.cast(function, ctypes.c_void_p).value)
    else:
        _rt.register(name, flags)
    _functions[name], _flags[name] = function, flags
    return function


def unregister(name: str) -> None:
    """Bundles that call it are refused again; calls of those that are loaded fail."""
    _functions.pop(name, None)
    _rt.register(name, -1)


def is_registered(name: str) -> bool:
    """Whether there is a function of this name."""
    return name in _functions


def declared(name: str) -> tuple[bool, bool] | None:
    """Whether a function was registered as deterministic, and with effects; None: it is not registered."""
    return (bool(_flags[name] & _DETERMINISTIC), bool(_flags[name] & _EFFECTS)) if name in _functions else None


def _array(dtype: str, shape: tuple[int, ...], memory: memoryview, alive: list[Any]) -> Any:
    """An array of the memory; `alive` gets a reference that says whether it, or a view of it, is still there."""
    array = np.frombuffer(memory, NARROW[dtype][2] if dtype in NARROW else NUMPY[dtype])
    alive.append(weakref.ref(array))
    return decoded(array.reshape(shape), dtype, shape) if dtype in NARROW else array.reshape(shape)


def _results(name: str, given: list[Any], count: int) -> Any:
    """What the function gives for these arrays, which nothing here keeps."""
    function = _functions.get(name)
    if function is None:
        raise LookupError("it is not registered any more")
    result = function(*given)
    results = list(result) if isinstance(result, (tuple, list)) and (count > 1 or isinstance(result, tuple)) else [result]
    if len(results) != count:
        raise TypeError(f"it gives {len(results)} results; the bundle wants {count}")
    return results


def call(name: str, inputs: list[Any], outputs: list[Any]) -> None:
    """Calls what is registered by a name; tensors are (dtype, shape, memoryview)."""
    function: Any = _functions.get(name)
    if isinstance(function, ctypes._CFuncPtr):
        buffers = [np.frombuffer(memory, np.uint8) for _, _, memory in (*inputs, *outputs)]
        tensors = [(t, shape, b.ctypes.data, b.size) for (t, shape, _), b in zip((*inputs, *outputs), buffers)]
        _rt.call_c_function(ctypes.cast(function, ctypes.c_void_p).value, tensors[: len(inputs)], tensors[len(inputs) :])
        return
    alive: list[Any] = []
    results = _results(name, [_array(*x, alive) for x in inputs], len(outputs))
    for i, (dtype, shape, memory) in enumerate(outputs):
        value = results[i]
        results[i] = None
        if not isinstance(value, np.ndarray) or dtype in NARROW or value.dtype != NUMPY[dtype]:
            value = as_input(value, dtype, f"result {i}")
        if tuple(value.shape) != shape:
            raise refusal(ShapeError, "ASTRA_WRONG_SHAPE", f"result {i} has shape {tuple(value.shape)}; it must be {shape}")
        if isinstance(value, _rt.Tensor):  # of another library
            if value.dtype != dtype:
                raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"result {i} has dtype {value.dtype}; it must be {dtype}")
            value = value._array()
        np.ndarray(shape, NARROW[dtype][2] if dtype in NARROW else NUMPY[dtype], memory)[...] = value
        del value
    if any(array() is not None for array in alive):
        import gc

        gc.collect()  # frames of exceptions that it caught
        if any(array() is not None for array in alive):
            raise RuntimeError("it keeps an array that it was given, whose memory is used again: keep a copy")
