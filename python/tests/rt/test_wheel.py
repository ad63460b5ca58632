"""The wheel: built twice to the same bytes, of what it is made, installed where nothing of Astra is. Takes minutes."""

import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import astra_rt
import pytest
from conftest import BUILD, ROOT

def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(tree, out):
    """A wheel of the tree's python/rt, compiled afresh."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "CCACHE_DISABLE": "1"}
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, tree / "python/rt",
        env=environment)  # fmt: skip
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Of the tree, and of a copy of it elsewhere."""
    folder = tmp_path_factory.mktemp("wheels")
    copy = folder / "a copy"
    for name in ("LICENSE", "NOTICE"):
        copy.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy)
    for part in ("cmake", "include", "lib/Runtime", "lib/Text", "python/rt"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    return build(ROOT, folder / "one"), build(copy, folder / "two")


def test_two_builds_give_the_same_bytes(wheels):
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_what_is_in_it(wheels):
    assert wheels[0].name == f"astra_rt-{astra_rt.__version__}-cp310-abi3-linux_{os.uname().machine}.whl"
    assert wheels[0].stat().st_size < 2_000_000
    with zipfile.ZipFile(wheels[0]) as file:
        names = set(file.namelist())
        library = file.read("astra_rt/_rt.abi3.so")
    sources = {f"astra_rt/{p.name}" for p in (ROOT / "python/rt/astra_rt").iterdir() if p.name != "__pycache__"}
    assert {n.rpartition("/")[2] for n in names if "/licenses/" in n} == {"LICENSE", "NOTICE"}
    assert {n for n in names if ".dist-info/" not in n} == sources | {"astra_rt/_rt.abi3.so"}
    assert str(ROOT).encode() not in library


def test_it_uses_the_stable_abi_alone(wheels):
    out = run(sys.executable, "-m", "abi3audit", "--strict", "--summary", wheels[0])
    assert "0 ABI version mismatches and 0 ABI violations" in " ".join(out.split())


def test_it_runs_on_older_systems(wheels):
    assert "manylinux_2_34" in run(sys.executable, "-m", "auditwheel", "show", wheels[0])


def test_it_works_where_nothing_else_is(wheels, bundle, tmp_path):
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh/bin/python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheels[0])
    out = run(python, "-c", "import sys, astra_rt, numpy; m = astra_rt.load(sys.argv[1]);"
              "print(astra_rt.__file__, m(numpy.ones((1, 4), 'f')).tolist())", bundle("steps"),
              cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})  # fmt: skip
    assert str(tmp_path) in out and "[[1.0, 2.0, 3.0, 4.0]]" in out


def test_the_stubs_are_true():
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "MYPYPATH": str(BUILD / "python")}
    assert "no issues found" in run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "-p", "astra_rt",
                                    env=environment)  # fmt: skip
    assert "no issues found" in run(sys.executable, "-m", "mypy.stubtest", "astra_rt", env=environment)
