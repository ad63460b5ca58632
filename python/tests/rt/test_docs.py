"""The blocks of docs/python-rt.md, in the order of the page, in one namespace."""

import re
import shutil

from conftest import ROOT


def test_what_the_manual_shows(bundle, tmp_path, monkeypatch):
    text = (ROOT / "docs/python-rt.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 5
    for name in ("affine", "steps"):
        shutil.copy(bundle(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, "docs/python-rt.md", "exec"), namespace)  # lines as in the page
