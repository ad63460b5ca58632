"""End-to-end cases: a bundle computes what the reference evaluator computes, byte for byte.

Takes:    test/e2e/cases/*.uop and test/e2e/modules/*.uop, whose first comment lines say what to run:
              // case: n=7; n=8        dims and scalar inputs of one call, more calls of the same session behind `;`
              // case: n=1 param:w     a param that the caller replaces
              // case: entry:init; n=1 another entry than the first
              // case: n=7 specials    infinities and NaNs among the floats of inputs and params
              // case: n=7 tiny        floats whose products are about the least normal one of f32; of f16 about its own
              // case: n=1 runs:thin   a kernel whose name has `thin` runs; avoids:thin, none does
              // in-place: s t         these states are updated without a copy
              // variants: 2           some launch has so many variants
              // targets: NAME         CPU levels that a bundle has only where they are named, beside the others
              // gpus: NAME            GPUs beside those of each case, each with a bundle of its own
              // kernels: all 9        compiled with --kernels=all, which gives so many kernels of a grid
              // pack: no              its inputs are too large for the folder of --pack
          Machines are the CPU levels, the emulator with the host builds of the GPU kernels of both flavours, and the
          runtime's GPU devices on a stand-in driver (test/driver), which runs the same host builds.
          Every kernel of a CPU level runs between guard pages too (test/guard), at the corners of the dims; on aarch64
          where --guarded-aarch64 names the program for it. ASTRA_NIGHTLY: at ten times as many.
          What has passed in an emulator with the same bytes of everything is not run again (test/common/verdicts.py).
Gives:    one line per module; for a failure the commands that repeat it. Exit code 1 if anything differs.
Keeps:    inputs are functions of the case alone (seeded), with zeros of both signs among them; specials are a NaN with
          sign and payload, a signalling one, both infinities. NaNs come out canonical. Bytes take all values.
Does not: tolerate a bit: astra-run --expect compares bytes.

    build/venv/bin/python test/e2e/run.py [--build build] [--pack FOLDER] [--aarch64 build/aarch64/astra-run] [--seed N] [CASE.uop ...]
"""

import argparse
import ctypes
import itertools
import json
import re
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "common"))
import verdicts  # noqa: E402
from executed import Executed
from guarded import NIGHTLY, Guarded
from pack import Pack

DTYPES = {"bool": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16,
          "complex64": np.complex64, "complex128": np.complex128}
BITS = {"i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4e2m1": 4}  # sub-byte elements: files hold their codes, a byte each
EIGHTS = ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0")  # files hold their codes; every code is an input
DTYPES |= {t: np.uint8 for t in (*BITS, *EIGHTS)}
DTYPES |= {f"{k}{b}": getattr(np, f"{'u' if k == 'u' else ''}int{b}") for k in "iu" for b in (8, 16, 32, 64)}


CCACHE = Path(__file__).resolve().parents[2] / "cmake/ccache"
LEVELS = ("cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")  # those that are compiled where none is named
TILES = "cpu:x86-64-v4+amxbf16"
GPUS = ("cuda:sm_90", "hip:gfx942")  # warps of 32 and waves of 64


class Failure(Exception):
    """A command that did not give what it should."""


def command(*args, cwd=None):
    args = [str(a) for a in args]
    done = subprocess.run(args, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(args)}\n  exit {done.returncode}: {done.stderr.strip()[:2000]}")
    return done.stdout


def evaluate(expression, dims):
    code = expression.replace("floordiv", "//").replace(" mod ", " % ")
    return eval(code, {"min": min, "max": max}, dims)


# The integer that holds a float; the special values, the greatest that is no NaN first; the NaN that programs give.
SPECIALS = {"f16": (np.uint16, (0x7C00, 0xFE5A, 0xFC00, 0x7C01), 0x7E00),
            "bf16": (np.uint16, (0x7F80, 0xFFD2, 0xFF80, 0x7F81), 0x7FC0),
            "f32": (np.uint32, (0x7F800000, 0xFFC12345, 0xFF800000, 0x7F800001), 0x7FC00000),
            "f64": (np.uint64, (0x7FF << 52, 0xFFF8123456789ABC, 0xFFF << 52, 0x7FF0000000000001), 0x7FF8 << 48),
            "f8e4m3fn": (np.uint8, (0x7E, 0xFF, 0xFE, 0x7F), 0x7F),
            "f8e5m2": (np.uint8, (0x7C, 0xFD, 0xFC, 0x7D), 0x7E)}
