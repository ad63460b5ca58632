"""A character-level GPT, trained by one function under `@astra`: one device, or a mesh of rows.

Takes:    a text.
Gives:    the loss of each step, and a checksum of the weights, which does not depend on the number of ranks.

    python examples/mesh/chargpt.py TEXT [STEPS]                                            (pip install astra-compiler)
"""

import hashlib
import sys

import numpy as np

from astra import astra, data, losses, nn, optim
from astra_rt import ranks

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 8
optimizer = optim.adamw(lr=4e-3)


class Block(nn.Module):
    """A layer as in GPT-2 (Radford et al. 2019)."""

    def __init__(self):
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend = nn.MultiHeadAttention(WIDTH, HEADS, causal=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(astra.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, characters):
        self.characters, self.positions = nn.Embedding(characters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters, bias=False)

    def __call__(self, token):
        scores = self.head(self.norm(self.layers(self.characters(token) + self.positions.weight)))
        return astra.permute_dims(scores, (0, 2, 1))  # [batch, characters, CONTEXT], as cross_entropy wants them


@astra
def step(model, state, token, target):
    """The loss, the next model and the next state of the optimizer."""
    loss, gradients = astra.value_and_grad(lambda model: losses.cross_entropy(model(token), target))(model)
    return loss, *optimizer.step(model, gradients, state)


def main(path, steps=4):
    with open(path, encoding="utf-8") as file:
        text = data.Text(file.read())
    model = GPT(len(text.symbols), seed=1)
    state = optimizer.init(model)
    is_first = ranks.init().rank == 0
    batches = text.windows(CONTEXT, stride=CONTEXT).batches(BATCH, seed=1, drop_last=True)
    for number, (token, target) in zip(range(1, steps + 1), batches):
        loss, model, state = step(model, state, token, target)
        if is_first:
            print(f"step {number}, loss {float(loss):.6f}", flush=True)
    if is_first:
        print("weights", hashlib.sha256(b"".join(np.asarray(w).tobytes() for w in model.state_dict().values())).hexdigest()[:16])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
