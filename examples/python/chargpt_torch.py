"""A character-level GPT in PyTorch: trained by one compiled step, then writing by `@astra`.

Takes:    a text; by default the documentation of this repository.
Gives:    chargpt.astra, the whole training step as a bundle (astra-train and C run it too); a line of text.

    python examples/python/chargpt_torch.py [TEXT] [--steps N] [--out FOLDER]       (pip install astra-compiler torch)
"""

import argparse
import pathlib

import numpy as np
import torch
from torch import nn

import astra
import astra.torch
from astra import data

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 128, 4, 3, 16


class Block(nn.Module):
    """A layer as in GPT-2 (Radford et al. 2019)."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, characters):
        super().__init__()
        self.characters, self.positions = nn.Embedding(characters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters, bias=False)

    def forward(self, token):
        x = self.characters(token) + self.positions.weight
        return self.head(self.norm(self.layers(x))).transpose(1, 2)  # [batch, characters, CONTEXT], as cross_entropy wants them


def documentation():
    """The pages of this repository as one text."""
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return "".join(c for p in pages for c in p.read_text() if c == "\n" or " " <= c <= "~")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    text = data.Text(options.text.read_text() if options.text else documentation())
    rows = text.windows(CONTEXT, stride=CONTEXT // 2)
    print(f"{len(text.numbers)} characters, {len(text.symbols)} different ones, {len(rows)} rows")

    torch.manual_seed(0)
    model = GPT(len(text.symbols))
    first = [torch.from_numpy(np.array(a[:BATCH])) for a in rows.arrays]
    step = astra.torch.train_step(model, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=2e-3), first)
    step.save(options.out / "chargpt.astra")

    losses, epoch = [], 0
    while len(losses) < options.steps:
        epoch += 1
        for token, target in rows.batches(BATCH, seed=1, epoch=epoch, drop_last=True):
            losses.append(float(step(torch.from_numpy(token), torch.from_numpy(target))))
            if len(losses) % 100 == 0:
                print(f"step {len(losses)}, loss {np.mean(losses[-100:]):.3f} nats a character", flush=True)
            if len(losses) == options.steps:
                break

    write = astra(step.write_back().eval())  # the trained model, compiled for one row
    line = text.encode("The same inputs give the same bits ").tolist()
    generator = torch.Generator().manual_seed(0)
    for _ in range(160):
        token = torch.tensor([([0] * CONTEXT + line)[-CONTEXT:]])
        scores = write(token)[0, :, -1]
        line.append(int(torch.multinomial(torch.softmax(scores / 0.7, 0), 1, generator=generator)))
    print(text.decode(line))
    return float(np.mean(losses[-100:]))


if __name__ == "__main__":
    main()
