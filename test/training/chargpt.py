"""examples/chargpt: a transformer is trained to the same bytes everywhere, and writes text with a cache as it would without.

Takes:    a build folder; examples/chargpt; --aarch64=PROGRAM, an astra-train for aarch64 that is run under qemu.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    equality of bytes; ONNX Runtime alone, which is asked for the meaning, is met within astra-compare's tolerance.
Does not: train for long: examples/chargpt/run.sh does.

    build/venv/bin/python test/training/chargpt.py [--aarch64 build/aarch64/astra-train/astra-train]
"""

import argparse
import csv
import hashlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLE = ROOT / "examples/chargpt"
import safetensors_file  # noqa: E402
from run import LEVELS, done, emulated, expect, known, tool  # noqa: E402, of this folder: it makes test/onnx known
from backend import BUILD  # noqa: E402
from harness import run  # noqa: E402

sys.path.insert(0, str(EXAMPLE))
from begin import CHARACTERS, CONTEXT, places  # noqa: E402

STEPS, BATCH = 20, 4
# Of the weights after STEPS steps. Where they rightly have other bits, those of the example have too:
# examples/chargpt/run.sh makes its files again.
WEIGHTS = "d663962c868b0d7496bb85df56664098053223c810f0d9231d2e2be8ab764433"


def prepare(aarch64):
    for name in ("chargpt.onnx", "decode.onnx"):
        shutil.copy(EXAMPLE / name, name)
    subprocess.run([sys.executable, EXAMPLE / "begin.py", "chargpt.weights"], check=True)
    # Low numbers are likely, so that there is something to learn.
    text = (CHARACTERS * np.random.RandomState(0).random_sample((STEPS * BATCH, CONTEXT + 1)) ** 3).astype(np.uint8)
    np.save("x.npy", text[:, :-1])
    np.save("y.npy", text[:, 1:])
    targets = ",".join("cpu:" + v for v in [*LEVELS, *["aarch64"] * bool(aarch64)])
    done("astra-compile", "chargpt.onnx", "-o", "train.astra", "-j2", f"--target={targets}", "--dim=batch=1..8", "--train", "--loss=cross_entropy",
         "--optimizer=adamw(lr=1e-2, beta2=0.99, weight_decay=0.1)", "--schedule=cosine(steps=40, warmup=5)", "--clip-norm=1")  # fmt: skip
    train("--epochs=1", f"--batch={BATCH}", "--out=trained.safetensors", "--log=trained.csv")
    targets = ",".join("cpu:" + v for v in LEVELS)
    done("astra-compile", "decode.onnx", "-o", "decode.astra", f"--target={targets}", f"--dim=length=0..{CONTEXT - 1}",
         "--weights=trained.safetensors")  # fmt: skip
    done("astra-compile", "chargpt.onnx", "-o", "full.astra", f"--target={targets}", "--dim=batch=1..2", "--weights=trained.safetensors")


NATIVE, EMULATED = ([f"{name}.safetensors", f"{name}.ckpt.safetensors"] for name in ("native", "emulated"))
DATA = "--data=token=x.npy,target=y.npy"


def train(*words):
    done("astra-train", "train.astra", DATA, "--quiet", *words)


def files(*names):
    return [Path(n).read_bytes() for n in names]


def levels_and_threads():
    expected = files("trained.safetensors", "trained.csv")
    for level in LEVELS:
        for threads in (1, 2, 3):
            train("--epochs=1", f"--batch={BATCH}", "--out=w.safetensors", "--log=w.csv", f"--level={level}", f"--threads={threads}")
            expect(files("w.safetensors", "w.csv") == expected, f"{level} with {threads} threads: other bytes")
    found = hashlib.sha256(expected[0]).hexdigest()
    expect(found == WEIGHTS, f"the weights of this machine have another hash: {found}")


def learns():
    losses = [float(row["loss"]) for row in csv.DictReader(open("trained.csv"))]
    expect(len(losses) == STEPS, f"{len(losses)} steps")
    expect(abs(losses[0] - math.log(CHARACTERS)) < 0.3, f"the first loss is {losses[0]}, of guesses it is {math.log(CHARACTERS)}")
    expect(losses[-1] < losses[0] - 0.3, f"the loss went from {losses[0]} to {losses[-1]}")
    weights, _ = safetensors_file.read("trained.safetensors")
    expect({n: w.shape for n, w in weights.items()} == {n: shape for n, (_, shape) in places().items()}, "other weights than began")
    expect(sum(w.size for w in weights.values()) == 1230848, "another number of weights")


def aarch64_too(aarch64):
    """Two steps at batch 2 under qemu: the bytes of every state."""
    for name in "xy":
        np.save(f"few_{name}.npy", np.load(f"{name}.npy")[:4])
    words = ["train.astra", "--data=token=few_x.npy,target=few_y.npy", "--batch=2", "--epochs=1", "--quiet", "--checkpoint-every=2"]
    done("astra-train", *words, "--out=native.safetensors")
    emulated(["qemu-aarch64", aarch64, *words, "--out=emulated.safetensors"], EMULATED, files(*NATIVE), "aarch64")


