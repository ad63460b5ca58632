"""Write ONNX's own conformance cases as files that the conformance test reads.

Takes:    the package onnx (its backend tests), and a folder.
Gives:    FOLDER/CASE/{model.onnx, input_K.pb, output_K.pb} for every case whose inputs and outputs are tensors.
Keeps:    the data.
Does not: choose: what the importer does not support it refuses, and the test counts that.

    build/venv/bin/python test/unit/onnx/make_cases.py build/onnx-cases
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, version_converter
from onnx.backend.test.loader import load_model_tests

def on_disk(case):
    """Model and data of a case that is stored as files."""
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        read = lambda kind: [onnx.load_tensor(data / f"{kind}_{k}.pb") for k in range(len(list(data.glob(f"{kind}_*.pb"))))]
        sets.append((read("input"), read("output")))
    return model, sets


def modern(model):
    """A copy; cases of opset 6, which Astra does not read, are brought to 13 where ONNX's converter can."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    version = next((s.version for s in model.opset_import if s.domain in ("", "ai.onnx")), None)
    if version is None or version > 6:
        return model
    try:
        return version_converter.convert_version(model, 13)
    except Exception:
        return model


def as_tensor(value):
    if isinstance(value, onnx.TensorProto):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return numpy_helper.from_array(np.asarray(value))
    return None


def write(folder, name, model, inputs, outputs):
    model = modern(model)
    initialized = {tensor.name for tensor in model.graph.initializer}
    places = [value for value in model.graph.input if value.name not in initialized]
    if len(places) != len(inputs) or any(t is None for t in inputs + outputs):
        return False
    case = folder / name
    case.mkdir(parents=True, exist_ok=True)
    for k, tensor in enumerate(inputs):
        onnx.save_tensor(tensor, case / f"input_{k}.pb")
    for k, tensor in enumerate(outputs):
        onnx.save_tensor(tensor, case / f"output_{k}.pb")
    onnx.save(model, case / "model.onnx")
    return True


def main():
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    written = skipped = 0
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            model, sets = (case.model, case.data_sets) if case.model else on_disk(case)
            for k, (inputs, outputs) in enumerate(sets):
                name = case.name.removeprefix("test_") + (f".{k}" if k else "")
                done = write(folder, name, model, [as_tensor(v) for v in inputs], [as_tensor(v) for v in outputs])
                written, skipped = written + done, skipped + (not done)
    print(f"{written} cases written, {skipped} with values that are not tensors left out")


if __name__ == "__main__":
    main()
