#!/usr/bin/env python3
"""Random chains of view operations through the C ABI, beside NumPy: equal bytes, and equal refusals to reshape.

usage: views.py LIBRARY [--count N] [--first SEED]
1,000 chains, 100,000 with ASTRA_NIGHTLY. A chain begins with an array of some dtype and shape and does up to ten operations on it;
then the view's elements are copied out, and others are copied in through it. LIBRARY: libastra_rt.so.
"""
import argparse
import ctypes as c
import os
import random

import numpy as np

RANK = 16
DTYPES = {1: np.bool_, 3: np.int16, 4: np.int32, 6: np.uint8, 10: np.float16, 13: np.float64, 14: np.complex64, 15: np.complex128}
WRONG_STRIDES, OVERLAP = 9, 10


class Diag(c.Structure):
    _fields_ = [("size", c.c_size_t), ("status", c.c_int32), ("text", c.c_char * 500)]


class View(c.Structure):
    _fields_ = [("size", c.c_size_t), ("buffer", c.c_void_p), ("data", c.c_void_p), ("data_bytes", c.c_uint64),
                ("byte_offset", c.c_uint64), ("dtype", c.c_int32), ("ndim", c.c_int32), ("flags", c.c_uint32),
                ("reserved", c.c_uint32), ("shape", c.c_int64 * RANK), ("strides", c.c_int64 * RANK)]  # fmt: skip


diag = Diag(c.sizeof(Diag))


def int64s(values):
    return (c.c_int64 * max(len(values), 1))(*values)


def view_of(array, dtype):
    """Of a row-major array."""
    v = View(size=c.sizeof(View), data=array.ctypes.data, data_bytes=array.nbytes, dtype=dtype, ndim=array.ndim)
    for i, extent in enumerate(array.shape):
        v.shape[i], v.strides[i] = extent, array.strides[i] // array.itemsize
    return v


