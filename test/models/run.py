"""Compile real networks, run them on every CPU level at hand, and compare with ONNX Runtime.

Takes:    a folder of models (make.py and export.py write such), the folder of the programs, names of models (those that are in the folder by default).
Gives:    one line for each model and size: the largest difference from ONNX Runtime over the largest magnitude of the output, and how much of the output
          follows the input; the time of import and compilation, the size of the bundle; and a table. Exit code 4 where a difference exceeds 1e-4 (integers
          and bools: 0), where an output does not depend on the input, or where levels or numbers of threads give other bytes.
          Kernels of the levels that this machine has run between guard pages too (test/guard), where no GPU is emulated; with
          ASTRA_NIGHTLY also under bounds of the dims beside the sizes of tiles.
Keeps:    the bundles, beside the models: one for all sizes.
Does not: make the models; import PyTorch.

    build/venv/bin/python test/models/run.py build/models build/bin [resnet50] [bert] ...
    --json=FILE         the figures, for programs
    --targets=LIST      levels, with commas between them, instead of those that this machine has
    --keep-bundles      uses bundles that are there; their times are not measured
    --cached            takes kernels that tests have compiled before: the times are not those of a compiler
    --aarch64=PROGRAM   an astra-run for aarch64, run under qemu-aarch64 at the first size of each model: its bytes must be the same
    --emulate=GPUS      GPU targets with commas between them: the host builds of their kernels are run at the first size of each model
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from cases import MODELS, inputs, label

sys.path.append(str(Path(__file__).parents[1] / "e2e"))
from executed import Executed
from guarded import NIGHTLY, Guarded

sys.path.append(str(Path(__file__).parents[1] / "common"))
import verdicts  # noqa: E402

LEVELS = ["x86-64-v3", "x86-64-v4"]
TOLERANCE = 1e-4
TILES = (3, 4, 6, 14, 16)
LEAST_SPREAD = 0.05  # an output that changes less from input to input says nothing about the network


def levels_here():
    """v4 only where the CPU has it."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("flags"))
    return [level for level in LEVELS if level != "x86-64-v4" or "avx512vl" in flags.split()]


executed, known = Executed(), verdicts.Verdicts()
guarded = Guarded(known)


