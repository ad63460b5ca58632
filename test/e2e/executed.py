"""How many kernels of GPUs the emulator has executed: what astra-run --emulate says, added up over many runs.

Takes:    for each run, a name of the bundle and what astra-run printed.
Gives:    a line for each GPU: "executed: WHAT on GPU: N kernels, N launches, N threads", which scripts/test adds up again.
Keeps:    a bundle's kernels are counted once: the most that one of its runs launched.
"""

import re
from collections import defaultdict

SAID = re.compile(r"^emu:(\S+): the host build of GPU kernels, (\d+) kernels, (\d+) launches, (\d+) threads", re.M)


class Executed:
    def __init__(self):
        self.kernels = defaultdict(int)  # by GPU and bundle
        self.launches, self.threads = defaultdict(int), defaultdict(int)

    def add(self, bundle, said):
        for gpu, kernels, launches, threads in SAID.findall(said):
            self.kernels[gpu, bundle] = max(self.kernels[gpu, bundle], int(kernels))
            self.launches[gpu] += int(launches)
            self.threads[gpu] += int(threads)

    def show(self, what):
        for gpu in sorted(self.launches):
            kernels = sum(count for (where, _), count in self.kernels.items() if where == gpu)
            print(f"executed: {what} on {gpu}: {kernels} kernels, {self.launches[gpu]} launches, {self.threads[gpu]} threads")