class Chain:
    def __init__(self, library, seed):
        self.library, self.random = library, random.Random(seed)
        r = self.random
        self.dtype = r.choice(list(DTYPES))
        shape = [r.choice([0, 1, 1, 2, 3, 4, 5, 6, 8]) if r.random() < 0.3 else r.randint(1, 6) for _ in range(r.randint(0, 4))]
        count = int(np.prod(shape, dtype=np.int64))
        kind = np.dtype(DTYPES[self.dtype])
        raw = np.random.default_rng(seed).integers(0, 2 if kind == np.bool_ else 256, count * kind.itemsize, np.uint8)
        self.base = np.frombuffer(bytearray(raw.tobytes()), kind).reshape(shape)
        self.memory = np.frombuffer(bytearray(raw.tobytes()), kind).reshape(shape)  # where writes through the view go
        self.array, self.view = self.base, view_of(self.memory, self.dtype)
        self.conjugates, self.log = False, [f"{kind} {shape}"]

    def call(self, name, *args, allowed=()):
        self.log.append(f"{name}{[list(a) if isinstance(a, c.Array) else a for a in args]}")
        status = getattr(self.library, f"astra_view_{name}")(c.byref(self.view), c.byref(self.view), *args, c.byref(diag))
        if status and status not in allowed:
            raise AssertionError(f"{name}: {diag.text.decode()}")
        return status

    def step(self):
        r, a = self.random, self.array
        n = a.ndim
        what = r.choice(["permute", "slice", "index", "expand", "diagonal", "reshape", "conjugate", "part", "interleaved", "tile"])
        if what == "permute":
            axes = r.sample(range(n), n)
            self.call(what, (c.c_int32 * max(n, 1))(*axes))
            self.array = a.transpose(axes)
        elif what == "slice" and n:
            axis = r.randrange(n)
            key = slice(*(r.choice([None, r.randint(-7, 7)]) for _ in range(2)), r.choice([-3, -2, -1, 1, 2, 3]))
            start, stop, step = key.indices(a.shape[axis])
            count = len(range(start, stop, step))
            self.call(what, axis, c.c_int64(start if count else 0), c.c_int64(count), c.c_int64(step))
            self.array = a[(slice(None),) * axis + (key,)]
        elif what == "index" and n and r.random() < 0.5:
            axis = r.randrange(n)
            if a.shape[axis]:
                index = r.randrange(a.shape[axis])
                self.call(what, axis, c.c_int64(index))
                self.array = a[(slice(None),) * axis + (index, ...)]
        elif what == "expand" and n < 6:
            shape = [r.randint(1, 3) for _ in range(r.randint(0, 2))] + [r.randint(0, 4) if e == 1 else e for e in a.shape]
            if np.prod(shape, dtype=np.int64) <= 5000:
                self.call(what, len(shape), int64s(shape))
                self.array = np.broadcast_to(a, shape)
        elif what == "diagonal" and n > 1:
            one, other = r.sample(range(n), 2)
            offset = r.randint(-4, 4)
            self.call(what, one, other, c.c_int64(offset))
            self.array = a.diagonal(offset, one, other)
        elif what == "reshape":
            shape = self.other_shape(a)
            status = self.call(what, len(shape), int64s(shape), allowed=(WRONG_STRIDES,))
            made = a.reshape(shape)
            shares = a.size == 0 or np.may_share_memory(made, a)
            assert (status == 0) == shares, f"NumPy {'makes a view' if shares else 'copies'}"
            if status == 0:
                self.array = made
        elif what == "conjugate":
            self.call(what)
            self.conjugates ^= np.iscomplexobj(a)
        elif what in ("part", "interleaved") and n:
            axis, parts = r.randrange(n), r.randint(1, 4)
            index = r.randrange(parts)
            self.call(what, axis, c.c_int64(index), c.c_int64(parts))
            if what == "part":
                self.array = np.array_split(a, parts, axis)[index]
            else:
                self.array = a[(slice(None),) * axis + (slice(index, None, parts),)]
        elif what == "tile" and n and a.size:
            tile = [r.randint(1, 4) for _ in a.shape]
            index = [r.randrange(-(-extent // t)) for extent, t in zip(a.shape, tile)]
            self.call(what, int64s(tile), int64s(index))
            self.array = a[tuple(slice(t * i, t * i + t) for t, i in zip(tile, index))]

    def other_shape(self, a):
        """As many elements in other axes."""
        r, rest, shape = self.random, a.size, []
        if a.size == 0:
            return r.choice([[0], [2, 0], [0, 3, 1], list(a.shape)])
        while rest > 1 and len(shape) < 5:
            extent = r.choice([d for d in range(1, rest + 1) if rest % d == 0])
            shape.append(extent)
            rest //= extent
        return shape + [rest] * (rest > 1)

    def conjugate(self, array):
        if not self.conjugates:
            return array
        bits = np.array(array, order="C")
        bits.reshape(-1).view(np.uint8).reshape(-1, array.itemsize // 2)[1::2, -1] ^= 0x80
        return bits

    def run(self):
        for _ in range(self.random.randint(1, 10)):
            self.step()
        a, v = self.array, self.view
        self.log.append("copy")
        assert list(v.shape[: v.ndim]) == list(a.shape), f"the shape is {v.shape[: v.ndim]}"
        copy = np.zeros(a.shape, a.dtype)
        out = view_of(copy, self.dtype)
        if self.library.astra_view_copy(c.byref(out), c.byref(v), c.byref(diag)):
            raise AssertionError(diag.text.decode())
        dense = np.ascontiguousarray(a).reshape(a.shape)
        assert copy.tobytes() == self.conjugate(dense).tobytes(), "other bytes"
        # And through the view into the memory, where it holds each element once.
        new = np.frombuffer(bytearray(dense.tobytes()[::-1]), a.dtype).reshape(a.shape)
        if a.dtype == np.bool_:
            new = np.asarray(~dense)
        source = view_of(new, self.dtype)
        status = self.library.astra_view_copy(c.byref(v), c.byref(source), c.byref(diag))
        places = np.arange(self.base.size)  # of the elements of the view in the memory
        if a.size:
            steps = [step // a.itemsize * places.itemsize for step in a.strides]
            places = np.lib.stride_tricks.as_strided(places[self.first(a) :], a.shape, steps)
        else:
            places = places[:0]
        once = np.unique(places).size == a.size
        assert status == (0 if once else OVERLAP), f"writing gives {status}: {diag.text.decode()}"
        if once and a.size:
            self.base.reshape(-1)[places.reshape(-1)] = self.conjugate(new).reshape(-1)
        assert self.memory.tobytes() == self.base.tobytes(), "other bytes after writing"
        return once

    def first(self, a):
        return (a.__array_interface__["data"][0] - self.base.__array_interface__["data"][0]) // a.itemsize


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=100000 if os.environ.get("ASTRA_NIGHTLY") else 1000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    library = c.CDLL(args.library)
    written = 0
    for seed in range(args.first, args.first + args.count):
        chain = Chain(library, seed)
        try:
            written += chain.run()
        except AssertionError as error:
            raise SystemExit(f"chain {seed}: {error}\n  " + "\n  ".join(chain.log))
    print(f"{args.count} chains give NumPy's bytes; through {written} of them others were written")


main()
