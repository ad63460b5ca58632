"""Write the seeds of the fuzzers of tokenizers.

Takes:    build/bin/astra-text; the package tokenizers; a folder.
Gives:    FOLDER/json: small tokenizers of every kind; FOLDER/blob: their compiled form with a text behind it.
Keeps:    the same for the same version of tokenizers.

    build/venv/bin/python test/fuzz/text_seeds.py build/fuzz-seeds
"""

import base64
import json
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/text"))
MODELS = {
    "bpe": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4}, "merges": ["a b", ["ab", "c"]], "unk_token": "c", "fuse_unk": True},
    "bytes": {"type": "BPE", "byte_fallback": True, "vocab": {f"<0x{i:02X}>": i for i in range(256)} | {"é": 256}, "merges": []},
    "unigram": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2], ["▁", -3], ["é", -1]]},
    "wordpiece": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9, "vocab": {"u": 0, "a": 1, "##b": 2, "e": 3}},
}
NORMALIZERS = [{"type": "NFC"}, {"type": "NFKD"}, {"type": "BertNormalizer"}, {"type": "Prepend", "prepend": "▁"}, {"type": "Strip"},
               {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Nmt"},
               # a table with one rule: a trie of three units, "a" becomes "e"
               {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(struct.pack("<4I", 12, 0x60 << 10, 3 << 10 | 0x161, 1 << 31) + b"e\0").decode()}]
STEPS = [{"type": "ByteLevel"}, {"type": "Metaspace"}, {"type": "BertPreTokenizer"}, {"type": "Digits"}, {"type": "Whitespace"},
         {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t)|\p{L}+|[^\r\n\p{N}]?|\s+(?!\S)"}, "behavior": "MergedWithNext", "invert": True}]
DECODERS = [None, {"type": "ByteLevel"}, {"type": "Metaspace"}, {"type": "WordPiece"}, {"type": "ByteFallback"}]
ADDED = [{"id": 0, "content": "<s>", "special": True, "lstrip": True}, {"id": 300, "content": "new", "normalized": True, "single_word": True}]


def main():
    folder = Path(sys.argv[1])
    for kind in "json", "blob":
        (folder / kind).mkdir(parents=True, exist_ok=True)
    number = 0
    for name, model in MODELS.items():
        for i, step in enumerate(STEPS):
            file = {"model": model, "pre_tokenizer": step, "normalizer": NORMALIZERS[number % len(NORMALIZERS)], "decoder": DECODERS[number % len(DECODERS)],
                    "added_tokens": ADDED[: number % 3]}
            path = folder / "json" / f"{name}{i}.json"
            path.write_text(json.dumps(file, ensure_ascii=False))
            compiled = folder / "one"
            if subprocess.run([ROOT / "build/bin/astra-text", path, "-o", compiled, "--form=llama2"], capture_output=True).returncode == 0:
                blob = compiled.read_bytes()
                if len(blob) < 1 << 16:
                    (folder / "blob" / f"{name}{i}").write_bytes(struct.pack("<H", len(blob)) + blob + "Don't abc <s> é\u0301 12 new\n".encode())
            number += 1
    (folder / "one").unlink(missing_ok=True)
    print(f"{number} tokenizers")


if __name__ == "__main__":
    main()
