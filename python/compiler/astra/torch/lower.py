"""From a graph of ATen to a graph of this package, row by row.

Takes:    a torch.fx.GraphModule without mutation (but what its signature says), tensors of the graph at hand for its inputs.
Gives:    what stands for its outputs.
Keeps:    what a row gives has the type and rank that PyTorch says; a difference is an error, never a wrong result. Refusals name the
          user's line.
"""

from __future__ import annotations

import operator
import os
import re
from typing import Any, Sequence

import torch
from torch.fx.node import map_arg

from .._errors import ArgumentError, UnsupportedError
from .._ops import zeros
from .._tensor import Tensor, asarray
from . import rows  # noqa: F401  (fills the table)
from .rows.registry import REFUSED, find, packet_of
from .rows.types import own_type, torch_type

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


_INTERNAL = {"aten._embedding_bag", "aten._embedding_bag_forward_only"}
"""Packets whose results but the first are what their backward ops read."""


_LIBRARIES = tuple(os.path.dirname(os.path.abspath(f)) + os.sep for f in (torch.__file__, os.path.dirname(__file__)))


def is_users(file: str) -> bool:
    """Whether a file of a traceback is the user's: not PyTorch's, not this package's, not made at run time."""
    return not file.startswith((*_LIBRARIES, "<"))


def line_of(node: torch.fx.Node) -> str:
    """Where a node comes from in the user's program: "file.py:12"; "" where nobody knows."""
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    users = [f for f in found if is_users(f[0])] or found
    return f"{users[-1][0]}:{users[-1][1]}" if users else ""


def _at(node: torch.fx.Node) -> str:
    line = line_of(node)
    return f" ({line})" if line else ""


def missing(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """Nodes whose ops have no row."""
    return [n for n in module.graph.nodes if n.op == "call_function" and find(n.target) is None]


def lower(module: torch.fx.GraphModule, inputs: Sequence[Any], checked: bool = True) -> Any:
    """The outputs of a graph for these inputs: tensors, sizes, numbers; a tuple as the graph gives it."""
    wrong = missing(module)
    if wrong:
        lines = []
        for node in wrong:
            name = packet_of(node.target)
            why = REFUSED.get(name, "it has no row; a custom op gets one by astra.torch.register_lowering")
            lines.append(f"{name}{_at(node)}: {why}")
        raise UnsupportedError("ops of PyTorch that are not supported: " + "; ".join(dict.fromkeys(lines)))
    values: dict[torch.fx.Node, Any] = {}
    given = iter(inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "get_attr":
            values[node] = _attribute(module, node.target)
        elif node.op == "output":
            return map_arg(node.args[0], values.__getitem__)
        else:
            values[node] = _call(node, values, checked)
    raise AssertionError("a graph has an output")


def _attribute(module: torch.nn.Module, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return asarray(found) if isinstance(found, torch.Tensor) else found


def _call(node: torch.fx.Node, values: dict[torch.fx.Node, Any], checked: bool) -> Any:
    function: Any = find(node.target)
    _check_strides(node)
    args = map_arg(node.args, values.__getitem__)
    named = map_arg(node.kwargs, values.__getitem__)
    try:
        out = function(*args, **named)
    except (UnsupportedError, ArgumentError, NotImplementedError, OverflowError) as error:
        raise UnsupportedError(f"{packet_of(node.target)}{_at(node)}: {error}") from error
    if packet_of(node.target) in _INTERNAL:
        out = _internal(node, out)
    if checked and node.target is not operator.getitem:
        _check(node, out)
    return out


def _internal(node: torch.fx.Node, out: Any) -> Any:
    """The first result; the others, which PyTorch leaves empty in some cases, of the shapes that it says."""
    wanted = node.meta.get("val")
    if not isinstance(wanted, (tuple, list)):
        return out
    same = [mine.ndim == theirs.ndim and all(str(m) == str(t) for m, t in zip(mine.shape, theirs.shape)) for mine, theirs in zip(out, wanted)]
    return tuple(mine if i == 0 or same[i] else zeros(tuple(t.shape), dtype=own_type(t.dtype)) for i, (mine, t) in enumerate(zip(out, wanted)))


def _check_strides(node: torch.fx.Node) -> None:
    """Values have no strides here: what reads memory by strides must be given a row-major tensor."""
    if packet_of(node.target) not in ("aten.as_strided", "aten.as_strided_scatter"):
        return
    source = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
    if isinstance(source, torch.Tensor) and not (source.is_contiguous() and source.storage_offset() == 0):
        raise UnsupportedError(f"{packet_of(node.target)}{_at(node)}: its operand has strides of its own; call .contiguous() on it first")


def _check(node: torch.fx.Node, out: Any) -> None:
    """That types and ranks are PyTorch's."""
    wanted = node.meta.get("val")
    pairs = zip(out, wanted) if isinstance(wanted, (tuple, list)) and isinstance(out, (tuple, list)) else [(out, wanted)]
    for mine, theirs in pairs:
        if not isinstance(theirs, torch.Tensor) or not isinstance(mine, Tensor):
            continue
        extents = tuple(n for n in mine.shape if isinstance(n, int))
        sizes = tuple(int(n) for n, m in zip(theirs.shape, mine.shape) if isinstance(m, int) and isinstance(n, int))
        differ = mine.ndim != theirs.ndim or (len(extents) == len(sizes) == mine.ndim and extents != sizes)
        if torch_type(mine.dtype) != theirs.dtype or differ:
            raise UnsupportedError(f"{node.target}{_at(node)} gives {mine.dtype.name}{list(mine.shape)} here and "
                                   f"{theirs.dtype}{list(theirs.shape)} in PyTorch: the row is wrong, report it")  # fmt: skip

