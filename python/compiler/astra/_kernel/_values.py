"""What the names in a kernel stand for, beside numbers, tuples, strings and dtypes of Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._dtypes import DType
from .._tensor import Tensor
from ._forms import Expr


class Index:
    """An integer of program ids, loop counters and sizes: a symbolic integer of the graph, and the same as an expression."""

    __slots__ = ("node", "form")

    def __init__(self, node: Any, form: Expr) -> None:
        self.node, self.form = node, form


class Tile:
    """A tensor of a fixed shape that one program computes with. form: its element, as an expression of the axes' indices (@0 the
    last axis, @1 the one before, ...), where that is known: of integers and bools."""

    __slots__ = ("tensor", "form")

    def __init__(self, tensor: Tensor, form: Expr | None = None) -> None:
        self.tensor, self.form = tensor, form

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Along:
    """How a view of an output goes along an axis of it: which axis of the view (None: it stays at `begin`), from where, in what steps."""

    axis: int | None
    begin: int
    step: int


class View:
    """An argument of the kernel: a tensor that it reads, or one that it writes; or a view of one (_views.py), whose `base` is the argument."""

    __slots__ = ("name", "dtype", "shape", "tensor", "base", "along")

    def __init__(self, name: str, dtype: DType, shape: tuple[Any, ...], tensor: Any, base: View | None = None, along: tuple[Along, ...] = ()) -> None:
        self.name, self.dtype, self.shape, self.tensor = name, dtype, shape, tensor
        self.base = self if base is None else base
        self.along = along if base is not None else tuple(Along(i, 0, 1) for i in range(len(shape)))

    @property
    def is_output(self) -> bool:
        return self.tensor is None


def described(x: Any) -> str:
    """A value in a sentence."""
    if isinstance(x, Tile):
        return str(x)
    if isinstance(x, Index):
        return "an integer of program ids and sizes"
    if isinstance(x, View):
        return f"{'the' if x.base is x else 'a view of the'} {'output' if x.is_output else 'input'} '{x.base.name}'"
    if isinstance(x, (bool, int, float, str)):
        return repr(x)
    if isinstance(x, tuple):
        return f"a tuple of {len(x)}"
    if isinstance(x, DType):
        return f"the dtype {x.name}"
    return f"a {type(x).__name__}"
