"""astra-train: what it writes, what it refuses, and that stopping it changes nothing.

Takes:    a build folder; examples/digits (its held-out images are trained on here); --aarch64=PROGRAM, an astra-train for
          aarch64 that is run under qemu.
Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.
Keeps:    equality of bytes everywhere. The order of the rows is computed here once more, from what docs/training.md says.

    build/venv/bin/python test/training/train_tool.py [--aarch64 build/aarch64/astra-train/astra-train] [TEST ...]
"""

import argparse
import csv
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
import safetensors_file  # noqa: E402
from run import LEVELS, emulated, expect, known, tool  # noqa: E402, of this folder: it makes test/onnx known
from backend import BUILD  # noqa: E402
from harness import run  # noqa: E402

DIGITS = ROOT / "examples/digits"
RECIPE = ["--dim=batch=4..64", "--train", "--predict=linear", "--loss=cross_entropy", "--clip-norm=1", "--metric=accuracy",
          "--metric=top(k=3)", "--optimizer=adamw(lr=1e-2, weight_decay=0.05)", "--schedule=cosine(steps=10000, warmup=3)"]  # fmt: skip
DATA = "image=x.npy,target=y.npy"
KEPT = 100  # rows for --eval; all others are trained on


def files(*names):
    return [Path(n).read_bytes() for n in names]


def command(*words, bundle="m.astra", data=DATA, batch=8, epochs=2, out="w.safetensors"):
    flags = [f"--batch={batch}"] * (batch is not None) + [f"--epochs={epochs}", f"--out={out}"]
    return [str(BUILD / "bin/astra-train"), bundle, f"--data={data}", *flags, *map(str, words)]


def train(*words, bundle="m.astra", data=DATA, batch=8, epochs=2, out="w.safetensors", **options):
    return subprocess.run(command(*words, bundle=bundle, data=data, batch=batch, epochs=epochs, out=out), capture_output=True, text=True, **options)


def trained(*words, **options):
    done = train(*words, **options)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    return done


def compiled(out, *flags, recipe=RECIPE):
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", out, "-j2", *recipe, *flags)
    expect(done.returncode == 0, done.stderr)


def prepare(aarch64):
    targets = ["cpu:" + v for v in LEVELS] + ["cpu:aarch64"] * bool(aarch64)
    compiled("m.astra", "--target=" + ",".join(targets))
    images = np.load(DIGITS / "heldout_images.npy")
    labels = (np.load(DIGITS / "heldout_labels.npy").astype(np.uint8) * 3 + 1) % 10  # something to learn
    for name, part in (("", slice(KEPT, None)), ("e", slice(KEPT))):
        np.save(f"{name}x.npy", images[part])
        np.save(f"{name}y.npy", labels[part])


ROWS = 360 - KEPT
EVAL = "--eval=image=ex.npy,target=ey.npy"


# ---- what comes out


def threefry(key, counter):
    """Threefry2x32-20 (Salmon et al. 2011), of Python's integers."""
    mask = 2**32 - 1
    keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    x = [(counter[0] + keys[0]) & mask, (counter[1] + keys[1]) & mask]
    for r in range(20):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        x[0] = (x[0] + x[1]) & mask
        x[1] = ((x[1] << turn | x[1] >> 32 - turn) & mask) ^ x[0]
        if r % 4 == 3:
            group = r // 4 + 1
            x = [(x[0] + keys[group % 3]) & mask, (x[1] + keys[(group + 1) % 3] + group) & mask]
    return x


def permutation(seed, epoch, rows):
    order = list(range(rows))
    for i in range(rows - 1):
        word = threefry((seed, 2**31 + epoch), (i >> 1 & 2**32 - 1, i >> 33))[i & 1]
        j = i + (word * (rows - i) >> 32)
        order[i], order[j] = order[j], order[i]
    return order


def one_epoch_by_hand():
    """The steps of two epochs, each called with astra-run on rows that are chosen here."""
    trained("--seed=5", epochs=2, batch=64, out="w.safetensors")
    found, metadata = safetensors_file.read("w.safetensors")
    expect(metadata == {}, "weights have metadata")
    x, y = np.load("x.npy"), np.load("y.npy").astype(np.int64)
    names = [line.split()[1] for line in tool("astra-inspect", "m.astra").stdout.split("\n") if line.startswith("state ")]
    expect(sorted(found) == sorted(n for n in names if n != "step" and not n.endswith((".mean", ".squares"))),
           f"the weights are {sorted(found)}")  # fmt: skip
    states = []
    for epoch in (1, 2):
        order = permutation(5, epoch, ROWS)
        expect(sorted(order) == list(range(ROWS)), "no permutation")
        for first in range(0, ROWS, 64):
            rows = order[first : first + 64]
            np.save("bx.npy", x[rows])
            np.save("by.npy", y[rows])
            done = tool("astra-run", "m.astra", "--entry=train_step", "--input=image=bx.npy", "--input=target=by.npy", *states,
                        *(f"--get-state={n}=s{k}.npy" for k, n in enumerate(names)))  # fmt: skip
            expect(done.returncode == 0, done.stderr)
            states = [f"--set-state={n}=s{k}.npy" for k, n in enumerate(names)]
    for k, name in enumerate(names):
        if name in found:
            expect(np.load(f"s{k}.npy").tobytes() == found[name].tobytes(), f"{name} has other bytes")


def log_contents():
    trained("--seed=2", EVAL, "--log=run.csv", batch=50, epochs=3)
    rows = list(csv.reader(open("run.csv")))
    expect(rows[0] == ["step", "epoch", "loss", "rate", "eval_loss", "eval_accuracy", "eval_top3"], str(rows[0]))
    steps = [r for r in rows[1:] if r[2]]
    evaluations = [r for r in rows[1:] if not r[2]]
    per_epoch = -(-ROWS // 50)
    expect([int(r[0]) for r in steps] == list(range(1, 3 * per_epoch + 1)), "the steps")
    expect([int(r[1]) for r in steps] == [1] * per_epoch + [2] * per_epoch + [3] * per_epoch, "the epochs")
    expect([r[:2] for r in evaluations] == [[str(per_epoch * e), str(e)] for e in (1, 2, 3)], "the places of eval")
    expect(all(r[3] == "" for r in evaluations) and all(r[4:] == ["", "", ""] for r in steps), "cells that are not empty")
    warm = [1e-2 * k / 3 for k in (1, 2, 3)]
    expect(np.allclose([float(r[3]) for r in steps[:3]], warm, rtol=1e-12), f"the rates {steps[:3]}")
    # What eval says, from the weights: the trained model beside the log.
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "t.astra", "--dim=batch=1..100", "--weights=w.safetensors")
    expect(done.returncode == 0, done.stderr)
    done = tool("astra-run", "t.astra", "--input=image=ex.npy", "--output=probability=p.npy")
    expect(done.returncode == 0, done.stderr)
    p, y = np.load("p.npy").astype(np.float64), np.load("ey.npy")
    expect(abs(float(evaluations[-1][4]) + np.log(p[range(KEPT), y]).mean()) < 1e-5, "the loss of eval")
    expect(abs(float(evaluations[-1][5]) - (p.argmax(1) == y).mean()) < 1e-7, "the accuracy of eval")
    ahead = (p > p[range(KEPT), y][:, None]).sum(1)
    expect(abs(float(evaluations[-1][6]) - (ahead < 3).mean()) < 1e-7, "how often the class is among the first three")
    expect(float(evaluations[-1][4]) < float(evaluations[0][4]), "nothing is learned")


def inference_bits():
    """main of the trained model: the same bytes from a bundle that was compiled from the weights."""
    trained("--seed=2")
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "t.astra", "--dim=batch=1..100", "--weights=w.safetensors")
    expect(done.returncode == 0, done.stderr)
    found, _ = safetensors_file.read("w.safetensors")
    np.save("b.npy", np.load("ex.npy")[:64])
    # All states of the session have the same weights in them, and those of the training, which are left out.
    done = tool("astra-run", "m.astra", "--states=w.safetensors", "--save-states=all.safetensors", "--input=image=b.npy", "--output=probability=p.npy")
    expect(done.returncode == 0, done.stderr)
    others = len(safetensors_file.read("all.safetensors")[0]) - len(found)
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "all.astra", "--dim=batch=1..100", "--weights=all.safetensors")
    expect(done.returncode == 0 and f"all.safetensors: left out {others} states of a training" in done.stderr, done.stderr)
    expect(others > 1, "nothing but weights is saved")
    states = []
    for k, (name, value) in enumerate(found.items()):
        np.save(f"s{k}.npy", value)
        states.append(f"--set-state={name}=s{k}.npy")
    for bundle, more in (("t.astra", []), ("all.astra", []), ("m.astra", states)):
        done = tool("astra-run", bundle, "--input=image=b.npy", f"--output=probability={bundle}.npy", *more)
        expect(done.returncode == 0, done.stderr)
    expect(files("t.astra.npy") == files("m.astra.npy") == files("all.astra.npy"), "other bytes")


