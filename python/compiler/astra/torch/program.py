"""A graph of ATen as a compiled entry that takes and gives PyTorch's tensors.

Takes:    a torch.fx.GraphModule without mutation; what each of its inputs is.
Gives:    a module of this package, and a callable over the runtime.
Keeps:    tensors go in and come out without a copy. The key of random numbers is drawn from PyTorch's generator at each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import torch

import astra_rt

from .. import _cache, _core, _dims
from .._errors import UnsupportedError
from .._graph import Graph, tracing
from .._tensor import Tensor, asarray, call, of_node
from .dims import Symbols
from .lower import lower
from .rows.random import RANDOM, keyed
from .rows.registry import packet_of
from .rows.types import own_type
from .settings import CHECKED

KEY = "random.key"
_API = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
if _API is not None:  # of PyTorch 2.10 and later: tensors go in and out by C functions
    astra_rt._rt.set_exchange(torch.Tensor, _API, CHECKED)
_WIDE = {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "bool"}  # what these functions exchange


_give = astra_rt._rt.give


def _kind_of(args: tuple[Any, ...]) -> Any:
    autocast, *rest = [f() for f in CHECKED]
    if autocast:
        return None
    found: Any = tuple(rest)
    for x in args:
        if type(x) is not torch.Tensor:
            return None
        found = (found, x.dtype, x.shape, x.device.type, x.requires_grad)
    return found


# Settings, types and shapes of tensors, and whether they want gradients: what can be a key; None where there is something else.
kind_of = _kind_of if _API is None else astra_rt._rt.exchanged_kind

def to_torch(made: Any) -> torch.Tensor:
    """A result of the runtime as a tensor of PyTorch's, in the same memory."""
    if _API is not None and made.dtype in _WIDE:
        return _give(made)
    return torch.from_dlpack(made)


@dataclass
class Input:
    """An input of a graph: what it becomes."""

    name: str
    example: Any  # a fake tensor, a SymInt, or a constant
    kind: str = "input"  # input, weight, fixed, state or constant
    data: torch.Tensor | None = None  # of weights, fixed ones and states


@dataclass
class Built:
    """A module's parts while it is made: results by number in the graph's order."""

    graph: Graph
    leaves: list[Any]  # nodes, or None, by input
    results: list[Any]  # tensors, sizes, numbers, None
    key: Any = None  # the leaf of the random key
    symbols: Symbols | None = None


def is_random(module: torch.fx.GraphModule) -> bool:
    """Whether a graph draws numbers, in its bodies too."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule) and any(packet_of(n.target) in RANDOM for n in part.graph.nodes if n.op == "call_function"):
            return True
    return False


def build(module: torch.fx.GraphModule, inputs: Sequence[Input], symbols: Symbols, graph: Graph, key: bool) -> Built:
    """The graph's nodes in `graph`, which is being traced."""
    core = graph.core
    leaves: list[Any] = []
    given: list[Any] = []
    for i in inputs:
        if i.kind == "constant":
            leaves.append(None)
            given.append(i.example)
        elif isinstance(i.example, torch.SymInt):
            leaves.append(None)
            given.append(symbols.size(i.example))
        elif isinstance(i.example, torch.Tensor):
            t = own_type(i.example.dtype)
            leaf = call(core.leaf, t.code, [_dims.size_node(core, symbols.size(n)) for n in i.example.shape])
            leaves.append(leaf)
            given.append(of_node(graph, leaf))
        else:
            leaves.append(None)
            given.append(i.example)
    random = call(core.leaf, "u32", []) if key else None
    with keyed(None if random is None else of_node(graph, random)):
        out = lower(module, given)
    results = list(out) if isinstance(out, (tuple, list)) else [out]
    used = core.leaves_of([x._in(graph) for x in results if isinstance(x, Tensor)])
    return Built(graph, leaves, results, random if random in used else None, symbols)


