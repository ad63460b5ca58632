"""A mixture of experts, each token to the best of eight, at a fixed capacity: one device, or a mesh of experts.

    python examples/mesh/moe.py [RANKS-FILE]           (pip install astra-compiler)
"""

import hashlib

import numpy as np

import astra
from astra_rt import ranks

TOKENS, WIDTH, HIDDEN, EXPERTS, CAPACITY = 32, 16, 32, 8, 8


def one_hot(numbers, count):
    """1.0 at each number's place; zeros for a number that is none of them."""
    return astra.astype(astra.expand_dims(numbers, axis=-1) == astra.arange(count, dtype=astra.int64), astra.float32)


def layer(p, x):
    """Tokens [32, 16] to tokens. A token that finds its expert full stays as it is."""
    scores = astra.softmax(x @ p["router"], axis=-1)
    chosen = one_hot(astra.argmax(scores, axis=-1), EXPERTS)  # [tokens, experts]
    place = astra.cumulative_sum(chosen, axis=0) * chosen - 1.0  # of a token at its expert; -1 elsewhere
    slots = one_hot(astra.astype(place, astra.int64), CAPACITY)  # [tokens, experts, capacity]
    given = astra.einsum("tec,td->ecd", slots, x)
    hidden = astra.tanh(astra.einsum("ecd,edh->ech", given, p["up"]))
    made = astra.einsum("ech,ehd->ecd", hidden, p["down"])
    best = astra.max(scores, axis=-1, keepdims=True)
    return x + astra.einsum("tec,ecd->td", slots, made) * best


def main():
    draw = np.random.default_rng(0)
    shapes = {"router": (WIDTH, EXPERTS), "up": (EXPERTS, WIDTH, HIDDEN), "down": (EXPERTS, HIDDEN, WIDTH)}
    p = {n: draw.standard_normal(s).astype(np.float32) / 4 for n, s in shapes.items()}
    x = draw.standard_normal((TOKENS, WIDTH)).astype(np.float32)
    lowered = astra.trace(layer, p, x).lower()
    model = ranks.init().load(lowered.compile("native").bundle)
    y = np.asarray(model(p["down"], p["router"], p["up"], x))
    if ranks.rank() == 0:
        print(hashlib.sha256(y.tobytes()).hexdigest()[:16], y.shape)


if __name__ == "__main__":
    main()
