"""What a bundle costs, kernel by kernel, and which kernel a value comes from.

Takes:    bundles; values of dims (upper bounds where they are not given).
Gives:    Cost, Memory, listings; `explain` of a tensor.
Keeps:    what the compiler wrote into the bundle: operations and bytes of each kernel as formulas of the dims. A loop counts as often
          as it runs, a `while` once, of `cond` both branches count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

from . import _core
from ._errors import ArgumentError
from ._tensor import Tensor, call

_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b, "min": min, "max": max, "lt": lambda a, b: int(a < b), "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b), "and": lambda a, b: int(bool(a and b)), "or": lambda a, b: int(bool(a or b)),
}  # fmt: skip


@dataclass(frozen=True)
class KernelCost:
    """One kernel of an entry: how often it is launched in a call, and what all of these launches take."""

    name: str
    launches: int
    operations: int
    bytes: int
    lines: tuple[str, ...]  # of the user's code that it computes
    plan: str


@dataclass(frozen=True)
class Cost:
    """Operations of a call, bytes that its kernels read and write, and the kernels one by one. An operation on an element counts one, a
    multiplication with its addition in a product two, a division or root four, one of integers 64."""

    operations: int
    bytes: int
    kernels: tuple[KernelCost, ...] = field(repr=False)

    def __str__(self) -> str:
        rows = [f"{self.operations:,} operations, {self.bytes:,} bytes, {len(self.kernels)} kernels"]
        for k in self.kernels:
            times = f" x {k.launches}" if k.launches != 1 else ""
            rows.append(f"  {k.name}{times}: {k.operations:,} operations, {k.bytes:,} bytes; {', '.join(k.lines)}")
        return "\n".join(rows)


@dataclass(frozen=True)
class Memory:
    """Bytes that a call takes. peak: all of them together."""

    arena: int
    states: int
    params: int
    inputs: int
    outputs: int

    @property
    def peak(self) -> int:
        """All of them together."""
        return self.arena + self.states + self.params + self.inputs + self.outputs


class _Bundle:
    def __init__(self, bundle: bytes, dims: Mapping[str, int]) -> None:
        self.about = call(_core.describe_bundle, bundle)
        self.dims = [hi for _, _, hi in self.about["dims"]]
        known = {name: i for i, (name, _, _) in enumerate(self.about["dims"])}
        for name, value in dims.items():
            if name not in known:
                raise ArgumentError(f"there is no dim '{name}'; the dims are {', '.join(known) or 'none'}")
            lo, hi = self.about["dims"][known[name]][1:]
            if not lo <= value <= hi:
                raise ArgumentError(f"dim '{name}' is within {lo}..{hi}, not {value}")
            self.dims[known[name]] = value

    def value(self, code: Any) -> int:
        """The number that an expression is."""
        if code is None:
            return 0
        stack: list[int] = []
        for op, number in code:
            if op == "const":
                stack.append(number)
            elif op == "dim":
                stack.append(self.dims[number])
            elif op == "not":
                stack.append(int(not stack.pop()))
            else:
                b, a = stack.pop(), stack.pop()
                stack.append(_BINARY[op](a, b) if op not in ("floordiv", "mod") or b > 0 else 0)
        return stack[-1]

    def entry(self, name: str) -> Any:
        for e in self.about["entries"]:
            if e["name"] == name:
                return e
        raise ArgumentError(f"there is no entry '{name}'; the entries are {', '.join(e['name'] for e in self.about['entries'])}")

    def launches(self, entry: Any) -> list[tuple[int, int, Any]]:
        """(kernel, how often, instruction), in order."""
        out: list[tuple[int, int, Any]] = []
        work: list[tuple[int, int, int]] = [(0, 0, 1)]  # program, instruction, times
        programs = entry["programs"]
        while work:
            program, at, times = work.pop()
            if at == len(programs[program]):
                continue
            work.append((program, at + 1, times))
            i = programs[program][at]
            if i["op"] == "launch":
                taken = next(k for k, guard in zip(i["kernels"], i["guards"]) if guard is None or self.value(guard))
                out.append((taken, times, i))
            elif i["op"] == "loop":
                work.append((i["body"], 0, times * self.value(i["count"])))
            elif i["op"] == "while":
                work.append((i["body"], 0, times))
                work.append((i["condition"], 0, times))
            elif i["op"] == "cond":
                if i["otherwise"] is not None:
                    work.append((i["otherwise"], 0, times))
                work.append((i["then"], 0, times))
        return out

    def kernel(self, number: int, times: int, lines: Sequence[str]) -> KernelCost:
        k = self.about["kernels"][number]
        plan = k["code"][0][0] if k["code"] else ""
        return KernelCost(k["name"], times, times * self.value(k["steps"]), times * self.value(k["bytes"]), tuple(lines), plan)


def cost(bundle: bytes, entry: str, dims: Mapping[str, int]) -> Cost:
    """What a call of an entry costs."""
    b = _Bundle(bundle, dims)
    counts: dict[int, int] = {}
    lines: dict[int, dict[str, None]] = {}
    for kernel, times, instruction in b.launches(b.entry(entry)):
        counts[kernel] = counts.get(kernel, 0) + times
        lines.setdefault(kernel, {}).update(dict.fromkeys(instruction["origins"]))
    kernels = tuple(b.kernel(k, times, list(lines[k])) for k, times in counts.items())
    return Cost(sum(k.operations for k in kernels), sum(k.bytes for k in kernels), kernels)


def memory(bundle: bytes, entry: str, dims: Mapping[str, int]) -> Memory:
    """What a call of an entry holds."""
    b = _Bundle(bundle, dims)
    e = b.entry(entry)
    arena = sum((b.value(s) + 63) // 64 * 64 for s in e["slots"])
    sizes = {"input": 0, "output": 0, "state": 0}
    seen = set()
    for kind, index, code in e["buffers"]:
        if kind in sizes and (kind, index) not in seen:
            seen.add((kind, index))
            sizes[kind] += b.value(code)
    params = sum(stored for _, stored, _ in b.about["params"])
    return Memory(arena, sizes["state"], params, sizes["input"], sizes["output"])


def listing(bundle: bytes) -> str:
    """The kernels of every entry, with their costs at the upper bounds of the dims."""
    b = _Bundle(bundle, {})
    return "\n".join(f"{e['name']}: {cost(bundle, e['name'], {})}" for e in b.about["entries"])


@dataclass(frozen=True)
class Explanation:
    """How a value is computed: the lines of the user's code, the kernel that writes it, its C, its cost, and the graph."""

    lines: tuple[str, ...]
    kernel: KernelCost | None
    c: str
    cost: Cost
    graph: str

    def __str__(self) -> str:
        k = self.kernel
        head = f"made at {', '.join(self.lines)}\n" if self.lines else ""
        if k is None:
            return head + "no kernel computes it: it is an input, a constant, or a view of one\n" + self.graph
        return (f"{head}kernel {k.name}, which computes {', '.join(k.lines)}: {k.operations:,} operations, {k.bytes:,} bytes; {k.plan}\n"
                f"all kernels: {self.cost}\n\n{self.c}")  # fmt: skip


