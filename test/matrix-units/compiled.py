#!/usr/bin/env python3
"""Steps of every matrix unit by compiled code, beside the evaluator's model: equal bytes.

Takes:    a build folder. ASTRA_NIGHTLY: 10^6 sums a unit and type, else 10^4.
Gives:    a line for each unit and type of operands, and "N passed, N failed"; exit code 1 if one fails.
Keeps:    a sum is two steps: the second one's addend is what the first gives. Operands are of narrow and of wide spread, with
          zeros, subnormals, the greatest numbers, infinities and NaNs among them; a function of the unit and type alone.
Does not: look at instructions that are the unit's own: x86-64-v4 has none of them, so steps are in primitives.

    build/venv/bin/python test/matrix-units/compiled.py [--build build]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from model import ALIGNED, CHAINED, GREATEST, INPUTS, kinds_of  # noqa: E402

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
SUMS, MOST = 10**6 if NIGHTLY else 10**4, 10**5  # of a unit and type; of a call
FLAGS = next(line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("flags")).split()
LEVELS = ["x86-64-v4"] if "avx512vl" in FLAGS else ["x86-64-v3"]
TWO_TYPES = (("hopper32-fp8", "f8e4m3fn,f8e5m2", 32), ("hopper32-fp8", "f8e5m2,f8e4m3fn", 32))


def steps():
    for unit, (kinds, block, *_) in [*ALIGNED.items(), *CHAINED.items()]:
        yield from ((unit, kind, block) for kind in kinds)
    yield from TWO_TYPES


def name_of(unit, kind):
    return f"{unit}_{kind}".replace("-", "_").replace(",", "_")


def text():
    entries = []
    for unit, kind, block in steps():
        entries.append(f"""  entry @{name_of(unit, kind)}(%x : f32[{2 * block}, n], %w : f32[{2 * block}, n]) -> (%y : f32[n]) {{
    %y = contract %x[k, i], %w[k, i] -> [i] sum [k] order="{unit} {kind.replace(",", " ")}"
  }}""")
    return "\n".join(["module @steps {", f"  dim n in 1..{MOST}", *entries, "}"]) + "\n"


def values(rng, kind, shape):
    """Random numbers, the sums' spreads from 1 to 120 binades; the compiler rounds them to the type."""
    mantissa, least = INPUTS[kind]
    spread = rng.choice(np.array((1, 2, 4, 8, 12, 20, 60, 120)), (1, shape[1]))
    high = np.minimum(spread, (GREATEST[kind] >> 23) - 128)
    low = np.maximum(-spread, least - mantissa)
    exponent = rng.integers(low, high + 1, shape)
    x = np.ldexp(1 + rng.random(shape), exponent).astype(np.float32) * rng.choice(np.array((-1, 1), np.float32), shape)
    odd = np.array([0, 0x80000000, GREATEST[kind], GREATEST[kind] | 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32).view(np.float32)
    odd = np.concatenate([odd, np.array([2.0 ** (least - mantissa), -(2.0 ** (least - mantissa)), 2.0**least], np.float32)])
    finite = odd[np.isfinite(odd)]
    column = rng.random(shape[1])
    with np.errstate(invalid="ignore"):
        x = np.where((rng.random(shape) < 0.03) & (column < 0.3), rng.choice(finite, shape), x)
        return np.where((rng.random(shape) < 0.02) & (column < 0.05), rng.choice(odd, shape), x).astype(np.float32)


def compare(tools, unit, kind, block):
    rng = np.random.default_rng(zlib.crc32(name_of(unit, kind).encode()))
    for begin in range(0, SUMS, MOST):
        shape = (2 * block, min(MOST, SUMS - begin))
        for name, k in zip("xw", kinds_of(kind)):
            np.save(f"{name}.npy", values(rng, k, shape))
        entry = [f"--entry={name_of(unit, kind)}", "--input=x=x.npy", "--input=w=w.npy"]
        subprocess.run([f"{tools}/astra-opt", "steps.uop", "--eval", *entry, "--output=y=y.npy"], check=True, stdout=subprocess.DEVNULL)
        y = np.load("y.npy")
        few = len(np.unique(y)), np.isfinite(y).mean()
        assert few[0] > 1500 and few[1] > 0.7, f"{unit} {kind}: the sums are not of many kinds: {few}"
        for level in LEVELS:
            done = subprocess.run([f"{tools}/astra-run", "steps.astra", *entry, "--expect=y=y.npy", f"--level={level}"], capture_output=True, text=True)
            if done.returncode:
                return done.stderr.strip()
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build", type=Path)
    tools = parser.parse_args().build.resolve() / "bin"
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("steps.uop").write_text(text())
        targets = ",".join("cpu:" + v for v in LEVELS)
        subprocess.run([f"{tools}/astra-compile", "steps.uop", "-o", "steps.astra", f"--target={targets}", "-j2"], check=True, stderr=subprocess.DEVNULL)
        for unit, kind, block in steps():
            why = compare(tools, unit, kind, block)
            passed, failed = passed + (not why), failed + bool(why)
            print(f"{unit} {kind}: {SUMS} sums" + (f": {why}" if why else ""))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
