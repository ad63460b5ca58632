"""Placements of DTensors as shardings.

Takes:    a module whose parameters are DTensors, and examples that may be: how each lies on a DeviceMesh.
Gives:    the mesh of their names and sizes, and how each parameter and input is cut; the module and the examples with whole tensors.
Keeps:    `Shard(i)` is the mesh's axis on axis i, `Replicate()` nothing. What has no such meaning is refused by its name: `Partial`, strided
          shards, meshes without names, ranks in another order, modules of fully_shard.
"""

from __future__ import annotations

import copy
from typing import Any, Sequence

import torch

from .._errors import ArgumentError, UnsupportedError
from .._mesh import Mesh, sharding_text


def _dtensor() -> Any:
    """The class, where this PyTorch has torch.distributed."""
    if not torch.distributed.is_available():
        return None
    from torch.distributed.tensor import DTensor

    return DTensor


def is_placed(x: Any) -> bool:
    """Whether it is a DTensor."""
    kind = _dtensor()
    return kind is not None and isinstance(x, kind)


def whole(x: Any) -> Any:
    """The logical tensor; all ranks of its mesh call it."""
    return x.full_tensor() if is_placed(x) else x


def _root(name: str, x: Any) -> Any:
    """The mesh that a tensor's mesh is a part of."""
    mesh = x.device_mesh
    root = mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else mesh
    for m in (mesh, root):
        if not m.mesh_dim_names:
            raise UnsupportedError(f"the device mesh of {name} has no names: give init_device_mesh(..., mesh_dim_names=(...))")
    if root.mesh.flatten().tolist() != list(range(root.mesh.numel())):
        raise UnsupportedError(f"the device mesh of {name} has the ranks {root.mesh.flatten().tolist()}: shards are numbered row-major, 0 to {root.mesh.numel() - 1}")
    return root


def sharding_of(name: str, x: Any) -> tuple[Any, ...]:
    """For each axis of a DTensor the axes of the mesh that cut it, as `astra.shard` takes them."""
    from torch.distributed.tensor import Replicate, Shard

    axes: list[list[str]] = [[] for _ in range(x.ndim)]
    for axis, placement in zip(x.device_mesh.mesh_dim_names, x.placements):
        if type(placement) is Shard:
            axes[placement.dim].append(axis)
        elif type(placement) is not Replicate:
            raise UnsupportedError(f"{name} has the placement {placement!r} on the axis '{axis}': Shard(i) and Replicate() are read")
    order = _root(name, x).mesh_dim_names
    for names in axes:
        if names != sorted(names, key=order.index):
            raise UnsupportedError(f"{name} is cut by {' and '.join(names)} on one axis, in another order than the mesh's")
    return tuple(None if not names else names[0] if len(names) == 1 else tuple(names) for names in axes)


def read(model: torch.nn.Module, examples: Sequence[tuple[str, Any]]) -> tuple[Mesh | None, dict[str, str]]:
    """The mesh, None where nothing is placed, and the shardings by name."""
    for name, m in model.named_modules():
        if any(c.__name__ == "FSDPModule" for c in type(m).__mro__):
            raise UnsupportedError(f"{name or 'the module'} is one of fully_shard: give the module as it is before, with mesh=astra.mesh(...) and "
                                   "shardings={'*.weight': '(data, -) gathered'}, which is what fully_shard does")  # fmt: skip
    placed = [(n, x) for n, x in [*model.named_parameters(), *examples] if is_placed(x)]
    for name, b in model.named_buffers():
        if is_placed(b):
            raise UnsupportedError(f"the buffer {name} is a DTensor: parameters and inputs are read")
    if not placed:
        return None, {}
    roots = {n: _root(n, x) for n, x in placed}
    first = placed[0][0]
    axes = dict(zip(roots[first].mesh_dim_names, roots[first].mesh.shape))
    for name, root in roots.items():
        if dict(zip(root.mesh_dim_names, root.mesh.shape)) != axes:
            raise ArgumentError(f"{first} and {name} are on different device meshes: {roots[first]} and {root}")
    cuts = {name: sharding_of(name, x) for name, x in placed}
    return Mesh(axes), {name: sharding_text(cut) for name, cut in cuts.items() if any(cut)}


def plain(model: torch.nn.Module) -> torch.nn.Module:
    """The module with whole parameters: a copy where one of its own is placed."""
    if not any(is_placed(p) for p in model.parameters()):
        return model
    memo: dict[int, Any] = {}
    for p in model.parameters():
        if is_placed(p):
            memo[id(p)] = torch.nn.Parameter(whole(p.detach()), requires_grad=p.requires_grad)
    return copy.deepcopy(model, memo)


def put(target: torch.Tensor, value: torch.Tensor) -> None:
    """Copies a whole tensor into a parameter, which may be a DTensor: each rank its part."""
    if is_placed(target):
        from torch.distributed.tensor import distribute_tensor

        value = distribute_tensor(value, target.device_mesh, target.placements, src_data_rank=None)
    target.copy_(value)
