"""Ranks from Python: one bundle by processes that a launcher starts, the bits of one process."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import BUILD, ROOT

PLAIN = {k: v for k, v in os.environ.items() if not re.match("ASTRA_(RANK|JOB|ENGINE)|OMPI_|PMI_|PMIX_|SLURM_|RANK$|WORLD_SIZE$", k)}


@pytest.fixture(scope="session")
def layers(tmp_path_factory):
    """layers(name) is a compiled bundle: "layer" has whole states, "mlp" some that are cut."""
    folder, made = tmp_path_factory.mktemp("meshes"), {}
    mlp = ["--train", "--loss=cross_entropy", "--optimizer=adamw(lr=1e-2)", "--mesh=data=4", "--shard", "x=(data, -)", "--shard", "target=(data)",
           "--shard", "*.weight.mean=(data, -)", "--shard", "*.weight.squares=(data, -)"]  # fmt: skip
    rows = {"layer": ["examples/mesh/layer.uop"], "mlp": ["test/ranks/mlp.uop", *mlp]}

    def path(name):
        if name not in made:
            made[name] = str(folder / f"{name}.astra")
            source, *options = rows[name]
            subprocess.run([BUILD / "bin/astra-compile", ROOT / source, "-o", made[name], "--target=cpu:x86-64-v3", "--quiet", *options], check=True)
        return made[name]

    return path


def launch(ranks, program, *arguments, code=0, env=None, launcher=None):
    """What a program prints that is run as so many ranks; its errors where it is meant to fail."""
    command = [*(launcher or [BUILD / "bin/astra-launch", "-n", str(ranks)]), sys.executable, "-c", program, *arguments]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=200, env={**PLAIN, **(env or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if not code else done.stderr


TRAIN = """
import sys, hashlib
import numpy as np
from astra_rt import ranks
world = ranks.init(timeout=60)
model = world.load(sys.argv[1])
draw = np.random.default_rng(1)
x, t = draw.standard_normal((16, 16), np.float32), draw.integers(0, 4, 16)
model.init(np.uint32(3))
for _ in range(3):
    loss, rate = model.train_step(x, target=t)
