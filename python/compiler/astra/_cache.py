"""Compilation in the process, and what is kept of it on the disk.

Takes:    a module, targets.
Gives:    the bytes of a bundle.
Keeps:    in ASTRA_CACHE_DIR (or the user's cache folder; "" is nowhere) whole bundles by the digest of what they are made of, and objects of
          kernels, which the compiler finds by their content. They take at most ASTRA_CACHE_SIZE bytes (1 GiB): what was not used for the
          longest time goes. A file is there as a whole or not at all, and is checked when it is read: several processes may use one
          folder. A line of progress on a terminal where compiling takes over a second. Nothing is compiled under ASTRA_FROZEN=1, but what
          is kept is taken.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from typing import Any, Sequence

from astra_rt import __version__

from . import _core
from ._errors import FrozenError, UnsupportedError
from ._tensor import call, user_line

_SUFFIX = ".bundle"
compiled = 0  # how often this process has compiled


def folder() -> str:
    """Where bundles and objects of kernels are kept; "" for nowhere."""
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


def checked_numerics(contract: str) -> str:
    """The name of a numeric contract, if it is one."""
    call(_core.check_numerics, contract)
    return contract


def compile(module: Any, targets: Sequence[str] = (), what: str = "a function", jobs: int = 0, frozen: bool | None = None,
            assets: Sequence[tuple[str, bytes]] = (), check: bool = False, numerics: str = "strict") -> bytes:  # fmt: skip
    """The bundle of a module. targets: names as `astra-compile --target` has them; none: this machine's best. assets: files that go into
    it. check: as `astra-compile --check`. numerics: as `astra-compile --numerics`."""
    global compiled
    if numerics != "strict":
        module = call(_core.with_numerics, module, numerics)
    names = [native() if t == "native" else t for t in targets] or [native()]
    kept = _Kept(module, [*names, "--check"] if check else names, assets)
    bundle = kept.read()
    if bundle is not None:
        return bundle
    if frozen if frozen is not None else os.environ.get("ASTRA_FROZEN", "") not in ("", "0"):
        raise FrozenError(f"{what} would have to be compiled here ({user_line()}), and ASTRA_FROZEN or frozen=True forbids it; "
                          "load a saved bundle")  # fmt: skip
    progress = _Progress(what)
    try:
        done = call(module.compile, names, "", folder(), jobs or os.cpu_count() or 1, "", progress, list(assets), check)
    finally:
        progress.clear()
    compiled += 1
    kept.write(done.bundle)
    return bytes(done.bundle)


def _compiler() -> str:
    """What tells one build of the compiler from another."""
    about = os.stat(_core.__file__)
    return f"{__version__} {about.st_size} {about.st_mtime_ns}"


class _Kept:
    """The place of a bundle in the folder."""

    def __init__(self, module: Any, targets: Sequence[str], assets: Sequence[tuple[str, bytes]]) -> None:
        base = folder()
        self.path = ""
        if base:
            files = [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in assets]
            digest = hashlib.sha256("\n".join([_compiler(), *targets, *files, module.digest(True)]).encode()).hexdigest()
            self.path = os.path.join(base, digest + _SUFFIX)

    def read(self) -> bytes | None:
        """The bundle, if it is there and whole."""
        if not self.path:
            return None
        try:
            with open(self.path, "rb") as file:
                data = file.read()
            os.utime(self.path)
        except OSError:
            return None
        return data[32:] if len(data) > 32 and hashlib.sha256(data[32:]).digest() == data[:32] else None

    def write(self, bundle: bytes) -> None:
        """Keeps a bundle. A folder that cannot be written to is passed over: it is a cache."""
        if not self.path:
            return
        base = os.path.dirname(self.path)
        temporary = None
        try:
            os.makedirs(base, exist_ok=True)
            handle, temporary = tempfile.mkstemp(".tmp", dir=base)
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(bundle).digest() + bundle)
            os.replace(temporary, self.path)
            temporary = None
            _shrink(base)
        except OSError:
            pass
        finally:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)


def _most() -> int:
    try:
        return int(os.environ.get("ASTRA_CACHE_SIZE", 1 << 30))
    except ValueError:
        return 1 << 30


def _shrink(base: str) -> None:
    """Removes what was not used for the longest time, and what killed processes left."""
    files, total, now = [], 0, time.time()
    with os.scandir(base) as entries:
        for e in entries:
            if not e.name.endswith((_SUFFIX, ".o", ".tmp")):
                continue
            try:
                about = e.stat()
            except OSError:  # another process was faster
                continue
            if e.name.endswith(".tmp"):
                if now - about.st_mtime > 3600:
                    _remove(e.path)
                continue
            files.append((about.st_mtime, about.st_size, e.path))
            total += about.st_size
    for _, size, path in sorted(files):
        if total <= _most():
            break
        _remove(path)
        total -= size


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


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

    def clear(self) -> None:
        """Takes the line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = False
