"""What scripts/check_releases.py says of a repository with two releases, and of one edit at a time."""
import hashlib
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1] + "/scripts")
import check_releases  # noqa: E402

NOBODY = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]


def git(root, *words):
    subprocess.run(["git", *NOBODY, *words], cwd=root, check=True, capture_output=True)


def sums(folder):
    files = sorted(p for p in folder.iterdir() if p.name != "SHA256SUMS")
    (folder / "SHA256SUMS").write_text("".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files))


def release(root, version):
    folder = root / "compat" / version
    folder.mkdir(parents=True)
    (folder / "client").write_text(version)
    (folder / "cases").write_text("cases of " + version)
    sums(folder)


def edit(root):
    (root / "compat/1/client").write_text("another")


def edit_with_sums(root):
    edit(root)
    sums(root / "compat/1")


def add(root):
    (root / "compat/1/more").write_text("more")


def remove(root):
    for path in sorted((root / "compat/1").iterdir()):
        path.unlink()
    (root / "compat/1").rmdir()


DIFFERS, UNLIKE, COMMITTED = ": differs from what was released", ": is not what SHA256SUMS says", "changes what was released"
FAULTS = {
    "an edited file": (edit, False, ["compat/1/client" + UNLIKE, "compat/1/client" + DIFFERS]),
    "an edited file, committed": (edit, True, ["compat/1/client" + UNLIKE, COMMITTED]),
    "an edited file and its sum": (edit_with_sums, False, ["compat/1/SHA256SUMS" + DIFFERS, "compat/1/client" + DIFFERS]),
    "an edited file and its sum, committed": (edit_with_sums, True, [COMMITTED]),
    "a file more": (add, False, ["compat/1/more" + UNLIKE]),
    "a folder less": (remove, False, [f"compat/1/{name}{DIFFERS}" for name in ("SHA256SUMS", "cases", "client")]),
    "a folder less, committed": (remove, True, [COMMITTED]),
}

with tempfile.TemporaryDirectory() as scratch:
    root = pathlib.Path(scratch)
    git(root, "init", "-q")
    release(root, "1")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "release 1")
    release(root, "2")
    if found := check_releases.errors(root):
        sys.exit(f"a release that is not committed yet: {found}")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "release 2")
    if found := check_releases.errors(root):
        sys.exit(f"what is right: {found}")
    git(root, "tag", "right")
    for fault, (change, commits, sentences) in FAULTS.items():
        change(root)
        if commits:
            git(root, "add", "-A")
            git(root, "commit", "-q", "-m", fault)
        found = check_releases.errors(root)
        if len(found) != len(sentences) or not all(s in f for s, f in zip(sentences, found)):
            sys.exit(f"{fault}: found {found}, expected {sentences}")
        git(root, "reset", "-q", "--hard", "right")
        git(root, "clean", "-qfd")
