"""The blocks of docs/python.md, in the order of the page, in one namespace; the functions that it lists are those of the package."""

import re
from pathlib import Path

import astra

PAGE = Path(__file__).resolve().parents[3] / "docs/python.md"


def test_what_the_manual_shows(tmp_path, monkeypatch):
    text = PAGE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 5
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(PAGE), "exec"), namespace)  # lines as in the page


def test_what_the_manual_lists_is_there():
    table = PAGE.read_text().split("| what | functions |")[1].split("\n\n")[0]
    for row in table.splitlines()[2:]:
        what, names = row.strip("|").split("|")
        space = {"`astra.linalg`": astra.linalg, "`astra.fft`": astra.fft}.get(what.split(":")[0].strip(), astra)
        for name in re.findall(r"`(\w+)`", names):
            assert callable(getattr(space, name)), name
