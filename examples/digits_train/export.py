"""Write the digits network with random weights, and the images that it is trained on.

Takes:    scikit-learn's handwritten digits (1,797 images of 8 x 8 pixels, values 0 to 16; the UCI ML repository's test set,
          which scikit-learn distributes under the BSD licence).
Gives:    digits.onnx (the network of examples/digits from raw pixels, its weights as PyTorch draws them, dynamic dim
          `batch`), train_images.npy (u8 [1437, 1, 8, 8]), train_labels.npy (u8 [1437]), heldout_images.npy,
          heldout_labels.npy (360 more), all in this folder.
Keeps:    the seed, and the split of examples/digits; the same package versions give the same files.
Does not: train, or run in the tests: its outputs are committed.

    python -m venv build/venv && build/venv/bin/pip install -r examples/digits/requirements.txt
    build/venv/bin/python examples/digits_train/export.py
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "digits"))
from train import SEED, Digits  # noqa: E402


class FromPixels(nn.Module):
    """Pixels of 0 to 16 in, logits out: the softmax belongs to the loss."""

    def __init__(self, digits):
        super().__init__()
        self.features = digits.features
        self.classify = digits.classify

    def forward(self, x):
        return self.classify(self.features(x.float() / 16))


def own_statistics(graph):
    """The exporter stores equal tensors once: fresh statistics, zeros and ones, are then a bias and a weight too."""
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            for place, name in ((3, "features.2.running_mean"), (4, "features.2.running_var")):
                shared = next(w for w in graph.initializer if w.name == node.input[place])
                graph.initializer.add().CopyFrom(shared)
                graph.initializer[-1].name = node.input[place] = name


def main():
    torch.manual_seed(SEED)
    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels.astype(np.uint8).reshape(-1, 1, 8, 8)
    split = train_test_split(pixels, digits.astype(np.uint8), test_size=360, random_state=SEED, stratify=digits)
    for name, array in zip(("train_images", "heldout_images", "train_labels", "heldout_labels"), split):
        np.save(HERE / name, array)
    exported = torch.onnx.export(
        FromPixels(Digits()).eval(),
        (torch.from_numpy(split[1][:2]),),
        dynamo=True,
        input_names=["image"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},),
        verbose=False,
    ).model_proto
    # The exporter's notes hold stack traces with the paths of the machine that exported.
    for noted in (exported, exported.graph, *exported.graph.node, *exported.graph.value_info):
        noted.ClearField("metadata_props")
    own_statistics(exported.graph)
    onnx.save(exported, HERE / "digits.onnx")


if __name__ == "__main__":
    main()