assert model.main(x).shape == (16, 4)
states = model.state_dict()
assert states["first.weight.mean"].shape == (16, 32) and model.local.get_state("first.weight.mean").shape == (model.local_shards, 4, 32)
everything = hashlib.sha256(b"".join(np.asarray(states[n]).tobytes() for n in sorted(states)) + np.asarray(model.main(x)).tobytes()).hexdigest()
model.save_states(sys.argv[2])
model.reset()
assert not np.asarray(model.state_dict()["first.weight.mean"]).any()
model.load_states(sys.argv[2])
model.train_step(x, t)
after = hashlib.sha256(np.asarray(model.state_dict()["first.weight"]).tobytes()).hexdigest()
assert world.sum(np.int64([world.rank, 1])).tolist() == [world.size * (world.size - 1) // 2, world.size]
assert world.gather(b"x" * world.rank) == [b"x" * r for r in range(world.size)]
assert (ranks.rank(), ranks.size()) == (world.rank, world.size) and ranks.init() is world
if world.rank == 0:
    print(float(loss), everything, after)
"""


def test_a_training_has_the_same_bits_at_any_number_of_ranks(layers, tmp_path):
    said = {launch(n, TRAIN, layers("mlp"), tmp_path / f"{n}.safetensors") for n in (1, 2, 4)}
    assert len(said) == 1
    assert len({(tmp_path / f"{n}.safetensors").read_bytes() for n in (1, 2, 4)}) == 1


def test_under_other_launchers(layers, tmp_path):
    import shutil

    one = launch(1, TRAIN, layers("mlp"), tmp_path / "1.safetensors")
    if shutil.which("mpirun.openmpi"):
        row = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        assert launch(2, TRAIN, layers("mlp"), tmp_path / "2.safetensors", launcher=row, env={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}) == one
    processes = []
    for r in range(2):  # torchrun's variables
        env = {**PLAIN, "RANK": str(r), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": str(20000 + os.getpid() % 20000)}
        command = [sys.executable, "-c", TRAIN, layers("mlp"), str(tmp_path / "3.safetensors")]
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    assert "".join(p.communicate(timeout=200)[0] for p in processes) == one


def test_alone_in_this_process_and_after_leaving(layers):
    from astra_rt import ClosedError, Error, NotFoundError, ShapeError, ranks

    with pytest.raises(ClosedError, match="call astra_rt.ranks.init first"):
        ranks.rank()
    with ranks.init() as world:
        assert (world.rank, world.size, world.engine) == (0, 1, "alone")
        model = world.load(layers("layer"))
        assert (model.axes, model.shards, model.local_shards) == ("data=4", 4, 4) and "data=4: 4 of 4 shards" in repr(model)
        assert [str(i) for i in model.step.inputs] == ["x: f32[4..64, 4]", "y: f32[4..64, 1]"]
        x, y = np.ones((8, 4), np.float32), np.ones((8, 1), np.float32)
        first = float(model.step(x, y))
        assert first == 8.0 and float(model(x=x, y=y)) < first  # the only entry
        with pytest.raises(ShapeError, match="input x has shape .6, 4., which the mesh .data=4. does not cut into .4, 1. equal parts"):
            model.step(x[:6], y[:6])
        with pytest.raises(TypeError, match="dtype f64"):
            model.step(x.astype(np.float64), y)
        with pytest.raises(TypeError, match="module.local"):
            model.step(x, y, out=np.zeros((), np.float32))
        with pytest.raises(NotFoundError, match="no entry 'stop'"):
            model["stop"]
        with pytest.raises(Error, match="index of several files"):
            model.save_states("a.safetensors.index.json")
        assert world.counters["collectives"] > 0
    with pytest.raises(ClosedError, match="has left the job"):
        model.local["step"](x.reshape(4, 2, 4), y.reshape(4, 2, 1))
    with pytest.raises(ClosedError):
        model.state_dict()


def test_what_is_refused(layers):
    said = launch(3, "import sys; from astra_rt import ranks; ranks.init().load(sys.argv[1])", layers("layer"), code=1)
    assert "3 ranks do not divide the 4 shards of the bundle's mesh data=4" in said
    said = launch(2, "import sys; from astra_rt import ranks; w = ranks.init(); w.load(sys.argv[1 + w.rank])", layers("layer"), layers("mlp"), code=1)
    assert re.search("rank [01] has another bundle than rank [01]", said)
    said = launch(1, "from astra_rt import ranks; ranks.init('tcp')", code=1)
    assert "there is no engine 'tcp'" in said
    lost = """
from astra_rt import ranks
import astra_rt, os
world = ranks.init(timeout=20)
world.barrier()
if world.rank == 1:
    os._exit(0)
try:
    world.barrier()
    world.barrier()
except astra_rt.Error as error:
    print(error.status)
"""
    assert launch(2, lost) == "ASTRA_PEER_LOST\n"


def test_ranks_that_are_given_something_else(layers):
    """Refused on all ranks, by the name of what differs, before anything is computed with it."""
    program = """
import sys
import numpy as np
import astra_rt
from astra_rt import ranks
world = ranks.init(timeout=20)
odd = world.rank == 1
ones = np.ones((16, 16), np.float32)
try:
    model = world.load(sys.argv[1], dims=None)
    if sys.argv[2] == "states":
        states = {n: np.asarray(t) for n, t in model.state_dict().items()}
        model.load_state_dict({**states, "first.bias": states["first.bias"] + 1} if odd else states)
    if sys.argv[2] == "values":
        model.train_step(ones * (1 + odd), np.zeros(16, np.int64))
    if sys.argv[2] == "rows":
        model.train_step(x=ones[: 16 - 8 * odd], target=np.zeros(16 - 8 * odd, np.int64))
    if sys.argv[2] == "seed":
        model.init(np.uint32(world.rank))
    if sys.argv[2] == "entry":
        model.main(ones) if odd else model.train_step(ones, np.zeros(16, np.int64))
    if sys.argv[2] == "own":
        world.require_same({"option": str(world.rank // 2)})
    if sys.argv[2] == "none":
        model.main(ones)
        sys.stdout.write(f"{model.main(ones * (1 + odd)).shape}\\n")  # later calls are not compared
except astra_rt.Error as error:
    sys.stdout.write(f"{world.rank} {error.status} {error}\\n")  # at once: ranks share the pipe
"""
    rows = {"states": "state first.bias", "values": "input x of train_step", "rows": "input x of train_step", "seed": "input seed of init", "entry": "entry"}
    for what, name in rows.items():
        said = sorted(launch(2, program, layers("mlp"), what).splitlines())
        assert said == [f"{r} ASTRA_PEER_DIFFERS rank 1 was given another {name} than rank 0: give all ranks the same" for r in (0, 1)]
    said = sorted(launch(4, program, layers("mlp"), "own").splitlines())
    assert said == [f"{r} ASTRA_PEER_DIFFERS ranks 2, 3 were given another option than rank 0: give all ranks the same" for r in range(4)]
    assert launch(2, program, layers("mlp"), "none") == "(16, 4)\n" * 2


def test_what_require_same_takes():
    """A sentence that names the argument, before anything is exchanged: on one rank too."""
    program = """
import numpy as np
from astra_rt import ranks
world = ranks.init()
for given in ({"lr": 0.1}, {"lr": "0.1", "w": np.ones(2)}, {"lr": None}, {3: "x"}, [("lr", "0.1")], "lr"):
    try:
        world.require_same(given)
        print("taken")
    except TypeError as error:
        print(error)
world.require_same({"lr": "0.1"})
"""
    assert launch(1, program).splitlines() == [
        "require_same takes texts, and 'lr' is float: give its str(), or astra_rt.hash of an array",
        "require_same takes texts, and 'w' is ndarray: give its str(), or astra_rt.hash of an array",
        "require_same takes texts, and 'lr' is NoneType: give its str(), or astra_rt.hash of an array",
        "require_same takes texts by names that are str, and 3 is int",
        "require_same takes a dict of texts, such as {'lr': '0.1'}, and not list",
        "require_same takes a dict of texts, such as {'lr': '0.1'}, and not str",
    ]


def test_an_index_of_several_files(layers, tmp_path):
    """What astra-train's ranks have written is read here, whole."""
    import astra_rt
    from astra_rt import _safetensors

    np.save(tmp_path / "x.npy", np.ones((8, 16), np.float32))
    np.save(tmp_path / "t.npy", np.arange(8) % 4)
    for name in ("a.safetensors.index.json", "a.safetensors"):
        subprocess.run([BUILD / "bin/astra-launch", "-n", "2", BUILD / "bin/astra-train", layers("mlp"), "--data", "x=x.npy,target=t.npy", "--batch", "8",
                        "--epochs", "2", "--init", "--out", "w.safetensors", "--checkpoint-every", "1", "--checkpoint", name, "--quiet"],
                       check=True, cwd=tmp_path, env=PLAIN)  # fmt: skip
    many, one = (_safetensors.read(str(tmp_path / n)) for n in ("a.safetensors.index.json", "a.safetensors"))
    assert {n: np.asarray(t).tobytes() for n, t in many.items()} == {n: np.asarray(t).tobytes() for n, t in one.items()}
    text = (tmp_path / "a.safetensors.index.json").read_text()
    for wrong, sentence in ((text.replace('"step": "', '"step": "../'), "no index that says"), (text.replace('"step":', '"other":'), "'step' is in a-"),
                            (text.replace('"weight_map"', '"map"'), "no index")):  # fmt: skip
        (tmp_path / "b.safetensors.index.json").write_text(wrong)
        with pytest.raises(astra_rt.Error, match=sentence):
            _safetensors.read(str(tmp_path / "b.safetensors.index.json"))


def test_the_example_goes_on_as_other_ranks(layers, tmp_path):
    program = (ROOT / "examples/mesh/train.py").read_text()
    whole = {launch(n, program, layers("layer"), "--states", tmp_path / f"{n}.safetensors", "--steps", 40) for n in (1, 4)}
    assert len(whole) == 1 and "step 40, loss" in next(iter(whole))
    again = {launch(n, program, layers("layer"), "--states", tmp_path / "4.safetensors", "--steps", 10) for n in (2, 1)}
    assert len(again) == 1 and next(iter(again)).startswith("w ") and not next(iter(again)) in next(iter(whole))
