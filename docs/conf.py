"""The site of the documentation: Sphinx reads the pages where they are, from the root of the tree (scripts/docs).

Takes:    every .md file that include_patterns names; docs/index.md has the order.
Gives:    links between pages as GitHub has them: to a heading's anchor, to a file of the tree, to a folder.
Does not: know where the tree is published: a file of the tree that is no page is copied beside the site.
"""

import os
import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import check_pages  # noqa: E402

project = "Astra"
copyright = "the Astra contributors"  # noqa: A001
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Astra"
html_copy_source = html_show_sourcelink = False
html_static_path = []
html_last_updated_fmt = None

source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "examples/**/README.md", "python/**/README.md", "packaging/**/README.md", "bindings/**/README.md"]
exclude_patterns = ["build", ".git", ".ci", "**/__pycache__"]

myst_heading_anchors = 6
myst_enable_extensions = []
suppress_warnings = ["myst.header"]  # a page may leave out a level of headings

highlight_language = "none"
TEXTS = "uop", "examples"  # languages of blocks that no lexer knows


LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def page_of(folder):
    """The page that shows a folder, or None."""
    return next((folder / name for name in ("README.md", "index.md") if (folder / name).is_file()), None)


def rewrite_links(app, docname, source):
    """A link to a folder leads to the folder's page, or is text where there is none."""
    here = (ROOT / docname).parent

    def rewritten(link):
        folder = here / link[2]
        if not folder.is_dir():
            return link[0]
        page = page_of(folder)
        return f"[{link[1]}]({os.path.relpath(page, here)}{link[3] or ''})" if page else link[1]

    lines = source[0].split("\n")
    for number, line in check_pages.prose(source[0]):
        lines[number - 1] = LINK.sub(rewritten, line)
    source[0] = "\n".join(lines)


def write_entry(app, error):
    """The site's root leads to its first page."""
    if not error:
        (Path(app.outdir) / "index.html").write_text(
            '<!doctype html>\n<meta charset="utf-8">\n<title>Astra</title>\n'
            '<meta http-equiv="refresh" content="0; url=docs/index.html">\n<a href="docs/index.html">Astra</a>\n')


def setup(app):
    for language in TEXTS:
        app.add_lexer(language, TextLexer)
    app.connect("source-read", rewrite_links)
    app.connect("build-finished", write_entry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
