"""Recurrent layers whole: one loop a layer and direction.

Keeps:    PyTorch's order of gates in, the composite's order inside.
"""

from __future__ import annotations

from typing import Any, Sequence

from ... import _core, _ops
from ..._errors import UnsupportedError
from ..._tensor import Tensor
from .random import _native_dropout
from .registry import row
from .shapes import narrow
from .types import as_type, opmath

def _layers(cell: str, x: Tensor, hidden: Tensor, state: Tensor | None, params: Sequence[Tensor], has_biases: bool, layers: int,
            dropout: float, train: bool, both: bool, batch_first: bool, activation: str = "tanh") -> tuple[Tensor, ...]:  # fmt: skip
    if state is not None and hidden.shape[-1] != state.shape[-1]:
        raise UnsupportedError("an LSTM with projections")
    t, alone = x.dtype, x.ndim == 2
    if alone:
        x, hidden, state = (None if v is None else _ops.expand_dims(v, 1) for v in (x, hidden, state))  # type: ignore[assignment]
    elif batch_first:
        x = _ops.swapaxes(x, 0, 1)
    wide = opmath(t)
    x, hidden, params = as_type(x, wide), as_type(hidden, wide), [as_type(p, wide) for p in params]
    state = None if state is None else as_type(state, wide)
    directions, each = 2 if both else 1, 4 if has_biases else 2
    activations = ["sigmoid", "tanh", "tanh"] if cell == "lstm" else ["sigmoid", "tanh"] if cell == "gru" else [activation]
    last, cells = [], []
    for layer in range(layers):
        own = [params[each * (layer * directions + d) : each * (layer * directions + d + 1)] for d in range(directions)]
        stacked = [_ops.stack([_ops.make(_core.gates_in_order, cell, p[k]) for p in own], 0) for k in range(each)]
        bias = _ops.concat(stacked[2:], 1) if has_biases else None
        begin = narrow(hidden, 0, layer * directions, directions)
        begin_state = None if state is None else narrow(state, 0, layer * directions, directions)
        out, h, c = _ops.make_several(_core.recurrent, cell, x, stacked[0], stacked[1], bias, begin, begin_state,
                                      "both" if both else "forward", True, activations * directions)  # fmt: skip
        assert out is not None and h is not None
        steps, _, batch, size = out.shape
        x = _ops.reshape(_ops.permute_dims(out, (0, 2, 1, 3)), (steps, batch, directions * size))
        if dropout and train and layer + 1 < layers:
            x = _native_dropout(x, dropout, True)[0]
        last.append(h)
        if c is not None:
            cells.append(c)
    results = [x, _ops.concat(last, 0)] + ([_ops.concat(cells, 0)] if cells else [])
    if alone:
        results = [_ops.squeeze(v, 1) for v in results]
    elif batch_first:
        results[0] = _ops.swapaxes(results[0], 0, 1)
    return tuple(as_type(v, t) for v in results)


@row("aten.lstm.input")
def _lstm(x: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, layers: int, dropout: float, train: bool, both: bool,
          batch_first: bool) -> tuple[Tensor, ...]:  # fmt: skip
    return _layers("lstm", x, hx[0], hx[1], params, has_biases, layers, dropout, train, both, batch_first)


def _simple(name: str, cell: str, activation: str = "tanh") -> None:
    def function(x: Tensor, hx: Tensor, *args: Any) -> tuple[Tensor, ...]:
        named: dict[str, Any] = {"activation": activation}
        return _layers(cell, x, hx, None, *args, **named)

    row(f"aten.{name}.input")(function)


_simple("gru", "gru")
_simple("rnn_tanh", "rnn")
_simple("rnn_relu", "rnn", "relu")