def explain(y: Tensor, target: str | None = None) -> Explanation:
    """How a tensor that was not looked at yet is computed when it is compiled, for a CPU target (None: this machine's best). Inside of a
    traced function: how it is computed there."""
    from . import _cache

    if y._value is not None:
        raise ArgumentError("the tensor has a value already: explain one before it is looked at, or the Compiled by as_text() and cost_analysis()")
    graph, node = y._graph, y._node
    core = graph.core
    name = _cache.native() if target in (None, "native") else target
    making = _core.Making(core, "explained")
    leaves = [leaf for leaf in core.leaves_of([node]) if leaf in graph.values or leaf.name.startswith("%")]
    call(making.entry, "main", [(f"x{i}", leaf) for i, leaf in enumerate(leaves)], [("y", node)])
    module = making.finish()
    bundle = _cache.compile(module, [name], "a value that is explained")
    source = str(call(module.compile, [name], "c", "", 1).text)
    b = _Bundle(bundle, {})
    e = b.entry("main")
    outputs = {i for i, (kind, _, _) in enumerate(e["buffers"]) if kind == "output"}
    writers = [(k, times, i) for k, times, i in b.launches(e) if outputs & set(i["buffers"])]
    kernel, c = None, ""
    if writers:
        number, times, instruction = writers[-1]
        kernel = b.kernel(number, times, instruction["origins"])
        c = _function(source, kernel.name)
    return Explanation(tuple(core.origins_of(node)), kernel, c, cost(bundle, "main", {}), str(core.text([node])))


def _function(source: str, kernel: str) -> str:
    """The function of a kernel in emitted C."""
    found = re.search(rf"^[^\n;{{}}]*\b\w*{re.escape(kernel)}\w*\([^;{{]*\)\s*{{.*?^}}", source, re.M | re.S)
    return found.group(0) if found else ""


__all__ = ["explain"]
