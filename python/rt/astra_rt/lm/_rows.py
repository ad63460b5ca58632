"""The sequences of a session: rows that are read and drawn from together, each with a life of its own.

Takes:    a session of a language model's bundle (docs/language.md); tokens and what is asked of `sample`, row by row.
Gives:    the next token of each row.
Keeps:    what a row gives does not depend on the others: neither which there are, nor when they came.
Does not: know text, or which row is whose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping

import numpy as np

from .._errors import ArgumentError, BundleError, refusal
from .._module import Session

_ENTRIES = ("prefill", "decode", "score", "embed", "sample", "reset")


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. Off are top_k 0, top_p 1, min_p 0, repetition_penalty 1; a temperature of 0 takes the most likely
    token each time."""

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 0.95
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("temperature", 0, 100), ("top_k", 0, 2**31 - 1), ("top_p", 0, 1), ("min_p", 0, 1),
                                ("repetition_penalty", 0.01, 100), ("seed", 0, 2**32 - 1)):  # fmt: skip
            value = getattr(self, name)
            whole = isinstance(low, int) and name in ("top_k", "seed")
            kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                text = f"{name} is {value!r}; it must be a {'whole ' if whole else ''}number from {low} to {high}"
                raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", text)


class Rows:
    """The rows 0 to `batch` - 1 of a session. A call of `read` or `step` may have any of them."""

    def __init__(self, session: Session, tokens: int) -> None:
        missing = [name for name in _ENTRIES if name not in session.entries]
        history = [s for s in session.states if s.name == "history" and s.ndim == 2]
        if missing or not history:
            text = f"the bundle is no language model: it has no {'entry ' + missing[0] if missing else 'state history'}; "
            raise refusal(BundleError, "ASTRA_MALFORMED", text + "astra-compile makes one of a GGUF file or of a folder of transformers")
        self.session = session
        self.batch, self.context = history[0].upper
        self.chunk = session["prefill"].inputs[0].upper[1]
        self.vocabulary = session["prefill"].outputs[0].upper[1]
        self.lengths = [0] * self.batch
        self._logits = np.zeros((self.batch, self.vocabulary), np.float32)
        self._allowed = np.broadcast_to(np.arange(self.vocabulary) < tokens, self._logits.shape).copy()

    def cut(self, keep: Mapping[int, int]) -> None:
        """Cuts rows to their first tokens: 0 makes a row empty."""
        wanted = np.full(self.batch, -1, np.int32)
        for row, length in keep.items():
            wanted[row] = length
        self.lengths = self.session["reset"](wanted).tolist()

    def read(self, texts: Mapping[int, list[int]]) -> None:
        """Appends tokens to rows, at most `chunk` to each; what `draw` gives next follows them."""
        longest = max(len(t) for t in texts.values())
        tokens, count = np.zeros((self.batch, longest), np.int32), np.zeros(self.batch, np.int32)
        for row, text in texts.items():
            tokens[row, : len(text)], count[row] = text, len(text)
        self._keep(texts, *self.session["prefill"](tokens, count))

    def step(self, tokens: Mapping[int, int]) -> None:
        """Appends one token to each of the rows."""
        wanted = np.full(self.batch, -1, np.int32)
        for row, token in tokens.items():
            wanted[row] = token
        self._keep({row: [token] for row, token in tokens.items()}, *self.session["decode"](wanted))

    def _keep(self, texts: Mapping[int, list[int]], logits: Any, status: Any) -> None:
        values, said = logits.numpy(), status.tolist()
        for row, text in texts.items():
            if said[row]:
                why = "do not fit the context" if said[row] == 1 else "are none of the model"
                raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"tokens {why} (of row {row})")
            self._logits[row] = values[row]
            self.lengths[row] += len(text)

    def draw(self, asked: Mapping[int, Sampling]) -> dict[int, tuple[int, float]]:
        """The next token of each of the rows, and its log-probability; -1 where there is none. It is not read yet."""
        columns = {name: np.full(self.batch, off, kind) for name, off, kind in (
            ("temperature", 0, np.float32), ("top_p", 1, np.float32), ("min_p", 0, np.float32),
            ("repetition_penalty", 1, np.float32), ("top_k", 0, np.int32), ("seed", 0, np.uint32))}  # fmt: skip
        for row, sampling in asked.items():
            for name, column in columns.items():
                column[row] = getattr(sampling, name)
        tokens, logprobs = self.session["sample"](self._logits, self._allowed, **columns)
        drawn, said = tokens.tolist(), logprobs.tolist()
        return {row: (drawn[row], said[row]) for row in asked}

    def likeliest(self, row: int, count: int, token: int, logprob: float) -> list[tuple[int, float]]:
        """The `count` likeliest tokens of a row, which `draw` has given a token for, with their log-probabilities: those differ from the
        drawn token's as the scores do. Of equally likely tokens, the ones with the smaller number."""
        scores = self._logits[row][self._allowed[row]]
        count = min(count, len(scores))
        least = np.partition(scores, -count)[-count]
        found = np.flatnonzero(scores >= least)
        order = found[np.argsort(-scores[found], kind="stable")][:count]
        return [(int(t), logprob + (float(scores[t]) - float(scores[token]))) for t in order]


def parts(tokens: list[int], most: int) -> Iterable[list[int]]:
    """Pieces of at most `most` tokens."""
    return (tokens[i : i + most] for i in range(0, len(tokens), most))
