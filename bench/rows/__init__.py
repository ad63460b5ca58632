"""What is measured: rows in families.

Gives:    Row, FAMILIES (one file of this folder each), find.
Keeps:    inputs and weights are a function of the row's name, so every process makes the same ones.
Does not: import a peer: a row's `torch` and `jax` get the module as an argument.

A family is a list of rows in the order of the tables. Every peer that reads ONNX gets the row's model; those that do not
get the row's function of the same values, if it names one.
"""

import importlib
import zlib
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FAMILIES = ["matmul", "thin", "conv", "layers", "attention", "rows", "networks", "quantized", "mlp", "trees", "open", "train", "einsum"]


@dataclass
class Case:
    """Values of one row, and what is computed of them."""

    inputs: dict  # by name
    weights: dict = field(default_factory=dict)  # constants of the model, by name
    nodes: list = field(default_factory=list)  # of onnx; the last one's outputs are the outputs
    opset: int = 20


@dataclass
class Row:
    family: str
    name: str
    case: Callable[[], Case]
    flops: float = 0  # of one call
    bytes: float = 0  # that one call must move
    limit: str = "fma"  # what bounds it: fma, read or copy; "" where no one number does
    torch: Callable = None  # (torch, values by name) -> output or outputs
    jax: Callable = None  # (jax, values by name) -> output or outputs
    numpy: Callable = None  # (numpy, values by name) -> output
    path: str = ""  # a model that exists, instead of the nodes
    file: Callable = None  # () -> the path of one with its extents
    dims: dict = field(default_factory=dict)  # bounds of its dims for the compiler
    options: list = field(default_factory=list)  # more words for the compiler
    entry: str = "main"
    tolerance: float = 1e-4


def random(*names):
    return np.random.default_rng(zlib.crc32("/".join(names).encode()))


def normal(name, shape, scale=1.0):
    return random(name).standard_normal(shape, dtype=np.float32) * np.float32(scale)


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def model(case):
    """The ONNX file of a case: shapes of inputs are constants, outputs of f32, or of f64 where an input is."""
    kinds = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "i8": TensorProto.INT64, "b1": TensorProto.BOOL}
    inputs = [helper.make_tensor_value_info(n, kinds[v.dtype.str[1:]], v.shape) for n, v in case.inputs.items()]
    of = TensorProto.DOUBLE if any(v.dtype == np.float64 for v in case.inputs.values()) else TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info(n, of, None) for n in case.nodes[-1].output]
    weights = [numpy_helper.from_array(v, n) for n, v in case.weights.items()]
    graph = helper.make_graph(case.nodes, "row", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid("ai.onnx.ml", 3)][: 1 + any(n.domain for n in case.nodes)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=11 if case.opset > 22 else 10)
    return onnx.shape_inference.infer_shapes(made)


def family(name):
    return importlib.import_module(f"rows.{name}").ROWS


def find(family_name, row_name):
    return next(row for row in family(family_name) if row.name == row_name)
