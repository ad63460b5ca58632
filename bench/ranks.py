"""Several ranks of this machine: sums beside MPI_Allreduce, training beside PyTorch's DistributedDataParallel and beside what
astra-inspect says of it.

Takes:    build/bin, the MPI libraries that are here; for training PyTorch (gloo) in the interpreter's environment.
Gives:    a table each. Ratios are other / ours: above 1 is ahead; of the simulation simulated / measured.
Keeps:    the ways take turns in one run; each rank is on a processor of its own, with one thread; medians.

    nice -n -15 build/venv/bin/python bench/ranks.py [--sums] [--training] [--simulated] [--rounds N]
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
LAUNCHERS = {
    "Open MPI": ["mpirun.openmpi", "--allow-run-as-root", "-n", "2", "--bind-to", "core"],
    "MPICH": ["mpirun.mpich", "-n", "2", "-bind-to", "core"],
}
BATCH, ROWS = 16, 128


def built(scratch, source):
    """A program of this folder."""
    subprocess.run(["cc", "-O2", ROOT / f"bench/{source}.c", "-o", scratch / source, f"-I{ROOT}/include", f"-L{BUILD}/lib", "-lastra_ranks", "-lastra_rt", "-ldl",
                    f"-Wl,-rpath,{BUILD}/lib"], check=True)  # fmt: skip
    return scratch / source


def sums(scratch):
    worker = built(scratch, "ranks")
    for name, launcher in LAUNCHERS.items():
        if not shutil.which(launcher[0]):
            continue
        out = subprocess.run([*launcher, worker], check=True, capture_output=True, text=True).stdout
        print(f"sum of 2 ranks, f32, microseconds, beside {name}\n| bytes | shm | mpi | MPI_Allreduce | ratio of shm | of mpi |\n|--:|--:|--:|--:|--:|--:|")
        for line in out.splitlines():
            size, shm, mpi, other = line.split()
            print(f"| {size} | {shm} | {mpi} | {other} | {float(other) / float(shm):.2f} | {float(other) / float(mpi):.2f} |")




def pinned(ranks, *command):
    """The command as so many ranks, each on a processor of its own."""
    return [BUILD / "bin/astra-launch", "-n", str(ranks), "sh", "-c", f'exec taskset -c $ASTRA_RANK {" ".join(map(str, command))}']


def train(scratch, ranks, epochs):
    command = pinned(ranks, BUILD / "bin/astra-train", "chargpt.astra", "--data", "token=token.npy,target=target.npy", "--batch", BATCH, "--epochs", epochs,
                     "--quiet", "--out", "w.safetensors")  # fmt: skip
    begun = time.monotonic()
    subprocess.run(command, cwd=scratch, check=True)
    return time.monotonic() - begun


def step(scratch, ranks):
    """Seconds of a step: of the second epoch, so without the start and loading."""
    once = train(scratch, ranks, 1)
    return (train(scratch, ranks, 2) - once) / (ROWS // BATCH)


DDP = """
import os, sys, time
import numpy as np, torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
os.sched_setaffinity(0, {rank})
if world > 1: dist.init_process_group("gloo")
class Block(nn.Module):
    def __init__(self, d=128, heads=4):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
        self.qkv, self.mix, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.mix(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))
class Model(nn.Module):
    def __init__(self, n=96, d=128, t=128):
        super().__init__()
        self.characters, self.positions = nn.Embedding(n, d), nn.Embedding(t, d)
        self.layers, self.norm, self.head = nn.Sequential(*[Block() for _ in range(6)]), nn.LayerNorm(d), nn.Linear(d, n, bias=False)
    def forward(self, x):
        return self.head(self.norm(self.layers(self.characters(x) + self.positions.weight)))
model = Model()
step = nn.parallel.DistributedDataParallel(model) if world > 1 else model
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
token, target = (torch.from_numpy(np.load(f)) for f in ("token.npy", "target.npy"))
batch, times = int(sys.argv[1]) // world, []
for i in range(0, len(token), batch * world):
    begun = time.monotonic()
    rows = slice(i + rank * batch, i + (rank + 1) * batch)
    loss = F.cross_entropy(step(token[rows]).flatten(0, 1), target[rows].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.monotonic() - begun)
