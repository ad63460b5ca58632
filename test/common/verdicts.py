"""Verdicts by content: what has passed in an emulator, with the same bytes of everything that goes in, need not run again.

Takes:    the words of a command, and what else its verdict depends on (files, bytes, text).
Gives:    a key: SHA-256 of the program, the runtime's library beside it, qemu where it runs the program, the content of every
          file that a word names, and the words without their folders; whether that key has passed, and what was noted then.
          The folder in which kernels are kept that tests have compiled (objects): the flag of astra-compile for it.
Keeps:    a verdict is written after a pass alone, aside and then renamed, with the hash of its own content, so a damaged one
          is one that is not there. The folder is ASTRA_TEST_CACHE, else astra-test in the user's cache folder; ASTRA_TEST_FRESH
          (scripts/test --fresh) finds nothing. prune bounds it, what was not used for longest first.
Does not: decide what depends on what: a caller whose command reads a file that no word names gives it in `also`.

    python3 test/common/verdicts.py --prune      # bounds the folder
    python3 test/common/verdicts.py --folder     # prints it
    python3 test/common/verdicts.py --run FILE ... -- COMMAND ...     # unless it has passed with these files and programs
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 2 << 30  # bytes of the whole folder, behind prune
FRESH = bool(os.environ.get("ASTRA_TEST_FRESH"))


def folder():
    given = os.environ.get("ASTRA_TEST_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "astra-test"


def compile_flags():
    """For astra-compile: where kernels are found that were compiled from the same C before."""
    return [] if FRESH else [f"--cache={folder() / 'objects'}"]


@functools.lru_cache(maxsize=None)
def _hash_of(path, size, changed):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_of(path):
    """Of a file's content; once for each state that it has had."""
    path = os.path.realpath(path)
    told = os.stat(path)
    return _hash_of(path, told.st_size, told.st_mtime_ns)


def _named(word):
    """The file at the end of a word (FILE, --flag=FILE, --flag=name=FILE) and what stands before it; None where there is none."""
    parts = word.split("=")
    for first in range(len(parts)):
        path = "=".join(parts[first:])
        if os.path.isfile(path):
            return "=".join(parts[:first]), path
    return None


def _pieces(word):
    """A word, or where it names several files, `--data=x=FILE,y=FILE`, each part between commas."""
    named = _named(word)
    return [word] if named and os.sep not in named[0] else word.split(",")


def key(words, also=(), written=()):
    """`also`: paths of files that are read, and bytes. `written`: paths that the command writes: their content is no part of it."""
    hashed = hashlib.sha256()
    written = {str(path) for path in written}

    def add(kind, content):
        content = content if isinstance(content, bytes) else str(content).encode()
        hashed.update(f"{kind} {len(content)} ".encode() + content)

    words = [str(word) for word in words]
    for word in (piece for word in words for piece in _pieces(word)):
        named, program = _named(word), shutil.which(word)
        path = named[1] if named else program
        if path and path not in written:
            add("file", f"{named[0] if named else ''} {hash_of(path)}")
            library = Path(path).resolve().parent.parent / "lib/libastra_rt.so"
            if os.access(path, os.X_OK) and library.exists():
                add("runtime", hash_of(library))
        else:  # a word, or a file that is written: its folder is of this run
            before, _, last = word.rpartition("=")
            add("word", f"{before}={os.path.basename(last)}" if os.sep in last else word)
    for thing in also:
        add("also", thing if isinstance(thing, bytes) else hash_of(thing))
    add("words", len(words))
    return hashed.hexdigest()


class Verdicts:
    """What a run of tests has found there and what it has added."""

    def __init__(self):
        self.known = self.run = 0

    def find(self, name):
        """What was noted (text) when this key passed, or None."""
        try:
            head, _, note = (_place(name)).read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            head, note = "", ""
        if FRESH or head != _seal(name, note):
            self.run += 1
            return None
        os.utime(_place(name))
        self.known += 1
        return note

    def passed(self, name, note=""):
        """A folder that cannot be written costs time alone."""
        place = _place(name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix=".", delete=False) as aside:
                aside.write(_seal(name, note) + "\n" + note)
            os.replace(aside.name, place)
        except OSError:
            pass

    def show(self):
        if self.known + self.run:
            print(f"verdicts: {self.known} known, {self.run} run")


def _place(name):
    return folder() / "verdicts" / name[:2] / name


def _seal(name, note):
    return "passed " + hashlib.sha256(f"{name}\n{note}".encode()).hexdigest()


def run_once(files, command):
    """The exit code of a command that is a function of the files that it names and of `files`; 0 at once where it has passed."""
    verdicts, name = Verdicts(), key(command, also=files)
    if verdicts.find(name) is not None:
        print("verdicts: this has passed with the same bytes, and is not run again (scripts/test --fresh)")
        return 0
    code = subprocess.call(command)
    if code == 0:
        verdicts.passed(name)
    return code


def prune(limit=LIMIT):
    """Removes files until the folder has at most `limit` bytes; gives how many files and bytes are left."""
    found = []
    for path in folder().rglob("*"):
        try:
            if path.is_file():
                told = path.stat()
                found.append((max(told.st_mtime, told.st_atime), told.st_size, path))
        except OSError:
            pass  # removed meanwhile
    total, left = sum(size for _, size, _ in found), len(found)
    for _, size, path in sorted(found, key=lambda f: f[0]):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total, left = total - size, left - 1
    return left, total


if __name__ == "__main__":
    if sys.argv[1:] == ["--folder"]:
        print(folder())
    elif sys.argv[1:2] == ["--run"] and "--" in sys.argv:
        at = sys.argv.index("--")
        sys.exit(run_once(sys.argv[2:at], sys.argv[at + 1 :]))
    elif sys.argv[1:] == ["--prune"]:
        print("%s: %d files, %d bytes" % (folder(), *prune()))
    else:
        sys.exit(__doc__)
