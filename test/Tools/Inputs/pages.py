"""What scripts/check_pages.py says of a small tree, which is right, and of that tree with one fault at a time."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(sys.argv[1]) / "scripts"))
import check_pages  # noqa: E402

check_pages.GENERATED, check_pages.NOT_YET = {"docs/made.md"}, {"docs/old.md"}
LONG = "word " * 26
RIGHT = {
    "README.md": "# A\n\n[a](docs/a.md), [b](docs/a.md#two-words-of-a), [c](docs/), [d](#a), [e](https://x/y#z), `docs/a.md`\n",
    "docs/a.md": "# Two words, of `a`\n\n| x | [up](../README.md) |\n|---|---|\n| " + "word " * 25 + "| y |\n\n    [code](no.md)\n\n"
    "- item\n\n      [more code](no.md)\n\n```\n| " + LONG + "|\n```\n\n## Again\n## Again\n\n[f](#again-1) `[span](no.md)`\n",
    "docs/made.md": f"| {LONG} |\n",
    "docs/old.md": f"| {LONG} |\n",
    "docs/architecture.md": "| folder |\n|---|\n| `docs` | pages |\n| `lib/T`, `test` | code |\n",
    "docs/deep/b.md": f"| {LONG} |\n\n[t](../../lib/T/T.cpp)\n",
}
PATHS = {*RIGHT, "lib/T/T.cpp", "lib/a.txt", "test/a.txt"}
FAULTS = {  # file, what stands there, what is put there, a part of the only sentence
    "a file that is not there": ("README.md", "(docs/a.md)", "(docs/b.md)", "README.md:3: the link 'docs/b.md' leads to docs/b.md, which is no"),
    "a link from the wrong folder": ("docs/deep/b.md", "../../lib", "../lib", "docs/deep/b.md:3: the link '../lib/T/T.cpp' leads to docs/lib/T/T.cpp"),
    "a heading of another page": ("README.md", "two-words-of-a", "two-words", "'#two-words', which no heading of docs/a.md has"),
    "a heading of this page": ("docs/a.md", "#again-1", "#again-2", "'#again-2', which no heading of docs/a.md has"),
    "a folder that is not there": ("README.md", "(docs/)", "(doc/)", "leads to doc, which is no file"),
    "a page between backticks": ("README.md", "`docs/a.md`", "`docs/z.md`", "README.md:3: names docs/z.md, which is no file"),
    "a cell too long": ("docs/a.md", "| word", "| one word", "docs/a.md:5: a table cell of 26 words, at most 25"),
    "a page that is rewritten": ("docs/old.md", LONG, "word", "docs/old.md: has no cell over 25 words any more"),
    "a folder without a line": ("docs/architecture.md", "`lib/T`", "`lib`", "docs/architecture.md: has no line for the folder lib/T"),
}

if found := check_pages.errors(RIGHT, PATHS):
    sys.exit(f"what is right: {found}")
for fault, (path, old, new, sentence) in FAULTS.items():
    pages = dict(RIGHT)
    assert old in pages[path], fault
    pages[path] = pages[path].replace(old, new, 1)
    found = check_pages.errors(pages, PATHS)
    if len(found) != 1 or sentence not in found[0]:
        sys.exit(f"{fault}: found {found}, expected '{sentence}'")
if len(found := check_pages.errors({}, set())) != 2:
    sys.exit(f"listed pages that are gone: {found}")
