"""Every dtype: interpreter, evaluator, compiled C and emulated GPU give the same bytes. One module has all kernels of a dtype."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import astra

kernel = astra.kernel
RUN = Path(__file__).resolve().parents[3] / "build/bin/astra-run"
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
          "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]  # fmt: skip
SAMPLE = ["bool", "int8", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"]  # of every day, on the GPU
GPUS = DTYPES if os.environ.get("ASTRA_NIGHTLY") else SAMPLE
OTHERS = SAMPLE if os.environ.get("ASTRA_NIGHTLY") else ["bfloat16"]  # on the other GPUs too, whose code is another one
N, B = 53, 16


@astra.kernel
def elementwise(x, y, out, *, BLOCK, WIDE, FILL):
    at = (kernel.program_id(0) * BLOCK,)
    a = kernel.cast(kernel.load(x, at, (BLOCK,), fill=FILL), WIDE)
    b = kernel.cast(kernel.load(y, at, (BLOCK,), fill=FILL), WIDE)
    kernel.store(out, at, kernel.cast(kernel.where(a < b, a * b, kernel.maximum(a, b) - b), out.dtype), drop=True)


@astra.kernel
def folded(x, total, greatest, order, *, BLOCK, WIDE, FILL):
    row = kernel.program_id(0)
    t = kernel.cast(kernel.load(x[None], (0, row * BLOCK), (1, BLOCK), fill=FILL), WIDE)
    kernel.store(total, (row,), kernel.cast(kernel.sum(t, axis=1), total.dtype))
    kernel.store(greatest, (row,), kernel.cast(kernel.max(t, axis=1), total.dtype))
    kernel.store(order, (row, 0), kernel.argsort(t))


@astra.kernel
def combined(x, out, *, BLOCK):
    at = kernel.program_id(0) * BLOCK
    t = kernel.load(x, (at,), (BLOCK,), fill=0)
    kernel.scatter(out, ((at + kernel.arange(BLOCK)) % 7,), t, mode="add")


@astra.kernel
def multiplied(x, y, out, *, WIDE):
    a = kernel.reshape(kernel.load(x, (0,), (48,)), (4, 12))
    b = kernel.reshape(kernel.load(y, (0,), (48,)), (12, 4))
    kernel.store(out, (0, 0), kernel.dot(kernel.cast(a, WIDE), kernel.cast(b, WIDE)))


@astra.kernel
def carried(x, out, *, FILL):
    kernel.store(out, (kernel.program_id(0) * 8,), kernel.load(x[::-1], (kernel.program_id(0) * 8,), (8,), fill=FILL), drop=True)


def values(dtype, seed):
    """Numbers of the dtype: ordinary ones, extremes, of floats zeros of both signs, infinities, NaNs."""
    rng = np.random.default_rng(seed)
    t = astra.dtype(dtype)
    if t.kind == "b":
        return astra.asarray(rng.integers(0, 2, N).astype(bool))
    if t.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(0 if t.kind == "u" else -9, 9, N).astype(dtype)
        x[:2] = info.min, info.max
        return astra.asarray(x)
    x = rng.standard_normal(N) * 4
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-8
    return astra.astype(astra.asarray(x.astype(np.float64 if dtype == "float64" else np.float32)), dtype)


def calls(dtype):
    """Kernels with what they are called with."""
    t = astra.dtype(dtype)
    wide = "float32" if t.kind == "s" else "int32" if t.kind == "b" else dtype
    x, y = values(dtype, 1), values(dtype, 2)
    programs, fill = astra.ceildiv(N, B), False if t.kind == "b" else 0
    yield elementwise, (x, y), {"out": astra.spec((N,), dtype), "grid": programs, "BLOCK": B, "WIDE": wide, "FILL": fill}
    rows = {"total": astra.spec((programs,), dtype), "greatest": astra.spec((programs,), dtype), "order": astra.spec((programs, B), "int64")}
    yield folded, (x,), {**rows, "grid": programs, "BLOCK": B, "WIDE": wide, "FILL": fill}
    yield carried, (x,), {"out": astra.spec((N,), dtype), "grid": astra.ceildiv(N, 8), "FILL": fill}
    factor = "int32" if t.kind in "iu" and t.bits == 16 else wide
    product = "float32" if t.kind == "f" and t.bits == 16 else "int32" if t.kind in "iu" and t.bits < 32 else factor
    yield multiplied, (x, y), {"out": astra.spec((4, 4), product), "grid": 1, "WIDE": factor}
    if t.kind not in "bs":
        yield combined, (x,), {"out": astra.spec((7,), dtype), "grid": programs, "BLOCK": B}


def all_of(dtype, x, y):
    """The outputs of all kernels, over x and y."""
    out = []
    for f, inputs, given in calls(dtype):
        found = f(*([x, y] if len(inputs) == 2 else [x]), **given)
        out.extend(found if isinstance(found, tuple) else [found])
    return tuple(out)


def interpreted(dtype):
    for f, inputs, given in calls(dtype):
        found = kernel.interpret(f, *inputs, **given)
        yield from found if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype(dtype, tmp_path):
    x, y = values(dtype, 1), values(dtype, 2)
    expected = [t.tobytes() for t in interpreted(dtype)]
    assert [t.tobytes() for t in all_of(dtype, x, y)] == expected
    lowered = astra.trace(lambda x, y: all_of(dtype, x, y), astra.spec((N,), dtype), astra.spec((N,), dtype)).lower()
    gpus = ["cuda:sm_80", *(["cuda:sm_90", "hip:gfx942"] if dtype in OTHERS else [])] if dtype in GPUS and RUN.exists() else []
    compiled = lowered.compile(["native", *gpus, *(f"emu:{gpu}" for gpu in gpus)])
    assert [t.tobytes() for t in compiled(x, y)] == expected
    if not gpus:
        return
    compiled.save(tmp_path / "all.astra")
    words = [str(RUN), str(tmp_path / "all.astra")]
    for (name, _), v in zip(compiled._signatures["main"].inputs, (x, y)):
        np.save(tmp_path / f"{name}.npy", np.frombuffer(v.tobytes(), f"u{v.dtype.itemsize}" if dtype.startswith(("bfloat", "float8")) else dtype))
        words.append(f"--input={name}={tmp_path / name}.npy")
    names = [n for n, _ in compiled._signatures["main"].outputs]
    words += [f"--output={n}={tmp_path / 'out'}.{n}.npy" for n in names]
    for gpu in gpus:
        ran = subprocess.run([*words, f"--emulate={gpu}"], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert [np.load(tmp_path / f"out.{n}.npy").tobytes() for n in names] == expected, gpu
