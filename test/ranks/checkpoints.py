"""Checkpoints that ranks write at once: files with an index, at any number of ranks, whenever a rank is killed.

The network is mlp.uop, of a mesh of four shards, with optimizer states that are cut.
"""

import hashlib
import json
import os
import random
import re
import subprocess
import sys

import numpy as np
from jobs import ROOT, Job, Skipped, expect, require

MLP = ["--mesh=data=4", "--shard", "x=(data, -)", "--shard", "target=(data)", "--shard", "*.weight.mean=(data, -)", "--shard", "*.weight.squares=(data, -)"]
INDEX = "run.safetensors.index.json"


class Checkpoints:
    def __init__(self, tests):
        self.t, self.folder = tests, tests.scratch

    # A run of 12 steps, and what it gives.

    def bundle(self):
        path = self.folder / "mlp.astra"
        if not path.exists():
            job = Job(self.t.bin / "astra-compile", ROOT / "test/ranks/mlp.uop", "-o", path, "--quiet", "--train", "--loss=cross_entropy",
                      "--optimizer=adamw(lr=1e-2)", "--target=cpu:x86-64-v3", *MLP, timeout=300)  # fmt: skip
            expect("exit code", (job.code, job.err[-500:] if job.code else ""), (0, ""))
            x = np.random.default_rng(1).standard_normal((384, 16), np.float32)
            np.save(self.folder / "x.npy", x)
            np.save(self.folder / "t.npy", np.abs(x[:, :4]).argmax(1))
        return path

    def command(self, *options, out="d.safetensors", epochs=1):
        begin = () if "--resume" in options else ("--init",)
        return [self.t.bin / "astra-train", self.bundle(), "--data", "x=x.npy,target=t.npy", "--batch", 32, "--quiet", "--seed", 1, *begin,
                "--epochs", epochs, "--out", out, *options]  # fmt: skip

    def run(self, ranks, *options, launch=(), code=0, env=None, **more):
        job = Job(self.t.launch, "-n", ranks, *launch, *self.command(*options, **more), folder=self.folder, env=env)
        if code is not None:
            expect(f"exit code of {ranks} ranks", (job.code, job.err[-500:] if job.code != code else ""), (code, ""))
        return job

    def clean(self):
        for path in self.folder.glob("run*"):
            path.unlink()

    def undisturbed(self):
        if not hasattr(self, "wanted"):
            self.run(1, out="whole.safetensors")
            self.wanted = self.t.hash("whole.safetensors")
        return self.wanted

    def check(self):
        """The index is there with its files, whose bytes are those that their names say; gives the hash of all tensors by name."""
        index = json.loads((self.folder / INDEX).read_text())
        tensors = {}
        for name in sorted(set(index["weight_map"].values())):
            data = (self.folder / name).read_bytes()
            total = 0xCBF29CE484222325
            for byte in data:
                total = (total ^ byte) * 0x100000001B3 & (1 << 64) - 1
            require("a file's name", name, rf"^run-{total:016x}-\d{{5}}-of-\d{{5}}\.safetensors$")
            length = int.from_bytes(data[:8], "little")
            for tensor, row in json.loads(data[8 : 8 + length]).items():
                begin, end = row["data_offsets"]
                tensors[tensor] = (row["dtype"], row["shape"], data[8 + length + begin : 8 + length + end])
        expect("tensors", sorted(tensors), sorted(index["weight_map"]))
        return hashlib.sha256(repr(sorted(tensors.items())).encode()).hexdigest()

    def files(self):
        return {p.name: p.read_bytes() for p in self.folder.glob("run*") if not p.name.endswith(".lock")}

    # Tests.

    def alike(self):
        """Every file has the same bytes at any number of ranks; nothing else is left."""
        found = []
        for ranks in (4, 1, 2):
            self.clean()
            self.run(ranks, "--checkpoint-every", 5, "--checkpoint", INDEX)
            expect("weights", self.t.hash("d.safetensors"), self.undisturbed())
            self.check()
            found.append(self.files())
        expect("files", len(found[0]), 5)  # the index and four files: those of step 12
        expect("alike", all(f == found[0] for f in found), True)

    def one_file(self):
        """The same tensors as a checkpoint of one file has; read by the compiler and by astra_rt."""
        self.clean()
        self.run(2, "--checkpoint-every", 12, "--checkpoint", INDEX)
        self.run(4, "--checkpoint-every", 12, "--checkpoint", "run.safetensors")
        script = ("import sys, astra_rt._safetensors as s; a, b = (s.read(p) for p in sys.argv[1:]);"
                  "assert a.keys() == b.keys() and all(bytes(a[k]._array()) == bytes(b[k]._array()) for k in a); print(len(a))")  # fmt: skip
        build = self.t.bin.parent
        if (build / "python/astra_rt").exists():
            job = Job(sys.executable, "-c", script, self.folder / INDEX, self.folder / "run.safetensors", env={"PYTHONPATH": str(build / "python")})
            expect("exit code", (job.code, job.err[-500:]), (0, ""))
            expect("tensors", int(job.out), 13)
        self.run(4, out="run-out.safetensors.index.json")
        np.save(self.folder / "first.npy", np.load(self.folder / "x.npy")[:32])
        made = []
        for weights in ("run-out.safetensors.index.json", "d.safetensors"):
            for command in (["astra-compile", ROOT / "test/ranks/mlp.uop", "--weights", weights, "-o", "w.astra", "--quiet", "--target=cpu:x86-64-v3"],
                            ["astra-run", "w.astra", "--input", "x=first.npy", "--output", "y=y.npy"]):  # fmt: skip
                job = Job(self.t.bin / command[0], *command[1:], folder=self.folder)
                expect("exit code", (job.code, job.err[-500:] if job.code else ""), (0, ""))
            made.append(self.t.hash("y.npy"))
        expect("results of the same weights", made[0], made[1])

    def resumes(self):
        """What four ranks have saved is gone on with as 1, 2 and 4."""
        self.clean()
        self.run(4, "--checkpoint-every", 4, "--checkpoint", INDEX, env=self.crash(at=12, rank=2), code=137)
        self.check()
        kept = self.files()
        for ranks in (1, 2, 4):
            self.clean()
            for name, data in kept.items():
                (self.folder / name).write_bytes(data)
            self.run(ranks, "--resume", INDEX)
            expect(f"weights of {ranks} ranks", self.t.hash("d.safetensors"), self.undisturbed())

    def crash(self, at, rank, **more):
        return {"LD_PRELOAD": str(next(self.t.bin.parent.glob("**/libranks-crash.so"))), "CRASH_AT": str(at), "CRASH_RANK": str(rank), **more}

    def crashes(self, moments):
        """Killed at a call that writes files, at any of them: the former checkpoint, or the new one, is whole."""
        calls = {rank: self.calls(rank) for rank in (0, 1)}
        everything = [(rank, at) for rank in (0, 1) for at in range(1, calls[rank] + 1)]
        chosen = everything if moments is None else random.Random(1).sample(everything, moments)
        had = 0
        for number, (rank, at) in enumerate(chosen):
            self.clean()
            job = self.run(2, "--checkpoint-every", 4, "--checkpoint", INDEX, "--continue", env=self.crash(at, rank), code=None)
            expect(f"call {at} of rank {rank}: exit code", job.code, 137)
            if (self.folder / INDEX).exists():
                self.check()
                had += 1
            self.run((1, 2, 4)[number % 3], "--checkpoint-every", 4, "--checkpoint", INDEX, "--continue")
            expect(f"call {at} of rank {rank}: weights", self.t.hash("d.safetensors"), self.undisturbed())
            expect(f"call {at} of rank {rank}: what is left", len(self.files()), 5)
        expect("that some had a checkpoint", had > len(chosen) // 4, True)
        return f"{len(chosen)} moments, {had} of them with a checkpoint"

    def calls(self, rank):
        """How many calls of a whole run write files: the greatest number at which it is still killed."""
        low, high = 1, 1 << 12
        while low < high:
            middle = (low + high + 1) // 2
            self.clean()
            killed = self.run(2, "--checkpoint-every", 4, "--checkpoint", INDEX, env=self.crash(middle, rank), code=None).code == 137
            low, high = (middle, high) if killed else (low, middle - 1)
        return low

    def restarts(self):
        """astra-launch starts the job again, as fewer ranks, which go on."""
        self.clean()
        env = self.crash(at=20, rank=1, CRASH_MARK=str(self.folder / "run-mark"))
        job = self.run(4, "--checkpoint-every", 2, "--checkpoint", INDEX, "--continue", launch=["--restart", 2, "--restart-ranks", 2], env=env)
        require("what is said", job.err, "rank 1 was ended by signal 9.*\n(.*\n)*.*starts again as 2 ranks")
        expect("how often", job.err.count("starts again"), 1)
        expect("weights", self.t.hash("d.safetensors"), self.undisturbed())

    def damaged(self):
        """Sentences about an index and its files."""
        self.clean()
        self.run(2, "--checkpoint-every", 4, "--checkpoint", INDEX)
        kept, index = self.files(), self.folder / INDEX
        text = kept[INDEX].decode()
        first = sorted(name for name in kept if name != INDEX)[0]
        tensor = next(n for n, f in json.loads(text)["weight_map"].items() if f == first)

        def refused(sentence):
            job = self.run(2, "--resume", INDEX, code=None)
            expect("refused", job.code != 0, True)
            require("the sentence", job.err, sentence)

        data = bytearray(kept[first])
        data[-1] ^= 1
        (self.folder / first).write_bytes(data)
        refused(rf"{re.escape(first)}: its bytes are not those that it was written with: their checksum is [0-9a-f]{{16}}")
        (self.folder / first).write_bytes(kept[first][:-4])
        refused(f"{re.escape(first)}: holds \\d+ bytes of data; its tensors need")
        (self.folder / first).unlink()
        refused(f"{re.escape(first)}: No such file or directory")
        (self.folder / first).write_bytes(kept[first])
        for change, sentence in (((f'"{tensor}": "{first}"', f'"{tensor}": "../x"'), f"index.json: the index of .safetensors files: '{tensor}' is in no file of the folder"),
                                 ((f'"{tensor}"', '"other"'), f"index.json: (says that 'other' is in {first}, which does not have it|does not name)"),
                                 (('"weight_map"', '"weights"'), "has a key 'weights', which is not known"),
                                 (("}\n}", "}"), "expected '}' at its end")):  # fmt: skip
            index.write_text(text.replace(*change))
            refused(sentence)
        job = Job(*self.command("--continue"), folder=self.folder)
        expect("exit code", job.code, 2)
        require("the sentence", job.err, "--continue goes on from checkpoints, of which there are none: give --checkpoint-every N")

    def no_room(self):
        """A disk that is full while the second checkpoint is written: the first one stays."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            raise Skipped("no name spaces here")
        self.clean()
        place = self.folder / "small"
        place.mkdir(exist_ok=True)
        command = [str(c) for c in self.command("--checkpoint-every", 4, "--checkpoint", f"small/{INDEX}")]
        script = f'mount -t tmpfs -o size=$0 none {place} && {{ {self.t.launch} -n 2 --quiet "$@"; code=$?; cp {place}/* {self.folder}; exit $code; }}'
        for room in range(24, 4000, 8):
            job = Job("unshare", "-rm", "sh", "-c", script, f"{room}k", *command, folder=self.folder)
            if (self.folder / INDEX).exists():
                break
        expect("refused", job.code != 0, True)
        require("the sentence", job.err, "No space left on device")
        self.check()
        self.run(4, "--resume", INDEX)
        expect("weights", self.t.hash("d.safetensors"), self.undisturbed())


def cases(tests):
    c = Checkpoints(tests)
    night = "ASTRA_NIGHTLY" in os.environ
    yield "checkpoints: the same files at any number of ranks", c.alike
    yield "checkpoints: what one process reads", c.one_file
    yield "checkpoints: four ranks save, others go on", c.resumes
    yield "checkpoints: killed while writing", lambda: c.crashes(None if night else 12)
    yield "checkpoints: started again", c.restarts
    yield "checkpoints: damaged", c.damaged
    yield "checkpoints: no room", c.no_room
