"""Carries out the pages of docs/tutorials and docs/howto, as a reader would.

usage: test/docs/run.py [--build FOLDER] [--update] [PAGE...]
Each page is read from top to bottom, in an empty folder of its own:
  ```sh      is run by bash, and stops at the first command that fails; what it prints (stderr too) must be the ```text block
             that follows it, and nothing where none follows
  ```text    what the block before it prints. "..." within a line stands for any characters, as a line for any lines
  ```c, ```uop, ```python
             begin with a comment that names a file (// service.c); the block is written to it. A block that begins without
             one only shows something: a block that was written before has its lines, one after the other
Programs of build/bin are on PATH, and the runtime is installed for pkg-config; ASTRA is the folder of the tree.
A page that is not right fails with its name and line. Any other block of code is refused: what a reader can copy is run.
--update writes what was printed into those ```text blocks that are not right. The last line is "N passed, N failed".
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import refused
from page import ROOT, Failed, Page

FOLDERS = "docs/tutorials", "docs/howto"


def environment(build, work):
    """What a reader has who installed the programs and the runtime."""
    prefix = work / "prefix"
    for part in "runtime", "development":
        subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--component", part], check=True, stdout=subprocess.DEVNULL)
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASTRA_")}
    env["PATH"] = os.pathsep.join([str(build / "bin"), str(build / "venv/bin"), env["PATH"]])
    env["PKG_CONFIG_PATH"] = str(prefix / "lib/pkgconfig")
    env["LD_LIBRARY_PATH"] = str(prefix / "lib")
    env["ASTRA"] = str(ROOT)
    env["PYTHONPATH"] = str(build / "python")
    env["LC_ALL"] = "C.UTF-8"
    return env


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    options = parser.parse_args()
    build = options.build.resolve()
    paths = [p.resolve() for p in options.pages] or sorted(p for f in FOLDERS for p in (ROOT / f).glob("*.md") if p.name != "README.md")
    work = build / "docs-test"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    env = environment(build, work)
    passed, failed = refused.check(work / "refused")
    for path in paths:
        name = path.relative_to(ROOT)
        folder = work / path.stem
        folder.mkdir()
        before = time.monotonic()
        try:
            Page(path, folder, env).check(options.update)
            passed += 1
            print(f"ok    {name} ({time.monotonic() - before:.1f} s)", flush=True)
        except Failed as wrong:
            failed += 1
            print(f"FAIL  {name}:{wrong.line}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or not paths


sys.exit(main())
