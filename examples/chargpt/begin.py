"""The weights that training begins with, without PyTorch.

Takes:    a path.
Gives:    chargpt.weights: f32, one after the other in the order of weights(), which chargpt.onnx and decode.onnx refer to.
Keeps:    equal bytes everywhere: numbers come from a counter (splitmix64, Steele et al. 2014), and no function of a C library is called.

    python3 examples/chargpt/begin.py build/chargpt/chargpt.weights
"""

import array
import math
import sys

CHARACTERS, CONTEXT, WIDTH, LAYERS, HEADS = 96, 128, 128, 6, 4
SEED, DEVIATION = 1, 0.05


def weights():
    """Names, shapes, and what a weight begins as: a number, or None for random ones."""
    yield "characters.weight", (CHARACTERS, WIDTH), None
    yield "positions.weight", (CONTEXT, WIDTH), None
    for k in range(LAYERS):
        for name, shape in (("qkv", (3 * WIDTH, WIDTH)), ("mix", (WIDTH, WIDTH)), ("up", (4 * WIDTH, WIDTH)), ("down", (WIDTH, 4 * WIDTH))):
            yield f"layers.{k}.{name}.weight", shape, None
            yield f"layers.{k}.{name}.bias", shape[:1], 0
        for name in ("norm1", "norm2"):
            yield f"layers.{k}.{name}.weight", (WIDTH,), 1
            yield f"layers.{k}.{name}.bias", (WIDTH,), 0
    yield "norm.weight", (WIDTH,), 1
    yield "norm.bias", (WIDTH,), 0
    yield "head.weight", (CHARACTERS, WIDTH), None


def places():
    """The offset and the shape of each weight by its name."""
    result, offset = {}, 0
    for name, shape, _ in weights():
        result[name] = offset, shape
        offset += 4 * math.prod(shape)
    return result


def uniform(seed):
    """Numbers evenly between -1 and 1, multiples of 2^-24."""
    mask, state = 2**64 - 1, seed
    while True:
        state = state + 0x9E3779B97F4A7C15 & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield ((z ^ z >> 31) >> 39) / 2**24 - 1


def main(path):
    numbers, out = uniform(SEED), array.array("f")
    widest = DEVIATION * math.sqrt(3)
    for name, shape, value in weights():
        count = math.prod(shape)
        # What adds to the sum of all layers begins smaller, as in GPT-2.
        scale = widest / math.sqrt(2 * LAYERS) if name.endswith(("mix.weight", "down.weight")) else widest
        out.extend((value,) * count if value is not None else (scale * next(numbers) for _ in range(count)))
    if sys.byteorder == "big":
        out.byteswap()
    with open(path, "wb") as f:
        out.tofile(f)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
