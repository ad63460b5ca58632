"""What PyTorch gives for a few steps of training the digits network: expected.npz beside this file.

Takes:    PyTorch (scripts/setup --models), examples/digits.
Gives:    the losses of STEPS steps on one batch, and every parameter and running statistic after them.

    build/venv/bin/python test/training/make_expected.py
"""

import math
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples/digits"
STEPS, RATE, DECAY, CLIP, WARMUP, TOTAL = 8, 1e-2, 0.05, 1.0, 3, 10


def main():
    torch.use_deterministic_algorithms(True)
    weights = {w.name: numpy_helper.to_array(w).copy() for w in onnx.load(DIGITS / "digits.onnx").graph.initializer}
    model = nn.Module()
    model.features = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.ReLU(), nn.BatchNorm2d(16), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())  # fmt: skip
    model.classify = nn.Linear(128, 10)
    state = model.state_dict()
    for name in state:
        if name in weights:
            state[name] = torch.from_numpy(weights[name])
    model.load_state_dict(state)
    images = torch.from_numpy(np.load(DIGITS / "heldout_images.npy")[:32])
    labels = torch.from_numpy((np.load(DIGITS / "heldout_labels.npy")[:32].astype(np.int64) * 3 + 1) % 10)  # something to learn
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    factor = lambda t: (t + 1) / WARMUP if t < WARMUP else (1 + math.cos(math.pi * (t - WARMUP) / (TOTAL - WARMUP))) / 2
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model.classify(model.features(images)), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        losses.append(float(loss))
    after = {n: v.detach().numpy() for n, v in model.state_dict().items() if n in weights}
    np.savez_compressed(HERE / "expected.npz", losses=np.array(losses), images=images.numpy(), labels=labels.numpy(), **after)


if __name__ == "__main__":
    main()
