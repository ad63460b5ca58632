"""Kernels are about as fast beside the compiler's own as docs/kernels.md records: no less than 0.8 of that. At night, since it measures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "bench"))
import kernels as bench  # noqa: E402


def test_each_kernel_of_the_benchmark_is_on_the_page():
    assert set(bench.recorded()) == {name for name, *_ in bench.rows()}


@pytest.mark.skipif(not os.environ.get("ASTRA_NIGHTLY") or not (ROOT / "build/bin/astra-run").exists(), reason="ASTRA_NIGHTLY is not set, or there is no astra-run")
def test_no_kernel_has_become_slow():
    done = subprocess.run([sys.executable, ROOT / "bench/kernels.py", "--recorded", "--rounds", "3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
