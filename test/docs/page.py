"""A page of documentation whose code is run: its blocks, what they do and what they must print (run.py has the rules).

Takes:    a page, an empty folder, the environment of its commands.
Gives:    Failed, with the number of a line, where the page is not right.
Does not: choose pages, or install anything (run.py).
"""

import difflib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_pages  # noqa: E402

FILES = "c", "uop", "python"  # languages of blocks that are written to files
NAME = re.compile(r"(?://|#|/\*) ([\w.-]+\.\w+)(?: \*/)?$")
TIMEOUT = 300  # seconds of a block


class Failed(Exception):
    def __init__(self, line, sentence):
        super().__init__(sentence)
        self.line = line


def is_alive(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


def end(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Block:
    """A block of code: its language, the number of its first line, its text."""

    def __init__(self, language, line):
        self.language, self.line, self.lines = language, line, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


def blocks(text):
    found, current = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if current and line == "```":
            current = None
        elif current:
            current.lines.append(line)
        elif line.lstrip().startswith(("```", "~~~")):
            if not re.fullmatch(r"```[a-z]+", line):
                raise Failed(number, f"a block of code begins with ```LANGUAGE at the margin, not with '{line}'")
            current = Block(line[3:], number + 1)
            found.append(current)
    if current:
        raise Failed(current.line - 1, "a block of code has no end")
    outside = {number for number, _ in check_pages.prose(text)}
    inside = {number for b in found for number in range(b.line - 1, b.line + len(b.lines) + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and number not in outside | inside:
            raise Failed(number, "a block of code that is indented is not run: put ``` around it")
    return found


def matches(expected, said):
    """Whether lines are those expected, in which "..." stands for what is not the same everywhere."""
    pattern = ""
    for line in expected:
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in said)) is not None


class Page:
    def __init__(self, path, folder, env):
        self.path, self.folder, self.env = path, folder, env
        self.text = path.read_text()
        self.written = []  # blocks that went into files
        self.changed = []  # blocks of output and what was printed instead
        self.background = []  # groups of processes that blocks have left running

    def write(self, block):
        name = NAME.match(block.lines[0]) if block.lines else None
        if name:
            (self.folder / name[1]).write_text(block.text)
            self.written.append(block)
            return
        for whole in self.written:
            lines = iter(line.strip() for line in whole.lines)
            if all(line.strip() in lines for line in block.lines if line.strip()):
                return
        raise Failed(block.line, "this block names no file, and shows no lines of one before it")

    def run(self, block, output, update):
        said = self.folder / ".said"
        with said.open("w") as file:
            # In a session of its own: what it leaves in the background ends with the page.
            shell = subprocess.Popen(["bash", "-eu", "-o", "pipefail", "-c", block.text], cwd=self.folder, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                     start_new_session=True)  # fmt: skip
            try:
                code = shell.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                code = None
        if code is None:
            end(shell.pid)
            shell.wait()
        elif is_alive(shell.pid):
            self.background.append(shell.pid)
        printed = said.read_text(errors="replace").splitlines()
        said.unlink()
        if code is None:
            raise Failed(block.line, f"takes over {TIMEOUT} seconds")
        if code:
            raise Failed(block.line, "\n".join([f"ends with exit code {code}", *printed]))
        if output is None:
            if printed:
                raise Failed(block.line, "\n".join(["a block of output must follow: this prints", *printed]))
        elif not matches(output.lines, printed):
            if not update:
                difference = difflib.unified_diff(output.lines, printed, "the page", "printed", lineterm="")
                raise Failed(output.line, "\n".join(["prints something else", *difference]))
            self.changed.append((output, printed))

    def check(self, update):
        try:
            self.carry_out(blocks(self.text), update)
        finally:
            for group in self.background:
                end(group)
            self.save()

    def carry_out(self, found, update):
        if not any(b.language == "sh" for b in found):
            raise Failed(1, "has no commands")
        for before, block, after in zip([None, *found], found, [*found[1:], None]):
            if block.language == "sh":
                self.run(block, after if after and after.language == "text" else None, update)
            elif block.language in FILES:
                self.write(block)
            elif block.language != "text":
                raise Failed(block.line - 1, f"nothing runs a block of '{block.language}'")
            elif not (before and before.language == "sh"):
                raise Failed(block.line - 1, "this output follows no commands")

    def save(self):
        """Writes the page with what was printed, where that is another text."""
        lines = self.text.splitlines()
        for output, printed in reversed(self.changed):
            lines[output.line - 1 : output.line - 1 + len(output.lines)] = printed
        if self.changed:
            self.path.write_text("".join(line + "\n" for line in lines))