class Program:
    """A compiled graph. Call it with tensors in the order of its inputs that are no weights."""

    def __init__(self, module: torch.fx.GraphModule, inputs: Sequence[Input], symbols: Symbols, name: str, frozen: bool | None = None,
                 what: str = "a graph of PyTorch", numerics: str = "strict") -> None:  # fmt: skip
        with tracing() as graph:
            built = build(module, inputs, symbols, graph, key=True)
            self.results: list[tuple[str, Any]] = []  # ("tensor", place), ("size", place), ("value", x)
            outputs: list[tuple[str, Any]] = []
            for x in built.results:
                if isinstance(x, _dims.Dim):
                    x = of_node(graph, call(graph.core.scalar, x.node(graph.core), "i64"))
                    self.results.append(("size", len(outputs)))
                elif isinstance(x, Tensor):
                    self.results.append(("tensor", len(outputs)))
                else:
                    self.results.append(("value", x))
                    continue
                outputs.append((f"result.{len(outputs)}", x._in(graph)))
            made = self._made(graph, built, inputs, outputs, name)
        self.needs_key = built.key is not None
        self.places = [k for k, i in enumerate(i for i in inputs if i.kind == "input") if isinstance(i.example, torch.Tensor)]
        self.dtypes = [i.example.dtype for i in inputs if i.kind == "input" and isinstance(i.example, torch.Tensor)]
        used = set(graph.core.leaves_of([x for _, x in outputs]))
        self.live = [(i.name, i.data) for i, leaf in zip(inputs, built.leaves) if i.kind == "weight" and i.data is not None and leaf in used]
        self._versions = [version_of(t) for _, t in self.live]
        self.has_outputs = bool(outputs)
        self._is_given = _API is not None and len(outputs) == 1 and outputs[0][1].dtype in _WIDE
        self.bundle = _cache.compile(made, what=what, frozen=frozen, numerics=numerics) if outputs else b""
        self._entry: Any = None
        if outputs:
            self._loaded = astra_rt.load(self.bundle, threads=max(1, torch.get_num_threads()))
            self._entry = self._loaded["main"]

    @staticmethod
    def _made(graph: Graph, built: Built, inputs: Sequence[Input], outputs: Any, name: str) -> Any:
        making = _core.Making(graph.core, name if name.isidentifier() else "program")
        entry = []
        kept = []
        for i, leaf in zip(inputs, built.leaves):
            if leaf is None:
                continue
            if i.kind == "input":
                entry.append((i.name, leaf))
            else:
                value = value_of(i.data)
                kept.append(value)
                call(making.param, i.name, leaf, "weight" if i.kind == "weight" else "fixed", (value._address, value.nbytes))
        for n, leaf in enumerate(graph.core.leaves_of([x for _, x in outputs])):
            if leaf in graph.values:
                value = graph.values[leaf]
                call(making.param, f"captured.{n}", leaf, "fixed", (value._address, value.nbytes))
        if built.key is not None:
            entry.append((KEY, built.key))
        call(making.entry, "main", entry, outputs)
        return making.finish()

    def direct(self) -> tuple[Any, Any]:
        """What is called with inputs that are all tensors in host memory, one argument each, and what makes PyTorch's tensor of its one result:
        what `is_direct` says can be called so."""
        entry, taken = self._entry, _give if self._is_given else torch.from_dlpack
        if not self.live:
            return entry, taken

        def called(*args: torch.Tensor) -> Any:
            self._refresh()
            return entry(*args)

        return called, taken

    @property
    def is_direct(self) -> bool:
        """Whether there is one result, a tensor, and nothing but the arguments goes in."""
        plain = self.results == [("tensor", 0)] and not self.needs_key and self.places == list(range(len(self.places)))
        return plain and not any(t.is_complex for t in self.dtypes)  # a complex tensor may be a conjugated view

    def __call__(self, *args: Any) -> list[Any]:
        given = [ready(args[k]) for k in self.places]
        if self.live:
            self._refresh()
        if self.needs_key:
            given.append(random_key())
        made: Any = ()
        if self._entry is not None:
            made = self._entry(*given)
            if not isinstance(made, tuple):
                made = (made,)
        out: list[Any] = []
        for kind, x in self.results:
            if kind == "tensor":
                out.append(to_torch(made[x]))
            else:
                out.append(int(made[x]) if kind == "size" else x)
        return out

    def replace(self, old: torch.Tensor, new: torch.Tensor) -> bool:
        """Takes another tensor as a weight; whether there is such a one."""
        for i, (name, t) in enumerate(self.live):
            if t is old:
                self.live[i], self._versions[i] = (name, new), None
                return True
        return False

    def _refresh(self) -> None:
        """Weights that have changed since the last call are given to the runtime."""
        for i, (name, t) in enumerate(self.live):
            now = version_of(t)
            if now != self._versions[i]:
                self._loaded.set_param(name, value_of(t))
                self._versions[i] = now


def random_key() -> torch.Tensor:
    """A key of random numbers, drawn from PyTorch's generator."""
    return torch.randint(0, 1 << 31, (), dtype=torch.int64, device="cpu").to(torch.uint32)


def version_of(t: torch.Tensor) -> Any:
    """What changes when a tensor does; of one that does not count its changes always another."""
    return object() if t.is_inference() else (t._version, t.data_ptr())


def ready(t: Any) -> Any:
    """A tensor as the runtime takes it: in host memory, without a graph of gradients, row-major."""
    if t.device.type != "cpu":
        raise UnsupportedError(f"a tensor lies on {t.device}; compiled functions take tensors in host memory: call .cpu() first")
    if t.requires_grad:
        t = t.detach()
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    return t if t.is_contiguous() else t.contiguous()


def value_of(t: Any) -> Any:
    """A tensor as one of astra_rt, in the same memory where that can be."""
    return asarray(ready(t.detach()))._realized()
