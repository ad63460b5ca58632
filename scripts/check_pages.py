#!/usr/bin/env python3
"""Checks what a reader of the pages meets: links that lead somewhere, and tables that can be read.

Takes:    the text of Markdown pages by their paths, and the paths of all files.
Gives:    a sentence for each relative link that leads to no file or to no heading, for each page that is named between
          backticks (docs/text.md) and is not there, for each cell over 25 words of a table in README.md and docs/*.md, and
          for each folder that docs/architecture.md has no line for.
Does not: follow links to other hosts, or look into code blocks. scripts/check_style.py calls this.
"""
import posixpath
import re

LONGEST_CELL = 25  # words
MAP, PARTED = "docs/architecture.md", ("lib/", "test/", "tools/")

# Pages that a program writes: their cells are as long as what the program knows.
GENERATED = {"docs/autograd.md", "docs/benchmarks.md", "docs/functions.md", "docs/gpu-kernels.md", "docs/onnx.md", "docs/ops.md",
             "docs/rules.md", "docs/scale.md", "docs/training.md"}

# Pages with longer cells that are to be rewritten: none today. Whoever rewrites one takes it off this list.
NOT_YET = set()

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
NAMED = re.compile(r"`((?:docs|examples)/[\w./-]+\.md)`")
CODE = re.compile(r"`[^`]*`")
FENCE = re.compile(r"^ *(```|~~~)")


def prose(text):
    """Number and text of each line outside of code blocks: fenced, or four columns further in than the text around them."""
    fenced = block = False
    blank, column = True, 0  # whether the line before was blank; where the text of the list's item begins
    for i, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced, blank = not fenced, False
            continue
        if fenced:
            continue
        if not line.strip():
            blank = True
            continue
        indent = len(line) - len(line.lstrip(" "))
        block = indent >= column + 4 and (block or blank)
        if not block:
            item = re.match(r" *(?:[-*]|\d+\.) +", line)
            column = len(item.group()) if item else min(column, indent)
            yield i, line
        blank = False


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them: a heading that comes again has a number behind it."""
    found, seen = set(), {}
    for _, line in prose(text):
        heading = re.match(r"#{1,6} +(.*?)[ #]*$", line)
        if not heading:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        n = seen.get(slug, 0)
        seen[slug] = n + 1
        found.add(f"{slug}-{n}" if n else slug)
    return found


def wrong_links(pages, paths):
    folders = {"."}
    for path in paths:
        while path := posixpath.dirname(path):
            folders.add(path)
    for page, text in pages.items():
        for i, line in prose(text):
            for target in LINK.findall(CODE.sub("``", line)):
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                file, _, anchor = target.partition("#")
                file = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
                if file not in paths and file not in folders:
                    yield f"{page}:{i}: the link '{target}' leads to {file}, which is no file"
                elif anchor and file in pages and anchor not in anchors(pages[file]):
                    yield f"{page}:{i}: the link '{target}' leads to '#{anchor}', which no heading of {file} has"
            for name in NAMED.findall(line):
                if name not in paths:
                    yield f"{page}:{i}: names {name}, which is no file"


def long_cells(text):
    for i, line in prose(text):
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]:
                if len(cell.split()) > LONGEST_CELL:
                    yield i, len(cell.split())


def wrong_cells(pages):
    for page, text in pages.items():
        if page in GENERATED or not (page == "README.md" or re.fullmatch(r"docs/[^/]+\.md", page)):
            continue
        found = list(long_cells(text))
        if page in NOT_YET and not found:
            yield f"{page}: has no cell over {LONGEST_CELL} words any more: take it off NOT_YET in scripts/check_pages.py"
        for i, words in found if page not in NOT_YET else []:
            yield f"{page}:{i}: a table cell of {words} words, at most {LONGEST_CELL}"


def unknown_folders(pages, paths):
    """Folders of the tree, and those within lib, test and tools, that no table of docs/architecture.md begins a row with."""
    rows = re.findall(r"^\| ([^|]*)", pages.get(MAP, ""), re.M)
    listed = {name for row in rows for name in re.findall(r"`([^`]*)`", row)}
    folders = {"/".join(p.split("/")[: 1 + p.startswith(PARTED)]) for p in paths if p.count("/") > p.startswith(PARTED)}
    for folder in sorted(folders - listed):
        yield f"{MAP}: has no line for the folder {folder}"


def errors(pages, paths):
    """pages: the text of each Markdown file, by path; paths: of all files."""
    gone = [f"scripts/check_pages.py lists {page}, which is no file" for page in sorted((GENERATED | NOT_YET) - set(paths))]
    return [*gone, *wrong_links(pages, set(paths)), *wrong_cells(pages), *unknown_folders(pages, paths)]
