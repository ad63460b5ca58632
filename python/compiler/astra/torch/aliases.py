"""Arguments that share memory: what a program may not be given where it changes one of them.

Takes:    tensors, those that a program changes first; graphs before mutation is taken out.
Gives:    which tensors a graph changes in place; a refusal.
Keeps:    views of one memory that have no element in common do not overlap.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .._errors import ArgumentError


def changed_inputs(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The placeholders that a graph changes, by themselves or through views."""
    of: dict[torch.fx.Node, set[torch.fx.Node]] = {n: {n} for n in graph.nodes if n.op == "placeholder"}
    changed: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if not isinstance(node.target, torch._ops.OpOverload):  # getitem of what an op gives
            of[node] = set().union(*(of.get(n, set()) for n in node.all_input_nodes))
            continue
        shared: set[torch.fx.Node] = set()
        for i, a in enumerate(node.target._schema.arguments):
            given = node.args[i] if i < len(node.args) else node.kwargs.get(a.name)
            if a.alias_info is None or given is None:
                continue
            nodes = [n for n in (given if isinstance(given, (list, tuple)) else [given]) if isinstance(n, torch.fx.Node)]
            roots = set().union(*(of.get(n, set()) for n in nodes))
            shared |= roots
            if a.alias_info.is_write:
                changed |= roots
        of[node] = shared
    return [n for n in graph.nodes if n in changed]


def _extent(x: torch.Tensor) -> tuple[int, int]:
    """The bytes from the first element on, up to behind the last."""
    begin = x.data_ptr()
    last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    return begin, begin + (last + 1) * x.element_size()


def overlap(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether an element of one is in the memory of the other."""
    if x is y:
        return x.numel() > 0
    if x.device.type != "cpu" or y.device.type != "cpu" or not x.numel() or not y.numel():
        return False
    (a, b), (c, d) = _extent(x), _extent(y)
    if a >= d or c >= b:
        return False
    size = x.element_size()
    if size != y.element_size() or (a - c) % size or (x.is_contiguous() and y.is_contiguous()):
        return True
    first = min(a, c)
    marks = torch.zeros((max(b, d) - first) // size, dtype=torch.bool)
    marks.as_strided(x.shape, x.stride(), (a - first) // size).fill_(True)
    return bool(marks.as_strided(y.shape, y.stride(), (c - first) // size).any())


def refuse_overlaps(name: str, changed: Sequence[torch.Tensor], others: Sequence[Any]) -> None:
    """Refuses a call that would change one tensor while it reads another in the same memory."""
    rest = list(others)
    for i, x in enumerate(changed):
        for y in (*changed[i + 1 :], *rest):
            if isinstance(y, torch.Tensor) and overlap(x, y):
                raise ArgumentError(f"'{name}' changes an argument in place that shares memory with another tensor that it reads: give it a copy, "
                                    "x.clone()")  # fmt: skip


def apart(leaves: Sequence[Any]) -> list[Any]:
    """Arguments as examples: of those that share memory, copies."""
    out: list[Any] = []
    for i, x in enumerate(leaves):
        shared = isinstance(x, torch.Tensor) and any(isinstance(y, torch.Tensor) and overlap(x, y) for y in leaves[:i])
        out.append(x.detach().clone().requires_grad_(x.requires_grad) if shared else x)
    return out
