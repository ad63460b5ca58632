"""Kernels of bundles between guard pages: what guarded-run (test/guard) finds and counts, added up over many bundles.

Takes:    for each bundle, programs to run it with, and how much of it.
Gives:    the findings of a bundle, with the command that repeats them; a line of counts that scripts/test adds up again.
Does not: know why a kernel leaves its buffers.
"""

import os
import re
import shlex
import subprocess
from collections import Counter

NIGHTLY = "ASTRA_NIGHTLY" in os.environ


class Guarded:
    def __init__(self):
        self.counts, self.findings = Counter(), 0

    def check(self, program, bundle, *options):
        """Nothing, or what is wrong with the bundle."""
        line = [*map(str, program), *options, str(bundle)]
        done = subprocess.run(line, capture_output=True, text=True)
        summary = re.search(r"^guard pages: (.*), (\d+) findings$", done.stdout, re.M)
        if summary:
            self.findings += int(summary[2])
            for count in summary[1].split(", "):
                number, what = count.split(" ", 1)
                self.counts[what] += int(number)
        return f"{shlex.join(line)}\n{done.stdout}{done.stderr}" if done.returncode or not summary else None

    def show(self):
        print("guard pages: " + ", ".join(f"{n} {what}" for what, n in self.counts.items()) + f", {self.findings} findings")
