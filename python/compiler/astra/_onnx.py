"""Models of ONNX files: from_onnx.

Takes:    a path, bounds of the model's dims.
Gives:    Model: called with tensors, lowered, compiled, saved; inside of a trace or a transform it is a part of the function.
Keeps:    one importer, the one of astra-compile (docs/onnx.md): the same graph.
"""

from __future__ import annotations

import os
import re
from typing import Any, Mapping, Sequence

from . import _core, _dims
from ._errors import ArgumentError, Error
from ._evaluate import of_bytes
from ._graph import current
from ._jit import Jitted
from ._stages import Compiled, Lowered, of_module
from ._tensor import Tensor, asarray, call, of_node


class Model:
    """A model of a file or of another framework. `model(x)` computes; `lower()`, `compile(target)` go on to a bundle; gradients by `params`:
    astra.grad(lambda p: loss(model.apply(p, x)))(model.params)."""

    def __init__(self, module: Any, notes: Sequence[str]) -> None:
        self.module, self.notes = module, tuple(notes)
        self.inputs = [(n, f"{t}[{', '.join(dims)}]") for n, t, dims in module.inputs("main")]
        self.outputs = [(n, f"{t}[{', '.join(dims)}]") for n, t, dims in module.outputs("main")]
        self._params: dict[str, Tensor] | None = None
        self._jitted = Jitted(self._inlined)

    @property
    def params(self) -> dict[str, Tensor]:
        """The weights of the model by name."""
        return {n: t for n, t in self._all().items() if n in self._weights}

    def _all(self) -> dict[str, Tensor]:
        from ._tensor import of_value

        if self._params is None:
            self._weights = {n for n, _, kind in self.module.params if kind == "weight"}
            self._params = {n: of_value(of_bytes(*call(self.module.param_data, n))) for n, _, _ in self.module.params}
        return self._params

    def _inlined(self, *xs: Any) -> Any:
        return self.apply({}, *xs)

    def apply(self, params: Mapping[str, Any], *xs: Any) -> Any:
        """The model's results with other weights: those of `params` by name, its own for the others."""
        known = self._all()
        for name in params:
            if name not in known:
                raise ArgumentError(f"the model has no weight '{name}'; it has {', '.join(self._weights)}")
        graph = current()
        given = {n: asarray(params.get(n, t))._in(graph) for n, t in known.items()}
        nodes = call(self.module.inline, graph.core, "main", [asarray(x)._in(graph) for x in xs], given)
        made = [of_node(graph, n) for n in nodes]
        return made[0] if len(made) == 1 else tuple(made)

    def __call__(self, *xs: Any) -> Any:
        if len(xs) != len(self.inputs):
            raise ArgumentError(f"the model takes {len(self.inputs)} inputs ({', '.join(f'{n}: {t}' for n, t in self.inputs)}), {len(xs)} are given")
        return self._jitted(*xs)

    def lower(self) -> Lowered:
        """The module, with the weights as params."""
        return of_module(self.module)

    def compile(self, target: str | Sequence[str] | None = None, frozen: bool | None = None, numerics: str = "strict") -> Compiled:
        """See `Lowered.compile`."""
        return self.lower().compile(target, frozen, numerics=numerics)

    def __repr__(self) -> str:
        return f"<Model '{self.module.name}': {self.inputs} -> {self.outputs}>"


def bounds_of(name: str, value: Any) -> tuple[str, int, int, str]:
    if isinstance(value, _dims.Dim):
        lo, hi = value.bounds
        return name, lo, hi, ""
    if isinstance(value, int):
        return name, value, value, ""
    if isinstance(value, str):
        return name, 0, 0, value
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(n, int) for n in value):
        return name, int(value[0]), int(value[1]), ""
    raise ArgumentError(f"dim '{name}' is given as {value!r}; it must be (least, most), a number, astra.dim or an expression of other dims: 'past + 1'")


def from_onnx(path: str | os.PathLike[str], dims: Mapping[str, Any] | None = None, training: bool = False) -> Model:
    """A model of an ONNX file. dims: for each of its dynamic dims bounds (least, most), a number, or an expression of others:
    {"batch": (1, 8), "total": "past + 1"}; "*" is for all others. training: also an entry `forward`, as docs/onnx.md says."""
    given = [bounds_of(n, v) for n, v in (dims or {}).items()]
    try:
        module, notes = call(_core.import_onnx, os.fspath(path), given, training)
    except Error as error:  # its flags as they are given here
        text = re.sub(r"--dim[ =]([^\s=]+)=(\d+)\.\.(\d+)", r'dims={"\1": (\2, \3)}', str(error))
        raise type(error)(text.replace("with these flags the model is read", "with this the model is read")) from None
    return Model(module, notes)


__all__ = ["from_onnx"]
