"""The blocks of the pages about this part of the package, in the order of each page, in one namespace."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("page", ["python-transforms.md", "python-stages.md", "kernels.md", "kernels-triton.md"])
def test_what_a_page_shows(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 5
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(DOCS / page), "exec"), namespace)  # lines as in the page
