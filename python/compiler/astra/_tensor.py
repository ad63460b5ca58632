"""Tensors: values that are computed when somebody looks.

Takes:    a value (a tensor of astra_rt), or a node of a graph.
Gives:    shape and dtype at once, operators and methods (of the functions in `astra`), values on request.
Keeps:    a tensor never changes. Looking at one computes it by the reference evaluator or compiled: the bytes are the same.
Does not: compute anything itself.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

import astra_rt

from . import _core, _dims, _dtypes
from ._errors import ArgumentError, TraceError, UnsupportedError
from ._graph import Graph, current, is_open

if TYPE_CHECKING:
    from ._methods import Methods  # which Tensor has by `_methods.install`
else:
    Methods = object
_HERE = os.path.dirname(__file__) + os.sep


_realize: Any = None  # of _evaluate, which needs this module
_ours: dict[str, bool] = {}  # whether a file is of this package


def _user_frame() -> Any:
    """The frame of the caller of the package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = _ours.get(name)
        if ours is None:
            ours = _ours[name] = name.startswith(_HERE)
        if not ours:
            return frame
        frame = frame.f_back
    return None


def user_line() -> str:
    """Where the caller of the package is: "file.py:12"."""
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "<unknown>"


def call(function: Any, *args: Any) -> Any:
    """A function of the core; what it refuses becomes an exception of this package."""
    try:
        return function(*args)
    except _core.Unsupported as error:
        raise UnsupportedError(_with_line(str(error))) from None
    except ValueError as error:
        raise ArgumentError(_with_line(str(error))) from None


def _with_line(sentence: str) -> str:
    """A refusal with the line of the caller of the package, where it does not name it yet."""
    line = os.path.basename(user_line())
    return sentence if line in sentence or "\n" in sentence else f"{sentence} ({line})"


class Tensor(Methods):
    """An immutable tensor. Make one with `astra.tensor`, `astra.asarray`, or functions of `astra`.

    Operators, indexing and methods follow NumPy and the Array API 2025.12; nothing is done in place. A tensor is computed when
    its values are looked at: `print(x)`, `x.numpy()`, `float(x)`, `np.asarray(x)`, `torch.from_dlpack(x)`."""

    __slots__ = ("_value", "_graph", "_node", "__weakref__")
    __array_priority__ = 1000
    _value: Any
    _graph: Any
    _node: Any

    def __init__(self, *_: Any) -> None:
        raise TypeError("a Tensor is made by astra.tensor(values), astra.asarray or another function of astra")

    # What it is

    @property
    def dtype(self) -> _dtypes.DType:
        """The element type."""
        node, value = self._node, self._value  # in this order: another thread may compute it meanwhile
        return _dtypes._BY_NAME[node.dtype if value is None else value.dtype]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: integers; of a traced tensor also `Dim`s."""
        if self._value is not None:
            return tuple(self._value.shape)
        extents: tuple[Any, ...] = self._node.extents
        if None not in extents:
            return extents
        if not self._graph.tracing:  # data decides
            return tuple(self._realized().shape)
        core = self._graph.core
        return tuple(_dims.size_of_node(core, d) for d in self._node.dims)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self._node.rank) if self._value is None else len(self._value.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        n: Any = 1
        for extent in self.shape:
            n = n * extent
        return n

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return int(self._realized().nbytes)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where the values are: "cpu"."""
        return "cpu"

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a tensor without axes has no length")
        return int(self.shape[0])

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """x itself on "cpu"; there is no other device."""
        if device != "cpu":
            raise ArgumentError(f"there is no device '{device}'; tensors are in host memory: 'cpu'")
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ArgumentError(f"there is no version '{api_version}' of the Array API here; the newest is 2025.12")
        return sys.modules["astra"]

    # What it is made of

    def _in(self, graph: Graph) -> Any:
        """The node that stands for this in a graph."""
        own, node = self._graph, self._node  # before the value: another thread may compute it meanwhile
        if own is graph and node is not None:
            return node
        if self._value is None and own.tracing:
            if not is_open(own):
                raise TraceError("a tensor of a traced function is used after the function has returned; return it instead")
            raise TraceError("a tensor of a traced function is used in another function that is compiled by itself; pass it as an argument")
        return graph.leaf_of(self._realized())

    def _realized(self) -> Any:
        """The value, a tensor of astra_rt."""
        graph = self._graph
        if self._value is None:
            if graph.tracing:
                raise TraceError(f"the values of a traced tensor are not known while the function is traced ({user_line()}); "
                                 "use astra.where, astra.cond or astra.while_loop for what depends on them, or return the tensor")  # fmt: skip
            _realize([self])
        return self._value

    # Values

    def numpy(self) -> Any:
        """A read-only NumPy array that shares the memory."""
        return self._realized().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._realized().__array__(dtype, copy)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:  # fmt: skip
        """A capsule of DLPack that shares the memory, read-only."""
        return self._realized().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int) -> memoryview:
            return memoryview(self._realized())

    def item(self) -> Any:
        """The one element as a number of Python's."""
        return self._realized().item()

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return self._realized().tolist()

    def tobytes(self) -> bytes:
        """The elements' bytes, row-major."""
        return bytes(self._realized().tobytes())

    def __float__(self) -> float:
        return float(self._realized())

    def __int__(self) -> int:
        return int(self._realized())

    def __complex__(self) -> complex:
        return complex(self._realized())

    def __bool__(self) -> bool:
        return bool(self._realized())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"a tensor of {self.dtype.name} is no index")
        return self._realized().__index__()

    def __repr__(self) -> str:
        if self._value is None and self._graph.tracing:
            return f"Tensor<{self._node.type_text()}>"
        try:
            values = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        except TypeError:  # a type that NumPy cannot print
            values = "..."
        return f"Tensor({values}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.ndim else str(self)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("a tensor without axes cannot be iterated")
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> Any:
        return (of_value, (self._realized(),))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    __hash__ = object.__hash__

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("a tensor never changes: y = x.at[key].set(value) gives one with other values")


