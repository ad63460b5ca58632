"""Outputs in the caller's memory."""

import array
import asyncio
import inspect

import astra_rt
import ml_dtypes
import numpy as np
import pytest

X = np.arange(16, dtype=np.float32).reshape(4, 4)
W = np.array([1, 2, 3, 4], np.float32)


def test_an_array_of_the_caller(load):
    m = load("steps")
    y = np.empty((4, 4), np.float32)
    for call in (m, m.main, lambda x, out: m.async_call(x, out=out).result(60), lambda x, out: m(out=out, x=x)):
        y.fill(-1)
        assert call(X, out=y) is y and y.tobytes() == (X * W).tobytes()
    rows = np.zeros((10, 4), np.float32)
    m(X, out=rows[3:7])  # a part of a larger array, whose other rows stay
    assert rows[3:7].tobytes() == (X * W).tobytes() and not rows[:3].any() and not rows[7:].any()
    assert isinstance(m(X, out=None), astra_rt.Tensor)
    before = m.pool_stats()
    m(X, out=y)
    assert m.pool_stats() == before  # no memory of ours

    async def main():
        return await m.async_call(X, out=y)

    assert asyncio.run(main()) is y


def test_an_array_with_strides(load):
    m = load("steps")
    wanted = (X * W).tobytes()
    table = np.full((4, 9, 8), -1, np.float32)
    for target in (table[:, 2, ::2], table[::-1, 3, 4:], table[:, 4:8, 0].T, np.empty((4, 4), "f", order="F")):
        assert m(X, out=target) is target and target.tobytes() == wanted
    assert (table[:, 2, 1::2] == -1).all() and (table[:, :2] == -1).all()
    with m.trace() as trace:
        m(X.T, out=table[:, 0, ::2])
    assert [e.name for e in trace if e.name in ("gather", "scatter")] == ["gather", "scatter"]
    assert [e.origins for e in trace if e.name == "gather"] == [("x",)]
    # What is read lies between what is written.
    table[:, 0, 1::2] = X
    m(table[:, 0, 1::2], out=table[:, 0, ::2])
    assert table[:, 0, ::2].tobytes() == wanted and table[:, 0, 1::2].tobytes() == X.tobytes()
    compact = load("compact")
    x = np.arange(60, dtype=np.float32).reshape(10, 6) - 30
    room = np.full((*compact.outputs[0].upper, 2), -1, np.float32)
    kept = compact(x, out={"kept": room[..., 1]}).kept
    assert kept.tobytes() == x[x[:, 0] > 0].tobytes() and np.shares_memory(kept, room)
    assert (room[..., 0] == -1).all() and (room[len(kept) :] == -1).all()
    columns, x, mask = load("columns"), x[:, :3].copy(), x[:, 0] % 4 == 0
    room = np.full((3, 50, 2), -1, np.float32)
    turned = columns(x, mask, out=room[..., 0])
    assert turned.tobytes() == columns(x, mask).tobytes() == x[mask].T.tobytes()
    assert (room[..., 1] == -1).all() and (room[:, mask.sum() :] == -1).all()


def test_several_outputs(load):
    m, wanted = load("steps"), load("steps").train_step(X, 0.5)
    loss, seen = np.empty((), np.float32), np.empty((), np.int64)
    for out in ((loss, seen), {"seen": seen, "loss": loss}):
        m.reset()
        r = m.train_step(X, 0.5, out=out)
        assert r.loss is loss and r["seen"] is seen and float(loss) == float(wanted.loss) and int(seen) == 1
    for out in ((None, seen), {"seen": seen}):
        r = m.train_step(X, 0.5, out=out)
        assert isinstance(r.loss, astra_rt.Tensor) and r.seen is seen
    assert int(seen) == 3


def test_other_objects_with_memory(load):
    m = load("steps")
    flat = array.array("f", [0] * 4)
    view = memoryview(flat).cast("B").cast("f", (1, 4))
    assert m(X[1:2], out=view) is view and flat.tolist() == (X[1] * W).tolist()

    class Lender:
        def __init__(self):
            self.array = np.empty((4, 4), np.float32)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    lender = Lender()
    assert m(X, out=lender) is lender and lender.array.tobytes() == (X * W).tobytes()


