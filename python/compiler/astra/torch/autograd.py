"""`@astra` where gradients are wanted: the joint graph of AOTAutograd, cut into a forward and a backward entry.

Takes:    a module and arguments.
Gives:    a callable whose results have a grad_fn; loss.backward() runs the backward entry.
Keeps:    parameters and buffers are read at each call, and buffers that the program changes are written back: optimizers of PyTorch's
          work on top.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch._functorch.aot_autograd import aot_module_simplified
from torch.export.graph_signature import ConstantArgument, InputKind

from .._errors import TraceError
from .backend import compilers
from .rows.matrices import unchecked


class Differentiable:
    """A program with gradients for arguments of these types and shapes."""

    def __init__(self, module: torch.nn.Module, args: Any, named: Any, name: str, dims: Mapping[str, Any] | None, frozen: bool | None) -> None:
        from .capture import _attribute, _sentence, _user_line
        from .capture import exported as export

        if dims:
            raise TraceError(f"'{name}' has dims and wants gradients: call it under torch.no_grad(), or without dims")
        try:
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                exported, self.environment = export(module, args, named)
        except TraceError:
            raise
        except Exception as error:
            line = _user_line(error)
            raise TraceError(f"'{name}' cannot be captured as a graph{f' ({line})' if line else ''}: {_sentence(error)}") from error
        self.out_spec = exported.call_spec.out_spec
        self.sources: list[tuple[str, Any]] = []  # ("live", (module, path)), ("user", place), ("value", x)
        users = 0
        for spec in exported.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                constant = isinstance(spec.arg, ConstantArgument)
                self.sources.append(("value", spec.arg.value) if constant else ("user", users))
                users += 1
                continue
            live = _attribute(module, spec.target)
            if not isinstance(live, torch.Tensor):
                live = exported.constants[spec.target]
                self.sources.append(("value", live))  # one that has gradients is none of these
            else:
                self.sources.append(("live", (module, spec.target)))
        leaves = pytree.tree_leaves((args, named))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), unchecked():
            self.run = aot_module_simplified(_flat(exported.graph_module), self._given(leaves), **compilers(frozen))
        self.module = module
        self.guards = self.environment.guards(self._taken)
        self.tensors = [_attribute(*x) for kind, x in self.sources if kind == "live"]

    def _taken(self, old: Any, new: Any) -> bool:
        """Takes another tensor from outside in the place of one: they are read at each call."""
        from .capture import _attribute, _Function, is_like

        number = next((n for n, t in enumerate(self.tensors) if t is old), None)
        if number is None or not is_like(old, new):
            return False
        if isinstance(self.module, _Function):
            self.module.replace(old, new)
        self.tensors[number] = new
        return True

    def _given(self, leaves: Sequence[Any]) -> list[Any]:
        from .capture import _attribute

        out = []
        for kind, x in self.sources:
            out.append(leaves[x] if kind == "user" else _attribute(*x) if kind == "live" else x)
        return out

    def __call__(self, leaves: Sequence[Any]) -> Any:
        made = self.run(*self._given(leaves))
        return pytree.tree_unflatten(list(made), self.out_spec)


def _flat(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The exported graph as a function of flat inputs to a tuple."""
    graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    out = graph.graph_copy(module.graph, values)
    graph.output(tuple(out) if isinstance(out, (tuple, list)) else (out,))
    return torch.fx.GraphModule(module, graph)
