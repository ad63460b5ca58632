"""Meshes: what is cut, and bundles whose calls between shards are answered here, by all shards of one process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import astra
import astra_rt
from astra import losses, nn, optim
from mesh_ranks import exchange, mesh_of, run, tupled

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def engine():
    """Registers what a bundle calls."""
    names = []

    def take(compiled):
        for name in mesh_of(compiled.as_text("schedule")):
            names.append(name)
            astra_rt.register(name, lambda *x, name=name: tupled([exchange(name, np.asarray(v)) for v in x]), deterministic=True)
        return sorted(set(names))

    yield take
    for name in set(names):
        astra_rt.unregister(name)


def test_meshes():
    mesh = astra.mesh(data=4, model=2)
    assert str(mesh) == "data=4,model=2" and mesh.size == 8 and mesh == astra.mesh(data=4, model=2)
    assert repr(mesh) == "astra.mesh(data=4, model=2)"
    for size in (2.5, True, "2"):
        with pytest.raises(astra.ArgumentError, match="axis 'data' of a mesh is .*; expected a number of shards"):
            astra.mesh(data=size)
    with pytest.raises(astra.Error, match="0 microbatches; 1 to 2\\^20 are possible"):
        astra.mesh(stage=2).with_options(pipeline="stage,microbatches=0")
    with pytest.raises(astra.Error, match="axis 'data' has 0 shards"):
        astra.mesh(data=0)
    with pytest.raises(astra.ArgumentError, match=r"for each axis, or one ... for those left: there are 2, and \(data\) is given"):
        astra.shard(astra.zeros((2, 3)), "data")
    with pytest.raises(astra.ArgumentError, match=r"there are 2, and \(..., data, ...\) is given"):
        astra.shard(astra.zeros((2, 3)), ..., "data", ...)
    with pytest.raises(astra.ArgumentError, match=r"there are 0, and \(data, ...\) is given"):
        astra.shard(astra.zeros(()), "data", ...)
    with pytest.raises(astra.ArgumentError, match="found 3"):
        astra.shard(astra.zeros((2, 3)), 3, None)


def test_without_a_mesh_shard_changes_nothing():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(np.asarray(astra.shard(x, "data", None) + 1), x + 1)
    assert np.array_equal(np.asarray(astra.jit(lambda x: astra.shard(x, "data", None) * 2)(x)), x * 2)
    assert np.array_equal(np.asarray(astra.jit(lambda x: astra.shard(x, "data?", ...) * astra.shard(x[0, 1], "data?", ...))(x)), x)


def layer(x, w):
    h = astra.shard(x @ w, "data", None)
    return h / astra.sum(h * h, axis=0)


def test_a_program_of_one_shard():
    spec = astra.spec((8, 6), "float32"), astra.spec((6, 4), "float32")
    lowered = astra.trace(layer, *spec).lower()
    cut = lowered.with_mesh(astra.mesh(data=4), {"x": ("data", None)})
    text = cut.as_text("sharding")
    assert "x : f32[2, 6] shard (data, -)" in text and text.count("all_reduce") == 1
    assert cut.with_mesh(astra.mesh(data=4), {"x": ("data?", ...)}).as_text("sharding") == text
    assert lowered.with_mesh(astra.mesh(data=4), {"*": ("data?", ...)}).as_text("sharding") == text.replace("f32[6, 4])", "f32[6, 4] shard (-, -))")
    assert "shard" not in lowered.as_text("uop").replace("reshard", "")
    with pytest.raises(astra.Error, match="no parameter, state, input, output or named value matches"):
        lowered.with_mesh(astra.mesh(data=4), {"y*": ("data", None)})
    with pytest.raises(astra.Error, match="the mesh has no axis 'rows'"):
        lowered.with_mesh(astra.mesh(data=4), {"x": "(rows, -)"})


def by_evaluator(lowered, entry, inputs, states, dims=None):
    """What all shards give together by the reference evaluator, on whole tensors."""
    names = [name for name, _, _ in lowered.module.inputs(entry)]
    arrays = [np.array(v, order="C") for v in [*(inputs[n] for n in names), *states.values()]]
    given = [(str(v.dtype).replace("float", "f").replace("int", "i"), list(v.shape), (v.ctypes.data, v.nbytes)) for v in arrays]
    shard = astra._core.program_of_shard(lowered.module)
    outputs, after = shard.evaluate(entry, given[: len(inputs)], dims or {}, dict(zip(states, given[len(inputs) :])))
    return [data for _, _, data in outputs], {n: data for n, (_, _, data) in after}


def test_a_bundle_gives_what_the_evaluator_gives(engine):
    model = nn.Sequential(nn.Linear(6, 8, seed=1), astra.tanh, nn.Linear(8, 4, seed=2))
    example = {"x": np.zeros((1, 6), np.float32), "target": np.zeros((1,), np.int64)}
    compiled = astra.compile_training(model, losses.cross_entropy, optim.sgd(lr=0.1), example, batch=16, target="native", mesh=astra.mesh(data=4))
    engine(compiled)
    draw = np.random.default_rng(4)
    x, t = draw.standard_normal((8, 6), np.float32), draw.integers(0, 4, (8,))
    module = astra_rt.load(compiled.bundle)
    before = {n: np.asarray(v).copy() for n, v in module.state_dict().items()}
    made = module.train_step(x=x.reshape(4, 2, 6), target=t.reshape(4, 2))
    outputs, states = by_evaluator(compiled._lowered, "train_step", {"x": x, "target": t}, before)
    assert [np.asarray(v).tobytes() for v in made] == outputs
    assert {n: np.asarray(v).tobytes() for n, v in module.state_dict().items()} == states


def test_a_bundle_gives_the_tree_of_its_shards(engine):
    spec = astra.spec((8, 6), "float32"), astra.spec((6, 4), "float32")
    compiled = astra.trace(layer, *spec).lower().with_mesh(astra.mesh(data=4), {"x": ("data", None)}).compile("native")
    names = engine(compiled)
    assert names == ["astra.mesh.all_reduce/data=4/data/sum.one"]
    draw = np.random.default_rng(1)
    x, w = draw.standard_normal((8, 6), np.float32), draw.standard_normal((6, 4), np.float32)
    module = astra_rt.load(compiled.bundle)
    made = np.asarray(module.main(x.reshape(4, 2, 6), w)).reshape(8, 4)
    # The product splits no sum: the same as without a mesh; the sums of its squares are of two rows each, then a tree.
    h = np.asarray(astra.jit(lambda x, w: x @ w)(x, w))
    part = np.asarray(astra.jit(lambda h: astra.sum(h * h, axis=1))(h.reshape(4, 2, 4)))
    total = (part[0] + part[1]) + (part[2] + part[3])
    assert np.array_equal(made, np.asarray(astra.jit(lambda h, t: h / t)(h, total)))


def trained(bundle, rank, x, t, rows, shards):
    """Three steps of one rank, whose shards have these rows; its states."""
    module = astra_rt.load(bundle, dims={"shards": shards} if cut_states(bundle) else None)
    if b"shards_init" in bundle:
        module.shards_init()
    mine = slice(rank * shards * rows, (rank + 1) * shards * rows)
    for _ in range(3):
        loss = module.train_step(x=x[mine].reshape(shards, rows, -1), target=t[mine].reshape(shards, rows)).loss
    return float(loss), {n: np.asarray(v) for n, v in module.state_dict().items()}


@pytest.mark.parametrize("zero", ["", "states", "weights"])
def test_a_training_has_the_same_bytes_at_any_number_of_ranks(zero):
    model = nn.Sequential(nn.Linear(6, 8, seed=1), astra.tanh, nn.Linear(8, 4, seed=2))
    example = {"x": np.zeros((1, 6), np.float32), "target": np.zeros((1,), np.int64)}
    shardings = {"x": ("data", ...), "target": ("data", ...)}
    if zero == "states":  # what the optimizer keeps, a count among it
        shardings |= {"optimizer.*": ("data?", ...)}
    if zero == "weights":  # stored cut
        shardings |= {"*.{weight,bias}": "(data, ...) gathered"}
    compiled = astra.compile_training(model, losses.cross_entropy, optim.adamw(lr=0.1) if zero == "states" else optim.sgd(lr=0.1), example, batch=16,
                                      target="native", mesh=astra.mesh(data=4), shardings=shardings)  # fmt: skip
    draw = np.random.default_rng(3)
    x, t = draw.standard_normal((8, 6), np.float32), draw.integers(0, 4, (8,))
    names, cut, found = mesh_of(compiled.as_text("schedule")), cut_states(compiled.bundle), []
    assert {"": not cut, "states": cut and all(n.startswith("optimizer.") for n in cut), "weights": "0.weight" in cut}[zero], cut
    for ranks in (1, 2, 4) if zero else (1, 4):
        made = run(compiled.bundle, names, 4, ranks, trained, x, t, 2, 4 // ranks)
        assert len({loss for loss, _ in made}) == 1
        states = {}
        for name, first in made[0][1].items():
            assert name in cut or all(np.array_equal(s[name], first) for _, s in made)
            states[name] = np.concatenate([s[name] for _, s in made]) if name in cut else first
        found.append((made[0][0], {n: v.tobytes() for n, v in states.items()}))
    assert all(f == found[0] for f in found)


def cut_states(bundle):
    """The states that a bundle says are cut: lines of its asset astra.mesh."""
    lines = bundle[bundle.index(b"mesh\tdata=4\n") :].split(b"\n")
    return {line.split(b"\t")[2].decode() for line in lines[:64] if line.startswith(b"state\t")}


def test_a_training_is_cut_by_rows(engine):
    model = nn.Sequential(nn.Linear(6, 8, seed=1), astra.tanh, nn.Linear(8, 3, seed=2))
    example = {"x": np.zeros((1, 6), np.float32), "target": np.zeros((1,), np.int64)}
    given = dict(batch=16, target="native")
    plain = astra.compile_training(model, losses.cross_entropy, optim.sgd(lr=0.1), example, **given)
    cut = astra.compile_training(model, losses.cross_entropy, optim.sgd(lr=0.1), example, mesh=astra.mesh(data=4), **given)
    engine(cut)
    draw = np.random.default_rng(2)
    x, t = draw.standard_normal((8, 6), np.float32), draw.integers(0, 3, (8,))
    a, b = astra_rt.load(plain.bundle), astra_rt.load(cut.bundle)
    for _ in range(3):
        loss = float(a.train_step(x=x, target=t).loss)
        assert abs(float(b.train_step(x=x.reshape(4, 2, 6), target=t.reshape(4, 2)).loss) - loss) < 1e-5  # another order of sums
    with pytest.raises(astra_rt.Error):
        b.train_step(x=x[:6].reshape(2, 3, 6), target=t.reshape(2, 4))
    with pytest.raises(astra.ArgumentError, match="shardings are of a mesh"):
        astra.compile_training(model, losses.cross_entropy, optim.sgd(lr=0.1), example, shardings={"x": "(data, -)"}, **given)


def network(x, weights):
    """Layers in a scan."""
    return astra.scan(lambda x, w: (astra.tanh(x @ w) + x, None), x, weights)[0]


def test_how_shards_exchange_changes_no_bit(engine):
    mesh = astra.mesh(stage=4)
    n = astra.dim("n", 1, 64)
    specs = astra.spec((n, 6), "float32"), astra.spec((8, 6, 6), "float32")
    lowered = astra.trace(network, *specs).lower()
    x, w = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(((16, 6), (8, 6, 6))))
    plain = np.asarray(lowered.compile("native")(x, w))
    piped = lowered.with_mesh(mesh.with_options(pipeline="stage,microbatches=4"))
    assert "shift" in piped.as_text("sharding") and "weights : f32[2, 6, 6] shard (stage, -, -)" in piped.as_text("sharding")
    compiled = piped.compile("native")
    engine(compiled)
    module = astra_rt.load(compiled.bundle)
    assert np.array_equal(np.asarray(module.main(x, w.reshape(4, 2, 6, 6))), plain)
    (made,), _ = by_evaluator(piped, "main", {"x": x, "weights": w}, {}, {"n_shard": 4})
    assert made == plain.tobytes()


def piped_training(pipeline, **given):
    """A network whose layers are a scan, trained by recipes."""
    draw = np.random.default_rng(6)
    params = {"layers": draw.standard_normal((8, 6, 6), np.float32) / 4, "head": draw.standard_normal((6, 4), np.float32)}
    n = astra.dim("n", 1, 64)
    main = astra.entry(lambda params, x: network(x, params["layers"]) @ params["head"], x=astra.spec((n, 6), "float32"))
    lowered = astra.export({"main": main}, params=params, name="piped").lower()
    return lowered.with_training("cross_entropy", "adamw(lr=1e-2)", mesh=astra.mesh(stage=4).with_options(pipeline=pipeline), **given)


def test_layers_in_stages_that_read_what_is_repeated_for_each_row(engine):
    """A row of a weight, a learned number, a mask of columns; the number by which a mean divides."""

    def layer(h, w, p):
        h = (h - astra.mean(h, axis=-1, keepdims=True)) @ w * p["head"][0, 0] + p["head"][:, 0]
        return astra.where(astra.arange(6) > 2, astra.tanh(h), h)

    draw = np.random.default_rng(8)
    params = {"layers": draw.standard_normal((8, 6, 6), np.float32) / 4, "head": draw.standard_normal((6, 4), np.float32)}
    x, t = draw.standard_normal((16, 6), np.float32), draw.integers(0, 4, 16)
    n = astra.dim("n", 1, 64)
    main = astra.entry(lambda p, x: astra.scan(lambda h, w: (layer(h, w, p), None), x, p["layers"])[0] @ p["head"], x=astra.spec((n, 6), "float32"))
    lowered = astra.export({"main": main}, params=params).lower()
    plain = astra_rt.load(lowered.with_training("cross_entropy", "sgd(lr=1e-2)").compile("native").bundle).train_step(x=x, target=t).loss
    for schedule in ("gpipe", "1f1b"):
        mesh = astra.mesh(stage=4).with_options(pipeline=f"stage,microbatches=4,schedule={schedule}")
        trained = lowered.with_training("cross_entropy", "sgd(lr=1e-2)", mesh=mesh)
        compiled = trained.compile("native")
        engine(compiled)
        module = astra_rt.load(compiled.bundle, dims={"shards": 4})
        module.shards_init()
        before = {k: np.array(v).reshape(params[k].shape) for k, v in module.state_dict().items() if k in params}
        made = module.train_step(x=x, target=t)
        outputs, _ = by_evaluator(trained, "train_step", {"x": x, "target": t}, before, {"n_shard": 4})
        assert [np.asarray(v).tobytes() for v in made] == outputs
        if schedule == "gpipe":
            assert float(made.loss) == float(plain)
        else:
            np.testing.assert_allclose(float(made.loss), float(plain), rtol=1e-6)


def test_layers_in_stages_read_no_rows():
    n = astra.dim("n", 1, 64)
    specs = astra.spec((n, 6), "float32"), astra.spec((8, 6, 6), "float32")
    mesh = astra.mesh(stage=4).with_options(pipeline="stage,microbatches=4")

    def reading(read):
        return astra.trace(lambda x, w: astra.scan(lambda h, v: (h @ v + read(x), None), x, w)[0], *specs).lower()

    reading(lambda x: astra.sum(x, axis=0)).with_mesh(mesh)  # a sum of rows is none
    for read in (lambda x: x, lambda x: astra.cumsum(x, axis=0), lambda x: astra.expand_dims(astra.arange(x.shape[0]), 1)):
        with pytest.raises(astra.Error, match="layers read rows of the batch beside what they carry: "):
            reading(read).with_mesh(mesh)
    with pytest.raises(astra.Error, match="axis 'stage' of the mesh is one shard; a pipeline is of 2 or more: leave it out"):
        astra.trace(network, *specs).lower().with_mesh(astra.mesh(data=2, stage=1).with_options(pipeline="stage,microbatches=4"))


STEPS = """
import hashlib, sys
import numpy as np
from astra_rt import ranks
world = ranks.init(timeout=60)
model = world.load(sys.argv[1])
draw = np.random.default_rng(7)
for _ in range(3):
    loss = model.train_step(x=draw.standard_normal((16, 6), np.float32), target=draw.integers(0, 4, 16)).loss
