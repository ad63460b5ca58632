"""Arguments into what the runtime takes, and narrow types in and out of NumPy.

Takes:    arrays, numbers, lists, what has DLPack or the buffer protocol.
Gives:    arrays and Tensors, without a copy where the memory can be used as it is.
Keeps:    no value changes: what has another element type is refused, unless it is a number or list of Python's, which has
          none and must fit.
Does not: see arrays that can be used as they are: those never leave C++.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _rt
from ._errors import ArgumentError, DTypeError, refusal

if TYPE_CHECKING:
    from ._tensor import Tensor

NUMPY = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
         "complex64": np.complex64, "complex128": np.complex128}  # fmt: skip
NAMES = {np.dtype(t).str: name for name, t in NUMPY.items()}
# What NumPy does not have: the name in ml_dtypes, bits, the type of codes.
NARROW: dict[str, tuple[str, int, Any]] = {
    "bf16": ("bfloat16", 16, np.uint16), "i2": ("int2", 2, np.int8), "u2": ("uint2", 2, np.uint8),
    "i4": ("int4", 4, np.int8), "u4": ("uint4", 4, np.uint8), "f4e2m1": ("float4_e2m1fn", 4, np.uint8),
    "f8e4m3fn": ("float8_e4m3fn", 8, np.uint8), "f8e5m2": ("float8_e5m2", 8, np.uint8),
    "f8e4m3fnuz": ("float8_e4m3fnuz", 8, np.uint8), "f8e5m2fnuz": ("float8_e5m2fnuz", 8, np.uint8),
    "f8e8m0": ("float8_e8m0fnu", 8, np.uint8)}  # fmt: skip
NARROW_NAMES = {ml: name for name, (ml, _, _) in NARROW.items()}
RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # what a number of Python's may become


def ml_dtypes() -> Any:
    """The package, or None where it is not installed."""
    if "ml_dtypes" not in sys.modules:
        try:
            importlib.import_module("ml_dtypes")
        except ImportError:
            return None
    return sys.modules["ml_dtypes"]


def name_of(dtype: Any) -> str | None:
    """Astra's name of a dtype of NumPy or ml_dtypes."""
    return NAMES.get(dtype.newbyteorder("=").str) or NARROW_NAMES.get(dtype.name)


