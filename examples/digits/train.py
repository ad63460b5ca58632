"""Train the digits network, export it to ONNX, and write the held-out images.

Takes:    scikit-learn's handwritten digits (1,797 images of 8 x 8 pixels, values 0 to 16).
Gives:    digits.onnx (weights inside, dynamic dim `batch`), heldout_images.npy (f32 [360, 1, 8, 8], scaled to 0 .. 1),
          heldout_labels.npy (u8 [360]), heldout_probabilities.npy (f32 [360, 10], by ONNX Runtime), all in this folder.
Keeps:    the seed and the split; the same package versions on the same machine give the same files.
Does not: run in the tests or the demo: its outputs are committed.

    python -m venv build/venv && build/venv/bin/pip install -r examples/digits/requirements.txt
    build/venv/bin/python examples/digits/train.py
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 1
EPOCHS = 60


class Digits(nn.Module):
    """Two convolutions with max pools; a batch norm, after the relu so that no exporter folds it away; softmax."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.BatchNorm2d(16),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classify = nn.Linear(32 * 2 * 2, 10)

    def logits(self, x):
        return self.classify(self.features(x))

    def forward(self, x):
        return torch.softmax(self.logits(x), dim=1)


def shifted(images):
    """The images, each moved by at most one pixel: the one augmentation that 8 x 8 pixels bear."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    dy, dx = torch.randint(0, 3, (2,)).tolist()
    return padded[:, :, dy : dy + 8, dx : dx + 8]


def train(model, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loss = nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(32):
            optimizer.zero_grad()
            loss(model.logits(shifted(images[batch])), labels[batch]).backward()
            optimizer.step()
        schedule.step()
    return model.eval()


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    split = train_test_split(pixels, digits, test_size=360, random_state=SEED, stratify=digits)
    train_x, test_x, train_y, test_y = split

    model = train(Digits(), torch.from_numpy(train_x), torch.from_numpy(train_y))
    with torch.no_grad():
        predicted = model(torch.from_numpy(test_x)).argmax(1).numpy()
    print(f"held-out accuracy {np.mean(predicted == test_y):.4f} on {len(test_y)} images")

    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.onnx.export(
        model,
        (torch.from_numpy(test_x[:2]),),
        dynamo=True,
        input_names=["image"],
        output_names=["probability"],
        dynamic_shapes=({0: batch},),
        verbose=False,
    ).model_proto
    # The exporter's notes hold stack traces with the paths of the machine that trained.
    for noted in (exported, exported.graph, *exported.graph.node, *exported.graph.value_info):
        noted.ClearField("metadata_props")
    onnx.save(exported, HERE / "digits.onnx")
    np.save(HERE / "heldout_images.npy", test_x)
    np.save(HERE / "heldout_labels.npy", test_y.astype(np.uint8))
    session = onnxruntime.InferenceSession(HERE / "digits.onnx", providers=["CPUExecutionProvider"])
    np.save(HERE / "heldout_probabilities.npy", session.run(None, {"image": test_x})[0])


if __name__ == "__main__":
    main()
