"""Recurrent layers: PyTorch's definitions and names of parameters (torch.nn.RNN, GRU, LSTM)."""

from __future__ import annotations

import math
from typing import Any

from .. import _core, _ops
from .._errors import ArgumentError, ShapeError
from .._tensor import asarray
from ._module import Module, context, parameter

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class _Recurrent(Module):
    _cell = ""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, nonlinearity: str = "tanh", dtype: Any = "float32") -> None:  # fmt: skip
        self.input_size, self.hidden_size, self.num_layers, self.batch_first = input_size, hidden_size, num_layers, batch_first
        self.bidirectional, self.dropout, self.nonlinearity, self.has_bias = bidirectional, float(dropout), nonlinearity, bias
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"nonlinearity is 'tanh' or 'relu', not '{nonlinearity}'")
        gates, directions = _GATES[self._cell], 2 if bidirectional else 1
        for layer in range(num_layers):
            inputs = input_size if not layer else hidden_size * directions
            for d in range(directions):
                end = f"_l{layer}" + ("_reverse" if d else "")
                setattr(self, "weight_ih" + end, parameter((gates * hidden_size, inputs), dtype))
                setattr(self, "weight_hh" + end, parameter((gates * hidden_size, hidden_size), dtype))
                if bias:
                    setattr(self, "bias_ih" + end, parameter((gates * hidden_size,), dtype))
                    setattr(self, "bias_hh" + end, parameter((gates * hidden_size,), dtype))

    def recipe(self, name: str) -> str | None:
        bound = 1 / math.sqrt(self.hidden_size)
        return f"uniform(low={-bound!r}, high={bound!r})"

    def __call__(self, x: Any, state: Any = None) -> Any:
        """x [T, N, input] (batch_first: [N, T, input]), or [T, input] and states without N; state: hidden [layers * directions, N, hidden], of an LSTM a pair of such;
        None: zeros. Gives (all steps [T, N, directions * hidden], the last state)."""
        x = asarray(x)
        if x.ndim == 2:
            axis = 0 if self.batch_first else 1
            wide = lambda s: None if s is None else _ops.expand_dims(asarray(s), 1)  # noqa: E731
            out, last = self(_ops.expand_dims(x, axis), tuple(map(wide, state)) if self._cell == "lstm" and state is not None else wide(state))
            narrow = lambda s: _ops.squeeze(s, 1)  # noqa: E731
            return _ops.squeeze(out, axis), tuple(map(narrow, last)) if self._cell == "lstm" else narrow(last)
        if x.ndim != 3:
            raise ShapeError(f"the layer is for [T, N, {self.input_size}] or [T, {self.input_size}], not for {tuple(x.shape)}")
        if self.batch_first:
            x = _ops.swapaxes(x, 0, 1)
        lstm, directions = self._cell == "lstm", 2 if self.bidirectional else 1
        first = (state if lstm else (state, None)) if state is not None else (None, None)
        hidden, cells = [], []
        for layer in range(self.num_layers):
            ends = [f"_l{layer}" + ("_reverse" if d else "") for d in range(directions)]
            part = lambda s: None if s is None else asarray(s)[layer * directions : (layer + 1) * directions]  # noqa: E731, B023
            get = lambda name: _ops.stack([_ops.make(_core.gates_in_order, self._cell, getattr(self, name + e)) for e in ends])  # noqa: E731, B023
            bias = _ops.concat([get("bias_ih"), get("bias_hh")], axis=1) if self.has_bias else None
            act = self.nonlinearity.capitalize() if self._cell == "rnn" else None
            names = [act] * directions if act else []
            every, last, cell = _ops.make_several(
                _core.recurrent, self._cell, x, get("weight_ih"), get("weight_hh"), bias, part(first[0]), part(first[1]),
                "both" if self.bidirectional else "forward", True, names)  # fmt: skip
            assert every is not None and last is not None
            steps = _ops.moveaxis(every, 1, 2)  # [T, N, D, H]
            x = _ops.reshape(steps, (*steps.shape[:2], directions * self.hidden_size))
            if self.dropout and layer + 1 < self.num_layers and context().training:
                x = _ops.make_several(_core.dropout, *context().stream(), x, self.dropout)[0]
            hidden.append(last)
            cells.append(cell)
        out = _ops.swapaxes(x, 0, 1) if self.batch_first else x
        last_hidden = _ops.concat(hidden, axis=0)
        return out, ((last_hidden, _ops.concat(cells, axis=0)) if lstm else last_hidden)


class RNN(_Recurrent):
    """h' = tanh(W x + b + R h + c), or relu. See `__call__` for shapes."""

    _cell = "rnn"


class GRU(_Recurrent):
    """Gated recurrent units (Cho et al. 2014), the reset gate behind R as PyTorch has it. See `__call__` for shapes."""

    _cell = "gru"


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997). See `__call__` for shapes."""

    _cell = "lstm"
