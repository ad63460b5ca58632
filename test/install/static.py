"""The static astra-compile, in a root folder that holds nothing but it and libc's files.

usage: static.py STATIC SHARED     the program of build/static, and one that was linked to LLVM's shared libraries

Takes:    two programs of one commit; unshare and chroot.
Gives:    its size, and its size in an archive (xz; zip's deflate), which has a bound; exit code 1 and a sentence if it
          needs other files than libc's, or gives other bytes than the shared one.
"""

import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
MOST = 60 << 20  # bytes, compressed by xz
TARGETS = "cpu:x86-64-v3,cpu:x86-64-v4,cpu:aarch64,cuda:sm_90,hip:gfx942,emu:hip:gfx942"
MODELS = ["examples/affine/affine.uop", "examples/digits/digits.onnx", "test/e2e/modules/decode.uop"]


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def flags(model):
    dims = ["--dim", "batch=1..64"] if model.endswith(".onnx") else []
    return [*dims, f"--target={TARGETS}", "--ptxas=none", "--quiet"]


def main():
    static, shared = (Path(p).resolve() for p in sys.argv[1:3])
    libraries = dict(re.findall(r"(\S*\.so\S*) (?:=> (\S+) )?\(", run("ldd", static)))
    libraries.pop("linux-vdso.so.1", None)
    if others := {Path(name).name for name in libraries} - LIBC:
        sys.exit(f"{static} needs {', '.join(sorted(others))}")
    program = static.read_bytes()
    packed, deflated = len(lzma.compress(program)), len(zlib.compress(program, 9))
    print(f"{len(program)} bytes, {packed} with xz, {deflated} deflated")
    if packed > MOST:
        sys.exit(f"compressed it has {packed} bytes, at most {MOST} are wanted")
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "root"
        for name, path in libraries.items():
            file = Path(path or name)
            (bare / file.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
            shutil.copy(file.resolve(), bare / file.relative_to("/"))
        (bare / "tmp").mkdir()
        shutil.copy(static, bare / "astra-compile")
        for model in MODELS:
            name = Path(model).name
            shutil.copy(ROOT / model, bare / name)
            run("unshare", "-r", "env", "-i", "/usr/sbin/chroot", bare, "/astra-compile", f"/{name}", "-o", "/m.astra", *flags(name))
            run(shared, ROOT / model, "-o", f"{folder}/m.astra", *flags(name))
            if (bare / "m.astra").read_bytes() != Path(f"{folder}/m.astra").read_bytes():
                sys.exit(f"{model}: the static compiler gives other bytes than the shared one")
    print(f"{len(MODELS)} passed, 0 failed")


main()