def seeds():
    def of(*words):
        trained(*words, "--log=run.csv")
        return files("w.safetensors", "run.csv")

    zero, one = of(), of("--seed=1")
    expect(of("--seed=0") == zero and of("--seed=1") == one, "the same seed gives other bytes")
    expect(one[0] != zero[0] and one[1] != zero[1], "another seed gives the same bytes")


def key_of_dropout():
    """The seed reaches what dropout draws, where the order of the rows changes nothing: one row."""
    Path("drop.uop").write_text(DROPOUT)
    done = tool("astra-compile", "drop.uop", "-o", "drop.astra", "--train", "--loss=mse", "--optimizer=sgd(lr=1)")
    expect(done.returncode == 0, done.stderr)
    np.save("dx.npy", np.ones((1, 4), np.float32))
    np.save("dt.npy", np.zeros((1, 4), np.float32))
    losses = []
    for seed in (1, 1, 2):
        trained(f"--seed={seed}", "--log=drop.csv", bundle="drop.astra", data="x=dx.npy,target=dt.npy", batch=1)
        losses.append(Path("drop.csv").read_bytes())
    expect(losses[0] == losses[1] != losses[2], f"{losses}")


def sequences():
    """A loss of sequences: the length of a target is a dim of its own."""
    Path("ctc.uop").write_text(SEQUENCES)
    done = tool("astra-compile", "ctc.uop", "-o", "ctc.astra", "--train", "--loss=ctc", "--optimizer=sgd(lr=0.1)")
    expect(done.returncode == 0, done.stderr)
    labels = np.array([[1, 2, 0]] * 10)
    np.save("cx.npy", np.random.default_rng(0).standard_normal((10, 6, 5)).astype(np.float32))
    np.save("cy.npy", labels)
    trained("--log=ctc.csv", bundle="ctc.astra", data="x=cx.npy,target=cy.npy", batch=4)
    losses = [float(r["loss"]) for r in csv.DictReader(open("ctc.csv"))]
    expect(len(losses) == 6 and losses[-1] < losses[0], str(losses))
    labels[7, 1] = 4
    np.save("cy.npy", labels)
    done = train(bundle="ctc.astra", data="x=cx.npy,target=cy.npy", batch=4)
    expect(done.returncode == 1 and "cy.npy: row 7 (from 0) is of class 4; the loss takes 0 to 3" in done.stderr, done.stderr)


SEQUENCES = """module @ctc {
  dim n in 1..4
  param @w : f32[5, 4] = splat 0.5
  entry @main(%x : f32[n, 6, 5]) -> (%y : f32[6, n, 4]) {
    %y = contract %x[b, t, k], @w[k, c] -> [t, b, c] sum [k]
  }
}
"""


DROPOUT = """module @drop {
  param @w : f32[4] = splat 0.5
  state @random.key : u32[]
  entry @main(%x : f32[1, 4]) -> (%y : f32[1, 4]) {
    %0 = reshape @w [1, 4]
    %y = mul %x, %0
  }
  entry @forward(%x : f32[1, 4]) -> (%y : f32[1, 4]) {
    %s = const 3 : u32
    %0 = random @random.key, %s [1, 4]
    %1 = cast %0 : f32[1, 4]
    %2 = const 4294967296.0 : f32
    %3 = reshape %2 [1, 1]
    %4 = expand %3 [1, 4]
    %5 = div %1, %4
    %6 = reshape @w [1, 4]
    %7 = mul %x, %6
    %y = mul %7, %5
  }
}
"""


def levels_and_threads(aarch64):
    """200 steps, one hash."""
    flags = ["--seed=3", "--log=run.csv", EVAL]
    trained(*flags, epochs=6)
    first = files("w.safetensors", "run.csv")
    expect(len(first[1].split(b"\n")) > 200, "fewer than 200 steps")
    for level in LEVELS:
        for threads in (1, 2, 3):
            trained(*flags, f"--level={level}", f"--threads={threads}", epochs=6)
            expect(files("w.safetensors", "run.csv") == first, f"{level} with {threads} threads: other bytes")
    for threads in (1, 2, 3) if aarch64 else ():
        line = ["qemu-aarch64", aarch64, *command(*flags, f"--threads={threads}", epochs=6)[1:]]
        emulated(line, ["w.safetensors", "run.csv"], first, f"aarch64 with {threads} threads")


GPUS = {"cuda:sm_90": "cuda:0", "hip:gfx942": "hip:0"}


def gpus():
    """On the host builds of GPU kernels weights that are drawn and 200 steps have a CPU's bytes; through the stand-in driver too, with checkpoints and --find-nan."""
    cpu, both = f"cpu:{LEVELS[0]}", [name for gpu in GPUS for name in (gpu, "emu:" + gpu)]
    compiled("gpu.astra", "--target=" + ",".join([cpu, *both]), "--ptxas=none")
    flags = ["--seed=3", "--log=run.csv", EVAL, "--init"]
    trained(*flags, epochs=7, bundle="gpu.astra")
    first = files("w.safetensors", "run.csv")
    expect(len(first[1].split(b"\n")) > 200, "fewer than 200 steps")
    for gpu in GPUS:
        emulated(command(*flags, f"--emulate={gpu}", epochs=7, bundle="gpu.astra"), ["w.safetensors", "run.csv"], first, f"{gpu}, emulated")
    compiled("stand_in.astra", "--target=" + ",".join([cpu, *both]), "--taps=.*")
    flags += ["--find-nan", "--checkpoint-every=2"]
    trained(*flags, epochs=1, bundle="stand_in.astra")
    first = files("w.safetensors", "run.csv", "w.ckpt.safetensors")
    for gpu, device in GPUS.items():
        for name in ("w.safetensors", "run.csv", "w.ckpt.safetensors"):
            os.remove(name)
        driver = ["--device=" + device, f"--driver={BUILD}/lib/libastra-stand-in.so", "--allow-ptx"]
        trained(*flags, *driver, epochs=1, bundle="stand_in.astra", env={**os.environ, "ASTRA_STAND_IN_BUNDLE": str(Path("stand_in.astra").resolve())})
        expect(files("w.safetensors", "run.csv", "w.ckpt.safetensors") == first, f"{device}: other bytes")
    done = train("--emulate=cuda:sm_90", "--level=x86-64-v3")
    expect(done.returncode == 2 and "--emulate says what runs: it goes with no --level and no --device" in done.stderr, done.stderr)
    done = train("--emulate=cuda:sm_90")
    expect(done.returncode == 3, f"exit {done.returncode}: {done.stderr}")


def kinds_of_files():
    trained()
    first = files("w.safetensors")
    x, y = np.load("x.npy"), np.load("y.npy").astype(np.int64)
    np.savez("d.npz", image=x, target=y)
    np.savez_compressed("dc.npz", image=x, target=y.astype(np.int16), other=y)
    safetensors_file.write("d.safetensors", {"target": y, "image": x, "labels": y})
    np.save("fortran.npy", np.asfortranarray(x))
    for data in ("d.npz", "dc.npz", "d.safetensors", "d.npz,target=y.npy", "image=dc.npz,target=dc.npz:other",
                 "image=fortran.npy,target=d.safetensors:labels"):  # fmt: skip
        trained(data=data)
        expect(files("w.safetensors") == first, f"{data}: other bytes")


