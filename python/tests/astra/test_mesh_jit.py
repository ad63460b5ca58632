"""Functions under `@astra(mesh=...)`: calls of all ranks, on logical tensors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import astra
from astra import nn

ROOT = Path(__file__).resolve().parents[3]
PLAIN = {k: v for k, v in os.environ.items() if not re.match("ASTRA_(RANK|JOB|ENGINE)|OMPI_|PMI_|PMIX_|SLURM_|RANK$|WORLD_SIZE$", k)}

PROGRAM = """
import hashlib
import numpy as np
from astra import astra, nn
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


ATTENTION = """
import hashlib
import numpy as np
from astra import astra, nn
from astra_rt import ranks
world = ranks.init()

@astra{options}
def step(q, k, v):
    def loss(q, k, v):
        y = nn.attention(q, k, v, causal=True)
        return astra.mean(y ** 2), y
    (loss, y), g = astra.value_and_grad(loss, (0, 1, 2), has_aux=True)(q, k, v)
    return y, *g

draw = np.random.default_rng(0)
made = step(*(draw.standard_normal((2, 4, 32, 8), np.float32) for _ in range(3)))
if world.rank == 0:
    print(*(hashlib.sha256(np.asarray(t).tobytes()).hexdigest() for t in made))
    print(*(float(np.abs(np.asarray(t)).sum()) for t in made))
"""
TOKENS = '(mesh=astra.mesh(seq=4), shardings={"*": "(-, -, seq, -)"})'


def test_attention_of_cut_tokens_is_a_ring():
    def printed(ranks, options):
        command = [str(ROOT / "build/bin/astra-launch"), "-n", str(ranks), sys.executable, "-c", ATTENTION.format(options=options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=PLAIN)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.split()

    plain, alone = printed(1, ""), printed(1, TOKENS)
    assert all(printed(ranks, TOKENS) == alone for ranks in (2, 4))
    np.testing.assert_allclose([float(x) for x in plain[4:]], [float(x) for x in alone[4:]], rtol=1e-5)  # another order of sums

    def attend(q, k, v):
        return nn.attention(q, k, v, causal=True)

    lowered = astra.trace(attend, *[astra.spec((2, 4, 32, 8), "float32")] * 3).lower()
    text = lowered.with_mesh(astra.mesh(seq=4), {"*": "(-, -, seq, -)"}).as_text("sharding")
    assert text.count(" shift ") == 6 and not any(op in text for op in ("all_gather", "all_reduce", "all_to_all"))


SLICES = """
import hashlib
import numpy as np
from astra import astra
from astra_rt import ranks
world = ranks.init()

@astra{options}
def step(x):
    on = astra.concat([astra.zeros((9, 3)), x[:-9]])
    return x[:8] * x[8:16] + x[16:], on, x[::2]

made = step(np.random.default_rng(0).standard_normal((24, 3), np.float32))
if world.rank == 0:
    print(*(hashlib.sha256(np.asarray(t).tobytes()).hexdigest() for t in made))
"""


def test_slices_of_cut_rows_have_the_bytes_of_one_device():
    def printed(ranks, options):
        command = [str(ROOT / "build/bin/astra-launch"), "-n", str(ranks), sys.executable, "-c", SLICES.format(options=options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=PLAIN)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    plain = printed(1, "")
    assert all(printed(ranks, '(mesh=astra.mesh(data=4), shardings={"x": "(data, -)"})') == plain for ranks in (1, 2, 4))
