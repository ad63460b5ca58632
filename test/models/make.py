"""Make the networks whose graphs are committed, and what ONNX Runtime says about them.

Takes:    the graphs in graphs/, and a folder.
Gives:    FOLDER/NAME.onnx with its weights in FOLDER/NAME.weights, and for each size FOLDER/NAME.SIZE.{input,output}.VALUE.npy.
Keeps:    the seeds: a weight is a function of its name and its model's, uniform with the mean and deviation that it had in PyTorch, so the signal keeps
          its size through the network; an input is a function of its name and size.
Does not: need PyTorch (export.py does), compile or compare (run.py does).

    build/venv/bin/python test/models/make.py build/models [resnet50] [resnet50-raw] [bert] ...
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from cases import MODELS, generator, inputs, label

HERE = Path(__file__).resolve().parent


def weights(model, tensor):
    mean, deviation = map(float, tensor.doc_string.split())
    reach = deviation * 3**0.5
    values = generator(model.removesuffix("-raw"), tensor.name).uniform(mean - reach, mean + reach, tuple(tensor.dims))
    return values.astype(np.float32)


def make(name, folder):
    model = onnx.load(HERE / "graphs" / f"{name}.onnx")
    with open(folder / f"{name}.weights", "wb") as file:
        for tensor in model.graph.initializer:
            if not tensor.doc_string:
                continue
            file.write(bytes(-file.tell() % 64))
            place = file.tell()
            file.write(weights(name, tensor).tobytes())
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", f"{name}.weights"), ("offset", place), ("length", file.tell() - place)):
                tensor.external_data.add(key=key, value=str(value))
    path = folder / f"{name}.onnx"
    onnx.save(model, path)

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    for sizes in MODELS[name].sizes:
        case = inputs(name, model.graph, sizes)
        for key, value in case.items():
            np.save(folder / f"{name}.{label(sizes)}.input.{key}.npy", value)
        for key, value in zip(names, session.run(None, case)):
            np.save(folder / f"{name}.{label(sizes)}.output.{key}.npy", value)
            print(f"{name} {label(sizes)} {key}: shape {list(value.shape)} mean {value.mean():.4g} deviation {value.std():.4g}")


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or [name for name, model in MODELS.items() if model.committed]:
        make(name, folder)


if __name__ == "__main__":
    main()
