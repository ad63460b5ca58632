"""Functions under @triton.jit, and their launches.

Takes:    a function of Triton's language; a grid; tensors, numbers, types, other such functions.
Gives:    the new values of the arguments that the kernel stores into: one tensor, or a tuple in the order of the arguments. Arrays of NumPy's and
          tensors of PyTorch's are written to, as a launch of Triton's does; tensors of Astra's never change.
Keeps:    what a launch does not store keeps the value that the argument had; of a spec it is 0.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np

from ... import _dtypes, _ops
from ..._dims import Dim
from ..._dtypes import DType
from ..._errors import ArgumentError, KernelError
from ..._graph import current
from ..._kernel import _grid, _races, language
from ..._kernel._graph import Store
from ..._kernel._interpret import Output
from ..._kernel._source import Source
from ..._kernel._values import View
from ..._kernel._expressions import constant
from ..._tensor import Tensor, asarray, call, of_node, of_value
from ..._trace import Spec
from ..._transforms import nodes_of, placeholder
from ._builtins import Descriptor, dtype_of
from ._pointers import Argument, Block, BlockPointer, Items, Pointer
from ._interpret import TritonInterpreter
from ._loops import Spread, TritonGraph
from ._walk import TritonWalker

# What a launch says of how a kernel runs, which changes no bit.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "num_buffers_warp_spec", "num_consumer_groups", "maxnreg", "extern_libs", "enable_fp_fusion", "debug",
           "warmup", "stream", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "launch_cooperative_grid", "launch_pdl", "sanitize_overflow", "enable_persistent")  # fmt: skip


def _torch() -> Any:
    return sys.modules.get("torch")


class Memory:
    """An argument that is a tensor: its elements as they lie in memory, in a row, and how values get back there."""

    def __init__(self, x: Any) -> None:
        self.x, torch = x, _torch()
        self.shape: tuple[Any, ...] = tuple(x.shape)
        self.before: Tensor | None = None
        self.back: Callable[[Any], None] | None = None
        if isinstance(x, Spec):
            self.dtype = x.dtype
        elif isinstance(x, Tensor):
            self.before = _ops.reshape(x, (-1,))
        elif torch is not None and isinstance(x, torch.Tensor):
            if x.device.type != "cpu":
                raise ArgumentError(f"a tensor of PyTorch's on the device '{x.device}': kernels are launched with tensors in host memory")
            x = x.detach()
            span = x.as_strided((_span(x.shape, x.stride()),), (1,), x.storage_offset())
            self.before = asarray(span)
            self.back = lambda values: span.copy_(torch.from_dlpack(values))
            self.shape = (span.shape[0],)
        else:
            if not isinstance(x, np.ndarray):
                x = np.asarray(x)
            if any(s < 0 or s % x.itemsize for s in x.strides):
                raise ArgumentError("an array whose strides are negative or no multiples of its elements has no pointer to all of its elements: copy it")
            flat = np.lib.stride_tricks.as_strided(x, (_span(x.shape, [s // x.itemsize for s in x.strides]),), (x.itemsize,))
            self.before = asarray(flat, copy=True)
            if x.flags.writeable:
                self.back = lambda values: np.copyto(flat, values.numpy().reshape(-1))
            self.shape = (flat.shape[0],)
        if self.before is not None:
            self.dtype = self.before.dtype

    @property
    def size(self) -> Any:
        n: Any = 1
        for extent in self.shape:
            n = n * extent
        return n


def _span(shape: Any, strides: Any) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0


def is_memory(x: Any) -> bool:
    torch = _torch()
    return isinstance(x, (Tensor, Spec, np.ndarray)) or torch is not None and isinstance(x, torch.Tensor)


class TensorDescriptor:
    """A tensor and the shape of its blocks, for kernels that load and store through descriptors. block_shape may be set later, by a pre_hook."""

    def __init__(self, base: Any, shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int], padding: str = "zero") -> None:
        self.base, self.shape, self.strides, self.block_shape, self.padding = base, list(shape), list(strides), list(block_shape), padding

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        shape = [int(n) for n in tensor.shape]
        if isinstance(tensor, np.ndarray):
            strides = [s // tensor.itemsize for s in tensor.strides]
        elif isinstance(tensor, Tensor):
            strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        else:
            strides = list(tensor.stride())
        return TensorDescriptor(tensor, shape, strides, block_shape, padding)


def is_descriptor(x: Any) -> bool:
    return all(hasattr(x, a) for a in ("base", "shape", "strides", "block_shape"))


class JITFunction:
    """A function under @triton.jit: a kernel that is launched as f[grid](...), and a helper of others."""

    def __init__(self, f: Any) -> None:
        while not inspect.isfunction(f) and hasattr(f, "fn"):  # what Triton's own decorators make
            f = f.fn
        if not inspect.isfunction(f):
            raise ArgumentError(f"@triton.jit stands above a function of `def`, not above a {type(f).__name__}")
        self.source = Source(f)
        self.fn = self.__wrapped__ = f
        self.__name__, self.__doc__ = self.source.name, f.__doc__

    def __repr__(self) -> str:
        return f"<triton kernel {self.source.name}{self.source.signature}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise ArgumentError(f"'{self.source.name}' is launched with a grid, as {self.source.name}[grid](...), or called in a kernel")

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **named: self.run(grid, args, named)

    def settings(self, values: dict[str, Any]) -> dict[str, Any]:
        """What decorators above this one say of its arguments."""
        return {}

    def prepare(self, values: dict[str, Any]) -> None:
        """What a configuration does to the arguments before a launch."""

    def bound(self, grid: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The grid, and the arguments by name."""
        parameters = self.source.signature.parameters
        named = {k: v for k, v in named.items() if k in parameters or k not in OPTIONS}
        try:
            partial = self.source.signature.bind_partial(*args, **named).arguments
        except TypeError as error:
            raise ArgumentError(f"{self.source.name}{self.source.signature}: {error}") from None
        for k, v in self.settings(partial).items():
            if k in parameters:
                partial.setdefault(k, v)
        try:
            whole = self.source.signature.bind(**partial)
        except TypeError as error:
            raise ArgumentError(f"{self.source.name}{self.source.signature}: {error}") from None
        whole.apply_defaults()
        values = dict(whole.arguments)
        self.prepare(values)
        grid = grid(values) if callable(grid) else grid
        grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        return _grid(self.source, tuple(int(n) if isinstance(n, np.integer) else n for n in grid), 1), values

    def run(self, grid: Any, args: Sequence[Any], named: dict[str, Any], on_breakpoint: Any = None, interpreted: bool = False) -> Any:
        extents, values = self.bound(grid, args, named)
        memories: dict[str, Memory] = {}
        names: dict[str, Any] = {}
        for name, x in values.items():
            names[name] = self.argument(name, x, memories)
        run = self.interpreted if interpreted else self.emitted
        found = run(extents, names, memories, on_breakpoint)
        for name, t in found.items():
            back = memories[name].back
            if back is not None:
                back(t)
        if not found:
            raise KernelError(f"{self.source.name}: the kernel stores nothing")
        out = tuple(found.values())
        return out[0] if len(out) == 1 else out

    def argument(self, name: str, x: Any, memories: dict[str, Memory]) -> Any:
        """A value of a launch as a value in the kernel; of tensors a place for a pointer."""
        if is_memory(x):
            memories[name] = Memory(x)
            return name, memories[name]
        if is_descriptor(x) and is_memory(x.base):
            memories[name] = Memory(x.base)
            return x, name, memories[name]
        if isinstance(x, np.generic):
            return x.item()
        found = dtype_of(x)
        if found is not None:
            return found
        torch = _torch()
        if torch is not None and isinstance(x, torch.dtype):
            return _dtypes.dtype(str(x).removeprefix("torch."))
        if isinstance(x, (list, tuple)) and any(map(is_memory, x)):
            items = []
            for i, part in enumerate(x):
                if not is_memory(part):
                    raise ArgumentError(f"{self.source.name}: '{name}' is a tuple of tensors and of others")
                items.append(self.argument(f"{name}[{i}]", part, memories))
            return Items(tuple(items), 0)
        if isinstance(x, (list, tuple)) and x and all(type(part) in (int, float) for part in x) and not self.static(name):
            return Items(tuple(x), 0)
        if constant(x) or isinstance(x, (JITFunction, Dim)) or callable(x):
            return x
        if hasattr(x, "value") and type(x).__name__ == "constexpr":
            return x.value
        raise ArgumentError(f"{self.source.name}: '{name}' is a {type(x).__name__}; a kernel is given tensors, numbers, types and functions under @triton.jit")

    def static(self, name: str) -> bool:
        """Whether an argument is annotated as tl.constexpr."""
        return "constexpr" in str(self.source.signature.parameters[name].annotation)

    # ---- the node of the graph

    def emitted(self, grid: tuple[Any, ...], names: dict[str, Any], memories: dict[str, Memory], _: Any) -> dict[str, Tensor]:
        graph = current()
        core = graph.core
        inputs = {n: m for n, m in memories.items() if m.before is not None}
        tensors = [m.before for m in inputs.values() if m.before is not None]
        nodes = nodes_of(graph, tensors)
        spread, extents = None, grid
        while True:
            walker = TritonGraph(self.source, language, graph, extents, spread)
            inner = [placeholder(graph, t) for t in tensors]
            arguments: dict[str, Argument] = {}
            for (name, m), p in zip(inputs.items(), inner):
                arguments[name] = a = Argument(name, m.dtype, _number(self, m, name), m.before)
                a.view = View(name, m.dtype, (a.size,), p)
            for name, m in memories.items():
                if m.before is None:
                    arguments[name] = Argument(name, m.dtype, _number(self, m, name), None)
                    arguments[name].view = View(name, m.dtype, (arguments[name].size,), _zeros(arguments[name].size, m.dtype))
            walker.begin({n: _placed(x, arguments) for n, x in names.items()})
            try:
                with graph.transforming():
                    walker.run()
                    if not walker.stores:
                        raise walker.error("the kernel stores nothing", self.source.tree)
                    results, finished = _results(walker)
                break
            except Spread as found:
                if spread is not None and spread[0] != found.axis:
                    raise walker.error("two loops over range(program_id, n, num_programs) of different axes") from None
                spread = spread or (found.axis, int(extents[found.axis]))
                extents = (*extents[: found.axis], found.total, *extents[found.axis + 1 :])
        function, captured = call(core.close, nodes_of(graph, results), nodes_of(graph, inner), 0, False, [])
        sizes = [walker.node_of(n) for n in walker.grid]
        node = call(core.control, "custom", [*nodes, *captured, *sizes], [], ",".join(walker.names_of_grid), [function])
        out = [of_node(graph, call(core.result, node, i, r.dtype.code, list(r._in(graph).dims))) for i, r in enumerate(results)]
        by_name = finished(out)
        return {n: _ops.reshape(by_name[n], _shape_of(memories[n])) for n in memories if n in by_name}

    # ---- the interpreter

    def interpreted(self, grid: tuple[Any, ...], names: dict[str, Any], memories: dict[str, Memory], on_breakpoint: Any) -> dict[str, Tensor]:
        if any(not isinstance(n, int) for n in grid):
            raise ArgumentError("the interpreter runs with numbers: sizes are known there, no dims")
        arguments = {}
        for name, m in memories.items():
            arguments[name] = a = Argument(name, m.dtype, _number(self, m, name), m.before)
            a.view = View(name, m.dtype, (a.size,), _zeros(a.size, m.dtype) if m.before is None else of_value(m.before._realized()))
        walker = TritonInterpreter(self.source, language, grid, [], on_breakpoint)
        walker.output_of = _output
        walker.run_all({n: _placed(x, arguments) for n, x in names.items()})
        return {n: _ops.reshape(walker.outputs[n].value(), _shape_of(m)) for n, m in memories.items() if n in walker.outputs}


