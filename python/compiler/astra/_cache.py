"""Compilation in the process, and what is kept of it on the disk.

Takes:    a module, targets.
Gives:    the bytes of a bundle.
Keeps:    objects of kernels in ASTRA_CACHE_DIR (or the user's cache folder), which the compiler finds by their content. A line of
          progress on a terminal where it takes over a second. Nothing is compiled under ASTRA_FROZEN=1.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Sequence

from . import _core
from ._errors import FrozenError, UnsupportedError
from ._tensor import call, user_line


def folder() -> str:
    """Where objects of kernels are kept; "" for nowhere."""
    if "ASTRA_CACHE_DIR" in os.environ:
        return os.environ["ASTRA_CACHE_DIR"]
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "astra") if os.path.isabs(base) else ""


def native() -> str:
    """The best target that this machine runs."""
    name = _core.native_target()
    if name is None:
        raise UnsupportedError("this machine runs none of the targets: " + ", ".join(_core.targets()))
    return str(name)


def compile(module: Any, targets: Sequence[str] = (), what: str = "a function", jobs: int = 0, frozen: bool | None = None) -> bytes:
    """The bundle of a module. targets: names as `astra-compile --target` has them; none: this machine's best."""
    if frozen if frozen is not None else os.environ.get("ASTRA_FROZEN", "") not in ("", "0"):
        raise FrozenError(f"{what} would have to be compiled here ({user_line()}), and ASTRA_FROZEN or frozen=True forbids it; "
                          "load a saved bundle")  # fmt: skip
    names = [native() if t == "native" else t for t in targets] or [native()]
    done = call(module.compile, names, "", folder(), jobs or os.cpu_count() or 1, "", _Progress(what))
    return bytes(done.bundle)


class _Progress:
    """A line on the terminal, from the first second on."""

    def __init__(self, what: str) -> None:
        self.what, self.begun, self.shown = what, time.monotonic(), False
        self.terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        if self.terminal and time.monotonic() - self.begun > 1:
            sys.stderr.write(f"\r\x1b[Kastra: compiling {self.what}: {stage}")
            sys.stderr.flush()
            self.shown = True

    def __del__(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
