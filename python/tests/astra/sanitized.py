"""The tests of this package under AddressSanitizer and UndefinedBehaviorSanitizer.

usage: PYTHONPATH=build/python build/venv/bin/python python/tests/astra/sanitized.py [ARGUMENTS OF PYTEST...]
Takes:    the tree; clang of scripts/setup. The compiler and the runtime are built with sanitizers in build/asan-python: an hour of a processor the
          first time.
Gives:    pytest's report of this folder by day's measure, or of what the arguments say; exit code 1 too where an access outside of memory is not seen.
Keeps:    the interpreter is not sanitized: it loads the sanitizer first, and Python takes its memory from malloc, so that of its objects is
          watched too. Kernels are compiled as always: test/e2e/sanitized.py tries those.
Does not: look for leaks (memory.py does); run what starts programs of the build or checkers of types, or measures memory.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/asan-python"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -shared-libasan"
LEFT_OUT = "not memory and not typed and not astra_train and not one_digest"


def output(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout.strip()


def build():
    """The package with sanitized modules."""
    launcher = ROOT / "cmake/ccache"
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang-22",
                    "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_C_FLAGS_RELEASE=-O1", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", f"-DCMAKE_C_FLAGS={FLAGS}",
                    f"-DCMAKE_CXX_FLAGS={FLAGS}", f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
                    f"-DPython_EXECUTABLE={sys.executable}", f"-DPython3_EXECUTABLE={sys.executable}"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run(["cmake", "--build", BUILD, "--target", "astra_core_module", "astra_rt_module"], check=True)
    for name, folder in (("astra", "python/compiler/astra"), ("astra_rt", "python/rt/astra_rt")):
        for part in (ROOT / folder).iterdir():
            link = BUILD / "python" / name / part.name
            if part.name != "__pycache__" and not link.is_symlink():
                link.symlink_to(part)


def main(arguments):
    build()
    libraries = [output("clang++-22", "-print-file-name=libclang_rt.asan-x86_64.so"), output("g++", "-print-file-name=libstdc++.so")]
    kept = {k: v for k, v in os.environ.items() if k != "ASTRA_NIGHTLY"}
    environment = {**kept, "PYTHONPATH": str(BUILD / "python"), "PYTHONMALLOC": "malloc", "LD_PRELOAD": ":".join(libraries), "PYTHONDONTWRITEBYTECODE": "1",
                   "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0", "UBSAN_OPTIONS": "print_stacktrace=1"}  # fmt: skip
    # That an access outside of memory is seen: strides that leave an array, which the module copies.
    program = "import numpy as np, astra_rt; a = np.zeros(4, 'f'); astra_rt.from_dlpack(np.lib.stride_tricks.as_strided(a, (999,), (8,)))"
    control = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    if control.returncode == 0 or "heap-buffer-overflow" not in control.stderr:
        print(f"sanitized.py: an access outside of memory was not seen:\n{control.stderr}")
        return 1
    chosen = arguments or ["-k", LEFT_OUT, pathlib.Path(__file__).parent]
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, chosen)], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