def gpus():
    """The same two steps on the host builds of GPU kernels."""
    for name in "xy":
        np.save(f"few_{name}.npy", np.load(f"{name}.npy")[:4])
    kinds = ["cuda:sm_90", "hip:gfx942"]
    targets = ["cpu:" + LEVELS[0], *kinds, *("emu:" + gpu for gpu in kinds)]
    done("astra-compile", "chargpt.onnx", "-o", "gpu.astra", "-j2", "--target=" + ",".join(targets), "--ptxas=none", "--dim=batch=1..8", "--train",
         "--loss=cross_entropy", "--optimizer=adamw(lr=1e-2, beta2=0.99, weight_decay=0.1)", "--clip-norm=1")  # fmt: skip
    words = ["gpu.astra", "--data=token=few_x.npy,target=few_y.npy", "--batch=2", "--epochs=1", "--quiet", "--checkpoint-every=2"]
    done("astra-train", *words, "--out=native.safetensors")
    for gpu in kinds:
        emulated([BUILD / "bin/astra-train", *words, f"--emulate={gpu}", "--out=emulated.safetensors"], EMULATED, files(*NATIVE), gpu)


def call(bundle, inputs, outputs, *flags):
    words = []
    for name, value in inputs.items():
        np.save(f"in_{name}.npy", value)
        words.append(f"--input={name}=in_{name}.npy")
    done("astra-run", bundle, *words, *(f"--output={n}=out_{n}.npy" for n in outputs), *flags)
    return [np.load(f"out_{n}.npy") for n in outputs]


def cache():
    """What is computed with the keys and values of before has the bits of the whole row read at once."""
    token = np.load("x.npy")[:1]
    (whole,) = call("full.astra", {"token": token}, ["logits"])
    for level in LEVELS:
        past = np.zeros((6, 2, 1, 4, 0, 32), np.float32)
        for at in range(CONTEXT):
            inputs = {"token": token[:, at : at + 1], "past": past, "temperature": np.float32(0.5)}
            logits, probability, past = call("decode.astra", inputs, ["logits", "probability", "present"], f"--level={level}")
            expect(logits.tobytes() == whole[0, :, at].tobytes(), f"{level}: other logits at {at}")
        odds = np.exp(2 * (logits.astype(np.float64) - logits.max()))
        expect(np.abs(probability - odds / odds.sum()).max() < 1e-6, "the probabilities are not softmax at this temperature")


def writes():
    """The text of the C program: on every level, with threads, and greedily what the network without a cache finds likely."""
    texts = {done("chargpt", "decode.astra", "--prompt", "x", "--length", 200, "--level", v, "--threads", t).stdout for v in LEVELS for t in (1, 2)}
    expect(len(texts) == 1 and len(texts.pop()) == 202, f"the texts differ: {texts}")
    other = [done("chargpt", "decode.astra", "--length", 50, "--seed", s).stdout for s in (1, 1, 2)]
    expect(other[0] == other[1] != other[2], "the text is no function of the seed, or none of it")
    # Past the end of the context: the second half of it is read again.
    text = done("chargpt", "decode.astra", "--prompt", "hacker", "--length", 180, "--temperature", 0).stdout.encode()[:-1]
    expect(len(text) == 186 and text.startswith(b"hacker"), f"{text}")
    numbers = [max(c - 31, 0) for c in text]  # a line feed is 0
    start = 0
    for at in range(5, 185):
        if at - start == CONTEXT:
            start = at - CONTEXT // 2
        row = np.zeros((1, CONTEXT), np.uint8)
        row[0, : at + 1 - start] = numbers[start : at + 1]
        if at in (5, 60, 127, 128, 170, 184):
            (logits,) = call("full.astra", {"token": row}, ["logits"])
            expect(logits[0, :, at - start].argmax() == numbers[at + 1], f"character {at + 1} is not the most likely one")


def meaning():
    """What ONNX Runtime makes of both files."""
    rng = np.random.RandomState(1)
    np.save("c.npy", rng.randint(0, CHARACTERS, (2, CONTEXT)).astype(np.uint8))
    np.save("d.npy", np.array([[7]], np.uint8))
    np.save("p.npy", rng.standard_normal((6, 2, 1, 4, 11, 32)).astype(np.float32))
    np.save("t.npy", np.float32(0.7))
    done("astra-compare", "chargpt.onnx", "--dim=batch=1..2", "--input=token=c.npy")
    done("astra-compare", "decode.onnx", "--dim=length=0..127", "--input=token=d.npy", "--input=past=p.npy", "--input=temperature=t.npy")


def refused():
    for words, sentence in ((["--prompt", ""], "usage"), (["--prompt", "\t"], "neither a line feed"), (["--length", "x"], "expected a number"),
                            (["--temperature", -1], "usage"), (["--colour", "red"], "usage")):  # fmt: skip
        result = tool("chargpt", "decode.astra", *words)
        expect(result.returncode in (1, 2) and sentence in result.stderr, f"{words}: exit {result.returncode}: {result.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--aarch64", type=lambda p: str(Path(p).resolve()), help="an astra-train for aarch64")
    aarch64 = parser.parse_args().aarch64
    named = [(t.__name__, t) for t in (levels_and_threads, gpus, learns, cache, writes, meaning, refused)]
    if aarch64:
        named.append(("aarch64", lambda: aarch64_too(aarch64)))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(aarch64)
        failed = run(named)
    known.show()
    return failed


if __name__ == "__main__":
    sys.exit(main())
