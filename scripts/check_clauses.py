#!/usr/bin/env python3
"""Checks that what cites the numeric contract, and what the contract cites, is there.

Takes:    the text of files by their paths, docs/numerics.md among them, and the paths of all files.
Gives:    a sentence for each clause (N4, N4.2) that no heading of docs/numerics.md has, wherever it is cited, and for each
          test in that page's table of traps that is no GoogleTest, no ctest, no file and no entry of the page.
Does not: run anything (test/Numerics/document.test runs the page). scripts/check_style.py calls this.
"""
import re

PAGE = "docs/numerics.md"
CITED = re.compile(r"\bN\d+(?:\.\d+)?\b")
SUFFIXES = {"", ".cpp", ".h", ".hpp", ".c", ".def", ".fbs", ".proto", ".py", ".uop", ".test", ".txt", ".md", ".cmake", ".sh"}


def clauses(page):
    return set(re.findall(r"^#+ (N\d+(?:\.\d+)?) ", page, re.M))


def unknown_clauses(texts):
    known = clauses(texts[PAGE])
    for path, text in texts.items():
        for i, line in enumerate(text.splitlines(), 1):
            for clause in CITED.findall(line):
                if clause not in known:
                    yield f"{path}:{i}: {PAGE} has no clause {clause}"


def tests_of(texts):
    """The names that a trap may cite: GoogleTests as Suite.Name, ctests."""
    names = set()
    for path, text in texts.items():
        if path.endswith(".cpp"):
            names.update(f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_P|_F)?\((\w+), *(\w+)\)", text, re.M))
        if path.endswith("CMakeLists.txt"):
            names.update(re.findall(r"add_test\(NAME ([\w-]+)", text))
    return names


def wrong_traps(texts, paths):
    page, names = texts[PAGE], tests_of(texts)
    names.update(re.findall(r"^entry @(\w+)", page, re.M))
    rows = re.findall(r"^\| (.*) \| ([^|]*) \|$", page[page.index("\n## Traps\n") :], re.M)
    for trap, tests in rows:
        cited = re.findall(r"`([^`]*)`", tests)
        if trap != "trap" and set(trap) != {"-"} and not cited:
            yield f"{PAGE}: the trap '{trap}' names no test"
        for name in cited:
            if name not in names and name not in paths:
                yield f"{PAGE}: the trap '{trap}' names '{name}', which is no test"
    if len(rows) < 3:
        yield f"{PAGE}: has no table of traps"


def errors(texts, paths):
    """texts: of files that cite, by path; paths: of all files."""
    if PAGE not in texts:
        return [f"{PAGE} is missing"]
    return [*unknown_clauses(texts), *wrong_traps(texts, paths)]
