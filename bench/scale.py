"""How time and memory grow: with the nodes of a graph through every stage of the compiler, with launches, with batch,
length and threads of a call; what the six networks of the bench take to compile.

Takes:    --build (build), --most (the largest graph, 1000000 nodes), --no-networks, --docs (writes docs/scale.md).
Gives:    tables in Markdown.
Keeps:    stages as `astra-compile --time-passes` says them, the fastest of --rounds; calls as bench/ours.c times them, those of a
          table's line, or of a whole table, in turns.
Does not: compare with anybody (run.py).

    build/bench/venv/bin/python bench/scale.py --docs
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

import numpy as np
from machine import fingerprint, level
from process import OursProcess
from run import count, programs

ROOT = Path(__file__).resolve().parent.parent
LIMITS = """\
## Limits

What a small file may ask for is bounded; each bound has a sentence.

- Functions, loops and branches of an ONNX model expand to at most 100,000 nodes more than its graph has.
- A constant of a text has at most 1 GiB (larger ones: `file(...)`), a sparse tensor of ONNX at most 256 MiB once it is dense; an ONNX file at most 2 GiB, weights beside it apart.
- A tensor has at most 2^48 elements and 16 axes; a symbolic integer 62 bits and 2^14 terms.
- Graphs of a model nest at most 32 deep, control ops at most 16.

No stage is more than linear in nodes, launches or the lengths of names. What has no bound is time: a function as `sin` is some 25 nodes, so
that 100,000 of them in a chain take as long as 2,500,000 additions; and kernels that differ are clang's time, one after another, for each CPU level: a
reflecting pad is three kernels of 20 to 60 ms each, so 30 of them in a row, each of another extent, take 1 to 5 s a level, and as many
concatenations of a value with itself about 1 s. `-j` and `--target` divide it.
"""
STAGES = ["load", "numerics", "rewrite", "bytes", "schedule", "code", "write"]


def layers(nodes, extents, rows=8, width=8):
    """A residual network in text: eight nodes a layer, f32[rows, width] between them. Layers of one extent share their kernels."""
    count, extent = nodes // 8, lambda i: extents[i % len(extents)]
    lines = ["module @m {"]
    for i in range(count):
        n = extent(i)
        lines.append(f"  param @w{i} : f32[{n}, {width}] = splat 0.125\n  param @b{i} : f32[{n}] = splat 0.5\n  param @v{i} : f32[{width}, {n}] = splat 0.125")
    lines.append(f"  entry @main(%x : f32[{rows}, {width}]) -> (%y : f32[{rows}, {width}]) {{\n    %x0 = neg %x")
    for i in range(count):
        n = extent(i)
        lines.append(f"    %p{i} = contract %x{i}[i, k], @v{i}[k, j] -> [i, j] sum [k]\n    %r{i} = reshape @b{i} [1, {n}]\n    %e{i} = expand %r{i} [{rows}, {n}]")
        lines.append(f"    %a{i} = add %p{i}, %e{i}\n    %t{i} = tanh %a{i}\n    %q{i} = contract %t{i}[i, k], @w{i}[k, j] -> [i, j] sum [k]\n    %x{i + 1} = add %q{i}, %x{i}")
    return "\n".join([*lines, f"    %y = neg %x{count}\n  }}\n}}\n"])


def encoder():
    """One layer of a transformer, 4 heads of 64, batch and length dynamic."""
    split = lambda name, w: f"    %{name} = contract %x[b, t, k], @{w}[k, h, d] -> [b, h, t, d] sum [k]"
    return "\n".join([
        "module @m {", "  dim batch in 1..64", "  dim length in 1..1024",
        *(f"  param @{w} : f32[256, 4, 64] = splat 0.01" for w in ("wq", "wk", "wv")),
        "  param @wo : f32[4, 64, 256] = splat 0.01", "  param @up : f32[256, 1024] = splat 0.01", "  param @down : f32[1024, 256] = splat 0.01",
        "  entry @main(%x : f32[batch, length, 256]) -> (%y : f32[batch, length, 256]) {",
        split("q", "wq"), split("k", "wk"), split("v", "wv"),
        "    %s = contract %q[b, h, t, d], %k[b, h, u, d] -> [b, h, t, u] sum [d]",
        "    %m = reduce %s kind=max order=exact axes=[3]", "    %mr = reshape %m [batch, 4, length, 1]", "    %me = expand %mr [batch, 4, length, length]",
        "    %c = sub %s, %me", "    %e = exp %c",
        "    %z = reduce %e kind=sum order=lane64 axes=[3]", "    %zr = reshape %z [batch, 4, length, 1]", "    %ze = expand %zr [batch, 4, length, length]",
        "    %p = div %e, %ze",
        "    %o = contract %p[b, h, t, u], %v[b, h, u, d] -> [b, t, h, d] sum [u]",
        "    %w = contract %o[b, t, h, d], @wo[h, d, n] -> [b, t, n] sum [h, d]", "    %r = add %w, %x",
        "    %f = contract %r[b, t, k], @up[k, n] -> [b, t, n] sum [k]", "    %g = tanh %f",
        "    %l = contract %g[b, t, k], @down[k, n] -> [b, t, n] sum [k]", "    %y = add %l, %r", "  }", "}", "",
    ])  # fmt: skip


class Scale:
    def __init__(self, wanted, scratch, log):
        self.build, self.rounds, self.scratch, self.log = wanted.build, wanted.rounds, scratch, log
        _, self.program = programs(wanted.build, wanted.build / "bench")

    def compile(self, text, rounds):
        """As compiled(), of a module in text; and its bundle."""
        model, bundle = self.scratch / "m.uop", self.scratch / "m.astra"
        model.write_text(text)
        return *self.compiled(model, bundle, rounds), bundle

    def compiled(self, model, bundle, rounds, *options):
        """Milliseconds of each stage, the least of some rounds; the compiler's greatest memory in MB."""
        words = [self.build / "bin/astra-compile", model, "-o", bundle, f"--target=cpu:{level()}", "-j", str(len(os.sched_getaffinity(0))), "--time-passes", *options]
        times, memory = {}, 0
        for _ in range(rounds):
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
                told = child.stderr.read()
                _, code, used = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(code)
            if child.returncode:
                raise SystemExit(told)
            memory = max(memory, used.ru_maxrss / 1024)
            for stage, time in re.findall(r"^(\w+).*?([\d.]+) ms$", told, re.M):
                times.setdefault(stage, []).append(float(time))
        return {stage: min(found) for stage, found in times.items()}, memory

    def calls(self, *jobs):
        """Of each (bundle, threads, x), all in turns: seconds of opening with the first call, and of a later one, the least
        of some rounds; the process's greatest memory in MB."""
        everyone = []
        try:
            for bundle, threads, x in jobs:
                everyone.append(OursProcess(self.program, bundle, "main", threads, {"x": x}, self.scratch, self.log))
            first = [ours.open() for ours in everyone]
            times = [max(1, int(0.1 / ours.seconds(1))) for ours in everyone]
            rounds = [[ours.seconds(n) for ours, n in zip(everyone, times)] for _ in range(self.rounds)]
            return [(opened, min(later), ours.process.resident("VmHWM") / 2**20) for opened, later, ours in zip(first, zip(*rounds), everyone)]
        finally:
            for ours in everyone:
                ours.close()


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def show(seconds):
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


