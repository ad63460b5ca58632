"""Exceptions: one class for what a caller may want to tell apart, each also of the builtin type that fits.

Takes:    a status of astra.h and its sentence.
Gives:    an exception whose `status` is the status's name.
Keeps:    a class is of `Error` and of a builtin exception, so that `except ValueError` works as everywhere.
Does not: add to the sentence.
"""

from __future__ import annotations


class Error(Exception):
    """What the runtime refused. `status` is the name of the status in astra.h, as "ASTRA_WRONG_SHAPE"."""

    status: str = ""


class ArgumentError(Error, ValueError):
    """An argument that makes no sense."""


class DTypeError(Error, TypeError):
    """A tensor of another element type than is asked for."""


class ShapeError(Error, ValueError):
    """A rank, an extent or an equation between sizes that the entry does not allow."""


class NotFoundError(Error, LookupError):
    """There is no entry, param, state or dim of this name."""


class BundleError(Error, ValueError):
    """A file or bytes that are no bundle, or a damaged one, or one that this version cannot read."""


class FileError(Error, OSError):
    """A file that could not be mapped."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnsupportedError(Error, RuntimeError):
    """This machine, device or library cannot run it."""


class MissingMemoryError(Error, MemoryError):
    """There is no memory left."""


class BusyError(Error, RuntimeError):
    """A call is in flight."""


class ClosedError(Error, RuntimeError):
    """The module or session was closed."""


class ForkedError(Error, RuntimeError):
    """The module belongs to the process that this one was forked from."""


class StateLostError(Error, RuntimeError):
    """A call failed while it wrote states: set them or reset the session."""


class FunctionError(Error, RuntimeError):
    """A function that the program registered, and a bundle called, failed."""


class DeviceError(Error, RuntimeError):
    """A device or its driver failed."""


_CLOSED = -1
_TABLE: dict[int, tuple[str, type[Error]]] = {
    _CLOSED: ("CLOSED", ClosedError),
    1: ("ASTRA_INVALID_ARGUMENT", ArgumentError),
    2: ("ASTRA_NEWER_CLIENT", UnsupportedError),
    3: ("ASTRA_UNKNOWN_NAME", NotFoundError),
    4: ("ASTRA_WRONG_DTYPE", DTypeError),
    5: ("ASTRA_WRONG_RANK", ShapeError),
    6: ("ASTRA_WRONG_SHAPE", ShapeError),
    7: ("ASTRA_OUT_OF_BOUNDS", ShapeError),
    8: ("ASTRA_EQUATION", ShapeError),
    9: ("ASTRA_WRONG_STRIDES", ShapeError),
    10: ("ASTRA_OVERLAP", ArgumentError),
    11: ("ASTRA_CAPACITY", ArgumentError),
    12: ("ASTRA_OVERFLOW", ShapeError),
    13: ("ASTRA_MISSING_VALUE", ArgumentError),
    20: ("ASTRA_NOT_A_BUNDLE", BundleError),
    21: ("ASTRA_TRUNCATED", BundleError),
    22: ("ASTRA_NEWER_FORMAT", BundleError),
    23: ("ASTRA_UNKNOWN_FEATURE", BundleError),
    24: ("ASTRA_CORRUPT", BundleError),
    25: ("ASTRA_MALFORMED", BundleError),
    26: ("ASTRA_SIGNATURE", BundleError),
    27: ("ASTRA_WRONG_CONTRACT", BundleError),
    30: ("ASTRA_NO_TARGET", UnsupportedError),
    31: ("ASTRA_OUT_OF_MEMORY", MissingMemoryError),
    32: ("ASTRA_IO", FileError),
    33: ("ASTRA_UNSUPPORTED", UnsupportedError),
    34: ("ASTRA_THREADS", DeviceError),
    35: ("ASTRA_DEVICE_LOST", DeviceError),
    36: ("ASTRA_DRIVER", DeviceError),
    41: ("ASTRA_BUSY", BusyError),
    42: ("ASTRA_IN_USE", BusyError),
    43: ("ASTRA_FORKED", ForkedError),
    44: ("ASTRA_STATE_LOST", StateLostError),
    50: ("ASTRA_DATA_DIM", ShapeError),
    51: ("ASTRA_DEPENDENCY", DeviceError),
    52: ("ASTRA_KERNEL_FAULT", DeviceError),
    53: ("ASTRA_CANCELLED", DeviceError),
    54: ("ASTRA_FUNCTION_FAILED", FunctionError),
    55: ("ASTRA_PEER_LOST", DeviceError),
    56: ("ASTRA_PEER_DIFFERS", DeviceError),
}


def make_exception(status: int, text: str) -> Error:
    """The exception of a status."""
    name, kind = _TABLE.get(status, (f"status {status}", Error))
    error = kind(text)
    error.status = name
    return error


def refusal(kind: type[Error], status: str, text: str) -> Error:
    """An exception that is refused here already, as the runtime would."""
    error = kind(text)
    error.status = status
    return error
