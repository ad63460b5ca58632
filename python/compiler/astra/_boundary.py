"""The boundary of the package: what a public function says of arguments that make no sense.

Takes:    public functions of tensors and numbers; none that calls functions of the user's.
Gives:    the same functions; an error of Python's or of a library's that comes out of one is an exception of this package, whose sentence
          has the function and its arguments.
Keeps:    what the package itself refuses, and Python's own refusal of a call that does not fit a signature.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
from typing import Any, Callable, Iterable

from astra_rt import MissingMemoryError

from ._errors import ArgumentError, ArgumentTypeError, Error
from ._tensor import Tensor

_HERE = os.path.dirname(__file__) + os.sep
_RAW = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError, RecursionError, RuntimeError, AssertionError, BufferError)


def guarded(f: Callable[..., Any], module: str = "astra") -> Callable[..., Any]:
    """f, of whose errors none is raw."""

    @functools.wraps(f)
    def function(*args: Any, **named: Any) -> Any:
        try:
            return f(*args, **named)
        except Error:
            raise
        except _RAW as error:
            if _is_meant(error):
                raise
            raise _translated(f, args, named, error) from None

    function.__module__ = module  # where pickle finds it
    function.__qualname__ = function.__name__
    function.is_boundary = True  # type: ignore[attr-defined]
    return function


def guard(names: dict[str, Any], which: Iterable[str], module: str) -> None:
    """Guards the functions of a module by their names."""
    for name in which:
        f = names.get(name)
        if callable(f) and not isinstance(f, type) and not hasattr(f, "is_boundary"):
            names[name] = guarded(f, module)


def _is_meant(error: BaseException) -> bool:
    """Whether an error is a refusal of the package's, or of the call itself."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None or frame is error.__traceback__:  # the function was not entered: Python names the argument
        return True
    file = frame.tb_frame.f_code.co_filename
    if not file.startswith(_HERE) and f"{os.sep}astra_rt{os.sep}" not in file:
        return False
    return "raise " in linecache.getline(file, frame.tb_lineno)


def _translated(f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: BaseException) -> Error:
    try:
        bound = inspect.signature(f).bind(*args, **named).arguments.items()
        given = ", ".join(f"{name}={_shown(value)}" for name, value in bound)
    except (TypeError, ValueError):
        given = ", ".join([*map(_shown, args), *(f"{k}={_shown(v)}" for k, v in named.items())])
    why = (str(error).strip() or type(error).__name__).splitlines()[0]
    kind = MissingMemoryError if isinstance(error, MemoryError) else ArgumentTypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError
    return kind(f"{getattr(f, '__name__', 'the function')}({given}): the arguments make no sense together: {why}")


def _shown(x: Any) -> str:
    """An argument in some letters."""
    if isinstance(x, Tensor):
        try:
            return f"{x.dtype.name}{list(x.shape)}"
        except Error:
            return "a tensor"
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return f"{type(x).__name__} {x.dtype}{list(x.shape)}"
    try:
        text = repr(x)
    except Exception:
        text = f"a {type(x).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


__all__ = ["guard", "guarded"]
