"""Meshes of logical shards: mesh, shard.

Takes:    names and sizes of axes; tensors, and by which axis of a mesh each of their axes is cut.
Gives:    a Mesh, for `Lowered.with_mesh` and `compile_training`; the tensor, cut that way from here on.
Keeps:    bits: a mesh decides them, not how many ranks run its shards (docs/distributed.md).
"""

from __future__ import annotations

import operator
import types
from typing import Any, Sequence, Union

from . import _core
from ._errors import ArgumentError, UnsupportedError
from ._graph import current
from ._tensor import Tensor, call, of_node
from ._transforms import nodes_of, operand

Axis = Union[str, None, Sequence[str], "types.EllipsisType"]


class Mesh:
    """Named axes of logical shards: what `mesh` gives."""

    def __init__(self, axes: dict[str, int], pipeline: str | None = None, bucket: int | None = None, overlap: bool = True) -> None:
        for name, size in axes.items():
            if isinstance(size, bool) or not hasattr(size, "__index__"):
                raise ArgumentError(f"axis '{name}' of a mesh is {size!r}; expected a number of shards")
        self.axes = {name: operator.index(size) for name, size in axes.items()}
        self.pipeline, self.bucket, self.overlap = pipeline, bucket, overlap
        self._text = str(call(_core.checked_mesh, ",".join(f"{k}={v}" for k, v in self.axes.items())))

    @property
    def size(self) -> int:
        """How many shards there are."""
        n = 1
        for k in self.axes.values():
            n *= k
        return n

    def with_options(self, *, pipeline: str | None = None, bucket: int | None = None, overlap: bool | None = None) -> Mesh:
        """The same mesh, whose shards exchange another way, as the options of `astra-compile` of these names say it (docs/distributed.md).

        pipeline: "stage,microbatches=8": a scan over layers is a pipeline along an axis; of programs of which no gradient is taken.
        bucket: bytes of a shard that move together at most; 0: each tensor alone; None: as it is, 1 MiB at first.
        overlap: whether transfers run beside kernels. Bits depend on neither of these two."""
        if pipeline is not None:
            call(_core.check_pipeline, pipeline)
        if bucket is not None and (isinstance(bucket, bool) or not isinstance(bucket, int) or not 0 <= bucket < 1 << 64):
            raise ArgumentError(f"bucket is {bucket!r}; expected a number of bytes, 0 for each tensor alone")
        if overlap is not None and not isinstance(overlap, bool):
            raise ArgumentError(f"overlap is {overlap!r}; expected True or False")
        return Mesh(self.axes, self.pipeline if pipeline is None else pipeline, self.bucket if bucket is None else bucket,
                    self.overlap if overlap is None else overlap)  # fmt: skip

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"astra.mesh({', '.join(f'{k}={v}' for k, v in self.axes.items())})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Mesh) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)


def mesh(**axes: int) -> Mesh:
    """A mesh of logical shards: mesh(data=4, model=2) has 8, numbered row-major."""
    return Mesh(axes)


def refuse_pipeline(mesh: Mesh, who: str) -> None:
    """Of what takes gradients itself."""
    if mesh.pipeline is not None:
        raise UnsupportedError(f"{who} takes gradients while it traces, and a pipeline comes before gradients: Lowered.with_training makes trainings in stages")


def sharding_text(axes: Sequence[Axis]) -> str:
    """"(data, -)" of ("data", None)."""
    names = []
    for a in axes:
        if not (a is None or a is ... or isinstance(a, str) or (isinstance(a, (tuple, list)) and a and all(isinstance(n, str) for n in a))):
            raise ArgumentError(f"for each axis of a tensor there is a name of an axis of the mesh, several, None, or one ... for all that are left; found {a!r}")
        names.append("-" if a is None else "..." if a is ... else a if isinstance(a, str) else "+".join(a))
    return f"({', '.join(names)})"


def shard(x: Any, *axes: Axis) -> Tensor:
    """x, cut among shards from here on: for each of its axes the name of the mesh's axis that cuts it, or None; ... stands for as many
    None as are left, "data?" cuts an axis that there is and that the shards divide. Where x is cut another way, values are exchanged. It has a meaning in programs for a mesh (`Lowered.with_mesh`); elsewhere it changes nothing."""
    x = operand(x)
    rest = sum(a is ... for a in axes)
    least = len(axes) - rest - (sum(isinstance(a, str) and a.endswith("?") for a in axes) if rest else 0)
    if rest > 1 or (x.ndim < least if rest else x.ndim != least):
        raise ArgumentError(f"shard takes a name or None for each axis, or one ... for those left: there are {x.ndim}, and {sharding_text(axes)} is given")
    graph = current()
    (node,) = nodes_of(graph, [x])
    return of_node(graph, call(graph.core.named, "reshard", node, sharding_text(axes)))


__all__ = ["Mesh", "mesh", "shard"]
