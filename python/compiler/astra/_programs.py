"""The programs that come with the wheel: those that need the compiler run in this process."""

from __future__ import annotations

import sys

from . import _core


def compile() -> int:
    """`astra-compile`: see `astra-compile --help`."""
    return int(_core.run_compile(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(compile())
