"""Functions under `@astra(mesh=...)`: calls of all ranks, on logical tensors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import astra

ROOT = Path(__file__).resolve().parents[3]
PLAIN = {k: v for k, v in os.environ.items() if not re.match("ASTRA_(RANK|JOB|ENGINE)|OMPI_|PMI_|PMIX_|SLURM_|RANK$|WORLD_SIZE$", k)}

PROGRAM = """
import hashlib
import numpy as np
from astra import astra
from astra_rt import ranks
world = ranks.init()
scale = astra.asarray(np.float32(0.5))  # from outside: an input of the program

@astra{options}
def step(w, batch):
    def loss(w):
        y = astra.tanh(batch["x"] @ w["in"]) @ w["out"] * scale
        return astra.mean((y - batch["target"]) ** 2)
    loss, g = astra.value_and_grad(loss)(w)
    return astra.tree.map(lambda w, g: w - 0.1 * g, w, g), loss

draw = np.random.default_rng(0)
w = {{"in": draw.standard_normal((6, 8), np.float32), "out": draw.standard_normal((8, 4), np.float32)}}
for n in (8, 8, 16):  # another shape is another program
    w, loss = step(w, {{"x": draw.standard_normal((n, 6), np.float32), "target": draw.standard_normal((n, 4), np.float32)}})
if world.rank == 0:
    print(float(loss), hashlib.sha256(np.asarray(w["in"]).tobytes() + np.asarray(w["out"]).tobytes()).hexdigest(), step.traces)
"""
CUT = '(mesh=astra.mesh(data=4), shardings={"batch.*": "(data, -)"})'


def printed(ranks, options):
    command = [sys.executable, "-c", PROGRAM.format(options=options)]
    command = command if not ranks else [str(ROOT / "build/bin/astra-launch"), "-n", str(ranks), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=PLAIN)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_a_function_has_the_same_bits_at_any_number_of_ranks():
    plain, alone = printed(0, ""), printed(0, CUT)
    assert all(printed(ranks, CUT) == alone for ranks in (1, 2, 4))
    assert plain[1] != alone[1] and plain[2] == alone[2] == "2"  # sums over rows are split
    assert abs(float(plain[0]) - float(alone[0])) < 1e-6


def test_what_is_refused():
    with pytest.raises(astra.ArgumentError, match="shardings are of a mesh"):
        astra.jit(lambda x: x, shardings={"x": "(data, -)"})
    function = astra.jit(lambda x: x + 1, mesh=astra.mesh(data=4), shardings={"y": "(data, -)"})
    with pytest.raises(astra.Error, match="no parameter, state, input, output or named value matches"):
        function(np.zeros((4, 2), np.float32))
    lowered = astra.jit(lambda x: x + 1, mesh=astra.mesh(data=4), shardings={"x": "(data, -)"}).lower(astra.spec((8, 2), "float32"))
    assert "x : f32[2, 2] shard (data, -)" in lowered.as_text("sharding")
    torch = pytest.importorskip("torch")
    with pytest.raises(astra.ArgumentError, match=r"@astra\(mesh=...\) is for functions of Astra's tensors"):
        astra(lambda x: x + 1, mesh=astra.mesh(data=4))(torch.zeros(4))
    with pytest.raises(astra.ArgumentError, match=r"@astra\(mesh=...\) is for functions of Astra's tensors"):
        astra(torch.nn.Linear(2, 2), mesh=astra.mesh(data=4))
