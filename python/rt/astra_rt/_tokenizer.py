"""Tokenizers: text to tokens and back, conversations.

Takes:    the bytes of a compiled tokenizer: a bundle's asset, or what `astra-text -o` writes.
Gives:    Tokenizer.
Keeps:    the tokens of libastra_text; a tokenizer never changes, and threads share it.
Does not: read tokenizer.json: the compiler does.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Sequence, Union

from . import _rt
from ._errors import ArgumentError, refusal

_AROUND, _SPECIAL, _PLAIN, _ANSWER = 1, 2, 1, 1
_BEGUN = (1).to_bytes(4, "little") + bytes(12)  # astra_text_stream behind a token
_ROLES = {"begin": 0, "end": 1, "turn": 2, "unknown": 3, "pad": 4}
Message = Union[Mapping[str, str], "tuple[str, str]"]


def _utf8(text: str | bytes) -> bytes:
    try:
        return text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError as error:
        sentence = f"the text has a surrogate at {error.start}, which UTF-8 does not have"
        raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", sentence) from None


def _pairs(messages: Iterable[Message]) -> list[tuple[bytes, bytes]]:
    pairs = []
    for message in messages:
        role, content = (message["role"], message["content"]) if isinstance(message, Mapping) else message
        pair = _utf8(role), _utf8(content)
        if any(b"\0" in part for part in pair):
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", "a message has a zero byte, which text does not have")
        pairs.append(pair)
    return pairs


class Tokenizer:
    """Text to tokens and back. `len(tokenizer)` is the number of tokens."""

    __slots__ = ("_text", "_bytes")

    def __init__(self, data: bytes) -> None:
        self._bytes = bytes(data)
        self._text = _rt.Text(self._bytes)

    def __len__(self) -> int:
        return self._text.tokens

    def encode(self, text: str | bytes, *, around: bool = False, special: bool = False) -> list[int]:
        """The tokens of a text. `around` puts what the model expects around it. With `special`, names of special tokens are
        those tokens: never for text of strangers."""
        return self._text.encode(_utf8(text), around * _AROUND | special * _SPECIAL)

    def decode(self, tokens: Iterable[int], *, plain: bool = False) -> str:
        """The text of tokens. With `plain` special ones are left out."""
        return self._text.decode(list(tokens), plain * _PLAIN).decode()

    def stream(self, tokens: Iterable[int], *, plain: bool = True) -> Iterator[str]:
        """For each token the characters that are complete with it, maybe none; at the end what is left."""
        state = b""
        for token in tokens:
            text, state = self._text.stream(state, token, plain * _PLAIN)
            yield text.decode()
        text, state = self._text.stream(state, None, 0)
        if text:
            yield text.decode()

    def chat(self, messages: Sequence[Message], *, answer: bool = True) -> str:
        """A conversation as the model was trained on it, as text. Messages are {"role": ..., "content": ...} or pairs. With
        `answer` it ends with the begin of the assistant's turn."""
        return self._text.chat(_pairs(messages), answer * _ANSWER, False).decode()  # type: ignore[union-attr]

    def chat_encode(self, messages: Sequence[Message], *, answer: bool = True) -> list[int]:
        """The same as tokens. Names of special tokens in the contents are plain text."""
        return self._text.chat(_pairs(messages), answer * _ANSWER, True)  # type: ignore[return-value]

    @property
    def chat_form(self) -> str | None:
        """The name of the form of conversations, as "chatml"; None: it has none."""
        return self._text.form

    def piece(self, number: int) -> bytes:
        """The bytes of text that a token adds behind other text; they may end in the middle of a character."""
        text, state = self._text.stream(_BEGUN, number, 0)
        return text + state[8 : 8 + state[4]]

    def token(self, number: int) -> bytes:
        """The bytes of a token as the vocabulary has them."""
        return self._text.token(number)

    def find(self, token: str | bytes) -> int | None:
        """The token whose bytes in the vocabulary are these."""
        number = self._text.find(_utf8(token))
        return number if number >= 0 else None

    def role(self, name: str) -> int | None:
        """The token that is the "begin" or "end" of a text, the end of a "turn", "unknown" or "pad"."""
        if name not in _ROLES:
            raise refusal(ArgumentError, "ASTRA_INVALID_ARGUMENT", f"'{name}' is no role; the roles are {', '.join(_ROLES)}")
        number = self._text.role(_ROLES[name])
        return number if number >= 0 else None

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self._bytes,)

    def __repr__(self) -> str:
        return f"<astra_rt.Tokenizer of {len(self)} tokens>"
