#!/usr/bin/env python3
"""Checks the house rules that a formatter does not know, and reports sizes.

usage: scripts/check_style.py [--report]
Every C++ file begins with its head comment (//===- Name), whose paragraphs (Takes:, Gives:) no formatter has cut, no file is longer than 700 lines, no line asks for work later,
astra.hpp reaches every function of astra.h, tensor.hpp every one of tensor.h, every clause of the numeric contract that is cited is one (check_clauses.py), links
of pages lead somewhere, cells of their tables can be read (check_pages.py), and the folders of compat/ are as they were
released (check_releases.py).
--report prints lines of code per folder instead.
"""
import pathlib
import re
import subprocess
import sys

import check_clauses
import check_pages
import check_releases

LONGEST = 700
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
PARAGRAPH = re.compile(r"// [A-Z][a-z]+( not)?: +\S")
FOLDERS = 2  # how deep the report groups


def files(root):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True,
                           check=True).stdout.split("\n")
    return [pathlib.PurePath(n) for n in sorted(names) if n and (root / n).is_file()]


def text_of(root, path):
    return (root / path).read_text(errors="replace")


def report(root):
    code = {".cpp", ".h", ".c", ".def", ".py", ".fbs", ".proto", ".cmake", ".uop"}
    sizes = {}
    for path in files(root):
        if path.suffix not in code or path.name.endswith("_generated.h"):
            continue
        group = "/".join(path.parts[: min(FOLDERS, len(path.parts) - 1)]) or "."
        lines = sum(1 for line in text_of(root, path).splitlines() if line.strip())
        n, total = sizes.get(group, (0, 0))
        sizes[group] = (n + 1, total + lines)
    print(f"{'folder':32} {'files':>6} {'lines':>8}")
    for group, (n, total) in sorted(sizes.items()):
        print(f"{group:32} {n:6} {total:8}")
    print(f"{'all':32} {sum(n for n, _ in sizes.values()):6} {sum(t for _, t in sizes.values()):8}")


def cut_heads(lines):
    """Numbers of head comment lines that a formatter made of one that was too long: they begin where no paragraph does."""
    inside = False
    for i, line in enumerate(lines):
        if not line.startswith("//") or line.rstrip() == "//":
            return
        if PARAGRAPH.match(line):
            inside = True
        elif inside and re.match(r"// \S", line):
            if lines[i - 1].rstrip().endswith((".", ":")):
                return  # what follows the paragraphs
            yield i + 1
        if inside and re.search(r"\S (Takes|Gives|Keeps|Does not): ", line[3:]):
            yield i + 1


def check(root):
    errors = []
    for path in files(root):
        if path.suffix not in (".cpp", ".h", ".c") or path.name.endswith("_generated.h"):
            continue
        lines = text_of(root, path).splitlines()
        if path.suffix != ".c" and not (lines and lines[0].startswith(("//===- ", "/*===- "))):
            errors.append(f"{path}: has no head comment")
        if len(lines) > LONGEST:
            errors.append(f"{path}: {len(lines)} lines, at most {LONGEST}")
        for i in cut_heads(lines):
            errors.append(f"{path}:{i}: this line of the head comment was cut: make the one before it shorter")
        for i, line in enumerate(lines, 1):
            if LATER.search(line):
                errors.append(f"{path}:{i}: work for later belongs into an issue")
    for header in ("astra", "tensor"):
        wrapper = text_of(root, f"include/astra/{header}.hpp")
        for name in re.findall(r"^ASTRA_API [^(]*?(\w+)\(", text_of(root, f"include/astra/{header}.h"), re.M):
            if not re.search(rf"\b{name}\b", wrapper):
                errors.append(f"include/astra/{header}.hpp: does not reach {name}")
    paths = files(root)
    texts = {str(p): text_of(root, p) for p in paths if p.suffix in check_clauses.SUFFIXES and p.parts[0] != "compat"}  # programs
    errors += check_clauses.errors(texts, {str(p) for p in paths})
    errors += check_pages.errors({str(p): text_of(root, p) for p in paths if p.suffix == ".md"}, {str(p) for p in paths})
    errors += check_releases.errors(root)
    for e in errors:
        print(e)
    return errors


root = pathlib.Path(__file__).resolve().parent.parent
if sys.argv[1:] == ["--report"]:
    report(root)
elif sys.argv[1:]:
    print(__doc__)
    sys.exit(0 if sys.argv[1] == "--help" else 2)
else:
    sys.exit(1 if check(root) else 0)