TritonWalker.jitted = JITFunction


def _number(f: JITFunction, m: Memory, name: str) -> int:
    n = m.size
    if not isinstance(n, int):
        raise ArgumentError(f"{f.source.name}: '{name}' has a size that is not known yet ({n}): kernels of Triton's are compiled for numbers")
    if n == 0:
        raise ArgumentError(f"{f.source.name}: '{name}' has no elements")
    return n


def _zeros(n: int, dtype: DType) -> Tensor:
    return _ops.broadcast_to(_ops.astype(_ops.literal(0, _ops.F32 if dtype.kind == "s" else _dtypes.DTYPES["int32"]), dtype), (n,))


def _shape_of(m: Memory) -> tuple[Any, ...]:
    return tuple(m.x.shape) if m.back is None and not isinstance(m.x, np.ndarray) else m.shape


def _placed(x: Any, arguments: dict[str, Argument]) -> Any:
    """A value of a launch; a pointer for each tensor."""
    if isinstance(x, Items):
        return Items(tuple(_placed(i, arguments) for i in x.items), 0)
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], Memory):
        return Pointer(arguments[x[0]], 0)
    if isinstance(x, tuple) and len(x) == 3 and isinstance(x[2], Memory):
        d, name, _ = x
        return BlockPointer(Descriptor(arguments[name], 0), tuple(d.shape), tuple(d.strides), (0,) * len(d.shape), tuple(d.block_shape))
    return x


