#!/usr/bin/env python3
"""Checks that the folders of compat/ are as they were released: a release adds one, nobody edits one.

Takes:    the root of a git working tree.
Gives:    a sentence for each file of compat/VERSION that is not what its SHA256SUMS says, for each one that differs from what
          was committed, and for each commit of the history that changed or removed one.
Does not: say whether what was released still works (test/compat/run.py does). scripts/check_style.py calls this.
"""
import hashlib
import subprocess


def git(root, *words):
    done = subprocess.run(["git", *words, "--diff-filter=MDT", "--no-renames", "--", "compat"], cwd=root, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return done.stdout.splitlines()


def errors(root):
    found = []
    for folder in sorted(p for p in (root / "compat").glob("*") if p.is_dir()):
        sums = folder / "SHA256SUMS"
        listed = dict(line.split()[::-1] for line in sums.read_text().splitlines()) if sums.exists() else {}
        there = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p != sums}
        unlike = sorted(name for name in {*listed, *there} if listed.get(name) != there.get(name))
        found += [f"compat/{folder.name}/{name}: is not what SHA256SUMS says" for name in unlike]
    found += [f"{path}: differs from what was released" for path in git(root, "diff", "HEAD", "--name-only")]
    found += [f"compat: commit {commit} changes what was released" for commit in git(root, "log", "--format=%h")]
    return found
