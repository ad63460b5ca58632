"""A language model as an object.

Takes:    a bundle; prompts: texts, lists of tokens, or conversations, which are lists of messages.
Gives:    text as it arises or whole, log-probabilities, vectors.
Keeps:    the same prompt, seed and options give the same text: in any batch, with any number of threads. A call that is refused
          leaves the model as it was.
Does not: remember anything from call to call.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import Any, Iterator, Mapping, Sequence, Union

import numpy as np

from .._errors import ArgumentError, BundleError, NotFoundError, refusal
from .._module import Module, Source
from .._module import load as load_module
from .._tokenizer import Message, Tokenizer
from ._rows import Rows, Sampling, parts

MOST_TOP = 20
Prompt = Union[str, Sequence[int], Sequence[Message]]


def _wrong(sentence: str) -> Exception:
    return refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", sentence)


def messages_of(value: Any) -> list[tuple[str, str]]:
    """A conversation as pairs of role and text: of messages, or pairs, whose contents are texts or lists of parts that are texts."""
    if not isinstance(value, (list, tuple)) or not value:
        raise _wrong("'messages' must be a list of messages")
    out = []
    for message in value:
        role, content = None, None
        if isinstance(message, Mapping):
            role, content = message.get("role"), message.get("content")
        elif isinstance(message, (tuple, list)) and len(message) == 2:
            role, content = message
        if isinstance(content, list) and all(isinstance(p, Mapping) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in content):
            content = "".join(p["text"] for p in content)
        if not isinstance(content, str) or not isinstance(role, str):
            raise _wrong("a message has a 'role', which is a text, and a 'content', which is a text or a list of parts that are texts")
        out.append(("system" if role == "developer" else role, content))
    if not out[-1][1]:
        raise _wrong("the prompt is empty")
    return out


@dataclass
class Generation:
    """What a model said. `finish` is "stop" where it ended its turn or said one of `stop`, "length" after max_tokens, "context" where it
    is full. `top_logprobs`: for each token the likeliest ones at its place, if they were asked for."""

    text: str
    tokens: list[int]
    logprobs: list[float]
    finish: str
    prompt_tokens: int
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)


@dataclass
class Reply:
    """A reply that arises: tokens go in, pieces of text come out. It ends before the first of `stop`: text that may become one is held
    back until that is known."""

    tokenizer: Tokenizer
    prompt: list[int]
    sampling: Sampling
    most: int | None
    stop: tuple[str, ...] = ()
    top: int = 0  # how many of the likeliest tokens are kept for each
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tops: list[list[tuple[int, float]]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    finish: str = ""
    _state: bytes = b""
    _held: str = ""

    def take(self, rows: Rows, row: int, token: int, logprob: float) -> str:
        """The text that is certain with the token that was drawn for a row."""
        finish, text = "", b""
        if token < 0 or token in (self.tokenizer.role("end"), self.tokenizer.role("turn")):
            finish = "stop"
        else:
            self.tokens.append(token)
            self.logprobs.append(logprob)
            if self.top:
                self.tops.append(rows.likeliest(row, self.top, token, logprob))
            text, self._state = self.tokenizer._text.stream(self._state, token, 1)
            if len(self.tokens) == self.most:
                finish = "length"
            elif rows.lengths[row] >= rows.context:
                finish = "context"
        if finish:
            text += self.tokenizer._text.stream(self._state, None, 0)[0]
        self._held += text.decode()
        ends = [at for at in map(self._held.find, self.stop) if at >= 0]
        certain = min(ends) if ends else len(self._held) if finish else len(self._held) - self._open()
        self.pieces.append(self._held[:certain])
        self._held = self._held[certain:]
        if ends:
            finish = "stop"
        self.finish = finish  # after the piece: who sees it, on another thread, sees all pieces
        return self.pieces[-1]

    def _open(self) -> int:
        """How many characters at the end of what is held may be the begin of a stop."""
        longest = min(len(self._held), max(map(len, self.stop), default=1) - 1)
        return next((n for n in range(longest, 0, -1) if any(s.startswith(self._held[-n:]) for s in self.stop)), 0)

    def whole(self) -> Generation:
        return Generation("".join(self.pieces), self.tokens, self.logprobs, self.finish, len(self.prompt), self.tops)


class LanguageModel:
    """A bundle of a language model with its tokenizer. Threads that share it take turns; each call has a session of its own."""

    def __init__(self, module: Module) -> None:
        self.module = module
        try:
            self.tokenizer = Tokenizer(module.asset("tokenizer"))
        except NotFoundError:
            text = "the bundle has no tokenizer: compile it of a language model, or with --asset=tokenizer=FILE.tok"
            raise refusal(BundleError, "ASTRA_MALFORMED", text) from None
        rows = self._rows()
        self.batch, self.context, self.chunk, self.vocabulary = rows.batch, rows.context, rows.chunk, rows.vocabulary
        self._lock, self._idle = threading.Lock(), [rows]

    def _rows(self) -> Rows:
        return Rows(self.module.session(), len(self.tokenizer))

    def rows(self) -> Rows:
        """Rows of a session of their own: for whoever batches sequences that come and go."""
        return self._rows()

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt."""
        if not isinstance(prompt, (str, list, tuple, np.ndarray)):
            raise _wrong(f"the prompt is of the type {type(prompt).__name__}; it must be a text, a list of tokens or a list of messages")
        if not len(prompt):
            raise _wrong("the prompt is empty")
        if isinstance(prompt, str):
            tokens = self.tokenizer.encode(prompt, around=True)
        elif all(isinstance(t, (int, np.integer)) and not isinstance(t, bool) for t in prompt):
            tokens = [int(t) for t in prompt]
        elif isinstance(prompt[0], (Mapping, tuple, list)):
            tokens = self.tokenizer.chat_encode(messages_of(prompt))
        else:
            raise _wrong("the prompt is a list, and neither of tokens, which are whole numbers, nor of messages")
        if not tokens:
            raise _wrong("the prompt is empty")
        most = min(len(self.tokenizer), self.vocabulary)  # a tokenizer may have more tokens than the model: added ones
        if not all(0 <= t < most for t in tokens):
            wrong = next(t for t in tokens if not 0 <= t < most)
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"token {wrong} is none of the model; tokens are 0 to {most - 1}")
        return tokens

    def reply(self, prompt: Prompt, max_tokens: int | None = None, stop: str | Sequence[str] | None = (), top_logprobs: int = 0,
              **sampling: Any) -> Reply:  # fmt: skip
        """A reply that has no tokens yet, checked."""
        stops = (stop,) if isinstance(stop, str) else () if stop is None else stop
        if not isinstance(stops, (tuple, list)) or not all(isinstance(s, str) and s for s in stops):
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"stop is {stop!r}; it must be a text or a list of texts, none of them empty")
        if isinstance(top_logprobs, bool) or not isinstance(top_logprobs, (int, np.integer)) or not 0 <= top_logprobs <= MOST_TOP:
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"top_logprobs is {top_logprobs!r}; it must be 0 to {MOST_TOP}")
        if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, (int, np.integer)) or max_tokens < 1):
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"max_tokens is {max_tokens!r}; it must be at least 1, or None")
        unknown = sampling.keys() - {f.name for f in fields(Sampling)}
        if unknown:
            raise _wrong(f"there is no option {min(unknown)}; there are max_tokens, stop, top_logprobs, {', '.join(f.name for f in fields(Sampling))}")
        tokens = self.encode(prompt)
        if len(tokens) >= self.context:
            text = f"the prompt has {len(tokens)} tokens, and the context {self.context}"
            raise refusal(ArgumentError, "ASTRA_CAPACITY", text)
        return Reply(self.tokenizer, tokens, Sampling(**sampling), max_tokens, tuple(stops), top_logprobs)

    def _take(self) -> Rows:
        with self._lock:
            rows = self._idle.pop() if self._idle else None
        return rows or self._rows()

    def _give(self, rows: Rows) -> None:
        rows.cut({row: 0 for row in range(rows.batch)})
        with self._lock:
            if not self._idle:
                self._idle.append(rows)

    def generate(self, prompt: Prompt, *, max_tokens: int | None = None, **options: Any) -> Generation:
        """The reply to a prompt, whole. A text is gone on with; messages are answered. options: `stop`, a text or several that end the
        reply, and are no part of it; `top_logprobs`, how many of the likeliest tokens are given at each place; and those of `Sampling`."""
        reply = self.reply(prompt, max_tokens, **options)
        for _ in self._run([reply]):
            pass
        return reply.whole()

    def generate_batch(self, prompts: Sequence[Prompt], *, max_tokens: int | None = None, **options: Any) -> list[Generation]:
        """Replies to prompts, `batch` at a time: each is that of `generate`."""
        if isinstance(prompts, str):
            raise _wrong("the prompts are one text; generate takes it, and generate_batch a list of prompts")
        replies = [self.reply(prompt, max_tokens, **options) for prompt in prompts]
        for _ in self._run(replies):
            pass
        return [reply.whole() for reply in replies]

    def stream(self, prompt: Prompt, *, max_tokens: int | None = None, **options: Any) -> Iterator[str]:
        """The pieces of a reply as they arise; options as of `generate`."""
        reply = self.reply(prompt, max_tokens, **options)
        return (piece for _, piece in self._run([reply]) if piece)

    def _run(self, replies: list[Reply]) -> Iterator[tuple[Reply, str]]:
        """Every reply to its end: a row that ends takes the next one."""
        rows, waiting = self._take(), list(reversed(replies))
        active: dict[int, Reply] = {}
        try:
            while waiting or active:
                for row in range(rows.batch):
                    if row not in active and waiting:
                        active[row] = waiting.pop()
                        rows.cut({row: 0})
                        for part in parts(active[row].prompt, rows.chunk):
                            rows.read({row: part})
                drawn = rows.draw({row: reply.sampling for row, reply in active.items()})
                for row, (token, logprob) in drawn.items():
                    yield active[row], active[row].take(rows, row, token, logprob)
                active = {row: reply for row, reply in active.items() if not reply.finish}
                if active:
                    rows.step({row: reply.tokens[-1] for row, reply in active.items()})
        finally:
            self._give(rows)

    def score(self, text: Prompt) -> list[float]:
        """The log-probability of every token behind the first, after all before it."""
        tokens = self._fitting(text)
        return [float(v) for part in self._read("score", tokens[:-1], tokens[1:]) for v in part]

    def embed(self, text: Prompt) -> np.ndarray[Any, Any]:
        """A vector for each token, f32 [tokens, width], behind the last norm."""
        return np.concatenate(list(self._read("embed", self._fitting(text))))

    def _fitting(self, text: Prompt) -> list[int]:
        tokens = self.encode(text)
        if len(tokens) > self.context:
            sentence = f"the text has {len(tokens)} tokens, and the context {self.context}"
            raise refusal(ArgumentError, "ASTRA_CAPACITY", sentence)
        return tokens

    def _read(self, entry: str, *columns: list[int]) -> Iterator[np.ndarray[Any, Any]]:
        """What an entry says of tokens in the first row, chunk by chunk."""
        rows = self._take()
        try:
            for pieces in zip(*(parts(c, rows.chunk) for c in columns)):
                arrays = np.zeros((len(pieces), rows.batch, len(pieces[0])), np.int32)
                for array, piece in zip(arrays, pieces):
                    array[0] = piece
                count = np.zeros(rows.batch, np.int32)
                count[0] = len(pieces[0])
                values, _ = rows.session[entry](*arrays, count)
                yield values.numpy()[0].copy()
        finally:
            self._give(rows)

    def close(self) -> None:
        """Frees the sessions and the bundle."""
        with self._lock:
            self._idle.clear()
        self.module.close()

    def __repr__(self) -> str:
        return f"<astra_rt.lm.LanguageModel '{self.module.name}': context {self.context}, batch {self.batch}>"


def load(source: Source, *, threads: int = 1, **options: Mapping[str, Any]) -> LanguageModel:
    """Loads a bundle of a language model; options are those of `astra_rt.load`."""
    return LanguageModel(load_module(source, threads=threads, **options))  # type: ignore[arg-type]
