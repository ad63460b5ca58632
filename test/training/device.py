"""Trainings whose products a matrix unit adds (numerics.md, N4.8): equal bytes of all states everywhere, and loss scales.

Takes:    a build folder; examples/digits, examples/chargpt. ASTRA_NIGHTLY: all of these everywhere; else a network of two layers is emulated,
          digits are of CPUs and the evaluator, and chargpt of one CPU level, whose hash is that of the night.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    equality of bytes: of the evaluator, of the CPU levels with any number of threads, of the host build of a GPU's kernels that
          has the unit's instruction (mma.sync of sm_90), and of a second run.
Does not: train until something is learned: chargpt.py and run.py do.

    build/venv/bin/python test/training/device.py
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
import safetensors_file  # noqa: E402
from run import DIGITS, EXPECTED, LEVELS, done, emulated, expect, known, tool  # noqa: E402, of this folder: it makes test/onnx known
from backend import BUILD  # noqa: E402
from harness import run  # noqa: E402

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
GPU = "cuda:sm_90"
CPUS = ["cpu:" + v for v in LEVELS]
EVERYWHERE = [*CPUS, GPU, "emu:" + GPU]
CHARGPT = "afcd7de022b36ee8a783de19ed09a6ac3a24a19b4fdf3f667f9fb22f54dad03b"  # of all states after a step
LAYERS = """module @layers {
  param @w1 : f32[20, 24] = [%s]
  param @b1 : f32[24] = splat 0.0
  param @w2 : f32[24, 5] = [%s]
  entry @main(%%x : f32[8, 20]) -> (%%y : f32[8, 5]) {
    %%0 = contract %%x[i, k], @w1[k, j] -> [i, j] sum [k]
    %%1 = reshape @b1 [1, 24]
    %%2 = expand %%1 [8, 24]
    %%3 = add %%0, %%2
    %%4 = tanh %%3
    %%y = contract %%4[i, k], @w2[k, j] -> [i, j] sum [k]
  }
}
"""
DIGITS_RECIPE = ["--dim=batch=1..8", "--train", "--predict=linear", "--loss=cross_entropy", "--clip-norm=1",
                 "--optimizer=adamw(lr=1e-2, weight_decay=0.05)"]  # fmt: skip
CHARGPT_RECIPE = ["--dim=batch=1..2", "--train", "--loss=cross_entropy", "--clip-norm=1", "--optimizer=adamw(lr=1e-2, weight_decay=0.1)"]
BEFORE = {"image": EXPECTED["images"][:8], "target": EXPECTED["labels"][:8]}


def compiled(model, bundle, *flags, targets=CPUS[-1:]):
    done("astra-compile", model, "-o", bundle, "-j2", "--ptxas=none", "--target=" + ",".join(targets), *flags)


def inputs_of(batch):
    for name, value in batch.items():
        np.save(f"{name}.npy", value)
    return [f"--input={name}={name}.npy" for name in batch]


def states(bundle, batch, steps, *flags):
    """The bytes of all states after some steps on one batch."""
    done("astra-run", bundle, "--entry=train_step", *inputs_of(batch), f"--repeat={steps}", "--save-states=s.safetensors", *flags)
    return Path("s.safetensors").read_bytes()


def arrays(data):
    Path("a.safetensors").write_bytes(data)
    return safetensors_file.read("a.safetensors")[0]


def everywhere(bundle, batch, steps, emulates=NIGHTLY):
    """The states after some steps: one text of bytes on all CPU levels, with threads, again, and perhaps emulated."""
    wanted = states(bundle, batch, steps)
    for level in LEVELS:
        for threads in (1, 2):
            expect(states(bundle, batch, steps, f"--level={level}", f"--threads={threads}") == wanted, f"{level}, {threads} threads: other bytes")
    if not emulates:
        return wanted
    command = [BUILD / "bin/astra-run", bundle, "--entry=train_step", *inputs_of(batch), f"--repeat={steps}",
               "--save-states=e.safetensors", f"--emulate={GPU}"]  # fmt: skip
    emulated(command, ["e.safetensors"], [wanted], GPU)
    return wanted


def evaluated(bundle_flags, model, batch, steps, wanted):
    """The evaluator does the same steps, one after another."""
    done("astra-compile", model, "-o", "m.uop", "--emit=uop", *bundle_flags)
    given = []
    after = arrays(wanted)
    for k in range(steps):
        done("astra-opt", "m.uop", "--eval", "--entry=train_step", *inputs_of(batch), *given,
             *(f"--output=@{n}=state.{i}.{k}.npy" for i, n in enumerate(after)))  # fmt: skip
        given = [f"--state={n}=state.{i}.{k}.npy" for i, n in enumerate(after)]
    for i, (name, value) in enumerate(after.items()):
        expect(np.load(f"state.{i}.{steps - 1}.npy").tobytes() == value.tobytes(), f"the evaluator has other bytes of {name}")


def digits_of(unit):
    """A network of convolutions: three steps."""
    flags = [*DIGITS_RECIPE, f"--numerics=device:{unit}"]
    compiled(DIGITS, "d.astra", *flags, targets=EVERYWHERE if NIGHTLY else CPUS)
    text = done("astra-inspect", "d.astra").stdout
    expect(f"device:{unit.split(':')[0]}" in text, "the bundle does not say whose numbers it has")
    evaluated(flags, DIGITS, BEFORE, 3, everywhere("d.astra", BEFORE, 3))


def layers():
    """Two layers: on the emulated GPU too."""
    rng = np.random.RandomState(1)
    Path("layers.uop").write_text(LAYERS % tuple(", ".join(f"{v:.6f}" for v in rng.uniform(-0.3, 0.3, n)) for n in (480, 120)))
    flags = ["--train", "--loss=cross_entropy", "--optimizer=adamw(lr=1e-2)", "--numerics=device:hopper16:f16", "--loss-scale=static(scale=256)"]
    compiled("layers.uop", "l.astra", *flags, targets=EVERYWHERE)
    batch = {"x": rng.standard_normal((8, 20)).astype(np.float32), "target": rng.randint(0, 5, 8)}
    evaluated(flags, "layers.uop", batch, 2, everywhere("l.astra", batch, 2, True))


def digits_bf16():
    digits_of("hopper16")


def digits_f16_scaled():
    flags = [*DIGITS_RECIPE, "--numerics=device:hopper16:f16", "--loss-scale=dynamic(scale=1024, interval=2)"]
    compiled(DIGITS, "d.astra", *flags, targets=EVERYWHERE if NIGHTLY else CPUS)
    wanted = everywhere("d.astra", BEFORE, 3)
    evaluated(flags, DIGITS, BEFORE, 3, wanted)
    after = arrays(wanted)
    expect(after["loss_scale"] == 2048 and after["loss_scale.steps"] == 1 and after["step"] == 3, "the scale did not grow after two steps")


def masters_are_wide():
    """An update far below an ulp of bf16 stays in the weights."""
    flags = ["--optimizer=sgd(lr=1e-6)" if f.startswith("--optimizer") else f for f in DIGITS_RECIPE]
    compiled(DIGITS, "d.astra", *flags, "--numerics=device:hopper16")
    one, two = (arrays(states("d.astra", BEFORE, k)) for k in (1, 2))
    name = "classify.weight"
    moved = np.abs(two[name] - one[name])
    expect(0 < moved.max() < np.abs(one[name]).max() * 2.0**-12, f"a step moved {name} by {moved.max()}")


def a_static_power_of_two_changes_nothing():
    """In strict numbers, of gradients far from the ends of f32."""
    for scale, same in (("static(scale=1024)", True), ("dynamic(scale=8192)", True), ("static(scale=3)", False)):
        found = []
        for k, flags in enumerate(((), (f"--loss-scale={scale}",))):
            compiled(DIGITS, f"{k}.astra", *DIGITS_RECIPE, *flags)
            found.append(arrays(states(f"{k}.astra", BEFORE, 2)))
        before, after = found
        weights = [n for n in before if n.split(".")[-1] in ("weight", "bias")]
        expect(len(weights) >= 6, f"{weights}")
        equal = all(before[n].tobytes() == after[n].tobytes() for n in weights)
        expect(equal == same, f"{scale}: the weights have {'the same' if equal else 'other'} bytes")


def a_step_that_overflows_is_left_out():
    flags = [*DIGITS_RECIPE, "--numerics=device:hopper16:f16", "--loss-scale=dynamic(scale=1e30, most=1e30, backoff=0.0009765625)"]
    compiled(DIGITS, "d.astra", *flags)
    begin = arrays(states("d.astra", BEFORE, 1))
    expect(begin["step"] == 0 and begin["loss_scale.steps"] == 0, "a step with infinite gradients counts")
    expect(begin["loss_scale"] == np.float32(1e30) * np.float32(2.0**-10), f"the scale is {begin['loss_scale']}")
    for name, value in begin.items():
        expect(np.isfinite(value).all(), f"{name} is not finite")
        expect(not name.endswith((".mean", ".squares")) or not value.any(), f"{name} moved")
    later = arrays(states("d.astra", BEFORE, 12))
    expect(0 < later["step"] < 12 and later["loss_scale"] < 1e9, f"{later['step']} of 12 steps were done, the scale is {later['loss_scale']}")
    expect(any(value.any() for name, value in later.items() if name.endswith(".mean")), "nothing was trained")


def chargpt():
    """The example: a step at batch 1."""
    shutil.copy(ROOT / "examples/chargpt/chargpt.onnx", "chargpt.onnx")
    subprocess.run([sys.executable, ROOT / "examples/chargpt/begin.py", "chargpt.weights"], check=True)
    flags = [*CHARGPT_RECIPE, "--numerics=device:hopper16"]
    compiled("chargpt.onnx", "c.astra", *flags, targets=EVERYWHERE if NIGHTLY else CPUS[-1:])
    text = (96 * np.random.RandomState(0).random_sample((1, 129)) ** 3).astype(np.uint8)
    batch = {"token": text[:, :-1], "target": text[:, 1:].astype(np.int64)}
    wanted = everywhere("c.astra", batch, 1) if NIGHTLY else states("c.astra", batch, 1)
    found = hashlib.sha256(wanted).hexdigest()
    expect(found == CHARGPT, f"the states of this machine have another hash: {found}")
    if NIGHTLY:
        evaluated(flags, "chargpt.onnx", batch, 1, wanted)


def refused():
    wrong = {
        "--numerics=device:hopper": "--numerics: there is no matrix unit 'hopper'; there are hopper16",
        "--numerics=device:hopper16:f8e5m2": "--numerics: matrix unit hopper16 does not take operands of 'f8e5m2'",
        "--loss-scale=fixed": "there is no loss scale 'fixed'; there are: none, static, dynamic",
        "--loss-scale=static(scale=0)": "'scale' is '0', expected a number, at least",
        "--loss-scale=dynamic(scale=1e9)": "expected that scale is at most `most`",
        "--loss-scale=dynamic(interval=0.5)": "expected a whole number, at least 1",
    }
    for flag, sentence in wrong.items():
        result = tool("astra-compile", DIGITS, "-o", "none.astra", *DIGITS_RECIPE, flag)
        expect(result.returncode == 2 and sentence in result.stderr, f"{flag}: exit {result.returncode}: {result.stderr}")
        expect(not Path("none.astra").exists(), f"{flag}: a bundle was written")
    result = tool("astra-compile", DIGITS, "-o", "none.astra", "--loss-scale=static")
    expect(result.returncode == 2 and "need --train" in result.stderr, result.stderr)


TESTS = (layers, digits_bf16, digits_f16_scaled, masters_are_wide, a_static_power_of_two_changes_nothing, a_step_that_overflows_is_left_out, chargpt, refused)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        failed = run([(t.__name__, t) for t in TESTS])
    known.show()
    return failed


if __name__ == "__main__":
    sys.exit(main())
