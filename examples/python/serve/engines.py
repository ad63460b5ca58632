"""What runs a batch: a bundle in Astra's runtime; ONNX Runtime with the model that it was made from, for comparison.

Takes:    a file, how many threads a batch may use, the largest batch that is wanted.
Gives:    inputs and outputs by name, type and bounds; run(arrays) -> arrays, in their order.
Keeps:    axis 0 of every input and output is the batch; nothing is remembered from batch to batch.
Does not: know HTTP, or check arrays: whoever calls does.
"""

from __future__ import annotations

from typing import Any

import astra_rt
import numpy as np

DTYPES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
          "f16": "f2", "f32": "f4", "f64": "f8"}  # fmt: skip


class Unservable(Exception):
    """A model that cannot be served so; the sentence says why."""


class Astra:
    """An entry of a bundle."""

    def __init__(self, path: str, entry: str, threads: int, most: int) -> None:
        self.module = astra_rt.load(path, threads=threads)
        self.entry = self.module[entry]
        self.inputs, self.outputs = self.entry.inputs, self.entry.outputs
        if self.entry.states:
            raise Unservable(f"{entry} keeps states ({', '.join(self.entry.states)}), which clients would share")
        self.batch = batch_of(self.inputs, self.outputs, most)
        self.about = {"model": self.module.name, "engine": f"astra_rt {astra_rt.__version__}", "target": self.module.target,
                      "contract": self.module.contract}  # fmt: skip

    def run(self, arrays: list[Any]) -> list[Any]:
        results = self.entry(*arrays)
        return [r.numpy() for r in (results if isinstance(results, tuple) else [results])]

    def close(self) -> None:
        self.module.close()


class OnnxRuntime:
    """An ONNX model. Its file has no bounds: axis 0 gets those of the option, other axes with names any."""

    def __init__(self, path: str, entry: str, threads: int, most: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = {"tensor(float)": "f32", "tensor(float16)": "f16", "tensor(double)": "f64", "tensor(bool)": "bool"}
        names |= {f"tensor({u}int{n})": f"{u or 'i'}{n}" for u in ("", "u") for n in (8, 16, 32, 64)}

        def info(value: Any) -> astra_rt.TensorInfo:
            bounds = [(d, d) if isinstance(d, int) else (1, 1 << 31 if axis else most or 64) for axis, d in enumerate(value.shape)]
            lower, upper = tuple(low for low, _ in bounds), tuple(high for _, high in bounds)
            return astra_rt.TensorInfo(value.name, names.get(value.type, value.type), lower, upper, False)

        self.inputs, self.outputs = [info(v) for v in self.session.get_inputs()], [info(v) for v in self.session.get_outputs()]
        self.batch = batch_of(self.inputs, self.outputs, most)
        self.about = {"model": path, "engine": f"onnxruntime {onnxruntime.__version__}"}

    def run(self, arrays: list[Any]) -> list[Any]:
        return self.session.run(None, {i.name: a for i, a in zip(self.inputs, arrays)})

    def close(self) -> None:
        pass


ENGINES = {"astra": Astra, "onnxruntime": OnnxRuntime}


def batch_of(inputs: Any, outputs: Any, most: int) -> tuple[int, int]:
    """The bounds of axis 0, which all inputs and outputs have in common."""
    if not inputs or not outputs:
        raise Unservable("the entry has no inputs, or no outputs")
    for value in (*inputs, *outputs):
        if value.dtype not in DTYPES:
            raise Unservable(f"{value} is of an element type that is not served")
        same = value.ndim and (value.lower[0], value.upper[0]) == (inputs[0].lower[0], inputs[0].upper[0])
        if not same or value.is_constant:
            raise Unservable(f"axis 0 of {value} is not the batch: it must have the bounds of every other input's and output's axis 0")
    lower, upper = inputs[0].lower[0], inputs[0].upper[0]
    return lower, min(upper, most) if most else upper


def dtype_of(info: Any) -> Any:
    """NumPy's dtype of a value."""
    return np.dtype(DTYPES[info.dtype])
