"""Calls: what goes in, what comes out, what is refused and how."""

import array
import gc
import inspect

import astra_rt
import numpy as np
import pytest

X = np.arange(16, dtype=np.float32).reshape(4, 4)
W = np.array([1, 2, 3, 4], np.float32)


def test_values_by_place_and_by_name(load):
    m = load("steps")
    for y in (m(X), m(x=X), m.main(X), m["main"](x=X), m.entries["main"](X)):
        assert isinstance(y, astra_rt.Tensor)
        assert y.dtype == "f32" and y.shape == (4, 4)
        assert y.numpy().tobytes() == (X * W).tobytes()


def test_several_outputs_have_names(load):
    m = load("steps")
    r = m.train_step(X[:1], 2.0)
    loss, seen = r
    assert float(loss) == 2 + 2 * X[0].sum() and int(seen) == 1
    assert r.loss is loss and r["seen"] is seen and r[1] is seen and r.keys() == ("loss", "seen")
    assert r.asdict() == {"loss": loss, "seen": seen}
    with pytest.raises(KeyError, match="there is no output 'x'; the outputs are loss, seen"):
        r["x"]
    with pytest.raises(AttributeError, match="there is no output 'x'"):
        r.x


def test_an_entry_without_outputs_gives_none(load):
    m = load("equations")
    assert m.init(2.5) is None
    assert m.get_state("mean").tolist() == [2.5] * 8


def test_host_dims_are_keywords(load):
    m = load("steps")
    x = np.arange(8, dtype=np.float32)
    assert m.first(x, k=3).tolist() == [0, 1, 2]
    assert m.first(x).tolist() == [0, 1, 2]  # it stays
    m.set_dim("k", 5)
    assert m.first(x).shape == (5,)
    assert m.first(x, k=8).shape == (8,)
    with pytest.raises(astra_rt.ShapeError, match=r"dim k is 9; it must be in 1 \.\. 8"):
        m.first(x, k=9)
    assert m.first(x).shape == (8,)
    with pytest.raises(astra_rt.ArgumentError, match="k"):
        load("steps").first(x)


def test_sizes_that_the_data_decides(load):
    m = load("compact")
    x = np.arange(60, dtype=np.float32).reshape(10, 6) - 30
    kept, total, count = m(x)
    wanted = x[x[:, 0] > 0]
    assert kept.numpy().tobytes() == wanted.tobytes() and kept.shape == wanted.shape and int(count) == len(wanted)
    assert total.tolist() == wanted.sum(0).tolist()
    assert m(x[:0]).kept.shape == (0, 6)


def test_inputs_of_many_kinds(load):
    m = load("steps")
    wanted = (X * W).tobytes()
    flat = array.array("f", X.ravel().tolist())
    for given in (X, X.tolist(), X.T.copy().T, X[::-1][::-1], np.asfortranarray(X), X.astype(">f4"), memoryview(X),
                  memoryview(flat).cast("B").cast("f", (4, 4)), astra_rt.tensor(X), m(X / W), tuple(map(tuple, X))):  # fmt: skip
        assert m(given).tobytes() in (wanted, (X / W * W).tobytes())
    wide = np.zeros((4, 8), np.float32)
    wide[:, ::2] = X
    assert m(wide[:, ::2]).tobytes() == wanted
    unaligned = np.frombuffer(b"." + X.tobytes(), np.float32, offset=1).reshape(4, 4)
    assert m(unaligned).tobytes() == wanted

    class Array:
        def __array__(self, dtype=None, copy=None):
            return X

    assert m(Array()).tobytes() == wanted


