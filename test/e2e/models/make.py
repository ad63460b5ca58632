"""Make the large models of the end-to-end tests, and what ONNX Runtime says about them.

Takes:    the exported graphs in this folder, and a folder.
Gives:    FOLDER/NAME.onnx with its weights in FOLDER/NAME.weights, and for each case FOLDER/NAME.CASE.{input,output}.VALUE.npy.
Keeps:    the seeds: a weight is a function of its name and its model's, uniform with the mean and deviation that PyTorch's initialization gave it, so the
          signal keeps its size through the network; an input is a function of its name and case.
Does not: need PyTorch (export.py does), compile or compare (check.py does).

    build/venv/bin/python test/e2e/models/make.py build/models [resnet50] [resnet50-raw] [bert]
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).resolve().parent


def generator(*names):
    return np.random.default_rng(zlib.crc32("/".join(names).encode()))


def images(count):
    return {"image": generator("image", str(count)).standard_normal((count, 3, 224, 224), dtype=np.float32)}


def sentences(batch, length):
    random = generator("ids", str(batch), str(length))
    mask = np.ones((batch, length), np.int64)
    mask[-1, length - length // 3 :] = 0
    return {
        "ids": random.integers(0, 1000, (batch, length)),
        "mask": mask,
        "segments": random.integers(0, 2, (batch, length)),
    }


RESNET = {f"b{n}": images(n) for n in (1, 2)}
CASES = {
    "resnet50": RESNET,
    "resnet50-raw": RESNET,
    "bert": {f"b{b}s{s}": sentences(b, s) for b, s in ((2, 7), (1, 32), (3, 128))},
}


def weights(model, tensor):
    mean, deviation = map(float, tensor.doc_string.split())
    reach = deviation * 3**0.5
    values = generator(model.removesuffix("-raw"), tensor.name).uniform(mean - reach, mean + reach, tuple(tensor.dims))
    return values.astype(np.float32)


def make(name, folder):
    model = onnx.load(HERE / f"{name}.onnx")
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
    for label, case in CASES[name].items():
        for key, value in case.items():
            np.save(folder / f"{name}.{label}.input.{key}.npy", value)
        for key, value in zip(names, session.run(None, case)):
            np.save(folder / f"{name}.{label}.output.{key}.npy", value)
            print(f"{name} {label} {key}: shape {list(value.shape)} mean {value.mean():.4g} deviation {value.std():.4g}")


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        make(name, folder)


if __name__ == "__main__":
    main()
