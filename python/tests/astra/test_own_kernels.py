"""The compiler's own kernels: the table is what kernels-gen/kernels_table.py writes, and each of its forms has the bits of the ops that it stands for."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
OPT = ROOT / "build/bin/astra-opt"
TABLE = (ROOT / "lib/Schedule/WrittenKernels.inc").read_text()
MODULES = re.findall(r'^\{"([\w-]+)",.*?R"uop\((.*?)\)uop"\},$', TABLE, re.M | re.S)
FORMS = [(name, form) for name, text in MODULES for form in re.findall(r"^  entry @(\w+)\(", text, re.M)]
SIZES = {"a2": 3, "a3": 2, "b3": 3, "a4": 2, "b4": 1, "c4": 3, "n": 70, "b": 2, "h": 2, "g": 3, "s": 17, "t": 65, "d": 5, "e": 7, "k": 17}
LARGE = {"a2": 2, "a3": 1, "b3": 2, "a4": 1, "b4": 2, "c4": 1, "n": 4100, "b": 1, "h": 1, "g": 1, "s": 3, "t": 520, "d": 8, "e": 3, "k": 17}
ONES = dict.fromkeys(SIZES, 1)
TYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "u4": np.uint8, "bool": np.bool_}


def test_the_table_is_fresh():
    subprocess.run([sys.executable, ROOT / "kernels-gen/kernels_table.py", "--check"], check=True)


def test_there_are_all_kernels():
    assert [name for name, _ in MODULES] == ["layer-norm", "rms-norm", "attention", "dequantized-product"]
    assert all(f"entry @{form}.kernel(" in text for name, text in MODULES for n, form in FORMS if n == name) and len(FORMS) >= 29


def value(rng, dtype, shape, special):
    if dtype == "bool":
        return rng.random(shape) < 0.7
    if dtype in ("i8", "u4"):
        return rng.integers(*((-128, 128) if dtype == "i8" else (0, 16)), shape).astype(TYPES[dtype])
    x = np.asarray(rng.standard_normal(shape), TYPES[dtype])
    if special and x.size > 8:
        x.reshape(-1)[rng.integers(0, x.size, 3)] = [-0.0, np.inf, np.nan]
    return x


@pytest.mark.parametrize("sizes", [SIZES, LARGE, ONES], ids=["small", "large", "ones"])
@pytest.mark.parametrize("name, form", FORMS, ids=[form for _, form in FORMS])
def test_a_form_has_the_bits_of_its_ops(name, form, sizes, tmp_path):
    text = dict(MODULES)[name]
    model = tmp_path / "model.uop"
    model.write_text(text)
    sizes = dict(sizes, n=min(sizes["n"], 70)) if name == "dequantized-product" else sizes
    inputs = re.search(rf"^  entry @{form}\((.*?)\) -> ", text, re.M)[1]
    rng = np.random.default_rng(len(form))
    given = []
    for i, (of, dtype, extents) in enumerate(re.findall(r"%(\w+) : (\w+)(?:\[(.*?)\])?", inputs)):
        shape = tuple(int(np.prod([int(p) if p.isdigit() else sizes[p] for p in e.split("*")])) for e in extents.split(", ") if e)
        x = np.asarray(1e-5 if of == "epsilon" else 0.25, np.float32) if of in ("epsilon", "scale") and not shape else value(rng, dtype, shape, i == 0 and sizes["n"] > 1)
        np.save(tmp_path / f"{of}.npy", x)
        given.append(f"--input={of}={tmp_path / of}.npy")
    results = []
    for entry in (form, f"{form}.kernel"):
        result = tmp_path / f"{entry}.npy"
        subprocess.run([OPT, model, "--eval", f"--entry={entry}", *given, f"--output=y={result}"], check=True)
        results.append(np.load(result))
    assert results[0].shape == results[1].shape and results[0].tobytes() == results[1].tobytes()