def pack(values: Any, bits: int) -> Any:
    """Bytes of sub-byte elements: low bits first along the last axis, rows padded to bytes."""
    rows = values.view(np.uint8) & np.uint8((1 << bits) - 1)
    if rows.ndim == 0:
        return rows.reshape(1).copy()
    each = 8 // bits
    pad = [(0, 0)] * (rows.ndim - 1) + [(0, -rows.shape[-1] % each)]
    rows = np.pad(rows, pad).reshape(*rows.shape[:-1], -(-rows.shape[-1] // each), each)
    packed = np.zeros(rows.shape[:-1], np.uint8)
    for k in range(each):
        packed |= rows[..., k] << np.uint8(bits * k)
    return packed


def unpack(packed: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """The elements of packed bytes, a byte each: values of integers, codes of floats."""
    _, bits, codes = NARROW[dtype]
    parts = [(packed >> np.uint8(bits * k)) & np.uint8((1 << bits) - 1) for k in range(8 // bits)]
    if not shape:
        values = parts[0].reshape(())
    else:
        each = packed.shape[-1] * len(parts)
        values = np.stack(parts, axis=-1).reshape(*packed.shape[:-1], each)[..., : shape[-1]]
    if codes is np.int8:  # the sign
        values = (values << np.uint8(8 - bits)).view(np.int8) >> np.int8(8 - bits)
    return np.ascontiguousarray(values).reshape(shape)


def decoded(array: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of codes or bytes as ml_dtypes has it; where that is not installed, values of integers and codes of floats."""
    ml, bits, _ = NARROW[dtype]
    package = ml_dtypes()
    if bits < 8:
        array = unpack(array, dtype, shape)
        if package and hasattr(package, ml):
            kind = getattr(package, ml)
            return array.astype(kind) if dtype[0] in "iu" else array.view(kind)
        return array
    return array.view(getattr(package, ml)) if package and hasattr(package, ml) else array


def _wrong(what: str, found: str, dtype: str) -> Exception:
    return refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"{what} has dtype {found}; it must be {dtype}")


def _encoded(array: Any, dtype: str, what: str) -> Any:
    """An array as the bits of a narrow type; a Tensor where they are packed."""
    ml, bits, codes = NARROW[dtype]
    if array.dtype.name != ml:
        if array.dtype != np.dtype(codes):
            hint = f"{np.dtype(codes).name} of {'codes' if dtype[0] in 'bf' else 'values'}, or ml_dtypes.{ml}"
            raise _wrong(what, str(name_of(array.dtype) or array.dtype), f"{dtype}, an array of {hint}")
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
        if bits < 8 and array.size and (array.min() < low or array.max() > high):
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} has values outside of {dtype}'s {low}..{high}")
    array = np.array(array, order="C", copy=True)
    if bits < 8:
        return _rt.wrap(pack(array, bits), dtype, array.shape)
    return array.view(codes)


def _from_array(array: Any, dtype: str, what: str) -> Any:
    if dtype in NARROW:
        return _encoded(array, dtype, what)
    found = name_of(array.dtype)
    if found != dtype:
        raise _wrong(what, str(found or array.dtype), dtype)
    return np.array(array, dtype=NUMPY[dtype], order="C", copy=True)


def _from_integers(values: Any, dtype: str, what: str) -> Any:
    """An array of Python's integers, each as it is."""
    if dtype in NUMPY and np.dtype(NUMPY[dtype]).kind in "iu":
        limits = np.iinfo(NUMPY[dtype])
        if limits.min <= min(values.flat) and max(values.flat) <= limits.max:
            return np.array(values, dtype=NUMPY[dtype], order="C")
    raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} has numbers outside of {dtype}")


def _from_literal(values: Any, dtype: str, what: str) -> Any:
    """Numbers and lists of Python's have no element type: they become the one that is asked for, if they are in its range; floats are
    rounded to the nearest."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fO":  # NumPy makes floats or objects of integers that do not fit one type
            exact = np.array(values, dtype=object)
            if exact.size and all(type(v) is int for v in exact.flat):
                return _from_integers(exact, dtype, what)
        if array.dtype.kind not in RANKS:
            raise DTypeError(f"{what} is a list of things that are no numbers, or whose lengths differ")
        if dtype in NARROW:
            kind = NARROW[dtype][2]
            if dtype[0] in "bf":
                package = ml_dtypes()
                if package is None:
                    raise DTypeError(f"{what} is of {dtype}: install ml_dtypes to give numbers, or give an array of codes")
                return _encoded(np.asarray(array, np.float64).astype(getattr(package, NARROW[dtype][0])), dtype, what)
        else:
            kind = NUMPY[dtype]
        target = np.dtype(kind)
        if array.size and RANKS[array.dtype.kind] > RANKS[target.kind]:
            raise _wrong(what, f"{array.dtype.name} (numbers of Python)", dtype)
        if target.kind in "iu" and array.size:
            limits = np.iinfo(target)
            if int(array.min()) < limits.min or int(array.max()) > limits.max:
                raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} has numbers outside of {dtype}")
        with np.errstate(over="ignore"):
            made = np.array(array, dtype=target, order="C")
        if target.kind in "fc" and array.size and np.any(np.isfinite(array) & ~np.isfinite(made)):
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} has numbers outside of {dtype}")
        array = made
    except (ValueError, OverflowError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} cannot be made an array: {error}") from None
    return _encoded(array, dtype, what) if dtype in NARROW else array


def from_dlpack(obj: Any) -> Tensor:
    """A Tensor in the memory of an object that has `__dlpack__`, with its strides; a copy only where that is not aligned. The
    object's memory must not change while the tensor is used."""
    device = obj.__dlpack_device__() if hasattr(obj, "__dlpack_device__") else (1, 0)
    if device[0] not in (1, 3, 11):
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT",
                      f"the {type(obj).__name__} lies on a device (DLPack's type {int(device[0])}); copy it to the host first")  # fmt: skip
    if hasattr(obj, "is_neg") and obj.is_neg():  # a view of PyTorch's that negates, which its capsules do not say
        obj = obj.resolve_neg()
    try:
        capsule = obj.__dlpack__(max_version=(1, 1))
    except TypeError:  # of before DLPack 1.0
        capsule = obj.__dlpack__()
    return _rt.from_capsule(capsule)


def as_input(obj: Any, dtype: str, what: str) -> Any:
    """An array or Tensor that the runtime takes as `dtype`. `what` names it in sentences."""
    if isinstance(obj, np.ndarray):
        return _from_array(obj, dtype, what)
    if isinstance(obj, (bool, int, float, complex, list, tuple)):
        return _from_literal(obj, dtype, what)
    if isinstance(obj, np.generic):
        return _from_array(np.asarray(obj), dtype, what)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return _from_array(np.asarray(obj), dtype, what)
    try:
        view = memoryview(obj)
    except TypeError:
        text = f"{what} is of type {type(obj).__name__}; give an array, a tensor with __dlpack__, a buffer, or numbers"
        raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", text) from None
    array = np.asarray(view)
    # An array that is contiguous and of the right type is used as it is.
    if dtype in NUMPY and array.dtype == NUMPY[dtype] and array.flags.c_contiguous and array.flags.aligned:
        return array
    return _from_array(array, dtype, what)


def as_output(obj: Any, dtype: str, what: str) -> Any:
    """An array of the memory of `obj`, which an output of `dtype` is written into. `what` names it in sentences."""
    if isinstance(obj, (_rt.Tensor, bytes)):
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"{what} cannot be written to; give an array, as numpy.empty makes it")
    if isinstance(obj, np.ndarray):
        array = obj
    elif hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        array = np.from_dlpack(obj)
    else:
        try:
            array = np.asarray(memoryview(obj))
        except TypeError:
            text = f"{what} is of type {type(obj).__name__}; give an array, a tensor with __dlpack__ or a buffer that can be written to"
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", text) from None
    if dtype in NARROW:
        ml, bits, codes = NARROW[dtype]
        if bits < 8:
            text = f"{what} would have packed elements of {dtype}, which no array has; leave it out and take what the call gives"
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", text)
        if array.dtype.name == ml:
            array = array.view(codes)
        elif array.dtype != np.dtype(codes):
            raise _wrong(what, str(name_of(array.dtype) or array.dtype), f"{dtype}, an array of {np.dtype(codes).name} or ml_dtypes.{ml}")
    elif name_of(array.dtype) != dtype:
        raise _wrong(what, str(name_of(array.dtype) or array.dtype), dtype)
    steps = all(step % array.itemsize == 0 for step, extent in zip(array.strides, array.shape) if extent > 1)
    if not array.dtype.isnative or not (array.flags.aligned and array.flags.writeable and steps):
        text = f"{what} must be an aligned array of native byte order, of steps of whole elements, that can be written to"
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", text)
    return array


def front(array: Any, shape: tuple[int, ...]) -> Any:
    """An array of `shape` in the first elements of `array`; where that has strides, of each axis."""
    if not array.flags.c_contiguous:
        return array[tuple(map(slice, shape))]
    return array.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)


def tensor(values: Any, dtype: str | None = None) -> Tensor:
    """A Tensor with a copy of `values`: an array, a number, a list, what has DLPack or the buffer protocol.

    dtype: an element type by Astra's name ("f32", "bf16", "i4", ...); else that of the array. An array of integers is taken
    as codes where NumPy lacks the type: uint16 of bf16, uint8 of the 8-bit floats, int8 or uint8 of those below 8 bits."""
    if isinstance(values, _rt.Tensor):
        if dtype not in (None, values.dtype):
            raise _wrong("the tensor", values.dtype, str(dtype))
        return _rt.from_capsule(values._capsule(True, True))
    if hasattr(values, "__dlpack__") and not isinstance(values, (np.ndarray, np.generic)):
        return tensor(from_dlpack(values), dtype)
    if dtype is None:
        array = np.asarray(values)
        dtype = name_of(array.dtype)
        if dtype is None:
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"there is no dtype for NumPy's {array.dtype}")
        if not isinstance(values, np.ndarray):
            values = array
    if dtype not in NUMPY and dtype not in NARROW:
        raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"there is no dtype '{dtype}'")
    made = as_input(values, dtype, "the tensor")
    if isinstance(made, _rt.Tensor):
        return cast("Tensor", made)
    if made is values or not made.flags.owndata:
        made = made.copy()
    return _rt.wrap(made, dtype, made.shape)
