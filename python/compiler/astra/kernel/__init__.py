"""`import astra.kernel.triton`: the kernel language as a module that has others inside. The language itself is in _kernel."""

import sys

from .._kernel import language

language.__dict__.update(__name__=__name__, __path__=__path__, __spec__=__spec__, __file__=__file__)
sys.modules[__name__] = language  # type: ignore[assignment]
