"""GGUF files that hold a tokenizer and no tensor.

Takes:    metadata: texts, integers, bytes, lists of texts, integers and floats.
Gives:    the bytes of a GGUF file, version 3 (the format as llama.cpp's documentation has it).
Keeps:    the order of the metadata.
Does not: write tensors.
"""

import struct

U8, U32, I32, F32, BOOL, STRING, ARRAY = 0, 4, 5, 6, 7, 8, 9


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def typed(value):
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return U32, struct.pack("<I", value)
    if isinstance(value, str):
        return STRING, text(value)
    if isinstance(value, bytes):
        return ARRAY, struct.pack("<IQ", U8, len(value)) + value
    kind = STRING if isinstance(value[0], str) else I32 if isinstance(value[0], int) else F32
    items = [text(v) if kind == STRING else struct.pack("<i" if kind == I32 else "<f", v) for v in value]
    return ARRAY, struct.pack("<IQ", kind, len(value)) + b"".join(items)


def gguf(metadata):
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
    for key, value in metadata.items():
        kind, raw = typed(value)
        out += text(key) + struct.pack("<I", kind) + raw
    return out


def of_tokenizer(tokenizer, model, pre=None, scores=None, **more):
    """The metadata of a tokenizer of the package `tokenizers`."""
    import json

    file = json.loads(tokenizer.to_str())
    vocabulary = sorted(tokenizer.get_vocab(with_added_tokens=True).items(), key=lambda kv: kv[1])
    special = {a["content"] for a in file["added_tokens"] if a["special"]}
    types = [3 if t in special else 6 if t.startswith("<0x") and t.endswith(">") and len(t) == 6 else 1 for t, _ in vocabulary]
    keys = {"model": model, "tokens": [t for t, _ in vocabulary], "token_type": types}
    if pre:
        keys["pre"] = pre
        keys["merges"] = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
    if scores:
        keys["scores"] = scores
    keys |= more
    return gguf({"general.architecture": "none"} | {f"tokenizer.ggml.{k}" if "." not in k else k: v for k, v in keys.items()})
