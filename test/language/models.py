"""Small random models of every architecture of a language model, as `transformers` saves them.

Takes:    PyTorch and transformers (scripts/setup --models).
Gives:    MODELS, by name the configuration of each; save(name, folder), which writes config.json and model.safetensors and
          gives the model in f32.
Keeps:    weights follow from the name alone; norms and biases are random too, so that none may be left out unseen.
"""

import json
import zlib

import torch
import transformers

SMALL = dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=96)  # fmt: skip
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40)

# name: (class of the configuration, class of the model, what differs from SMALL)
MODELS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", dict(tie_word_embeddings=False)),
    "llama-3.1": ("LlamaConfig", "LlamaForCausalLM", dict(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=24))),
    "smollm": ("LlamaConfig", "LlamaForCausalLM", dict(
        tie_word_embeddings=True, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="default", rope_theta=100000.0))),
    "llama-linear": ("LlamaConfig", "LlamaForCausalLM", dict(
        head_dim=16, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0))),
    "llama-part": ("LlamaConfig", "LlamaForCausalLM", dict(partial_rotary_factor=0.5)),  # which changes nothing
    "mistral": ("MistralConfig", "MistralForCausalLM", dict(sliding_window=7, head_dim=16)),
    "mistral-yarn": ("MistralConfig", "MistralForCausalLM", dict(
        sliding_window=None,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=24))),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", dict(tie_word_embeddings=True)),
    "qwen2-window": ("Qwen2Config", "Qwen2ForCausalLM", dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", dict(head_dim=16)),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", dict(head_dim=16, sliding_window=6, query_pre_attn_scalar=16)),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", dict(
        head_dim=16, sliding_window=6, query_pre_attn_scalar=16, num_hidden_layers=7,
        rope_parameters=dict(full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
                             sliding_attention=dict(rope_type="default", rope_theta=10000.0)))),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", dict(pad_token_id=0, sliding_window=9)),
    "phi3-long": ("Phi3Config", "Phi3ForCausalLM", dict(
        pad_token_id=0, original_max_position_embeddings=32, partial_rotary_factor=0.5,
        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5,
                             short_factor=[1.0, 1.05, 1.1], long_factor=[1.0, 2.0, 3.5],
                             original_max_position_embeddings=32))),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", dict(n_embd=48, n_layer=3, n_head=4, n_positions=96, n_inner=None)),
    "olmo": ("OlmoConfig", "OlmoForCausalLM", dict(pad_token_id=0, clip_qkv=0.3)),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", dict(pad_token_id=0)),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", dict(num_local_experts=4, num_experts_per_tok=2)),
    "qwen2-moe": ("Qwen2MoeConfig", "Qwen2MoeForCausalLM", dict(
        EXPERTS, shared_expert_intermediate_size=56, decoder_sparse_step=1, mlp_only_layers=[1])),
    "qwen3-moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", dict(EXPERTS, head_dim=16, norm_topk_prob=True)),
}  # fmt: skip


def save(name, folder):
    """The model, whose files are in the folder then."""
    configuration, model, changes = MODELS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    network = getattr(transformers, model)(getattr(transformers, configuration)(**{**SMALL, **changes})).float().eval()
    with torch.no_grad():
        for p in network.parameters():
            scale = 0.3 if p.ndim < 2 else 1.5 / p.shape[-1] ** 0.5
            p.copy_(torch.randn_like(p) * scale + (p.ndim < 2) * p.mean().round())
    network.save_pretrained(folder)
    return network


if __name__ == "__main__":
    import sys
    from pathlib import Path
    from safetensors import safe_open

    for name in sys.argv[2:] or MODELS:
        folder = Path(sys.argv[1]) / name
        save(name, folder)
        print("==", name, json.dumps(json.load(open(folder / "config.json"))))
        with safe_open(folder / "model.safetensors", "np") as f:
            for t in f.keys():
                print("  ", t, f.get_slice(t).get_shape())
