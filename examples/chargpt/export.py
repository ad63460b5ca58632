"""Write the network of chargpt, for training and for writing text, without its weights.

Takes:    PyTorch (scripts/setup --models).
Gives:    chargpt.onnx: `token` u8 [batch, 128] to `logits` f32 [batch, 96, 128], as cross_entropy wants them.
          decode.onnx, the same weights one character at a time: `token` u8 [1, 1], the keys and values of the characters
          before (`past` f32 [6, 2, 1, 4, length, 32]) and `temperature`, to `logits` and `probability` f32 [96] of the next
          one and `present`, what is `past` to it.
          Both in this folder; their weights are to be in a file chargpt.weights beside them, which begin.py writes.
Does not: train, or run in the tests: its outputs are committed.

    scripts/setup --models
    build/venv/bin/python examples/chargpt/export.py
"""

import warnings
from pathlib import Path

import onnx
import torch
from torch import nn

from begin import CHARACTERS, CONTEXT, HEADS, LAYERS, WIDTH

HERE = Path(__file__).resolve().parent
HEAD = WIDTH // HEADS


class Block(nn.Module):
    """A layer as in GPT-2 (Radford et al. 2019): norms come before attention and before the two linear layers."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past):
        """`past` are the keys and values before x, [2, batch, head, length, 32], or None; they are given with those of x."""
        qkv = self.qkv(self.norm1(x))
        q, k, v = (qkv[..., WIDTH * i : WIDTH * (i + 1)].unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for i in range(3))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.mix(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)))), torch.stack([k, v])


class CharGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.positions = nn.Embedding(CHARACTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS, bias=False)

    def run(self, token, positions, past):
        x, present = self.characters(token.long()) + positions, []
        for layer, before in zip(self.layers, past):
            x, now = layer(x, before)
            present.append(now)
        return self.head(self.norm(x)), torch.stack(present)

    def forward(self, token):
        return self.run(token, self.positions.weight, [None] * LAYERS)[0].transpose(1, 2)


class Decode(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.characters, self.positions, self.layers = network.characters, network.positions, network.layers
        self.norm, self.head = network.norm, network.head

    def forward(self, token, past, temperature):
        at = torch.full((1,), past.shape[4])
        logits, present = CharGPT.run(self, token, self.positions(at), past.unbind(0))
        return logits[0, 0], torch.softmax(logits[0, 0] / temperature, 0), present


def export(network, inputs, shapes, outputs, path):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.onnx.export(network.eval(), tuple(inputs.values()), dynamo=True, optimize=False, opset_version=23, verbose=False,
                                  input_names=list(inputs), output_names=outputs, dynamic_shapes=shapes).model_proto  # fmt: skip
    # The exporter's notes hold stack traces with the paths of the machine that exported.
    for noted in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        noted.ClearField("metadata_props")
    place(model.graph.initializer)
    onnx.save(model, path)
    print(path.name, len(model.graph.node), "nodes", path.stat().st_size, "bytes")


def place(weights):
    """Weights lie in chargpt.weights one after the other in the order of begin.py."""
    from begin import places

    where = places()
    for w in weights:
        if w.name not in where:
            continue
        offset, shape = where[w.name]
        assert list(w.dims) == list(shape), (w.name, w.dims, shape)
        length = len(w.raw_data)
        w.ClearField("raw_data")
        w.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "chargpt.weights"), ("offset", offset), ("length", length)):
            w.external_data.add(key=key, value=str(value))


def main():
    network = CharGPT()
    token = torch.zeros(2, CONTEXT, dtype=torch.uint8)
    export(network, {"token": token}, ({0: torch.export.Dim("batch", min=1, max=64)},), ["logits"], HERE / "chargpt.onnx")
    past = torch.zeros(LAYERS, 2, 1, HEADS, 5, HEAD)
    length = torch.export.Dim("length", min=0, max=CONTEXT - 1)
    export(Decode(network), {"token": token[:1, :1], "past": past, "temperature": torch.ones(())}, ({}, {4: length}, {}),
           ["logits", "probability", "present"], HERE / "decode.onnx")  # fmt: skip


if __name__ == "__main__":
    main()
