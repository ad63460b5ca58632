"""Language models: text from a GGUF file, a folder of transformers, or a bundle.

    model = astra.lm.load("model.gguf")
    print(model.generate("The sky is", max_tokens=20, temperature=0).text)

Takes:    what `astra_rt.lm.load` takes, and files that are compiled here.
Gives:    astra_rt.lm, with a `load` that compiles.
Keeps:    what was compiled: in the cache of bundles (ASTRA_CACHE_DIR, ASTRA_CACHE_SIZE), by the digest of model, tokenizer and options.
          Under ASTRA_FROZEN=1 nothing is compiled.
"""

from __future__ import annotations

import os
from typing import Any, Sequence

import astra_rt.lm as _rt
from astra_rt.lm import Generation as Generation
from astra_rt.lm import LanguageModel as LanguageModel
from astra_rt.lm import Rows as Rows
from astra_rt.lm import Sampling as Sampling

from . import _cache, _core
from ._errors import ArgumentError
from ._tensor import call

__all__ = ["Generation", "LanguageModel", "Rows", "Sampling", "load"]


def load(source: str | os.PathLike[str] | bytes, *, threads: int = 1, target: str | Sequence[str] | None = None, context: int | None = None,
         batch: int | None = None, chunk: int | None = None, cache_type: str | None = None, tokenizer: str | os.PathLike[str] | None = None,
         chat_form: str | None = None, frozen: bool | None = None, **options: Any) -> LanguageModel:  # fmt: skip
    """A language model of a GGUF file or of a folder that transformers saved, compiled for this machine or for `target`; or of a bundle.

    context, batch, chunk, cache_type, tokenizer, chat_form: as astra-compile has them (docs/language.md). frozen=True: what would have to be
    compiled is an error. options are those of `astra_rt.load`."""
    asked = {"target": target, "context": context, "batch": batch, "chunk": chunk, "cache_type": cache_type, "tokenizer": tokenizer,
             "chat_form": chat_form, "frozen": frozen}  # fmt: skip
    if isinstance(source, bytes) or not call(_core.is_language_model, os.fspath(source)):
        for name, value in asked.items():
            if value is not None:
                raise ArgumentError(f"{name} is for what is compiled: a GGUF file, or a folder with config.json")
        return _rt.load(source, threads=threads, **options)
    for name in ("context", "batch", "chunk"):
        value = asked[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 31):
            raise ArgumentError(f"{name} is {value!r}; it must be a number of at least 1")
    if cache_type not in (None, "f32", "f16", "i8"):
        raise ArgumentError(f"cache_type is {cache_type!r}; it must be 'f32', 'f16' or 'i8'")
    path = os.fspath(source)
    module, text, _ = call(_core.import_language, path, context or 0, batch or 1, chunk or 128, cache_type or "f32",
                           os.fspath(tokenizer) if tokenizer is not None else "", chat_form or "")  # fmt: skip
    if not text:
        raise ArgumentError(f"{path} has no tokenizer: tokenizer=FILE gives one")
    targets = [target] if isinstance(target, str) else list(target or ())
    bundle = _cache.compile(module, targets, f"the language model {path}", frozen=frozen, assets=[("tokenizer", text)])
    return _rt.load(bundle, threads=threads, **options)