def of_value(value: Any) -> Tensor:
    """A tensor with a value of astra_rt."""
    t = object.__new__(Tensor)
    t._value, t._graph, t._node = value, None, None
    return t


def of_node(graph: Graph, node: Any) -> Tensor:
    """A tensor that a node of a graph stands for."""
    t = object.__new__(Tensor)
    t._value, t._graph, t._node = None, graph, node
    frame = None if graph.at else _user_frame()
    if graph.at:
        graph.core.place(*graph.at)
    elif frame is not None:
        graph.core.place(frame.f_code.co_filename, frame.f_lineno)
    return t


def tensor(values: Any, dtype: Any = None) -> Tensor:
    """A tensor with a copy of `values`: numbers, nested lists, an array, anything with `__dlpack__` or `__array__`.

    Numbers of Python become bool, int64, float32 or complex64; arrays keep their type. dtype: another element type; values
    are converted as `astype` does."""
    return asarray(values, dtype=dtype, copy=True)


def asarray(values: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of `values`, in the same memory where that can be: the memory must not change then. See `tensor`."""
    if device not in (None, "cpu"):
        raise ArgumentError(f"there is no device '{device}'; tensors lie in host memory: 'cpu'")
    wanted = None if dtype is None else _dtypes.dtype(dtype)
    if not isinstance(values, Tensor):
        values = _converted(values, wanted, copy)
    if wanted is None or values.dtype is wanted:
        return values
    if copy is False:
        raise ValueError(f"a tensor of {values.dtype.name} cannot be one of {wanted.name} without a copy")
    from ._ops import astype

    return astype(values, wanted)


def _has_tensors(values: Any) -> bool:
    return isinstance(values, Tensor) or (isinstance(values, (list, tuple)) and any(map(_has_tensors, values)))


def _converted(values: Any, wanted: _dtypes.DType | None, copy: bool | None) -> Tensor:
    if isinstance(values, _dims.Dim):
        graph = current()
        return of_node(graph, call(graph.core.scalar, _dims.size_node(graph.core, values), "i64"))
    if isinstance(values, astra_rt.Tensor):
        return of_value(values)
    if isinstance(values, (list, tuple)) and _has_tensors(values):
        from ._ops import stack

        return stack([asarray(v, dtype=wanted) for v in values])
    if isinstance(values, (bool, int, float, complex, list, tuple)):
        if copy is False:
            raise ValueError("numbers of Python cannot be a tensor without a copy")
        if wanted is None or wanted.kind == "s":
            array = np.asarray(values)
            if array.dtype.kind not in "biufc":
                raise ArgumentError("a list of things that are no numbers, or whose lengths differ, is no tensor")
            if array.dtype.kind in "fc":
                array = array.astype(np.float32 if array.dtype.kind == "f" else np.complex64)
            elif not array.size and isinstance(values, (list, tuple)):
                array = array.astype(np.float32)
            return of_value(astra_rt.tensor(array))
        return of_value(astra_rt.tensor(values, wanted.code) if not _is_integer_of_floats(values, wanted)
                        else astra_rt.tensor(np.asarray(values)))  # fmt: skip
    if hasattr(values, "__dlpack__") and not isinstance(values, (np.ndarray, np.generic)):
        if getattr(values, "requires_grad", False):
            values = values.detach()
        return of_value(astra_rt.tensor(values) if copy else astra_rt.from_dlpack(values))
    if isinstance(values, (np.ndarray, np.generic)) and not copy and isinstance(values, np.ndarray) and values.flags.c_contiguous:
        name = _dtypes.dtype(values.dtype).code
        if name in astra_rt._convert.NUMPY and values.dtype.isnative:
            return of_value(astra_rt._rt.wrap(values, name, values.shape))
    if copy is False:
        raise ValueError(f"a {type(values).__name__} cannot be a tensor without a copy")
    return of_value(astra_rt.tensor(values if isinstance(values, np.ndarray) else np.asarray(values)))


def _is_integer_of_floats(values: Any, wanted: _dtypes.DType) -> bool:
    """Whether numbers are of a higher kind than the type asked for: they are converted as astype does."""
    kind = np.asarray(values).dtype.kind
    return kind in _dtypes._RANK and wanted.kind in _dtypes._RANK and _dtypes._RANK[kind] > _dtypes._RANK[wanted.kind]


def graph_and_nodes(*tensors: Any) -> tuple[Graph, list[Any]]:
    """The graph at hand, and the nodes that stand for the tensors in it; None stays."""
    graph = current()
    return graph, [None if t is None else t._in(graph) for t in tensors]


__all__ = ["Tensor", "asarray", "tensor"]
