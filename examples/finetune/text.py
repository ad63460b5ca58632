"""Rows of tokens and their classes, of the lines that Debian's package `fortunes` has.

Takes:    a folder with the files of the packages fortunes and fortunes-min, the program `sentence`, the vocabulary, where rows go.
Gives:    train_*.npy and heldout_*.npy: input_ids and attention_mask [rows, LENGTH], and target, the number of the file in CLASSES. Every fifth line is
          held out. Longer lines are cut, shorter ones padded.
Keeps:    the order of the files; nothing is drawn.

    build/venv/bin/python examples/finetune/text.py FORTUNES build/bin/sentence vocab.txt build/finetune
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CLASSES = ["computers", "food", "law", "science", "songs-poems", "sports", "startrek", "tao"]
LENGTH, MOST = 64, 150  # tokens of a row, lines of a class


def lines_of(path):
    """What stands between lines of %, on one line each."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line for line in (" ".join(part.split()) for part in text.split("\n%\n")) if len(line) >= 20][:MOST]


def pieces(program, vocabulary, lines):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        done = subprocess.run([program, "--tokens", vocabulary, file.name], capture_output=True, text=True, check=True)
    return [[int(n) for n in line.split()] for line in done.stdout.splitlines()]


def main():
    folder, program, vocabulary, out = sys.argv[1:]
    rows = {"train": [], "heldout": []}
    for number, name in enumerate(CLASSES):
        for i, tokens in enumerate(pieces(program, vocabulary, lines_of(Path(folder) / name))):
            rows["heldout" if i % 5 == 4 else "train"].append((tokens, number))
    for kind, list_ in rows.items():
        ids, mask = np.zeros((2, len(list_), LENGTH), np.int64)
        for i, (tokens, _) in enumerate(list_):
            if len(tokens) > LENGTH:
                tokens = tokens[: LENGTH - 1] + tokens[-1:]  # the last one closes the line
            ids[i, : len(tokens)], mask[i, : len(tokens)] = tokens, 1
        np.save(f"{out}/{kind}_input_ids.npy", ids)
        np.save(f"{out}/{kind}_attention_mask.npy", mask)
        np.save(f"{out}/{kind}_target.npy", np.array([number for _, number in list_], np.int64))
        print(f"{kind}: {len(list_)} lines")


if __name__ == "__main__":
    main()
