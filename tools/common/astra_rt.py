"""The C runtime from Python, by ctypes: load a bundle, run its entry on NumPy arrays. For tests and tools.

Takes:    libastra_rt.so (include/astra/astra.h is the contract), a bundle, arrays in the entry's order.
Gives:    arrays with the actual extents of every output.
Keeps:    a refusal's status and sentence, as RuntimeRefusal. Output memory is filled with a pattern before each call, so
          that an element that is not written shows. Sub-byte elements are packed and unpacked here.
Does not: keep state: a bundle with states starts from their first values in every Bundle.
"""

import ctypes
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path

import ml_dtypes
import numpy as np

# In the order of enum astra_dtype, from 1.
DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
          ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.int2, ml_dtypes.uint2,
          ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
          ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu]  # fmt: skip
DTYPES = [np.dtype(t) for t in DTYPES]
NARROW_BITS = {np.dtype(ml_dtypes.int2): 2, np.dtype(ml_dtypes.uint2): 2, np.dtype(ml_dtypes.int4): 4,
               np.dtype(ml_dtypes.uint4): 4, np.dtype(ml_dtypes.float4_e2m1fn): 4}  # fmt: skip
SIGNED_NARROW = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))
MAX_RANK = 16
ALLOW_COPY = 1
FILL = 0xA5


class Diag(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", c_int32), ("text", c_char * 500)]


class DeviceOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("executor", c_void_p), ("num_threads", c_uint32), ("level", c_char_p)]


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("buffer", c_void_p), ("data", c_void_p), ("data_bytes", c_uint64),
                ("byte_offset", c_uint64), ("dtype", c_int32), ("ndim", c_int32), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("flags", c_uint32)]  # fmt: skip


class TensorInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", c_char_p), ("dtype", c_int32), ("ndim", c_int32),
                ("lower", POINTER(c_int64)), ("upper", POINTER(c_int64)), ("is_tap", c_int32)]  # fmt: skip


class EntryInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", c_char_p), ("num_inputs", c_uint32), ("num_outputs", c_uint32),
                ("waits_on_host", c_int32)]  # fmt: skip


class Call(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("entry", c_void_p), ("inputs", POINTER(Tensor)), ("num_inputs", c_uint32),
                ("outputs", POINTER(Tensor)), ("num_outputs", c_uint32), ("after", c_void_p), ("num_after", c_uint32),
                ("flags", c_uint32)]  # fmt: skip


class RuntimeRefusal(Exception):
    """What the runtime said, with the name of its status."""


def sized(kind):
    return kind(size=ctypes.sizeof(kind))


def pack(array):
    """The bytes of an array as the runtime lays them out."""
    array = np.ascontiguousarray(array)
    bits = NARROW_BITS.get(array.dtype)
    if not bits or array.size == 0:
        return array.reshape(-1).view(np.uint8)
    rows = array.view(np.uint8).reshape(-1, array.shape[-1] if array.ndim else 1) & ((1 << bits) - 1)
    each = 8 // bits
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % each))).reshape(rows.shape[0], -1, each)
    packed = np.zeros(rows.shape[:2], np.uint8)
    for k in range(each):
        packed |= rows[:, :, k] << (bits * k)
    return packed.reshape(-1)


