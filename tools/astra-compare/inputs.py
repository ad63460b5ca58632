"""What a model's inputs are, and random values for them.

Takes:    a model, sizes of its dynamic dims, ranges, a seed.
Gives:    an array for each input that has no initializer.
Keeps:    values are functions of the seed, the input's place and the sizes alone.
Does not: check the model: the compiler does.
"""

import math
import shlex

import numpy as np
import onnx

import extents
from report import Refusal, Usage

INTEGERS = "iu"


class Input:
    """Name, NumPy dtype, and extents: numbers, or names of dynamic dims, or arithmetic of them."""

    def __init__(self, value):
        self.name = value.name
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise Refusal(f"input '{value.name}' is not a dense tensor of known rank", unsupported=True)
        tensor = value.type.tensor_type
        if tensor.elem_type == onnx.TensorProto.STRING:
            raise Refusal(f"input '{value.name}' is a tensor of strings", unsupported=True)
        self.dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        self.element = tensor.elem_type
        self.extents = []
        for axis, dim in enumerate(tensor.shape.dim):
            known = dim.HasField("dim_value") and dim.dim_value >= 0
            self.extents.append(dim.dim_value if known else dim.dim_param or f"{value.name}_{axis}")

    def shape(self, sizes):
        return [size_of(e, sizes) for e in self.extents]


def size_of(extent, sizes):
    """A number; the extent itself where it has no size."""
    if not isinstance(extent, str) or extent in sizes:
        return sizes.get(extent, extent)
    size = extents.value(extent, sizes)
    return extent if size is None else size


def inputs_of(model):
    initialized = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
    return [Input(value) for value in model.graph.input if value.name not in initialized]


def table_rows(model):
    """Per name of a value: the least extent of a constant table along the axis that it indexes (Gather)."""
    shapes = {t.name: list(t.dims) for t in model.graph.initializer}
    rows, source = {}, {}
    for node in model.graph.node:
        if node.op_type in ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten") and node.input:
            source[node.output[0]] = source.get(node.input[0], node.input[0])
        if node.op_type == "Gather" and node.input[0] in shapes:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            table = shapes[node.input[0]]
            if -len(table) <= axis < len(table):
                name = source.get(node.input[1], node.input[1])
                rows[name] = min(rows.get(name, table[axis]), table[axis])
    return rows


def limits(dtype, given, rows):
    """The least and the greatest value of an integer input."""
    if given:
        low, high = math.ceil(given[0]), math.floor(given[1])
    elif dtype.itemsize == 1 and dtype.kind in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    else:
        low, high = 0, max(0, rows - 1) if rows is not None else 1
    try:
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    except ValueError:  # a narrow type, whose info NumPy does not have
        least, most = -2, 1
    return max(low, least), min(high, most)


def random_input(value, place, sizes, ranges, rows, seed):
    shape = value.shape(sizes)
    unknown = [e for e in shape if isinstance(e, str)]
    if unknown:
        raise Usage(f"input '{value.name}': the dim '{unknown[0]}' has no size: give --dim {shlex.quote(unknown[0] + '=1..64')} or the like")
    rng = np.random.default_rng([seed, place])
    given = ranges.get(value.name)
    if value.dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if value.dtype.kind in INTEGERS or "int" in value.dtype.name:
        low, high = limits(value.dtype, given, rows)
        if low > high:
            raise Usage(f"--range {value.name}: no value of {value.dtype.name} is in it")
        return rng.integers(low, high, shape, np.int64 if high < 2**63 else np.uint64, True).astype(value.dtype)
    if given:
        return rng.uniform(given[0], given[1], shape).astype(value.dtype)
    if value.dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(value.dtype)
    return rng.standard_normal(shape).astype(value.dtype)


def load(path, value):
    """An array from a file; bf16 and 8-bit floats come as unsigned integers of their width."""
    try:
        array = np.load(path)
    except (OSError, ValueError, EOFError) as wrong:
        raise Refusal(f"input {value.name}: cannot read {path}: {wrong}") from None
    if not isinstance(array, np.ndarray):
        raise Refusal(f"input {value.name}: {path} holds several arrays: give one of them as .npy")
    if array.dtype != value.dtype and array.dtype.kind == "u" and array.dtype.itemsize == value.dtype.itemsize:
        array = array.view(value.dtype)
    if array.dtype != value.dtype:
        raise Refusal(f"input {value.name}: {path} holds {array.dtype.name}, the model wants {value.dtype.name}")
    return array


def sizes_given(values, given, written):
    """Per dim of the arrays that are given: its size, and the flag that says so. `written`: dims that are arithmetic."""
    sizes = {}
    for value in values:
        if value.name not in given:
            continue
        shape, flag = given[value.name].shape, f"--input {value.name}"
        if len(shape) != len(value.extents):
            raise Usage(f"{flag}: the file's array is of rank {len(shape)}, the model's input of rank {len(value.extents)}")
        for axis, (size, extent) in enumerate(zip(shape, value.extents)):
            if not isinstance(extent, str):
                if size != extent:
                    raise Usage(f"{flag}: axis {axis} of the file's array has the size {size}, the model's input {extent}")
                continue
            text = written.get(extent, extent)
            name, size = extents.solve(text, size) or (extent, size)
            if sizes.setdefault(name, (size, flag))[0] != size:
                other, first = sizes[name]
                raise Usage(f"{flag}: the dim '{name}' has the size {size} there, and {other} in {first}")
    return sizes


def make_inputs(model, values, sizes, given, ranges, seed):
    rows = table_rows(model)
    return {
        value.name: given[value.name] if value.name in given
        else random_input(value, place, sizes, ranges, rows.get(value.name), seed)
        for place, value in enumerate(values)
    }  # fmt: skip
