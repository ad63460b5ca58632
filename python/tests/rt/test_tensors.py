"""Tensors: element types, NumPy, the buffer protocol, DLPack."""

import ctypes
import hashlib
import pickle
import subprocess
import sys

import astra_rt
import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")
KINDS = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
         "f32": np.float32, "f64": np.float64, "complex64": np.complex64, "complex128": np.complex128,
         "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4,
         "f4e2m1": ml_dtypes.float4_e2m1fn, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
         "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
         "f8e8m0": ml_dtypes.float8_e8m0fnu}  # fmt: skip
PACKED = ("i2", "u2", "i4", "u4", "f4e2m1")


def values(dtype, shape):
    """Some of what the type has, with its ends."""
    kind = np.dtype(KINDS[dtype])
    count = int(np.prod(shape))
    if dtype in ("i2", "i4", "u2", "u4"):
        info = ml_dtypes.iinfo(kind)
        return np.resize([info.min, info.max, 1], count).astype(kind).reshape(shape)
    if kind.kind in "iu":
        return np.resize(np.array([np.iinfo(kind).min, np.iinfo(kind).max, 3], kind), count).reshape(shape)
    return np.resize([1, 0, 2], count).astype(np.float32).astype(kind).reshape(shape)


def test_every_type_goes_in_and_comes_out(load):
    m = load("types")
    given = [values(i.dtype, i.lower) for i in m.inputs]
    for array, info, out in zip(given, m.inputs, m(*given)):
        assert out.dtype == info.dtype and out.shape == array.shape
        back = out.numpy()
        assert back.dtype == array.dtype
        assert back.tobytes() == np.flip(array, -1).tobytes(), info.dtype
        assert not back.flags.writeable or info.dtype in PACKED
    # Outputs go in again as they are.
    twice = m(*m(*given))
    for array, out in zip(given, twice):
        assert out.numpy().tobytes() == array.tobytes()


def test_codes_stand_for_types_that_numpy_lacks(load):
    m = load("types")
    given = [values(i.dtype, i.lower) for i in m.inputs]
    codes = []
    for array, info in zip(given, m.inputs):
        if info.dtype in ("i2", "i4"):
            array = array.astype(np.int8)
        elif info.dtype in ("u2", "u4"):
            array = array.astype(np.uint8)
        elif info.dtype not in ("bf16",) and array.dtype.kind == "V" or info.dtype[:2] in ("f8", "f4"):
            array = array.view(np.uint8)
        elif info.dtype == "bf16":
            array = array.view(np.uint16)
        codes.append(array)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(m(*codes), m(*given)))
    with pytest.raises(TypeError, match="input k has dtype f32; it must be bf16"):
        m(*given[:10], given[10].astype(np.float32), *given[11:])
    with pytest.raises(ValueError, match=r"input r has values outside of i4's -8\.\.7"):
        m(*given[:17], np.full((2, 3), 8, np.int8), *given[18:])
    with pytest.raises(TypeError, match="input l has dtype bf16; it must be f32"):
        m(*given[:11], given[10], *given[12:])