states = model.state_dict()
if world.rank == 0:
    print(float(loss), hashlib.sha256(b"".join(np.asarray(states[n]).tobytes() for n in sorted(states))).hexdigest())
"""


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_training_in_stages(engine, tmp_path, schedule):
    lowered = piped_training(f"stage,microbatches=4,schedule={schedule}", shardings={"head*": "(-, ...)"})
    text = lowered.as_text("sharding")
    for state in ("layers", "layers.mean", "layers.squares"):
        assert f"state @{state} : f32[2, 6, 6] shard (stage, -, -)" in text
    assert text.count("shift") >= 2 and "all_gather" not in text  # forward, and backward in the gradient
    compiled = lowered.compile("native")
    draw = np.random.default_rng(7)
    x, t = draw.standard_normal((16, 6), np.float32), draw.integers(0, 4, 16)
    engine(compiled)
    module = astra_rt.load(compiled.bundle, dims={"shards": 4})
    module.shards_init()

    def logical():
        return {n: np.array(v).reshape(8, 6, 6) if n.startswith("layers") else np.array(v) for n, v in module.state_dict().items()}

    before = logical()
    made = module.train_step(x=x, target=t)
    outputs, states = by_evaluator(lowered, "train_step", {"x": x, "target": t}, before, {"n_shard": 4})
    assert [np.asarray(v).tobytes() for v in made] == outputs
    assert {n: v.tobytes() for n, v in logical().items()} == states
    path = tmp_path / "piped.astra"
    compiled.save(path)
    said = {launched(n, STEPS, path) for n in (1, 2, 4)}
    assert len(said) == 1
    plain = astra_rt.load(piped_training(None).compile("native").bundle)
    loss = float(plain.train_step(x=x, target=t).loss)
    if schedule == "gpipe":  # the loss of the first step is that without a pipeline: the forward pass has the same bits
        assert float(made.loss) == loss
    else:  # a sum over microbatches of sums over their rows
        np.testing.assert_allclose(float(made.loss), loss, rtol=1e-6)


def launched(ranks, program, *arguments):
    plain = {k: v for k, v in os.environ.items() if not re.match("ASTRA_(RANK|JOB|ENGINE)|OMPI_|PMI_|PMIX_|SLURM_|RANK$|WORLD_SIZE$", k)}
    command = [ROOT / "build/bin/astra-launch", "-n", ranks, sys.executable, "-c", program, *arguments]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, env=plain)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_trainings_by_recipes_that_are_none():
    n = astra.dim("n", 1, 64)
    lowered = astra.export({"main": astra.entry(lambda p, x: x @ p, astra.spec((n, 6), "float32"))}, params=np.ones((6, 4), np.float32)).lower()
    assert set(astra_rt.load(lowered.with_training("mse").compile("native").bundle).entries) >= {"main", "train_step", "eval"}
    for given, sentence in ((dict(loss="no"), "no loss 'no'"), (dict(loss="mse", optimizer="sgd(speed=1)"), "speed"), (dict(loss="mse", clip_norm=-1), "clip_norm is -1"),
                            (dict(loss="mse", frozen=["b*"]), "b\\*"), (dict(loss="mse", shardings={}), "shardings are of a mesh")):  # fmt: skip
        with pytest.raises(astra.Error, match=sentence):
            lowered.with_training(**given)
    with pytest.raises(astra.Error, match="no parameter to train"):
        astra.trace(lambda x: x * 2, astra.spec((n, 6), "float32")).lower().with_training("mse")


def test_buckets_and_overlap_are_those_of_astra_compile(engine):
    model = nn.Sequential(nn.Linear(6, 8, seed=1), astra.tanh, nn.Linear(8, 4, seed=2))
    example = {"x": np.zeros((1, 6), np.float32), "target": np.zeros((1,), np.int64)}
    draw = np.random.default_rng(4)
    x, t = draw.standard_normal((8, 6), np.float32), draw.integers(0, 4, (8,))
    plain, found, calls = astra.mesh(data=4), [], []
    for mesh in (plain, plain.with_options(bucket=0), plain.with_options(overlap=False), plain.with_options(bucket=100).with_options(overlap=False)):
        assert mesh == plain and mesh.size == 4  # the same shards
        compiled = astra.compile_training(model, losses.cross_entropy, optim.sgd(lr=0.1), example, batch=16, target="native", mesh=mesh)
        engine(compiled)
        text = compiled.as_text("schedule")
        calls.append((text.count("all_reduce"), "beside" in text))
        module = astra_rt.load(compiled.bundle)
        made = module.train_step(x=x.reshape(4, 2, 6), target=t.reshape(4, 2))
        found.append([np.asarray(v).tobytes() for v in [*made, *module.state_dict().values()]])
    assert all(f == found[0] for f in found)
    counts = [n for n, _ in calls]
    assert counts[0] == counts[2] < counts[3] < counts[1] and [b for _, b in calls] == [True, True, False, False]


@pytest.mark.parametrize("given, sentence", [
    (dict(pipeline="stage"), "'stage' is not AXIS,microbatches=N"),
    (dict(pipeline="stage,microbatches=4,schedule=2f2b"), "'schedule=2f2b' is neither schedule=gpipe nor schedule=1f1b"),
    (dict(bucket=-1), "bucket is -1; expected a number of bytes"),
    (dict(bucket=2.5), "bucket is 2.5; expected a number of bytes"),
    (dict(overlap=1), "overlap is 1; expected True or False"),
])  # fmt: skip
def test_options_that_are_none(given, sentence):
    with pytest.raises(astra.Error, match=sentence):
        astra.mesh(stage=4).with_options(**given)


def test_pipelines_that_are_none():
    n = astra.dim("n", 1, 64)
    specs = astra.spec((n, 6), "float32"), astra.spec((8, 6, 6), "float32")
    piped = astra.mesh(stage=4).with_options(pipeline="stage,microbatches=4")
    with pytest.raises(astra.Error, match="no entry has a scan over layers"):
        astra.trace(lambda x, w: x @ w[0], *specs).lower().with_mesh(piped)
    with pytest.raises(astra.Error, match="the mesh has no axis 'stage'"):
        astra.trace(network, *specs).lower().with_mesh(astra.mesh(data=4).with_options(pipeline="stage,microbatches=4"))

    def both(x, w):
        return network(x, w), astra.grad(lambda w: astra.sum(network(x, w)))(w)

    with pytest.raises(astra.Error, match="goes over the layers in another scan too, as a gradient does that has been taken already"):
        astra.trace(both, *specs).lower().with_mesh(piped)
    example = {"x": np.zeros((1, 6), np.float32), "target": np.zeros((1,), np.int64)}
    with pytest.raises(astra.UnsupportedError, match="compile_training takes gradients while it traces, .*: Lowered.with_training makes"):
        astra.compile_training(nn.Linear(6, 4, seed=1), losses.cross_entropy, optim.sgd(), example, batch=8, target="native", mesh=piped)


def slices(x):
    """Rows that are cut: thirds, one place on, every second one."""
    third = x.shape[0] // 3
    q, k, v = x[:third], x[third : 2 * third], x[2 * third :]
    on = astra.concat([astra.zeros((1, x.shape[1])), x[:-1]])
    return q * k + v, on, x[::2], x[1::2] + x[4 : 4 + x.shape[0] // 2]


def test_slices_of_a_cut_axis():
    spec = astra.spec((24, 3), "float32")
    lowered = astra.trace(slices, spec).lower()
    cut = lowered.with_mesh(astra.mesh(data=4), {"x": "(data, -)"})
    text = cut.as_text("sharding")
    assert " shift " in text and "all_gather" not in text and "all_reduce" not in text
    x = np.random.default_rng(0).standard_normal((24, 3)).astype(np.float32)
    made, _ = by_evaluator(cut, "main", {"x": x}, {})
    assert made == [np.asarray(t).tobytes() for t in slices(x)]
    with pytest.raises(astra.Error, match="its extent of 23 is not divided by the 4 shards"):
        astra.trace(lambda x: x[1:] * 2, spec).lower().with_mesh(astra.mesh(data=4), {"x": "(data, -)"}).as_text("sharding")
    with pytest.raises(astra.Error, match="reversing goes along axis 0"):
        astra.trace(lambda x: x[::-1], spec).lower().with_mesh(astra.mesh(data=4), {"x": "(data, -)"}).as_text("sharding")
