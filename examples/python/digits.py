"""Handwritten digits: the network of examples/digits_train, written in Python and trained in Python.

Takes:    the images and the first weights of examples/digits_train.
Gives:    weights.safetensors, byte for byte the weights that astra-train and the C program give for the same data, seed and
          optimizer; digits.astra, the trained network for batches of 1 to 360; run.csv, the loss of every step.

    python examples/python/digits.py [FOLDER]        (pip install astra-compiler onnx)
"""

import pathlib
import sys

import numpy as np
import onnx

import astra
from astra import nn, optim

DATA = pathlib.Path(__file__).resolve().parents[1] / "digits_train"


class Digits(nn.Module):
    """Two convolutions with max pools; a batch norm behind the first."""

    def __init__(self):
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            astra.relu,
            nn.BatchNorm2d(16, momentum=1 - float(np.float32(0.9))),  # the file has 0.9, as a float of 32 bits
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            astra.relu,
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classify = nn.Linear(32 * 2 * 2, 10)

    def __call__(self, image):
        return self.classify(self.features(image.astype("float32") / 16))


def first_weights():
    """Those of the .onnx file, which PyTorch has drawn."""
    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(DATA / "digits.onnx").graph.initializer}


def arrays(name):
    return {"image": np.load(DATA / f"{name}_images.npy"), "target": np.load(DATA / f"{name}_labels.npy")}


def main(folder, epochs=20):
    net = Digits()
    known = net.state_dict()
    net = net.load_state_dict({k: v for k, v in first_weights().items() if k in known}, strict=False)
    result = astra.train(
        net,
        astra.losses.cross_entropy,
        optim.adamw(lr=1e-2, weight_decay=0.01, schedule=astra.schedules.cosine(steps=900, warmup=45)),
        arrays("train"),
        eval=arrays("heldout"),
        metrics={"accuracy": astra.metrics.accuracy},
        epochs=epochs,
        batch=32,
        seed=1,
        log=folder / "run.csv",
    )
    print(f"accuracy on images that it has not seen: {result.history[-1]['eval_accuracy']:.4f}")
    nn.save(result.model, folder / "weights.safetensors")
    n = astra.dim("batch", 1, 360)
    astra.trace(result.model, astra.spec((n, 1, 8, 8), "uint8")).lower().compile().save(folder / "digits.astra")


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    main(out)
