"""Ranks that are killed and stopped at random moments of a training, and long trainings under every engine.

The network is mlp.uop of checkpoints.py. By day 9 ranks are killed and 3 stopped; with ASTRA_NIGHTLY=1 it is 100 and 20, and chargpt is trained for 200 steps under every launcher and
engine at 1, 2, 4 and 8 ranks.
"""

import os
import random
import re
import signal
import subprocess
import time

import numpy as np
from checkpoints import INDEX, Checkpoints
from jobs import DATA, PLAIN, Failure, Job, Skipped, expect

TIMEOUT = 5  # seconds: how long a rank waits for one that does not move, if nothing else is asked for


def ranks_of(process):
    """The processes of a job's ranks, in their order."""
    try:
        return [int(p) for p in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()]
    except OSError:
        return []


def state_of(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


class Faults:
    def __init__(self, tests):
        self.t, self.c = tests, Checkpoints(tests)

    def disturbed(self, ranks, victim, moment, how):
        """A run whose rank `victim` gets a signal after so many seconds; None if it had ended, else the seconds until the others had, and what
        they said."""
        self.c.clean()
        result = self.t.scratch / "d.safetensors"
        result.unlink(missing_ok=True)
        command = [self.t.launch, "-n", ranks, "--grace", "30", *self.c.command("--checkpoint-every", 2, "--checkpoint", INDEX, "--continue", epochs=4)]
        process = subprocess.Popen([str(a) for a in command], env=PLAIN, cwd=self.t.scratch, stderr=subprocess.PIPE, text=True)
        begun = time.monotonic()
        pids = []
        while len(pids) < ranks and process.poll() is None:
            pids = ranks_of(process)
        while time.monotonic() - begun < moment and process.poll() is None:
            time.sleep(0.001)
        struck = len(pids) == ranks and state_of(pids[victim]) not in ("gone", "Z")
        if struck:
            os.kill(pids[victim], how)
        at = time.monotonic()
        others = [p for i, p in enumerate(pids) if i != victim]
        while any(state_of(p) not in ("gone", "Z") for p in others):
            if time.monotonic() - at > 60:
                process.kill()
                raise Failure(f"ranks still run a minute after rank {victim} was struck at {moment:.3f} s")
            time.sleep(0.002)
        seconds = time.monotonic() - at
        if struck and how == signal.SIGSTOP:
            os.kill(pids[victim], signal.SIGKILL)
        err = process.communicate(timeout=60)[1]
        ended = not struck or process.returncode == 0 or result.exists()  # the training was over, and the process nearly
        return None if ended else (seconds, err)

    def length(self, ranks):
        begun = time.monotonic()
        self.c.clean()
        self.c.run(ranks, "--checkpoint-every", 2, "--checkpoint", INDEX, epochs=4)
        self.wanted = self.t.hash("d.safetensors")
        return time.monotonic() - begun

    def struck(self, count, how, limit):
        """The others end with the status in time, each time; a job that goes on as other ranks gives what an undisturbed one does."""
        ranks, draw = 4, random.Random(count)
        whole, times, named = self.length(ranks), [], 0
        while len(times) < count:
            victim, moment = draw.randrange(ranks), draw.uniform(0.0, whole)
            found = self.disturbed(ranks, victim, moment, how)
            if found is None:
                continue
            seconds, err = found
            where = f"rank {victim} at {moment:.3f} s"
            if seconds > limit:
                raise Failure(f"{where}: the others ended after {seconds:.1f} s, and {len(times)} times in time: {err[-600:]!r}")
            said = len(re.findall(rf"rank {victim} (has died|has ended|has not moved|has failed)", err))
            named += said > 0
            if not said and not re.search(r"rank \d has (died|ended|not moved|failed)|ranks? .* not (come|joined|there)|did not come", err):
                raise Failure(f"{where}: nobody says so: {err[-400:]!r}")
            times.append(seconds)
            self.c.run(draw.choice((1, 2, 4)), "--checkpoint-every", 2, "--checkpoint", INDEX, "--continue", epochs=4)
            expect(f"{where}: weights", self.t.hash("d.safetensors"), self.wanted)
        times.sort()
        return f"{count} times; the others ended after {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s at most; {named} named the rank itself"

    # ---- long trainings

    # Ranks that wait for a processor: how long they may not move is another test's question.
    patient = {"ASTRA_RANKS_TIMEOUT": "600"}

    def long(self):
        """chargpt, 200 steps of 8 rows unless --steps says otherwise: one hash for all launchers, engines and numbers of ranks."""
        steps, rows = self.t.steps, 8
        draw = np.random.default_rng(5)
        text = np.cumsum(draw.integers(-3, 4, (steps * rows, 129)), 1) % 96  # characters that follow from those before
        np.save(self.t.scratch / "long_token.npy", text[:, :-1])
        np.save(self.t.scratch / "long_target.npy", text[:, 1:])
        bundle, found = self.t.bundle("data", *DATA), {}
        arguments = [bundle, "--data", "token=long_token.npy,target=long_target.npy", "--batch", rows, "--quiet", "--epochs", 1, "--seed", 3]
        for name, (command, env, _) in self.t.launchers().items():
            for ranks in (1, 2, 4, 8):
                begun = time.monotonic()
                job = Job(*command(ranks), self.t.bin / "astra-train", *arguments, "--out", "long.safetensors", env=env | self.patient, timeout=7200, folder=self.t.scratch)
                expect(f"exit code of {ranks} ranks under {name}", (job.code, job.err[-500:] if job.code else ""), (0, ""))
                found[name, ranks] = self.t.hash("long.safetensors")
                print(f"  {name}, {ranks} ranks: {found[name, ranks][:16]}, {time.monotonic() - begun:.0f} s", flush=True)
        for ranks in (1, 2, 4, 8):
            begun = time.monotonic()
            self.threads(bundle, ranks, steps, rows, found)
            print(f"  threads, {ranks} ranks: {found['threads', ranks][:16]}, {time.monotonic() - begun:.0f} s", flush=True)
        expect("different weights", len(set(found.values())), 1)
        return f"{len(found)} trainings, weights {next(iter(found.values()))[:16]}"

    def threads(self, bundle, ranks, steps, rows, found):
        """The same by ranks that are threads of a program in C++, which writes its weights by astra-train's rules."""
        for name in ("token", "target"):
            np.load(self.t.scratch / f"long_{name}.npy").astype(np.uint8 if name == "token" else np.int64).tofile(self.t.scratch / f"long_{name}.bin")
        program = next(self.t.bin.parent.glob("**/ranks-threads"))
        job = Job(program, bundle, ranks, rows, steps, 3, "long_token.bin", "long_target.bin", "long_states", timeout=7200, folder=self.t.scratch)
        expect(f"exit code of {ranks} threads", (job.code, job.err[-500:] if job.code else ""), (0, ""))
        file = (self.t.scratch / "long.safetensors").read_bytes()
        import json

        length = int.from_bytes(file[:8], "little")
        header, rest = json.loads(file[8 : 8 + length]), file[8 + length :]
        states = dict(line.split("\t") for line in (self.t.scratch / "long_states.txt").read_text().splitlines())
        data = (self.t.scratch / "long_states").read_bytes()
        out, at = bytearray(file[: 8 + length]) + bytearray(len(rest)), 0
        for name, size in states.items():
            if name in header:
                begin, end = header[name]["data_offsets"]
                expect(f"bytes of {name}", end - begin, int(size))
                out[8 + length + begin : 8 + length + end] = data[at : at + int(size)]
            at += int(size)
        import hashlib

        found["threads", ranks] = hashlib.sha256(bytes(out)).hexdigest()


def cases(tests):
    f = Faults(tests)
    night = "ASTRA_NIGHTLY" in os.environ
    patience = 1 if night else 2  # by day other tests run beside these
    yield "faults: ranks that are killed", lambda: f.struck(100 if night else 9, signal.SIGKILL, TIMEOUT * patience)
    yield "faults: ranks that stop", lambda: f.struck(20 if night else 3, signal.SIGSTOP, (TIMEOUT + 1) * patience)
    if night:
        yield "chargpt, long trainings", f.long
