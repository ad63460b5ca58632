"""Jobs of several ranks: launchers, engines, failures, training.

Takes:    build/bin, libastra_ranks, and the MPI libraries that this machine has: Open MPI and MPICH of Debian, one with the standard
          ABI in build/venv.
Gives:    a line per case; "N passed, N failed, N skipped". Exit code 1 if one fails.
Checks:   under every launcher and engine the ranks meet; a launcher of another library, a rank that dies, leaves or stops is
          noticed in time and named; astra-launch ends what is left; no engine calculates. Of checkpoints checkpoints.py, of ranks
          that are killed and stopped at random moments, and of long trainings, faults.py; ASTRA_NIGHTLY=1: all of them.
Keeps:    a job that hangs is ended after a minute and fails.

    build/venv/bin/python test/ranks/run.py [--build build] [--only REGEX] [--steps N]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import checkpoints
import faults
import numpy as np
from jobs import DATA, LAUNCH, PLAIN, ROOT, TENSOR, ZERO, ZERO3, Failure, Job, Machine, Skipped, expect, require

# Of GPUs, whose kernels are run thread by thread here: gradients are scattered, weights gathered; biases are summed whole.
GPU = ["--mesh=data=4", "--shard", "x=(data, -)", "--shard", "target=(data, -)", "--shard", "w.*=(data, -)"]
NET = """module @net {
  dim n in 4..64
  param @w : f32[8, 6] = splat 0.25
  param @b : f32[6] = splat 0.5
  entry @main(%x : f32[n, 8]) -> (%y : f32[n, 6]) {
    %p = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %r = reshape @b [1, 6]
    %e = expand %r [n, 6]
    %y = add %p, %e
  }
}
"""
# A state that is whole, rows that are cut.
LAYER = """module @layer {
  mesh @mesh { data 4 }
  dim n in 4..64
  state @s : f32[8] = splat 1.0
  entry @main(%x : f32[n, 8] shard (data, -)) -> (%y : f32[8]) {
    %r = reshape @s [1, 8]
    %e = expand %r [n, 8]
    %p = mul %x, %e
    %y = reduce %p axes=[0]
  }
}
"""

# What the engine calls of NCCL and RCCL: nothing that takes a ncclRedOp_t, and no collective of theirs.
NCCL = {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort",
        "ncclCommGetAsyncError", "ncclGetErrorString", "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv"}  # fmt: skip


class Tests(Machine):
    def meets(self, name, ranks, through=None, called=None):
        launcher = self.launchers().get(name)
        if not launcher:
            raise Skipped(f"{name} is not here")
        command, env, engine = launcher
        if through:
            env, engine = {"ASTRA_ENGINE": through}, called or through
        job = Job(*command(ranks), self.worker, env=env)
        expect("exit code", (job.code, job.err[-300:] if job.code else ""), (0, ""))
        lines = sorted(line for line in job.out.splitlines() if line.startswith("rank"))
        expect("lines", len(lines), ranks)
        for r, line in enumerate(lines):
            require("what a rank says", line, rf"^rank {r} of {ranks}, {engine}.*: {1000 * ranks}$")

    def alone(self):
        job = Job(self.worker)
        expect("what it says", (job.code, job.out), (0, "rank 0 of 1, alone: 1000\n"))

    def torchrun(self):
        """Its variables alone: torchrun itself needs PyTorch."""
        processes = []
        for r in range(2):
            env = PLAIN | {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": str(20000 + os.getpid() % 20000)}
            processes.append(subprocess.Popen([self.worker], env=env, stdout=subprocess.PIPE, text=True))
        for r, p in enumerate(processes):
            require("what a rank says", p.communicate(timeout=60)[0], rf"^rank {r} of 2, shm: 2000")

    def slurm(self, ranks, tasks=None, engine="shm", **more):
        """srun's variables alone: there is no Slurm here."""
        processes, key = [], {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": str(ranks)}
        for r in range(ranks):
            env = PLAIN | key | {"SLURM_PROCID": str(r), "SLURM_NTASKS": str(ranks), "SLURM_TASKS_PER_NODE": tasks or str(ranks)} | more
            processes.append(subprocess.Popen([self.worker], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = [p.communicate(timeout=60) for p in processes]
        for r, (out, err) in enumerate(said):
            if tasks:
                require("the sentence", err, "srun started ranks on several machines, which share no memory: use an engine of MPI")
            else:
                require("what a rank says", out, rf"^rank {r} of {ranks}, {engine}: {1000 * ranks}$")

    def within_slurm(self):
        """astra-launch in a task of srun: its own ranks count, not those of the task."""
        env = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}
        job = Job(self.launch, "-n", 3, self.worker, env=env)
        expect("exit code", (job.code, job.err), (0, ""))
        expect("ranks", sorted(line.split(",")[0] for line in job.out.splitlines()), [f"rank {r} of 3" for r in range(3)])

    def another_library(self, launcher, library, sees):
        rows = self.launchers()
        if launcher not in rows or not Path(f"/usr/lib/x86_64-linux-gnu/{library}").exists():
            raise Skipped("one of both is not here")
        job = Job(*rows[launcher][0](2), self.worker, env={"ASTRA_ENGINE": f"mpi:{library}"})
        expect("refused", job.code != 0, True)
        require("the sentence", job.err, rf"started 2 ranks, and mpi \({sees}.*\) sees 1: the launcher must be of the same library")
        if job.seconds > 10:
            raise Failure(f"took {job.seconds:.1f} s")

    def wrong(self, env, sentence):
        job = Job(self.worker, env=env)
        expect("refused", job.code != 0, True)
        require("the sentence", job.err, sentence)
        if job.seconds > 3:
            raise Failure(f"took {job.seconds:.1f} s")

    def misfits(self, sentence, *ranks, first=None):
        """Ranks that were told (number, of how many): all of them say what does not fit, within 2 s. `first` waits until the others begin."""
        key, begun, processes = f"misfit-{os.getpid()}-{time.monotonic_ns()}", time.monotonic(), []
        for rank, of in [first, *ranks] if first else ranks:
            env = PLAIN | {"ASTRA_RANK": str(rank), "ASTRA_RANKS": str(of), "ASTRA_JOB": key}
            processes.append(subprocess.Popen([self.worker], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            if len(processes) == 1 and first:
                time.sleep(0.3)
                begun = time.monotonic()
        said = [p.communicate(timeout=60) for p in processes]
        seconds = time.monotonic() - begun
        for p, (_, err) in zip(processes, said):
            require("what a rank says", err, f"^ASTRA_INVALID_ARGUMENT: {sentence}$")
            expect("exit code", p.returncode, 1)
        if seconds > 2:
            raise Failure(f"took {seconds:.1f} s")
        expect("memory that is left", [f for f in os.listdir("/dev/shm") if key in f], [])
        return seconds

    def other_world(self):
        sentence = "rank 1 is of 2 ranks, and rank 0 of 3"
        self.misfits(sentence, (1, 2), (0, 3))
        self.misfits(sentence, (1, 2), (2, 3), first=(0, 3))
        self.misfits("rank 2 is of 3 ranks, and rank 0 of 2", (2, 3), first=(0, 2))

    def same_rank(self):
        for rank in (0, 1):
            sentence = f"two processes are rank {rank}, one of 3 ranks and one of 3: each needs a number of its own"
            self.misfits(sentence, (rank, 3), (rank, 3), *[(0, 3)] * rank)  # at once
            self.misfits(sentence, (rank, 3), (rank, 3), first=(0, 3)) if rank else self.misfits(sentence, (0, 3), first=(0, 3))
        self.misfits("two processes are rank 0, one of 3 ranks and one of 2: each needs a number of its own", (0, 2), first=(0, 3))

    def after_a_dead_job(self):
        """Shared memory that a killed rank 0 left behind is no rank 0."""
        key = f"dead-{os.getpid()}"
        env = [PLAIN | {"ASTRA_RANK": str(r), "ASTRA_RANKS": "2", "ASTRA_JOB": key} for r in range(2)]
        dead = subprocess.Popen([self.worker], env=env[0])
        while not any(key in f for f in os.listdir("/dev/shm")):
            time.sleep(0.01)
        dead.kill()
        dead.wait()
        processes = [subprocess.Popen([self.worker], env=e, stdout=subprocess.PIPE, text=True) for e in env]
        for r, p in enumerate(processes):
            require("what a rank says", p.communicate(timeout=60)[0], rf"^rank {r} of 2, shm: 2000")

    def lost(self, how, code, sentence):
        job = Job(self.launch, "-n", 3, "--grace", 5, self.worker, how)
        expect("exit code", job.code, code)
        expect("ranks that say so", len(re.findall(sentence, job.err)), 2)
        if job.seconds > 30:  # of them 5 of --grace and 2 behind it where a rank is stopped
            raise Failure(f"took {job.seconds:.1f} s")

    def no_shared_memory(self):
        """A file system of a few pages in place of /dev/shm."""
        script = f"mount -t tmpfs -o size=64k none /dev/shm && exec {self.launch} -n 3 {self.worker}"
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            raise Skipped("no name spaces here")
        job = Job("unshare", "-rm", "sh", "-c", script)
        require("the sentence", job.err, r"no shared memory for 3 ranks, which need \d+ KiB of it: No space left on device")

    def no_arithmetic(self):
        """Names that an engine could look up, and what it does look up."""
        names = subprocess.run(["strings", "-n", "4", self.library], capture_output=True, text=True, check=True).stdout.split("\n")
        used = sorted({n for n in names if re.fullmatch(r"(MPI|PMPI|p?nccl)_?[A-Z]\w+", n)})
        allowed = {"MPI_Init_thread", "MPI_Initialized", "MPI_Finalize", "MPI_Get_library_version", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_dup",
                   "MPI_Comm_set_errhandler", "MPICH", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "MPIR_Process_lock", "MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Error_string", "MPI_Abi_get_version"} | NCCL  # fmt: skip
        expect("functions of engines", set(used) - allowed, set())
        expect("that it looks up some", "MPI_Isend" in used and set(used) >= NCCL, True)

    # NCCL and RCCL: a stand-in of the library, and one of the driver whose kernels are host builds.

    def real_nccl(self):
        """Its library has every name that the engine looks up; no GPU is needed for that."""
        found = next((f for place in ("/usr/local/cuda*/lib*", "/usr/lib/x86_64-linux-gnu") for f in sorted(Path("/").glob(place.lstrip("/") + "/libnccl.so.2"))), None)
        if not found:
            raise Skipped("there is no libnccl.so.2")
        job = Job(self.worker, env={"ASTRA_ENGINE": f"nccl:{found}"})
        expect("exit code", (job.code, job.err), (0, ""))
        require("what it says", job.out, r"^rank 0 of 1, nccl 2\.\d+\.\d+, alone: 1000$")

    def other_nccl(self, source, sentence):
        """A library that a compiler makes of a line of C."""
        library = self.scratch / "libother.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
        self.wrong({"ASTRA_ENGINE": f"nccl:{library}"}, sentence)

    def gpu_bundle(self):
        path = self.scratch / "gpu.astra"
        if not path.exists():
            random = np.random.default_rng(3)
            np.save(self.scratch / "rows.npy", random.standard_normal((16, 8)).astype(np.float32))
            np.save(self.scratch / "aims.npy", random.standard_normal((16, 6)).astype(np.float32))
            (self.scratch / "net.uop").write_text(NET)
            targets = ",".join(["cpu:x86-64-v3", *(t for gpu in ("cuda:sm_90", "hip:gfx942") for t in (gpu, "emu:" + gpu))])
            job = Job(self.bin / "astra-compile", self.scratch / "net.uop", "-o", path, "-j", 2, "--quiet", "--train", "--loss=mse", "--optimizer=adam",
                      f"--target={targets}", "--ptxas=none", *GPU, timeout=400)  # fmt: skip
            expect("exit code", (job.code, job.err[-500:] if job.code else ""), (0, ""))
        return path

    def train_gpu(self, ranks, engine, device, *options, env=None, launch=()):
        bundle = self.gpu_bundle()
        more = ["--device", device, "--driver", self.driver, "--allow-ptx"] if device != "cpu" else []
        env = {"ASTRA_STAND_IN_BUNDLE": str(bundle), "ASTRA_STAND_IN_DEVICES": "4", **({"ASTRA_ENGINE": engine} if engine else {}), **(env or {})}
        return Job(self.launch, "-n", ranks, *launch, self.bin / "astra-train", bundle, "--data", "x=rows.npy,target=aims.npy", "--batch", 8, "--quiet",
                   "--epochs", 1, "--out", "g.safetensors", *more, *options, env=env, timeout=300, folder=self.scratch)  # fmt: skip

    def on_gpus(self):
        """The weights of a CPU, by kernels of GPUs that fold and messages that go from one GPU's memory to another's."""
        job = self.train_gpu(1, None, "cpu")
        expect("exit code on a CPU", (job.code, job.err), (0, ""))
        wanted = self.hash("g.safetensors")
        for engine, device, ranks in (("nccl", "cuda", 1), ("nccl", "cuda", 2), ("nccl", "cuda", 4), ("rccl", "hip", 2), (None, "cuda", 2)):
            (self.scratch / "g.safetensors").unlink()
            log = self.scratch / f"{engine}-{ranks}.log"
            job = self.train_gpu(ranks, engine and f"{engine}:{self.nccl}", device, env={"ASTRA_STAND_IN_NCCL_LOG": str(log)})
            what = f"{ranks} ranks on {device} by {engine}"
            expect(f"exit code of {what}", (job.code, job.err), (0, ""))
            expect(f"weights of {what}", self.hash("g.safetensors"), wanted)
            if not engine:
                continue
            calls = [line.split() for line in log.read_text().splitlines()]
            for r in range(ranks):
                own = [(name, size, peer) for rank, name, size, peer in calls if rank == str(r)]
                names = [name for name, _, _ in own]
                expect(f"communicators of rank {r}", (names.count("ncclCommInitRankConfig"), names.count("ncclCommDestroy"), names.count("ncclCommAbort")), (1, 1, 0))
                expect("that bytes move", ("ncclSend" in names, "ncclRecv" in names), (ranks > 1,) * 2)
            expect("what is called", {name for _, name, _, _ in calls} - NCCL - {"transfer"}, set())

    def nccl_fault(self, code, sentence, ranks=2, launch=("--quiet",), **env):
        log = self.scratch / "fault.log"
        log.unlink(missing_ok=True)
        begun = time.monotonic()
        job = self.train_gpu(ranks, f"nccl:{self.nccl}", "cuda", launch=launch, env={"ASTRA_STAND_IN_NCCL_LOG": str(log), **env})
        expect("exit code", job.code, code)
        require("the sentence", job.err, sentence)
        require("what is called", log.read_text(), "^0 ncclCommAbort|1 ncclCommAbort")
        return time.monotonic() - begun

    def other_gpu(self):
        job = self.train_gpu(1, f"nccl:{self.nccl}", "hip")
        expect("exit code", job.code, 1)
        require("the sentence", job.err, "NCCL is for GPUs of NVIDIA, and the device is hip:0: choose the engine rccl")

    def killed_on_gpus(self, quiet):
        """Rank 1 is killed while it trains; rank 0 says so, aborts its communicator and ends."""
        log = self.scratch / "killed.log"
        log.unlink(missing_ok=True)
        bundle = self.gpu_bundle()
        env = PLAIN | {"ASTRA_STAND_IN_BUNDLE": str(bundle), "ASTRA_STAND_IN_DEVICES": "4", "ASTRA_ENGINE": f"nccl:{self.nccl}", "ASTRA_STAND_IN_NCCL_LOG": str(log)}
        env |= {"ASTRA_STAND_IN_NCCL_QUIET": "1"} if quiet else {}
        process = subprocess.Popen([self.launch, "-n", "2", "--grace", "20", self.bin / "astra-train", bundle, "--data", "x=rows.npy,target=aims.npy", "--batch", "8",
                                    "--quiet", "--epochs", "1000", "--out", "k.safetensors", "--device", "cuda", "--driver", self.driver, "--allow-ptx"],
                                   env=env, cwd=self.scratch, stderr=subprocess.PIPE, text=True)  # fmt: skip
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and not (log.exists() and log.read_text().count("1 ncclGroupEnd") > 3):
            time.sleep(0.01)
        os.kill(int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[1]), 9)
        begun = time.monotonic()
        err = process.communicate(timeout=60)[1]
        expect("exit code", process.returncode, 137)
        require("the sentence", err, r"rank 1 has died|remote process exited|a transfer with rank 1 has not ended for 5000 ms")
        require("what is called", log.read_text(), r"(?m)^0 ncclCommAbort")
        if time.monotonic() - begun > 9:
            raise Failure(f"rank 0 went on for {time.monotonic() - begun:.1f} s")

    # Trainings of chargpt, on 16 rows of 128 characters.

    def trains_alike(self, name, options, jobs):
        """Weights and checkpoint of all jobs have the bytes of one process."""
        bundle = self.bundle(name, *options)
        found = {}
        for launcher, ranks in jobs:
            if launcher in self.launchers():
                weights = self.train(launcher, ranks, bundle, "w.safetensors", "--epochs", 1, "--checkpoint-every", 1)
                found[launcher, ranks] = weights, self.hash("w.ckpt.safetensors")
        expect("different bytes", len(set(found.values())), 1)
        expect("jobs", len(found) > 2, True)

    def goes_on(self):
        """A rank is killed after a checkpoint; what is left is gone on with as other numbers of ranks."""
        bundle = self.bundle("data", *DATA)
        whole = self.train("astra-launch", 1, bundle, "whole.safetensors", "--epochs", 2)
        checkpoint = self.scratch / "part.ckpt.safetensors"
        process = subprocess.Popen([self.launch, "-n", "4", "--grace", "10", self.bin / "astra-train", bundle, "--data",
                                    "token=token.npy,target=target.npy", "--batch", "8", "--quiet", "--out", "part.safetensors", "--epochs", "2",
                                    "--checkpoint-every", "1"], env=PLAIN, cwd=self.scratch, stderr=subprocess.PIPE, text=True)  # fmt: skip
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.002)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[2]), 9)
        begun = time.monotonic()
        err = process.communicate(timeout=60)[1]
        expect("exit code", process.returncode, 137)
        expect("ranks that say so", len(re.findall("rank 2 has died", err)) >= 1, True)
        if time.monotonic() - begun > 9:
            raise Failure(f"the others went on for {time.monotonic() - begun:.1f} s")
        shutil.copy(checkpoint, self.scratch / "kept.safetensors")
        for ranks in (1, 2, 8):
            part = self.train("astra-launch", ranks, bundle, "part.safetensors", "--epochs", 2, "--resume", "kept.safetensors")
            expect(f"weights of {ranks} ranks", part, whole)

    def wrong_numbers(self):
        bundle = self.bundle("data", *DATA)
        train = [self.bin / "astra-train", bundle, "--data", "token=token.npy,target=target.npy", "--epochs", 1, "--out", "no.safetensors", "--quiet"]
        job = Job(self.launch, "-n", 3, "--quiet", *train, "--batch", 8, folder=self.scratch)
        require("the sentence", job.err, "3 ranks do not divide the 8 shards of the bundle's mesh data=8")
        job = Job(*train, "--batch", 12, "--drop-last", folder=self.scratch)
        require("the sentence", job.err, "axis 0 of 'token' has 12 elements, which the mesh .data=8. cannot cut into 8 equal parts")
        other = self.bundle("tensor", *TENSOR)
        script = f'[ "$ASTRA_RANK" = 0 ] && bundle={bundle} || bundle={other}; exec "$0" $bundle "$@"'
        rest = ["--data", "token=token.npy,target=target.npy", "--epochs", 1, "--out", "no.safetensors", "--quiet", "--batch", 8]
        job = Job(self.launch, "-n", 2, "--quiet", "sh", "-c", script, self.bin / "astra-train", *rest, folder=self.scratch)
        require("the sentence", job.err, "rank [01] has another bundle than rank [01]")
        expect("nothing is written", (self.scratch / "no.safetensors").exists(), False)

    def differing(self, program, before, after, sentence, ranks=2):
        """The last rank is given something else: all say what, and nothing is written."""
        script = f'[ "$ASTRA_RANK" = {ranks - 1} ] && set -- "$0" {after} || set -- "$0" {before}; exec "$@"'
        job = Job(self.launch, "-n", ranks, "--quiet", "sh", "-c", script, program, folder=self.scratch)
        expect(f"exit code with {after}", job.code, 1)
        expect(f"ranks that say {sentence!r} in {job.err!r}", job.err.count(sentence), ranks)
        expect("nothing is written", (self.scratch / "no.safetensors").exists(), False)

    def other_training(self):
        """Options and data of astra-train that differ between ranks."""
        bundle = self.bundle("data", *DATA)
        random = np.random.default_rng(5)
        for name, rows in (("others", 16), ("more", 24)):
            np.save(self.scratch / f"{name}.npy", random.integers(0, 96, (rows, 128)))
        self.train("astra-launch", 1, bundle, "w.safetensors", "--epochs", 1, "--checkpoint-every", 1)
        self.train("astra-launch", 1, bundle, "v.safetensors", "--epochs", 1, "--seed", 9, "--checkpoint-every", 1)
        usual = {"--data": "token=token.npy,target=target.npy", "--epochs": "1", "--batch": "8", "--seed": "3", "--out": "no.safetensors"}
        for other, what in (
            ({"--seed": "4"}, "--seed"),
            ({"--batch": "16"}, "--batch"),
            ({"--epochs": "2"}, "--epochs"),
            ({"--drop-last": ""}, "--drop-last"),
            ({"--init": ""}, "--init"),
            ({"--weights": "w.safetensors"}, "--weights"),
            ({"--data": "token=others.npy,target=target.npy"}, "--data (values)"),
            ({"--data": "token=more.npy,target=more.npy"}, "--data (names or types)"),
            ({"--eval": "token=token.npy,target=target.npy"}, "--eval (names or types)"),
            ({"--checkpoint-every": "1"}, "--checkpoint-every"),
            ({"--out": "no.safetensors.index.json"}, "--out"),
        ):
            lines = [f"{bundle} --quiet " + " ".join(f"{k} {v}" for k, v in options.items()) for options in (usual, usual | other)]
            self.differing(self.bin / "astra-train", *lines, f"rank 1 was given another {what} than rank 0: give all ranks the same")
        for option, files, what in (("--weights", "wv", "--weights (values)"), ("--resume", ("w.ckpt", "v.ckpt"), None)):
            lines = [f"{bundle} --quiet " + " ".join(f"{k} {v}" for k, v in (usual | {option: f"{f}.safetensors"}).items() if what or k != "--seed") for f in files]
            self.differing(self.bin / "astra-train", *lines, f"rank 1 was given another {what or '--seed'} than rank 0")
        lines = [f"{bundle} --quiet " + " ".join(f"{k} {v}" for k, v in (usual | {"--seed": s}).items()) for s in "34"]
        self.differing(self.bin / "astra-train", *lines, "rank 3 was given another --seed than rank 0", 4)

    def other_calls(self):
        """Options and values of astra-run that differ between ranks."""
        (self.scratch / "layer.uop").write_text(LAYER)
        bundle = self.scratch / "layer.astra"
        job = Job(self.bin / "astra-compile", self.scratch / "layer.uop", "-o", bundle, "--quiet", "--target=cpu:x86-64-v3", timeout=400)
        expect("exit code", (job.code, job.err[-500:]), (0, ""))
        for name, value, shape in (("x16", 1, (16, 8)), ("x32", 1, (32, 8)), ("y16", 2, (16, 8)), ("s", 3, (8,))):
            np.save(self.scratch / f"{name}.npy", np.full(shape, value, np.float32))
        usual = f"{bundle} --input x=x16.npy"
        for other, what in (
            (f"{bundle} --input x=x32.npy", "--input x"),
            (f"{bundle} --input x=y16.npy", "--input x"),
            (f"{usual} --set-state s=s.npy", "--param, --states or --set-state"),
            (f"{usual} --repeat 2", "--repeat"),
            (f"{usual} --get-state s=no.npy", "--get-state"),
        ):
            self.differing(self.bin / "astra-run", usual, other, f"rank 1 was given another {what} than rank 0: give all ranks the same")

    def traces(self):
        """One file of all ranks, with the bytes that each transfer sends: those that are planned, and none at one rank."""
        random = np.random.default_rng(2)
        self.bundle("data", *DATA)
        np.save(self.scratch / "batch.npy", random.integers(0, 96, (8, 128)).astype(np.uint8))
        np.save(self.scratch / "aim.npy", random.integers(0, 96, (8, 128)))
        job = Job(self.launch, "-n", 2, self.bin / "astra-run", self.bundle("data", *DATA), "--entry", "train_step", "--input", "token=batch.npy",
                  "--input", "target=aim.npy", "--trace", "trace.json", folder=self.scratch)  # fmt: skip
        expect("exit code", (job.code, job.err[-300:] if job.code else ""), (0, ""))
        expect("one rank prints", len(re.findall("^loss:", job.out, re.M)), 1)
        events = json.loads((self.scratch / "trace.json").read_text())["traceEvents"]
        expect("names", sorted(e["args"]["name"] for e in events if e["ph"] == "M"), ["rank 0", "rank 1"])
        for pid in (1, 2):
            own = [e for e in events if e["pid"] == pid and e["name"].startswith("astra.mesh.all_reduce/")]
            expect(f"transfers of rank {pid - 1}", len(own) > 3 and all(e["args"]["bytes"] > 0 and e["ts"] >= 0 for e in own), True)
        sent = [sum(e["args"]["bytes"] for e in events if e["pid"] == pid and e["name"].startswith("astra.mesh.")) for pid in (1, 2)]
        plan = Job(self.bin / "astra-inspect", self.bundle("data", *DATA), "--comm", "--ranks", 2, "--dim", "batch_shard=1").out
        require("what is planned", plan, rf"entry @train_step.*\n(?:  \d+ x .*\n)*  2 ranks: the busiest sends {max(sent) / 1e3:.1f} KB a call")
        job = Job(self.bin / "astra-run", self.bundle("data", *DATA), "--entry", "train_step", "--input", "token=batch.npy", "--input", "target=aim.npy",
                  "--trace", "trace.json", folder=self.scratch)  # fmt: skip
        expect("exit code", (job.code, job.err[-300:] if job.code else ""), (0, ""))
        own = [e for e in json.loads((self.scratch / "trace.json").read_text())["traceEvents"] if e["name"].startswith("astra.mesh.")]
        expect("bytes at one rank", len(own) > 3 and {e["args"]["bytes"] for e in own}, {0})

    def inspects(self):
        out = Job(self.bin / "astra-inspect", self.bundle("data", *DATA), "--comm", "--machine", "2,10").out
        require("traffic", out, r"entry @train_step.*\n(?:  \d+ x .*\n)*  2 ranks: the busiest sends (\S+ KB) a call, a ring \1 \(1.00 of it\); 2,10: ")
        # Along an axis that is not the last, whose shards are not neighbours; and what moves toward the first rank.
        text = self.scratch / "axes.uop"
        text.write_text("""module @axes {
            mesh @mesh { stage 4, model 4 } per_shard
            entry @sums(%x : f32[65536]) -> (%y : f32[65536]) {
              %y = all_reduce %x group="stage=4,model=4/stage" kind=sum
            }
            entry @back(%x : f32[256]) -> (%y : f32[256]) {
              %y = shift %x group="stage=4,model=4/stage" by=-1
            }
          }""")
        bundle = self.scratch / "axes.astra"
        expect("compiled", Job(self.bin / "astra-compile", text, "-o", bundle, "--target=native", "--quiet").code, 0)
        out = Job(self.bin / "astra-inspect", bundle, "--comm").out
        sums, back = (text.split(" ranks: the busiest sends ")[1:] for text in out.split("entry @back"))
        expect("a ring along the outer axis", [line.split("\n")[0].endswith("(1.00 of it)") for line in sums], [True] * 4)
        expect("what moves back", [not line.startswith("0 B") for line in back], [True] * 4)
        # Of each number of ranks: kernels of its shards, and transfers, all behind them or as many as they hide.
        timed = ["--machine", "2,10", "--call", "train_step=1.5+0.25"]
        out = Job(self.bin / "astra-inspect", self.bundle("data", *DATA), "--comm", *timed).out
        lines = re.findall(r"(\d) ranks: the busiest .*; 2,10: (\S+) us; a call: (\S+) to (\S+) ms", out)
        expect("numbers of ranks", [line[0] for line in lines], ["2", "4", "8"])  # of train_step alone
        for ranks, us, least, most in lines:
            kernels = 1.5 + 0.25 * 8 / int(ranks)
            expect(f"the time of a call of {ranks} ranks", (abs(float(most) - kernels - float(us) / 1e3) < 0.001, kernels <= float(least) <= float(most)), (True, True))
        own = self.bundle("alone", *DATA, "--overlap=off")
        lines = re.findall(r"a call: (\S+) to (\S+) ms", Job(self.bin / "astra-inspect", own, "--comm", *timed).out)
        expect("nothing is hidden", [least == most for least, most in lines], [True] * 3)
        for options, sentence in ((["--ranks", "3"], "3 does not divide the 8 shards"), (["--machine", "x"], "nvlink8"), (["--dim", "no=1"], "no such dim"),
                                  (["--call", "train_step=1+2"], "say by --machine what transfers do"), (["--machine=2,10", "--call=no=1+2"], "--call no: the bundle has no such entry"),
                                  (["--machine=2,10", "--call=train_step=3"], "--call train_step: '3' is not FIXED[+]SHARD, milliseconds of a rank")):  # fmt: skip
            job = Job(self.bin / "astra-inspect", self.bundle("data", *DATA), "--comm", *options)
            expect("exit code", job.code, 2)
            require("the sentence", job.err, sentence)

    def inspects_branches(self):
        """Of a cond one function runs: the one that moves more is counted. An entry that moves nothing has a time as well."""
        text = self.scratch / "branch.uop"
        text.write_text("""module @branch {
            mesh @mesh { data 2 } per_shard
            func @sum(%a : f32[1024]) {
              %s = all_reduce %a group="data=2/data" kind=sum
              return %s
            }
            func @sums(%a : f32[1024]) {
              %m = all_reduce %a group="data=2/data" kind=max
              %s = all_reduce %m group="data=2/data" kind=sum
              return %s
            }
            func @none(%a : f32[1024]) {
              %s = add %a, %a
              return %s
            }
            entry @both(%p : bool[], %x : f32[1024]) -> (%y : f32[1024]) {
              %c = cond(@sum, @sums) %p, %x
              %y = proj %c index=0
            }
            entry @one(%p : bool[], %x : f32[1024]) -> (%y : f32[1024]) {
              %c = cond(@sum, @none) %p, %x
              %y = proj %c index=0
            }
            entry @still(%x : f32[1024]) -> (%y : f32[1024]) {
              %y = add %x, %x
            }
          }""")
        bundle, inspect = self.scratch / "branch.astra", self.bin / "astra-inspect"
        job = Job(self.bin / "astra-compile", text, "-o", bundle, "--target=native", "--quiet")
        expect("compiled", (job.code, job.err), (0, ""))
        job = Job(inspect, bundle, "--comm", "--machine=2,10", "--call=still=1.5+0.25")
        sent = {name: int(n) for name, n in re.findall(r"entry @(\w+), .*?the busiest sends (\d+) B a call", job.out, re.S)}
        expect("what is sent", sent, {"both": 2 * 4096, "one": 4096})
        expect("that it says so", job.out.count("\n  (of each cond the function that moves more bytes)\n"), 2)
        require("an entry that moves nothing", job.out,
                r"(?m)^entry @still: nothing moves between ranks, so a call takes what its kernels take: 1.500 ms, and 0.250 ms for each shard of the rank$")  # fmt: skip
        for option in ("--machine=2,10", "--call=still=1+2", "--ranks=2", "--dim=n=1"):
            job = Job(inspect, bundle, option)
            expect("exit code", job.code, 2)
            require("the sentence", job.err, f"{option.split('=')[0]} says what --comm is asked about: give --comm too")

    def launch_usage(self):
        for arguments, sentence in (([], "how many ranks"), (["-n", "2"], "which program"), (["-n", "0", "true"], "0"), (["-n", "x", "true"], "x")):
            job = Job(self.launch, *arguments)
            expect("exit code", job.code, 2)
            require("the sentence", job.err, sentence)
        expect("no such program", Job(self.launch, "-n", 2, "/no/such/program").code, 127)
        job = Job(self.launch, "-n", 2, "--quiet", "--", "sh", "-c", 'echo "$ASTRA_RANK/$ASTRA_RANKS"')
        expect("environment", sorted(job.out.split()), ["0/2", "1/2"])

    def launch_ends_all(self):
        """Rank 1 fails, rank 0 does not end by itself."""
        job = Job(self.launch, "-n", 2, "--grace", 0, "sh", "-c", '[ "$ASTRA_RANK" = 1 ] && exit 7; trap "" TERM; sleep 50')
        expect("exit code", job.code, 7)
        require("who failed", job.err, "rank 1 ended with code 7")
        if job.seconds > 20:
            raise Failure(f"took {job.seconds:.1f} s")

    def launch_tells(self):
        """A rank fails before it has come: the others do not wait for it."""
        job = Job(self.launch, "-n", 3, "--grace", 30, "sh", "-c", f'[ "$ASTRA_RANK" = 1 ] && exit 7; exec {self.worker}')
        expect("exit code", job.code, 7)
        expect("ranks that are told", job.err.count("ASTRA_PEER_LOST"), 2)
        require("the sentence", job.err, "ASTRA_PEER_LOST: rank [0-2] has not come, and the launcher says that a rank has failed")
        if job.seconds > 10:
            raise Failure(f"took {job.seconds:.1f} s")

    def launch_forgets(self):
        """Rank 0 ends between making the shared memory and the coming of all, or the launcher is told to end then: nothing stays."""
        for how in ("rank 0 is killed", "the launcher is told to end"):
            seen, script = self.scratch / "seen", '[ "$ASTRA_RANK" = 1 ] && exec sleep 50; echo "$$ $ASTRA_JOB" > seen; exec "$0"'
            seen.unlink(missing_ok=True)
            process = subprocess.Popen([self.launch, "-n", "2", "--grace", "0", "sh", "-c", script, self.worker], env=PLAIN, cwd=self.scratch,
                                       stderr=subprocess.PIPE, text=True)  # fmt: skip
            deadline, left = time.monotonic() + 20, None
            while time.monotonic() < deadline and not left:
                time.sleep(0.01)
                rank, job = (seen.read_text().split() if seen.exists() else []) or (0, "none")
                left = [f for f in os.listdir("/dev/shm") if job in f]
            expect("that shared memory was there", len(left), 1)
            os.kill(int(rank) if how == "rank 0 is killed" else process.pid, 9 if how == "rank 0 is killed" else 15)
            process.communicate(timeout=60)
            expect(f"exit code when {how}", process.returncode, 137 if how == "rank 0 is killed" else 143)
            expect(f"what is left when {how}", [f for f in os.listdir("/dev/shm") if job in f], [])

    def launch_again(self):
        """Fails twice, then passes as one rank."""
        count = self.scratch / "count"
        script = f'[ "$ASTRA_RANK" = 0 ] || exit 0; echo x >> {count}; [ "$(wc -l < {count})" -ge 3 ]'
        job = Job(self.launch, "-n", 2, "--restart", 5, "--restart-ranks", 1, "sh", "-c", script)
        expect("exit code", job.code, 0)
        expect("how often", count.read_text().count("x"), 3)
        expect("words", job.err.count("starts again as 1 ranks"), 2)


