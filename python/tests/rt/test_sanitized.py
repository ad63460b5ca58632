"""The other tests under AddressSanitizer and UndefinedBehaviorSanitizer: a module of its own, built by g++, in an interpreter that
is not sanitized, which loads the sanitizer first. Python takes its memory from malloc, so that of its objects is watched too."""

import os
import pathlib
import re
import subprocess
import sys

from conftest import ROOT

# Time, the size of the process, other processes (which would load the sanitizer too), and what this module is not built for.
LEFT_OUT = "not quick and not grow and not ctrl_c and not docs and not manual and not service and not files_of_states and not described"
FILES = "test_calls.py", "test_out.py", "test_hash.py", "test_tensors.py", "test_sessions.py", "test_process.py"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, **options)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


def test_no_access_outside_of_memory(tmp_path):
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    launcher = f"-DCMAKE_CXX_COMPILER_LAUNCHER={ROOT}/cmake/ccache"
    run("cmake", "-S", ROOT / "python/rt", "-B", tmp_path / "build", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_C_COMPILER=gcc",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_C_FLAGS={flags}", launcher,
        f"-DPython3_EXECUTABLE={sys.executable}")  # fmt: skip
    run("cmake", "--build", tmp_path / "build", "--target", "astra_rt_module")
    package = tmp_path / "python/astra_rt"
    package.mkdir(parents=True)
    for part in (ROOT / "python/rt/astra_rt").iterdir():
        if part.name != "__pycache__":
            (package / part.name).symlink_to(part)
    (module,) = (tmp_path / "build").rglob("_rt.abi3.so")
    (package / "_rt.abi3.so").symlink_to(module)
    assert "__asan_report_load8" in run("nm", "-D", "--undefined-only", module)
    libraries = [run("g++", f"-print-file-name=lib{name}.so").strip() for name in ("asan", "ubsan", "stdc++")]
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONMALLOC": "malloc", "LD_PRELOAD": ":".join(libraries),
                   "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1", "UBSAN_OPTIONS": "print_stacktrace=1"}  # fmt: skip
    environment.pop("ASTRA_NIGHTLY", None)
    # That an access outside of memory is seen: strides that leave an array, whose elements the module makes row-major.
    program = "import numpy as np, astra_rt; a = np.zeros(4, 'f'); astra_rt.from_dlpack(np.lib.stride_tricks.as_strided(a, (999,), (8,)))._address"
    control = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=600)
    assert control.returncode != 0 and "heap-buffer-overflow" in control.stderr and "gather" in control.stderr, control.stderr
    here = pathlib.Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", LEFT_OUT, *(here / f for f in FILES)]
    out = run(*command, env=environment)
    assert int(re.search(r"(\d+) passed", out)[1]) > 120, out