def other_forms():
    """f64, axes of extent 1 and text are taken with a note, and give the bytes of what they stand for."""
    x, y = np.load("x.npy"), np.load("y.npy").astype(np.int64)
    trained()
    first = files("w.safetensors")
    np.save("wide.npy", x.astype(np.float64))
    np.save("three.npy", x[:, 0])
    np.save("column.npy", y[:, None])
    flat = x.reshape(ROWS, 64)
    np.savetxt("x.csv", flat, delimiter=",", fmt="%.9g", newline="\r\n")
    np.savetxt("named.csv", flat, delimiter=", ", fmt='"%.9g"', header=",".join(f'"a ""{k}"", b"' for k in range(64)), comments="")
    np.savetxt("y.csv", y, delimiter=",")  # 3.000000000000000000e+00
    for data, notes in (("image=wide.npy,target=y.npy", ["wide.npy: f64, rounded to f32, which input image is"]),
                        ("image=three.npy,target=column.npy", ["three.npy: f32[260, 8, 8], taken as f32[260, 1, 8, 8] for input image",
                                                               "column.npy: i64[260, 1], taken as i64[260] for input target"]),
                        ("image=x.csv,target=y.csv", ["x.csv: f32[260, 64], taken as f32[260, 1, 8, 8] for input image", "y.csv: i64[260, 1], taken as i64[260]"]),
                        ("image=named.csv,target=y.npy", ['named.csv: its first line, \'"a ""0"", b","a ', "named.csv: f32[260, 64], taken as"])):  # fmt: skip
        done = trained(data=data)
        lines = [line for line in done.stderr.split("\n") if line]
        expect(len(lines) == len(notes) and all(f"astra-train: note: {note}" in done.stderr for note in notes), f"{data}: {done.stderr}")
        expect(files("w.safetensors") == first, f"{data}: other bytes")
    # A number is rounded once: in the middle of two f32, and a little above by less than f64 tells.
    Path("line.uop").write_text(LINE % "0.0")
    done = tool("astra-compile", "line.uop", "-o", "line.astra", "--train", "--loss=mse", "--optimizer=sgd(lr=0)", "--freeze=mask")
    expect(done.returncode == 0, done.stderr)
    Path("lx.csv").write_text("1.000000059604644775390625000000000000000001,+2,-3e-2,1e-46\n")
    np.save("lx.npy", np.array([[1 + 2**-23, 2, -0.03, 0]], np.float32))
    Path("lt.csv").write_text("16777217,0,0,inf\n")
    np.save("lt.npy", np.array([[16777216, 0, 0, np.inf]], np.float32))
    said = []
    for kind in ("csv", "npy"):
        done = train("--log=line.csv", "--checkpoint-every=1", bundle="line.astra", data=f"x=lx.{kind},target=lt.{kind}", batch=1, epochs=1, out="line.safetensors")
        said.append((done.returncode, done.stdout, done.stderr))
    expect(said[0] == said[1] and said[0][0] == 1 and "the loss is infinite" in said[0][2], str(said))
    Path("lt.csv").write_text("16777217,0,0,0\n")
    np.save("lt.npy", np.array([[16777216, 0, 0, 0]], np.float32))
    sums = []
    for kind in ("csv", "npy"):
        trained("--checkpoint-every=1", bundle="line.astra", data=f"x=lx.{kind},target=lt.{kind}", batch=1, epochs=1, out="line.safetensors")
        sums.append(safetensors_file.read("line.ckpt.safetensors")[1]["data_checksum"])
    expect(sums[0] == sums[1], "text is read as other bits")


def mean_of_an_epoch():
    """The line of an epoch is the mean over its rows, also where the run was stopped within."""
    done = trained("--log=run.csv", "--checkpoint-every=2", batch=60, epochs=2)
    rows = list(csv.DictReader(open("run.csv")))
    sizes = [60] * (ROWS // 60) + [ROWS % 60]
    lines = []
    for epoch in (1, 2):
        losses = [float(r["loss"]) for r in rows if r["epoch"] == str(epoch)]
        lines.append(f"epoch {epoch}/2, loss {sum(v * n for v, n in zip(losses, sizes)) / ROWS:.6g}")
    expect(done.stdout.split("\n")[:-1] == lines, f"{done.stdout}, expected {lines}")
    # Stopped by the kill of a run that has written the checkpoint of step 4 of 5, and gone on.
    whole = files("w.safetensors")
    command = [str(BUILD / "bin/astra-train"), "m.astra", f"--data={DATA}", "--batch=60", "--epochs=100000", "--checkpoint-every=4", "--out=w.safetensors"]
    os.remove("w.ckpt.safetensors")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists("w.ckpt.safetensors"):
        time.sleep(0.001)
    process.kill()
    process.wait()
    _, metadata = safetensors_file.read("w.ckpt.safetensors")
    epoch, step = int(metadata["epoch"]), int(metadata["step"])
    done = trained("--resume=w.ckpt.safetensors", batch=None, epochs=epoch + 1)
    expect(metadata["loss_rows"] == str(min(60 * step, ROWS)), str(metadata))
    resumed = done.stdout.split("\n")[:-1]
    done = trained(batch=60, epochs=epoch + 1)
    expect(resumed == done.stdout.split("\n")[-3:-1], f"{resumed}, without a stop {done.stdout}")
    expect(epoch != 1 or files("w.safetensors") == whole, "other bytes")


def one_run_an_output():
    """A second run with an output of one that is going on is refused; when it has ended or was killed, it is not."""
    words = [f"--data={DATA}", "--batch=8", "--epochs=1000000", "--log=long.csv", "--checkpoint-every=1", "--out=long.safetensors"]
    os.makedirs("far", exist_ok=True)
    if not os.path.lexists("near"):
        os.symlink("far", "near")
        os.symlink("far/long.safetensors", "long.safetensors")  # there is none yet
    first = subprocess.Popen([str(BUILD / "bin/astra-train"), "m.astra", *words, "--checkpoint=far/c.safetensors"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not os.path.exists("far/c.safetensors"):
            expect(first.poll() is None, "the run has ended")
            time.sleep(0.01)
        trained("--log=short.csv", epochs=1)  # other outputs
        sentence = f"%s: process {first.pid} is writing it: wait until it ends, or give another name"
        for options, more, path in ((dict(out="long.safetensors"), [], "long.safetensors"), (dict(out="far/long.safetensors"), [], "far/long.safetensors"),
                                    (dict(out="./far/../long.csv"), [], "./far/../long.csv"),
                                    (dict(), ["--log=long.csv"], "long.csv"), (dict(), ["--log=long.safetensors"], "long.safetensors"),
                                    (dict(), ["--checkpoint-every=1", "--checkpoint=near/c.safetensors", "--resume=near/c.safetensors"], "near/c.safetensors")):  # fmt: skip
            done = train(*more, **options)
            expect(done.returncode == 1 and sentence % path in done.stderr, f"{path}: exit {done.returncode}: {done.stderr}")
    finally:
        first.kill()
        first.communicate()
    expect(os.path.exists("long.csv.lock"), "the killed run has left no lock to take over")
    trained("--log=long.csv", "--checkpoint-every=40", "--checkpoint=near/c.safetensors", out="long.safetensors", epochs=1)
    expect(not [n for n in os.listdir() + os.listdir("far") if n.endswith(".lock") and n[0] in "cl"], "a lock is left")
    trained("--log=/dev/null", epochs=1)  # which every run may write
    with open("said.csv", "w") as said:
        trained("--log=/dev/fd/%d" % said.fileno(), epochs=1, pass_fds=[said.fileno()])
    expect(Path("said.csv").read_text().startswith("step,epoch,"), "the log went elsewhere")


def one_row_under_batch_norm():
    """The statistics of one value: a warning, where a channel has no other values."""

    def bundle(shape, name):
        node = onnx.helper.make_node
        tensor = lambda name, value: onnx.numpy_helper.from_array(np.full(3, value, np.float32), name)
        info = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        graph = onnx.helper.make_graph([node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["y"], "norm")], "g", [info("x")], [info("y")],
                                       [tensor("scale", 1), tensor("bias", 0), tensor("mean", 0), tensor("var", 1)])  # fmt: skip
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), "norm.onnx")
        done = tool("astra-compile", "norm.onnx", "-o", name, "--dim=n=1..8", "--train", "--loss=mse", "--optimizer=sgd(lr=0.1)")
        expect(done.returncode == 0, done.stderr)

    bundle(["n", 3], "rows.astra")
    bundle(["n", 3, 2], "maps.astra")
    np.save("nx.npy", np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32))
    np.save("mx.npy", np.random.default_rng(0).standard_normal((9, 3, 2)).astype(np.float32))
    why = ": batch norm takes the statistics of a channel from one value there"
    for batch, words, sentence in ((4, [], f"warning: the last batch of --data has 1 of 9 rows{why}"), (1, [], f"warning: --batch=1{why}"),
                                   (4, ["--drop-last"], ""), (3, [], ""), (5, [], "")):  # fmt: skip
        done = trained(*words, bundle="rows.astra", data="x=nx.npy,target=nx.npy", batch=batch, epochs=1)
        expect(sentence in done.stderr and (sentence or not done.stderr), f"batch {batch}: {done.stderr}")
        done = trained(*words, bundle="maps.astra", data="x=mx.npy,target=mx.npy", batch=batch, epochs=1)
        expect(not done.stderr, f"maps, batch {batch}: {done.stderr}")


