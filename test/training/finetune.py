"""examples/finetune: an encoder and its new head are trained to the same bytes everywhere, all layers or the head alone.

Takes:    a build folder; examples/finetune.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    equality of bytes.
Does not: need the package with the real weights, or train for long: examples/finetune/run.sh does.

    build/venv/bin/python test/training/finetune.py
"""

import csv
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples/finetune"
import safetensors_file  # noqa: E402
from run import LEVELS, done, expect, tool  # noqa: E402, of this folder: it makes test/onnx known
from harness import run  # noqa: E402

STEPS, BATCH, LENGTH, CLASSES = 5, 4, 12, 8
DATA = "--data=input_ids=ids.npy,attention_mask=mask.npy,target=target.npy"


def prepare():
    shutil.copy(EXAMPLE / "finetune.onnx", "finetune.onnx")
    subprocess.run([sys.executable, EXAMPLE / "begin.py", "--seeded", "finetune.weights"], check=True)
    rng = np.random.RandomState(0)
    rows = STEPS * BATCH
    target = np.arange(rows) % CLASSES
    lengths = rng.randint(3, LENGTH + 1, rows)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int64)
    np.save("mask.npy", mask)
    np.save("ids.npy", (1000 + 10 * target[:, None] + rng.randint(0, 5, (rows, LENGTH))) * mask)  # words of a class, so that there is something to learn
    np.save("target.npy", target)
    targets = "--target=" + ",".join("cpu:" + v for v in LEVELS)
    for name, flags in {"head": ["--freeze=encoder.*", "--optimizer=adamw(lr=1e-2)"], "all": ["--optimizer=adamw(lr=1e-3)"]}.items():
        done("astra-compile", "finetune.onnx", "-o", f"{name}.astra", "-j2", targets, "--dim=batch=1..4", f"--dim=length={LENGTH}", "--train",
             "--predict=logits", "--loss=cross_entropy", "--clip-norm=1", *flags)  # fmt: skip
        train(name, f"--out={name}.safetensors", f"--log={name}.csv")


def train(name, *words):
    done("astra-train", f"{name}.astra", DATA, "--epochs=1", f"--batch={BATCH}", "--seed=1", "--quiet", *words)


def levels_and_threads():
    for name in ("head", "all"):
        expected = [Path(f"{name}.{kind}").read_bytes() for kind in ("safetensors", "csv")]
        for level in LEVELS:
            for threads in (1, 2):
                train(name, "--out=w.safetensors", "--log=w.csv", f"--level={level}", f"--threads={threads}")
                expect([Path("w.safetensors").read_bytes(), Path("w.csv").read_bytes()] == expected, f"{name}, {level}, {threads} threads: other bytes")


def trained():
    """What the head's training leaves: the head. All layers': every weight that is there, each changed."""
    head, _ = safetensors_file.read("head.safetensors")
    expect({n: w.shape for n, w in head.items()} == {"head.weight": (CLASSES, 384), "head.bias": (CLASSES,)}, f"{sorted(head)}")
    every, _ = safetensors_file.read("all.safetensors")
    expect(len(every) == 103, f"{len(every)} weights")
    begun = {n: w for n, w in every.items() if n.startswith("head.")}
    expect(all(np.abs(w).max() > 0 for w in begun.values()), "the head is zeros still")
    for name in ("head", "all"):
        losses = [float(row["loss"]) for row in csv.DictReader(open(f"{name}.csv"))]
        expect(len(losses) == STEPS, f"{len(losses)} steps")
        expect(abs(losses[0] - math.log(CLASSES)) < 1e-5, f"{name}: the first loss is {losses[0]}, of zeros it is {math.log(CLASSES)}")


def model():
    """A bundle for inference of the trained head and the encoder that it was trained on gives what main of the trained one gives."""
    done("astra-compile", "finetune.onnx", "-o", "m.astra", f"--target=cpu:{LEVELS[-1]}", "--dim=batch=1..4", f"--dim=length={LENGTH}",
         "--weights=head.safetensors", "--freeze=encoder.*")  # fmt: skip
    for kind in ("ids", "mask"):
        np.save(f"few_{kind}.npy", np.load(f"{kind}.npy")[:BATCH])
    inputs = ["--input=input_ids=few_ids.npy", "--input=attention_mask=few_mask.npy"]
    done("astra-run", "head.astra", *inputs, "--states=head.safetensors", "--output=logits=y.npy")
    done("astra-run", "m.astra", *inputs, "--expect=logits=y.npy")
    expect(np.abs(np.load("y.npy")).max() > 0, "the logits are zeros: the states were not taken")


def states():
    """--states takes weights and checkpoints, --save-states writes all of them; what is no state is refused."""
    done("astra-run", "head.astra", "--input=input_ids=few_ids.npy", "--input=attention_mask=few_mask.npy", "--states=head.safetensors",
         "--save-states=all_states.safetensors")  # fmt: skip
    begun, _ = safetensors_file.read("head.safetensors")
    saved, _ = safetensors_file.read("all_states.safetensors")
    expect(all(saved[n].tobytes() == w.tobytes() for n, w in begun.items()), "a state changed")
    expect({"step", "head.weight.mean"} <= set(saved), f"{sorted(saved)}")
    words = ["head.astra", "--input=input_ids=few_ids.npy", "--input=attention_mask=few_mask.npy"]
    refused = tool("astra-run", *words, "--states=all.safetensors")
    expect(refused.returncode == 1 and "which is no state of the bundle" in refused.stderr, f"exit {refused.returncode}: {refused.stderr}")
    refused = tool("astra-run", *words, "--get-state=nothing=x.npy")
    expect(refused.returncode != 0 and "has no state 'nothing'" in refused.stderr, f"exit {refused.returncode}: {refused.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        return run([(t.__name__, t) for t in (levels_and_threads, trained, model, states)])


if __name__ == "__main__":
    sys.exit(main())
