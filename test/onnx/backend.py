"""Astra as a backend of the ONNX package: onnx.backend.base, over astra-compile and the C runtime.

Takes:    a model; the environment: ASTRA_BUILD (the build folder), ASTRA_LEVELS (what to compile for and run on, commas
          between: x86-64-v4, x86-64-v3, aarch64; by default every x86 level of this machine), ASTRA_EVAL=1 (the reference
          evaluator too).
Gives:    AstraBackend.prepare: a compiled bundle; run: its outputs.
Keeps:    bits: every level, and the evaluator where asked, must give the same bytes. An input that the compiler must know
          is bound as a constant when the data comes, only if the refusal names it, and is told in `record`. A dynamic dim
          gets bounds only if the refusal asks for them, and those of another form only where the data has them. What the elements of a sequence or of an optional value are is said
          when the data comes; those of an output are put together again.
Does not: alter the model, or decide what is supported: what astra-compile refuses is Refused (a skipped test), with its
          sentence; a wrong result, a crash, a hang are failures.

    from onnx.backend.test import BackendTest
    from backend import AstraBackend
    tests = BackendTest(AstraBackend)
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/common"), str(ROOT / "test/common")]
import astra_rt  # noqa: E402
import verdicts  # noqa: E402

BUILD = Path(os.environ.get("ASTRA_BUILD", ROOT / "build"))
TIMEOUT = 120  # seconds for one program; an emulated run may take its time
DIM_BOUNDS = "1..64"
UNSUPPORTED = 3  # the exit code of every tool

# What the last case needed: names of inputs that were bound as constants, and how many calls the runtime ran.
record = {"constants": [], "runs": 0}


class Refused(unittest.SkipTest):
    """Astra says that it lacks what the model needs."""


class Failed(AssertionError):
    """A program failed where it should have worked or refused."""


class BytesDiffer(AssertionError):
    """Two levels, or a level and the evaluator, gave different bytes."""


def command(*words):
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(words[0]).name} was still running after {TIMEOUT} s") from None
    if done.returncode < 0 or done.returncode > 4:
        raise Failed(f"{Path(words[0]).name} crashed with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done


def npy(path, array):
    """Writes an array; what NumPy has no type for goes as the unsigned integer of its width, of a byte at least."""
    array = np.asarray(array)
    if array.dtype in astra_rt.NARROW_BITS:
        array = array.view(np.uint8) & ((1 << astra_rt.NARROW_BITS[array.dtype]) - 1)
    elif array.dtype.isbuiltin != 1:
        array = array.view(f"u{array.dtype.itemsize}")
    np.save(path, array)
    return path


def shape_of(value):
    """What --elements says of a value: the shapes of a sequence, or of an optional tensor, or that there is none."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ",".join("[" + ",".join(map(str, np.shape(x))) + "]" for x in value) or "0"
    return "[" + ",".join(map(str, np.shape(value))) + "]"


def is_sequence(value_type):
    return value_type.HasField("sequence_type") or value_type.optional_type.elem_type.HasField("sequence_type")


