"""What went wrong, and where the time goes: find_nan, compare, profile.

Takes:    a function or a module, and arguments.
Gives:    the first value that is no number, with the line that made it; differences to a reference, layer by layer; the time of each kernel.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from . import _core, _evaluate, _tree
from ._errors import ArgumentError
from ._graph import tracing
from ._tensor import Tensor, asarray, of_node

# ---- values that are no numbers


@dataclass(frozen=True)
class Found:
    """A value that is not finite: `op` made it, at `lines` of the user's code, `where` is the index of its first such element, `inputs`
    describes what it was made of."""

    op: str
    lines: tuple[str, ...]
    kind: str  # "NaN" or "inf"
    where: tuple[int, ...]
    count: int
    shape: tuple[int, ...]
    inputs: tuple[str, ...]

    def __str__(self) -> str:
        at = f" at {list(self.where)}" if self.where else ""
        lines = "\n".join(f"  made at {line}" for line in self.lines)
        sources = "\n".join(f"  of {s}" for s in self.inputs)
        return f"{self.op} of shape {list(self.shape)} has {self.count} elements that are {self.kind}, the first{at}\n{lines}\n{sources}".rstrip()


def find_nan(f: Callable[..., Any], *args: Any, infinite: bool = True, **named: Any) -> Found | None:
    """The first value of f(*args), in the order in which values are computed, that has a NaN (or, where infinite, an infinite element)
    though what it is made of has none; None: there is none. f is evaluated by the reference evaluator: slowly. Bodies of loops are
    looked at as a whole."""
    leaves, structure = _tree.flatten((args, named))
    with tracing() as graph:
        inner = []
        for x in leaves:
            if isinstance(x, (Tensor, np.ndarray)):
                value = asarray(x)._realized()
                inner.append(of_node(graph, graph.leaf_of(value)))
            else:
                inner.append(x)
        given, more = _tree.unflatten(structure, inner)
        out = f(*given, **more)
        roots = [asarray(y)._in(graph) for y in _tree.leaves(out)]
        nodes = [n for n in _core.nodes_of(graph.core, roots) if n.dtype in ("f16", "bf16", "f32", "f64")]
        bad: set[Any] = set()
        for first in range(0, len(nodes), 64):
            some = nodes[first : first + 64]
            for node, value in zip(some, _evaluate.evaluate(graph, some, "evaluator")):
                array = value.numpy().astype(np.float64)
                wrong = np.isnan(array) if not infinite else ~np.isfinite(array)
                if not wrong.any():
                    continue
                if node.op in ("param", "const") or any(s in bad for s in node.sources):
                    bad.add(node)
                    if node.op != "param":
                        continue
                where = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape)) if wrong.ndim else ()
                nan = bool(np.isnan(array[where]))
                sources = tuple(f"{s.op} {s.type_text()}" for s in node.sources if s.dtype != "index")
                op = "an argument" if node.op == "param" else node.op
                return Found(op, tuple(graph.core.origins_of(node)), "NaN" if nan else "inf", where, int(wrong.sum()), array.shape, sources)
    return None


# ---- beside a reference


@dataclass(frozen=True)
class Difference:
    """The results of one layer: the greatest difference, and that relative to the greatest element of the reference."""

    name: str
    shape: tuple[int, ...]
    absolute: float
    relative: float


class Comparison(list):  # type: ignore[type-arg]
    """Differences layer by layer, in the order of the calls. `first(tolerance)` is the first layer that differs by more."""

    def first(self, tolerance: float = 1e-5) -> Difference | None:
        """The first layer whose relative difference is above the tolerance, or is no number."""
        return next((d for d in self if not d.relative <= tolerance), None)

    def __str__(self) -> str:
        width = max([len(d.name) for d in self] + [5])
        lines = [f"{'layer':{width}}  {'largest difference':>18}  {'relative':>10}  shape"]
        lines += [f"{d.name:{width}}  {d.absolute:18.3e}  {d.relative:10.2e}  {list(d.shape)}" for d in self]
        return "\n".join(lines)


def _results_of_torch(model: Any, args: Sequence[Any]) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {}

    def hook(name: str) -> Any:
        def see(_: Any, __: Any, out: Any) -> None:
            if isinstance(out, torch.Tensor) and name not in found:
                found[name] = out.detach().cpu().numpy()

        return see

    handles = [m.register_forward_hook(hook(name)) for name, m in model.named_modules()]
    try:
        with torch.no_grad():
            model(*(torch.from_numpy(np.array(a)) if isinstance(a, np.ndarray) else a for a in args))
    finally:
        for h in handles:
            h.remove()
    return found


def _results_of(model: Any, args: Sequence[Any]) -> dict[str, Any]:
    from . import nn

    names: dict[int, str] = {}
    for name, part in nn.modules_of(model):
        names.setdefault(id(part), name)
    found: dict[str, Any] = {}

    def see(part: Any, out: Any) -> None:
        name = names.get(id(part))
        if name is not None and isinstance(out, Tensor) and name not in found:
            found[name] = out

    with nn.watch(see):
        model(*args)
    return {k: v.numpy() for k, v in found.items()}


def compare(model: Any, reference: Any, *args: Any) -> Comparison:
    """What the layers of a module give beside those of a reference, which has layers of the same names: an `astra.nn` module or an
    nn.Module of PyTorch. args: arrays of one call. Layers that give one tensor each are compared; what only one has is left out."""
    from . import nn

    if not isinstance(model, nn.Module):
        raise ArgumentError(f"compare takes a module of astra.nn, not a {type(model).__name__}")
    mine = _results_of(model, args)
    theirs = _results_of(reference, args) if isinstance(reference, nn.Module) else _results_of_torch(reference, args)
    out = Comparison()
    for name, value in mine.items():
        if name not in theirs:
            continue
        other = theirs[name]
        if value.shape != other.shape:
            out.append(Difference(name or "(all)", value.shape, float("nan"), float("nan")))
            continue
        difference = float(np.max(np.abs(value.astype(np.float64) - other), initial=0))
        scale = float(np.max(np.abs(other), initial=0))
        out.append(Difference(name or "(all)", value.shape, difference, difference / scale if scale else difference))
    if not out:
        raise ArgumentError(f"no layer of the reference has a name of the module's: {', '.join(sorted(mine)[:5])} ...; there are "
                            f"{', '.join(sorted(theirs)[:5])} ...")  # fmt: skip
    return out


# ---- where the time goes


@dataclass(frozen=True)
class KernelTime:
    """A kernel: the median of the time that a call spends in it, launches of a call, operations and bytes of a call (-1: not known)."""

    name: str
    seconds: float
    launches: int
    operations: int
    bytes: int
    lines: tuple[str, ...]


class Profile:
    """What a call spends its time on: `kernels`, the slowest first; `str(profile)` is a table, `roofline(path)` a picture, `save(path)` a
    trace for Perfetto."""

    def __init__(self, kernels: list[KernelTime], seconds: float, events: Sequence[Any], limits: tuple[float, float]) -> None:
        self.kernels, self.seconds, self._events = kernels, seconds, events
        self.operations_per_second, self.bytes_per_second = limits

    def share(self, k: KernelTime) -> float:
        """The part of the machine's limit that a kernel reaches: the time that its operations or bytes take at least, over its time."""
        if k.operations < 0 or k.bytes < 0 or not k.seconds:
            return float("nan")
        return max(k.operations / self.operations_per_second, k.bytes / self.bytes_per_second) / k.seconds

    def __str__(self) -> str:
        inside = sum(k.seconds for k in self.kernels)
        lines = [f"a call takes {self.seconds * 1e6:.1f} us, {inside * 1e6:.1f} us of it in {sum(k.launches for k in self.kernels)} launches; "
                 f"one thread of this machine does {self.operations_per_second / 1e9:.0f} G operations and moves {self.bytes_per_second / 1e9:.0f} GB a second",
                 f"{'us':>10} {'%':>5} {'launches':>8} {'M operations':>13} {'MB':>9} {'of limit':>8}  kernel"]  # fmt: skip
        for k in self.kernels:
            share = self.share(k)
            lines.append(f"{k.seconds * 1e6:10.1f} {100 * k.seconds / inside if inside else 0:5.1f} {k.launches:8} {k.operations / 1e6:13.3f} "
                         f"{k.bytes / 1e6:9.3f} {'' if share != share else f'{100 * share:.0f} %':>8}  {k.name}: {', '.join(k.lines[:3])}")  # fmt: skip
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the events of the last call for Perfetto (Chrome's JSON)."""
        rows = [{"name": e.name, "ph": "X", "pid": 0, "tid": 0, "ts": e.begin_ns / 1000, "dur": (e.end_ns - e.begin_ns) / 1000,
                 "args": {"bytes": e.bytes, "flops": e.flops, "origins": list(e.origins)}} for e in self._events]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": rows}, file)

    def roofline(self, path: str | os.PathLike[str]) -> None:
        """A picture: operations a second of each kernel over its operations for each byte, below the machine's limits."""
        try:
            import matplotlib

            matplotlib.use("Agg")
            from matplotlib import pyplot
        except ImportError:
            raise ArgumentError("a picture is drawn by matplotlib: pip install matplotlib") from None
        figure, axes = pyplot.subplots(figsize=(7, 4.5))
        points = [(k.operations / k.bytes, k.operations / k.seconds, k.name) for k in self.kernels if k.operations > 0 and k.bytes > 0 and k.seconds]
        x = np.geomspace(min([p[0] for p in points] + [0.1]) / 2, max([p[0] for p in points] + [100]) * 2, 100)
        axes.loglog(x, np.minimum(self.operations_per_second, x * self.bytes_per_second), color="gray", label="limit of one thread")
        for intensity, speed, name in points:
            axes.plot(intensity, speed, "o", markersize=5)
            axes.annotate(name, (intensity, speed), fontsize=7, xytext=(4, 3), textcoords="offset points")
        axes.set_xlabel("operations for each byte")
        axes.set_ylabel("operations a second")
        axes.legend()
        axes.grid(alpha=0.3, which="both")
        figure.tight_layout()
        figure.savefig(path)
        pyplot.close(figure)


_limits: list[tuple[float, float]] = []


def machine_limits() -> tuple[float, float]:
    """Operations and bytes a second of one thread: of a product of matrices in the caches, and of a sum over 64 MB. Measured once a process."""
    if not _limits:
        from ._jit import jit

        a = np.ones((384, 384), np.float32)
        x = np.ones(1 << 24, np.float32)
        product, total = jit(lambda a: a @ a), jit(lambda x: x.sum())
        _limits.append((2 * 384**3 / _least(lambda: product(a)), x.nbytes / _least(lambda: total(x))))
    return _limits[0]


def _least(run: Callable[[], Any], times: int = 10) -> float:
    run()
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def profile(f: Callable[..., Any], *args: Any, repeat: int = 10, **named: Any) -> Profile:
    """Where a call of a function spends its time, kernel by kernel: f is compiled for this machine, called `repeat` times after a first
    call, and medians are taken. f may be a function of tensors, an `astra.nn` module, or what `compile()` gives."""
    from ._stages import Compiled
    from ._trace import trace

    program = f if isinstance(f, Compiled) else trace(f, *args, **named).lower().compile("native")
    session = program.module
    program(*args, **named)
    times: dict[str, list[float]] = {}
    calls: list[float] = []
    about: dict[str, tuple[Any, ...]] = {}
    events: Any = []
    for _ in range(max(1, repeat)):
        with session.trace() as events:
            begin = time.perf_counter()
            program(*args, **named)
            calls.append(time.perf_counter() - begin)
        sums: dict[str, float] = {}
        about = {}
        for e in events:
            sums[e.name] = sums.get(e.name, 0.0) + (e.end_ns - e.begin_ns) / 1e9
            launches, operations, size, lines = about.get(e.name, (0, 0, 0, ()))
            about[e.name] = (launches + 1, operations + e.flops, size + e.bytes, lines or e.origins)
        for name, seconds in sums.items():
            times.setdefault(name, []).append(seconds)
    kernels = [KernelTime(name, float(np.median(times[name])), *about[name]) for name in about]
    kernels.sort(key=lambda k: (-k.seconds, k.name))
    return Profile(kernels, float(np.median(calls)), list(events), machine_limits())


__all__ = ["compare", "find_nan", "profile"]
