"""Digests: the bytes that are hashed, written out here by hand."""

import hashlib
import struct

import astra_rt
import numpy as np
import pytest


def sha(*parts):
    return hashlib.sha256(b"astra-hash/1\n" + b"".join(parts)).hexdigest()


def test_the_bytes_of_the_manual():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    part = b"tensor f32 2 2 3\n" + struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    assert astra_rt.hash(x) == sha(part)
    assert astra_rt.hash(np.int64(-2)) == astra_rt.hash(-2) == sha(b"tensor i64 0\n" + struct.pack("<q", -2))
    assert astra_rt.hash(True) == sha(b"tensor bool 0\n\1") and astra_rt.hash(0.5) == sha(b"tensor f64 0\n", struct.pack("<d", 0.5))
    assert astra_rt.hash(np.zeros((0, 3), np.uint8)) == sha(b"tensor u8 2 0 3\n")
    assert astra_rt.hash(None) == sha(b"none\n")
    assert astra_rt.hash([x, ()]) == sha(b"list 2\n", part, b"list 0\n")
    tree = {"b": None, "\u00e4": 1, "a": {"": x}}
    one = b"tensor i64 0\n" + struct.pack("<q", 1)
    wanted = sha(b"dict 3\n", b"key 1\na", b"dict 1\n", b"key 0\n", part, b"key 1\nb", b"none\n", b"key 2\n\xc3\xa4", one)
    assert astra_rt.hash(tree) == astra_rt.hash(dict(reversed(tree.items()))) == wanted
    packed = astra_rt.tensor([[-8, 7, 1]], "i4")
    assert astra_rt.hash(packed) == sha(b"tensor i4 2 1 3\n\x78\x01")
    # So it stays, in every release.
    assert astra_rt.hash(x) == "9abc4f3fb101f409c43557899eb642171455ce1021b0201045f3c314c2ebc377"


def test_where_and_how_elements_lie_does_not_matter(load):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wide = np.zeros((3, 8), np.float32)
    wide[:, ::2] = x
    for same in (x.copy(), astra_rt.tensor(x), np.asfortranarray(x), wide[:, ::2], x.astype(">f4"), memoryview(x), astra_rt.from_dlpack(x)):
        assert astra_rt.hash(same) == astra_rt.hash(x)
    different = [x.astype(np.float64), x.reshape(4, 3), x.ravel(), -x, [x], {"x": x}, x.tolist(), x.astype(np.int32), x[:2]]
    assert len({astra_rt.hash(d) for d in [x, *different]}) == len(different) + 1
    m = load("steps")
    r = m.train_step(x, 0.5)
    assert astra_rt.hash(r) == astra_rt.hash(tuple(r)) == astra_rt.hash(list(r)) != astra_rt.hash(r.asdict())
    assert astra_rt.hash(m.state_dict()) == astra_rt.hash({"count": np.int64(1), "total": np.float32(0.5) + x.sum(0) * np.float32(0.5)})
    assert astra_rt.hash(m(x)) == astra_rt.hash(np.concatenate([m(x[i : i + 1]) for i in range(3)]))  # a batch or alone


@pytest.mark.parametrize(
    ("dtype", "codes", "nans", "canonical"),
    [("f16", np.uint16, [0x7E00, 0xFE00, 0x7C01, 0xFFFF], 0x7E00), ("bf16", np.uint16, [0x7FC0, 0xFF81], 0x7FC0),
     ("f32", np.uint32, [0x7FC00000, 0xFFC12345, 0x7F800001], 0x7FC00000),
     ("f64", np.uint64, [0x7FF8 << 48, 0xFFF0000000000001], 0x7FF8 << 48), ("f8e4m3fn", np.uint8, [0x7F, 0xFF], 0x7F),
     ("f8e5m2", np.uint8, [0x7D, 0xFE], 0x7E)],
)  # fmt: skip
def test_every_nan_is_one(dtype, codes, nans, canonical):
    def made(words):
        array = np.array(words, codes)
        return astra_rt.tensor(array if dtype[:2] in ("bf", "f8") else array.view(dtype.replace("f", "float")), dtype)

    data = np.array([0, canonical, 1 << 8 * codes().itemsize - 1], codes).tobytes()  # 0, NaN, -0
    for nan in nans:
        assert astra_rt.hash(made([0, nan, 1 << 8 * codes().itemsize - 1])) == sha(b"tensor %s 1 3\n" % dtype.encode(), data)
    infinity = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52, "f8e4m3fn": 0x7E, "f8e5m2": 0x7C}[dtype]
    assert astra_rt.hash(made([infinity])) == sha(b"tensor %s 1 1\n" % dtype.encode(), np.array([infinity], codes).tobytes())


def test_parts_of_complex_numbers_and_long_arrays():
    z = np.array([1 + 2j, 3], np.complex64)
    z.view(np.uint32)[3] = 0xFFC00001
    assert astra_rt.hash(z) == sha(b"tensor complex64 1 2\n", struct.pack("<3fI", 1, 2, 3, 0x7FC00000))
    long = np.arange((1 << 20) + 3, dtype=np.float32)
    long[[5, -1]] = -np.nan
    data = long.copy()
    data[[5, -1]] = np.nan
    assert data.view(np.uint32)[-1] == 0x7FC00000 and astra_rt.hash(long) == sha(b"tensor f32 1 %d\n" % len(long), data.tobytes())


def test_what_has_no_digest():
    loop = []
    loop.append(loop)
    for wrong, error, sentence in (
        ("text", TypeError, "hash takes tensors, arrays, numbers, None, and tuples, lists and dicts of them, not str"),
        ([b"x"], TypeError, "not bytes"),
        ({1: 2}, TypeError, "dicts whose keys are strings, not int"),
        (loop, ValueError, "at most 64 levels"),
        (np.array(["a"]), TypeError, "there is no dtype for NumPy's <U1"),
        (1 << 70, TypeError, "no dtype"),
        (object(), TypeError, "no dtype"),
    ):
        with pytest.raises(error, match=sentence):
            astra_rt.hash(wrong)
