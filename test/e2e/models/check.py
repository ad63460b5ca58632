"""Compile the large models, run them on every CPU level at hand, and compare with ONNX Runtime.

Takes:    the folder that make.py wrote, the folder of the programs, names of models (all of them by default).
Gives:    for each case the largest difference from ONNX Runtime over the largest magnitude of the output, and whether the
          levels and numbers of threads gave the same bytes; exit code 4 where a difference exceeds 1e-4 or bytes differ.
Keeps:    the bundles, beside the models.
Does not: make the models (make.py does).

    build/venv/bin/python test/e2e/models/check.py build/models build/bin [resnet50] [resnet50-raw] [bert]
    --aarch64=PROGRAM   an astra-run for aarch64, run under qemu-aarch64: its bytes must be the same
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DIMS = {
    "resnet50": ["batch=1..8"],
    "resnet50-raw": ["batch=1..8"],
    "bert": ["batch=1..8", "seq=1..128"],
}
CASES = {"resnet50": ["b1", "b2"], "resnet50-raw": ["b1"], "bert": ["b2s7", "b1s32", "b3s128"]}
SLOW = {"b2"}  # an emulator takes its time; one image is enough there
LEVELS = ["x86-64-v3", "x86-64-v4"]
TOLERANCE = 1e-4


def levels_here():
    """v4 only where the CPU has it."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("flags"))
    return [level for level in LEVELS if level != "x86-64-v4" or "avx512vl" in flags.split()]


def values(folder, model, case, kind):
    prefix = f"{model}.{case}.{kind}."
    return {path.name[len(prefix) : -len(".npy")]: path for path in sorted(folder.glob(prefix + "*.npy"))}


def run(program, bundle, inputs, names, options):
    """The outputs of one run, in order of their names."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.npy" for name in names}
        command = [*program, str(bundle), *options]
        command += [f"--input={name}={path}" for name, path in inputs.items()]
        command += [f"--output={name}={path}" for name, path in files.items()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [np.load(files[name]) for name in names]


def check(model, folder, programs, aarch64):
    bundle, targets = folder / f"{model}.astra", [f"cpu:{level}" for level in levels_here()]
    if aarch64:
        targets.append("cpu:aarch64")
    start = time.monotonic()
    command = [programs / "astra-compile", folder / f"{model}.onnx", "-o", bundle, f"--target={','.join(targets)}", "-j2"]
    subprocess.run([*map(str, command), *(f"--dim={dim}" for dim in DIMS[model])], check=True)
    print(f"{model}: compiled for {', '.join(targets)} in {time.monotonic() - start:.1f} s, {bundle.stat().st_size} bytes")

    here = [str(programs / "astra-run")]
    ways = [(f"{level} {threads} threads", here, [f"--level={level}", f"--threads={threads}"]) for level in levels_here() for threads in (1, 2)]
    if aarch64:
        ways.append(("aarch64", ["qemu-aarch64", aarch64], []))
    good = True
    for case in CASES[model]:
        inputs, expected = values(folder, model, case, "input"), values(folder, model, case, "output")
        first = None
        for name, program, options in ways:
            if name == "aarch64" and case in SLOW:
                continue
            outputs = run(program, bundle, inputs, list(expected), options)
            if first is None:
                first = outputs
            if any(a.tobytes() != b.tobytes() for a, b in zip(first, outputs)):
                print(f"{model} {case}: {name} gives other bytes than {ways[0][0]}")
                good = False
        for (name, path), found in zip(expected.items(), first):
            wanted = np.load(path)
            error = np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max()
            good &= bool(error <= TOLERANCE)
            print(f"{model} {case} {name}: {error:.2e} from ONNX Runtime{'' if error <= TOLERANCE else ': too far'}")
    print(f"{model}: {'the same bytes' if good else 'FAILED'} ({', '.join(name for name, *_ in ways)})")
    return good


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    aarch64 = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--aarch64=")), None)
    folder, programs = map(Path, words[:2])
    results = [check(model, folder, programs, aarch64) for model in words[2:] or CASES]
    sys.exit(0 if all(results) else 4)


if __name__ == "__main__":
    main()