def last_batch():
    """260 rows are 5 batches of 48 and one of 20; 37 batches of 7 and one of 1, which the bundle does not take."""
    lines = {}
    for words in ([], ["--drop-last"]):
        trained("--log=run.csv", *words, batch=48, epochs=1)
        lines[len(words)] = Path("run.csv").read_text().split("\n")[1:-1]
    expect([len(v) for v in lines.values()] == [6, 5], str(lines))
    expect(lines[0][:5] == lines[1], "--drop-last changes the steps before")
    done = train(batch=7)
    expect(done.returncode == 2 and "the last batch has 1, and the bundle takes 4 to 64 rows of input image: give --drop-last" in done.stderr, done.stderr)
    trained("--drop-last", batch=7)
    # A bundle that takes multiples of 8 from 8 on: 260 rows end in 4 or in 20.
    recipe = [w for w in RECIPE if not w.startswith("--dim")]
    compiled("eights.astra", "--dim=batch=8*eight", "--dim=eight=1..8", recipe=recipe)
    for batch, sentence in ((12, "--batch=12: axis 0 of input image is 12; it must be a multiple of 8"),
                            (16, "the last batch has 4, and the bundle takes 8 to 64 rows of input image: give --drop-last"),
                            (24, "260 rows, so the last batch has 20 (give --drop-last or another --batch): axis 0 of input image is 20; it must be a multiple of 8")):  # fmt: skip
        done = train(bundle="eights.astra", batch=batch)
        expect(done.returncode == 2 and sentence in done.stderr, f"{batch}: exit {done.returncode}: {done.stderr}")
    trained("--drop-last", bundle="eights.astra", batch=16)


# ---- stopped


