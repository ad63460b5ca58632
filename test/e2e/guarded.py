"""Kernels of bundles between guard pages: what guarded-run (test/guard) finds and counts, added up over many bundles.

Takes:    for each bundle, programs to run it with, and how much of it.
Gives:    the findings of a bundle, with the command that repeats them; a line of counts that scripts/test adds up again.
          A bundle that has passed under qemu is not run again (test/common/verdicts.py): its counts are those of then.
Does not: know why a kernel leaves its buffers.
"""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "common"))
import verdicts  # noqa: E402

NIGHTLY = "ASTRA_NIGHTLY" in os.environ


class Guarded:
    def __init__(self, known=None):
        self.counts, self.findings, self.known = Counter(), 0, known or verdicts.Verdicts()

    def check(self, program, bundle, *options):
        """Nothing, or what is wrong with the bundle."""
        line = [*map(str, program), *options, str(bundle)]
        name = line[0] == "qemu-aarch64" and verdicts.key(line)
        note = self.known.find(name) if name else None
        done = subprocess.run(line, capture_output=True, text=True) if note is None else subprocess.CompletedProcess(line, 0, note, "")
        summary = re.search(r"^guard pages: (.*), (\d+) findings$", done.stdout, re.M)
        if summary:
            self.findings += int(summary[2])
            for count in summary[1].split(", "):
                number, what = count.split(" ", 1)
                self.counts[what] += int(number)
        if name and note is None and summary and not done.returncode:
            self.known.passed(name, summary[0])
        return f"{shlex.join(line)}\n{done.stdout}{done.stderr}" if done.returncode or not summary else None

    def show(self):
        print("guard pages: " + ", ".join(f"{n} {what}" for what, n in self.counts.items()) + f", {self.findings} findings")
