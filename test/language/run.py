#!/usr/bin/env python3
"""Compare language models with transformers, and every way to read the same tokens byte for byte.

Takes:    a build with astra_rt_python; models of models.py by name, those of DAILY if none is named, all with ASTRA_NIGHTLY=1.
Gives:    a line for each; the last is "N passed, N failed". Skipped where transformers is not installed.

    PYTHONPATH=build/python build/venv/bin/python test/language/run.py build/bin [MODEL...]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import astra_rt

DAILY = ["gemma3", "qwen2-moe"]
CONTEXT, BATCH, CHUNK = 64, 2, 12
MOST = {"f16": 0.1, "i8": 1.0}  # how far a log-probability may be from that with a cache of f32
LENGTHS = [41, 37]  # of the two texts; longer than the first context of longrope


def compile_model(binaries, folder, path, *options):
    subprocess.run([binaries / "astra-compile", folder, "-o", path, "--target=native", "-j2", "--quiet", *options], check=True)


def chunks(texts, sizes):
    """tokens, targets, count for each call: text b in pieces of sizes[b], again and again, targets one further."""
    at = [0] * len(texts)
    while any(a < len(t) - 1 for a, t in zip(at, texts)):
        count = [min(s, len(t) - 1 - a) for s, t, a in zip(sizes, texts, at)]
        tokens, targets = np.zeros((2, len(texts), max(count)), np.int32)
        for b, (t, a, n) in enumerate(zip(texts, at, count)):
            tokens[b, :n], targets[b, :n] = t[a : a + n], t[a + 1 : a + n + 1]
            at[b] += n
        yield tokens, targets, np.array(count, np.int32)


def scored(model, texts, sizes):
    """Log-probabilities of every token behind the first, of each text."""
    session = model.session()
    found = [[] for _ in texts]
    for tokens, targets, count in chunks(texts, sizes):
        logprobs, status = session["score"](tokens, targets, count)
        assert status.tolist() == [0] * len(texts), status.tolist()
        for b, n in enumerate(count):
            found[b].append(logprobs.numpy()[b, :n].copy())
    return [np.concatenate(f) for f in found]


def prefilled(model, texts, sizes):
    """Logits behind the last token but one, and the session."""
    session = model.session()
    last = [None] * len(texts)
    for tokens, _, count in chunks(texts, sizes):
        logits, status = session["prefill"](tokens, count)
        assert status.tolist() == [0] * len(texts)
        for b, n in enumerate(count):
            if n:
                last[b] = logits.numpy()[b].copy()
    return last, session


def decoded(model, texts):
    """Logits behind each token, one by one; a text that has ended waits."""
    session = model.session()
    found = [[] for _ in texts]
    for i in range(max(map(len, texts)) - 1):
        tokens = np.array([t[i] if i < len(t) - 1 else -1 for t in texts], np.int32)
        logits, status = session["decode"](tokens)
        assert status.tolist() == [0] * len(texts)
        for b, t in enumerate(texts):
            if i < len(t) - 1:
                found[b].append(logits.numpy()[b].copy())
    return [np.stack(f) for f in found]


def same(name, a, b):
    assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)), f"{name}: other bits"


def distance(network, texts, logits):
    """How far logits are from those of transformers, in parts of the largest."""
    import torch

    worst = 0.0
    for text, mine in zip(texts, logits):
        with torch.no_grad():
            theirs = network(torch.tensor(text[None, :-1])).logits[0].numpy()
        worst = max(worst, np.abs(mine - theirs).max() / np.abs(theirs).max())
    return worst


def check_gguf(name, network, texts, binaries, folder):
    """The same model as a GGUF file, where the package is."""
    try:
        import gguf_files
    except ImportError:
        return "no GGUF file: the package gguf is not installed"
    if name == "qwen2-window":
        return "no GGUF file, which has no windows for Qwen 2"
    gguf_files.write(network, folder / "hf", folder / "model.gguf")
    compile_model(binaries, folder / "model.gguf", folder / "gguf.astra", f"--context={CONTEXT}", f"--batch={BATCH}", "--chunk=1")
    worst = distance(network, texts, decoded(astra_rt.load(folder / "gguf.astra", threads=1), texts))
    assert worst < 1e-4, f"{worst:.1e} of the largest logit, from a GGUF file"
    return f"{worst:.1e} from a GGUF file"


def skipped(binaries, folder, vocabulary):
    """Keys that no window sees are skipped, but where a sequence beside needs them: the same bits."""
    path = folder / "skipped.astra"
    compile_model(binaries, folder / "hf", path, "--context=1200", "--batch=2", "--chunk=100")
    model = astra_rt.load(path, threads=1)
    long, short = (np.random.default_rng(3).integers(0, vocabulary, n, dtype=np.int32) for n in (701, 1))
    alone = scored(model, [long, short], [100, 1])[0]  # of the short one nothing is read
    session, beside = model.session(), []
    for at in range(0, 700, 100):
        tokens, targets = (np.stack([long[i : i + 100], long[:100]]) for i in (at, at + 1))
        beside.append(session["score"](tokens, targets, [100, 5])[0].numpy()[0].copy())
    same("beside a sequence that needs the first keys", [alone], [np.concatenate(beside)])


def levels(binaries, folder, reference, texts):
    """The same bits on every level of this machine, in a batch of one, with another context and a cache of its own for each text."""
    command = [binaries / "astra-compile", folder / "hf", "-o", folder / "levels.astra", "-j2", "--quiet", "--context=96", "--chunk=9"]
    subprocess.run([*command, "--target=cpu:x86-64-v3,cpu:x86-64-v4"], check=True)
    for level in ("x86-64-v3", "x86-64-v4"):
        try:
            model = astra_rt.load(folder / "levels.astra", threads=1, level=level)
        except astra_rt.UnsupportedError:
            continue
        alone = [scored(model, [text], [5])[0] for text in texts]
        same(f"{level}, one by one", reference, alone)


def ways(model, path, texts, logits):
    """Log-probabilities, the same in all chunks; logits behind the last token, as decode gave them."""
    reference = scored(model, texts, [CHUNK, CHUNK])
    for sizes in ([1, 1], [5, 3], [2, CHUNK]):
        same(f"score in chunks of {sizes}", reference, scored(model, texts, sizes))
        same(f"prefill in chunks of {sizes}", [x[-1] for x in logits], prefilled(model, texts, sizes)[0])
    same("two threads", reference, scored(astra_rt.load(path, threads=2), texts, [7, 7]))
    return reference


def folders(binaries, folder, network):
    """The same bundle from each way to save the weights: one file or shards, of safetensors or of torch.save."""
    import torch

    whole = folder / "model.astra"
    ways = {"shards": folder / "shards", "pytorch_model.bin": folder / "bin", "shards of torch.save": folder / "bins"}
    network.save_pretrained(ways["shards"], max_shard_size="50KB")
    assert len(list(ways["shards"].glob("*.safetensors"))) > 1, "one shard"
    weights = network.state_dict()
    for name, shards in (("bin", 1), ("bins", 2)):
        network.config.save_pretrained(folder / name)
        files = [f"pytorch_model-0000{i + 1}-of-0000{shards}.bin" if shards > 1 else "pytorch_model.bin" for i in range(shards)]
        places = {key: files[i % shards] for i, key in enumerate(weights)}
        for file in files:
            torch.save({key: w for key, w in weights.items() if places[key] == file}, folder / name / file)
        if shards > 1:
            (folder / name / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for said, saved in ways.items():
        compile_model(binaries, saved, folder / "again.astra", f"--context={CONTEXT}", f"--batch={BATCH}", f"--chunk={CHUNK}")
        assert (folder / "again.astra").read_bytes() == whole.read_bytes(), f"{said}: another bundle"


def check(name, binaries, folder):
    import models

    network = models.save(name, folder / "hf")
    texts = [np.random.default_rng(7 + b).integers(0, network.config.vocab_size, n) for b, n in enumerate(LENGTHS)]
    compile_model(binaries, folder / "hf", folder / "model.astra", f"--context={CONTEXT}", f"--batch={BATCH}", f"--chunk={CHUNK}")
    model = astra_rt.load(folder / "model.astra", threads=1)

    # Beside transformers.
    logits = decoded(model, texts)
    worst = distance(network, texts, logits)
    assert worst < 1e-4, f"{worst:.1e} of the largest logit beside transformers"

    # The same bits, however the tokens come, with each kind of cache.
    reference = ways(model, folder / "model.astra", texts, logits)
    kinds = ["i8", "f16"] if os.environ.get("ASTRA_NIGHTLY") else ["i8"] if name == DAILY[0] else []
    said = f"{worst:.1e} of the largest logit beside transformers"
    for kind in kinds:
        path = folder / f"{kind}.astra"
        compile_model(binaries, folder / "hf", path, f"--context={CONTEXT}", f"--batch={BATCH}", f"--chunk={CHUNK}", f"--cache-type={kind}")
        narrow = astra_rt.load(path, threads=1)
        other = ways(narrow, path, texts, decoded(narrow, texts))
        far = max(np.abs(a - b).max() for a, b in zip(reference, other))
        assert 0 < far < MOST[kind], f"a cache of {kind} is {far:.1e} from one of f32"
        said += f", a cache of {kind} {far:.1e} from one of f32"
    if name == DAILY[0]:
        skipped(binaries, folder, network.config.vocab_size)
        folders(binaries, folder, network)
    if os.environ.get("ASTRA_NIGHTLY"):
        levels(binaries, folder, reference, texts)
    off = dict(allowed=np.ones(logits[0][:2].shape, bool), top_k=[0, 0], top_p=[1, 1], min_p=[0, 0], repetition_penalty=[1, 1])
    for i in range(min(LENGTHS) - 1):  # what `sample` says of a token is what `score` says
        rows = np.stack([x[i] for x in logits])
        tokens, logprobs = model["sample"](rows, temperature=[0, 0], seed=[0, 0], **off)
        for b in range(2):
            if tokens.tolist()[b] == texts[b][i + 1]:
                assert logprobs.tolist()[b] == reference[b][i]
    rows = np.stack([x[-1] for x in logits])
    best = np.argsort(-rows, axis=1, kind="stable")[:, :3]
    draws = [model["sample"](rows, temperature=[2, 2], seed=[s, s + 9], **{**off, "top_k": [3, 1]})[0].tolist() for s in range(40)]
    assert {d[0] for d in draws} == set(best[0].tolist()) and {d[1] for d in draws} == {best[1, 0]}, "top_k"
    return f"{said}, {check_gguf(name, network, texts, binaries, folder)}" if os.environ.get("ASTRA_NIGHTLY") else said


def main():
    binaries = Path(sys.argv[1])
    try:
        import transformers  # noqa: F401

        import models
    except ImportError as error:
        print(f"skipped: language models beside transformers: {error}")
        return 0
    names = sys.argv[2:] or (list(models.MODELS) if os.environ.get("ASTRA_NIGHTLY") else DAILY)
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name}: {check(name, binaries, Path(folder))}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