def unpack(data, dtype, shape):
    """An array of this shape from its bytes."""
    bits = NARROW_BITS.get(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if not bits or count == 0:
        return data[: count * dtype.itemsize].view(dtype).reshape(shape)
    each, last = 8 // bits, shape[-1] if len(shape) else 1
    row_bytes = -(-last // each)
    rows = data[: count // last * row_bytes].reshape(-1, row_bytes, 1)
    values = (rows >> (bits * np.arange(each, dtype=np.uint8))) & ((1 << bits) - 1)
    values = values.reshape(rows.shape[0], -1)[:, :last].astype(np.uint8)
    if dtype in SIGNED_NARROW:
        half = 1 << (bits - 1)
        values = ((values.astype(np.int8) ^ half) - half).view(np.uint8)
    return np.ascontiguousarray(values).view(dtype).reshape(shape)


class Library:
    """libastra_rt.so, with a check of every status."""

    def __init__(self, path):
        self.so = ctypes.CDLL(str(path))
        self.so.astra_status_name.restype = c_char_p
        self.so.astra_loaded_target.restype = c_char_p

    def check(self, function, *args):
        """Calls a function whose last parameter is a diag."""
        diag = sized(Diag)
        status = getattr(self.so, function)(*args, byref(diag))
        if status:
            name = self.so.astra_status_name(status).decode()
            raise RuntimeRefusal(f"{name}: {diag.text.decode(errors='replace') or function}")

    def plain(self, function, *args):
        status = getattr(self.so, function)(*args)
        if status:
            raise RuntimeRefusal(f"{self.so.astra_status_name(status).decode()}: {function}")


class TensorDescription:
    """A name, a dtype and the bounds of each extent, as plain Python values."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.dtype = DTYPES[info.dtype - 1]
        self.code = info.dtype
        self.lower = [info.lower[i] for i in range(info.ndim)]
        self.upper = [info.upper[i] for i in range(info.ndim)]
        self.is_tap = bool(info.is_tap)


class Bundle:
    """One entry of a bundle on a CPU at a level, with a session of its own. Use with `with`."""

    def __init__(self, library, path, level=None, threads=1, entry="main"):
        self.library, self.handles = library, []
        try:
            self._open(str(path).encode(), level, threads, entry)
        except RuntimeRefusal:
            self.close()
            raise

    def _make(self, kind, *args):
        handle = c_void_p()
        self.library.check(f"astra_{kind}_init" + ("_file" if kind == "bundle" else ""), byref(handle), *args)
        self.handles.append((kind, handle))
        return handle

    def _open(self, path, level, threads, entry):
        check = self.library.check
        runtime = self._make("runtime", None)
        options = sized(DeviceOptions)
        options.num_threads, options.level = threads, level.encode() if level else None
        device = self._make("device", runtime, b"cpu", byref(options))
        bundle = self._make("bundle", runtime, path, None)
        self.entry = c_void_p()
        check("astra_bundle_find_entry", bundle, entry.encode(), byref(self.entry))
        loaded = self._make("loaded", bundle, byref(device), c_uint32(1))
        self.target = self.library.so.astra_loaded_target(loaded).decode()
        self.session = self._make("session", loaded, None)
        self.stream = self._make("stream", device)
        info = sized(EntryInfo)
        self.library.plain("astra_entry_get_info", self.entry, byref(info))
        self.inputs = [self._describe("input", i) for i in range(info.num_inputs)]
        self.outputs = [self._describe("output", i) for i in range(info.num_outputs)]

    def _describe(self, kind, index):
        info = sized(TensorInfo)
        self.library.plain(f"astra_entry_get_{kind}", self.entry, c_uint32(index), byref(info))
        return TensorDescription(info)

    def run(self, arrays):
        """The outputs for these inputs, both in the entry's order."""
        check, kept = self.library.check, []

        def tensor(data, code, shape):
            t = sized(Tensor)
            extents = (c_int64 * max(1, len(shape)))(*shape)
            kept.extend((data, extents))
            t.data, t.data_bytes, t.dtype, t.ndim = data.ctypes.data, data.size, code, len(shape)
            t.shape = ctypes.cast(extents, POINTER(c_int64))
            return t

        described = []
        for array in arrays:
            array = np.asarray(array)
            if array.dtype not in DTYPES:
                raise RuntimeRefusal(f"an input is {array.dtype}, which the runtime has no type for")
            data = pack(array)
            code = DTYPES.index(array.dtype) + 1
            described.append(tensor(data if data.size else np.zeros(1, np.uint8)[:0], code, array.shape))
        inputs = (Tensor * max(1, len(described)))(*described)
        count = c_uint32(len(described))

        memory, bounds = [], []
        for i, output in enumerate(self.outputs):
            shape, rank, size = (c_int64 * MAX_RANK)(), c_int32(), c_uint64()
            check("astra_entry_output_bound", self.entry, self.session, inputs, count, c_uint32(i), shape, byref(rank),
                  byref(size))  # fmt: skip
            whole = np.full(size.value + 64, FILL, np.uint8)
            start = -whole.ctypes.data % 64
            memory.append(whole[start : start + size.value])
            bounds.append(list(shape[: rank.value]))
        described = [tensor(m, o.code, b) for m, o, b in zip(memory, self.outputs, bounds)]
        outputs = (Tensor * max(1, len(described)))(*described)

        call = sized(Call)
        call.entry, call.inputs, call.num_inputs = self.entry, inputs, len(arrays)
        call.outputs, call.num_outputs, call.flags = outputs, len(self.outputs), ALLOW_COPY
        promise = c_void_p()
        check("astra_session_submit", self.session, self.stream, byref(call), byref(promise))
        try:
            check("astra_promise_wait", promise)
            results = []
            for i, (output, data, bound) in enumerate(zip(self.outputs, memory, bounds)):
                shape, rank = (c_int64 * MAX_RANK)(), c_int32()
                check("astra_promise_output_shape", promise, c_uint32(i), shape, byref(rank))
                actual = tuple(slice(extent) for extent in shape[: rank.value])
                results.append(unpack(data, output.dtype, bound)[actual].copy())
            return results
        finally:
            self.library.plain("astra_promise_free", byref(promise))

    def close(self):
        while self.handles:
            kind, handle = self.handles.pop()
            self.library.plain(f"astra_{kind}_free", byref(handle))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def levels_here():
    """The CPU levels of Astra that this machine runs, best first."""
    flags = set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split())
            break
    needs = {"x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64-v3": "avx2 fma bmi2"}
    return [level for level, features in needs.items() if flags.issuperset(features.split())]