def _output(a: Argument) -> Output:
    out = Output(View(a.name, a.dtype, (a.size,), None))
    if a.before is not None:
        out.bytes = np.frombuffer(of_value(a.before._realized()).tobytes(), np.uint8).reshape(out.bytes.shape).copy()
    return out


def _results(walker: TritonGraph) -> tuple[list[Tensor], Callable[[list[Tensor]], dict[str, Tensor]]]:
    """What the body gives; and a function of these results, as values of the node, that gives the arguments' new values."""
    results: list[Tensor] = []
    rows: list[tuple[Argument, Block | None, Store, int, int | None]] = []
    _check_reads(walker)
    for s in list(walker.stores):
        a, b = walker.meant[id(s.view)]
        walker.node, walker.source = s.node, s.source
        s = replace(s, tensor=walker.waiting(s.tensor))
        if not s.mode:
            walker.separate_stores([], s)
        results.append(walker.scattered(s) if s.mode else walker.block_of(s))
        place, mark = len(results) - 1, None
        if a.before is not None and s.mode in ("", "set") and not _covers(walker, s, b, a):
            ones = _ops.broadcast_to(_ops.literal(True, _dtypes.DTYPES["bool"]), s.tensor.shape)
            seen = Store(View(a.name, ones.dtype, s.view.shape, None), s.place, ones, s.extents, s.drop, s.node, s.source, s.mode)
            results.append(walker.scattered(seen) if s.mode else walker.block_of(seen))
            mark = len(results) - 1
        rows.append((a, b, s, place, mark))

    def finished(values: list[Tensor]) -> dict[str, Tensor]:
        out: dict[str, Tensor] = {}
        for a, b, s, place, mark in rows:
            x = _whole(values[place], b, a.size)
            if s.mode == "add" and a.before is not None:
                x = _ops.add(a.before, x)
            elif mark is not None:
                x = _ops.where(_whole(values[mark], b, a.size), x, a.before)
            out[a.name] = x
        return out

    return results, finished