def test_numbers_of_python_fit_or_are_refused():
    assert astra_rt.tensor([1, 2], "f32").tolist() == [1.0, 2.0]
    assert astra_rt.tensor(True, "bool").item() is True
    assert astra_rt.tensor([1.5, -2], "bf16").tolist() == [1.5, -2.0]
    assert astra_rt.tensor([-8, 7], "i4").tolist() == [-8, 7]
    for wrong, dtype in (([1.5], "i32"), ([1], "bool"), ([1j], "f32")):
        with pytest.raises(TypeError, match=f"must be {dtype}"):
            astra_rt.tensor(wrong, dtype)
    for wrong, dtype in (([300], "u8"), ([-1], "u64"), ([8], "i4")):
        with pytest.raises(ValueError, match="outside"):
            astra_rt.tensor(wrong, dtype)
    with pytest.raises(TypeError, match="there is no dtype 'f33'"):
        astra_rt.tensor([1], "f33")
    assert astra_rt.tensor([2**63, 1], "u64").tolist() == [2**63, 1]
    assert astra_rt.tensor(65504.0, "f16").item() == 65504 and astra_rt.tensor(np.inf, "f32").item() == np.inf
    for number, dtype in (([2**64], "u64"), ([2**63, 1], "i64"), ([-1, 2**63], "u64"), (1e300, "f32"), ([70000.0, 1.0], "f16")):
        with pytest.raises(ValueError, match=f"the tensor has numbers outside of {dtype}"):
            astra_rt.tensor(number, dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_tensor_round_trips(dtype):
    for shape in ((), (3,), (2, 5), (0, 3), (2, 1, 7)):
        array = values(dtype, shape)
        t = astra_rt.tensor(array, dtype)
        assert t.shape == shape and t.ndim == len(shape) and t.size == array.size and t.dtype == dtype
        assert t.numpy().tobytes() == array.tobytes() and t.numpy().shape == shape
        again = pickle.loads(pickle.dumps(t))
        assert again.tobytes() == t.tobytes() and again.shape == shape and again.dtype == dtype
        assert dtype in repr(t)
        if dtype not in PACKED:
            assert astra_rt.from_dlpack(t).numpy().tobytes() == array.tobytes()
        elif shape and shape[-1] * {"i2": 2, "u2": 2}.get(dtype, 4) % 8 and len(shape) > 1 and t.size:
            with pytest.raises(BufferError, match="rows of this .* tensor end inside of a byte"):
                t.__dlpack__(max_version=(1, 1))


def test_a_tensor_copies_what_it_is_made_of():
    array = np.ones(3, np.float32)
    for t in (astra_rt.tensor(array), astra_rt.tensor(memoryview(array)), astra_rt.tensor(astra_rt.from_dlpack(array))):
        array[0] = 5
        assert t.tolist() == [1, 1, 1]
        array[0] = 1


def test_numbers_and_sequences():
    t = astra_rt.tensor([[1.5, 2.5]], "f32")
    assert len(t) == 1 and t[0, 1] == 2.5 and [r.tolist() for r in t] == [[1.5, 2.5]]
    one = astra_rt.tensor(np.int32(3))
    assert int(one) == 3 and float(one) == 3.0 and bool(one) and complex(one) == 3 and [0, 1, 2, 9][one] == 9
    assert repr(astra_rt.tensor([1.0], "f32")) == "Tensor([1.], f32[1])"
    for refused, error in ((lambda: float(t), ValueError), (lambda: len(one), TypeError), (lambda: range(t), TypeError),
                           (lambda: t.__setitem__(0, 1), (TypeError, AttributeError)), (astra_rt.Tensor, TypeError)):  # fmt: skip
        with pytest.raises(error):
            refused()


def test_memory_is_shared_and_read_only(load):
    m = load("steps")
    t = m(np.ones((2, 4), np.float32))
    for view in (t.numpy(), np.asarray(t), np.from_dlpack(t), np.frombuffer(t, np.float32), np.array(t, copy=False)):
        assert view.ctypes.data == t._address and not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
    view = memoryview(t)
    assert view.readonly and view.format == "f" and view.shape == (2, 4) and view.c_contiguous and view.strides == (16, 4)
    with pytest.raises((TypeError, BufferError), match="read-only|writable|contiguous|writeable"):
        (ctypes.c_char * 32).from_buffer(t)
    copy = np.array(t)
    assert copy.flags.writeable and copy.ctypes.data != t._address
    assert np.asarray(t, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        t.__array__(np.float64, copy=False)
    address = t._address
    kept = np.asarray(t)
    del t, m, view
    assert kept.ctypes.data == address and kept.tolist() == [[1, 2, 3, 4]] * 2


def test_dlpack_out():
    t = astra_rt.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert t.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(t.__dlpack__())
    old = np.asarray(astra_rt.from_dlpack(type("Old", (), {"__dlpack__": lambda self: t.__dlpack__()})()))
    assert old.tolist() == t.tolist() and old.ctypes.data != t._address  # it cannot say that it is read-only: a copy
    copied = np.from_dlpack(t, copy=True)
    assert copied.flags.writeable and copied.ctypes.data != t._address
    for arguments in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": False}):
        with pytest.raises(BufferError):
            t.__dlpack__(**arguments)
    del t
    assert old.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_dlpack_in():
    array = np.arange(24, dtype=np.int16).reshape(4, 6)
    t = astra_rt.from_dlpack(array)
    assert t._address == array.ctypes.data and t.dtype == "i16"
    strided = astra_rt.from_dlpack(array[::2, ::-2])
    assert strided.numpy().tobytes() == array[::2, ::-2].tobytes() and strided.shape == (2, 3)
    assert strided.tobytes() == array[::2, ::-2].tobytes() and astra_rt.hash(strided) == astra_rt.hash(array[::2, ::-2].copy())
    # Strides are kept, both ways, without a copy.
    view = strided.numpy()
    assert np.shares_memory(view, array) and view.strides == (24, -4) and not view.flags.writeable
    back = np.from_dlpack(strided)
    assert back.strides == view.strides and back.ctypes.data == view.ctypes.data
    assert memoryview(strided).strides == (24, -4) and memoryview(strided).tolist() == array[::2, ::-2].tolist()
    copied = np.from_dlpack(strided, copy=True)
    assert copied.flags.c_contiguous and copied.tolist() == view.tolist()
    assert astra_rt.tensor(strided).numpy().flags.c_contiguous
    assert pickle.loads(pickle.dumps(strided)).tolist() == view.tolist()
    with pytest.raises(BufferError, match="not row-major"):
        hashlib.sha256(strided)
    address = strided._address  # for who reads rows: from here on it is row-major
    assert strided.numpy().flags.c_contiguous and strided.numpy().ctypes.data == address and strided.tolist() == view.tolist()
    wide = astra_rt.from_dlpack(np.lib.stride_tricks.as_strided(array, (3, 6), (0, 2)))
    assert wide.numpy().strides == (0, 2) and wide.tolist() == [array[0].tolist()] * 3
    assert astra_rt.from_dlpack(array[:, 2:3])[3, 0] == 20
    readonly = array.view()
    readonly.flags.writeable = False
    assert astra_rt.from_dlpack(readonly)._address == array.ctypes.data
    capsule = array.__dlpack__()
    astra_rt._rt.from_capsule(capsule)
    with pytest.raises(ValueError, match="taken before"):
        astra_rt._rt.from_capsule(capsule)
    with pytest.raises(ValueError, match="no capsule"):
        astra_rt._rt.from_capsule(3)

    class OnGpu:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise AssertionError

    with pytest.raises(ValueError, match="lies on a device"):
        astra_rt.from_dlpack(OnGpu())


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]  # fmt: skip


def versioned_of(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(Versioned)).contents


def test_what_a_capsule_says():
    t = astra_rt.tensor([[1, 2, 3]], "bf16")
    capsule = t.__dlpack__(max_version=(1, 3))
    v = versioned_of(capsule)
    assert (v.major, v.minor, v.flags) == (1, 1, 1)  # read-only
    d = v.tensor
    assert (d.data, d.device_type, d.ndim, d.code, d.bits, d.lanes) == (t._address, 1, 2, 4, 16, 1)
    assert d.shape[:2] == [1, 3] and d.strides[:2] == [3, 1] and d.byte_offset == 0
    copy = t.__dlpack__(max_version=(1, 0), copy=True)
    assert versioned_of(copy).flags == 2 and versioned_of(copy).tensor.data != t._address


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda v: setattr(v, "major", 2), BufferError, "DLPack 2"),
        (lambda v: setattr(v.tensor, "device_type", 2), BufferError, "memory of a device"),
        (lambda v: setattr(v.tensor, "ndim", 17), ValueError, "17 dims"),
        (lambda v: setattr(v.tensor, "ndim", -1), ValueError, "-1 dims"),
        (lambda v: setattr(v.tensor, "lanes", 4), TypeError, "4 lanes"),
        (lambda v: setattr(v.tensor, "code", 3), TypeError, "code 3"),
        (lambda v: v.tensor.shape.__setitem__(0, -1), ValueError, "negative or too large"),
        (lambda v: v.tensor.shape.__setitem__(0, 1 << 62), ValueError, "negative or too large"),
    ],
)
def test_capsules_that_are_wrong(change, error, sentence):
    t = astra_rt.tensor(np.ones((2, 2), np.float32))
    capsule = t.__dlpack__(max_version=(1, 0))
    change(versioned_of(capsule))
    with pytest.raises(error, match=sentence):
        astra_rt._rt.from_capsule(capsule)


