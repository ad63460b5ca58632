"""What a row of the compiler's table of kernels is made of.

Takes:    a kernel in the kernel language, the ops that it stands for.
Gives:    the text of both, over the same inputs and dims.
Keeps:    a kernel is traced once for all ranks: sizes that are products of axes are dims of their own there ("flat"), and products in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable

import astra

LONG = {"f32": "float32", "f16": "float16", "i8": "int8", "u4": "uint4", "bool": "bool"}
MOST_FLAT = 1 << 16  # while a kernel is traced


def typed(dtype: str, extents: tuple[Any, ...]) -> str:
    return f"{dtype}[{', '.join(map(str, extents))}]" if extents else dtype


@dataclass
class Form:
    """One way in which graphs have what a kernel computes. Inputs of the ops are whatever the graph has there."""

    name: str
    dims: dict[str, tuple[int, int]]  # bounds that sizes of the graph stay within
    inputs: dict[str, tuple[str, tuple[Any, ...]]]  # dtype, extents: names of dims, products of them, numbers
    ops: str  # statements of the text form, the last of which gives %y
    result: tuple[Any, ...]  # extents of %y
    kernel: Callable[..., Any]  # of tensors of these inputs in flat extents, and the sizes by name
    flat: dict[str, str] = field(default_factory=dict)  # sizes of the kernel that are products
    shapes: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # of inputs, and of y, for the kernel, where they are others

    def text(self) -> tuple[list[str], list[str], str]:
        """The functions of the kernel, and both entries."""
        sizes = {n: astra.dim(n, *bounds) for n, bounds in self.dims.items()} | {n: astra.dim(n, 1, MOST_FLAT) for n in self.flat}
        shapes = {n: self.shapes.get(n, extents) for n, (_, extents) in self.inputs.items()}
        specs = [astra.spec(tuple(self.size(e, sizes) for e in shapes[n]), LONG[t]) for n, (t, _) in self.inputs.items()]
        traced = astra.trace(lambda *x: self.kernel(*x, **sizes), *specs).lower().as_text()
        inferred = r"^( +%\w+ = (?!const|cast|from_index|bitcast|iota|proj)\w+ .*) : [a-z0-9]+(?:\[.*\])?$"
        traced = re.sub(inferred, r"\1", traced, flags=re.M)
        for n, product in self.flat.items():
            traced = re.sub(rf"\b{n}\b", product, traced)
        traced = self.with_programs(traced)
        functions = [f.replace("func @", f"func @{self.name}_", 1) for f in re.findall(r"^  func .*?^  }$", traced, re.M | re.S)]
        entry = re.search(r"^  entry @main\((.*?)\) -> .*?\{\n(.*?)^  }$", traced, re.M | re.S)
        assert entry, traced
        body = entry[2].replace("(@", f"(@{self.name}_").replace("%result", "%flat")
        before = []
        for old, n in zip(re.findall(r"%(\w+) : ", entry[1]), self.inputs):
            now = n
            if n in self.shapes:
                now = f"{n}_flat"
                before.append(f"%{now} = reshape %{n} [{self.extents(shapes[n])}]")
            body = re.sub(rf"%{old}\b", f"%={now}", body)
        body = "".join(f"    {line}\n" for line in before) + body.replace("%=", "%") + f"    %y = reshape %flat [{self.extents(self.result)}]\n"
        given = ", ".join(f"%{n} : {typed(t, e)}" for n, (t, e) in self.inputs.items())
        head = f"({given}) -> (%y : {typed('f32', self.result)}) {{\n"
        ops = "".join(f"    {line.strip()}\n" for line in self.ops.strip().splitlines() if line.strip())
        return [f"  dim {n} in {low}..{high}" for n, (low, high) in self.dims.items()], functions, f"  entry @{self.name}{head}{ops}  }}\n  entry @{self.name}.kernel{head}{body}  }}"

    def extents(self, extents: tuple[Any, ...]) -> str:
        return ", ".join(self.flat.get(str(e), str(e)) for e in extents)

    def size(self, extent: Any, sizes: dict[str, Any]) -> Any:
        """An extent as a size: a number, the name of a dim, or a product "k*32"."""
        out: Any = 1
        for part in str(extent).split("*"):
            out = out * (int(part) if part.isdigit() else sizes[part])
        return out

    def with_programs(self, traced: str) -> str:
        """Program ids count as far as the bounds of the grid go, which are those of the products."""
        highest = {n: high for n, (_, high) in self.dims.items()} | {"floordiv": lambda x, y: x // y}
        custom = re.search(r"custom\(@\w+\).* \[(.*)\] names=\"?([\w,]+)", traced)
        assert custom, traced
        extents = re.split(r", (?![^(]*\))", custom[1])
        for name, extent in zip(custom[2].split(","), extents):
            most = min(eval(extent, dict(highest)), 2**31 - 1)
            traced = re.sub(rf"\b{name} in 0\.\.\d+", f"{name} in 0..{most - 1}", traced)
            traced = re.sub(rf"\b{name}\b", f"{name.split('_')[0]}_{most}", traced)
        return traced


@dataclass
class Row:
    """A kernel of the table: what --kernels calls it."""

    name: str
    meaning: str
    forms: list[Form]

    def text(self) -> str:
        dims: dict[str, None] = {}
        functions: list[str] = []
        entries: list[str] = []
        for form in self.forms:
            d, f, e = form.text()
            dims |= dict.fromkeys(d)
            functions += f
            entries.append(e)
        names = [line.split()[1] for line in dims]
        assert len(names) == len(set(names)), f"{self.name}: dims of one name have other bounds: {list(dims)}"
        return "\n".join([f"module @{self.name.replace('-', '_')} {{", *dims, *functions, *entries, "}"])
