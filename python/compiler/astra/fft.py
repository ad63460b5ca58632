"""Fourier transforms: `astra.fft`, the extension of the Array API.

Takes:    tensors, complex or, where a transform is of real signals, real ones; integers become float32.
Gives:    complex64 of float32, complex128 of float64.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _core, _dims, _dtypes
from ._building import F32, cast, floating, on_cpu
from ._errors import ArgumentError, DTypeError
from ._graph import current
from ._tensor import Tensor, asarray, call, of_node


def _taken(x: Any, name: str, is_real: bool, is_complex: bool) -> Tensor:
    x = floating(x)
    if is_real and x.dtype.kind == "c":
        raise DTypeError(f"fft.{name} is of real signals, not of {x.dtype.name}")
    if x.dtype.bits == 16:
        x = cast(x, F32)
    if is_complex and x.dtype.kind != "c":
        x = cast(x, _dtypes.DTYPES["complex128" if x.dtype.bits == 64 else "complex64"])
    return x


def _of_axis(name: str, doc: str, is_real: bool = False) -> Callable[..., Tensor]:
    def function(x: Any, /, *, n: Any = None, axis: int = -1, norm: str = "backward") -> Tensor:
        x, graph = _taken(x, name, is_real, not is_real), current()
        length = None if n is None else _dims.size_node(graph.core, n)
        return of_node(graph, call(getattr(_core, name), graph.core, x._in(graph), axis, length, norm))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _of_axes(name: str, doc: str, is_real: bool = False) -> Callable[..., Tensor]:
    def function(x: Any, /, *, s: Sequence[Any] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
        x, graph = _taken(x, name, is_real, not is_real), current()
        if s is not None and axes is None:
            raise ArgumentError(f"fft.{name} with lengths s needs the axes that they are of")
        lengths = [] if s is None else [_dims.size_node(graph.core, n) for n in s]
        along = list(range(x.ndim)) if axes is None else list(axes)
        return of_node(graph, call(getattr(_core, name), graph.core, x._in(graph), along, lengths, norm))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _of_axis("fft", "The discrete Fourier transform along an axis; n: the length to which it is cut or filled with zeros.")
ifft = _of_axis("ifft", "The inverse of fft.")
rfft = _of_axis("rfft", "The frequencies 0 .. n // 2 of a real signal.", True)
irfft = _of_axis("irfft", "A real signal from its frequencies 0 .. n // 2.")
hfft = _of_axis("hfft", "The real spectrum of half a signal that is its own mirrored conjugate.")
ihfft = _of_axis("ihfft", "The inverse of hfft.", True)
fftn = _of_axes("fftn", "The discrete Fourier transform along several axes.")
ifftn = _of_axes("ifftn", "The inverse of fftn.")
rfftn = _of_axes("rfftn", "The transform of a real signal along several axes, of the last one the frequencies 0 .. n // 2.", True)
irfftn = _of_axes("irfftn", "The inverse of rfftn.")


def _frequencies(name: str, n: Any, d: float, dtype: Any, device: Any) -> Tensor:
    on_cpu(device)
    graph = current()
    t = F32 if dtype is None else _dtypes.dtype(dtype)
    return of_node(graph, call(getattr(_core, name), graph.core, _dims.size_node(graph.core, n), float(d), t.code))


def fftfreq(n: Any, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of n samples d apart: 0, 1, ..., then the negative ones, over n d."""
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: Any, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft of n samples d apart."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shift(name: str, x: Any, axes: Any) -> Tensor:
    x, graph = asarray(x), current()
    along = list(range(x.ndim)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    return of_node(graph, call(getattr(_core, name), graph.core, x._in(graph), along)) if along else x


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Frequency 0 from the front to the middle of axes (None: of all)."""
    return _shift("fftshift", x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """The inverse of fftshift."""
    return _shift("ifftshift", x, axes)


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