def killed_and_resumed():
    flags = ["--seed=7", "--log=run.csv", "--checkpoint-every=9", EVAL]
    begin = time.monotonic()
    trained(*flags, epochs=24, batch=5)
    whole, took = files("w.safetensors", "run.csv", "w.ckpt.safetensors"), time.monotonic() - begin
    for name in ("w.safetensors", "run.csv", "w.ckpt.safetensors"):
        os.remove(name)
    rng, kills = random.Random(1), 0
    while True:
        more = ["--resume=w.ckpt.safetensors"] if os.path.exists("w.ckpt.safetensors") else []
        words = [f"--data={DATA}", "--batch=5", "--epochs=24", "--out=w.safetensors", *flags, *more]
        process = subprocess.Popen([str(BUILD / "bin/astra-train"), "m.astra", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(rng.uniform(0.02, 0.25) * took if kills < 12 else None)
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        said = process.communicate()[1].decode()
        if process.returncode == 0 and kills < 2:  # the machine was busy while it was measured
            took /= 2
            for name in ("w.safetensors", "run.csv", "w.ckpt.safetensors"):
                os.remove(name)
        elif process.returncode == 0:
            break
        else:
            expect(process.returncode == -9, said)
    expect(kills >= 2, f"{kills} kills")
    expect(files("w.safetensors", "run.csv", "w.ckpt.safetensors") == whole, f"after {kills} kills: other bytes")
    junk = [n for n in os.listdir() if ".tmp-" in n]
    for name in junk:  # of a checkpoint that was being written
        os.remove(name)
    expect(len(junk) <= kills, str(junk))


def every_step_resumed():
    """From the checkpoint of each step to the end: the last step of an epoch and the end among them."""
    flags = ["--seed=4", "--log=run.csv", EVAL]
    trained(*flags, batch=64, epochs=2, out="a.safetensors")
    whole = files("a.safetensors", "run.csv")
    for every in range(1, 12):
        for stop in (1, 2):
            trained(*flags, f"--checkpoint-every={every}", batch=64, epochs=stop, out="b.safetensors")
            trained(*flags[1:], "--resume=b.ckpt.safetensors", batch=None, epochs=2, out="b.safetensors")
            expect(files("b.safetensors", "run.csv") == whole, f"every {every}, stopped after epoch {stop}: other bytes")


def more_epochs():
    flags = ["--seed=7", "--log=run.csv"]
    trained(*flags, epochs=4)
    whole = files("w.safetensors", "run.csv")
    trained(*flags, "--checkpoint-every=1000000", epochs=1)
    trained("--resume=w.ckpt.safetensors", "--log=run.csv", batch=None, epochs=4)
    expect(files("w.safetensors", "run.csv") == whole, "other bytes")


def full_disk():
    trained("--checkpoint-every=3", batch=64, epochs=1)
    before = files("w.ckpt.safetensors", "w.safetensors")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = train("--resume=w.ckpt.safetensors", "--checkpoint-every=3", batch=None, epochs=3, preexec_fn=limit)
    expect(done.returncode == 1 and "w.ckpt.safetensors: File too large" in done.stderr, f"exit {done.returncode}: {done.stderr}")
    expect(files("w.ckpt.safetensors", "w.safetensors") == before, "what was there is not as it was")
    expect(not [n for n in os.listdir() if ".tmp-" in n], "a temporary file is left")
    done = train("--log=/dev/full", batch=64)
    expect(done.returncode == 1 and "/dev/full: No space left on device" in done.stderr, done.stderr)


# ---- no numbers


def not_a_number():
    recipe = [*RECIPE[:7], "--optimizer=sgd(lr=1e20)"]
    compiled("taps.astra", f"--target=cpu:{LEVELS[0]}", "--taps=.*", recipe=recipe)
    done = train("--checkpoint-every=1", "--log=run.csv", bundle="taps.astra")
    expect(done.returncode == 1 and "step 2 (epoch 1): the loss is nan; to learn which value is the first, compile with" in done.stderr
           and "; w.ckpt.safetensors is of a step before" in done.stderr, done.stderr)  # fmt: skip
    _, metadata = safetensors_file.read("w.ckpt.safetensors")
    expect((metadata["epoch"], metadata["step"]) == ("1", "1"), str(metadata))
    expect(Path("run.csv").read_text().split("\n")[2].startswith("2,1,nan,"), "the log does not end with the step")
    sentence = "step 2 (epoch 1): the loss is nan; the first value with a NaN is '%s'; the first value that is not finite is '%s'"
    for words in (["--resume=w.ckpt.safetensors", "--log=run.csv"], []):
        done = train("--find-nan", *words, bundle="taps.astra")
        expect(done.returncode == 1 and sentence % bad_values() in done.stderr, f"{bad_values()}: {done.stderr}")
    done = train("--find-nan")
    expect(done.returncode == 1 and "compile the model with --taps='.*' too" in done.stderr, done.stderr)
    trained(out="a.safetensors")
    compiled("t.astra", f"--target=cpu:{LEVELS[0]}", "--taps=.*")
    trained("--find-nan", bundle="t.astra")
    expect(files("a.safetensors") == files("w.safetensors"), "taps change bits")


def bad_values():
    """In the order of the file's nodes: the first value of step 2 with a NaN, and the first that is not finite."""
    rows = permutation(0, 1, ROWS)[8:16]
    np.save("bx.npy", np.load("x.npy")[rows])
    np.save("by.npy", np.load("y.npy")[rows].astype(np.int64))
    states = []
    for k, (name, value) in enumerate(safetensors_file.read("w.ckpt.safetensors")[0].items()):
        np.save(f"s{k}.npy", value)
        states.append(f"--set-state={name}=s{k}.npy")
    names = [name for node in onnx.load(DIGITS / "digits.onnx").graph.node for name in node.output]
    names = [n for n in names if n in tool("astra-inspect", "taps.astra").stdout.split("entry train_step")[1].split("reads")[0]]
    done = tool("astra-run", "taps.astra", "--entry=train_step", "--input=image=bx.npy", "--input=target=by.npy", *states,
                *(f"--output={n}=o{k}.npy" for k, n in enumerate(names)))  # fmt: skip
    expect(done.returncode == 0, done.stderr)
    values = {n: np.load(f"o{k}.npy") for k, n in enumerate(names)}
    return next(n for n in names if np.isnan(values[n]).any()), next(n for n in names if not np.isfinite(values[n]).all())


def state_that_breaks():
    """A finite loss whose gradient is none: of the square root at 0."""
    Path("root.uop").write_text(ROOT_OF_ZERO)
    done = tool("astra-compile", "root.uop", "-o", "root.astra", "--train", "--loss=mse", "--optimizer=sgd(lr=1)", "--taps=z")
    expect(done.returncode == 0, done.stderr)
    np.save("dx.npy", np.zeros((1, 4), np.float32))
    np.save("dt.npy", np.ones((1, 4), np.float32))
    done = train("--find-nan", bundle="root.astra", data="x=dx.npy,target=dt.npy", batch=1)
    expect(done.returncode == 1 and "step 1 (epoch 1): the loss is a number, and the state 'w' has a NaN after the step" in done.stderr, done.stderr)
    done = train(bundle="root.astra", data="x=dx.npy,target=dt.npy", batch=1)
    expect(done.returncode == 1 and "step 2 (epoch 2): the loss is nan; to learn" in done.stderr, done.stderr)


def states_that_are_written():
    """Where the last step breaks a state and its loss is a number, no file gets that; what was infinite before may be."""

    def attempt(module, loss, optimizer, x, t, *words, epochs=1):
        Path("small.uop").write_text(module)
        done = tool("astra-compile", "small.uop", "-o", "small.astra", "--train", f"--loss={loss}", f"--optimizer={optimizer}", "--taps=z")
        expect(done.returncode == 0, done.stderr)
        np.save("dx.npy", np.full((1, 4), x, np.float32))
        np.save("dt.npy", np.full((1, 4), t, np.float32))
        return train(*words, bundle="small.astra", data="x=dx.npy,target=dt.npy", batch=1, epochs=epochs, out="small.safetensors")

    for case, what in (((ROOT_OF_ZERO, "mse", "sgd(lr=1)", 0, 1), "'w' has a NaN"),
                       ((LINE % "0.0", "l1", "lion(lr=2e38)", 1e-10, -1e30), "'w' has an infinite element"),
                       ((LINE % "0.0", "l1", "adam", 4e20, -1e20), "'w.squares' has an infinite element")):  # fmt: skip
        last = 1 + case[2].startswith("lion")
        for words in ([], ["--find-nan"], ["--checkpoint-every=1"]):
            done = attempt(*case, *words, epochs=last)
            sentence = f"step {last} (epoch {last}): the loss is a number, and the state {what} after the step: its gradient or its update does"
            expect(done.returncode == 1 and sentence in done.stderr, f"exit {done.returncode}: {done.stderr}")
            expect(("to learn which step is the first, compile with --taps='.*' and give --find-nan" in done.stderr) == (words[:1] != ["--find-nan"]), done.stderr)
            expect(not Path("small.safetensors").exists(), "broken weights were written")
            kept = last == 2 and words == ["--checkpoint-every=1"]
            expect(Path("small.ckpt.safetensors").exists() == kept, f"{case} {words}: a checkpoint is there or is not")
        if kept:
            expect("; small.ckpt.safetensors is of a step before" in done.stderr, done.stderr)
            found, metadata = safetensors_file.read("small.ckpt.safetensors")
            expect(metadata["step"] == "1" and (found["w"] == np.float32(-2e38)).all(), str(metadata))
            os.remove("small.ckpt.safetensors")
    done = attempt(LINE % "-inf", "mse", "sgd", 1, 0)
    expect(done.returncode == 0, done.stderr)
    done = attempt(LINE % "nan", "mse", "sgd", 1, 0)
    expect(done.returncode == 1 and "the state 'mask' has a NaN before the first step" in done.stderr, done.stderr)


def outputs_are_no_inputs():
    names = ["m.astra", "x.npy", "y.npy", "ex.npy", "ey.npy", "w.safetensors"]
    trained("--checkpoint-every=40")
    os.link("x.npy", "linked.npy") if not os.path.exists("linked.npy") else None
    np.savez("all.npz", image=np.load("x.npy"), target=np.load("y.npy"))
    before = files(*names, "w.ckpt.safetensors", "all.npz")
    for options, words, sentence in (
        (dict(out="x.npy"), [], "--out=x.npy would overwrite the file of --data=x.npy: give another name"),
        (dict(out="./linked.npy"), [], "--out=./linked.npy would overwrite the file of --data=x.npy"),
        (dict(), ["--log=y.npy"], "--log=y.npy would overwrite the file of --data=y.npy"),
        (dict(), [EVAL, "--log=ey.npy"], "--log=ey.npy would overwrite the file of --eval=ey.npy"),
        (dict(data="all.npz:image"), ["--log=all.npz"], "--log=all.npz would overwrite the file of --data=all.npz"),
        (dict(data="image=all.npz:image,target=y.npy", out="all.npz"), [], "--out=all.npz would overwrite the file of --data=all.npz"),
        (dict(out="m.astra"), [], "--out=m.astra would overwrite the file of the bundle m.astra"),
        (dict(out="new"), ["--log=./new"], "--out=new and --log=./new are one file: give two names"),
        (dict(out="new"), ["--checkpoint=new", "--checkpoint-every=1"], "--out=new and --checkpoint=new are one file"),
        (dict(out="new.safetensors"), ["--log=new.ckpt.safetensors", "--checkpoint-every=1"], "--log=new.ckpt.safetensors and --checkpoint=new.ckpt"),
        (dict(out="new"), ["--weights=w.safetensors", "--log=w.safetensors"], "--log=w.safetensors would overwrite the file of --weights"),
        (dict(out="w.ckpt.safetensors"), ["--resume=w.ckpt.safetensors"], "--out=w.ckpt.safetensors would overwrite the file of --resume"),
    ):
        done = train(*words, **options)
        expect(done.returncode == 2 and sentence in done.stderr, f"{options} {words}: exit {done.returncode}: {done.stderr}")
        expect(files(*names, "w.ckpt.safetensors", "all.npz") == before and not Path("new").exists(), f"{options} {words}: files are not as they were")
    trained("--weights=w.safetensors", "--log=/dev/null", batch=64, epochs=1)  # in its place
    expect(files("w.safetensors") != before[5:6], "the weights are not those of another epoch")
    for name, words, sentence in (
        ("astra-compile", ["m.uop", "-o", "m.uop"], "-o m.uop would overwrite the file of the model m.uop"),
        ("astra-compile", ["m.uop", "-o", "w.safetensors", "--weights=w.safetensors"], "-o w.safetensors would overwrite the file of --weights"),
        ("astra-run", ["m.astra", "--input=image=x.npy", "--output=linear=x.npy"], "--output linear=x.npy would overwrite the file of --input image=x.npy"),
        ("astra-run", ["m.astra", "--input=image=x.npy", "--trace=m.astra"], "--trace=m.astra would overwrite the file of the bundle m.astra"),
        ("astra-run", ["m.astra", "--states=s", "--trace=n", "--save-states=n"], "--trace=n and --save-states=n are one file"),
    ):
        Path("m.uop").write_text(LINE % "0.0")
        done = tool(name, *words)
        expect(done.returncode == 2 and sentence in done.stderr, f"{words}: exit {done.returncode}: {done.stderr}")


LINE = """module @line {
  param @w : f32[1, 4] = splat 0.0
  param @mask : f32[1, 4] = splat %s
  entry @main(%%x : f32[1, 4]) -> (%%y : f32[1, 4]) {
    %%0 = mul %%x, @w
    %%1 = exp @mask
    %%2 = tap %%0 name=z
    %%y = mul %%2, %%1
  }
}
"""

ROOT_OF_ZERO = """module @root {
  param @w : f32[1, 4] = splat 0.5
  entry @main(%x : f32[1, 4]) -> (%y : f32[1, 4]) {
    %0 = mul %x, @w
    %1 = tap %0 name=z
    %y = sqrt %1
  }
}
"""


# ---- refused


def broken(name, change):
    arrays, _ = safetensors_file.read("good.safetensors")
    safetensors_file.write(name, arrays, change)
    return name


def overlapping(header):
    header["classify.bias"]["data_offsets"] = header["features.4.bias"]["data_offsets"]
    header["classify.bias"]["shape"] = header["features.4.bias"]["shape"]


def one_renamed(header):
    header["somebody"] = header.pop("classify.bias")


def other_type(header):
    header["classify.bias"]["dtype"] = "I32"


def other_shape(header):
    header["classify.bias"]["shape"] = [5, 2]


def unknown_type(header):
    header["classify.bias"]["dtype"] = "F33"


def too_large(header):
    header["classify.bias"]["shape"] = [2**40, 2**40]


def negative(header):
    header["classify.bias"]["shape"] = [-10]


def other_key(header):
    header["classify.bias"]["strides"] = [1]


def leaving(header):
    header["classify.weight"]["data_offsets"][1] += 4
    header["classify.weight"]["shape"] = [header["classify.weight"]["data_offsets"][1] // 4]


def twice(header):
    import json

    text = json.dumps(header)
    return text[:-1] + ', "classify.bias": ' + json.dumps(header["classify.bias"]) + "}"


MALFORMED = [
    (overlapping, "begins at"),
    (one_renamed, "has no 'classify.bias', which is a weight of m.astra"),
    (other_type, "'classify.bias' is i32[10], and in m.astra it is f32[10]"),
    (other_shape, "'classify.bias' is f32[5, 2], and in m.astra it is f32[10]"),
    (unknown_type, "'classify.bias' is of the dtype 'F33', which is not known"),
    (too_large, "the shape of 'classify.bias' is too large"),
    (negative, "expected a whole number before '-10"),
    (other_key, "'classify.bias' has a key 'strides', which is not known"),
    (leaving, "data_offsets are"),
    (twice, "'classify.bias' is there twice"),
    (lambda h: "[1, 2]", "expected '{'"),
    (lambda h: "", "expected '{' at its end"),
    (lambda h: '{"a": {"dtype": "F32", "shape": [[1]], "data_offsets": [0, 4]}}', "expected a whole number before '[1]]"),
    (lambda h: '{"a": {"dtype": "F32", "shape": [1]}}', "'a' lacks dtype, shape or data_offsets"),
    (lambda h: '{"a\\ud800": {}}', "half of a surrogate pair"),
    (lambda h: "{" + '"a":' * 100000, "expected '{'"),
    (lambda h: "{} {}", "something follows the object"),
]


def malformed_weights():
    trained(out="good.safetensors")
    before = files("good.safetensors")
    for change, sentence in MALFORMED:
        done = train("--weights=" + broken("bad.safetensors", change), out="good.safetensors")
        expect(done.returncode == 1 and "bad.safetensors: " in done.stderr and sentence in done.stderr, f"{sentence}: {done.stderr}")
    whole = Path("good.safetensors").read_bytes()
    for size in [*range(0, 40, 3), 200, 1000, len(whole) - 1]:
        Path("bad.safetensors").write_bytes(whole[:size])
        done = train("--weights=bad.safetensors", out="good.safetensors")
        expect(done.returncode == 1 and "bad.safetensors: " in done.stderr, f"{size} bytes: {done.stderr}")
    Path("bad.safetensors").write_bytes(b"\xff" * 7 + b"\x7f" + whole[8:])
    done = train("--weights=bad.safetensors", out="good.safetensors")
    expect(done.returncode == 1 and "its header leaves the file" in done.stderr, done.stderr)
    expect(files("good.safetensors") == before, "the weights that were there are not as they were")


def weights_to_begin_with():
    """The model's own weights change nothing; others do."""
    trained()
    first = files("w.safetensors")
    names = [n for n in safetensors_file.read("w.safetensors")[0]]
    states = [f"--get-state={n}=s{k}.npy" for k, n in enumerate(names)]
    np.save("b.npy", np.load("ex.npy")[:8])
    expect(tool("astra-run", "m.astra", "--input=image=b.npy", *states).returncode == 0, "astra-run")
    safetensors_file.write("own.safetensors", {n: np.load(f"s{k}.npy") for k, n in enumerate(names)})
    trained("--weights=own.safetensors")
    expect(files("w.safetensors") == first, "the model's own weights give other bytes")
    trained("--weights=w.safetensors", out="second.safetensors")
    expect(files("second.safetensors") != first, "other weights change nothing")
    # The same in a bundle that begins with them.
    compiled("o.astra", f"--target=cpu:{LEVELS[0]}", "--weights=w.safetensors")
    trained(bundle="o.astra", out="third.safetensors")
    expect(files("second.safetensors") == files("third.safetensors"), "--weights of astra-compile gives other bytes")


def compile_refuses():
    trained()
    arrays, _ = safetensors_file.read("w.safetensors")
    bias = arrays["classify.bias"]
    cases = [({**arrays, "more": bias}, "has 'more', which is no weight of the model"),
             ({**arrays, "classify.bias.ema": bias}, "has 'classify.bias.ema', which is no weight of the model"),  # which no optimizer keeps
             ({n: v for n, v in arrays.items() if v is not bias}, "has no 'classify.bias', which is a weight of the model: --freeze='classify.bias' keeps"),
             ({**arrays, "classify.bias": bias.astype(np.float64)}, "'classify.bias' has another type than in the model, where it is f32[10]"),
             ({**arrays, "classify.bias": bias[:5]}, "'classify.bias' has another shape than in the model, where it is f32[10]")]  # fmt: skip
    for content, sentence in cases:
        safetensors_file.write("bad.safetensors", content)
        done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "bad.astra", "--dim=batch=1..8", "--weights=bad.safetensors")
        expect(done.returncode == 1 and sentence in done.stderr, f"{sentence}: {done.stderr}")
        expect(not os.path.exists("bad.astra"), "a bundle is written")
    safetensors_file.write("part.safetensors", {n: v for n, v in arrays.items() if v is not bias})
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "part.astra", "--dim=batch=1..8", "--weights=part.safetensors", "--freeze=classify.bias")
    expect(done.returncode == 0, done.stderr)


def bad_data():
    x, y = np.load("x.npy"), np.load("y.npy")
    save = lambda name, array: np.save(name, array)
    save("short.npy", y[:-1])
    save("flat.npy", x.reshape(ROWS, 64))
    save("wide.npy", np.zeros((ROWS, 1, 8, 9), np.float32))
    double = x.astype(np.float64)
    double[1, 0, 0, 0] = 1e300
    save("double.npy", double)
    save("half.npy", x.astype(np.float16))
    for name, text in (("cells", "1,2\n3,x\n"), ("lines", "a,b,c\n1,2,3\n\n4,5\n"), ("narrow", "1,2,3\n4,5,6\n"), ("part", "2.5\n"), ("empty", "only,names\n")):
        Path(name + ".csv").write_text(text)
    hole = x.copy()
    hole[17, 0, 3, 3] = np.nan
    save("hole.npy", hole)
    label = y.astype(np.int64)
    label[123] = 10
    save("ten.npy", label)
    label[123] = -1
    save("negative.npy", label)
    label[123] = -100  # which cross_entropy ignores
    save("ignored.npy", label)
    save("big.npy", np.full(ROWS, 2**63, np.uint64))
    save("none.npy", x[:0])
    save("nobody.npy", y[:0])
    Path("no.npy").write_bytes(b"nothing")
    packed = bytearray(open(_npz(x, y), "rb").read())
    packed[2000] ^= 1
    Path("bad.npz").write_bytes(packed)
    cases = [
        ("image=x.npy", 2, "nothing is given for input 'target': add target=FILE; train_step takes image : f32[4..64, 1, 8, 8], target : i64[4..64]"),
        ("image=x.npy,y=y.npy", 2, "there is no input 'y'; train_step takes"),
        ("image=x.npy,target=y.npy,image=x.npy", 2, "'image' is given twice"),
        ("x.npy", 2, "'x.npy' is not INPUT=FILE"),
        ("image=x.npy,target=short.npy", 1, "short.npy has 259 rows for target, and x.npy has 260 for image"),
        ("image=flat.npy,target=y.npy", 1, "flat.npy: is f32[260, 64]; a batch of input image is f32[4..64, 1, 8, 8]"),
        ("image=wide.npy,target=y.npy", 1, "wide.npy: is f32[260, 1, 8, 9]"),
        ("image=double.npy,target=y.npy", 1, "double.npy: element 64 is 1e+300, which is beyond f32"),
        ("image=half.npy,target=y.npy", 1, "half.npy: is f16[260, 1, 8, 8]"),
        ("image=cells.csv,target=y.npy", 1, "cells.csv: line 2, cell 2: 'x' is no number that f32 holds; cells stand between commas"),
        ("image=lines.csv,target=y.npy", 1, "lines.csv: line 4 has 2 cells, those before have 3"),
        ("image=narrow.csv,target=y.npy", 1, "narrow.csv: is f32[2, 3]; a batch of input image is f32[4..64, 1, 8, 8]"),
        ("image=x.npy,target=part.csv", 1, "part.csv: line 1, cell 1: '2.5' is no number that i64 holds"),
        ("image=empty.csv,target=y.npy", 1, "empty.csv: is f32[0, 0]"),
        ("image=hole.npy,target=y.npy", 1, "hole.npy: row 17 (from 0) has a NaN"),
        ("image=x.npy,target=ten.npy", 1, "ten.npy: row 123 (from 0) is of class 10; the loss takes 0 to 9"),
        ("image=x.npy,target=negative.npy", 1, "negative.npy: row 123 (from 0) is of class -1"),
        ("image=x.npy,target=big.npy", 1, "element 0 is 9223372036854775808, which i64 does not hold"),
        ("image=none.npy,target=nobody.npy", 1, "has no rows"),
        ("image=no.npy,target=y.npy", 1, "no.npy: is not a .npy file"),
        ("image=nowhere.npy,target=y.npy", 1, "nowhere.npy: No such file"),
        ("bad.npz", 1, "bad.npz: its member 'image.npy' "),
        ("image=packed.npz:labels,target=y.npy", 1, "has no array 'labels'; it has image, target"),
    ]
    trained()
    before = files("w.safetensors")
    for data, code, sentence in cases:
        done = train("--log=never.csv", data=data)
        expect(done.returncode == code and sentence in done.stderr, f"{data}: exit {done.returncode}: {done.stderr}")
        expect(not os.path.exists("never.csv"), f"{data}: a log is begun")
        done = train(f"--eval={data}", "--log=never.csv")
        where = sentence.replace("train_step", "eval")
        expect(done.returncode == code and where in done.stderr, f"--eval {data}: exit {done.returncode}: {done.stderr}")
    expect(files("w.safetensors") == before, "the weights that were there are not as they were")
    trained(data="image=x.npy,target=ignored.npy")


def _npz(x, y):
    np.savez_compressed("packed.npz", image=x, target=y)
    return "packed.npz"


def resumed_otherwise():
    flags = ["--log=run.csv", EVAL]
    trained(*flags, "--seed=3", "--checkpoint-every=10")
    weights, log = files("w.safetensors", "run.csv")
    np.save("z.npy", np.load("x.npy")[::-1])
    cases = [
        ([*flags, "--batch=10"], 3, DATA, "the run that made it had another --batch: give the same, or begin a new run ('8', now '10')"),
        ([*flags, "--seed=4"], 3, DATA, "another --seed"),
        ([*flags, "--drop-last"], 3, DATA, "--drop-last otherwise"),
        ([*flags], 3, "image=z.npy,target=y.npy", "other values in --data"),
        ([*flags], 3, "image=ex.npy,target=ey.npy", "other --data"),
        ([flags[0]], 3, DATA, "other --eval"),
        ([EVAL], 3, DATA, "a --log"),
        ([*flags], 1, DATA, "is of epoch 3, and --epochs=1 ends before it"),
    ]
    for words, epochs, data, sentence in cases:
        done = train("--resume=w.ckpt.safetensors", *words, batch=None, epochs=epochs, data=data)
        expect(done.returncode in (1, 2) and sentence in done.stderr, f"{words}: exit {done.returncode}: {done.stderr}")
        expect(files("w.safetensors", "run.csv") == [weights, log], f"{words}: files are not as they were")
    Path("run.csv").write_bytes(log.replace(b"2,1,", b"2,9,", 1))
    done = train("--resume=w.ckpt.safetensors", *flags, batch=None, epochs=3)
    expect(done.returncode == 1 and "run.csv: is not the log that the checkpoint was made with" in done.stderr, done.stderr)
    done = train("--resume=w.safetensors", batch=None, out="n.safetensors")
    expect(done.returncode == 1 and "its metadata 'batch' is missing or no number" in done.stderr, done.stderr)
    compiled("sgd.astra", f"--target=cpu:{LEVELS[0]}", recipe=[*RECIPE[:7], "--optimizer=sgd(lr=1e-3)"])
    Path("run.csv").write_bytes(log)
    done = train("--resume=w.ckpt.safetensors", *flags, batch=None, epochs=3, bundle="sgd.astra")
    expect(done.returncode == 1 and "which is no state of sgd.astra" in done.stderr, done.stderr)
    expect(files("run.csv") == [log], "the log is not as it was")


TWO = """module @two {
  param @frozen : f32[3] = splat 0.0
  param @first : f32[3, 2] = splat 0.25
  param @second : f32[2, 3] = splat 0.25
  entry @main(%x : f32[1, 3]) -> (%y : f32[1, 3]) {
    %0 = contract %x[i, k], @first[k, j] -> [i, j] sum [k]
    %1 = contract %0[i, k], @second[k, j] -> [i, j] sum [k]
    %2 = reshape @frozen [1, 3]
    %y = add %1, %2
  }
}
"""


def uniform(seed, place, count):
    """What docs/training.md says of the parameter at that place among the model's."""
    words = [threefry((seed, 2**30 + place), (i >> 1, 0))[i & 1] for i in range(count)]
    return (np.array(words, np.uint32) >> 8).astype(np.float32) * np.float32(2**-24)


def drawn_weights():
    """The entry init: the numbers that docs/training.md names, on every level; the run begins with them."""
    Path("two.uop").write_text(TWO)
    flags = ["--train", "--loss=mse", "--optimizer=sgd(lr=1)", "--freeze=frozen"]

    def compile(*init):
        return tool("astra-compile", "two.uop", "-o", "two.astra", "--target=" + ",".join("cpu:" + v for v in LEVELS), *flags, *init)

    done = compile("--init=sec*=kaiming_uniform(transposed=1)", "--init=*=uniform(low=-2, high=3)")
    expect(done.returncode == 0, done.stderr)

    np.save("x.seed.npy", np.array(7, np.uint32))
    for level in LEVELS:
        done = tool("astra-run", "two.astra", "--entry=init", "--input=seed=x.seed.npy", "--get-state=first=f.npy", "--get-state=second=s.npy", "--level=" + level)
        expect(done.returncode == 0, done.stderr)
        bound = np.float32(np.sqrt(3) * np.sqrt(2) / np.sqrt(2))  # of two inputs
        twice = np.float32(2 * np.sqrt(3) * np.sqrt(2) / np.sqrt(2))
        expect(np.load("f.npy").tobytes() == (uniform(7, 1, 6) * np.float32(5) - np.float32(2)).tobytes(), f"{level}: first has other bytes")
        expect(np.load("s.npy").tobytes() == (uniform(7, 2, 6) * twice - bound).tobytes(), f"{level}: second has other bytes")
    # A rate of zero leaves what was drawn.
    done = tool("astra-compile", "two.uop", "-o", "two.astra", "--train", "--loss=mse", "--optimizer=sgd(lr=0)", "--init=first=normal", "--freeze=frozen")
    expect(done.returncode == 0, done.stderr)
    np.save("nx.npy", np.ones((1, 3), np.float32))
    rows = {}
    for name, words in (("none", []), ("one", ["--init", "--seed=1"]), ("same", ["--init", "--seed=1"]), ("two", ["--init", "--seed=2"])):
        trained(*words, bundle="two.astra", data="x=nx.npy,target=nx.npy", batch=1, epochs=1, out="n.safetensors")
        rows[name], _ = safetensors_file.read("n.safetensors")
    of = lambda name: rows[name]["first"].tobytes()
    expect(of("one") == of("same") and len({of("none"), of("one"), of("two")}) == 3, "the weights are no function of the seed, or none of it")
    expect(all((row["second"] == 0.25).all() for row in rows.values()), "a weight that no pattern matches is not as it was")
    for words, sentence in ((["--init=firs=normal"], "'firs' is for no parameter that is trained"),
                            (["--init=*=normal", "--init=second=uniform"], "'second' is for no parameter that is trained and that no pattern before it"),
                            (["--init=frozen=normal"], "'frozen' is for no parameter that is trained"),
                            (["--init=normal"], "'normal' is not PATTERN=RECIPE"),
                            (["--init=[=normal"], "'[' is no pattern"),
                            (["--init=*=diagonal"], "there is no initializer 'diagonal'; there are: default, constant, uniform")):  # fmt: skip
        done = compile(*words)
        expect(done.returncode != 0 and sentence in done.stderr, f"{words}: exit {done.returncode}: {done.stderr}")
    flags.remove("--freeze=frozen")
    done = compile("--init=*=kaiming_normal")
    expect(done.returncode != 0 and "found 'frozen' f32[3]" in done.stderr, done.stderr)


# The parameters of the digits network in the order of the file, and the inputs that feed an element of their product's output.
INPUTS = {"features.0.weight": 9, "features.2.weight": None, "features.2.bias": None, "features.4.weight": 144, "features.4.bias": 144,
          "classify.weight": 128, "classify.bias": 128}  # fmt: skip


def default_weights(aarch64):
    """Without --init the entry draws by each parameter's role, to the bit as documented; other states stay."""
    shapes = {w.name: tuple(w.dims) for w in onnx.load(DIGITS / "digits.onnx").graph.initializer}
    wanted = {}
    for place, (name, inputs) in enumerate(INPUTS.items()):
        bound, count = inputs and inputs**-0.5, int(np.prod(shapes[name]))
        drawn = np.full(count, name.endswith("weight"), np.float32)  # of the norm
        if inputs:
            drawn = uniform(7, place, count) * np.float32(2 * bound) - np.float32(bound)
        wanted[name] = drawn.reshape(shapes[name]).tobytes()
    np.save("x.seed.npy", np.array(7, np.uint32))
    np.save("mean.npy", np.arange(16, dtype=np.float32))
    np.save("step.npy", np.array(5))
    for level in LEVELS:
        done = tool("astra-run", "m.astra", "--entry=init", "--input=seed=x.seed.npy", "--level=" + level, "--set-state=step=step.npy", "--set-state=features.2.bias.mean=mean.npy",
                    "--get-state=step=s.npy", "--get-state=features.2.bias.mean=b.npy", *(f"--get-state={n}={n}.npy" for n in INPUTS))  # fmt: skip
        expect(done.returncode == 0, done.stderr)
        for name in INPUTS:
            expect(np.load(f"{name}.npy").tobytes() == wanted[name], f"{level}: {name} has other bytes")
        expect(files("s.npy", "b.npy") == files("step.npy", "mean.npy"), f"{level}: another state is not as it was")
    trained("--init", "--seed=7", EVAL, "--log=run.csv", epochs=6)
    first = files("w.safetensors", "run.csv")
    losses = [float(r["eval_loss"]) for r in csv.DictReader(open("run.csv")) if r["eval_loss"]]
    expect(losses[-1] < losses[0] / 2, f"nothing is learned from the beginning: {losses}")
    if aarch64:
        line = ["qemu-aarch64", aarch64, *command("--init", "--seed=7", EVAL, "--log=run.csv", epochs=6)[1:]]
        emulated(line, ["w.safetensors", "run.csv"], first, "aarch64")


NO_ROLES = """module @kept {
  param @a : f32[2, 3] = splat 0.5
  param @b : f32[2, 3] = splat 0.5
  param @c : f32[2, 3] = splat 0.5
  param @d : f32[2, 3] = splat 0.5
  entry @main(%x : f32[2, 3]) -> (%y : f32[2, 3]) {
    %0 = mul %x, @a
    %1 = add %0, @b
    %2 = mul %1, @c
    %y = add %2, @d
  }
}
"""


def weights_of_no_role():
    """They keep the model's numbers, and a note names them; the entry is there, even where it draws nothing."""
    Path("kept.uop").write_text(NO_ROLES)
    np.save("kx.npy", np.ones((2, 3), np.float32))
    for words, note in (([], "in 4 parameters of no role that the initializer default knows: 'a', 'b', 'c' and 1 more; --init=NAME=RECIPE draws such"),
                        (["--init=b=normal", "--init=*=default"], "in 3 parameters of no role that the initializer default knows: 'a', 'c', 'd'; "),
                        (["--init=b=normal", "--init=c=default"], "in 1 parameter of no role that the initializer default knows: 'c'; "),
                        (["--init=b=normal"], None)):  # fmt: skip
        done = tool("astra-compile", "kept.uop", "-o", "kept.astra", "--train", "--loss=mse", "--optimizer=sgd(lr=0)", *words)
        expect(done.returncode == 0 and (note in done.stderr if note else not done.stderr), f"{words}: exit {done.returncode}: {done.stderr}")
        trained("--init", bundle="kept.astra", data="x=kx.npy,target=kx.npy", batch=2, epochs=1, out="k.safetensors")
        found, _ = safetensors_file.read("k.safetensors")
        drawn = [name for name in "abcd" if not (found[name] == 0.5).all()]
        expect(drawn == ["b"] * bool(words), f"{words}: {drawn} are drawn")


def without_init(bundle):
    """A bundle whose entries are those of --train, but for init."""
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "m2.astra", "--target=cpu:" + LEVELS[0], "--save-temps=stages", *RECIPE)
    expect(done.returncode == 0, done.stderr)
    head, _, rest = Path("stages/train.uop").read_text().partition("  entry @init")
    _, _, rest = rest.partition("\n  }\n")
    Path("stages/less.uop").write_text(head + rest)
    done = tool("astra-compile", "stages/less.uop", "-o", bundle, "--target=cpu:" + LEVELS[0])
    expect(done.returncode == 0, done.stderr)