def run(program, bundle, values, names, options, wanted=None):
    """The outputs of one run, in order of their names. `wanted`: of an emulated one, which need not run where it has given these."""
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / f"in{i}.npy" for i, name in enumerate(values)}
        for name, value in values.items():
            np.save(places[name], value)
        files = {name: Path(folder) / f"out{i}.npy" for i, name in enumerate(names)}
        command = [*program, str(bundle), *options]
        command += [f"--input={name}={path}" for name, path in places.items()]
        command += [f"--output={name}={path}" for name, path in files.items()]
        verdict = wanted and verdicts.key(command, also=[array.tobytes() for array in wanted], written=files.values())
        if verdict and known.find(verdict) is not None:
            return wanted
        executed.add(bundle, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        outputs = [np.load(files[name]) for name in names]
        if verdict and all(a.tobytes() == b.tobytes() for a, b in zip(wanted, outputs)):
            known.passed(verdict)
        return outputs


def difference(found, wanted):
    """Over the largest magnitude; exact for what is not a float."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    if wanted.size == 0:
        return 0.0
    return float(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def spread(arrays):
    """How far two rows of the outputs are from one another, over the largest magnitude."""
    rows = [row for array in arrays if array.ndim > 1 and array.shape[0] > 1 for row in [array]]
    if not rows:
        return None
    return max(float(np.abs(array - array[:1].astype(np.float64)).max() / (np.abs(array).max() or 1)) for array in rows)


class Check:
    def __init__(self, name, folder, programs, levels, aarch64, gpus, keep, cached):
        self.name, self.folder, self.programs, self.levels, self.aarch64, self.gpus = name, folder, programs, levels, aarch64, gpus
        self.cached = cached
        self.bundle, self.faults = folder / f"{name}.astra", []
        self.result = {"model": name, "levels": levels, "sizes": []}
        self.compile(keep)
        if not self.faults:
            for number, sizes in enumerate(MODELS[name].sizes):
                self.compare(sizes, number == 0)
            if not gpus:
                self.guard(self.bundle)
                for tile in TILES if NIGHTLY else ():
                    self.guard_within(tile)
        self.result["faults"] = self.faults

    def compile(self, keep):
        path = self.folder / f"{self.name}.onnx"
        self.graph = onnx.load(path, load_external_data=False).graph
        self.result["nodes"] = len(self.graph.node)
        if keep and self.bundle.exists():
            self.result["bundle_bytes"] = self.bundle.stat().st_size
            return
        targets = [f"cpu:{level}" for level in [*self.levels, *(["aarch64"] if self.aarch64 else [])]]
        targets += [kind + gpu for gpu in self.gpus for kind in ("", "emu:")]
        command = [self.programs / "astra-compile", path, "-o", self.bundle, f"--target={','.join(targets)}", "--time-passes", "-j2"]
        command += verdicts.compile_flags() if self.cached else []
        command += ["--ptxas=none"] if self.gpus else []  # PTX is enough for the emulator
        start = time.monotonic()
        done = subprocess.run([*map(str, command), *(f"--dim={name}={bounds}" for name, bounds in MODELS[self.name].dims.items())],
                              capture_output=True, text=True)
        self.result["compile_seconds"] = round(time.monotonic() - start, 2)
        if done.returncode:
            return self.fault("does not compile: " + done.stderr.strip())
        self.result["bundle_bytes"] = self.bundle.stat().st_size
        self.result["pass_ms"] = {line.rsplit(None, 2)[0]: float(line.rsplit(None, 2)[1]) for line in done.stderr.splitlines() if line.endswith(" ms")}
        print(f"{self.name}: compiled for {', '.join(targets)} in {self.result['compile_seconds']} s, {self.bundle.stat().st_size} bytes", flush=True)

    def guard(self, bundle):
        """No kernel leaves its buffers at the corners of the dims."""
        many = ["--corners=12", "--cost=50000000000"] if NIGHTLY else ["--corners=3", "--cost=0"]
        wrong = guarded.check([self.programs / "guarded-run"], bundle, f"--levels={','.join(self.levels)}", *many)
        if wrong:
            self.fault(wrong)

    def guard_within(self, most):
        """The same of a bundle whose dims are at most so large."""
        dims = {name: f"{bounds.split('..')[0]}..{most}" for name, bounds in MODELS[self.name].dims.items()}
        bundle = self.folder / f"{self.name}.{most}.astra"
        command = [self.programs / "astra-compile", self.folder / f"{self.name}.onnx", "-o", bundle, "-j2"]
        command += ["--target=" + ",".join(f"cpu:{level}" for level in self.levels), *(f"--dim={n}={b}" for n, b in dims.items())]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        if done.returncode:
            return self.fault(f"does not compile with dims up to {most}: " + done.stderr.strip())
        self.guard(bundle)
        bundle.unlink()

    def fault(self, text):
        print(f"{self.name}: {text}", flush=True)
        self.faults.append(text)

    def compare(self, sizes, first_size):
        where, values = label(sizes), inputs(self.name, self.graph, sizes)
        session = onnxruntime.InferenceSession(self.folder / f"{self.name}.onnx", providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        wanted = session.run(None, values)
        here = [str(self.programs / "astra-run")]
        ways = [(f"{level} {threads} threads", here, [f"--level={level}", f"--threads={threads}"]) for level in self.levels for threads in (1, 2)]
        if self.aarch64 and first_size:
            ways.append(("aarch64", ["qemu-aarch64", self.aarch64], []))
        if first_size:
            ways += [(f"{gpu}, emulated", here, [f"--emulate={gpu}"]) for gpu in self.gpus]
        first = None
        for way, program, options in ways:
            try:
                emulated = program[0] == "qemu-aarch64" or any(option.startswith("--emulate=") for option in options)
                outputs = run(program, self.bundle, values, names, options, first if emulated else None)
            except subprocess.CalledProcessError as error:
                return self.fault(f"{where}: {way}: astra-run ended with {error.returncode}")
            first = first or outputs
            if any(a.tobytes() != b.tobytes() for a, b in zip(first, outputs)):
                self.fault(f"{where}: {way} gives other bytes than {ways[0][0]}")
        errors = {name: difference(found, expected) for name, found, expected in zip(names, first, wanted)}
        for name, error in errors.items():
            if not error <= TOLERANCE:
                self.fault(f"{where}: output {name} is {error:.2e} from ONNX Runtime")
        follows = spread(wanted)
        if follows is not None and follows < LEAST_SPREAD:
            self.fault(f"{where}: the output hardly depends on the input ({follows:.2e})")
        worst = max(errors.values())
        self.result["sizes"].append({"sizes": sizes, "difference": worst, "spread": follows, "ways": [way for way, *_ in ways]})
        print(f"{self.name} {where}: {worst:.2e} from ONNX Runtime, rows differ by {'-' if follows is None else f'{follows:.2f}'}", flush=True)


def table(results):
    rows = [("model", "nodes", "compile s", "bundle MB", "largest difference at each size", "")]
    for r in results:
        differences = "  ".join(f"{label(s['sizes'])} {s['difference']:.1e}" for s in r["sizes"])
        megabytes = f"{r['bundle_bytes'] / 1e6:.1f}" if "bundle_bytes" in r else "-"
        rows.append((r["model"], str(r["nodes"]), str(r.get("compile_seconds", "-")), megabytes, differences, "FAILED" if r["faults"] else "ok"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i in (0, 4, 5) else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    option = dict((word[2:] + "=").split("=")[:2] for word in sys.argv[1:] if word.startswith("--"))
    if len(words) < 2 or "help" in option:
        print(__doc__)
        sys.exit(0 if "help" in option else 2)
    folder, programs = map(Path, words[:2])
    levels = option["targets"].split(",") if "targets" in option else levels_here()
    names = words[2:] or [name for name in MODELS if (folder / f"{name}.onnx").exists()]
    gpus = [gpu for gpu in option.get("emulate", "").split(",") if gpu]
    results = [Check(name, folder, programs, levels, option.get("aarch64"), gpus, "keep-bundles" in option, "cached" in option).result for name in names]
    table(results)
    executed.show("networks")
    known.show()
    if guarded.counts:
        guarded.show()
    if "json" in option:
        Path(option["json"]).write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(4 if any(result["faults"] for result in results) else 0)


if __name__ == "__main__":
    main()
