"""Export the two large models of the end-to-end tests to ONNX, with the reference output of ONNX Runtime.

Takes:    a folder, and the names of the models to make (all of them by default).
Gives:    FOLDER/NAME.onnx (weights inside), and for each case FOLDER/NAME.CASE.{input,output}.VALUE.npy.
Keeps:    the seeds: the weights, the batch-norm statistics and the inputs are functions of the model's name.
Does not: compile or compare: check.py does.

    build/venv/bin/python test/e2e/models/export.py build/models [resnet50] [resnet50-raw] [bert]
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import torchvision
from torch import nn
from torch.export import Dim


def seeded_norms(model):
    """The norms of a fresh network are the identity; with these the signal keeps its size and is not uniform."""
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            module.weight.data.uniform_(0.5, 1.0)
            module.bias.data.normal_(0, 0.1)
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model


def resnet50():
    model = seeded_norms(torchvision.models.resnet50(weights=None))
    cases = {f"b{n}": {"image": torch.randn(n, 3, 224, 224)} for n in (1, 2)}
    return model, cases, {"image": {0: Dim("batch", min=1, max=64)}}, {}


def resnet50_raw():
    """The same network as it is before the exporter folds the batch norms into the convolutions."""
    model, cases, dims, _ = resnet50()
    return model, cases, dims, {"optimize": False}


class Encoder(nn.Module):
    """A BERT-type encoder: three embeddings, post-norm layers of self-attention and a gelu network, a tanh pooler."""

    def __init__(self, vocabulary=1000, positions=128, width=128, heads=4, layers=2):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(positions, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids, mask, segments):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.word(ids) + self.position(places) + self.segment(segments))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, bias):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + bias
        mixed = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).flatten(2)
        x = self.attention_norm(x + self.out(mixed))
        return self.output_norm(x + self.down(nn.functional.gelu(self.up(x))))


def bert():
    model = seeded_norms(Encoder())
    cases = {}
    for batch, length in ((2, 7), (1, 32), (3, 128)):
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[-1, length - length // 3 :] = 0
        cases[f"b{batch}s{length}"] = {
            "ids": torch.randint(0, 1000, (batch, length)),
            "mask": mask,
            "segments": torch.randint(0, 2, (batch, length)),
        }
    axes = {0: Dim("batch", min=1, max=8), 1: Dim("seq", min=2, max=128)}
    return model, cases, {"ids": axes, "mask": axes, "segments": axes}, {}


MODELS = {"resnet50": resnet50, "resnet50-raw": resnet50_raw, "bert": bert}
OUTPUTS = {"resnet50": ["logits"], "resnet50-raw": ["logits"], "bert": ["hidden", "pooled"]}


def export(name, folder):
    torch.manual_seed(zlib.crc32(name.removesuffix("-raw").encode()))
    model, cases, dims, options = MODELS[name]()
    model.eval()
    path = folder / f"{name}.onnx"
    example = next(case for label, case in cases.items() if not label.startswith("b1"))
    torch.onnx.export(
        model,
        tuple(example.values()),
        path,
        dynamo=True,
        external_data=False,
        input_names=list(example),
        output_names=OUTPUTS[name],
        dynamic_shapes=tuple(dims.values()),
        verbose=False,
        **options,
    )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for label, case in cases.items():
        feed = {key: value.numpy() for key, value in case.items()}
        for key, value in feed.items():
            np.save(folder / f"{name}.{label}.input.{key}.npy", value)
        for key, value in zip(OUTPUTS[name], session.run(None, feed)):
            np.save(folder / f"{name}.{label}.output.{key}.npy", value)
            print(f"{name} {label} {key}: shape {list(value.shape)} mean {value.mean():.4g} deviation {value.std():.4g}")


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        for name in sys.argv[2:] or MODELS:
            export(name, folder)


if __name__ == "__main__":
    main()
