"""The programs that come with the wheel: that which needs the compiler runs in this process, the others are files beside it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def compile() -> int:
    """`astra-compile`: see `astra-compile --help`."""
    from . import _core

    return int(_core.run_compile(sys.argv[1:]))


def _become(name: str) -> NoReturn:
    program = os.path.join(os.path.dirname(__file__), "bin", name)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {program}: {error.strerror}; in a tree it is in build/bin")


def inspect() -> NoReturn:
    """`astra-inspect`: see `astra-inspect --help`."""
    _become("astra-inspect")


def launch() -> NoReturn:
    """`astra-launch`: see `astra-launch --help`."""
    _become("astra-launch")


def run() -> NoReturn:
    """`astra-run`: see `astra-run --help`."""
    _become("astra-run")


def train() -> NoReturn:
    """`astra-train`: see `astra-train --help`."""
    _become("astra-train")


def chat() -> NoReturn:
    """`astra-chat`: see `astra-chat --help`."""
    _become("astra-chat")


def text() -> NoReturn:
    """`astra-text`: see `astra-text --help`."""
    _become("astra-text")


if __name__ == "__main__":
    sys.exit(compile())