def other_refusals():
    done = tool("astra-compile", DIGITS / "digits.onnx", "-o", "plain.astra", "--dim=batch=1..8")
    expect(done.returncode == 0, done.stderr)
    without_init("less.astra")
    damaged = bytearray(Path("m.astra").read_bytes())
    damaged[len(damaged) * 3 // 4] ^= 1
    Path("damaged.astra").write_bytes(damaged)
    cases = [
        (dict(bundle="damaged.astra"), [], 1, "damaged.astra: "),
        (dict(bundle="plain.astra"), [], 1, "plain.astra: has no entry train_step: compile the model with --train"),
        (dict(bundle="x.npy"), [], 1, "x.npy"),
        (dict(batch=65), [], 2, "--batch=65: the bundle takes 4 to 64 rows of input image"),
        (dict(batch=None), [], 2, "give --batch=N"),
        (dict(batch=300), ["--drop-last"], 2, "--drop-last leaves none"),
        (dict(epochs=0), [], 2, "'0' is not a whole number"),
        (dict(out="no/where.safetensors"), [], 1, "no/where.safetensors"),
        (dict(), ["--weights=w.safetensors", "--resume=w.safetensors"], 2, "both say what to begin with"),
        (dict(), ["--checkpoint=c.safetensors"], 2, "--checkpoint says where, not how often: give --checkpoint-every N"),
        (dict(), ["--init", "--weights=w.safetensors"], 2, "--init and --weights both say what to begin with"),
        (dict(), ["--init", "--resume=w.safetensors"], 2, "--init and --resume both say what to begin with"),
        (dict(bundle="less.astra"), ["--init"], 1, "less.astra: has no entry init, which --init needs: compile the model with --train, which makes one"),
        (dict(), ["--resume=nowhere.safetensors"], 1, "nowhere.safetensors: No such file"),
        (dict(), ["--level=z80"], 3, "z80"),
        (dict(), ["--sead=1"], 2, "did you mean --seed?"),
        (dict(), [f"--eval=image=ex.npy,target=ey.npy", "--log=no/where.csv"], 1, "no/where.csv"),
    ]
    for options, words, code, sentence in cases:
        done = train(*words, **options)
        expect(done.returncode == code and sentence in done.stderr, f"{options} {words}: exit {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--aarch64", type=lambda p: str(Path(p).resolve()), help="an astra-train for aarch64")
    parser.add_argument("tests", nargs="*", help="names of tests: only these")
    arguments = parser.parse_args()
    aarch64 = arguments.aarch64
    tests = [one_epoch_by_hand, log_contents, inference_bits, seeds, key_of_dropout, sequences, kinds_of_files, other_forms, mean_of_an_epoch, one_run_an_output, one_row_under_batch_norm, last_batch, killed_and_resumed,
             every_step_resumed, more_epochs, full_disk, not_a_number, state_that_breaks, states_that_are_written, outputs_are_no_inputs, malformed_weights, weights_to_begin_with, compile_refuses,
             bad_data, drawn_weights, weights_of_no_role, resumed_otherwise, other_refusals]  # fmt: skip
    named = [(t.__name__, t) for t in tests] + [("levels_and_threads", lambda: levels_and_threads(aarch64)), ("default_weights", lambda: default_weights(aarch64)), ("gpus", gpus)]
    named = [(name, test) for name, test in named if not arguments.tests or name in arguments.tests]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(aarch64)
        failed = run(named)
    known.show()
    return failed


if __name__ == "__main__":
    sys.exit(main())
