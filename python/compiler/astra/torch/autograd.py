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
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.export.graph_signature import ConstantArgument, InputKind

from .._errors import TraceError, UnsupportedError
from .aliases import changed_inputs, refuse_overlaps
from .backend import compilers
from .refusals import is_users_own, refused
from .rows.matrices import unchecked


class Differentiable:
    """A program with gradients for arguments of these types and shapes."""

    def __init__(self, module: torch.nn.Module, args: Any, named: Any, name: str, dims: Mapping[str, Any] | None, frozen: bool | None,
                 numerics: str = "strict") -> None:  # fmt: skip
        from .capture import _attribute
        from .capture import exported as export

        if dims:
            raise TraceError(f"'{name}' has dims and wants gradients: call it under torch.no_grad(), or without dims")
        try:
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                exported, self.environment = export(module, args, named)
            changed = set(changed_inputs(exported.graph_module.graph))
        except Exception as error:
            raise refused(name, error) from (None if is_users_own(error) else error)
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
        nodes = [n for n in exported.graph_module.graph.nodes if n.op == "placeholder"]
        self.name, self.changed = name, [i for i, n in enumerate(nodes) if n in changed]
        leaves = pytree.tree_leaves((args, named))
        self.tensors = [_attribute(*x) for kind, x in self.sources if kind == "live"]
        numbers = iter(range(len(self.tensors)))
        self.sources = [(kind, next(numbers) if kind == "live" else x) for kind, x in self.sources]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), unchecked():
            try:
                self.run = aot_module_simplified(_flat(exported.graph_module), self._given(leaves), **compilers(frozen, numerics))
            except (DataDependentOutputException, DynamicOutputShapeException) as error:
                raise refused(name, error) from error
        self.module = module
        self.guards = self.environment.guards(self._taken)

    def _taken(self, old: Any, new: Any) -> bool:
        """Takes another tensor from outside in the place of one: they are read at each call."""
        from .capture import _Function, is_like

        number = next((n for n, t in enumerate(self.tensors) if t is old), None)
        if number is None or not is_like(old, new):
            return False
        if isinstance(self.module, _Function):
            self.module.replace(old, new)
        self.tensors[number] = new
        return True

    def _given(self, leaves: Sequence[Any]) -> list[Any]:
        tensors = self.tensors  # not attributes of the module: while another thread captures it, those are tensors of its trace
        return [leaves[x] if kind == "user" else tensors[x] if kind == "live" else x for kind, x in self.sources]

    def __call__(self, leaves: Sequence[Any]) -> Any:
        given = self._given(leaves)
        if self.changed:
            refuse_overlaps(self.name, [given[i] for i in self.changed], [x for i, x in enumerate(given) if i not in self.changed])
        made = self.run(*given)
        for f in {x.grad_fn for x in made if isinstance(x, torch.Tensor) and x.grad_fn is not None}:
            f.register_prehook(self._once)
        return pytree.tree_unflatten(list(made), self.out_spec)


    def _once(self, _: Any) -> None:
        """Refuses a backward pass that is to be differentiated itself."""
        if torch.is_grad_enabled():
            raise UnsupportedError(f"'{self.name}' has no gradients of gradients (create_graph=True): what is compiled of it is a forward and a backward "
                                   "entry; call the original function, f.__wrapped__")  # fmt: skip


def _flat(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The exported graph as a function of flat inputs to a tuple."""
    graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    out = graph.graph_copy(module.graph, values)
    graph.output(tuple(out) if isinstance(out, (tuple, list)) else (out,))
    return torch.fx.GraphModule(module, graph)
