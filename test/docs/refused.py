"""Pages that are not right, and what page.py must say of each; and some that are."""

import os
from pathlib import Path

from page import Failed, Page

RIGHT = {
    "output": "```sh\necho one; echo two >&2\n```\n```text\none\ntwo\n```\n",
    "any characters": "```sh\necho one two three\n```\n```text\none ... three\n```\n",
    "any lines": "```sh\nseq 5\n```\n```text\n1\n...\n5\n```\n",
    "no lines": "```sh\nseq 2\n```\n```text\n1\n...\n2\n```\n",
    "a file": "```c\n// a.c\nint a;\n```\n```sh\ngrep -c a a.c\n```\n```text\n2\n```\n",
    "a part of a file": "```c\n/* a.c */\nint a;\nint b;\n```\n```c\nint b;\n```\n```sh\ntrue\n```\n",
    "one folder": "```sh\ntouch a\n```\n```sh\nls\n```\n```text\na\n```\n",
}
WRONG = {
    "other output": ("```sh\necho one\n```\n```text\ntwo\n```\n", 5, "prints something else"),
    "more output": ("```sh\nseq 2\n```\n```text\n1\n```\n", 5, "prints something else"),
    "less output": ("```sh\necho 1\n```\n```text\n1\n2\n```\n", 5, "prints something else"),
    "output that no page shows": ("```sh\necho one\n```\n", 2, "a block of output must follow"),
    "a command that fails": ("```sh\nfalse\ntrue\n```\n", 2, "ends with exit code 1"),
    "a pipe that fails": ("```sh\nfalse | true\n```\n", 2, "ends with exit code 1"),
    "no commands": ("words\n", 1, "has no commands"),
    "an unknown language": ("```sh\ntrue\n```\n```cpp\nint a;\n```\n", 4, "nothing runs a block of 'cpp'"),
    "no language": ("```\ntrue\n```\n", 1, "begins with ```LANGUAGE"),
    "no end": ("```sh\ntrue\n", 1, "has no end"),
    "an indented block": ("words\n\n    true\n\n```sh\ntrue\n```\n", 3, "indented"),
    "a file with no name": ("```c\nint a;\n```\n```sh\ntrue\n```\n", 2, "names no file"),
    "lines of no file": ("```c\n// a.c\nint a;\n```\n```c\nint b;\n```\n```sh\ntrue\n```\n", 6, "names no file"),
    "output of nothing": ("```text\na\n```\n```sh\ntrue\n```\n", 1, "follows no commands"),
}


def said(folder, text):
    """The line and the sentence that a page is refused with, or None."""
    folder.mkdir(parents=True)
    page = folder.with_suffix(".md")
    page.write_text(text)
    try:
        Page(page, folder, dict(os.environ)).check(update=False)
    except Failed as wrong:
        return wrong.line, str(wrong)
    return None


def check(work: Path):
    """Numbers of pages that passed and failed; a sentence is printed for each that failed."""
    failed = 0
    for number, (name, text) in enumerate(RIGHT.items()):
        if found := said(work / f"right{number}", text):
            failed += 1
            print(f"FAIL  a page with {name} is refused: {found}")
    for number, (name, (text, line, sentence)) in enumerate(WRONG.items()):
        found = said(work / f"wrong{number}", text)
        if not found or found[0] != line or sentence not in found[1]:
            failed += 1
            print(f"FAIL  a page with {name}: {found}, expected line {line}: {sentence}")
    return len(RIGHT) + len(WRONG) - failed, failed
