"""One capture at a time in a process.

Takes:    -
Gives:    a lock around everything that traces PyTorch code, and whether this thread is inside of a trace.
Keeps:    meanwhile torch.export puts fake tensors in the place of a module's parameters and sets flags of the whole process: two captures at
          once would leave them there. Calls of what is compiled already do not wait. PyTorch's own logs of errors, with their tracebacks,
          are left out of the thread that captures: what fails becomes one sentence.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import Any, Iterator

import torch

_NOISY = ("torch._subclasses.fake_tensor", "torch.fx.experimental.recording", "torch.fx.experimental.symbolic_shapes", "torch.export._trace", "torch._dynamo")


class _Capture:
    """The lock, and the thread that holds it."""

    __slots__ = ("lock", "owner")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owner: int | None = None


capture = _Capture()


def _is_wanted(record: logging.LogRecord) -> bool:
    return capture.owner != record.thread


@contextmanager
def capturing() -> Iterator[None]:
    """Meanwhile no other thread captures."""
    with capture.lock:
        outer, capture.owner = capture.owner, threading.get_ident()
        loggers = [logging.getLogger(name) for name in _NOISY] if outer is None else []
        for logger in loggers:
            logger.addFilter(_is_wanted)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(_is_wanted)
            capture.owner = outer


def is_inside(*tensors: Any) -> bool:
    """Whether code runs to be traced: by this package, by PyTorch (torch.export, torch.compile), or under a transform of torch.func. What is
    compiled gives its original's operations then."""
    if torch.compiler.is_dynamo_compiling():
        return True
    if capture.owner is not None:
        if capture.owner == threading.get_ident():
            return True
    elif torch.compiler.is_compiling():  # of the whole process: by another thread's capture too
        return True
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return True
    return any(is_traced(x) for x in tensors)


def is_traced(x: Any) -> bool:
    """Whether a tensor stands for one in a trace."""
    return isinstance(x, (torch._subclasses.FakeTensor, torch._subclasses.functional_tensor.FunctionalTensor)) or (
        isinstance(x, torch.Tensor) and torch._is_functional_tensor(x))  # fmt: skip
