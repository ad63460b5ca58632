"""Lines of mixed scripts for the tests of tokenizers.

Takes:    a count and a seed.
Gives:    lines: words, code, numbers, emoji, combining marks, controls, spaces of every kind, names of special tokens.
Keeps:    the same for the same seed. Characters are those of Unicode 12, which every table that is compared has.
Does not: read files.
"""

import random
import unicodedata

# First, last and weight of the blocks that characters are drawn from.
BLOCKS = [
    (0x20, 0x7E, 8), (0xA0, 0x24F, 3), (0x300, 0x36F, 1), (0x370, 0x3FF, 1), (0x400, 0x4FF, 2), (0x5D0, 0x5EA, 1), (0x620, 0x669, 2),
    (0x900, 0x97F, 2), (0xAC00, 0xD7A3, 1), (0x1100, 0x1175, 0.3), (0x11A8, 0x11C2, 0.3), (0x3041, 0x30FF, 1), (0x4E00, 0x9FEF, 2),
    (0xFF01, 0xFF5E, 0.5), (0x2000, 0x206F, 0.5), (0x1F300, 0x1F64F, 0.7), (0x1D400, 0x1D7FF, 0.2), (0xF900, 0xFAD9, 0.2),
    (0x1E00, 0x1EFF, 0.5), (0, 0x1F, 0.2), (0x7F, 0x9F, 0.1), (0x2150, 0x218B, 0.2), (0x2460, 0x24FF, 0.2), (0xE01, 0xE5B, 0.5),
    (0xB80, 0xBFF, 0.3),
]
WORDS = """the model of Language tokens hello world und der été привет мир καλημέρα שלום 東京 computer running unbelievable
antidisestablishmentarianism a I x1 2024""".split()
PARTS = [
    "don't", "I'M", "we'll've", "\n\n", "  \n\t ", "\r\n", "    if x == 10:\n        return foo(bar, 'baz')", "12345678", "3.14159",
    "👩\u200d👩\u200d👧\u200d👦", "🇩🇪🇫🇷", "é", "e\u0301", "a\u0328\u0319\u0301", "ſtrange'ſ", "K\u212a", "İstanbul", "ǅ", "ﬁne", "한국어", "\u1112\u1161\u11ab국",
    "नमस्ते", "สวัสดี", "العربية ١٢٣", "日本語テキスト", "中文 mixed English", "<|endoftext|>", "<|im_end|>", "<s>", "[CLS]", "<0x0A>", "\u200b",
    "\ufeff", "\u00a0", "\u3000", "…", "--->", "http://example.com/a?b=c&d=e", "C++17", "naïve café", "ΑΣΣ", "ß", "₂³", "½", "Ⅷ", "ⓐ",
    "_snake_case_", "''''", "'S 'T 'LL", "\ufffd", "a\ue000b", "       ",
]


def lines(count, seed):
    draw = random.Random(seed)
    weights = [b[2] for b in BLOCKS]

    def character(first, last):
        while True:
            c = chr(draw.randint(first, last))
            if unicodedata.category(c) != "Cn":
                return c

    def part():
        kind = draw.random()
        if kind < 0.45:
            return draw.choice(WORDS)
        if kind < 0.65:
            return draw.choice(PARTS)
        first, last, _ = draw.choices(BLOCKS, weights)[0]
        return "".join(character(first, last) for _ in range(draw.randint(1, 9)))

    out = []
    for _ in range(count):
        parts = [part() for _ in range(draw.randint(1, 12))]
        if draw.random() < 0.8:
            out.append(draw.choice([" ", " ", " ", "", "  ", "\n"]).join(parts))
        else:
            out.append("".join(p + draw.choice([" ", "", " ", "\t", "   "]) for p in parts))
    return out
