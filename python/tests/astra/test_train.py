"""The loop that trains, and data."""

import pathlib
import subprocess

import numpy as np
import pytest

import astra
from astra import data, nn, optim


class Net(nn.Module):
    def __init__(self):
        self.inner, self.norm, self.drop, self.outer = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3)

    def __call__(self, x):
        return self.outer(self.drop(astra.tanh(self.norm(self.inner(x)))))


def flowers():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 50)
    return (np.eye(3, 4, dtype=np.float32)[y] + rng.normal(0, 0.1, (50, 4)).astype(np.float32)), y


def run(folder, epochs, **options):
    x, y = flowers()
    return astra.train(Net(), astra.losses.cross_entropy, optim.adam(lr=0.02), (x[:40], y[:40]), epochs=epochs, batch=16, seed=7,
                       eval=(x[40:], y[40:]), metrics={"accuracy": astra.metrics.accuracy}, log=folder / "run.csv",
                       checkpoint=folder / "run.safetensors", **options)  # fmt: skip


def weights(result):
    return {n: t.tobytes() for n, t in result.model.state_dict().items()}


def test_a_training_learns_and_is_logged(tmp_path):
    result = run(tmp_path, 8)
    assert result.history[-1]["eval_accuracy"] == 1 and result.history[-1]["loss"] < result.history[0]["loss"] / 2
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0] == "step,epoch,loss,eval_loss,eval_accuracy" and len(lines) == 1 + 8 * (3 + 1)


def test_a_training_that_was_stopped_goes_on_to_the_same_bytes(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole = run(tmp_path / "a", 4)
    steps = []

    def stop(numbers, model):
        steps.append(numbers)
        if len(steps) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "b", 4, callback=stop, every=2)
    again = run(tmp_path / "b", 4, resume=True)
    assert weights(again) == weights(whole) and list(again.history) == list(whole.history)
    assert (tmp_path / "a/run.csv").read_bytes() == (tmp_path / "b/run.csv").read_bytes()
    assert (tmp_path / "a/run.safetensors").read_bytes() == (tmp_path / "b/run.safetensors").read_bytes()
    with pytest.raises(astra.ArgumentError, match="batch 16"):
        x, y = flowers()
        astra.train(Net(), astra.losses.cross_entropy, optim.adam(), (x[:40], y[:40]), epochs=1, batch=8, seed=7,
                    checkpoint=tmp_path / "b/run.safetensors", resume=True)  # fmt: skip


