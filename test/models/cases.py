"""With which bounds, sizes and inputs each network of the model tests is tried.

Gives:    MODELS, the one table of them; inputs made by numpy from seeds.
Does not: know the networks: names, types and shapes of inputs are read from the ONNX file.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import onnx

IMAGES = {"dims": {"batch": "1..8"}, "sizes": [{"batch": 1}, {"batch": 2}, {"batch": 5}]}
TEXT = {"dims": {"batch": "1..8", "length": "1..128"}, "sizes": [{"batch": 2, "length": 7}, {"batch": 1, "length": 32}, {"batch": 3, "length": 128}]}
CACHE = {"dims": {"batch": "1..8", "past": "0..127"}, "sizes": [{"batch": 1, "past": 1}, {"batch": 3, "past": 18}, {"batch": 2, "past": 127}]}


@dataclass
class Model:
    dims: dict  # the bounds given to the compiler
    sizes: list  # values of the dims, tried on one bundle
    vocabulary: int = 1000
    padding: str = "right"  # where a mask has its zeros
    committed: bool = False  # its graph lies in graphs/


MODELS = {
    "resnet18": Model(**IMAGES),
    "resnet50": Model(**IMAGES, committed=True),
    "resnet50-raw": Model(**IMAGES, committed=True),
    "mobilenet_v2": Model(**IMAGES),
    "mobilenet_v3_small": Model(**IMAGES, committed=True),
    "vit_b_16": Model(**IMAGES),
    "fcn_resnet50": Model(**IMAGES),
    "bert": Model(
        {"batch": "1..8", "seq": "1..128"}, [{"batch": 2, "seq": 7}, {"batch": 1, "seq": 32}, {"batch": 3, "seq": 128}], committed=True
    ),
    "bert_small": Model(**TEXT, committed=True),
    "bert_base": Model(**TEXT),
    "gpt2_small_prefill": Model(**TEXT, padding="left", committed=True),
    "gpt2_small_decode": Model(**CACHE, padding="left", committed=True),
    "gpt2_base_prefill": Model(**TEXT, padding="left"),
    "gpt2_base_decode": Model(**CACHE, padding="left"),
    "minilm": Model(**TEXT, vocabulary=30000),
    "lstm_tagger": Model(**TEXT, committed=True),
    "greedy_decoder": Model(**TEXT, vocabulary=40, committed=True),
}


TINT = 6  # the largest mean of a channel of an image; its noise has the deviation 1


def generator(*names):
    return np.random.default_rng(zlib.crc32("/".join(names).encode()))


def label(sizes):
    """b2s7 of {"batch": 2, "seq": 7}."""
    return "".join(f"{name[0]}{value}" for name, value in sizes.items())


def shape_of(value, sizes):
    """A dim is a number, a name, or arithmetic of names as the exporter writes it: past + 1."""
    return tuple(eval(dim.dim_param, {"__builtins__": {}}, sizes) if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim)


def mask(shape, padding):
    """A third of the last row is padding, if it is not the only one."""
    values = np.ones(shape, np.int64)
    third = shape[1] // 3 if shape[0] > 1 else 0
    values[-1, shape[1] - third :] = 0
    return values if padding == "right" else np.ascontiguousarray(values[:, ::-1])


def inputs(name, graph, sizes):
    """The inputs of a network by name; a function of its name and the sizes."""
    model, result = MODELS[name], {}
    weights = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if value.name in weights:
            continue
        shape, random = shape_of(value, sizes), generator(name.removesuffix("-raw"), value.name, label(sizes))
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            result[value.name] = random.standard_normal(shape, dtype=np.float32)
            if value.name == "image":  # images of noise alone are the same to a mean over all places: each has a colour
                tints = TINT * random.uniform(0.5, 1.0, (*shape[:2], 1, 1)).astype(np.float32)
                tints[1::2] *= -1  # a dark one after each light one
                result[value.name] += tints
        elif "mask" in value.name:
            result[value.name] = mask(shape, model.padding)
        else:
            kinds = 2 if value.name in ("segments", "token_type_ids") else model.vocabulary
            result[value.name] = random.integers(0, kinds, shape)
    return result
