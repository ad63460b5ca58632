"""The two sides of a comparison: a bundle made by astra-compile, and ONNX Runtime.

Takes:    a model file, inputs by name.
Gives:    values by name.
Keeps:    ONNX Runtime's optimizer off where values between nodes are asked for, so that they are those of the model's
          nodes; one thread on either side if not told otherwise.
Does not: judge (report.py).
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import astra_rt
from report import Refusal

BIN = Path(sys.argv[0]).resolve().parent
UNSUPPORTED = 3
NO_TAPS = "--taps: no value of the model matches"


def version():
    done = subprocess.run([BIN / "astra-compile", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def runtime_library():
    """libastra_rt of the tree that this program is in, else whatever the loader finds."""
    lib = BIN.parent / "lib"
    return next(iter(sorted([*lib.glob("libastra_rt.so.1"), *lib.glob("*/libastra_rt.so.1")])), "libastra_rt.so.1")


class AstraSide:
    def __init__(self, path, folder, options, every_value):
        bundle = Path(folder) / "model.astra"
        levels = astra_rt.levels_here()
        self.level = options.level or (levels[0] if levels else None)
        words = [BIN / "astra-compile", path, "-o", bundle, "--quiet", f"--target=cpu:{self.level}"]
        words += [f"--dim={dim}" for dim in options.dim] + [f"--constant={c}" for c in options.constant]
        compile = lambda *more: subprocess.run([str(w) for w in [*words, *more]], capture_output=True, text=True, errors="replace")
        done = compile("--taps=.*") if every_value else compile()
        if done.returncode and NO_TAPS in done.stderr:  # every value is an output, or follows from constants
            done = compile()
        if done.returncode:
            sentence = done.stderr.strip().removeprefix("astra-compile: ")
            raise Refusal(sentence or f"astra-compile ended with status {done.returncode}", done.returncode == UNSUPPORTED)
        try:
            library = astra_rt.Library(runtime_library())
            self.bundle = astra_rt.Bundle(library, bundle, self.level, options.threads)
        except (OSError, astra_rt.RuntimeRefusal) as wrong:
            raise Refusal(str(wrong)) from None
        self.taps = [o.name for o in self.bundle.outputs if o.is_tap]
        self.outputs = [o.name for o in self.bundle.outputs if not o.is_tap]

    def run(self, inputs):
        try:
            arrays = self.bundle.run([inputs[t.name] for t in self.bundle.inputs])
        except astra_rt.RuntimeRefusal as wrong:
            raise Refusal(str(wrong)) from None
        return {o.name: array for o, array in zip(self.bundle.outputs, arrays)}


class ReferenceSide:
    def __init__(self, path, model, inputs, more_outputs, threads):
        self.elements = {value.name: value.element for value in inputs}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        source = str(path)
        if more_outputs:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            there = {value.name for value in model.graph.output}
            made = {name for node in model.graph.node for name in node.output}
            for name in more_outputs:
                if name not in made:
                    raise Refusal(f"the reference model has no value '{name}'")
                if name not in there:
                    model.graph.output.add().name = name
            # Beside the model, where its external data is found.
            options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                             str(Path(path).resolve().parent))  # fmt: skip
            source = model.SerializeToString()
        try:
            self.session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as wrong:  # ONNX Runtime's own classes have no common base
            raise Refusal(f"ONNX Runtime refuses the model: {str(wrong).strip()}") from None

    def run(self, inputs):
        names = [value.name for value in self.session.get_outputs()]
        feed = {}
        for value in self.session.get_inputs():
            if value.name not in inputs:
                raise Refusal(f"the reference wants an input '{value.name}', which the model does not have")
            feed[value.name] = self._value(value.name, inputs[value.name])
        try:
            results = self.session.run_with_ort_values(names, feed)
            return {name: self._array(result) for name, result in zip(names, results)}
        except Refusal:
            raise
        except Exception as wrong:
            raise Refusal(f"ONNX Runtime fails: {str(wrong).strip()}") from None

    def _value(self, name, array):
        array = np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype.isbuiltin == 1:
            return onnxruntime.OrtValue.ortvalue_from_numpy(array)
        carrier = array.view(f"u{array.dtype.itemsize}")
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(carrier, self.elements[name])

    @staticmethod
    def _array(result):
        if not result.is_tensor():
            raise Refusal("ONNX Runtime gives a value that is no tensor", unsupported=True)
        array = result.numpy()
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(result.element_type()))
        return array if array.dtype == dtype else array.view(dtype)
