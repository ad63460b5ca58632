"""Networks of torchvision and transformers through `@astra` and torch.compile's backend, values and gradients beside PyTorch: at night."""

import os

import pytest
import torch
import torch.nn as nn

import astra.torch  # noqa: F401  (the backend)
from astra.torch.capture import compiled

pytestmark = pytest.mark.skipif(os.environ.get("ASTRA_NIGHTLY", "") in ("", "0"), reason="networks are compared at night")
VALUES, GRADIENTS = 1e-5, 1e-4  # of the greatest output, of a parameter's greatest gradient


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


LANGUAGE = ["bert", "gpt2", "llama", "t5", "whisper"]
VISION = ["resnet18", "mobilenet_v3_small", "vit_b_16", "convnext_tiny", "swin_t"]


@pytest.mark.parametrize("name", LANGUAGE + VISION)
def test_networks(name):
    if name in LANGUAGE:
        pytest.importorskip("transformers")
    model, args, shown = (language if name in LANGUAGE else vision)(name)
    model.eval()
    weights = [p for p in model.parameters() if p.requires_grad]
    theirs = shown(model(*args))
    greatest = theirs.abs().max()
    with torch.no_grad():
        assert (shown(compiled(model)(*args)) - theirs).abs().max() <= VALUES * greatest
    cotangent = torch.randn_like(theirs)
    wanted = torch.autograd.grad(theirs, weights, cotangent, allow_unused=True)
    most = max(g.abs().max() for g in wanted if g is not None)
    for f in (compiled(model), torch.compile(model, backend="astra")):
        mine = shown(f(*args))
        assert (mine - theirs).abs().max() <= VALUES * greatest
        for g, w in zip(torch.autograd.grad(mine, weights, cotangent, allow_unused=True), wanted):
            if w is not None:
                assert (g - w).abs().max() <= GRADIENTS * torch.maximum(w.abs().max(), 1e-3 * most)
