"""The compiler's own kernels: the table is what kernels-gen/kernels_table.py writes, and each of its forms has the bits of the ops that it stands for."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astra import _core
from astra._tensor import call

ROOT = Path(__file__).resolve().parents[3]
OPT, COMPILE, RUN, TRAIN = (ROOT / "build/bin" / f"astra-{name}" for name in ("opt", "compile", "run", "train"))
EXAMPLE = ROOT / "examples/chargpt"
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
    assert all(f"entry @{form}.kernel(" in text for name, text in MODULES for n, form in FORMS if n == name) and len(FORMS) >= 31


@pytest.mark.parametrize("name, text", MODULES, ids=[name for name, _ in MODULES])
def test_programs_are_shown_to_be_apart_from_the_text_alone(name, text):
    assert call(_core.verify_programs, call(_core.parse_uop, text, name)) == []


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


def compiled(folder, model, *options):
    """Bundles without and with the compiler's own kernels, and what was said of these."""
    there = [folder / "plain.astra", folder / "kernels.astra"]
    for bundle, more in zip(there, ([], ["--kernels=all"])):
        words = [COMPILE, model, "-o", bundle, "--target=native", "--dim=batch=8", *options, *more]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    return there, {n: int(k) for n, k in re.findall(r"--kernels: ([\w-]+) stands for (\d+) part", said)}


@pytest.fixture(scope="module")
def chargpt(tmp_path_factory):
    """A transformer of six layers: the folder of its model and of some text."""
    folder = tmp_path_factory.mktemp("chargpt")
    shutil.copy(EXAMPLE / "chargpt.onnx", folder)
    subprocess.run([sys.executable, EXAMPLE / "begin.py", folder / "chargpt.weights"], check=True)
    rng = np.random.default_rng(0)
    np.save(folder / "token.npy", rng.integers(0, 96, (16, 128)).astype(np.uint8))
    np.save(folder / "target.npy", rng.integers(0, 96, (16, 128)).astype(np.uint8))
    np.save(folder / "few.npy", rng.integers(0, 96, (8, 128)).astype(np.uint8))
    return folder


def test_a_transformer_has_the_bytes_that_it_has_without_kernels(chargpt):
    bundles, said = compiled(chargpt, chargpt / "chargpt.onnx")
    assert said == {"layer-norm": 13, "attention": 6}
    results = []
    for bundle in bundles:
        words = [RUN, bundle, f"--input=token={chargpt / 'few.npy'}", f"--output=logits={chargpt / 'y.npy'}"]
        subprocess.run(words, check=True, capture_output=True)
        results.append(np.load(chargpt / "y.npy"))
    assert np.isfinite(results[0]).all() and results[0].std() > 0.01 and results[0].tobytes() == results[1].tobytes()


def test_its_training_too(chargpt):
    """What the gradients read stays as it is: the kernels stand in the entry that infers."""
    bundles, said = compiled(chargpt, chargpt / "chargpt.onnx", "--train", "--loss=cross_entropy", "--optimizer=sgd(lr=1e-1)")
    assert set(said) == {"layer-norm", "attention"}
    weights = []
    for bundle in bundles:
        data = f"--data=token={chargpt / 'token.npy'},target={chargpt / 'target.npy'}"
        subprocess.run([TRAIN, bundle, data, "--epochs=1", "--batch=8", f"--out={chargpt / 'w.safetensors'}", "--quiet"], check=True, capture_output=True)
        weights.append((chargpt / "w.safetensors").read_bytes())
    assert weights[0] == weights[1]
