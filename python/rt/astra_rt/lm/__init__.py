"""Language models: text from a bundle that astra-compile made of a GGUF file or of a folder of transformers.

    from astra_rt import lm
    model = lm.load("model.astra")
    print(model.generate("The sky is", max_tokens=20, temperature=0).text)
    for piece in model.stream([{"role": "user", "content": "Hello!"}], seed=3):
        print(piece, end="", flush=True)

See `load`, `LanguageModel`, `Generation` and `Sampling`.
"""

from ._model import Generation, LanguageModel, load
from ._rows import Rows, Sampling

__all__ = ["Generation", "LanguageModel", "Rows", "Sampling", "load"]