def cases(t):
    for name in ("astra-launch", "Open MPI", "MPICH", "standard ABI"):
        yield f"{name}, 3 ranks meet", lambda name=name: t.meets(name, 3)
    for name in ("Open MPI", "MPICH"):
        yield f"{name}, 2 ranks through shared memory", lambda name=name: t.meets(name, 2, "shm")
    yield "astra-launch, 9 ranks meet", lambda: t.meets("astra-launch", 9)
    yield "alone", t.alone
    yield "torchrun's variables", t.torchrun
    yield "srun's variables", lambda: t.slurm(3)
    yield "srun's variables of several machines", lambda: t.slurm(2, "1(x2)")
    yield "srun's variables of half a job", lambda: t.wrong({"SLURM_PROCID": "0"}, "srun: SLURM_PROCID is '0' and SLURM_NTASKS is '', which is no rank")
    yield "astra-launch within srun", t.within_slurm
    yield "MPICH under Open MPI's mpirun", lambda: t.another_library("Open MPI", "libmpich.so.12", "MPICH")
    yield "Open MPI under MPICH's mpirun", lambda: t.another_library("MPICH", "libmpi.so.40", "Open MPI")
    yield "an engine that there is not", lambda: t.wrong({"ASTRA_ENGINE": "tcp"}, "there is no engine 'tcp'; there are shm, mpi, nccl and rccl, and mpi:PATH")
    yield "a library that there is not", lambda: t.wrong({"ASTRA_ENGINE": "mpi:libno.so"}, "no MPI library could be opened: libno.so")
    yield "a library that is none", lambda: t.wrong({"ASTRA_ENGINE": "mpi:libm.so.6"}, "lacks MPI_Init_thread: it is too old")
    yield "a timeout that is none", lambda: t.wrong({"ASTRA_RANKS_TIMEOUT": "5s", "ASTRA_ENGINE": "shm"}, "ASTRA_RANKS_TIMEOUT is '5s', which is no number of seconds")
    yield "a rank that is none", lambda: t.wrong({"ASTRA_RANK": "3", "ASTRA_RANKS": "2"}, "ASTRA_RANK is '3' and ASTRA_RANKS is '2'")
    yield "several machines", lambda: t.wrong({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "torchrun started ranks on several machines")
    yield "too many ranks", lambda: t.wrong({"ASTRA_RANK": "0", "ASTRA_RANKS": "300", "ASTRA_JOB": "many"}, "300 ranks are more than the 256")
    yield "another world", t.other_world
    yield "two processes of one rank", t.same_rank
    yield "memory that a killed rank left", t.after_a_dead_job
    yield "a rank that aborts", lambda: t.lost("abort", 134, "ASTRA_PEER_LOST: .*rank 1 has died")
    yield "a rank that leaves", lambda: t.lost("leave", 55, "ASTRA_PEER_LOST: .*rank 1 has (died|ended)")
    yield "a rank that stops", lambda: t.lost("hang", 55, "ASTRA_PEER_LOST: .*rank [0-2] (has not moved for 2000 ms|has failed)")
    yield "no shared memory", t.no_shared_memory
    yield "engines do not calculate", t.no_arithmetic
    yield "data parallel", lambda: t.trains_alike("data", DATA, [(LAUNCH, 1), (LAUNCH, 2), (LAUNCH, 4), (LAUNCH, 8), ("Open MPI", 2), ("MPICH", 4), ("standard ABI", 2)])
    yield "optimizer states that are cut", lambda: t.trains_alike("zero", ZERO, [(LAUNCH, 1), (LAUNCH, 2), (LAUNCH, 4)])
    yield "weights that are cut", lambda: t.trains_alike("zero3", ZERO3, [(LAUNCH, 1), (LAUNCH, 2), (LAUNCH, 4)])
    yield "data and tensor parallel", lambda: t.trains_alike("tensor", TENSOR, [(LAUNCH, 1), (LAUNCH, 2), (LAUNCH, 4)])
    yield "a run that goes on", t.goes_on
    yield "numbers and bundles that do not fit", t.wrong_numbers
    yield "trainings that differ between ranks", t.other_training
    yield "calls that differ between ranks", t.other_calls
    yield from checkpoints.cases(t)
    yield from faults.cases(t)
    yield "a trace of all ranks", t.traces
    yield "what moves", t.inspects
    yield "what moves in functions of a cond", t.inspects_branches
    nccl = f"nccl:{t.nccl}"
    yield "NCCL, 3 ranks meet in shared memory", lambda: t.meets("astra-launch", 3, nccl, "nccl 2.28.9, shm")
    yield "NCCL, 2 ranks meet by MPICH", lambda: t.meets("MPICH", 2, nccl, r"nccl 2.28.9, mpi \(MPICH")
    yield "NCCL's own library", t.real_nccl
    yield "NCCL that there is not", lambda: t.wrong({"ASTRA_ENGINE": "nccl:libno.so"}, "NCCL cannot be opened .libno.so.*; install it, or give its file as nccl:PATH")
    yield "RCCL that there is not", lambda: t.wrong({"ASTRA_ENGINE": "rccl:libno.so"}, "RCCL cannot be opened .*rccl:PATH")
    yield "NCCL that is none", lambda: t.wrong({"ASTRA_ENGINE": "nccl:libm.so.6"}, "the library of NCCL lacks ncclGetVersion; version 2.14 or newer is needed")
    yield "NCCL that is too old", lambda: t.other_nccl("int ncclGetVersion(int *v) { *v = 21304; return 0; }", "NCCL is of version 2.13.4, and 2.14 or newer is needed")
    yield "NCCL that is much too old", lambda: t.other_nccl("int ncclGetVersion(int *v) { *v = 2804; return 0; }", "NCCL is of version 2.8.4, and 2.14 or newer is needed")
    yield "NCCL without a function", lambda: t.other_nccl("int ncclGetVersion(int *v) { *v = 22809; return 0; } int ncclGetUniqueId;", "the library of NCCL lacks ncclCommInitRankConfig")
    yield "GPUs by NCCL and RCCL", t.on_gpus
    yield "NCCL's error in the background", lambda: t.nccl_fault(1, "function 'astra.mesh|a transfer: remote process exited", ASTRA_STAND_IN_NCCL_FAULT="transfer:4:6")
    yield "NCCL's error of a call", lambda: t.nccl_fault(1, "ncclSend: remote process exited", ASTRA_STAND_IN_NCCL_FAULT="ncclSend:3:6", ASTRA_STAND_IN_NCCL_RANK="1")
    yield "a GPU that stops to move", lambda: t.nccl_fault(1, "a transfer with rank [01] has not ended for 5000 ms", ASTRA_STAND_IN_NCCL_STALL="3", ASTRA_STAND_IN_NCCL_RANK="1")
    yield "NCCL for a GPU of AMD", lambda: t.other_gpu()
    yield "a rank of GPUs is killed", lambda: t.killed_on_gpus(False)
    yield "a rank of GPUs is killed, and nobody is told", lambda: t.killed_on_gpus(True)
    yield "astra-launch: usage", t.launch_usage
    yield "astra-launch ends what is left", t.launch_ends_all
    yield "astra-launch says that a rank has failed", t.launch_tells
    yield "astra-launch leaves nothing in shared memory", t.launch_forgets
    yield "astra-launch starts again", t.launch_again


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=200, help="of the long trainings of chargpt")
    args = parser.parse_args()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, run in cases(Tests(args.build.resolve(), scratch, args.steps)):
            if not re.search(args.only, name):
                continue
            begun = time.monotonic()
            try:
                said = run()
                passed += 1
                print(f"{name}: passed, {time.monotonic() - begun:.1f} s{f': {said}' if said else ''}", flush=True)
            except Skipped as e:
                skipped += 1
                print(f"{name}: skipped, {e}", flush=True)
            except Failure as e:
                failed += 1
                print(f"{name}: FAILED: {e}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
