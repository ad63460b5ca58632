"""A Llama in a GGUF file as PyTorch's module, with weights in f32.

Takes:    the packages gguf, torch and transformers.
Gives:    load(path): the module; `python gguf_model.py FILE.gguf FOLDER` writes it as transformers does.
"""

import sys

import gguf
import numpy as np
import torch
import transformers

NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # fmt: skip


def in_halves(w, heads):
    """Rows of queries or keys, of which pairs that are rotated lie side by side, with the pairs' parts in two halves."""
    return w.reshape(heads, w.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)


def load(path):
    file = gguf.GGUFReader(path)

    def value(key):
        field = file.fields["llama." + key]
        return field.parts[field.data[0]].tolist()[0]

    weights = {}
    for t in file.tensors:
        kind = t.name.removesuffix(".weight").split(".")
        w = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        w = w.reshape([int(n) for n in reversed(t.shape)])
        if kind[-1] in ("attn_q", "attn_k"):
            w = in_halves(w, value("attention.head_count" if kind[-1] == "attn_q" else "attention.head_count_kv"))
        prefix = f"model.layers.{kind[1]}." if kind[0] == "blk" else ""
        weights[f"{prefix}{NAMES[kind[-1]]}.weight"] = torch.from_numpy(np.ascontiguousarray(w))
    tied = "lm_head.weight" not in weights
    config = transformers.LlamaConfig(
        vocab_size=weights["model.embed_tokens.weight"].shape[0], hidden_size=value("embedding_length"),
        intermediate_size=value("feed_forward_length"), num_hidden_layers=value("block_count"),
        num_attention_heads=value("attention.head_count"), num_key_value_heads=value("attention.head_count_kv"),
        max_position_embeddings=value("context_length"), rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters=dict(rope_type="default", rope_theta=value("rope.freq_base")), tie_word_embeddings=tied)  # fmt: skip
    network = transformers.LlamaForCausalLM(config).float().eval()
    missing, unexpected = network.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    network.tie_weights()
    return network


if __name__ == "__main__":
    load(sys.argv[1]).save_pretrained(sys.argv[2])
