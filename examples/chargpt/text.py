"""A text as rows of characters: what is read and what follows.

Takes:    jargon.txt.gz, the Jargon File 4.4.7 of the Debian package jargon-text (Eric S. Raymond; in the public domain), a folder.
Gives:    train_token.npy and train_target.npy (u8 [rows, 128]; a target is the character after the token), heldout_token.npy and
          heldout_target.npy (one row in 20) in that folder.
Keeps:    the glossary and the appendices as ASCII without the indentation. Line feed is 0, the characters from space to tilde
          are 1 to 95.

    python3 examples/chargpt/text.py jargon.txt.gz build/chargpt
"""

import gzip
import sys
import unicodedata

from begin import CONTEXT

MARKS = {"“": '"', "”": '"', "‘": "'", "’": "'", "—": "--", "–": "-", "•": "*", "·": "*", "→": "->", "×": "x", "\u00a0": " "}


def read(path):
    lines = gzip.open(path, "rt", encoding="utf-8").read().split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("   :"))
    text = "\n".join(line.removeprefix("   ") for line in lines[first:])
    for mark, plain in MARKS.items():
        text = text.replace(mark, plain)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore")
    return bytes(0 if c == 10 else c - 31 for c in text if c == 10 or 32 <= c < 127)


def save(path, rows):
    """The format of NumPy, version 1.0."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(rows)}, {CONTEXT}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"".join(rows))


def main(path, folder):
    text = read(path)
    starts = range(0, len(text) - CONTEXT, CONTEXT)
    for name, wanted in (("train", lambda i: i % 20 != 19), ("heldout", lambda i: i % 20 == 19)):
        chosen = [at for i, at in enumerate(starts) if wanted(i)]
        for what, shift in (("token", 0), ("target", 1)):
            save(f"{folder}/{name}_{what}.npy", [text[at + shift : at + shift + CONTEXT] for at in chosen])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