HEAD = ["nodes", *(f"{s}, ms" for s in STAGES), "all, s", "us a node", "memory, MB"]


def compiled(scale, text, nodes):
    """A row of the table HEAD, and the bundle."""
    times, memory, bundle = scale.compile(text, 1 if nodes > 100_000 else scale.rounds)
    total = sum(times.values())
    stages = [f"{times[s]:.0f} ({100 * times[s] / total:.0f} %)" for s in STAGES]
    return [f"{nodes:,}", *stages, f"{total / 1e3:.2f}", f"{total / nodes * 1e3:.1f}", f"{memory:.0f}"], bundle


def report(scale, most):
    yield from ["# How time and memory grow", "", "Written by `bench/scale.py --docs`. Nothing here is compared with anybody; `docs/benchmarks.md` does that.", ""]
    sizes = [n for n in (80, 1_000, 10_000, 100_000, 1_000_000) if n <= most]
    yield from ["## Nodes", "", "A residual network of layers of eight nodes; all layers share their kernels, so each kernel is compiled once.", ""]
    rows, launches, x = [], [], np.ones((8, 8), np.float32)
    for nodes in sizes:
        row, bundle = compiled(scale, layers(nodes, [8]), nodes)
        count, (one, two) = nodes // 8 * 2, scale.calls((bundle, 1, x), (bundle, 2, x))
        rows.append(row)
        launches.append([f"{count:,}", f"{bundle.stat().st_size / 1e6:.1f}", show(one[0]), show(one[1]), show(one[1] / count), show(two[1] / count), f"{one[2]:.0f}"])
    yield from table(HEAD, rows)
    yield from ["The same networks, run: a launch is a product of 8 x 8 x 8 with what is fused to it.", ""]
    yield from table(["launches", "bundle, MB", "open to first result", "a call", "a launch", "a launch, 2 threads", "memory, MB"], launches)
    yield from ["## Launches for two threads", "", "Products of 64 x 64 x n, the result of each read by the next, so two threads wait for each other once a launch; beside half of one thread's time.", ""]
    rows, x = [], np.full((64, 64), 0.01, np.float32)
    for n in (32, 64, 128, 256, 512):
        _, _, bundle = scale.compile(layers(400, [n], 64, 64), 1)
        one, two = (found[1] / 100 for found in scale.calls((bundle, 1, x), (bundle, 2, x)))
        rows.append([str(n), show(one), show(two), show(two - one / 2)])
    yield from table(["n", "a launch", "a launch, 2 threads", "beyond the half"], rows)
    yield from ["## Kernels", "", "The same, where each layer has an extent of its own between 8 and 207, so that each kernel is one of its own: then it is clang's time.", ""]
    yield from table(HEAD, [compiled(scale, layers(n, [8 + 1_600 * i // n for i in range(n // 8)]), n)[0] for n in (80, 400, 1_600) if n <= most])
    yield from ["## Batch, length, threads", "", "One layer of a transformer (width 256, 4 heads, 1024 inside) with dynamic batch and length, one bundle. All calls of a table in turns, the least of some rounds.", ""]
    _, _, bundle = scale.compile(encoder(), 1)
    for what, shapes in (("batch, at length 128", [(b, 128) for b in (1, 2, 4, 8, 16, 32, 64)]), ("length, at batch 1", [(1, t) for t in (16, 32, 64, 128, 256, 512, 1024)])):
        rows = []
        inputs = [np.random.default_rng(0).standard_normal((b, t, 256), np.float32) for b, t in shapes]
        measured = iter(scale.calls(*((bundle, threads, x) for x in inputs for threads in (1, 2))))
        for (b, t), *found in zip(shapes, measured, measured):
            flops = b * t * (2 * 256 * (4 * 256 + 2 * 1024) + 4 * 256 * t)
            rows.append([str(b if "batch," in what else t), *(show(f[1]) for f in found), f"{found[0][1] / found[1][1]:.2f}", show(found[0][1] / (b * t)), f"{flops / found[0][1] / 1e9:.0f}", f"{found[0][2]:.0f}"])
        yield from table([what, "1 thread", "2 threads", "ratio", "a token", "GFLOP/s, 1 thread", "memory, MB"], rows)


def networks(scale):
    """What the networks of the bench take: compiled for one level, then again with the kernels of the first time kept."""
    from rows import networks as zoo

    rows = []
    for name, title in zip(zoo.SIZES, zoo.NAMES):
        with tempfile.TemporaryDirectory() as folder:
            model, bundle = Path(folder) / f"{name}.onnx", Path(folder) / "n.astra"
            zoo.fixed(name, model)
            found = [scale.compiled(model, bundle, 1, f"--cache={folder}/kept") for _ in range(2)]
            times, again = (sum(times.values()) / 1e3 for times, _ in found)
            rows.append([title, f"{times:.2f}", f"{again:.2f}", f"{max(memory for _, memory in found):.0f}", f"{bundle.stat().st_size / 1e6:.0f}"])
    yield from ["## Networks", "", "The networks of `docs/benchmarks.md`, compiled for one level by as many processes as there are cores; then again with `--cache`.", ""]
    yield from table(["network", "s", "again, s", "memory, MB", "bundle, MB"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--most", type=count, default=1_000_000, metavar="NODES", help="the largest graph")
    parser.add_argument("--rounds", type=count, default=3, metavar="N")
    parser.add_argument("--no-networks", action="store_true", help="without the networks, which PyTorch exports")
    parser.add_argument("--docs", action="store_true", help="writes docs/scale.md")
    wanted = parser.parse_args()
    with open(wanted.build / "scale.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        scale = Scale(wanted, Path(scratch), log)
        lines = []
        for line in chain(report(scale, wanted.most), [] if wanted.no_networks else networks(scale)):
            print(line, flush=True)
            lines.append(line)
    machine = fingerprint(ROOT, wanted.build, {})
    lines += [LIMITS]
    lines += ["Machine: " + ", ".join(f"{key} {value}" for key, value in machine.items() if isinstance(value, (str, int, float))) + ".", ""]
    if wanted.docs:
        (ROOT / "docs/scale.md").write_text("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