def test_without_ml_dtypes(bundle, python):
    out = python(
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import astra_rt, numpy as np\n"
        "t = astra_rt.tensor(np.array([0x3f80, 0xc000], np.uint16), 'bf16')\n"
        "assert t.numpy().dtype == np.uint16 and t.numpy().tolist() == [0x3f80, 0xc000]\n"
        "assert astra_rt.tensor([-8, 7, 1], 'i4').numpy().tolist() == [-8, 7, 1]\n"
        "assert astra_rt.tensor(np.array([1, 15], np.uint8), 'f4e2m1').numpy().tolist() == [1, 15]\n"
        "try: astra_rt.tensor([1.5], 'bf16')\n"
        "except TypeError as e: print(e)\n"
        "print(t)"
    )
    assert "install ml_dtypes" in out and "Tensor([16256, 49152], bf16[2])" in out


def test_torch_tensors(load):
    torch = pytest.importorskip("torch")
    m = load("steps")
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    y = torch.from_dlpack(m(x))
    assert torch.equal(y, x * torch.tensor([1.0, 2, 3, 4]))
    assert torch.equal(torch.from_dlpack(m(x.t().contiguous().t())), y)
    assert astra_rt.from_dlpack(x.to(torch.bfloat16)).dtype == "bf16"
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        m(x.requires_grad_())