def _whole(x: Tensor, b: Block | None, size: int) -> Tensor:
    """A result in the order of memory."""
    if b is not None:
        x = _ops.reshape(x, tuple(b.domain))
        for axis, (n, m) in enumerate(zip(b.domain, b.factors)):
            if n < m:
                rest = (*x.shape[:axis], m - n, *x.shape[axis + 1 :])
                x = _ops.concat([x, _ops.broadcast_to(_ops.astype(_ops.literal(False, _dtypes.DTYPES["bool"]), x.dtype), rest)], axis=axis)
    x = _ops.reshape(x, (-1,))
    return x[:size] if x.shape[0] > size else x


def _covers(walker: TritonGraph, s: Store, b: Block | None, a: Argument) -> bool:
    """Whether the blocks of all programs are all of the argument. No two of them meet."""
    if b is None or any(not isinstance(n, int) for n in s.extents):
        return False
    starts = [walker.form_of(p) for p in s.place]
    moving = {f"program{axis}" for axis in range(len(walker.grid))}
    columns = _races._columns(walker.space, walker.space.needed(list(starts), moving), False)
    if columns is None:
        return False
    count = np.ones(columns[""].shape, np.int64)
    for e, span, n in zip(starts, s.extents, b.domain):
        first = np.broadcast_to(_evaluated(e, columns), count.shape)
        count *= np.maximum(np.minimum(first + span, n) - np.maximum(first, 0), 0)
    return int(count.sum()) == a.size


def _evaluated(e: Any, columns: dict[str, Any]) -> Any:
    from ..._kernel import _forms

    return _forms.evaluate(e, columns)


def _check_reads(walker: TritonGraph) -> None:
    """Refuses loads that might see what the launch stores: a program reads what it alone writes, before it does."""
    for i, (a, stored, line, place, shape) in enumerate(walker.places):
        if stored or not a.stored:
            continue
        own = [k > i for k, (b, later, _, p, q) in enumerate(walker.places) if b is a and later and place is not None and place == p and shape == q]
        if not own or not all(own) or a.stored != "set":
            raise walker.error(f"'{a.name}' is loaded in line {line} and stored into, and it is not shown that a program loads only what it stores itself, afterwards: "
                               "other programs may come before or behind; give the kernel an argument more", _at(walker, line))  # fmt: skip


def _at(walker: TritonGraph, line: int) -> ast.AST:
    return next((n for n in ast.walk(walker.source.tree) if getattr(n, "lineno", 0) == line), walker.source.tree)


def interpret(kernel: Any, *args: Any, grid: Any, on_breakpoint: Any = None, **named: Any) -> Any:
    """Runs a kernel program by program, as `astra.kernel.interpret` does: interpret(add, x, y, out, n, grid=..., BLOCK=...)."""
    if not isinstance(kernel, JITFunction):
        raise ArgumentError("interpret takes a kernel, a function under @triton.jit, and what it is launched with")
    return kernel.run(grid, args, named, on_breakpoint, True)
