"""Processes that answer over a pipe, of which one runs at a time.

Gives:    Process (a line out, a line back), PeerProcess, OursProcess, Limits.
Keeps:    a process is stopped by a signal while it is not asked, so no thread of it that spins or sleeps lightly takes
          time from another; its turn begins with a call that is not timed, because its data has left the caches.
          With one thread all run on one CPU.
Does not: choose what is measured.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from machine import level
from peers import CORES

LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """What goes into the table in place of a number."""


def cpus(threads):
    every = sorted(os.sched_getaffinity(0))
    return every[-threads:]


class Process:
    def __init__(self, words, threads, log, environment=None):
        place = set(cpus(threads))
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(environment or {})},
            preexec_fn=lambda: self.settle(place), start_new_session=True,
        )  # fmt: skip
        self.buffer = b""

    @staticmethod
    def settle(place):
        """In the child: where it runs, and that it ends when we do, stopped or not."""
        os.sched_setaffinity(0, place)
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def say(self, line):
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed("its process ended") from None

    def hear(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.kill()
                raise Failed(f"no answer in {seconds} s")
            found = os.read(self.process.stdout.fileno(), 1 << 16)
            if not found:
                raise Failed(f"its process ended with {self.process.wait()}")
            self.buffer += found
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, line, seconds=60):
        self.say(line)
        answer = self.hear(seconds)
        self.stop()
        return answer

    def resident(self, what="VmRSS"):
        """Bytes in memory now; with VmHWM the most since `mark`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(what))

    def count(self):
        """The peak counts from here."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def mark(self):
        """What is in memory before the work begins."""
        self.before, self.most = self.resident(), 0
        self.count()

    def taken(self):
        """The most bytes that it had in memory beyond the mark."""
        return max(self.most, self.resident("VmHWM") - self.before)

    @contextlib.contextmanager
    def aside(self):
        """What is done meanwhile does not count."""
        self.most = self.taken()
        yield
        self.count()

    def kill(self):
        """The whole session of it: compilers that it started too."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Limits(Process):
    def measure(self):
        return dict(zip(("fma", "read", "copy"), map(float, self.ask("").split())))


class Contestant:
    """What a round needs of ours and of a peer."""

    def seconds(self, times, parts=1):
        """Of one call, the median of some parts of so many. With one thread, CPU time where it is less than wall time: another process had the core
        then."""
        return statistics.median((min(wall, cpu) if self.threads == 1 and cpu > 0 else wall) / times for wall, cpu in self.run(times, parts))


class PeerProcess(Contestant):
    def __init__(self, name, peer, threads, log):
        self.name, self.peer, self.threads, self.log, self.process = name, peer, threads, log, None
        self.built = {}  # what was made ahead of time, by the path of the model

    def start(self):
        words = {"$THREADS": str(self.threads), "$CORE": CORES[level()]}
        environment = {key: words.get(value, value) for key, value in self.peer.environment.items()}
        self.process = Process([sys.executable, HERE / "worker.py", self.name, self.threads], self.threads, self.log, environment)
        self.process.hear(180)

    def request(self, seconds, **request):
        try:
            answer = json.loads(self.process.ask(json.dumps(request), seconds))
        except Failed:
            self.close()
            raise
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def find(self, row, seconds):
        """A process that holds the row's values."""
        if not self.process:
            try:
                self.start()
            except Failed as failed:
                self.close()
                raise Failed(f"it does not start: {failed} (see the log)") from None
        self.request(seconds, do="find", family=row.family, row=row.name)

    def load(self, row, path, outputs, seconds):
        """The results of the first call, and the seconds until they were there. What it makes ahead of time is made by another process."""
        self.find(row, seconds)
        path = str(path)
        if path not in self.built:
            made = self.request(seconds, do="build", path=path)["path"]
            self.built[path] = made or path
            if made:
                self.close()
                self.find(row, seconds)
        self.request(seconds, do="prepare")
        self.process.mark()
        took = self.request(seconds, do="load", path=self.built[path])["seconds"]
        with self.process.aside():
            self.request(seconds, do="outputs", file=str(outputs))
        with np.load(outputs) as found:
            return [found[name] for name in found.files], took

    def run(self, times, parts):
        return self.request(120, do="run", times=times, parts=parts)["took"]

    def memory(self):
        return self.process.taken()

    def close(self):
        if self.process:
            self.process.kill()
        self.process = None


DTYPES = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9, "float16": 10, "float32": 12,
          "float64": 13}  # fmt: skip
NAMES = {number: name for name, number in DTYPES.items()}


class OursProcess(Contestant):
    """bench/ours.c: our runtime in a C program."""

    def __init__(self, program, bundle, entry, threads, inputs, folder, log):
        self.threads, self.folder = threads, folder
        self.process = Process([program, bundle, entry, threads], threads, log)
        for number, (name, value) in enumerate(inputs.items()):
            path = folder / f"in{number}.raw"
            path.write_bytes(np.ascontiguousarray(value).tobytes())
            self.ask(f"input {name} {DTYPES[value.dtype.name]} {value.nbytes} {value.ndim} {' '.join(map(str, value.shape))} {path}")
            path.unlink()

    def ask(self, line):
        kind, _, rest = self.process.ask(line, 120).partition(" ")
        if kind != "ok":
            raise Failed(rest)
        return rest.split()

    def open(self):
        """Seconds from the start of the runtime to the first result."""
        self.process.mark()
        return float(self.ask("open")[0])

    def output(self, name):
        path = self.folder / "out.raw"
        dtype, *shape = map(int, self.ask(f"output {name} {path}"))
        return np.fromfile(path, NAMES[dtype]).reshape(shape)

    def run(self, times, parts):
        took = list(map(float, self.ask(f"run {times} {parts}")))
        return list(zip(took[::2], took[1::2]))

    def memory(self):
        return self.process.taken()

    def kernels(self):
        """(name, seconds, flops, bytes) of each launch of one call."""
        self.process.say("trace")
        found = []
        while (line := self.process.hear(120).split())[0] == "kernel":
            found.append((line[1], float(line[2]), int(line[3]), int(line[4])))
        self.process.stop()
        return found

    def close(self):
        self.process.kill()