PARTS = {"complex64": "f32", "complex128": "f64"}


def with_specials(rng, dtype, array):
    """The array with each special value at a place of its own, as many as there is room for."""
    if PARTS.get(dtype, dtype) in SPECIALS:
        holder, patterns, _ = SPECIALS[PARTS.get(dtype, dtype)]
        array = np.array(array)
        flat = array.reshape(-1).view(holder)
        for place, pattern in zip(rng.permutation(flat.size), patterns):
            flat[place] = pattern
    return array


def tiny(rng, dtype, array):
    """The array with floats times 2^-70 to 2^-57, so that products of two are about 2^-126; of f16 times 2^-18 to 2^-11."""
    low, high = (-18, -10) if dtype == "f16" else (-70, -56)
    exponents = rng.integers(low, high, array.shape)
    if dtype == "bf16":
        return (np.ldexp((array.astype(np.uint32) << 16).view(np.float32), exponents).view(np.uint32) >> 16).astype(np.uint16)
    return np.ldexp(array, exponents) if dtype in ("f16", "f32", "f64") else array


KINDS = {"specials": with_specials, "tiny": tiny}  # what a case may have done to its floats


def is_canonical(dtype, array):
    """Whether every NaN is the one that programs give."""
    if PARTS.get(dtype, dtype) not in SPECIALS:
        return True
    holder, patterns, canonical = SPECIALS[PARTS.get(dtype, dtype)]
    bits = np.ascontiguousarray(array).reshape(-1).view(holder)
    nans = (bits & holder((1 << holder(0).itemsize * 8 - 1) - 1)) > patterns[0]
    return bool((bits[nans] == canonical).all())