if rank == 0: print(sorted(times)[len(times) // 2])
"""


def torch_step(scratch, ranks):
    (scratch / "ddp.py").write_text(DDP)
    processes = []
    for r in range(ranks):
        env = os.environ | {"RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000)}
        processes.append(subprocess.Popen([sys.executable, "ddp.py", str(BATCH)], cwd=scratch, env=env, stdout=subprocess.PIPE, text=True))
    return float([p.communicate()[0] for p in processes][0])


def chargpt(scratch):
    """chargpt.astra, of a mesh of two shards, and its data."""
    random = np.random.default_rng(1)
    tokens = random.integers(0, 96, (ROWS, 129))
    np.save(scratch / "token.npy", tokens[:, :-1])
    np.save(scratch / "target.npy", tokens[:, 1:])
    shutil.copy(ROOT / "examples/chargpt/chargpt.onnx", scratch)
    subprocess.run([sys.executable, ROOT / "examples/chargpt/begin.py", scratch / "chargpt.weights"], check=True)
    subprocess.run([BUILD / "bin/astra-compile", "chargpt.onnx", "-o", "chargpt.astra", "-j", "2", "--dim", "batch=1..64", "--quiet", "--train",
                    "--loss=cross_entropy", "--optimizer=adamw(lr=4e-3)", "--mesh=data=2", "--shard", "token=(data, -)", "--shard", "target=(data, -)"],
                   cwd=scratch, check=True)  # fmt: skip


def training(scratch, rounds):
    chargpt(scratch)
    times = {"astra, 1 rank": [], "astra, 2 ranks": [], "PyTorch, 1 process": [], "PyTorch, 2 processes": []}
    try:
        import torch  # noqa: F401
    except ImportError:
        print("PyTorch is not in this environment: no peer")
        times = {k: v for k, v in times.items() if k.startswith("astra")}
    for _ in range(rounds):
        for name, list_ in times.items():
            ranks = 2 if "2" in name else 1
            if name.startswith("astra"):
                list_.append(step(scratch, ranks))
            else:
                list_.append(torch_step(scratch, ranks))
    print(f"a step of chargpt, batch {BATCH} x 128, one thread a rank, ms (medians of {rounds} rounds)\n| | ms |\n|---|--:|")
    median = {name: statistics.median(t) * 1000 for name, t in times.items()}
    for name, ms in median.items():
        print(f"| {name} | {ms:.1f} |")
    print(f"2 ranks: {median['astra, 1 rank'] / median['astra, 2 ranks']:.2f}x one", end="")
    if "PyTorch, 2 processes" in median:
        print(f"; PyTorch: {median['PyTorch, 1 process'] / median['PyTorch, 2 processes']:.2f}x; ours beside its two: "
              f"{median['PyTorch, 2 processes'] / median['astra, 2 ranks']:.2f}x")  # fmt: skip
    else:
        print()


STEPS = """
import sys, time
import numpy as np
from astra_rt import ranks
world = ranks.init(timeout=60)
model = world.load("chargpt.astra")
types = {"u8": np.uint8, "i64": np.int64}
rows = {i.name: np.load(i.name + ".npy")[: int(sys.argv[1])].astype(types[i.dtype]) for i in model["train_step"].inputs}
times = []
for _ in range(9):
    world.barrier()
    begun = time.monotonic()
    model.train_step(**rows)
    times.append(time.monotonic() - begun)
if world.rank == 0: print(sorted(times)[len(times) // 2] * 1000)
"""


def steps(scratch, batch, together):
    """Milliseconds of a step of two ranks, or of two processes that are one rank each, at once: both processors are busy either way."""
    (scratch / "steps.py").write_text(STEPS)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))}
    work = f"{sys.executable} steps.py {batch}"
    command = pinned(2, work) if together else ["sh", "-c", f"taskset -c 0 {work} & taskset -c 1 {work}; wait"]
    out = subprocess.run(command, cwd=scratch, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return max(map(float, out.split()))


def simulated(scratch, rounds):
    """Kernels are measured of one rank, at two sizes of a batch, transfers without kernels; two ranks are measured beside them."""
    chargpt(scratch)
    row = subprocess.run(pinned(2, built(scratch, "transfers")), check=True, capture_output=True, text=True).stdout.strip()
    ways = {(BATCH, False): [], (BATCH // 2, False): [], (BATCH, True): []}
    for _ in range(rounds):
        for (batch, together), times in ways.items():
            times.append(steps(scratch, batch, together))
    whole, half, measured = (statistics.median(t) for t in ways.values())
    shard = min(whole - half, half)  # a shard's rows of the larger batch are as many as both have of the smaller one
    fixed = half - shard
    said = subprocess.run([BUILD / "bin/astra-inspect", scratch / "chargpt.astra", "--comm", "--ranks", "2", f"--machine={row}",
                           f"--call=train_step={fixed:.4f}+{shard:.4f}"], check=True, capture_output=True, text=True).stdout  # fmt: skip
    moves = re.search(r"entry @train_step.*?us; a call: ([0-9.]+) to ([0-9.]+) ms", said, re.S)
    least, most = map(float, moves.groups())
    print(f"a step of chargpt, batch {BATCH} x 128, on 2 ranks (medians of {rounds} rounds)")
    print(f"a transfer (--machine): {row}; kernels: {fixed:.2f} ms and {shard:.2f} ms a shard\n| | ms | of measured |\n|---|--:|--:|")
    for name, ms in {"measured": measured, "simulated, transfers hidden by kernels": least, "simulated, one behind the other": most}.items():
        print(f"| {name} | {ms:.2f} | {ms / measured:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sums", action="store_true")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        everything = not (args.sums or args.training or args.simulated)
        if args.sums or everything:
            sums(Path(scratch))
        if args.training or everything:
            training(Path(scratch), args.rounds)
        if args.simulated or everything:
            simulated(Path(scratch), args.rounds)


if __name__ == "__main__":
    main()
