"""Models of models.py as GGUF files, by the conventions of llama.cpp's converter.

Takes:    a folder that models.save wrote; the package gguf.
Gives:    write(name, network, folder, path). Names of tensors are those of lib/Import/Language/Tensors.def.
Keeps:    what the converter changes: pairs of queries and keys that are rotated lie side by side, scales of norms have 1
          added, matrices of GPT-2 are transposed, experts are one tensor, factors of rotations are tensors.
"""

import re
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

DEFINITIONS = Path(__file__).resolve().parents[2] / "lib/Import/Language"
PAIRS = {"llama", "mistral", "mixtral", "olmo"}
# of config.json: the key behind the architecture's name
KEYS = {
    "hidden_size": "embedding_length", "num_hidden_layers": "block_count", "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length", "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_epsilon": "attention.layer_norm_epsilon", "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping",
    "clip_qkv": "attention.clamp_kqv", "num_local_experts": "expert_count", "num_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count", "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
}  # fmt: skip


def table(file, macro):
    """The rows of a .def file, as lists of strings."""
    text = re.sub(r"//.*", "", (DEFINITIONS / file).read_text())
    return [re.findall(r'"([^"]*)"', row) for row in re.findall(macro + r"\((.*?)\)\n", text, re.DOTALL)]


def side_by_side(w, heads):
    """Rows of queries or keys whose pairs are two halves, pair by pair."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def renamed(name, sandwich):
    """GGUF's name of a tensor with % for the layer, layer, expert."""
    for ours, theirs in table("Tensors.def", "TENSOR"):
        for alternative in theirs.split("|"):
            if alternative.endswith("post_attention_layernorm") and sandwich == ours.endswith("ffn_norm"):
                continue
            pattern = re.escape(alternative).replace("%", r"(?P<layer>\d+)").replace(r"\#", r"(?P<expert>\d+)")
            found = re.fullmatch(r"(?:model\.|transformer\.)?" + pattern + r"\.(?P<suffix>weight|bias)", name)
            if found:
                parts = found.groupdict()
                ours = ours.replace("%", parts.get("layer") or "") + "." + parts["suffix"]
                return ours, int(parts["expert"]) if parts.get("expert") else None
    raise KeyError(name)


def rotations(out, arch, config, name):
    """Keys and tensors about rotations."""
    rope = getattr(config, "rope_parameters", None) or {}
    rope = rope.get("full_attention", rope)
    if "rope_theta" in rope:
        out.add_float32(f"{arch}.rope.freq_base", rope["rope_theta"])
    kind, head = rope.get("rope_type", "default"), getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    columns = int(head * rope.get("partial_rotary_factor", 1))
    if columns != head:
        out.add_uint32(f"{arch}.rope.dimension_count", columns)
    if kind in ("linear", "yarn"):
        out.add_string(f"{arch}.rope.scaling.type", kind)
        out.add_float32(f"{arch}.rope.scaling.factor", rope["factor"])
    if "original_max_position_embeddings" in rope:
        out.add_uint32(f"{arch}.rope.scaling.original_context_length", rope["original_max_position_embeddings"])
    if kind == "llama3":
        frequencies = rope["rope_theta"] ** -(np.arange(0, head, 2) / head)
        length, first = 2 * np.pi / frequencies, rope["original_max_position_embeddings"]
        smooth = (first / length - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
        between = 1 / ((1 - smooth) / rope["factor"] + smooth)
        factors = np.where(length < first / rope["high_freq_factor"], 1,
                           np.where(length > first / rope["low_freq_factor"], rope["factor"], between))  # fmt: skip
        out.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    if kind == "longrope":
        stretched = config.max_position_embeddings / rope["original_max_position_embeddings"]
        out.add_float32(f"{arch}.rope.scaling.attn_factor",
                        float(np.sqrt(1 + np.log(stretched) / np.log(rope["original_max_position_embeddings"]))))  # fmt: skip
        for which in ("long", "short"):
            out.add_tensor(f"rope_factors_{which}.weight", np.array(rope[which + "_factor"], np.float32))


def write(network, folder, path):
    config = network.config
    kind = config.model_type
    arch = {row[0]: row[1] or "llama" for row in table("Architectures.def", "ARCHITECTURE")}[kind]
    out = gguf.GGUFWriter(str(path), arch)
    for ours, theirs in KEYS.items():
        value = getattr(config, ours, None)
        if ours == "intermediate_size" and kind == "gpt2":
            value = 4 * config.hidden_size
        if value is None or (ours == "sliding_window" and not value):
            continue
        add = out.add_float32 if isinstance(value, float) else out.add_uint32
        add(f"{arch}.{theirs}", value)
    rotations(out, arch, config, kind)
    gemma, experts = kind.startswith("gemma"), {}
    for name, w in load_file(folder / "model.safetensors").items():
        ours, expert = renamed(name, gemma or kind == "olmo2")
        part = ours.rsplit(".", 2)[-2]
        if kind in PAIRS and part in ("attn_q", "attn_k"):
            w = side_by_side(w, config.num_attention_heads if part == "attn_q" else config.num_key_value_heads)
        if gemma and "norm" in part:
            w = w + 1
        if kind == "gpt2" and w.ndim == 2 and ours.startswith("blk"):
            w = w.T
        if expert is None:
            out.add_tensor(ours, np.ascontiguousarray(w))
        else:
            experts.setdefault(ours, {})[expert] = w
    for ours, parts in experts.items():
        out.add_tensor(ours, np.stack([parts[i] for i in range(len(parts))]))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
