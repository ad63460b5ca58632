"""PyTorch: functions and modules of its code compiled ahead of time, its training too.

    from astra import astra

    @astra
    def forward(x):
        return nn.Softmax(dim=1)(x)

See `from_torch`, `backend`, `train_step`, `register_lowering`. The package imports torch, so `import astra` does not import it.
"""

from .backend import backend
from .callable import Callable_, CompiledModule, compiled
from .capture import Captured, from_torch
from .rows.registry import register_lowering
from .train import train_step

__all__ = ["Callable_", "Captured", "CompiledModule", "backend", "compiled", "from_torch", "register_lowering", "train_step"]
