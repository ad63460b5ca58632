"""Runs a StableHLO program with Astra's tools and compares its results with numbers that JAX gave; keeps a sample of both."""
import json
import pathlib
import subprocess

import numpy as np

SAMPLE_FOLDER = pathlib.Path(__file__).parent / "sample"


def difference(got, want, tolerance):
    """What is wrong, or None."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "biu":
        if got.dtype != want.dtype:
            return f"type {got.dtype}, expected {want.dtype}"
        bad = np.argwhere(got != want)
        return None if not len(bad) else f"{len(bad)} differ, as at {tuple(bad[0])}: {got[tuple(bad[0])]}, expected {want[tuple(bad[0])]}"
    got, want = got.astype("c16"), want.astype("c16")
    worst = 0.0
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        if (np.isnan(g) != np.isnan(w)).any():
            return f"NaNs differ: {g[np.isnan(g) != np.isnan(w)][:3]}, expected {w[np.isnan(g) != np.isnan(w)][:3]}"
        infinite = np.isinf(g) | np.isinf(w)
        if (g[infinite] != w[infinite]).any():
            return "infinities differ"
        ok = ~np.isnan(w) & ~infinite
        if ok.any():
            scale = np.maximum(1.0, np.abs(w[ok]))
            worst = max(worst, float((np.abs(g[ok] - w[ok]) / scale).max()))
    return None if worst <= tolerance else f"differs by {worst:.3g}"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip()[:1500])


def evaluate(tools, program, args, results, folder, bundle, dims=()):
    """The results of a program, a list of arrays."""
    (folder / "model.mlir").write_text(program)
    flags = []
    for i, a in enumerate(args):
        np.save(folder / f"in{i}.npy", a)
        flags += ["--input", f"arg{i}={folder}/in{i}.npy"]
    for i, name in enumerate(results):
        flags += ["--output", f"{name}={folder}/out{i}.npy"]
    if bundle:
        run([tools / "astra-compile", folder / "model.mlir", "-o", folder / "model.astra", "--target=cpu:x86-64-v3", "--quiet", *dims])
        run([tools / "astra-run", folder / "model.astra", *flags])
    else:
        run([tools / "astra-compile", folder / "model.mlir", "--emit=uop", "-o", folder / "model.uop", *dims])
        run([tools / "astra-opt", folder / "model.uop", "--eval", *flags])
    return [np.load(folder / f"out{i}.npy") for i in range(len(results))]


def save(name, program, args, want, dims, tolerance):
    """A program of the sample, with its arguments and results."""
    SAMPLE_FOLDER.mkdir(exist_ok=True)
    (SAMPLE_FOLDER / f"{name}.mlir").write_text(program.strip() + "\n")
    about = {"results": list(want), "dims": dims, "tolerance": tolerance}
    arrays = {f"in{i}": a for i, a in enumerate(args)} | {f"out{i}": a for i, a in enumerate(want.values())}
    np.savez_compressed(SAMPLE_FOLDER / f"{name}.npz", about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)


def load(name):
    """(program, arguments, results by name, flags, tolerance)"""
    data = np.load(SAMPLE_FOLDER / f"{name}.npz")
    about = json.loads(data["about"].tobytes())
    args = [data[f"in{i}"] for i in range(sum(key.startswith("in") for key in data))]
    want = {label: data[f"out{i}"] for i, label in enumerate(about["results"])}
    return (SAMPLE_FOLDER / f"{name}.mlir").read_text(), args, want, about["dims"], about["tolerance"]
