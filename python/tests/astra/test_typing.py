"""Types: the package and a program that uses it pass mypy --strict; every public name is known to checkers, listed and documented."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import astra
from astra import _dtypes, _methods, _ops

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGES = pathlib.Path(os.path.dirname(astra.__file__)).parent

PROGRAM = """
import astra

@astra.jit
def step(x: astra.Tensor, k: int) -> astra.Tensor:
    y = (2 - x) @ x.mT + x[0, 1:].sum() * k - ~(x > 0).any()
    return astra.softmax(y.at[0].set(1.0).reshape(-1), axis=0)

x = astra.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=astra.float32)
y: astra.Tensor = -x.astype(astra.float64).T
x.relue()
"""


def mypy(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "MYPYPATH": str(PACKAGES)}
    done = subprocess.run([sys.executable, "-m", "mypy", *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=PACKAGES)
    return done.stdout + done.stderr


@pytest.mark.skipif(not os.environ.get("ASTRA_NIGHTLY"), reason="ASTRA_NIGHTLY is not set")  # mypy takes 20 s
def test_the_package_is_typed(tmp_path):
    config = ("--strict", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path / "cache")
    out = mypy(*config, "-p", "astra")
    assert "no issues found" in out, out
    program = tmp_path / "program.py"  # what a program sees: the one wrong name, and nothing else
    program.write_text(PROGRAM + "".join(f"astra.{n}\n" for n in dir(astra) if not n.startswith("__")))
    out = mypy(*config, program)
    assert "Found 1 error" in out and '"Tensor" has no attribute "relue"' in out, out


def test_every_public_name_is_known_and_documented():
    public = [n for n in dir(astra) if not n.startswith("__")]
    assert set(public) - {"from_torch", "register_lowering", "torch"} == {n for n in astra.__all__ if not n.startswith("__")}
    assert not [n for n in vars(astra) if not n.startswith("_") and n not in public]
    assert not [n for n in astra.__all__ if not getattr(astra, n).__doc__ and n != "newaxis"]
    words = set(re.findall(r"\w+", astra.__doc__))
    assert not {n for n in public if n not in _ops.__all__ and n not in _dtypes.DTYPES} - words


def test_tensors_have_what_checkers_see():
    names = set(vars(_methods.Methods)) - set(_methods._OF_THE_CLASS)
    assert {"__add__", "__radd__", "__eq__", "softmax", "at", "T"} <= names
    own, known = vars(astra.Tensor), vars(_methods.Methods)
    assert all(getattr(own[n], "__wrapped__", own[n]) is known[n] for n in names)
    assert astra.Tensor.__mro__ == (astra.Tensor, object)
