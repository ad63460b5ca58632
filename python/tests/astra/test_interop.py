"""Tensors and the arrays of others: without a copy where that can be, read-only where they leave."""

import pickle
import sys

import numpy as np
import pytest

import astra

needed = pytest.importorskip  # a package that need not be there


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_numpy_both_ways(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    x = astra.asarray(a)
    assert address(x) == a.__array_interface__["data"][0] and x.dtype == a.dtype
    assert not x.numpy().flags.writeable and np.array_equal(x.numpy(), a)
    assert address(astra.tensor(a)) != a.__array_interface__["data"][0]
    back = np.from_dlpack(x)
    assert np.shares_memory(back, a) and not back.flags.writeable
    assert np.shares_memory(np.asarray(astra.from_dlpack(a)), a)
    assert np.array_equal(np.asarray(x, dtype=np.complex128), a.astype(np.complex128))


def test_arrays_that_are_not_contiguous_are_copied():
    a = np.arange(12.0).reshape(3, 4)[:, ::2]
    assert astra.asarray(a).tolist() == a.tolist()
    with pytest.raises(ValueError, match="copy"):
        astra.asarray(a, copy=False)


def test_operators_with_arrays_give_tensors():
    x, a = astra.tensor([1.0, 2.0]), np.ones(2, np.float32)
    for y in (x + a, a + x, x * np.float32(2), np.float32(2) * x, a @ x, a < x):
        assert isinstance(y, astra.Tensor)
    assert np.add(a, x).tolist() == [2, 3]


def test_dlpack_says_that_tensors_are_read_only():
    x = astra.tensor([1.0, 2.0])
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)  # an old capsule cannot say it: it has a copy
    assert x.__dlpack_device__() == (1, 0)
    assert x.__dlpack__(max_version=(1, 1)) is not None
    copied = x.__dlpack__(max_version=(1, 1), copy=True)
    assert "dltensor" in repr(copied)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is of Python 3.12")
def test_buffers():
    x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(x)
    assert view.readonly and view.shape == (2, 2) and view.tolist() == x.tolist()


def test_pickles_keep_bits():
    for x in (astra.tensor([[1.0, -0.0]]), astra.tensor(3), astra.ones(3, dtype="bfloat16"), astra.tensor([1 + 2j]) * 2):
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype is x.dtype and y.shape == x.shape and y.tobytes() == x.tobytes()
    assert pickle.loads(pickle.dumps(astra.float32)) is astra.float32


def test_copies_begin_where_dlpack_wants_it():
    x = astra.ones((3, 5))
    for _ in range(8):
        copied = np.from_dlpack(x, copy=True)
        assert copied.__array_interface__["data"][0] % 256 == 0 and copied.tolist() == x.tolist()


def test_torch_both_ways():
    torch = needed("torch")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    x = astra.from_dlpack(t)
    assert address(x) == t.data_ptr() and x.tolist() == t.tolist()
    back = torch.from_dlpack(x * 1)
    assert back.tolist() == t.tolist()
    assert astra.asarray(t.requires_grad_()).tolist() == x.tolist()
    assert astra.dtype(torch.bfloat16) is astra.bfloat16


def test_jax_both_ways():
    jax = needed("jax")
    j = jax.numpy.arange(6.0).reshape(2, 3)
    assert astra.from_dlpack(j).tolist() == j.tolist()
    assert jax.numpy.from_dlpack(astra.tensor([1.0, 2.0])).tolist() == [1, 2]


def test_tensorflow_both_ways():
    tf = needed("tensorflow")
    for dtype in ("float32", "float64", "int32", "uint8", "bool", "bfloat16", "complex64"):
        t = tf.cast(tf.constant([[1, 0], [2, 3]]), dtype)
        x = astra.from_dlpack(t)
        assert x.dtype == dtype and x.astype("complex128").tolist() == tf.cast(t, "complex128").numpy().tolist()
        back = tf.experimental.dlpack.from_dlpack((x + x if dtype != "bool" else x & x).__dlpack__())
        assert back.dtype == dtype and bool(tf.reduce_all(back == (t + t if dtype != "bool" else t)))
    assert tf.convert_to_tensor(astra.ones((2, 2)).numpy()).shape == (2, 2)


def test_pandas_columns():
    pandas = needed("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1, 2, 3]})
    x = astra.asarray(frame["a"])
    assert x.dtype == "float64" and x.tolist() == [1, 2, 3]
    assert astra.asarray(frame).shape == (3, 2)
    frame["c"] = x * 2
    assert frame["c"].tolist() == [2, 4, 6]
    assert pandas.Series(astra.tensor([1, 2])).tolist() == [1, 2]


def test_matplotlib_plots_tensors():
    needed("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    line = plt.plot(astra.arange(3), astra.tensor([1.0, 4.0, 9.0]))[0]
    assert line.get_ydata().tolist() == [1, 4, 9]
    assert plt.imshow(astra.ones((2, 2))).get_array().shape == (2, 2)
