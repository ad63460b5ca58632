"""Exceptions of the compiler, beside those of the runtime (astra_rt)."""

from astra_rt import ArgumentError, DTypeError, Error, ShapeError, UnsupportedError


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a type that a function does not take."""


class AxisError(ArgumentError, IndexError):
    """An axis that a tensor does not have."""


class TraceError(Error, TypeError):
    """What a traced function may not do: look at a value, or use one outside of the function that it belongs to."""


class FrozenError(Error, RuntimeError):
    """A compilation is needed where none is allowed: ASTRA_FROZEN=1 or frozen=True."""


class KernelError(ArgumentError):
    """A kernel (astra.kernel) that is wrong: the sentence has its file, line and column, and the line itself."""


class MismatchError(Error, AssertionError):
    """A binary gave other bytes than the reference evaluator: astra.verify."""


__all__ = [
    "ArgumentError", "ArgumentTypeError", "AxisError", "DTypeError", "Error", "FrozenError", "KernelError", "MismatchError", "ShapeError", "TraceError", "UnsupportedError",
]  # fmt: skip
