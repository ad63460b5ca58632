#!/usr/bin/env python3
"""Compare a small language model on emulated GPUs with the CPU, byte for byte: scores, and a text that it writes.

Takes:    a build; models of models.py by name, smollm if none is named; PyTorch and transformers.
Gives:    a line for each; the last is "N passed, N failed".

    build/venv/bin/python test/language/emulated.py build/bin [MODEL...]
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TOKENS = 24
WRITTEN = 200 if os.environ.get("ASTRA_NIGHTLY") else 8
CONTEXT = TOKENS + WRITTEN
GPUS = ["cuda:sm_90", "hip:gfx942"]
HOW = dict(temperature=0.8, top_p=0.9, min_p=0.01, repetition_penalty=1.1)


class Session:
    """Calls of one bundle by astra-run, whose states go from one to the next in a file."""

    def __init__(self, binaries, bundle, folder, *options):
        self.command = [binaries / "astra-run", bundle, *options]
        self.folder = folder
        self.states = folder / "states.safetensors"
        self.states.unlink(missing_ok=True)

    def call(self, entry, output, **inputs):
        command = [*self.command, "--entry", entry, "--output", f"{output}={self.folder / 'out.npy'}"]
        for name, value in inputs.items():
            np.save(self.folder / f"{name}.npy", value)
            command += ["--input", f"{name}={self.folder / name}.npy"]
        if self.states.exists():
            command += ["--states", self.states]
        subprocess.run([*command, "--save-states", self.states], check=True, capture_output=True)
        return np.load(self.folder / "out.npy")


def results(session, text, sizes, vocabulary):
    """Log-probabilities in chunks of these sizes, logits behind the last token, and the text that is drawn."""
    found, at = [], 0
    while at < len(text) - 1:
        n = min(sizes[len(found) % len(sizes)], len(text) - 1 - at)
        tokens, targets = text[None, at : at + n], text[None, at + 1 : at + n + 1]
        found.append(session.call("score", "logprobs", tokens=tokens, targets=targets, count=np.array([n], np.int32)))
        at += n
    logits = session.call("decode", "logits", tokens=text[-1:])
    found.append(logits)
    how = {name: np.array([value], np.float32) for name, value in HOW.items()}
    how |= dict(allowed=np.ones((1, vocabulary), bool), top_k=np.array([20], np.int32), seed=np.array([7], np.uint32))
    written = []
    for _ in range(WRITTEN):
        written.append(session.call("sample", "tokens", logits=logits, **how))
        logits = session.call("decode", "logits", tokens=written[-1])
    return b"".join(x.tobytes() for x in [*found, *written, logits])


def check(name, binaries, folder):
    import models

    network = models.save(name, folder / "hf")
    targets = ["cpu:x86-64-v3", *(f"{prefix}{gpu}" for gpu in GPUS for prefix in ("", "emu:"))]
    bundle = folder / "model.astra"
    subprocess.run([binaries / "astra-compile", folder / "hf", "-o", bundle, f"--context={CONTEXT}", "--chunk=12", "-j2", "--quiet",
                    "--target=" + ",".join(targets)], check=True)  # fmt: skip
    vocabulary = network.config.vocab_size
    text = np.random.default_rng(3).integers(0, vocabulary, TOKENS).astype(np.int32)
    expected = results(Session(binaries, bundle, folder), text, [12], vocabulary)
    for seed, gpu in enumerate(GPUS):
        for sizes in ([12], [7, 4]):
            session = Session(binaries, bundle, folder, f"--emulate={gpu}", f"--seed={seed}")
            assert results(session, text, sizes, vocabulary) == expected, f"{gpu}, chunks of {sizes}: other bits"


def main():
    binaries = Path(sys.argv[1])
    names = sys.argv[2:] or ["smollm"]
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(name, binaries, Path(folder))
                print(f"{name}: the same bits on {' and '.join(GPUS)}, emulated", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