class AstraRep(BackendRep):
    def __init__(self, model, levels, evaluate, flags):
        self.levels, self.evaluate = levels, evaluate
        if levels == ["aarch64"]:
            raise ValueError("aarch64 is compared with a level of this machine: name one too")
        self.folder = tempfile.TemporaryDirectory(prefix="astra-backend-")
        self.path = Path(self.folder.name)
        initialized = {tensor.name for tensor in model.graph.initializer}
        initialized.update(tensor.values.name for tensor in model.graph.sparse_initializer)
        self.all_inputs = [value.name for value in model.graph.input]
        self.inputs = [name for name in self.all_inputs if name not in initialized]
        self.declared = list(model.graph.input)
        self.results = [(value.name, is_sequence(value.type)) for value in model.graph.output]
        self.flags, self.bound, self.wanted = list(flags), [], None
        onnx.save(model, self.path / "model.onnx")
        self._compile({})

    def _compile(self, data):
        """Compiles; gives in, one by one, to what a refusal asks for. `data` has the values of inputs, once known."""
        while True:
            targets = ",".join(f"cpu:{level}" for level in self.levels)
            done = command(BUILD / "bin/astra-compile", self.path / "model.onnx", "-o", self.path / "model.astra",
                           f"--target={targets}", "--quiet", *verdicts.compile_flags(), *self.flags)  # fmt: skip
            if done.returncode == 0:
                self.wanted = None
                return
            sentence = done.stderr.strip().removeprefix("astra-compile: ").replace(str(self.path / "model.onnx"), "model")
            sentence = sentence.removeprefix("model: ")
            dims = [f"--dim={name}={DIM_BOUNDS}" for name in re.findall(r"--dim (\S+?)=", sentence)]
            given = {flag.rpartition("=")[0] for flag in self.flags}
            # An extent that the sentence states, in place of bounds that were given before.
            exact = {f"--dim={name}": size for name, size in re.findall(r"--dim (\S+?)=(\d+)(?![\d.])", sentence)}
            said = [f"{flag.rpartition('=')[0]}={exact.get(flag.rpartition('=')[0], flag.rpartition('=')[2])}" for flag in self.flags]
            if data and said != self.flags:
                self.flags = said
                continue
            if new := [flag for flag in dict.fromkeys(dims) if flag.rpartition("=")[0] not in given]:
                self.flags += new
                continue
            parts = [name for name in dict.fromkeys(re.findall(r"--elements '?([^\s=']+)=", sentence)) if name in self.inputs]
            if parts and not data:
                self.wanted = sentence
                return
            if parts and not any(flag.startswith(f"--elements={parts[0]}=") for flag in self.flags):
                self.flags += [f"--elements={name}={shape_of(data[name])}" for name in parts]
                continue
            names = dict.fromkeys(re.findall(r"--constant[ =]'?([^\s=']+)'?=", sentence))
            names = [name for name in names if name in self.inputs and name not in self.bound]
            if names and not data:
                self.wanted = sentence
                return
            if names:
                for name in names:
                    file = npy(self.path / f"constant{len(self.bound)}.npy", data[name])
                    self.flags.append(f"--constant={name}={file}")
                    self.bound.append(name)
                    record["constants"].append(name)
                continue
            if done.returncode == UNSUPPORTED:
                raise Refused(sentence)
            raise Failed(f"astra-compile, exit {done.returncode}: {sentence}")

    def run(self, inputs, **_):
        names = self.inputs if len(inputs) == len(self.inputs) else self.all_inputs
        if len(inputs) != len(names):
            raise Failed(f"the case has {len(inputs)} inputs, the model {len(names)}")
        data = dict(zip(names, inputs))
        empty = self._empty_dims(data)
        if self.wanted or empty:
            self.flags = [f"{flag.rpartition('=')[0]}=0..64" if flag.rpartition("=")[0] in empty else flag for flag in self.flags]
            self._compile(data)
        for name, value in list(data.items()):
            if isinstance(value, list):
                data |= {f"{name}.{k}": element for k, element in enumerate(value)}
            if not isinstance(value, (np.ndarray, np.generic)):
                del data[name]
        here = [level for level in self.levels if level != "aarch64"]
        results = {level: self._on_level(level, 1 + k % 2, data) for k, level in enumerate(here)}
        if "aarch64" in self.levels:
            results["aarch64"] = self._emulated(data)
        if self.evaluate:
            results["the evaluator"] = self._evaluated(data)
        (first, outputs), *others = results.items()
        for name, found in others:
            for k, (a, b) in enumerate(zip(outputs, found, strict=True)):
                if a.shape != b.shape or a.tobytes() != b.tobytes():
                    raise BytesDiffer(f"output {k}: {first} and {name} give different bytes")
        record["runs"] += 1
        named = {tensor.name: value for tensor, value in zip(self.outputs, outputs, strict=True)}
        elements = lambda name: list(itertools.takewhile(lambda x: x is not None, (named.get(f"{name}.{k}") for k in itertools.count())))
        return tuple(elements(name) if many else named.get(name) for name, many in self.results)

    def _empty_dims(self, data):
        """The flags of dims that have the extent 0, which the bounds of the first attempt leave out."""
        shapes = {value.name: value.type.tensor_type.shape.dim for value in self.declared}
        dims = [(d.dim_param, size) for name, x in data.items() if isinstance(x, np.ndarray) for d, size in zip(shapes[name], x.shape)]
        return {f"--dim={name}" for name, size in dims if name and size == 0}

    def _on_level(self, level, threads, data):
        with astra_rt.Bundle(library(), self.path / "model.astra", level, threads) as bundle:
            self.outputs = bundle.outputs
            return bundle.run([np.asarray(data[t.name]) for t in bundle.inputs])

    def _files(self, data):
        inputs = set(self.inputs)
        bound = [name for name in data if name not in self.bound and (name in inputs or name.rpartition(".")[0] in inputs)]
        return [f"--input={name}={npy(self.path / f'input{k}.npy', data[name])}" for k, name in enumerate(bound)]

    def _read(self, program):
        """The outputs that a program wrote, in the types of the bundle."""
        results = []
        for k, output in enumerate(self.outputs):
            array = np.load(self.path / f"{program}{k}.npy")
            if output.dtype in astra_rt.SIGNED_NARROW:
                half = 1 << (astra_rt.NARROW_BITS[output.dtype] - 1)
                array = ((array.astype(np.int8) ^ half) - half).astype(np.int8)
            results.append(array if array.dtype == output.dtype else array.view(output.dtype))
        return results

    def _outputs_to(self, program):
        return [f"--output={o.name}={self.path / f'{program}{k}.npy'}" for k, o in enumerate(self.outputs)]

    def _emulated(self, data):
        done = command("qemu-aarch64", BUILD / "aarch64/astra-run", self.path / "model.astra", *self._files(data),
                       *self._outputs_to("aarch64."))  # fmt: skip
        if done.returncode:
            raise Failed(f"astra-run under qemu-aarch64, exit {done.returncode}: {done.stderr.strip()}")
        return self._read("aarch64.")

    def _evaluated(self, data):
        text = self.path / "model.uop"
        done = command(BUILD / "bin/astra-compile", self.path / "model.onnx", "--emit=uop", "-o", text, "--quiet",
                       *self.flags)  # fmt: skip
        if done.returncode == 0:
            done = command(BUILD / "bin/astra-opt", text, "--eval", *self._files(data), *self._outputs_to("eval."))
        if done.returncode:
            raise Failed(f"the evaluator, exit {done.returncode}: {done.stderr.strip()}")
        return self._read("eval.")


_library = None


def library():
    global _library
    if _library is None:
        _library = astra_rt.Library(BUILD / "lib/libastra_rt.so")
    return _library


class AstraBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        record["constants"], record["runs"] = [], 0
        levels = os.environ.get("ASTRA_LEVELS")
        return AstraRep(model, levels.split(",") if levels else astra_rt.levels_here(),
                        os.environ.get("ASTRA_EVAL") == "1", kwargs.get("flags", []))  # fmt: skip

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"
