"""torch.compile(model, backend="astra"): graphs that Dynamo finds, forward and backward, as compiled entries.

Takes:    the graphs of AOTAutograd.
Gives:    callables on PyTorch's tensors.
Keeps:    sizes that Dynamo makes symbolic become dims with bounds: within them nothing is compiled again.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from .._cache import checked_numerics
from .._errors import ArgumentError
from .dims import MOST, Symbols
from .exclusive import capturing
from .program import Input, Program
from .rows.matrices import unchecked


def compile_graph(module: torch.fx.GraphModule, examples: Sequence[Any], name: str = "graph", frozen: bool | None = None,
                  numerics: str = "strict") -> Callable[..., Any]:  # fmt: skip
    """A graph of AOTAutograd's as a compiled entry; every input is given at each call."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    inputs = [Input(n.name, n.meta["val"] if "val" in n.meta else x) for n, x in zip(nodes, examples)]
    ranges: dict[Any, Any] = {}
    for i in inputs:
        sizes = i.example.shape if isinstance(i.example, torch.Tensor) else [i.example]
        for n in sizes:
            if isinstance(n, torch.SymInt):
                environment: Any = n.node.shape_env
                ranges.update(environment.var_to_range)
    program = Program(module, inputs, Symbols(ranges, unbounded=MOST), name, frozen, numerics=numerics)

    def run(*args: Any) -> Any:
        return tuple(program(*args))

    return run


def _boxed(name: str, frozen: bool | None = None, numerics: str = "strict") -> Callable[..., Any]:
    def compiler(module: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
        with capturing():  # the backward graph comes here when it first runs
            run = compile_graph(module, examples, name, frozen, numerics)

        def boxed(args: Any) -> Any:
            given = list(args)
            args.clear()
            return run(*given)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed

    return compiler


def decompositions() -> Any:
    """The table by which AOTAutograd decomposes."""
    return torch._decomp.core_aten_decompositions()


def compilers(frozen: bool | None = None, numerics: str = "strict") -> dict[str, Any]:
    """What AOTAutograd is given."""
    names = {"fw_compiler": "forward", "bw_compiler": "backward", "inference_compiler": "inference"}
    return {**{key: _boxed(name, frozen, numerics) for key, name in names.items()}, "decompositions": decompositions()}


def backend(module: torch.fx.GraphModule, examples: Sequence[Any], **options: Any) -> Any:
    """The backend of torch.compile; options: frozen, numerics."""
    options = {**options, **(options.get("options") or {})}  # torch.compile(..., options={...}) gives them so
    wrong = sorted(set(options) - {"options", "mode", "frozen", "numerics"})
    if wrong:
        raise ArgumentError(f"the backend astra takes the options frozen and numerics, not {wrong[0]}")
    numerics = checked_numerics(options.get("numerics", "strict"))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), unchecked():
        return aot_autograd(**compilers(options.get("frozen"), numerics))(module, examples)


def register() -> None:
    """Makes the backend known by its name."""
    if "astra" not in torch._dynamo.list_backends(exclude_tags=()):
        register_backend(backend, "astra")


register()
