"""The table of rows: which function of this package stands for an op of PyTorch.

Takes:    a packet's name, "aten.gelu", and a function with the packet's parameters.
Gives:    the table, looked up by op.
Keeps:    a row serves every overload of its packet: those differ in which arguments are numbers.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

ROWS: dict[str, Callable[..., Any]] = {}
REFUSED: dict[str, str] = {}
"""Packets that have no row on purpose, and why."""


def row(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function the row of packets."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            ROWS[name] = function
        return function

    return register


def refuse(why: str, *names: str) -> None:
    """Says why packets have no row."""
    for name in names:
        REFUSED[name] = why


def packet_of(op: Any) -> str:
    """The name of an op's packet, "aten.gelu"; of a function of Python's its own."""
    if isinstance(op, torch._ops.OpOverload):
        return str(op.overloadpacket)
    if isinstance(op, torch._ops.HigherOrderOperator):
        return "higher_order." + op.name()
    return getattr(op, "__name__", str(op))


def find(op: Any) -> Callable[..., Any] | None:
    """The row of an op; one for its overload alone goes before that of its packet."""
    return ROWS.get(str(op)) or ROWS.get(packet_of(op))


def register_lowering(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of this package's the meaning of a custom op, `torch.ops.mine.op` or its name "mine.op":

        @astra.torch.register_lowering(torch.ops.mine.scale)
        def scale(x, factor):
            return x * factor
    """
    if isinstance(op, torch.library.CustomOpDef):
        op = op._opoverload
    return row(op if isinstance(op, str) else str(op) if isinstance(op, torch._ops.OpOverloadPacket) else packet_of(op))