def test_memory_of_arrays_is_used_as_it_is(load, monkeypatch):
    m = load("steps")
    monkeypatch.setattr(astra_rt._convert, "as_input", None)

    def refuse(*_):
        raise AssertionError("converted")

    astra_rt._rt.set_converter(refuse)
    try:
        wide = np.zeros((4, 8), np.float32)
        wide[:, ::2] = X
        for given in (X, X[1:3], m(X), X.T, X[::-1], wide[:, ::2], np.broadcast_to(X[0], (4, 4))):
            assert m(given).tobytes() == (given * W).tobytes()
        with pytest.raises(AssertionError, match="converted"):
            m(X.astype(">f4"))
    finally:
        monkeypatch.undo()
        astra_rt._rt.set_converter(astra_rt._convert.as_input)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda m: m(), TypeError, r"main\(\) misses input 'x'; its inputs are: x: f32"),
        (lambda m: m(X, X), TypeError, r"main\(\) takes 1 inputs \(x: f32\) and 2 were given"),
        (lambda m: m(X, x=X), TypeError, r"main\(\) was given input 'x' twice"),
        (lambda m: m(X, y=X), TypeError, r"main\(\) has no input or host dim 'y'; its inputs are: x: f32"),
        (lambda m: m(X.astype("d")), TypeError, "input x has dtype f64; it must be f32"),
        (lambda m: m(X.astype(int)), TypeError, "input x has dtype i64; it must be f32"),
        (lambda m: m(X.astype("M8[s]")), TypeError, r"input x has dtype datetime64\[s\]; it must be f32"),
        (lambda m: m(X.astype(object)), TypeError, "input x has dtype object; it must be f32"),
        (lambda m: m("text"), TypeError, "input x is of type str; give an array"),
        (lambda m: m(object()), TypeError, "input x is of type object; give an array"),
        (lambda m: m(None), TypeError, "input x is of type NoneType"),
        (lambda m: m([["a"]]), TypeError, "no numbers"),
        (lambda m: m([[1, 2], [3]]), ValueError, "input x cannot be made an array"),
        (lambda m: m([[1e300] * 4]), ValueError, "input x has numbers outside of f32"),
        (lambda m: m([[1j] * 4]), TypeError, "input x has dtype complex128"),
        (lambda m: m(X[0]), ValueError, "input x has 1 dims; it must have 2"),
        (lambda m: m(X[:, :3]), ValueError, "axis 1 of input x has 3 elements; it must have 4"),
        (lambda m: m(np.zeros((17, 4), "f")), ValueError, r"dim n is 17; it must be in 1 \.\. 16"),
        (lambda m: m(np.zeros((0, 4), "f")), ValueError, r"dim n is 0; it must be in 1 \.\. 16"),
        (lambda m: m(np.zeros((1,) * 17 + (4,), "f")), (TypeError, ValueError), "input x"),
        (lambda m: m.first(np.zeros(8, "f"), k="3"), TypeError, "int"),
        (lambda m: m.first(np.zeros(8, "f"), k=1 << 70), OverflowError, "int"),
        (lambda m: m(**{1: X}), TypeError, "keywords must be strings"),
        (lambda m: m.main(**{1: X}), TypeError, "keywords must be strings"),
        (lambda m: m.set_dim("\u00e9" * 40, 1), LookupError, "no dim"),
        (lambda m: m.set_dim("\udc80", 1), ValueError, "surrogate"),
        (lambda m: m["nope"], LookupError, "there is no entry 'nope'; the entries are 'main', 'train_step', 'first'"),
        (lambda m: m.nope, AttributeError, "Module has no attribute or entry 'nope'"),
        (lambda m: m.set_dim("z", 1), LookupError, "no dim 'z'"),
    ],
)
def test_refusals(load, call, error, sentence):
    m = load("steps")
    with pytest.raises(error, match=sentence):
        call(m)
    assert m(X).tobytes() == (X * W).tobytes()


def test_statuses_and_equations(load):
    m = load("equations")
    with pytest.raises(astra_rt.ShapeError) as info:
        m(np.zeros((3, 8), "f"), np.zeros((1, 8), "f"))
    assert info.value.status == "ASTRA_EQUATION" and isinstance(info.value, (astra_rt.Error, ValueError))


def test_exceptions_of_the_callers_code_pass_through(load):
    class Bad:
        def __dlpack__(self, **_):
            raise ZeroDivisionError("mine")

    m = load("steps")
    with pytest.raises(ZeroDivisionError, match="mine"):
        m(Bad())
    assert m(X).shape == (4, 4)


def test_an_argument_may_call_the_entry_itself(load):
    m = load("steps")

    class Nested:
        def __array__(self, dtype=None, copy=None):
            return m(X).numpy()

    assert m(Nested()).tobytes() == (X * W * W).tobytes()


def test_what_it_says_of_itself(load):
    m = load("steps")
    assert list(m.entries) == ["main", "train_step", "first"]
    assert [str(i) for i in m.train_step.inputs] == ["x: f32[1..16, 4]", "rate: f32"]
    assert [str(o) for o in m.train_step.outputs] == ["loss: f32", "seen: i64"]
    assert m.train_step.states == ("total", "count") and m.main.states == ()
    assert m.inputs[0].lower == (1, 4) and m.inputs[0].upper == (16, 4) and not m.inputs[0].is_constant
    assert [str(d) for d in m.dims] == ["n in 1..16", "k in 1..8"] and [d.is_host for d in m.dims] == [False, True]
    assert [str(s) for s in m.states] == ["total: f32[4]", "count: i64"] and [p.name for p in m.params] == ["w"]
    assert m.name == "steps" and m.target == "cpu:x86-64-v3" and m.contract == "astra-num/1" and m.device == "cpu"
    assert [t.name for t in m.targets] == ["cpu:x86-64-v3"] and m.targets[0].lacks is None
    assert "train_step(x: f32[1..16, 4], rate: f32) -> (loss: f32, seen: i64)" in repr(m)
    assert repr(m.main) == "<astra_rt.Entry main(x: f32[1..16, 4]) -> (y: f32[1..16, 4])>" and m.main.name == "main"
    assert "train_step" in dir(m)
    assert list(inspect.signature(m.train_step).parameters) == ["x", "rate", "out", "k"]
    assert astra_rt.devices()[0] == "cpu" and astra_rt.abi_version == "1.0" and astra_rt.__version__


def test_results_do_not_change_when_memory_is_used_again(load):
    m = load("steps")
    gc.collect()
    m.trim()
    before = m.pool_stats()  # the pool is the device's: whatever else this process keeps is in it
    kept = [m(X + i) for i in range(20)]
    views = [np.asarray(t) for t in kept]
    for i in range(100):
        m(X * 0 - i)
    del kept
    for i, v in enumerate(views):
        assert v.tobytes() == ((X + i) * W).tobytes()
    stats = m.pool_stats()
    assert stats["recycled"] - before["recycled"] >= 90
    assert stats["bytes_in_use"] > before["bytes_in_use"]
    del views, v
    m.trim()
    after = m.pool_stats()
    assert [after[k] - before[k] for k in ("bytes_in_use", "bytes_held")] == [0, 0]
