"""How long kernels take to compile for GPUs.

Takes:    a model that astra-compile takes, further options of it (--dim=...) behind.
Gives:    a table, a row for each GPU: the time of all kernels in one module, as a bundle has them; of kernels compiled alone, those with products and the others:
          the mean and the longest, of which LLVM and ptxas or ld.lld.
Keeps:    no file.

    build/venv/bin/python bench/gpu_compile.py build/models/resnet50.onnx --dim=batch=1..8
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TARGETS = ("cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "hip:gfx90a", "hip:gfx942", "hip:gfx1100")
ALONE = re.compile(r"^code (\S+) (\S+): plan ([\d.]+) ms, MLIR ([\d.]+) ms, LLVM ([\d.]+) ms, \S+ ([\d.]+) ms$", re.M)
TOGETHER = re.compile(r"^code (\S+) +([\d.]+) ms$", re.M)


def times(model, options, target, folder):
    done = subprocess.run(["build/bin/astra-compile", model, *options, f"--target={target}", "--time-kernels", "--time-passes", "-o", f"{folder}/x.astra"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    alone = [(name, sum(map(float, parts)), float(parts[2]), float(parts[3])) for _, name, *parts in ALONE.findall(done.stderr)]
    return float(TOGETHER.search(done.stderr).group(2)), alone


def cell(kernels):
    if not kernels:
        return "-"
    longest = max(kernels, key=lambda k: k[1])
    return f"{len(kernels)}: {sum(k[1] for k in kernels) / len(kernels):.0f}, {longest[1]:.0f} ms ({longest[2]:.0f} + {longest[3]:.0f})"


def main():
    model, options = sys.argv[1], sys.argv[2:]
    print("| target | kernels | together | with products: mean, longest (LLVM + assembler) | others |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for target in TARGETS:
            together, alone = times(Path(model), options, target, folder)
            products = [k for k in alone if "contract" in k[0]]
            print(f"| {target} | {len(alone)} | {together / 1000:.1f} s | {cell(products)} | {cell([k for k in alone if k not in products])} |", flush=True)


if __name__ == "__main__":
    main()
