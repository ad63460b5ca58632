"""Export the graphs of the large models from PyTorch. Run once: its outputs are committed.

Takes:    the names of the models to export (all of them by default).
Gives:    NAME.onnx in this folder, as torch.onnx.export writes it, but with the data of every large weight left out: what stays of it is the mean and
          the deviation, as text in the tensor's doc_string. make.py fills the weights in again, without PyTorch.
Keeps:    the seeds; constants of the graph (shapes, scalars).
Does not: compile or compare: check.py does.

    build/venv/bin/python test/e2e/models/export.py [resnet50] [resnet50-raw] [bert]
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import torch
import torchvision
from onnx import numpy_helper
from torch import nn
from torch.export import Dim

HERE = Path(__file__).resolve().parent


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
    return model, {"image": torch.randn(2, 3, 224, 224)}, {"image": {0: Dim("batch", min=1, max=64)}}, {}


def resnet50_raw():
    """The same network as it is before the exporter folds the batch norms into the convolutions."""
    return *resnet50()[:3], {"optimize": False}


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
    ids, mask, segments = torch.randint(0, 1000, (2, 7)), torch.ones(2, 7, dtype=torch.int64), torch.randint(0, 2, (2, 7))
    axes = {0: Dim("batch", min=1, max=8), 1: Dim("seq", min=2, max=128)}
    dims = {"ids": axes, "mask": axes, "segments": axes}
    return seeded_norms(Encoder()), {"ids": ids, "mask": mask, "segments": segments}, dims, {}


MODELS = {"resnet50": resnet50, "resnet50-raw": resnet50_raw, "bert": bert}
OUTPUTS = {"resnet50": ["logits"], "resnet50-raw": ["logits"], "bert": ["hidden", "pooled"]}


LARGE = 64  # elements from which on a float tensor is a weight


def without_weights(model):
    """The exporter's notes hold paths of this machine; the weights would not fit a repository."""
    for noted in (model, model.graph, *model.graph.node, *model.graph.value_info):
        noted.ClearField("metadata_props")
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size >= LARGE:
            tensor.ClearField("raw_data")
            tensor.doc_string = f"{values.mean():.9g} {values.std():.9g}"
    return model


def main():
    with torch.no_grad():
        for name in sys.argv[1:] or MODELS:
            torch.manual_seed(zlib.crc32(name.removesuffix("-raw").encode()))
            model, example, dims, options = MODELS[name]()
            exported = torch.onnx.export(
                model.eval(),
                tuple(example.values()),
                dynamo=True,
                input_names=list(example),
                output_names=OUTPUTS[name],
                dynamic_shapes=tuple(dims.values()),
                verbose=False,
                **options,
            )
            path = HERE / f"{name}.onnx"
            onnx.save(without_weights(exported.model_proto), path)
            print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
