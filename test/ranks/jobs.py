"""What the tests of ranks share: commands with a limit, launchers of this machine, bundles of meshes.

Takes:    build/bin, the MPI libraries that this machine has.
Gives:    Job, a command that has ended; Machine, whose launchers and bundles tests ask for; expect and require.
Keeps:    a job that hangs is ended and fails. Nothing of a launcher around the tests is in a job's environment.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {k: v for k, v in os.environ.items() if not re.match("ASTRA_|OMPI_|PMI_|PMIX_|SLURM_|RANK$|WORLD_SIZE$", k)}
# Of containers: ranks may be more than processors, and root may start them.
PLAIN |= {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_btl_base_warn_component_unused": "0"}


BATCH = ["--shard", "{token,target}=(data, ...)"]
DATA = ["--mesh=data=8", *BATCH]
ZERO = ["--mesh=data=4", *BATCH, "--shard", "*.{mean,squares}=(data?, ...)"]
ZERO3 = ["--mesh=data=4", *BATCH, "--shard", "*.{weight,bias}=(data?, ...) gathered"]
TENSOR = ["--mesh=data=2,model=2", *BATCH, "--shard", "layers.*.up.weight=(model, -)", "--shard", "layers.*.up.bias=(model)", "--shard", "layers.*.down.weight=(-, model)"]
LAUNCH = "astra-launch"


class Failure(Exception):
    """What should not be."""


class Skipped(Exception):
    """What this machine lacks."""


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f"{what}: {found!r} in place of {wanted!r}")


def require(what, text, pattern):
    if not re.search(pattern, text):
        raise Failure(f"{what}: {text.strip()[:500]!r} has no {pattern!r}")


class Job:
    """A command that has ended."""

    def __init__(self, *command, env=None, timeout=60, folder=None):
        begun = time.monotonic()
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=PLAIN | (env or {}), cwd=folder, start_new_session=True)  # fmt: skip
        try:
            self.out, self.err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            raise Failure(f"{' '.join(map(str, command))}: still runs after {timeout} s") from None
        self.code, self.seconds = process.returncode, time.monotonic() - begun


class Machine:
    """The build, the launchers of this machine, and bundles that are compiled once."""

    def __init__(self, build, scratch, steps):
        self.bin, self.scratch, self.steps = build / "bin", Path(scratch), steps
        self.launch, self.worker = self.bin / "astra-launch", next(build.glob("**/ranks-worker"))
        self.library = build / "lib/libastra_ranks.so"
        self.driver, self.nccl = build / "lib/libastra-stand-in.so", build / "lib/libastra-stand-in-nccl.so"
        self.abi = next(Path(build / "venv/lib").glob("libmpi_abi.so.*"), None)

    def launchers(self):
        """name: (command before the program for n ranks, environment, what the engine is called)."""
        rows = {"astra-launch": (lambda n: [self.launch, "-n", n], {}, "shm")}
        if shutil.which("mpirun.openmpi"):
            rows["Open MPI"] = (lambda n: ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", n], {}, r"mpi \(Open MPI v4")
        if shutil.which("mpirun.mpich"):
            rows["MPICH"] = (lambda n: ["mpirun.mpich", "-n", n], {}, r"mpi \(MPICH Version: ?4")
        if self.abi:
            mpiexec = self.abi.parents[1] / "bin/mpiexec"
            rows["standard ABI"] = (lambda n: [mpiexec, "-n", n], {"ASTRA_ENGINE": f"mpi:{self.abi}"}, r"mpi \(MPICH.*, standard ABI\)")
        return rows

    # Trainings of chargpt, on 16 rows of 128 characters.

    def bundle(self, name, *options):
        """Compiled once."""
        path = self.scratch / f"{name}.astra"
        if not path.exists():
            random = np.random.default_rng(1)
            tokens = random.integers(0, 96, (16, 129))
            np.save(self.scratch / "token.npy", tokens[:, :-1])
            np.save(self.scratch / "target.npy", tokens[:, 1:])
            shutil.copy(ROOT / "examples/chargpt/chargpt.onnx", self.scratch)
            subprocess.run([sys.executable, ROOT / "examples/chargpt/begin.py", self.scratch / "chargpt.weights"], check=True)
            job = Job(self.bin / "astra-compile", self.scratch / "chargpt.onnx", "-o", path, "-j", 2, "--dim", "batch=1..64", "--quiet", "--train",
                      "--loss=cross_entropy", "--optimizer=adamw(lr=4e-3)", "--target=cpu:x86-64-v3", *options, timeout=1800)  # fmt: skip
            expect("exit code", (job.code, job.err[-500:] if job.code else ""), (0, ""))
        return path

    def train(self, launcher, ranks, bundle, out, *options, env=None):
        command, own, _ = self.launchers()[launcher]
        job = Job(*command(ranks), self.bin / "astra-train", bundle, "--data", "token=token.npy,target=target.npy", "--batch", 8, "--quiet",
                  "--out", out, *options, env=own | (env or {}), timeout=200, folder=self.scratch)  # fmt: skip
        expect(f"exit code of {ranks} ranks under {launcher}", (job.code, job.err[-500:] if job.code else ""), (0, ""))
        return self.hash(out)

    def hash(self, name):
        return hashlib.sha256((self.scratch / name).read_bytes()).hexdigest()
