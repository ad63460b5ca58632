"""The blocks of docs/pytorch.md, in the order of the page, in one namespace."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/pytorch.md"


def test_what_the_page_shows(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert len(blocks) > 8
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)  # lines as in the page