def random_array(rng, dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in BITS:
        return rng.integers(0, 1 << BITS[dtype], shape).astype(np.uint8)
    if dtype in EIGHTS:
        return rng.integers(0, 256, shape).astype(np.uint8)
    if dtype in ("i8", "u8"):  # all values, the extreme ones for certain
        values = rng.integers(0, 256, shape).astype(np.uint8)
        flat = values.reshape(-1)
        for extreme in (0, 127, 128, 255):
            if flat.size > 20:
                flat[rng.integers(0, flat.size)] = extreme
        return values.view(DTYPES[dtype])
    if dtype[0] in "iu":
        low = 0 if dtype[0] == "u" else -50
        return rng.integers(low, 50, shape).astype(DTYPES[dtype])
    if dtype.startswith("complex"):
        parts = np.stack([random_array(rng, "f32", shape), random_array(rng, "f32", shape)], -1)
        return (parts if dtype == "complex64" else parts.astype(np.float64)).view(DTYPES[dtype]).reshape(shape)
    values = rng.standard_normal(shape).astype(np.float32)
    flat = values.reshape(-1)
    for special in (0.0, -0.0):
        if flat.size > 20:
            flat[rng.integers(0, flat.size)] = special
    if dtype == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(DTYPES[dtype])


def packed(dtype, array):
    """The bytes that sub-byte elements lie in: low bits first along the last axis, rows padded to bytes."""
    if dtype not in BITS:
        return array
    bits, array = BITS[dtype], np.atleast_1d(array)
    width = [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % (8 // bits))]
    parts = np.pad(array, width).reshape(*array.shape[:-1], -(-array.shape[-1] * bits // 8), 8 // bits)
    return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), -1).astype(np.uint8)


def is_emulated(run):
    """Whether this machine's own instructions are not what runs, so that it takes long."""
    return run[0] in ("qemu-aarch64", "env") or any(str(word).startswith("--emulate=") for word in run)


class Module:
    """One .uop file, compiled, and the machines that run its bundle."""

    def __init__(self, path, options, folder, executed, guarded, known):
        self.executed, self.guarded, self.known = executed, guarded, known
        self.path, self.folder, self.bin = path, folder, Path(options.build) / "bin"
        self.bundle = folder / "model.astra"
        head = re.findall(r"^// ([\w-]+): *(.*)$", path.read_text(), re.M)
        self.cases = [v for k, v in head if k == "case"] or [""]
        self.moved = {}  # per state updated in place: the most bytes that a call has changed, its size
        self.wants = {k: v.split() for k, v in head if k in ("in-place", "variants", "targets", "gpus", "kernels")}
        targets = [f"--target={','.join([*LEVELS, *self.wants['targets']])}"] if "targets" in self.wants else []
        self.compile = [self.bin / "astra-compile", path, *(f"--kernels={names}" for names in self.wants.get("kernels", [])[:1])]
        command(*self.compile, "-o", self.bundle, "--verify-each", *targets, *verdicts.compile_flags())
        self.manifest = json.loads(command(self.bin / "astra-inspect", self.bundle, "--json"))["manifest"]
        self.entry = self.manifest["entries"][0]
        cpu = Path("/proc/cpuinfo").read_text().split()
        self.runs, self.programs = [], []
        self.guarded_by = [[self.bin / "guarded-run"]]
        if options.guarded_aarch64:
            self.guarded_by.append(["qemu-aarch64", options.guarded_aarch64])
        self.pack = options.pack
        if self.pack:
            self.bundle = folder / "pack.astra"
            command(*self.compile, "-o", self.bundle, *self.pack.compile_options(path))
            return
        for target in self.manifest["targets"]:
            lacking = " ".join(f for f in target["features"] if f not in cpu)
            if target["arch"] == "X86_64" and not lacking:
                for threads in (1, 2, 7):
                    self.runs.append([self.bin / "astra-run", f"--level={target['name'][4:]}", f"--threads={threads}",
                                      self.bundle])
            elif target["arch"] == "X86_64":
                options.lacking[target["name"]].append((path.stem, lacking))
            if target["arch"] == "AArch64" and options.aarch64:
                self.runs.append(["qemu-aarch64", options.aarch64, "--threads=2", self.bundle])
        if all(f in cpu for f in ("avx2", "fma", "bmi2")):
            bundles = {gpu: folder / "gpu.astra" for gpu in GPUS}
            bundles |= {gpu: folder / f"{gpu.split(':')[1]}.astra" for gpu in self.wants.get("gpus", [])}
            for bundle in dict.fromkeys(bundles.values()):
                of = [gpu for gpu in bundles if bundles[gpu] == bundle]
                command(*self.compile, "-o", bundle, "--target=" + ",".join([*of, *(f"emu:{gpu}" for gpu in of)]))
            for gpu, bundle in bundles.items():
                self.runs.append([self.bin / "astra-run", f"--emulate={gpu}", f"--seed={options.seed}", bundle])
                if gpu == "hip:gfx90a":  # the stand-in driver of AMD's GPUs is a gfx942
                    continue
                self.runs.append(["env", f"ASTRA_STAND_IN_BUNDLE={bundle}", self.bin / "astra-run", bundle,
                                  f"--device={gpu.split(':')[0]}:0", "--allow-ptx",  # without ptxas there is no cubin
                                  f"--driver={Path(options.build).resolve() / 'lib' / 'libastra-stand-in.so'}"])

        if all(f in cpu for f in ("avx2", "fma", "bmi2")):
            source = folder / "model.c"
            command(*self.compile, "--emit=c", "-o", source, "--target=cpu:x86-64-v3")
            machines = [["-march=x86-64-v3"]]
            for level in self.wants.get("targets", []):  # "cpu:x86-64-v4+avx512vnni"
                feature = level.partition("+")[2]
                if feature.replace("512", "512_") in cpu:
                    machines.append(["-march=x86-64-v4", f"-m{feature}"])
            for compiler, machine in itertools.product(("gcc", "clang-22"), machines):
                part, library = folder / f"{compiler}{machine[-1]}.o", folder / f"{compiler}{machine[-1]}.so"
                # Names without a folder, so that ccache finds them again.
                command(CCACHE, compiler, "-std=gnu11", *machine, "-O2", "-ffp-contract=off", "-fno-strict-aliasing",
                        "-w", "-fPIC", "-c", source.name, "-o", part.name, cwd=folder)
                command(compiler, "-shared", part, "-o", library)
                self.programs.append((compiler, ctypes.CDLL(str(library))))
            if TILES in self.wants.get("targets", []) and "avx512vl" in cpu:  # tiles of AMX in plain C
                command(*self.compile, "--emit=c", "-o", folder / "tiles.c", f"--target={TILES}")
                command(CCACHE, "clang-22", "-std=gnu11", "-march=x86-64-v4", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-w",
                        "-fPIC", "-include", Path(__file__).resolve().parent / "tiles.h", "-c", "tiles.c", "-o", "tiles.o", cwd=folder)
                command("clang-22", "-shared", folder / "tiles.o", "-o", folder / "tiles.so", "-lm")
                self.programs.append(("tiles", ctypes.CDLL(str(folder / "tiles.so"))))

    def check_program(self, compiler, library, dims, here, before, states):
        """The same call through the C functions, which need no runtime."""
        name = f"{self.manifest['module']}_{self.entry['name']}"
        signature = re.search(rf"^int {name}\(([^;]*)\);", (self.folder / "model.h").read_text(), re.M).group(1)
        sizes = re.search(rf"^int64_t {name}_arena\(([^;]*)\);", (self.folder / "model.h").read_text(), re.M).group(1)
        arena = getattr(library, f"{name}_arena")
        arena.restype = ctypes.c_int64
        needed = arena(*[ctypes.c_int64(dims[a.split()[-1]]) for a in sizes.split(", ") if a != "void"])
        memory = np.zeros(needed + 64, np.uint8)
        kinds = {s["name"]: s["dtype"] for s in self.manifest["states"]}
        inputs = [packed(t["dtype"], np.load(here / f"{t['name']}.npy")) for t in self.entry["inputs"]]
        expected = [packed(t["dtype"], np.load(here / f"out.{t['name']}.npy")) for t in self.entry["outputs"]]
        outputs = [packed(t["dtype"], np.zeros([evaluate(e, dims) for e in t.get("bound", t["shape"])], x.dtype))
                   for t, x in zip(self.entry["outputs"], expected)]
        after = [packed(kinds[n], np.load(f)) for n, f in states.items()]
        kept = [packed(kinds[n], np.load(before[n])) if before.get(n) else np.zeros_like(x)
                for n, x in zip(states, after)]
        if kept and not any(before.values()):
            getattr(library, f"{self.manifest['module']}_reset")(*[ctypes.c_void_p(a.ctypes.data) for a in kept])
        arrays = iter(np.ascontiguousarray(a) if a.ndim else a for a in inputs + outputs + kept)
        extents, values = [], []
        for argument in signature.split(", "):
            names = argument.replace("*", " ").split()
            if names[-1] == "arena":
                values.append(ctypes.c_void_p((memory.ctypes.data + 63) // 64 * 64))
            elif "*" not in argument:
                values.append(ctypes.c_int64(dims[names[-1]]))
            else:
                array = next(arrays, None)
                if array is None:
                    array = np.zeros(1, np.int64)
                extents.append(array)
                values.append(ctypes.c_void_p(array.ctypes.data))
        status = getattr(library, name)(*values)
        if status != 0:
            raise Failure(f"{self.path}: {name} by {compiler} gave {status}")
        if compiler == "tiles" and not library.tile_dots_done():
            raise Failure(f"{self.path}: {name} by {compiler} multiplied no tile")
        for x, y in zip(outputs + kept, expected + after):
            if x[tuple(slice(n) for n in y.shape)].tobytes() != y.tobytes():
                raise Failure(f"{self.path}: {name} by {compiler} differs, files in {here}")

    def check_guarded(self):
        """No kernel leaves its buffers, whatever the dims are."""
        if self.pack:
            return
        for program in self.guarded_by:
            few = "--corners=30" if len(program) == 1 else "--corners=8"  # an emulator takes ten times as long
            many = ["--corners=300", "--cost=20000000000"] if NIGHTLY else [few]
            wrong = self.guarded.check(program, self.bundle, *many)
            if wrong:
                raise Failure(wrong)

    def check_structure(self):
        programs = [i for p in self.entry["routine"]["programs"] for i in p]
        if "variants" in self.wants:
            most = max(len(i["variants"]) for i in programs if i["op"] == "launch")
            if most < int(self.wants["variants"][0]):
                raise Failure(f"{self.path}: a launch has at most {most} variants")
        if "kernels" in self.wants:
            grids = sum(k["name"].endswith("_custom") for k in self.manifest["kernels"])
            if grids != int(self.wants["kernels"][1]):
                raise Failure(f"{self.path}: {grids} kernels have a grid")
        for name in self.wants.get("in-place", []):
            states = [s["name"] for s in self.manifest["states"]]
            mine = [b for b in self.entry["routine"]["buffers"]
                    if b["kind"] == "state" and states[b["index"]] == name]
            copies = [i for i in programs if i["op"] == "copy"]
            size = max(int(b["bytes"]) for b in mine)
            most = {d["name"]: d["hi"] for d in self.manifest["dims"]}
            arena = sum(evaluate(s, most) for s in self.entry["routine"]["slots"])
            if copies or arena >= size:
                raise Failure(f"{self.path}: state {name} of {size} bytes: {len(copies)} copies, arena {arena} bytes")
            self.moved[name] = [0, size]

    @staticmethod
    def array(rng, dtype, shape, kinds):
        made = random_array(rng, dtype, shape)
        for kind in kinds:
            made = kind(rng, dtype, made)
        return made

    def run_case(self, number, text):
        """Calls with the evaluator and with every machine; the states go from call to call in files."""
        rng = np.random.default_rng(zlib.crc32(f"{self.path.name} {number}".encode()))
        states = {s["name"]: None for s in self.manifest["states"]}
        for step, call in enumerate(text.split(";")):
            values = dict(v.split("=") for v in call.split() if "=" in v)
            entries = [v[6:] for v in call.split() if v.startswith("entry:")]
            self.entry = next(e for e in self.manifest["entries"] if not entries or e["name"] == entries[0])
            params = [v[6:] for v in call.split() if v.startswith("param:")]
            kinds = [make for word, make in KINDS.items() if word in call.split()]
            dims = {d["name"]: int(values[d["name"]]) for d in self.manifest["dims"] if d["name"] in values}
            here = self.folder / f"{number}.{step}"
            here.mkdir()
            given = []
            for t in self.entry["inputs"]:
                shape = [evaluate(e, dims) for e in t["shape"]]
                array = self.array(rng, t["dtype"], shape, kinds)
                if t["name"] in values and not shape:
                    array = np.array(values[t["name"]]).astype(DTYPES[t["dtype"]])
                np.save(here / f"{t['name']}.npy", array)
                given.append(f"--input={t['name']}={here / t['name']}.npy")
            for p in self.manifest["params"]:
                if p["name"] in params:
                    array = self.array(rng, p["dtype"], p["shape"], kinds)
                    np.save(here / f"{p['name']}.npy", array)
                    given.append(f"--param={p['name']}={here / p['name']}.npy")
            by_shape = {b["dim"] for b in self.entry["binds"] + self.entry["multiples"]}
            by_host = [self.manifest["dims"][d]["name"] for d in self.entry["host_dims"]]
            unbound = [f"--dim={d}={v}" for d, v in dims.items() if d not in by_shape]
            evaluated, before, after = given + unbound, [], []
            given += [f"--dim={d}={dims[d]}" for d in by_host]
            for name, file in states.items():
                if file:
                    evaluated.append(f"--state={name}={file}")
                    before.append(f"--set-state={name}={file}")
            outputs = [t["name"] for t in self.entry["outputs"]]
            expected = [f"--expect={n}={here / ('out.' + n)}.npy" for n in outputs]
            evaluated += [f"--output={n}={here / ('out.' + n)}.npy" for n in outputs]
            previous = dict(states)
            for name in states:
                states[name] = here / f"state.{name}.npy"
                evaluated.append(f"--output=@{name}={states[name]}")
                after.append(f"--get-state={name}={here / ('got.' + name)}.npy")
            command(self.bin / "astra-opt", self.path, "--passes=grad", "--eval", f"--entry={self.entry['name']}", *evaluated)
            states = {n: f if f.exists() else previous[n] for n, f in states.items()}  # of those that this entry leaves
            made = [(t, here / f"out.{t['name']}.npy") for t in self.entry["outputs"]]
            for tensor, file in made + [(s, states[s["name"]]) for s in self.manifest["states"] if states[s["name"]]]:
                if not is_canonical(tensor["dtype"], np.load(file)):
                    raise Failure(f"{self.path}: {tensor['name']} holds a NaN that is not canonical: {file}")
            for name, most in self.moved.items():
                after_call = np.load(states[name])
                before_call = np.load(previous[name]) if previous[name] else np.zeros_like(after_call)
                unlike = before_call.reshape(-1, 1).view(np.uint8) != after_call.reshape(-1, 1).view(np.uint8)
                most[0] = max(most[0], unlike.any(axis=1).sum() * after_call.itemsize)
            if not params:
                for compiler, library in self.programs:
                    self.check_program(compiler, library, dims, here, previous, states)
            if self.pack:
                made = [(f"--output={t['name']}", file) for t, file in made[:len(outputs)]]
                made += [(f"--get-state={name}", file) for name, file in states.items() if file]
                self.pack.add(f"{self.path.parent.name}-{self.path.stem}", f"{number}.{step}",
                              [f"--entry={self.entry['name']}", *given, *before], self.bundle, made)
            for run in self.runs:
                trace = here / "trace.json"
                line = [*run, f"--entry={self.entry['name']}", *given, *before, *after, *expected]
                written = [here / f"got.{name}.npy" for name in states]
                wanted = [call.encode(), *filter(None, states.values())]
                name = is_emulated(run) and verdicts.key(line, also=wanted, written=written)
                if name and self.known.find(name) is not None:
                    continue
                self.executed.add(self.path, command(*line, f"--trace={trace}"))
                ran = [e["name"] for e in json.loads(trace.read_text())["traceEvents"]]
                for verb, part in re.findall(r"(runs|avoids):(\w+)", call):
                    if any(part in n for n in ran) != (verb == "runs"):
                        raise Failure(f"{shlex.join(map(str, line))}\n  ran {' '.join(ran)}")
                for state, file in states.items():
                    if file and (here / f"got.{state}.npy").read_bytes() != file.read_bytes():
                        raise Failure(f"{shlex.join(map(str, line))}\n  state {state} differs from {file}")
                if name:
                    self.known.passed(name)


def main():
    parser = argparse.ArgumentParser(description="end-to-end cases, byte for byte")
    parser.add_argument("--build", default="build")
    parser.add_argument("--aarch64", help="an astra-run built for aarch64, run by qemu-aarch64")
    parser.add_argument("--guarded-aarch64", help="a guarded-run built for aarch64")
    parser.add_argument("--seed", default=1, help="the order in which the emulator runs threads")
    parser.add_argument("--pack", type=lambda folder: Pack(Path(folder)), help="run nothing: put the cases into a folder")
    parser.add_argument("cases", nargs="*", type=Path)
    options = parser.parse_args()
    cases = options.cases or sorted(path for folder in ("cases", "modules") for path in Path(__file__).parent.glob(f"{folder}/*.uop"))
    if options.pack:
        cases = [path for path in cases if "\n// pack: no\n" not in path.read_text()]
    passed = failed = 0
    known, options.lacking = verdicts.Verdicts(), defaultdict(list)
    executed, guarded = Executed(), Guarded(known)
    for path in cases:
        folder = Path(tempfile.mkdtemp(prefix=f"astra-e2e-{path.stem}-"))
        try:
            module = Module(path, options, folder, executed, guarded, known)
            module.check_structure()
            module.check_guarded()
            for number, text in enumerate(module.cases):
                module.run_case(number, text)
            print(f"ok    {path.parent.name}/{path.stem}: {len(module.cases)} cases on {len(module.runs)} machines, {len(module.programs)} as plain C")
            for name, (most, size) in module.moved.items():
                print(f"      state {name} in place: no copy, at most {most} of {size} bytes change in a call")
            passed += 1
            command("rm", "-r", folder)
        except Failure as failure:
            print(f"FAIL  {path.parent.name}/{path.stem} (files in {folder})\n{failure}")
            failed += 1
    executed.show("end-to-end cases")
    if not options.pack:
        guarded.show()
    known.show()
    for target, where in options.lacking.items():
        print(f"skipped: {target} of {len(where)} end-to-end cases: compiled and not run, as this CPU lacks {where[0][1]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
