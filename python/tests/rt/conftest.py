"""Bundles for the tests of astra_rt, compiled once a run; a fresh interpreter that has astra_rt. What is skipped is listed as
scripts/test wants it. Tests of wheels and under sanitizers take minutes: they are the night's (ASTRA_NIGHTLY=1)."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("ASTRA_BUILD", ROOT / "build"))
sys.path.append(str(ROOT / "test/common"))
import verdicts  # noqa: E402

collect_ignore = [] if "ASTRA_NIGHTLY" in os.environ else ["test_wheel.py", "test_sanitized.py"]
SOURCES = {
    "affine": ROOT / "examples/affine/affine.uop",
    "compact": ROOT / "test/e2e/modules/compact.uop",
    "equations": ROOT / "test/e2e/cases/entries.uop",
    "digits": ROOT / "examples/digits/digits.onnx",
}
OPTIONS = {"digits": ["--dim", "batch=1..64"]}


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    """bundle("steps") is the path of a compiled bundle."""
    folder, made = tmp_path_factory.mktemp("bundles"), {}

    def path(name):
        if name not in made:
            source = SOURCES.get(name, HERE / f"bundles/{name}.uop")
            made[name] = str(folder / f"{name}.astra")
            command = [BUILD / "bin/astra-compile", source, "-o", made[name], "--target=cpu:x86-64-v3", *OPTIONS.get(name, [])]
            subprocess.run([*command, *verdicts.compile_flags()], check=True)
        return made[name]

    return path


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"skipped: {report.nodeid}: {why.removeprefix('Skipped: ')}")


@pytest.fixture
def load(bundle):
    """load("steps") is a fresh module."""
    import astra_rt

    return lambda name, **options: astra_rt.load(bundle(name), **options)


@pytest.fixture
def python():
    """Runs a program in a fresh interpreter; gives what it prints."""

    def run(program, *args, **options):
        done = subprocess.run([sys.executable, *options.pop("flags", ()), "-c", program, *args], capture_output=True,
                              text=True, timeout=120, **options)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
