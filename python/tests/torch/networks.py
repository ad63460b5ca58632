"""Networks of torchvision and transformers beside PyTorch: errors of values and of gradients, by `@astra` and by torch.compile's backend.

`PYTHONPATH=build/python python python/tests/torch/networks.py [NAME...]` prints a table.
"""

import sys

import torch
import torch.nn as nn

import astra.torch  # noqa: F401  (the backend)
from astra.torch import compiled

VALUES, GRADIENTS = 1e-5, 1e-4  # of the greatest output, of a parameter's greatest gradient
LANGUAGE = ["bert", "gpt2", "llama", "t5", "whisper"]
VISION = ["resnet18", "mobilenet_v3_small", "vit_b_16", "convnext_tiny", "swin_t", "fasterrcnn_resnet50_fpn"]


def tokens(batch, length):
    return torch.randint(3, 100, (batch, length))


def language(name):
    """A small transformer with random weights, its arguments, and what is looked at of its results."""
    import transformers as t

    small = {"vocab_size": 100}
    wide = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "max_position_embeddings": 32}
    if name == "bert":
        model = t.BertModel(t.BertConfig(**small, **wide, num_attention_heads=2))
        return model, (tokens(2, 12), torch.ones(2, 12, dtype=torch.long)), lambda y: y.last_hidden_state
    if name == "gpt2":
        config = t.GPT2Config(**small, n_embd=32, n_layer=2, n_head=2, n_positions=32, use_cache=False, bos_token_id=1, eos_token_id=2)
        return t.GPT2LMHeadModel(config), (tokens(2, 12),), lambda y: y.logits
    if name == "llama":
        config = t.LlamaConfig(**small, **wide, num_attention_heads=4, num_key_value_heads=2, use_cache=False)
        return t.LlamaForCausalLM(config), (tokens(2, 12),), lambda y: y.logits
    if name == "t5":
        config = t.T5Config(**small, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False, dropout_rate=0.0)
        return t.T5ForConditionalGeneration(config), (tokens(2, 12), torch.ones(2, 12, dtype=torch.long), tokens(2, 7)), lambda y: y.logits
    config = t.WhisperConfig(**small, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
                             encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=20, max_target_positions=16,
                             pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, use_cache=False)  # fmt: skip

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = t.WhisperForConditionalGeneration(config)

        def forward(self, features, ids):
            return self.inner(input_features=features, decoder_input_ids=ids)

    return Named(), (torch.randn(2, 8, 40), tokens(2, 6)), lambda y: y.logits


def vision(name):
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    if name == "vit_b_16":
        nn.init.normal_(model.heads.head.weight, std=0.02)  # it begins as zeros
    size = 224 if name == "vit_b_16" else 64
    return model, (torch.randn(2, 3, size, size),), lambda y: y


class Parts(nn.Module):
    """Backbone, feature pyramid and heads of a detector: what is computed before and after boxes are chosen by data."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.proposals, self.boxes, self.classes = model.backbone, model.rpn.head, model.roi_heads.box_head, model.roi_heads.box_predictor

    def forward(self, images, regions):
        levels = list(self.backbone(images).values())
        objectness, deltas = self.proposals(levels)
        return (*levels, *objectness, *deltas, *self.classes(self.boxes(regions)))


def detector(name):
    import torchvision

    model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, num_classes=5)
    for module in model.modules():  # as loaded from a file: its statistics are not those of the first step
        if isinstance(module, torchvision.ops.FrozenBatchNorm2d):
            module.running_var.fill_(2.0)
    flat = lambda xs: torch.cat([x.reshape(-1) / x.detach().abs().max() for x in xs])  # noqa: E731  (each part by its own magnitude)
    torch.manual_seed(103)  # of eight seeds tried, one put a ReLU's argument within rounding of 0, where there are two gradients
    return Parts(model), (torch.randn(1, 3, 64, 64), torch.randn(3, 256, 7, 7)), flat


def make(name):
    """A network, its arguments, and what is looked at of its results."""
    torch.manual_seed(0)
    model, args, shown = (language if name in LANGUAGE else detector if name.startswith("fasterrcnn") else vision)(name)
    return model.eval(), args, shown


def gradients(f, args, shown, weights, cotangent=None):
    """The result, and gradients by the weights."""
    result = shown(f(*args))
    if cotangent is None:
        torch.manual_seed(1)
        cotangent = torch.randn_like(result)
    return result.detach(), torch.autograd.grad(result, weights, cotangent, allow_unused=True)


def figures(name):
    """Errors relative to the greatest output and to each parameter's greatest gradient: of `@astra` without gradients, of `@astra`, of the backend."""
    model, args, shown = make(name)
    weights = [p for p in model.parameters() if p.requires_grad]
    theirs, wanted = gradients(model, args, shown, weights)
    most = max(g.abs().max() for g in wanted if g is not None)
    with torch.no_grad():
        alone = shown(compiled(model)(*args))
    out = {"alone": ((alone - theirs).abs().max() / theirs.abs().max()).item()}
    for label, f in (("@astra", compiled(model)), ("backend", torch.compile(model, backend="astra"))):
        mine, found = gradients(f, args, shown, weights)
        worst = 0.0
        for g, w in zip(found, wanted, strict=True):
            if w is not None:
                worst = max(worst, ((g - w).abs().max() / torch.maximum(w.abs().max(), 1e-3 * most)).item())
        out[label] = ((mine - theirs).abs().max() / theirs.abs().max()).item(), worst
    return out


def line(name, found):
    return f"{name:24} {found['alone']:9.1e} {found['@astra'][0]:9.1e} {found['@astra'][1]:9.1e} {found['backend'][0]:9.1e} {found['backend'][1]:9.1e}"


HEAD = f"{'network':24} {'forward':>9} {'@astra':>9} {'gradient':>9} {'backend':>9} {'gradient':>9}"

if __name__ == "__main__":
    print(HEAD)
    for network in sys.argv[1:] or VISION + LANGUAGE:
        print(line(network, figures(network)), flush=True)
        torch._dynamo.reset()