def test_types_that_numpy_lacks(load):
    m = load("types")
    given = {i.name: np.zeros(i.upper, np.int8 if i.dtype in ("i2", "i4") else np.uint8) for i in m.inputs if i.dtype[1] in "24" or i.dtype[:2] == "f8"}
    given |= {i.name: np.arange(3).astype(i.dtype.replace("f", "float") if i.dtype[0] == "f" else i.dtype.replace("i", "int").replace("u", "uint"))
              for i in m.inputs if i.name not in given and i.dtype != "bf16"}  # fmt: skip
    given["k"] = np.array([1, 2, 3], np.uint16)
    for out in (np.empty(3, np.uint16), np.empty(3, ml_dtypes.bfloat16)):
        assert m(**given, out={"k1": out}).k1 is out and out.view(np.uint16).tolist() == [3, 2, 1]
    codes = np.empty(3, np.uint8)
    given["u"] = np.array([1, 2, 3], np.uint8)
    assert m(**given, out={"u1": codes}).u1 is codes and codes.tolist() == [3, 2, 1]
    with pytest.raises(TypeError, match="out of output r1 would have packed elements of i4, which no array has"):
        m(**given, out={"r1": np.empty((2, 3), np.int8)})
    with pytest.raises(TypeError, match="out of output k1 has dtype f16; it must be bf16, an array of uint16 or ml_dtypes.bfloat16"):
        m(**given, out={"k1": np.empty(3, np.float16)})


def test_an_output_smaller_than_its_bound(load):
    m = load("compact")
    x = np.arange(60, dtype=np.float32).reshape(10, 6) - 30
    wanted = x[x[:, 0] > 0]
    room = np.full(m.outputs[0].upper, -1, np.float32)
    kept = m(x, out={"kept": room}).kept
    assert kept.shape == wanted.shape and kept.tobytes() == wanted.tobytes() and np.shares_memory(kept, room)
    kept[0, 0] = 99
    assert room[0, 0] == 99
    everything = np.ones(m.outputs[0].upper, np.float32)
    assert m(everything, out={"kept": room}).kept is room and room.tobytes() == everything.tobytes()
    assert m(x - 100, out={"kept": room}).kept.shape == (0, 6)


Y = np.empty((4, 4), np.float32)
READ_ONLY = Y[:]
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda m: m(X, out=np.empty((4, 4))), TypeError, "out of output y has dtype f64; it must be f32"),
        (lambda m: m(X, out=np.empty((4, 4), ">f4")), ValueError, "out of output y must be an aligned array of native byte order"),
        (lambda m: m(X, out=np.empty((3, 4), "f")), ValueError, "axis 0 of output y has 3 elements; it must have 4"),
        (lambda m: m(X, out=np.empty(16, "f")), ValueError, "output y has 1 dims; it must have 2"),
        (lambda m: m(X, out=np.empty(65, "u1")[1:].view("f").reshape(4, 4)), ValueError, "out of output y must be an aligned array"),
        (lambda m: m(X, out=np.zeros(16, [("a", "f"), ("b", "i2")])["a"].reshape(4, 4)), ValueError, "steps of whole elements"),
        (lambda m: m(X, out=np.lib.stride_tricks.as_strided(Y, (4, 4), (0, 4))), ValueError, "output y cannot be written: axis 0 has stride 0"),
        (lambda m: m(X, out=np.lib.stride_tricks.as_strided(np.empty(16, "f"), (4, 4), (4, 4))), ValueError, "lead to an element twice"),
        (lambda m: m(Y.T, out=Y), ValueError, "output y overlaps another tensor of the call"),
        (lambda m: m(X, out=READ_ONLY), ValueError, "can be written to"),
        (lambda m: m(X, out=m(X)), ValueError, "out of output y cannot be written to; give an array"),
        (lambda m: m(X, out=bytes(64)), ValueError, "cannot be written to"),
        (lambda m: m(X, out=np.frombuffer(bytes(64), "f").reshape(4, 4)), ValueError, "can be written to"),
        (lambda m: m(X, out="text"), TypeError, "out of output y is of type str; give an array"),
        (lambda m: m(X, out=[[0.0] * 4] * 4), TypeError, "out of output y is of type list; give an array"),
        (lambda m: m(X, out=(Y, Y)), TypeError, r"main\(\) gives 1 outputs and out has 2 arrays"),
        (lambda m: m(X, out={"z": Y}), TypeError, r"main\(\) has no output 'z', which out names"),
        (lambda m: m(X, out={1: Y}), TypeError, r"main\(\) has no output 1, which out names"),
        (lambda m: m.train_step(X, 0.5, out=Y), TypeError, "gives 2 outputs: out must be a tuple of as many arrays, or a dict by name"),
        (lambda m: m(Y, out=Y), ValueError, "output y overlaps another tensor of the call"),
        (lambda m: m(Y[:3], out=Y[1:]), ValueError, "output y overlaps another tensor of the call"),
    ],
)  # fmt: skip
def test_refusals(load, call, error, sentence):
    m = load("steps")
    with pytest.raises(error, match=sentence):
        call(m)
    assert m(X, out=Y) is Y and Y.tobytes() == (X * W).tobytes() and int(m.get_state("count")) == 0


def test_it_is_in_the_signature(load):
    m = load("steps")
    assert list(inspect.signature(m.train_step).parameters) == ["x", "rate", "out", "k"]
    assert "out" not in inspect.signature(load("equations").init).parameters  # gives nothing
    with pytest.raises(TypeError, match=r"init\(\) gives 0 outputs"):
        load("equations").init(2.5, out=Y)