def test_an_early_stop_is_the_same_after_a_resume(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    stop = astra.EarlyStop("eval_loss", patience=2, least=0.05)
    whole = run(tmp_path / "a", 50, early_stop=stop)
    run(tmp_path / "b", len(whole.history) - 1, early_stop=stop)
    again = run(tmp_path / "b", 50, early_stop=stop, resume=True)
    assert weights(again) == weights(whole) and again.stopped == whole.stopped and len(again.history) == len(whole.history)
    assert len(run(tmp_path / "b", 60, early_stop=stop, resume=True).history) == len(whole.history)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    run(tmp_path, 1)
    x, y = flowers()
    for optimizer, data_ in ((optim.adam(lr=0.5), (x[:40], y[:40])), (optim.adam(lr=0.02), (x[:40] + 1, y[:40]))):
        with pytest.raises(astra.ArgumentError, match="would not give the same bytes"):
            astra.train(Net(), astra.losses.cross_entropy, optimizer, data_, epochs=2, batch=16, seed=7,
                        checkpoint=tmp_path / "run.safetensors", resume=True)  # fmt: skip


def test_early_stop_gives_the_best(tmp_path):
    result = run(tmp_path, 50, early_stop=astra.EarlyStop("eval_loss", patience=2, least=0.05))
    assert "eval_loss" in result.stopped and len(result.history) < 50


def test_a_loss_that_is_no_number_is_an_error():
    x, y = flowers()
    with pytest.raises(FloatingPointError, match="step 1"):
        astra.train(Net(), lambda p, t: (p * float("nan")).sum(), optim.sgd(), (x, y), epochs=1, batch=16)


def test_wrong_data():
    x, y = flowers()
    with pytest.raises(astra.ShapeError, match="50 rows"):
        data.Dataset(x[:49], y)
    with pytest.raises(astra.ArgumentError, match="rows"):
        astra.train(Net(), astra.losses.mse, optim.sgd(), (x[:0], y[:0]), epochs=1, batch=4)
    with pytest.raises(astra.ArgumentError, match="row 3 is 9: there are 3 classes"):
        astra.train(Net(), astra.losses.cross_entropy, optim.sgd(), (x, np.where(np.arange(50) == 3, 9, y)), epochs=1, batch=4)
    with pytest.raises(astra.ArgumentError, match="target"):
        astra.train(Net(), astra.losses.mse, optim.sgd(), {"x": x}, epochs=1, batch=4)


def test_batches():
    d = data.Dataset(x=np.arange(10), target=np.arange(10) * 2)
    first = [b["x"].tolist() for b in d.batches(4, seed=1, epoch=1)]
    assert sorted(sum(first, [])) == list(range(10)) and [len(b) for b in first] == [4, 4, 2]
    assert first == [b["x"].tolist() for b in d.batches(4, seed=1, epoch=1, prefetch=0)]
    assert first != [b["x"].tolist() for b in d.batches(4, seed=1, epoch=2)]
    assert first[1:] == [b["x"].tolist() for b in d.batches(4, seed=1, epoch=1, begin=1)]
    train, test = d.split(0.7, 0.3)
    assert len(train) == 7 and sorted([*train.arrays[0], *test.arrays[0]]) == list(range(10))

    def wrong(batch, number):
        raise RuntimeError("from the thread")

    with pytest.raises(RuntimeError, match="from the thread"):
        list(d.batches(4, augment=wrong))


def test_the_order_is_that_of_astra_train():
    """Fisher and Yates with draws of randint in [0, rows - i) of N13, key (seed, 2^31 + epoch)."""
    from astra import _core

    words = np.frombuffer(_core.random_words(5, 0x80000000 + 3, 20), np.uint32).tolist()
    order = list(range(20))
    for i in range(19):
        j = i + (words[i] * (20 - i) >> 32)
        order[i], order[j] = order[j], order[i]
    assert data.order_of(5, 3, 20).tolist() == order


def test_files(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4.5\n")
    assert data.load(tmp_path / "t.csv")["b"].tolist() == [2, 4.5]
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n")
    with pytest.raises(astra.ArgumentError, match="line 2, column 'b'"):
        data.load(tmp_path / "bad.csv")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    with pytest.raises(astra.ArgumentError, match="one name: a"):
        data.load(tmp_path / "twice.csv")
    np.save(tmp_path / "a.npy", np.arange(3))
    assert data.load(tmp_path / "a.npy").tolist() == [0, 1, 2]
    with pytest.raises(astra.ArgumentError, match=".parquet"):
        data.load(tmp_path / "x.parquet")


def test_text():
    text = data.Text("hello world")
    assert text.decode(text.encode("low")) == "low"
    x, y = text.windows(4, 1)[0]
    assert text.decode(x) == "hell" and text.decode(y) == "ello"
    with pytest.raises(astra.ArgumentError, match="z"):
        text.encode("z")
    assert data.Text("é", by="bytes").numbers.tolist() == [195, 169]


def test_changes():
    assert data.one_hot([1, 0], 2).tolist() == [[0, 1], [1, 0]]
    normal = data.Normalizer(np.array([[1.0, 5], [3, 5]]))
    assert normal([[1.0, 5.0]]).tolist() == [[-1, 0]] and normal.inverse([[-1, 0]]).tolist() == [[1, 5]]
    pictures = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4)
    assert data.random_flip(pictures, 1, 2).tobytes() == data.random_flip(pictures, 1, 2).tobytes()
    assert data.random_crop(pictures, 1, 1, 2).shape == pictures.shape


def test_a_training_of_python_is_run_by_astra_train(tmp_path):
    """The bundle has the entries that the program calls: the weights are those of the loop in Python."""
    x, y = flowers()
    programs = pathlib.Path(astra.__file__).parents[2] / "bin"
    options = (Net(), astra.losses.cross_entropy, optim.chain(optim.clip_by_global_norm(1.0), optim.adam(lr=0.02)))
    astra.compile_training(*options, {"x": x[:1], "target": y[:1]}, batch=16, seed=7, target="native").save(tmp_path / "net.astra")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    subprocess.run([programs / "astra-train", "net.astra", "--epochs=2", "--batch=16", "--seed=7", "--out=w.safetensors",
                    "--data=x=x.npy,target=y.npy"], cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    result = astra.train(*options, (x, y), epochs=2, batch=16, seed=7)
    read = data.load(tmp_path / "w.safetensors")
    assert {n: a.tobytes() for n, a in read.items()} == {n: t.tobytes() for n, t in result.model.state_dict().items() if n in read}
    assert {"inner.weight", "norm.running_mean"} <= set(read)


def test_a_training_under_a_matrix_unit():
    x, y = (a[:40] for a in flowers())
    optimizer = optim.scaled(optim.chain(optim.clip_by_global_norm(1.0), optim.adam(lr=0.02)), "dynamic(scale=1024, interval=2)")
    program = astra.compile_training(Net(), astra.losses.cross_entropy, optimizer, {"x": x[:1], "target": y[:1]}, batch=16,
                                     numerics="device:hopper16:f16", target="native")  # fmt: skip
    for at in (0, 16):
        astra.verify(program, x=x[at : at + 16], target=y[at : at + 16], entry="train_step")
    kept = program.module.state_dict()
    (factor,) = [v for n, v in kept.items() if n.endswith("loss_scale.factor")]
    assert float(factor) == 2048
    options = {"epochs": 3, "batch": 16, "seed": 7}
    strict = astra.train(Net(), astra.losses.cross_entropy, optim.adam(lr=0.02), (x, y), **options)
    narrow = [astra.train(Net(), astra.losses.cross_entropy, optim.adam(lr=0.02), (x, y), numerics="device:hopper16", **options) for _ in "ab"]
    assert weights(narrow[0]) == weights(narrow[1]) != weights(strict)
    assert abs(narrow[0].history[-1]["loss"] - strict.history[-1]["loss"]) < 0.05
    with pytest.raises(astra.ArgumentError, match="matrix unit hopper16 does not take operands of 'tf32'"):
        astra.train(Net(), astra.losses.cross_entropy, optim.adam(), (x, y), numerics="device:hopper16:tf32", **options)


def test_a_scale_of_the_loss_is_divided_out():
    x, y = (a[:40] for a in flowers())
    options = {"epochs": 2, "batch": 16, "seed": 7}

    def trained(optimizer):
        return weights(astra.train(Net(), astra.losses.cross_entropy, optimizer, (x, y), **options))

    plain = trained(optim.sgd(lr=0.1))
    assert trained(optim.scaled(optim.sgd(lr=0.1), "static(scale=1024)")) == plain
    assert trained(optim.scaled(optim.sgd(lr=0.1), "none")) == plain
    assert trained(optim.scaled(optim.sgd(lr=0.1), "static(scale=3)")) != plain
    still = trained(optim.scaled(optim.sgd(lr=0.1), "dynamic(scale=1e30, most=1e30, backoff=0.999)"))
    assert still != plain  # products of f32 take 1e30: nothing is left out
    for wrong, sentence in (("dynamic(scale=0)", "'scale' is '0'"), ("half", "there is no loss scale 'half'; there are: none, static, dynamic")):
        with pytest.raises(astra.ArgumentError, match=sentence):
            optim.scaled(optim.sgd(), wrong)
    for wrap in (lambda o: optim.chain(optim.clip_by_value(1.0), o), lambda o: optim.accumulate(o, 2), optim.ema, optim.scaled):
        with pytest.raises(astra.ArgumentError, match="a loss scale is the outermost of all"):
            wrap(optim.scaled(optim.sgd()))


def test_a_step_with_an_infinite_gradient_is_left_out():
    x = np.array([[1.0, 2.0]], np.float32)

    optimizer = optim.scaled(optim.adam(lr=0.1), "dynamic(scale=65536, backoff=0.25)")
    program = astra.compile_training(nn.Linear(2, 1, bias=False), lambda p, t: (p * t).sum(), optimizer, {"x": x, "target": x[:, :1]}, batch=1,
                                     target="native")  # fmt: skip
    before = {n: v.tobytes() for n, v in program.module.state_dict().items()}
    program.module["train_step"](x=x, target=np.array([[np.inf]], np.float32))
    after = {n: v.tobytes() for n, v in program.module.state_dict().items()}
    changed = {n for n in before if before[n] != after[n]}
    assert changed == {"optimizer.loss_scale.factor", "train.step"}
    assert float(program.module.state_dict()["optimizer.loss_scale.factor"]) == 16384
    program.module["train_step"](x=x, target=np.array([[1.0]], np.float32))
    assert program.module.state_dict()["weight"].tobytes() != before["weight"]
